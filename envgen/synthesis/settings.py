"""Settings of the synthesis loop: roles, rounds, acceptance thresholds."""

from typing import Literal, get_args

from pydantic import Field, PositiveFloat, PositiveInt

from trajsmith.models import ModelSettings, RoleSettings
from trajsmith.models.settings import RoleEntry
from trajsmith.records import FrozenModel, InputError

StageRole = Literal["designer", "programmer", "tester", "checker"]
ROLES: tuple[StageRole, ...] = get_args(StageRole)
STAGES: dict[str, StageRole] = {
    "propose": "designer",
    "require": "designer",
    "state": "programmer",
    "plan": "designer",
    "tools": "programmer",
    "texts": "designer",
    "seeds": "programmer",
    "phrase": "designer",
    "test": "tester",
    "repair": "programmer",
    "try": "tester",
    "check": "checker",
    "enlarge": "designer",
    "extend": "programmer",
    "search": "designer",
    "read": "designer",
    "expand": "designer",
    "screen": "checker",
}
"""What models are asked for and by which role; the names are those of the prompts."""
SOURCE_STAGES = ("search", "read", "expand", "screen")
"""Stages in which themes and what is known of them are found, before anything is made."""
GROWTH_STAGES = ("enlarge", "extend", "test", "repair", "try", "check", "phrase")
"""Stages of an environment that grows, in order."""
GENERATION_STAGES = tuple(stage for stage in STAGES if stage not in ("enlarge", "extend", *SOURCE_STAGES))
"""Stages of an environment that is made from a source."""


class StageRoles(FrozenModel):
    """Model of each role: its name, or {model: name, temperature: ...}. No role is scripted."""

    designer: RoleEntry
    """Proposes, says what must be served and by which rules, plans tools, thinks of names and texts."""
    programmer: RoleEntry
    """Writes and mends code."""
    tester: RoleEntry
    """Writes tests and tries tools; sees no code."""
    checker: RoleEntry
    """Judges calls; sees code, result and what changed."""

    def of(self, role: StageRole) -> RoleSettings:
        roles: dict[StageRole, RoleSettings] = {
            "designer": self.designer,
            "programmer": self.programmer,
            "tester": self.tester,
            "checker": self.checker,
        }
        return roles[role]

    def check(self, models: dict[str, ModelSettings]) -> None:
        """Check that every role is played by a model that exists.

        Raises:
            InputError: One is not.
        """
        for role in ROLES:
            name = self.of(role).model
            if name not in models:
                raise InputError(f"roles.{role}: no model is named {name!r}; choose one of: {', '.join(models)}")


class SynthesisSettings(FrozenModel):
    """Settings of environment synthesis and its acceptance thresholds."""

    themes: Literal["model", "words"] = "model"
    """Who finds the themes of a set of requests: the designer, or plain words, which cost nothing and see less."""
    rounds: PositiveInt = 5
    """Times at most that a draft is mended."""
    check_score: float = Field(0.9, ge=0, le=1)
    """Score of the environment checker from which an environment is accepted."""
    check_seconds: PositiveFloat = 120.0
    """Time of one examination."""
    check_starts: PositiveInt = 6
    """Initial states that it plays from; it reads those of twice as many seeds."""
    trials: PositiveInt = 12
    """Calls that the tester makes up in a round."""
    trial_rounds: PositiveInt = 3
    """Rounds of tester and checker (EnvScaler 3.3 has 100 of one call each)."""
    semantic: float = Field(0.85, ge=0, le=1)
    """Share of calls that the checker must approve (EnvScaler 3.4)."""
    drop_tool_below: float = Field(0.5, ge=0, le=1)
    """Tools of which the checker approves less of the calls are taken out (Agent-World 3.1)."""
    most_tools: PositiveInt = 20
    complaints: PositiveInt = 12
    """Complaints that a repair is shown at most, the gravest first."""
    themes_at_once: PositiveInt = 4
    """Themes in work at a time."""
