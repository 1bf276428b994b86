"""Result that every reader of sources returns."""

from collections import Counter

from trajsmith.envgen.generate.blueprint import SkippedItem
from trajsmith.envgen.sources import ThemeSource
from trajsmith.records import FrozenModel


class SourceReadResult(FrozenModel):
    """Sources, and everything that was skipped."""

    sources: tuple[ThemeSource, ...]
    left_out: tuple[SkippedItem, ...] = ()
    read: int
    """How many requests, documents or names were there."""

    @property
    def reasons(self) -> dict[str, int]:
        """Count the skip reasons, the commonest first; text behind a colon is ignored."""
        counts = Counter(one.reason.partition(":")[0] for one in self.left_out)
        return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))
