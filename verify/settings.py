"""Settings of verification."""

from typing import Annotated, Literal, Self

from pydantic import AfterValidator, field_validator, model_validator

from trajsmith.environments.sandbox.settings import SandboxSettings
from trajsmith.records import FrozenModel, InstalledCheck, JsonObject
from trajsmith.verify.checks import CHECKS, KINDS
from trajsmith.verify.code_checks import CHECK_SANDBOX
from trajsmith.verify.rewards import RewardSettings, find_step_rewards


class ImportedSettings(FrozenModel):
    """When a dialogue recorded elsewhere is accepted whose file has no gold actions."""

    without_gold: Literal["reject", "replay", "reward"] = "reject"
    """`reject`: never. `replay`: if it replays exactly and every result equals the recorded one. `reward`: the same,
    and the recorded reward is at least `min_reward`."""
    confirmation: Literal["reject", "report"] = "report"
    """Whether a confirmation that is missing or needless rejects an imported dialogue; its agent knew other rules."""
    min_reward: float = 1.0
    """Lowest recorded reward that `reward` accepts; a dialogue without a recorded reward is rejected."""


class VerifySettings(FrozenModel):
    """Settings of verification and selection."""

    rewards: RewardSettings = RewardSettings()
    """Which rewards a verdict has, and their weights."""
    prune: bool = True
    """Take calls out of accepted trajectories that were not needed."""
    step_labels: bool = False
    """Label every call of accepted trajectories as needed, redundant, harmful or recovering, by runs without it."""
    checks: dict[Annotated[str, AfterValidator(CHECKS.check_name)], JsonObject] = {}
    """Installed checks that every trajectory must pass at its end, with their settings."""
    imported: ImportedSettings = ImportedSettings()
    """When imported dialogues without gold actions are accepted."""
    claims: bool = True
    """Reject a play in which the agent tells values that no message supports."""
    confirmation: Literal["reject", "report"] = "reject"
    """Whether a confirmation that is missing or needless rejects a trajectory, or is only listed in its verdict."""
    best: bool = True
    """Accept only the best candidate of each task."""
    sandbox: SandboxSettings = CHECK_SANDBOX
    """How check functions that somebody wrote are run."""

    @field_validator("checks")
    @classmethod
    def _are_no_kinds(cls, checks: dict[str, JsonObject]) -> dict[str, JsonObject]:
        for name in checks:
            if name in KINDS:
                raise ValueError(f"{name} is a kind of check that tasks hold: name an installed one")
        return checks

    @model_validator(mode="after")
    def _rewards_have_labels(self) -> Self:
        if self.step_labels or "rewards" not in self.model_fields_set:  # the usual rewards need none
            return self
        if named := find_step_rewards(self.rewards.names):
            raise ValueError(f"rewards.names: {named[0]} needs step_labels: true")
        return self

    @property
    def installed(self) -> tuple[InstalledCheck, ...]:
        """Return the installed checks as records."""
        return tuple(InstalledCheck(says=name, name=name, settings=more) for name, more in self.checks.items())
