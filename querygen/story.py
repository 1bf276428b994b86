"""The scenario that a task tells: its motive, and the step that each call is."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from trajsmith.grounding import list_known_values
from trajsmith.phrasing import Scenario, ScenarioBook, ScenarioStep, render_phrase
from trajsmith.records import GoldCall, GroundedChain, Persona, Task, derive_seed


@dataclass(frozen=True)
class Story:
    """One telling of a scenario."""

    scenario: Scenario
    names: tuple[str, ...]
    """The step that each call is, "" for look-ups that lead to one."""
    motive: str
    """Why this user calls, in their words."""
    seed: int

    @property
    def joins(self) -> dict[str, float]:
        """Step to the probability that it is asked for together with the step before."""
        return {step.name: step.join for step in self.scenario.steps}

    @property
    def apart(self) -> frozenset[str]:
        """Steps that the scenario wants in a message of their own: "join: 0" is written out."""
        steps = self.scenario.steps
        return frozenset(step.name for step in steps if not step.join and "join" in step.model_fields_set)

    def list_steps(self, calls: Sequence[int]) -> tuple[ScenarioStep | None, ...]:
        """Return the step that each of some calls is.

        Who changes their mind says why: such a step without `reasons` is told in its sentences, not its verb phrases.
        """
        steps = [self.scenario.find_step(self.names[call]) for call in calls]
        return tuple(step and self._explain(step) for step in steps)

    def _explain(self, step: ScenarioStep) -> ScenarioStep:
        changes = self.scenario.change_of_mind and step.same_as and step.say and not step.reasons
        return step.model_copy(update={"ask": ()}) if changes else step

    def cast(self, persona: Persona) -> tuple[Persona, str]:
        """The persona in a role that fits, and the situation in the third person."""
        roles = self.scenario.roles
        role = random.Random(derive_seed(self.seed, "role")).choice(roles) if roles else persona.role
        return persona.model_copy(update={"role": role}), self.describe(persona.name)

    def describe(self, name: str) -> str:
        """Return the situation in the third person, with the motive as the user puts it."""
        summary = render_phrase(self.scenario.summary, {"name": name}) if self.scenario.summary else None
        return summary or f'{name} says: "{self.motive}"'


def find_story(grounded: GroundedChain, scenarios: ScenarioBook) -> Story | None:
    """The story of a grounded chain, with a motive that is drawn; None outside of scenarios."""
    scenario = scenarios.find(grounded.scenario) if grounded.scenario else None
    if scenario is None:
        return None
    motives = list_motives(scenario, grounded.steps, grounded.calls)
    motive = random.Random(derive_seed(grounded.seed, "motive")).choice(motives)
    return Story(scenario, grounded.steps, motive, grounded.seed)


def list_motives(scenario: Scenario, names: Sequence[str], calls: Sequence[GoldCall]) -> list[str]:
    """Return the motives of a scenario that fit some calls.

    Args:
        scenario: The scenario.
        names: The step that each call is, "" for look-ups that lead to one.
        calls: The calls, with their results.
    """

    def list_values(reference: str) -> list[Any]:
        step, _, field = reference.partition(".")
        step_calls = [call for name, call in zip(names, calls, strict=True) if name == step]
        return [value for call in step_calls for value in list_known_values(call, field, calls)]

    return scenario.list_motives(names, list_values)


def read_story(task: Task, scenarios: ScenarioBook) -> Story | None:
    """The story that a written task tells; None outside of scenarios."""
    scenario = scenarios.find(task.scenario_id) if task.scenario_id else None
    names = tuple(name for turn in task.turns for name in turn.steps)
    if scenario is None or len(names) != len(task.gold_calls):
        return None
    return Story(scenario, names, task.motive, task.seed)
