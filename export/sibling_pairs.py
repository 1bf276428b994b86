"""Examples of rejections: the accepted play of a task beside a rejected one, one pair for each kind of mistake."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice

from trajsmith.export.gallery import serialize_entry
from trajsmith.records import (
    Message,
    Task,
    TaskHeader,
    ToolCall,
    Trajectory,
    TurnSpan,
    Verdict,
    canonical_json,
    content_hash,
    truncate_text,
)

MOST_KINDS = 12
MOST_STEPS = 8
"""Messages of one play that an example shows after the request."""
TEXT_LIMIT = 700
VALUE_LIMIT = 160
RESULT_LIMIT = 220

Judged = tuple[Task | TaskHeader, Trajectory, Verdict]


@dataclass(frozen=True)
class ShownCall:
    """One call of an example; each argument with whether the other play lacks it."""

    name: str
    arguments: tuple[tuple[str, str, bool], ...]


@dataclass(frozen=True)
class ShownMessage:
    """One message of an example."""

    role: str
    text: str
    calls: tuple[ShownCall, ...] = ()
    differs: bool = False
    """The other play has no such calls in this turn."""
    wrong: bool = False


@dataclass(frozen=True)
class ShownPlay:
    """One side of an example: the turn in which the plays part."""

    trajectory_id: str
    messages: tuple[ShownMessage, ...]
    same_before: int
    """Messages of the turn before these that both plays have."""
    left_out: int
    """Messages of the turn after these."""


@dataclass(frozen=True)
class SiblingPair:
    """The accepted and the rejected play of one task."""

    kind: str
    injected: bool
    environment: str
    task_id: str
    turn: int
    accepted: ShownPlay
    rejected: ShownPlay
    verdict: Verdict
    """Verdict on the rejected play."""


@dataclass
class _Candidate:
    score: tuple[int, str]
    accepted: Judged
    rejected: Judged
    place: int


@dataclass
class SiblingPairs:
    """Finds for each kind of mistake the pair that is read fastest; keeps one pair for each kind.

    The plays of one task must come one after the other, as in a run directory.
    """

    rejected: Counter[str] = field(default_factory=Counter)
    """Kind of mistake to the rejected plays that have an accepted sibling."""
    _best: dict[str, _Candidate] = field(default_factory=dict)
    _injected: set[str] = field(default_factory=set)
    _group: list[Judged] = field(default_factory=list)

    def add(self, task: Task | TaskHeader, trajectory: Trajectory, verdict: Verdict) -> None:
        """Take the next judged play."""
        if self._group and self._group[0][0].id != task.id:
            self.close()
        self._group.append((task, trajectory, verdict))

    def merge(self, other: "SiblingPairs") -> None:
        """Take what was found among the plays of other tasks."""
        other.close()
        self.rejected.update(other.rejected)
        self._injected |= other._injected
        for kind, candidate in other._best.items():
            if kind not in self._best or candidate.score < self._best[kind].score:
                self._best[kind] = candidate

    def list_pairs(self) -> list[SiblingPair]:
        """Return the pairs, those of injected mistakes first, then by number of rejections."""
        self.close()
        kinds = sorted(self._best, key=lambda kind: (kind not in self._injected, -self.rejected[kind], kind))
        return [_build_pair(kind, self._best[kind], kind in self._injected) for kind in kinds[:MOST_KINDS]]

    def serialize_plays(self) -> dict[str, bytes]:
        """Return the entries of all shown plays for the gallery, by id."""
        self.close()
        items = [item for candidate in self._best.values() for item in (candidate.accepted, candidate.rejected)]
        return {item[1].id: serialize_entry(*item) for item in items}

    def close(self) -> None:
        """Compare the plays of the last task."""
        group, self._group = self._group, []
        accepted = next((item for item in group if item[2].accepted), None)
        if accepted is None:
            return
        for item in group:
            trajectory, verdict = item[1:]
            if verdict.accepted or verdict.outcome == "completed":
                continue
            kind = trajectory.injected[0].kind if trajectory.injected else next(iter(verdict.reasons), verdict.outcome)
            place = trajectory.injected[0].message if trajectory.injected else _find_difference(accepted[1], trajectory)
            self.rejected[kind] += 1
            self._injected.update({kind} if trajectory.injected else ())
            score = (_measure_turn(trajectory, place), content_hash(trajectory.id, 15))
            if kind not in self._best or score < self._best[kind].score:
                self._best[kind] = _Candidate(score, accepted, item, place)


def _find_difference(one: Trajectory, other: Trajectory) -> int:
    """Return the index of the first message that differs."""
    return min(_count_same(one.messages, other.messages), len(one.messages) - 1, len(other.messages) - 1)


def identify_message(message: Message) -> bytes:
    """Return what plays are compared by: the calls of a message, or its text; words beside calls differ at random."""
    calls = [[call.function.name, call.function.arguments] for call in message.tool_calls or ()]
    return canonical_json([message.role, calls or message.content])


def _find_turn(trajectory: Trajectory, place: int) -> int:
    spans = enumerate(trajectory.turns)
    return next((index for index, span in spans if span.start <= place < span.stop), len(trajectory.turns) - 1)


def _measure_turn(trajectory: Trajectory, place: int) -> int:
    """Return about how much there is to read in a turn: characters, tool results for a tenth."""
    messages = _list_messages(trajectory, _find_turn(trajectory, place))
    return sum(len(message.content) // (10 if message.role == "tool" else 1) for message in messages)


def _list_messages(trajectory: Trajectory, turn: int) -> tuple[Message, ...]:
    span = trajectory.turns[turn] if 0 <= turn < len(trajectory.turns) else TurnSpan(start=0, stop=0, state_hash="")
    return trajectory.messages[span.start : span.stop]


def _build_pair(kind: str, candidate: _Candidate, injected: bool) -> SiblingPair:
    (_, accepted, _), (task, rejected, verdict) = candidate.accepted, candidate.rejected
    turn = _find_turn(rejected, candidate.place)
    right, wrong = _list_messages(accepted, turn), _list_messages(rejected, turn)
    marked = candidate.place - rejected.turns[turn].start if rejected.turns else -1
    same = _count_same(right, wrong)
    return SiblingPair(
        kind=kind, injected=injected, environment=rejected.environment, task_id=task.id, turn=turn,
        accepted=_show_play(accepted.id, right, wrong, same, -1),
        rejected=_show_play(rejected.id, wrong, right, min(same, max(marked, 0)), marked),
        verdict=verdict,
    )  # fmt: skip


def _count_same(one: Sequence[Message], other: Sequence[Message]) -> int:
    """Return the number of messages at the beginning that both have."""
    for place, (left, right) in enumerate(zip(one, other, strict=False)):
        if left != right and identify_message(left) != identify_message(right):
            return place
    return min(len(one), len(other))


def _show_play(name: str, messages: Sequence[Message], others: Sequence[Message], same: int, marked: int) -> ShownPlay:
    """Return the request, and the messages from the first difference on."""
    first = max(1, same)
    before = {identify_message(message) for message in others}
    arguments = {
        (call.function.name, key, canonical_json(value))
        for message in others
        for call in message.tool_calls or ()
        for key, value in call.function.arguments.items()
    }
    shown = [*enumerate(messages[:1]), *islice(enumerate(messages), first, first + MOST_STEPS)]
    return ShownPlay(
        trajectory_id=name,
        messages=tuple(
            _show_message(message, identify_message(message) not in before, place == marked, arguments)
            for place, message in shown
        ),
        same_before=max(0, first - 1),
        left_out=max(0, len(messages) - first - MOST_STEPS),
    )


def _show_message(message: Message, differs: bool, wrong: bool, arguments: set[tuple[str, str, bytes]]) -> ShownMessage:
    limit = RESULT_LIMIT if message.role == "tool" else TEXT_LIMIT
    calls = tuple(_show_call(call, arguments) for call in message.tool_calls or ())
    differs = differs and bool(message.tool_calls)
    return ShownMessage(message.role, truncate_text(message.content, limit), calls, differs, wrong)


def _show_call(call: ToolCall, arguments: set[tuple[str, str, bytes]]) -> ShownCall:
    name = call.function.name
    return ShownCall(
        name,
        tuple(
            (key, _show_value(value), (name, key, canonical_json(value)) not in arguments)
            for key, value in call.function.arguments.items()
        ),
    )


def _show_value(value: object) -> str:
    text = value if isinstance(value, str) else canonical_json(value).decode()
    return truncate_text(text, VALUE_LIMIT)
