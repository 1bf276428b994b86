"""What a request asks for: fields of an executed result, and the values that an answer must state."""

from trajsmith.records.canonical import JsonValue
from trajsmith.records.grounded import Selector
from trajsmith.records.record import FrozenModel


class AnswerFact(FrozenModel):
    """One value that an answer must state."""

    value: JsonValue = None
    """As executed; an empty list where the answer is that there is nothing."""
    call: int | None = None
    """Gold call, counted over the whole task, whose result holds the value."""
    place: tuple[str, ...] = ()
    """Where in that result: keys and positions of lists."""
    label: str = ""
    """The field in words: "window open"."""
    words: dict[str, tuple[str, ...]] = {}
    """Values of the field ("true", "in_transit") to how people say them."""
    question: str = ""
    """The sentence that asks for it, where the answer may be a yes or no, or must have the time of day."""


class RequestedInfo(FrozenModel):
    """Request of one sentence: fields of a result, and their values."""

    call: int
    """Gold call, counted over the whole task, whose result answers it."""
    question: str
    """The sentence that asks; of a request that a model wrote, its meaning in plain words."""
    fields: tuple[str, ...] = ()
    """Paths in the result, or fields of the row."""
    row: Selector | None = None
    """The row of a list in the result that the question is about."""
    known: str = ""
    """Key of the user fact that tells the row."""
    answer: tuple[str, ...] = ()
    """Templates of answers to a narrow question (`phrasing.Question.answer`); empty for the request as a whole."""
    facts: tuple[AnswerFact, ...] = ()
    """The values of the fields."""

    @property
    def narrow(self) -> bool:
        """True for a question about part of a result."""
        return bool(self.answer)
