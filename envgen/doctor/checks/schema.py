"""What an environment says of itself: it starts, its schemas are schemas, and its code keeps them."""

from collections.abc import AsyncIterator, Iterator
from typing import TYPE_CHECKING, Any, ClassVar

from jsonschema import Draft202012Validator
from jsonschema.exceptions import best_match

from envgen.doctor import texts
from envgen.doctor.case import Case, Evidence, Severity
from envgen.doctor.checks.base import Check, Suspicion
from envgen.doctor.checks.watching import Seen
from envgen.doctor.facts.fact import short
from envgen.doctor.links import agree
from envgen.doctor.probes import Probe
from environments.arguments import checked_schema
from trajectory import EnvironmentFault, InputError, JsonObject, ToolSpec

if TYPE_CHECKING:
    from envgen.doctor.exam import Exam


class Starts(Check):
    """Every initial state can be started from, is what was asked for, and fits the state schema."""

    name: ClassVar[str] = "start"
    about: ClassVar[str] = "every initial state can be started from, and fits the state schema"
    per_tool: ClassVar[bool] = False

    async def look(self, exam: "Exam") -> AsyncIterator[Suspicion]:
        for start in exam.starts:
            case = Case(start=start)
            evidence = await self.judge(exam, case)
            if evidence is not None:
                yield Suspicion(None, "", f"initial state {start.index} of seed {start.seed} is faulty", case)

    async def judge(self, exam: "Exam", case: Case) -> Evidence | None:
        state = await exam.lab.state(case.start)
        session = await exam.source.open()
        try:
            await session.reset(state)
            after = await session.snapshot()
        except EnvironmentFault as fault:
            return Evidence(seen=str(fault)[:300], expected="a session at this state")
        finally:
            await session.close()
        names = ", ".join(name for name in state if not _is_there(name, state, after))
        if exam.spec.can_restore and names:
            return Evidence(seen=f"after the start, {names} differ from what was given", expected="the state as given")
        schema = exam.spec.state_schema
        error = best_match(Draft202012Validator(schema).iter_errors(after)) if schema else None
        if error is not None:
            return Evidence(seen=f"{error.json_path}: {error.message[:200]}", expected="a state that fits its schema")
        return None


def _kept(given: Any, after: Any) -> bool:
    """True if what was given is there after the start; defaults may have been filled in, and forms made uniform."""
    if isinstance(given, dict) and isinstance(after, dict):
        return all(_is_there(name, given, after) for name in given)
    if isinstance(given, list) and isinstance(after, list):
        return len(given) == len(after) and all(_kept(one, other) for one, other in zip(given, after, strict=True))
    return agree(given, after) or str(given) == str(after)


def _is_there(name: str, given: JsonObject, after: JsonObject) -> bool:
    """True if a field was kept, also under another name that is new: old forms of states are brought to the new one."""
    value = given[name]
    if value is None or name in after:
        return value is None or _kept(value, after[name])
    return any(other not in given and _kept(value, after[other]) for other in after)


class Schemas(Check):
    """Schemas of tools are valid, describe objects, and say what every parameter is for."""

    name: ClassVar[str] = "schema"
    about: ClassVar[str] = "input and output schemas are valid, describe objects, and everything has a description"

    def applies(self, exam: "Exam", tool: ToolSpec) -> bool:
        return True

    async def look(self, exam: "Exam") -> AsyncIterator[Suspicion]:
        names = [tool.name for tool in exam.spec.tools]
        for name in sorted({name for name in names if names.count(name) > 1}):
            evidence = Evidence(seen=f"{names.count(name)} tools named {name}", expected="one")
            yield Suspicion(name, "twice", f"there are several tools named {name}", None, evidence)
        for tool in exam.spec.tools:
            for topic, message, severity in _faults(tool):
                evidence = Evidence(seen=message, expected="a schema that a caller can go by")
                yield Suspicion(tool.name, topic, f"{tool.name}: {message}", None, evidence, severity)


def _faults(tool: ToolSpec) -> Iterator[tuple[str, str, Severity]]:
    """Topic, message and severity of what is wrong with a tool's own words."""
    for topic, schema in (("input", tool.input_schema), ("output", tool.output_schema)):
        if schema is None:
            continue
        try:
            checked_schema(schema, f"the {topic} schema")
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
        yield "parameters", f"nothing says what {', '.join(silent)} stand for", "note"


class Signature(Check):
    """The code takes what the schema allows, and refuses what it forbids."""

    name: ClassVar[str] = "signature"
    about: ClassVar[str] = "the code takes what the schema allows, and refuses what it forbids"
    severity: ClassVar[Severity] = "warning"

    async def look(self, exam: "Exam") -> AsyncIterator[Suspicion]:
        for probe in exam.probes:
            told = _accepted(exam, probe)
            if told is not None:
                severity, message = told
                case = probe.seen.case({"forbidden": True})
                yield Suspicion(probe.seen.tool, f"{probe.aim}:{probe.parameter}", message, case, severity=severity)
        for seen in exam.explored.observations:
            if seen.outcome.schema_refusal and _valid(exam, seen) and not _in_doubt(exam, seen):
                message = f"{seen.tool} refuses arguments that its schema allows"
                yield Suspicion(seen.tool, "refused", message, seen.case({"forbidden": False}))

    async def judge(self, exam: "Exam", case: Case) -> Evidence | None:
        shots = await exam.lab.run(case)
        if not shots or shots[-1].outcome.step != case.steps[-1]:
            return None
        shot = shots[-1]
        valid = _valid(exam, shot)
        if case.about["forbidden"] and not valid and shot.outcome.ok:
            fault = exam.argument_fault(shot.outcome.step)
            return Evidence(seen=f"success, although {fault}", expected="a refusal")
        if not case.about["forbidden"] and valid and shot.outcome.schema_refusal and not _in_doubt(exam, shot):
            return Evidence(seen=f"refused: {short(shot.outcome.refusal)}", expected="a call that is at least tried")
        return None


def _valid(exam: "Exam", seen: Seen) -> bool:
    step = seen.outcome.step
    if exam.argument_fault(step) is not None:
        return False
    leaves = {leaf.path: leaf for leaf in exam.maker.leaves[step.tool]}
    return all(
        texts.has_form(value, str(leaves[name].schema.get("format") or ""))
        for name, value in step.arguments.items()
        if name in leaves
    )


def _in_doubt(exam: "Exam", seen: Seen) -> bool:
    """True if an argument is a time that some take and others refuse."""
    step = seen.outcome.step
    return any(
        texts.without_offset(step.arguments.get(leaf.path), str(leaf.schema.get("format") or ""))
        for leaf in exam.maker.leaves[step.tool]
    )


def _accepted(exam: "Exam", probe: Probe) -> tuple[Severity, str] | None:
    """What to say of a call that its schema forbids and that was answered with success."""
    if not probe.seen.ok or probe.aim not in ("wrong", "missing", "extra") or _valid(exam, probe.seen):
        return None
    tool, parameter = probe.seen.tool, probe.parameter
    match probe.aim:
        case "missing":
            return "warning", f"{tool} requires {parameter}, and succeeds without it"
        case "extra":
            return "note", f"{tool} forbids unknown parameters, and takes one"
        case _:
            return "note", f"{tool} takes a value for {parameter} that its schema forbids"


def about_probe(probe: Probe) -> JsonObject:
    return {"aim": probe.aim, "parameter": probe.parameter}
