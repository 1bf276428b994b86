"""Assignment of tasks to splits: by environment and by grounded chain, never by row."""

from collections.abc import Collection
from typing import Literal

from pydantic import Field, model_validator

from trajsmith.records import FrozenModel, InputError, Task, TaskHeader, derive_seed

Split = Literal["train", "validation", "test"]
SPLITS: tuple[Split, ...] = ("train", "validation", "test")


class SplitSettings(FrozenModel):
    """Division of rows into splits. All variants and candidates of one grounded chain share a split."""

    held_out: tuple[str, ...] = ()
    """Environments whose tasks all go to `test`: what a model can do in a world that it never saw."""
    validation: float = Field(0.0, ge=0, lt=1)
    """Share of the other tasks for validation."""
    test: float = Field(0.0, ge=0, lt=1)
    """Share of the other tasks for test."""

    @model_validator(mode="after")
    def _leave_something(self) -> "SplitSettings":
        if self.validation + self.test >= 1:
            raise ValueError("validation and test together must leave something to train on")
        return self

    def check(self, environments: Collection[str]) -> None:
        """Refuse a held-out environment that is not there: its rows would be trained on.

        Raises:
            InputError: A name is unknown, or nothing is left to train on.
        """
        unknown = sorted(set(self.held_out) - set(environments))
        if unknown:
            there = ", ".join(sorted(environments))
            raise InputError(f"export.split.held_out: no environment {', '.join(unknown)}; there are {there}")
        if environments and set(self.held_out) >= set(environments):
            raise InputError("export.split.held_out: every environment is held out, nothing is left to train on")

    def of(self, task: Task | TaskHeader) -> Split:
        """The split of a task; it depends on its environments and its grounded chain only, in every run and process."""
        return self.choose(task.environments, task.grounded_id or task.id)

    def choose(self, environments: Collection[str], name: str) -> Split:
        """Return the split of a task from its environments and the name of its grounded chain."""
        if set(environments) & set(self.held_out):
            return "test"
        place = derive_seed("split", name) / 2**63
        if place < self.test:
            return "test"
        return "validation" if place < self.test + self.validation else "train"
