"""Which initial states a tool file accepts."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

import orjson

from trajsmith.environments.schema_patterns import matches_pattern
from trajsmith.records import EnvironmentFault, JsonObject

_FORMS = (
    "%Y-%m-%dT%H:%M:%S",
    "%Y-%m-%d %H:%M:%S",
    "%Y-%m-%dT%H:%M:%SZ",
    "%Y-%m-%dT%H:%M:%S+00:00",
    "%Y-%m-%d",
    "%H:%M",
)
"""How the published models write a time."""
_CLOCKS = ("time", "date", "now")


@dataclass(frozen=True)
class ScenarioLoader:
    """Tries states on a tool file.

    A scenario may be older than its model and lack a field, mostly the clock. It is then completed with what the file
    itself starts with, and its clock is set; that is noted. Where no scenario loads, the file's own start is the only
    state.

    Attributes:
        attempt: Starts a play at a state, or raises the fault that says why not. It may keep and change what it gets.
        start: The state that the file starts with, before any scenario.
        schema: JSON Schema of the state.
        moment: What time it is where nothing else says so.
    """

    attempt: Callable[[JsonObject], object]
    start: JsonObject
    schema: JsonObject
    moment: datetime

    def load_acceptable(self, scenarios: list[JsonObject]) -> tuple[list[JsonObject], list[str]]:
        """Return the states that load, and notes about the others; `scenarios` have a name and a state as JSON."""
        states: list[JsonObject] = []
        notes: list[str] = []
        for scenario in scenarios:
            state, note = self._first_that_loads(orjson.loads(scenario["state"]))
            notes += [
                f"scenario {scenario['name']} {message}"
                for message in (note, self._describe_unknown_fields(state))
                if message
            ]
            states += [] if state is None else [state]
        if not states:
            state, note = self._first_that_loads({})
            notes += [f"without a scenario it {note}"] if note else []
            states = [] if state is None else [state]
        return states, notes

    def _first_that_loads(self, state: object) -> tuple[JsonObject | None, str]:
        if not isinstance(state, dict):
            return None, "does not load: it is no object"
        fault = self._fault(state)
        if fault is None:
            return state, ""
        completed = self._with_clock({**self._find_missing_fields(state), **state})
        if completed != state and self._fault(completed) is None:
            added = {key: value for key, value in completed.items() if key not in state or state[key] != value}
            return completed, f"does not load ({fault}); it does with {orjson.dumps(added).decode()[:200]}"
        return None, f"does not load: {fault}"

    def _describe_unknown_fields(self, state: JsonObject | None) -> str:
        """Describe fields of a state that its model does not know: mostly the scenario is older than its model."""
        known = self.schema.get("properties")
        unknown = sorted((state or {}).keys() - known.keys()) if isinstance(known, dict) else []
        return f"has {', '.join(unknown)}, which its model does not know" if unknown else ""

    def _find_missing_fields(self, state: JsonObject) -> JsonObject:
        """Fields that the model needs, as the file itself starts with them; others have defaults of their own."""
        needed = self.schema.get("required") or () if self.schema else self.start
        return {name: self.start[name] for name in needed if name not in state and name in self.start}

    def _with_clock(self, state: JsonObject) -> JsonObject:
        """The state with its time fields in a form that the schema accepts."""
        updated = dict(state)
        for name, rule in (self.schema.get("properties") or {}).items():
            pattern = rule.get("pattern") if isinstance(rule, dict) else None
            value = state.get(name)
            if not isinstance(pattern, str) or name not in state or not any(word in name.lower() for word in _CLOCKS):
                continue
            if not (isinstance(value, str) and matches_pattern(pattern, value)):
                texts = (_parse_datetime(value, self.moment).strftime(form) for form in _FORMS)
                updated[name] = next((text for text in texts if matches_pattern(pattern, text)), value)
        return updated

    def _fault(self, state: JsonObject) -> str | None:
        try:
            self.attempt(orjson.loads(orjson.dumps(state)))
        except EnvironmentFault as fault:
            return fault.message
        return None


def _parse_datetime(value: object, otherwise: datetime) -> datetime:
    try:
        return datetime.fromisoformat(value) if isinstance(value, str) else otherwise
    except ValueError:
        return otherwise
