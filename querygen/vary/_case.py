"""What a variant is made from, and how a changed task is put together: its gold calls are made again."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from chatmodel import SCRIPTED, Wording
from environments import Session
from grounding import needed
from grounding.rewind import Rewindable, rewindable
from querygen.gates import leaks, names_a_tool
from querygen.partition import goals_of
from querygen.proving import Proof, run_gold
from querygen.vary._words import Piece, Words
from querygen.write import MOST_FACTS, TaskWriter, WriteSettings
from trajectory import (
    Dropped,
    EnvironmentSpec,
    FromOutput,
    FromUser,
    GoldCall,
    JsonObject,
    JsonValue,
    StateCheck,
    Task,
    Turn,
    Twist,
    content_hash,
    derive_seed,
)
from verify.auditing import AuditSettings
from verify.checks import run_check
from verify.form import masked_form


@dataclass(frozen=True)
class Varied:
    """A variant, and the state that it starts from where that is a new one."""

    task: Task
    state: JsonObject | None = None


@dataclass
class Case:
    """A written task and what it takes to vary it."""

    base: Task
    state: JsonObject
    """Initial state; shared, so it must not be changed."""
    session: Session
    spec: EnvironmentSpec
    wording: Wording
    variant: str
    entities: int = 2000
    audit: AuditSettings = field(default_factory=AuditSettings)
    """How its checks are tested."""
    rng: random.Random = field(init=False)

    def __post_init__(self) -> None:
        self.rng = random.Random(derive_seed(self.base.seed, "variant", self.variant))
        self.calls = self.base.gold_calls
        self.known = {entry.key: entry for turn in reversed(self.base.turns) for entry in turn.known}
        self.tools = {tool.name: tool for tool in self.spec.tools}
        self.writer = TaskWriter(self.spec, self.wording, WriteSettings())
        self.spans: list[tuple[int, int]] = []
        for turn in self.base.turns:
            start = self.spans[-1][1] if self.spans else 0
            self.spans.append((start, start + len(turn.gold_calls)))

    def words(self, **changes: Any) -> Words:
        """The queries of the task in new words; `changes` as `Words` has them."""
        return Words(
            self.base, self.state, self.wording, changes.pop("calls", self.calls), self.known, self.rng, **changes
        )

    def goals(self, turn: int) -> list[int]:
        return goals_of(self.calls, *self.spans[turn])

    def single_writes(self) -> list[int]:
        """Turns that ask for one thing only, a write by the agent with which the turn ends; in random order."""
        found = []
        for turn, (start, stop) in enumerate(self.spans):
            goals = self.goals(turn) if stop > start else []
            last = self.calls[stop - 1] if goals == [stop - 1] else None
            if last is not None and last.effect == "write" and last.actor == "assistant":
                found.append(turn)
        return self.rng.sample(found, len(found))

    def first_needed(self, key: str) -> int:
        """Turn in which an entry is needed first."""
        return next(turn for turn, (start, stop) in enumerate(self.spans) if key in self.needs(start, stop))

    def needs(self, start: int, stop: int) -> list[str]:
        return list(dict.fromkeys(key for call in self.calls[start:stop] for key in needed(call)))

    async def at(self, calls: int) -> Rewindable:
        """The session after this many gold calls, able to go back there."""
        session = rewindable(self.session)
        await session.reset(self.state)
        for call in self.calls[:calls]:
            result = await session.call(call.tool, call.arguments, call.actor)
            if not result.ok:
                raise Dropped("gold_not_repeatable", call.tool)
        return session

    def reached(self, turn: int, initial: JsonObject, state: JsonObject) -> bool:
        """True if everything holds that the base turn requires of the state."""
        checks = [check for check in self.base.turns[turn].checks if isinstance(check, StateCheck)]
        form = masked_form(initial, state, self.base.masks)
        return bool(checks) and all(run_check(check, form.initial, form.document, "").passed for check in checks)

    def unchanged(self, words: Words, turns: range) -> list[Piece]:
        """Turns of the base task with their new words."""
        return [words.piece(turn, self.calls[slice(*self.spans[turn])]) for turn in turns]

    async def finish(
        self, pieces: Sequence[Piece], twist: Twist, hidden: str = "", state: JsonObject | None = None
    ) -> Task:
        """Make the gold calls of all turns again and write the task with its checks.

        Raises:
            Dropped: The gold calls are refused, the words say too much, or the checks cannot tell the gold run.
        """
        start = self.state if state is None else state
        proof = await self._proof(pieces, start)
        calls = [piece.calls for piece in pieces]
        made = proof.gold.calls
        facts = [self._facts(made, calls, number, twist) for number in range(len(pieces))]
        tested = await proof.test(facts, self.spec, self.audit, derive_seed(self.base.seed, "audit", self.variant))
        weakness = tested.fault(twist)
        if weakness:
            raise Dropped("weak_checks", weakness)
        values = {name: getattr(self.base, name) for name in Task.model_fields if name != "id"}
        return Task(
            **{
                **values,
                "initial_state": self.base.initial_state if state is None else content_hash(state),
                "exposed_tools": tuple(name for name in self.base.exposed_tools if name != hidden),
                "mode": "conversation",
                "variant": self.variant,
                "twist": twist,
                "language": SCRIPTED,
                "prompts": {},
                "turns": tested.put_into(self._turns(pieces, proof, facts, await self._hashes(pieces, proof, start))),
                "masks": proof.masks,
                "audit": tested.audit,
                "seed": derive_seed(self.base.seed, "variant", self.variant),
            }
        )

    async def _proof(self, pieces: Sequence[Piece], start: JsonObject) -> Proof:
        """The gold run of the variant; twice where calls give something else than in the base task."""
        turns = [list(piece.calls) for piece in pieces]
        gold = await run_gold(turns, start, self.session, self.audit.live)
        fresh = [
            call.model_copy(update={"arguments": gold.ran.made[index][1], "result": gold.ran.results[index]})
            for index, call in enumerate(gold.calls)
        ]
        if fresh != gold.calls:
            rest = iter(fresh)
            gold = await run_gold(
                [[next(rest) for _ in calls] for calls in turns], start, self.session, self.audit.live
            )
        return await Proof.of(gold, self.session)

    def _facts(
        self, made: Sequence[GoldCall], calls: Sequence[Sequence[GoldCall]], turn: int, twist: Twist
    ) -> tuple[JsonValue, ...]:
        """What the answer of a turn must tell; where it can only be declined, nothing."""
        if twist.act == "decline" and turn == twist.turn:
            return ()
        start = sum(map(len, calls[:turn]))
        goals = goals_of(made, start, start + len(calls[turn]))
        return tuple(dict.fromkeys(fact for goal in goals for fact in self.writer.facts(made[goal])))[:MOST_FACTS]

    def _turns(
        self, pieces: Sequence[Piece], proof: Proof, facts: Sequence[tuple[JsonValue, ...]], hashes: Sequence[str]
    ) -> list[Turn]:
        """The turns, without their checks.

        Raises:
            Dropped: The words say too much.
        """
        found, start = [], 0
        for number, piece in enumerate(pieces):
            stop = start + len(piece.calls)
            if not piece.names_tools:
                self._check_words(piece, proof.gold.calls)
            found.append(
                Turn(
                    intent=piece.intent,
                    query=piece.query,
                    known=piece.known,
                    gold_calls=tuple(proof.gold.calls[start:stop]),
                    checks=(),
                    state_hash=hashes[number],
                    form_hash=proof.form_hashes[number],
                    answer_facts=facts[number],
                )
            )
            start = stop
        return found

    async def _hashes(self, pieces: Sequence[Piece], proof: Proof, state: JsonObject) -> list[str]:
        """State hash after each turn."""
        await self.session.reset(state)
        found, calls = [], iter(proof.gold.calls)
        for piece in pieces:
            for call in (next(calls) for _ in piece.calls):
                await self.session.call(call.tool, call.arguments, call.actor)
            found.append(await self.session.state_hash())
        return found

    def _check_words(self, piece: Piece, calls: Sequence[GoldCall]) -> None:
        known = [*self.known.values(), *piece.known]
        fault = names_a_tool(piece.query, self.writer.tool_names) or leaks(piece.query, calls, known)
        if fault:
            raise Dropped(fault.reason, fault.detail)


def replaced(call: GoldCall, values: Mapping[str, tuple[JsonValue, FromOutput | FromUser]]) -> GoldCall:
    """The call with other top-level arguments."""
    new = {name: value for name, value in values.items() if name in call.arguments}
    return call.model_copy(
        update={
            "arguments": {**call.arguments, **{name: value for name, (value, _) in new.items()}},
            "provenance": {**call.provenance, **{name: source for name, (_, source) in new.items()}},
            "result": None,
        }
    )


def stands_in(value: JsonValue, result: JsonValue) -> bool:
    """True if a value is a leaf of a result, so that an agent can read it there."""
    if isinstance(result, dict | list):
        return any(stands_in(value, inner) for inner in (result.values() if isinstance(result, dict) else result))
    return result == value and type(result) is type(value)
