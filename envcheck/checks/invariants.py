"""Invariants of all initial states hold after every call."""

import json
import re
from collections.abc import AsyncIterator
from typing import Any

from jsonschema.exceptions import best_match

from trajsmith.envcheck.case_runner import StepResult
from trajsmith.envcheck.check_session import CheckSession
from trajsmith.envcheck.checks.base import Check, Suspicion
from trajsmith.envcheck.checks.call_contract import MANY_STATES
from trajsmith.envcheck.exploration import Observation
from trajsmith.envcheck.facts import FACT, Fact
from trajsmith.envcheck.facts.base import format_row_name
from trajsmith.envcheck.findings import CaseEvidence, CheckCase, Severity
from trajsmith.envcheck.state_view import outline_value
from trajsmith.grounding import unwrap
from trajsmith.records import JsonObject

_KEY = re.compile(r"\[[^\[\]]*\]")
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

    def skip_reason(self, check_session: CheckSession) -> str:
        if not self._facts(check_session) and not (self.name == "state_schema" and check_session.spec.state_schema):
            return "the initial states have nothing of the kind"
        return ""

    def _facts(self, check_session: CheckSession) -> list[Fact]:
        return [fact for fact in check_session.facts if self.name == fact.CHECK]

    async def look(self, check_session: CheckSession) -> AsyncIterator[Suspicion]:
        facts = self._facts(check_session)
        for seen in check_session.explored.observations:
            if not seen.outcome.ok or not seen.changed:
                continue
            for fact in facts:
                if fact.touched(seen.changes) and fact.broken(seen.before, seen.after, seen.changes):
                    message = f"{seen.tool} breaks what holds in every initial state: {fact.text()}"
                    about = {"fact": fact.model_dump(mode="json")}
                    sure = fact.FIRM or len(check_session.data.views) >= MANY_STATES
                    severity: Severity = fact.SEVERITY if sure else "note"
                    yield Suspicion(seen.tool, fact.text(), message, seen.case(about), severity=severity)
            if self.name == "state_schema" and check_session.spec.state_schema:
                for where, _ in self._schema_faults(check_session, seen):
                    place = _KEY.sub("", where)
                    message = f"{seen.tool} leaves a state that the state schema forbids, at {place}"
                    yield Suspicion(seen.tool, place, message, seen.case({"schema": place}))

    async def judge(self, check_session: CheckSession, case: CheckCase) -> CaseEvidence | None:
        step_results = await check_session.runner.run(case)
        if not step_results or not step_results[-1].outcome.ok:
            return None
        step_result = step_results[-1]
        if "fact" not in case.about:
            faults = self._schema_faults(check_session, step_result)
            fault = next((one for one in faults if _KEY.sub("", one[0]) == case.about["schema"]), None)
            return (
                CaseEvidence(seen=f"{fault[0]}: {fault[1]}", expected="a state that fits its schema") if fault else None
            )
        fact = FACT.validate_python(case.about["fact"])
        broken = (
            fact.broken(step_result.before, step_result.after, step_result.changes)
            if fact.touched(step_result.changes)
            else None
        )
        return CaseEvidence(seen=f"{broken.where}: {broken.seen}", expected=broken.expected) if broken else None

    def _schema_faults(self, check_session: CheckSession, seen: Observation | StepResult) -> list[tuple[str, str]]:
        """Faults of the changed parts, row by row where they are tables: where, what."""
        faults: list[tuple[str, str]] = []
        for where, old, value, schema in _changed_values(check_session, seen):
            form = f"{_KEY.sub('', where)} {outline_value(value)}"
            if form in check_session.fitting and not _constrained(schema):
                continue  # values of one form are right or wrong together, but for what is inside texts and numbers
            error = best_match(check_session.validator(schema).iter_errors(value))
            if error is None:
                check_session.fitting.add(form)
            elif old is None or check_session.validator(schema).is_valid(old):
                path = ".".join(str(part) for part in error.absolute_path)
                faults.append((f"{where}{'.' + path if path else ''}", error.message[:200]))
        return faults


_CONSTRAINTS = ('"pattern"', '"minimum"', '"maximum"', "Length", "Items", "xclusive", '"multipleOf"')


def _constrained(schema: JsonObject) -> bool:
    """Return True if a schema restricts texts and numbers beyond their types."""
    text = json.dumps(schema)
    return any(word in text for word in _CONSTRAINTS)


def _changed_values(
    check_session: CheckSession, seen: Observation | StepResult
) -> list[tuple[str, Any, Any, JsonObject]]:
    """Return path, old value, new value and schema of every changed part."""
    root = check_session.spec.state_schema
    properties: JsonObject = root.get("properties") or {}
    changed: list[tuple[str, Any, Any, JsonObject]] = []
    for name, value in seen.after.state.items():
        old = seen.before.state.get(name)
        if old is value or old == value or name not in properties:
            continue
        entry = unwrap(properties[name], root).get("additionalProperties")
        if isinstance(value, dict) and isinstance(entry, dict) and isinstance(old, dict):
            rows = {key: row for key, row in value.items() if old.get(key) != row}
            changed += [(format_row_name(name, (key,)), old.get(key), row, entry) for key, row in rows.items()]
        else:
            changed.append((name, old, value, properties[name]))
    return changed


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
