"""What every call must do: answer or refuse, with a reason, in the promised form, and leave no trace when refused."""

import re
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from statistics import median
from typing import ClassVar

from jsonschema.exceptions import best_match

from trajsmith.envcheck.case_runner import ObservedCall
from trajsmith.envcheck.check_session import CheckSession
from trajsmith.envcheck.checks.base import CallCheck, Check, Suspicion
from trajsmith.envcheck.facts.base import shorten_value
from trajsmith.envcheck.findings import CaseEvidence, Severity
from trajsmith.envcheck.state_view import outline_value
from trajsmith.records import JsonObject, ToolSpec, canonical_json

_GENERIC = frozenset({
    "error", "failed", "failure", "invalid", "refused", "denied", "none", "null", "false", "bad request", "not allowed",
    "an error occurred", "something went wrong", "operation failed", "tool error", "unknown error", "exception",
})  # fmt: skip
_FORBIDDEN = "the sandbox does not allow"
"""Says that the environment could not do something here: no crash, but a tool that never gets further is of no use."""
_NOTHING = ": None is not of type"
"""A null where another type is declared: most callers stand that."""
_ERROR_TEXT = re.compile(r"(?:\w+ ){0,2}\w*(?:error|exception) ?:|traceback \(most recent call last\)", re.IGNORECASE)
_SHOWN = 60
"""Characters of an error text that a state or the arguments would have to hold."""
MANY_STATES = 8
"""Initial states among which one should let every tool succeed."""
SLOW = 25.0
"""Times the usual call from which on a tool is slow."""
SLOW_SECONDS = 0.02


class Crash(CallCheck):
    """A call is answered or refused, whatever its arguments; it never breaks the code."""

    name: ClassVar[str] = "crash"
    about: ClassVar[str] = "a call is answered or refused, whatever its arguments; it never breaks the code"

    def list_topics(self, check_session: CheckSession, seen: ObservedCall) -> Iterator[tuple[str, str, JsonObject]]:
        fault = seen.outcome.fault
        if fault is not None and fault.kind != "output_schema" and _FORBIDDEN not in str(fault):
            fault_text = str(fault).split(": ", 2)[-1]
            kind = fault_text.split(":", 1)[0] if fault.kind == "crash" else fault.kind
            yield f"{fault.kind}:{kind}", f"{seen.outcome.step.tool} breaks: {fault_text[:160]}", {"kind": kind}

    def inspect_call(self, check_session: CheckSession, seen: ObservedCall, about: JsonObject) -> CaseEvidence | None:
        fault = seen.outcome.fault
        if fault is None or fault.kind == "output_schema" or about["kind"] not in str(fault):
            return None
        return CaseEvidence(seen=str(fault)[:300], expected="a result, or a refusal with its reason")


class OutputSchema(CallCheck):
    """A result fits the output schema of its tool."""

    name: ClassVar[str] = "output_schema"
    about: ClassVar[str] = "a result fits the output schema of its tool"

    async def look(self, check_session: CheckSession) -> AsyncIterator[Suspicion]:
        known: set[str] = set()
        for seen in check_session.explored.observations:
            form = f"{seen.tool} {outline_value(seen.outcome.content)}"
            if seen.outcome.fault is None and form in known:
                continue  # results of the same form are right or wrong together, but for their values
            known.add(form)
            evidence = self.inspect_call(check_session, seen, {})
            if evidence is not None:
                message = f"{seen.tool} gives a result that its own output schema forbids"
                severity: Severity = "warning" if _NOTHING in evidence.seen else "error"
                yield Suspicion(seen.tool, "", message, seen.case(), severity=severity)

    def inspect_call(self, check_session: CheckSession, seen: ObservedCall, about: JsonObject) -> CaseEvidence | None:
        fault = seen.outcome.fault
        if fault is not None:
            if fault.kind != "output_schema":
                return None
            return CaseEvidence(seen=str(fault)[:300], expected="a result that fits the output schema")
        schema = check_session.tools[seen.outcome.step.tool].output_schema
        if not seen.outcome.ok or not schema:
            return None
        error = best_match(check_session.output_validator(seen.outcome.step.tool).iter_errors(seen.outcome.content))
        if error is None:
            return None
        return CaseEvidence(
            seen=f"{error.json_path}: {error.message[:200]}", expected="a result that fits the output schema"
        )


class RefusalReason(CallCheck):
    """A refusal says why."""

    name: ClassVar[str] = "refusal_reason"
    about: ClassVar[str] = "a refusal says why, in more than one word"
    severity: ClassVar[Severity] = "warning"

    def list_topics(self, check_session: CheckSession, seen: ObservedCall) -> Iterator[tuple[str, str, JsonObject]]:
        if seen.outcome.refusal is not None:
            yield "", f"{seen.outcome.step.tool} refuses without saying why", {}

    def inspect_call(self, check_session: CheckSession, seen: ObservedCall, about: JsonObject) -> CaseEvidence | None:
        reason = seen.outcome.refusal
        if reason is None:
            return None
        words = " ".join(re.findall(r"\w+", reason.lower()))
        if words and words not in _GENERIC and (len(words.split()) > 1 or len(words) > 12):
            return None
        return CaseEvidence(seen=f"the refusal {shorten_value(reason)}", expected="a reason that the caller can act on")


class UnmarkedRefusal(CallCheck):
    """A call that fails is refused: its error is no result."""

    name: ClassVar[str] = "unmarked_refusal"
    about: ClassVar[str] = "a call that fails is refused; its error is no result"
    severity: ClassVar[Severity] = "warning"

    def is_applicable(self, check_session: CheckSession, tool: ToolSpec) -> bool:
        return any(_read_text(seen) is not None for seen in check_session.explored.succeeded(tool.name))

    def list_topics(self, check_session: CheckSession, seen: ObservedCall) -> Iterator[tuple[str, str, JsonObject]]:
        yield "", f"{seen.outcome.step.tool} gives an error as if it were a result", {}

    def inspect_call(self, check_session: CheckSession, seen: ObservedCall, about: JsonObject) -> CaseEvidence | None:
        text = _read_text(seen)
        if text is None or not _ERROR_TEXT.match(text):
            return None
        shown = canonical_json(text[:_SHOWN]).decode()[1:-1].casefold()
        if shown in seen.before.text or shown in canonical_json(seen.outcome.step.arguments).decode().casefold():
            return None  # a note, a log line or an echo that begins so
        return CaseEvidence(seen=f"the result {shorten_value(text)}", expected="a refusal with this reason")


def _read_text(seen: ObservedCall) -> str | None:
    """Return a result that is only a text, alone or as the `result` of an object."""
    content = seen.outcome.content if seen.outcome.ok else None
    if isinstance(content, dict) and content.keys() == {"result"}:
        content = content["result"]
    return content if isinstance(content, str) else None


class RefusedChange(CallCheck):
    """A refused call leaves the state as it was."""

    name: ClassVar[str] = "refused_change"
    about: ClassVar[str] = "a refused call leaves the state as it was"

    def list_topics(self, check_session: CheckSession, seen: ObservedCall) -> Iterator[tuple[str, str, JsonObject]]:
        if seen.outcome.refusal is not None:
            yield "", f"{seen.outcome.step.tool} changes the state although it refuses", {}

    def inspect_call(self, check_session: CheckSession, seen: ObservedCall, about: JsonObject) -> CaseEvidence | None:
        if seen.outcome.refusal is None or not seen.changed:
            return None
        return CaseEvidence(
            seen=f"refused ({shorten_value(seen.outcome.refusal)}), and {describe_changes(seen)}",
            expected="the state as it was",
        )


def describe_changes(seen: ObservedCall) -> str:
    """The first change of a call in words."""
    from trajsmith.envcheck.facts.base import format_row_name

    changes = seen.changes
    if not changes:
        return "the state is another one"
    change = changes[0]
    where = format_row_name(change.relation, change.key)
    if change.before is None:
        return f"{where} is new"
    if change.after is None:
        return f"{where} is gone"
    name, (old, new) = next(iter(change.fields.items()), ("it", (None, None)))
    return f"{name} of {where} went from {shorten_value(old)} to {shorten_value(new)}"


class Reachable(Check):
    """Every tool can succeed."""

    name: ClassVar[str] = "reachable"
    about: ClassVar[str] = "every tool can be called with success from some state"
    severity: ClassVar[Severity] = "warning"

    async def look(self, check_session: CheckSession) -> AsyncIterator[Suspicion]:
        for tool in check_session.spec.tools:
            calls = check_session.explored.by_tool.get(tool.name, [])
            if not calls or any(seen.ok for seen in calls):
                continue
            faults = [(seen, str(seen.outcome.fault)) for seen in calls if seen.outcome.fault is not None]
            texts = [*faults, *((seen, seen.outcome.refusal or "") for seen in calls)]
            forbidden = [(seen, text) for seen, text in texts if _FORBIDDEN in text]
            if forbidden:
                seen, text = forbidden[0]
                message = f"{tool.name} cannot run in the sandbox: it does not allow{text.partition(_FORBIDDEN)[2]}"
                evidence = CaseEvidence(seen=text[:300], expected="at least one call that succeeds")
                yield Suspicion(tool.name, "sandbox", message, seen.case(), evidence)
            if faults or forbidden:
                continue
            reasons = Counter(re.sub(r"[A-Z]*\d[\w.,:-]*", "#", seen.outcome.refusal or "") for seen in calls)
            reason_counts = "; ".join(
                f"{shorten_value(reason)} {count} times" for reason, count in reasons.most_common(3)
            )
            starts = len({seen.start for seen in calls})
            yield Suspicion(
                tool.name,
                "",
                f"{tool.name} never succeeded in {len(calls)} calls from {starts} initial states",
                calls[0].case(),
                CaseEvidence(seen=reason_counts, expected="at least one call that succeeds"),
                "warning" if len(check_session.data.views) >= MANY_STATES else "note",
            )


class SlowTool(Check):
    """No tool takes far more processor time than the others."""

    name: ClassVar[str] = "slow"
    about: ClassVar[str] = "no tool takes far more processor time than the others"
    severity: ClassVar[Severity] = "note"

    async def look(self, check_session: CheckSession) -> AsyncIterator[Suspicion]:
        usual = {tool: median(times) for tool, times in check_session.runner.by_tool.items() if len(times) >= 3}
        middle = median(usual.values()) if usual else 0.0
        for tool, seconds in usual.items():
            if seconds > SLOW_SECONDS and seconds > SLOW * middle:
                yield Suspicion(
                    tool,
                    "",
                    f"{tool} takes about {seconds * 1000:.0f} ms of processor time",
                    check_session.explored.by_tool[tool][0].case(),
                    CaseEvidence(
                        seen=f"{seconds * 1000:.0f} ms", expected=f"about {middle * 1000:.1f} ms, as the others"
                    ),
                )
