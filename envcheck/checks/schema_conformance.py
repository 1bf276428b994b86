"""Declarations of an environment: it starts, its schemas are valid, and its code follows them."""

from collections.abc import AsyncIterator, Iterator
from typing import Any, ClassVar

from jsonschema.exceptions import best_match

from trajsmith.envcheck.case_runner import ObservedCall
from trajsmith.envcheck.check_session import CheckSession
from trajsmith.envcheck.checks.base import Check, Suspicion
from trajsmith.envcheck.facts.base import shorten_value
from trajsmith.envcheck.findings import CaseEvidence, CheckCase, Severity
from trajsmith.envcheck.row_links import values_agree
from trajsmith.envcheck.schema_probes import SchemaProbe
from trajsmith.environments.arguments import validate_schema
from trajsmith.environments.schema_patterns import compile_schema
from trajsmith.grounding import has_format, lacks_utc_offset
from trajsmith.records import EnvironmentFault, InputError, JsonObject, ToolSpec


class ValidStarts(Check):
    """Every initial state can be started from, is what was asked for, and fits the state schema."""

    name: ClassVar[str] = "start"
    about: ClassVar[str] = "every initial state can be started from, and fits the state schema"
    per_tool: ClassVar[bool] = False

    async def look(self, check_session: CheckSession) -> AsyncIterator[Suspicion]:
        for start in check_session.starts:
            case = CheckCase(start=start)
            evidence = await self.judge(check_session, case)
            if evidence is not None:
                yield Suspicion(None, "", f"initial state {start.index} of seed {start.seed} is faulty", case)

    async def judge(self, check_session: CheckSession, case: CheckCase) -> CaseEvidence | None:
        state = await check_session.runner.state(case.start)
        session = await check_session.source.open()
        try:
            await session.reset(state)
            after = await session.snapshot()
        except EnvironmentFault as fault:
            return CaseEvidence(seen=str(fault)[:300], expected="a session at this state")
        finally:
            await session.close()
        names = ", ".join(name for name in state if not _is_field_preserved(name, state, after))
        if check_session.spec.can_restore and names:
            return CaseEvidence(
                seen=f"after the start, {names} differ from what was given", expected="the state as given"
            )
        schema = check_session.spec.state_schema
        error = best_match(compile_schema(schema).iter_errors(after)) if schema else None
        if error is not None:
            return CaseEvidence(
                seen=f"{error.json_path}: {error.message[:200]}", expected="a state that fits its schema"
            )
        return None


def _is_preserved(requested: Any, after: Any) -> bool:
    """Return True if the requested state is preserved by the start; defaults and uniform formats are allowed."""
    if isinstance(requested, dict) and isinstance(after, dict):
        return all(_is_field_preserved(name, requested, after) for name in requested)
    if isinstance(requested, list) and isinstance(after, list):
        return len(requested) == len(after) and all(
            _is_preserved(one, other) for one, other in zip(requested, after, strict=True)
        )
    return values_agree(requested, after) or str(requested) == str(after)


def _is_field_preserved(name: str, requested: JsonObject, after: JsonObject) -> bool:
    """Return True if a field was preserved, also under a new name after a migration."""
    value = requested[name]
    if value is None or name in after:
        return value is None or _is_preserved(value, after[name])
    return any(other not in requested and _is_preserved(value, after[other]) for other in after)


class ValidSchemas(Check):
    """Schemas of tools are valid, describe objects, and say what every parameter is for."""

    name: ClassVar[str] = "schema"
    about: ClassVar[str] = "input and output schemas are valid, describe objects, and everything has a description"

    def is_applicable(self, check_session: CheckSession, tool: ToolSpec) -> bool:
        return True

    async def look(self, check_session: CheckSession) -> AsyncIterator[Suspicion]:
        names = [tool.name for tool in check_session.spec.tools]
        for name in sorted({name for name in names if names.count(name) > 1}):
            evidence = CaseEvidence(seen=f"{names.count(name)} tools named {name}", expected="one")
            yield Suspicion(name, "twice", f"there are several tools named {name}", None, evidence)
        for tool in check_session.spec.tools:
            for topic, message, severity in _faults(tool):
                evidence = CaseEvidence(seen=message, expected="a schema that a caller can go by")
                yield Suspicion(tool.name, topic, f"{tool.name}: {message}", None, evidence, severity)


def _faults(tool: ToolSpec) -> Iterator[tuple[str, str, Severity]]:
    """Topic, message and severity of what is wrong with a tool's own words."""
    for topic, schema in (("input", tool.input_schema), ("output", tool.output_schema)):
        if schema is None:
            continue
        try:
            validate_schema(schema, f"the {topic} schema")
        except InputError as error:
            yield topic, str(error), "error"
    if tool.input_schema.get("type", "object") != "object":
        yield "type", "its input schema is no object", "error"
    strangers = [name for name in tool.required if name not in tool.parameters]
    if strangers and tool.input_schema.get("additionalProperties") is False:
        yield "required", f"it requires {', '.join(strangers)}, which it does not allow", "error"
    elif strangers:
        yield "required", f"it requires {', '.join(strangers)} without describing them", "warning"
    if not tool.description.strip():
        yield "description", "it has no description", "warning"
    silent = [name for name, schema in tool.parameters.items() if not str(schema.get("description") or "").strip()]
    if silent:
        yield (
            "parameters",
            f"nothing says what {', '.join(silent)} {'stands' if len(silent) == 1 else 'stand'} for",
            "note",
        )


class SignatureMatchesSchema(Check):
    """The code takes what the schema allows, and refuses what it forbids."""

    name: ClassVar[str] = "signature"
    about: ClassVar[str] = "the code takes what the schema allows, and refuses what it forbids"
    severity: ClassVar[Severity] = "warning"

    async def look(self, check_session: CheckSession) -> AsyncIterator[Suspicion]:
        for probe in check_session.probes:
            acceptance = _describe_acceptance(check_session, probe)
            if acceptance is not None:
                severity, message = acceptance
                case = probe.seen.case({"forbidden": True})
                yield Suspicion(probe.seen.tool, f"{probe.aim}:{probe.parameter}", message, case, severity=severity)
        for seen in check_session.explored.observations:
            if (
                seen.outcome.schema_refusal
                and _valid(check_session, seen)
                and not _is_ambiguous_time(check_session, seen)
            ):
                message = f"{seen.tool} refuses arguments that its schema allows"
                yield Suspicion(seen.tool, "refused", message, seen.case({"forbidden": False}))

    async def judge(self, check_session: CheckSession, case: CheckCase) -> CaseEvidence | None:
        step_results = await check_session.runner.run(case)
        if not step_results or step_results[-1].outcome.step != case.steps[-1]:
            return None
        step_result = step_results[-1]
        valid = _valid(check_session, step_result)
        if case.about["forbidden"] and not valid and step_result.outcome.ok:
            fault = check_session.argument_fault(step_result.outcome.step)
            return CaseEvidence(seen=f"success, although {fault}", expected="a refusal")
        if (
            not case.about["forbidden"]
            and valid
            and step_result.outcome.schema_refusal
            and not _is_ambiguous_time(check_session, step_result)
        ):
            return CaseEvidence(
                seen=f"refused: {shorten_value(step_result.outcome.refusal)}", expected="a call that is at least tried"
            )
        return None


def _valid(check_session: CheckSession, seen: ObservedCall) -> bool:
    step = seen.outcome.step
    if check_session.argument_fault(step) is not None:
        return False
    leaves = {leaf.path: leaf for leaf in check_session.sampler.leaves[step.tool]}
    return all(
        has_format(value, str(leaves[name].schema.get("format") or ""))
        for name, value in step.arguments.items()
        if name in leaves
    )


def _is_ambiguous_time(check_session: CheckSession, seen: ObservedCall) -> bool:
    """Return True if an argument is a time in a format that tools treat differently."""
    step = seen.outcome.step
    return any(
        lacks_utc_offset(step.arguments.get(leaf.path), str(leaf.schema.get("format") or ""))
        for leaf in check_session.sampler.leaves[step.tool]
    )


def _describe_acceptance(check_session: CheckSession, probe: SchemaProbe) -> tuple[Severity, str] | None:
    """Return the message for a call that its schema forbids and that succeeded."""
    if not probe.seen.ok or probe.aim not in ("wrong", "missing", "extra") or _valid(check_session, probe.seen):
        return None
    tool, parameter = probe.seen.tool, probe.parameter
    match probe.aim:
        case "missing":
            return "warning", f"{tool} requires {parameter}, and succeeds without it"
        case "extra":
            return "note", f"{tool} forbids unknown parameters, and takes one"
        case _:
            return "note", f"{tool} takes a value for {parameter} that its schema forbids"


def describe_probe(probe: SchemaProbe) -> JsonObject:
    return {"aim": probe.aim, "parameter": probe.parameter}
