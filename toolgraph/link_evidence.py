"""Evidence about links beyond their schemas, as rows of the graph."""

from typing import Literal

import msgspec

LinkKey = tuple[str, str, str, str]
"""Source, target (full names), output path, parameter path."""


class LinkEvidence(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, gc=False):
    """Counts of one link, from one kind of evidence."""

    source: str
    target: str
    output: str
    input: str
    by: Literal["execution", "recorded"]
    worked: int = 0
    """Execution: (state, value) pairs with which the target did something. Recorded: tasks that pass a value on."""
    failed: int = 0
    """Execution: pairs with which it did nothing, though the same call works with another value."""
    elsewhere_worked: int = 0
    """Execution: values of the same type from elsewhere with which the target did something all the same."""
    elsewhere_failed: int = 0
    """Execution: values of the same type from elsewhere with which it did nothing."""
    chance: int = 0
    """Execution: values that worked too, but are numbers that another thing may have by chance; they say nothing."""
    states: int = 0
    """Execution: initial states in which a value worked."""
    known: int = 0
    """Recorded: times that the user had said the value too."""
    again: int = 0
    """Recorded: times that an earlier result had shown the value already, or the call was asked with it."""

    @property
    def summary(self) -> str:
        """Return the counts in words."""
        if self.by == "recorded":
            known = f"; {self.known} times the user had said it too" if self.known else ""
            again = f"; {self.again} times its result showed what was known already" if self.again else ""
            return f"recorded: {self.worked} tasks pass the value on{known}{again}"
        elsewhere = self.elsewhere_worked + self.elsewhere_failed
        chance = f"; {self.chance} numbers worked that fit by chance" if self.chance else ""
        return (
            f"execution: {self.worked} values worked and {self.failed} failed; "
            f"of {elsewhere} from elsewhere {self.elsewhere_failed} failed{chance}"
        )

    @property
    def key(self) -> LinkKey:
        return self.source, self.target, self.output, self.input
