"""What holds in every initial state holds after every call."""

import json
import re
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import best_match

from envgen.doctor.case import Case, Evidence, Severity
from envgen.doctor.checks.base import Check, Suspicion
from envgen.doctor.checks.calls import MANY_STATES
from envgen.doctor.explore import Observation
from envgen.doctor.facts import FACT, Fact
from envgen.doctor.facts.fact import row_name
from envgen.doctor.lab import Shot
from envgen.doctor.view import outline
from grounding.fields import unwrap
from trajectory import JsonObject

if TYPE_CHECKING:
    from envgen.doctor.exam import Exam

_KEY = re.compile(r"\[.*?\]")
ABOUT = {
    "references": "keys name their rows, and what points to a row points to one that is there",
    "identifiers": "new identifiers have the form of the old ones",
    "uniqueness": "what is related only once in every initial state stays so",
    "bounds": "numbers and days stay within the bounds that all initial states keep",
    "totals": "sums, products and counts that are right in every initial state stay right",
    "copies": "what is kept in two places stays equal in both",
    "indexes": "indexes and lists of keys agree with the rows that they lead to",
    "state_schema": "the state fits its schema, and its columns keep their types",
}


class FactCheck(Check):
    """Facts of one kind, mined from the initial states."""

    def __init__(self, name: str, severity: Severity) -> None:
        self.name = name  # type: ignore[misc]  # one class, several checks
        self.about = ABOUT[name]  # type: ignore[misc]
        self.severity = severity  # type: ignore[misc]

    def skip(self, exam: "Exam") -> str:
        if not self._facts(exam) and not (self.name == "state_schema" and exam.spec.state_schema):
            return "the initial states have nothing of the kind"
        return ""

    def _facts(self, exam: "Exam") -> list[Fact]:
        return [fact for fact in exam.facts if self.name == fact.CHECK]

    async def look(self, exam: "Exam") -> AsyncIterator[Suspicion]:
        facts = self._facts(exam)
        for seen in exam.explored.observations:
            if not seen.outcome.ok or not seen.changed:
                continue
            for fact in facts:
                if fact.touched(seen.changes) and fact.broken(seen.before, seen.after, seen.changes):
                    message = f"{seen.tool} breaks what holds in every initial state: {fact.text()}"
                    about = {"fact": fact.model_dump(mode="json")}
                    sure = fact.FIRM or len(exam.data.views) >= MANY_STATES
                    severity: Severity = fact.SEVERITY if sure else "note"
                    yield Suspicion(seen.tool, fact.text(), message, seen.case(about), severity=severity)
            if self.name == "state_schema" and exam.spec.state_schema:
                for where, _ in self._schema_faults(exam, seen):
                    place = _KEY.sub("", where)
                    message = f"{seen.tool} leaves a state that the state schema forbids, at {place}"
                    yield Suspicion(seen.tool, place, message, seen.case({"schema": place}))

    async def judge(self, exam: "Exam", case: Case) -> Evidence | None:
        shots = await exam.lab.run(case)
        if not shots or not shots[-1].outcome.ok:
            return None
        shot = shots[-1]
        if "fact" not in case.about:
            faults = self._schema_faults(exam, shot)
            fault = next((one for one in faults if _KEY.sub("", one[0]) == case.about["schema"]), None)
            return Evidence(seen=f"{fault[0]}: {fault[1]}", expected="a state that fits its schema") if fault else None
        fact = FACT.validate_python(case.about["fact"])
        broken = fact.broken(shot.before, shot.after, shot.changes) if fact.touched(shot.changes) else None
        return Evidence(seen=f"{broken.where}: {broken.seen}", expected=broken.expected) if broken else None

    def _schema_faults(self, exam: "Exam", seen: Observation | Shot) -> list[tuple[str, str]]:
        """Faults of the changed parts, row by row where they are tables: where, what."""
        faults: list[tuple[str, str]] = []
        for where, old, value, schema in _changed_values(exam, seen):
            form = f"{_KEY.sub('', where)} {outline(value)}"
            if form in exam.fitting and not _constrained(schema):
                continue  # values of one form are right or wrong together, but for what is inside texts and numbers
            error = best_match(exam.validator(schema).iter_errors(value))
            if error is None:
                exam.fitting.add(form)
            elif old is None or exam.validator(schema).is_valid(old):
                path = ".".join(str(part) for part in error.absolute_path)
                faults.append((f"{where}{'.' + path if path else ''}", error.message[:200]))
        return faults


_CONSTRAINTS = ('"pattern"', '"minimum"', '"maximum"', "Length", "Items", "xclusive", '"multipleOf"')


def _constrained(schema: JsonObject) -> bool:
    """True if a schema says more about texts and numbers than their types."""
    text = json.dumps(schema)
    return any(word in text for word in _CONSTRAINTS)


def _changed_values(exam: "Exam", seen: Observation | Shot) -> list[tuple[str, Any, Any, JsonObject]]:
    """Where something changed, what it was, what it is, and its schema."""
    root = exam.spec.state_schema
    properties: JsonObject = root.get("properties") or {}
    found: list[tuple[str, Any, Any, JsonObject]] = []
    for name, value in seen.after.state.items():
        old = seen.before.state.get(name)
        if old is value or old == value or name not in properties:
            continue
        entry = unwrap(properties[name], root).get("additionalProperties")
        if isinstance(value, dict) and isinstance(entry, dict) and isinstance(old, dict):
            rows = {key: row for key, row in value.items() if old.get(key) != row}
            found += [(row_name(name, (key,)), old.get(key), row, entry) for key, row in rows.items()]
        else:
            found.append((name, old, value, properties[name]))
    return found


def validator_of(schema: JsonObject, root: JsonObject) -> Draft202012Validator:
    """A validator of a part of a schema, which may refer to the whole."""
    definitions = {key: root[key] for key in ("$defs", "definitions") if key in root}
    return Draft202012Validator({**schema, **definitions})


FACT_CHECKS = (
    FactCheck("references", "error"),
    FactCheck("identifiers", "warning"),
    FactCheck("uniqueness", "warning"),
    FactCheck("bounds", "warning"),
    FactCheck("totals", "error"),
    FactCheck("copies", "warning"),
    FactCheck("indexes", "error"),
    FactCheck("state_schema", "error"),
)
