"""Drafts of one request: the first is taken whose words lead a reader to the entities of the gold calls."""

from collections.abc import Collection, Sequence

from trajsmith.records import GoldCall, RecordDropped, RequestedInfo
from trajsmith.verify import ReferenceCheck, ReferenceFault, build_gold_turn

DRAFTS = 6
"""Wordings of one request that are tried before a task is dropped."""


class ReadDrafts:
    """Reads the drafts of one turn by the check that the finished dialogue has to pass."""

    def __init__(self, check: ReferenceCheck, calls: Sequence[GoldCall], start: int, stop: int) -> None:
        self.check = check
        self.calls = calls
        self.start, self.stop = start, stop
        check.open_turn(build_gold_turn("", calls[start:stop], start, calls, ()).calls)
        self.focus = check.model.save_focus()
        self.faults: list[ReferenceFault] = []

    def accept(self, text: str, open_keys: Collection[str], replies: str, asked: Sequence[RequestedInfo]) -> bool:
        """Return whether the words of a draft are right; then they are what the dialogue goes on from.

        Args:
            text: The request.
            open_keys: Keys of what the user tells only when the agent asks.
            replies: What they say then.
            asked: What the request asks for.
        """
        turn = build_gold_turn(text, self.calls[self.start : self.stop], self.start, self.calls, open_keys, asked)
        turn.replies = replies
        self.check.model.restore_focus(self.focus)
        self.faults = self.check.read_words(turn)
        if self.faults:
            self.check.model.restore_focus(self.focus)
            return False
        self.check.close_turn(turn)
        return True

    def build_drop(self) -> RecordDropped:
        """Return the reason why the task is dropped, from the last draft."""
        fault = self.faults[0]
        return RecordDropped(f"ambiguous_reference:{fault.kind}", f"{fault.words}: {fault.describe()}"[:160])
