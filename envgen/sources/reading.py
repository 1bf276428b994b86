"""What every reader of sources gives back."""

from collections import Counter

from envgen.generate.blueprint import LeftOut
from envgen.sources import Source
from trajectory import Frozen


class Reading(Frozen):
    """Sources, and everything that did not become part of one."""

    sources: tuple[Source, ...]
    left_out: tuple[LeftOut, ...] = ()
    read: int
    """How many requests, documents or names were there."""

    @property
    def reasons(self) -> dict[str, int]:
        """How often each reason was given, the commonest first; what stands behind a colon is not told apart."""
        counts = Counter(one.reason.partition(":")[0] for one in self.left_out)
        return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))
