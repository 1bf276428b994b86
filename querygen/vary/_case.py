"""Inputs of a variant, and assembly of a changed task: its gold calls are executed again."""

import random
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from trajsmith.environments import Session
from trajsmith.grounding import Rewindable, list_needed_keys, make_rewindable
from trajsmith.models import SCRIPTED
from trajsmith.phrasing import ScenarioStep, Wording, draw_user_voice, get_user_voice
from trajsmith.querygen.gold_proof import GoldProof, run_gold
from trajsmith.querygen.parallel_calls import find_parallel_calls
from trajsmith.querygen.partition import find_goals
from trajsmith.querygen.query_gates import find_leaked_value, find_tool_mention
from trajsmith.querygen.request import RequestWriter
from trajsmith.querygen.requested_info import drop_outdated_facts, fill_facts
from trajsmith.querygen.story import list_motives, read_story
from trajsmith.querygen.vary._rewording import RewordedQueries, TurnDraft
from trajsmith.querygen.write import TaskWriter, WriteSettings
from trajsmith.records import (
    EnvironmentSpec,
    FromOutput,
    FromUser,
    GoldCall,
    JsonObject,
    JsonValue,
    Perturbation,
    RecordDropped,
    Registry,
    RequestedInfo,
    StateCheck,
    Task,
    Turn,
    canonical_json,
    content_hash,
    derive_seed,
    list_answer_facts,
)
from trajsmith.verify import AuditSettings, run_check
from trajsmith.verify.normalized_state import normalize_state

VariantFunction = Callable[["VariantCase"], Awaitable["VariantResult"]]
"""Derives a variant of a task, or raises `RecordDropped` with the reason why it cannot be made or proved."""

VARIANTS: Registry[VariantFunction] = Registry("variants", "trajsmith.querygen.vary")


@dataclass(frozen=True)
class VariantResult:
    """A variant, and the state that it starts from where that is a new one."""

    task: Task
    state: JsonObject | None = None


@dataclass
class VariantCase:
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
    retold: Task = field(init=False)
    """The task as another person tells it, for another reason of its story: a variant is no copy of its base."""

    def __post_init__(self) -> None:
        self.rng = random.Random(derive_seed(self.base.seed, "variant", self.variant))
        self.retold = _retell(self.base, self.wording, self.variant)
        self.calls = self.base.gold_calls
        self.known = {entry.key: entry for turn in reversed(self.base.turns) for entry in turn.known}
        self.tools = {tool.name: tool for tool in self.spec.tools}
        self.writer = TaskWriter(self.spec, self.wording, WriteSettings())
        self.steps = [name for turn in self.base.turns for name in turn.steps]
        """In a scenario: the step that each gold call is."""
        self.spans: list[tuple[int, int]] = []
        for turn in self.base.turns:
            start = self.spans[-1][1] if self.spans else 0
            self.spans.append((start, start + len(turn.gold_calls)))

    def words(self, **changes: Any) -> RewordedQueries:
        """The queries of the task in new words; `changes` as `Words` has them."""
        return RewordedQueries(
            self.retold, self.state, self.wording, changes.pop("calls", self.calls), self.known, self.rng, **changes
        )

    def open_request_writer(self, calls: Sequence[GoldCall]) -> RequestWriter:
        """Return a writer of requests for these calls, in the voice of the task's user."""
        initial = canonical_json(self.state).decode()
        voice = get_user_voice(self.retold.persona.style)
        return RequestWriter(self.wording, calls, self.known, initial, self.rng, voice=voice)

    def find_step(self, index: int) -> ScenarioStep | None:
        """Return the step of the task's story that a call is; None outside of stories."""
        story = self.wording.scenarios.find(self.base.scenario_id) if self.base.scenario_id else None
        return story.find_step(self.steps[index]) if story is not None and index < len(self.steps) else None

    def goals(self, turn: int) -> list[int]:
        return find_goals(self.calls, *self.spans[turn], steps=self.steps)

    def single_writes(self) -> list[int]:
        """Turns that ask for one thing only, a write by the agent with which the turn ends; in random order."""
        turns = []
        for turn, (start, stop) in enumerate(self.spans):
            goals = self.goals(turn) if stop > start else []
            last = self.calls[stop - 1] if goals == [stop - 1] else None
            if last is not None and last.effect == "write" and last.actor == "assistant":
                turns.append(turn)
        return self.rng.sample(turns, len(turns))

    def first_needed(self, key: str) -> int:
        """Turn in which an entry is needed first."""
        return next(turn for turn, (start, stop) in enumerate(self.spans) if key in self.needs(start, stop))

    def needs(self, start: int, stop: int) -> list[str]:
        return list(dict.fromkeys(key for call in self.calls[start:stop] for key in list_needed_keys(call)))

    def append_turn(self, turn: int, call: GoldCall) -> "VariantCase":
        """Return the case cut after a turn, with one more turn that makes a call again.

        In a scenario, no step is that call: the tool's own phrases ask for it.
        """
        first_turns = self.base.turns[: turn + 1]
        known = tuple(self.known[key].model_copy(update={"stated": True}) for key in list_needed_keys(call))
        more = Turn(
            intent=first_turns[-1].intent,
            query="",
            known=known,
            gold_calls=(call,),
            checks=(),
            state_hash="",
            steps=("again",) if any(each.steps for each in first_turns) else (),
        )
        base = self.base.model_copy(update={"turns": (*first_turns, more)})
        return replace(self, base=base)

    async def at(self, calls: int) -> Rewindable:
        """The session after this many gold calls, able to go back there."""
        session = make_rewindable(self.session)
        await session.reset(self.state)
        for call in self.calls[:calls]:
            result = await session.call(call.tool, call.arguments, call.actor)
            if not result.ok:
                raise RecordDropped("gold_not_repeatable", call.tool)
        return session

    def reached(self, turn: int, initial: JsonObject, state: JsonObject) -> bool:
        """Return True if the state satisfies everything that the base turn requires."""
        checks = [check for check in self.base.turns[turn].checks if isinstance(check, StateCheck)]
        form = normalize_state(initial, state, self.base.masks)
        return bool(checks) and all(run_check(check, form.initial, form.document, "").passed for check in checks)

    def unchanged(self, words: RewordedQueries, turns: range) -> list[TurnDraft]:
        """Turns of the base task with their new words."""
        return [words.piece(turn, self.calls[slice(*self.spans[turn])]) for turn in turns]

    async def finish(
        self, pieces: Sequence[TurnDraft], perturbation: Perturbation, hidden: str = "", state: JsonObject | None = None
    ) -> Task:
        """Make the gold calls of all turns again and write the task with its checks.

        Raises:
            RecordDropped: The gold calls are refused, the words say too much, or the checks cannot tell the gold run.
        """
        start = self.state if state is None else state
        proof = await self._proof(pieces, start)
        gold_calls = proof.gold.calls
        asked = [self._asked(gold_calls, pieces, number, perturbation) for number in range(len(pieces))]
        seed = derive_seed(self.base.seed, "audit", self.variant)
        tested = await proof.test(asked, self.spec, self.audit, seed)
        weakness = tested.fault(perturbation)
        if weakness:
            raise RecordDropped("weak_checks", weakness)
        values = {name: getattr(self.retold, name) for name in Task.model_fields if name != "id"}
        shows_own = perturbation.act == "decline" or bool(hidden)  # what is not there must be seen not to be there
        return Task(
            **{
                **values,
                "initial_state": self.base.initial_state if state is None else content_hash(state),
                "exposed_tools": self._list_exposed(pieces, perturbation, hidden),
                "distractors": () if shows_own else self.base.distractors,
                "search": None if shows_own else self.base.search,
                "mode": self.base.mode if perturbation.act == "plain" else "conversation",
                "variant": self.variant,
                "twist": perturbation,
                "language": SCRIPTED,
                "prompts": {},
                "turns": tested.apply_to_turns(
                    self._turns(
                        pieces,
                        proof,
                        asked,
                        await self._hashes(pieces, proof, start),
                        await self._groups(pieces, proof, start, seed, perturbation),
                    )
                ),
                "masks": proof.masks,
                "audit": tested.audit,
                "seed": derive_seed(self.base.seed, "variant", self.variant),
            }
        )

    def _list_exposed(self, pieces: Sequence[TurnDraft], perturbation: Perturbation, hidden: str) -> tuple[str, ...]:
        """Return the tools of the base task and those that the variant needs, without the hidden one."""
        offer = (perturbation.offer,) if perturbation.offer else ()
        calls = [*(call for piece in pieces for call in piece.calls), *perturbation.tempting, *offer]
        shown = {*self.base.exposed_tools, *(call.tool for call in calls if call.actor == "assistant")} - {hidden}
        return tuple(tool.name for tool in self.spec.tools if tool.name in shown)

    async def _proof(self, pieces: Sequence[TurnDraft], start: JsonObject) -> GoldProof:
        """The gold run of the variant; twice where calls give something else than in the base task."""
        turns = [list(piece.calls) for piece in pieces]
        gold = await run_gold(turns, start, self.session, self.audit.live)
        fresh = [
            call.model_copy(update={"arguments": gold.ran.calls[index][1], "result": gold.ran.results[index]})
            for index, call in enumerate(gold.calls)
        ]
        if fresh != gold.calls:
            rest = iter(fresh)
            gold = await run_gold(
                [[next(rest) for _ in calls] for calls in turns], start, self.session, self.audit.live
            )
        return await GoldProof.of(gold, self.session)

    def _asked(
        self, gold_calls: Sequence[GoldCall], pieces: Sequence[TurnDraft], turn: int, perturbation: Perturbation
    ) -> tuple[RequestedInfo, ...]:
        """Return what a turn asks for, with the values of the variant's own run; nothing if it can only decline.

        Raises:
            RecordDropped: What a question is about is not there.
        """
        if perturbation.act == "decline" and turn == perturbation.turn:
            return ()
        start, count = sum(len(piece.calls) for piece in pieces[:turn]), len(pieces[turn].calls)
        asked = []
        for info in pieces[turn].asked:
            if info.call < count:
                index = start + info.call
                filled = fill_facts(info.model_copy(update={"call": index}), gold_calls[index], self.wording)
                if info.narrow and not filled.facts:
                    raise RecordDropped("question_without_answer", info.question)
                asked.append(drop_outdated_facts(filled, gold_calls[: start + count]))
        return tuple(asked)

    def _turns(
        self,
        pieces: Sequence[TurnDraft],
        proof: GoldProof,
        asked: Sequence[tuple[RequestedInfo, ...]],
        hashes: Sequence[str],
        groups: Sequence[tuple[int, ...]],
    ) -> list[Turn]:
        """The turns, without their checks.

        Raises:
            RecordDropped: The words say too much.
        """
        turns, start = [], 0
        for number, piece in enumerate(pieces):
            stop = start + len(piece.calls)
            if not piece.names_tools:
                self._check_words(piece, proof.gold.calls)
            turns.append(
                Turn(
                    intent=piece.intent,
                    query=piece.query,
                    known=piece.known,
                    gold_calls=tuple(proof.gold.calls[start:stop]),
                    checks=(),
                    state_hash=hashes[number],
                    form_hash=proof.form_hashes[number],
                    answer_facts=tuple(fact.value for fact in list_answer_facts(asked[number])),
                    asked=asked[number],
                    groups=groups[number],
                )
            )
            start = stop
        return turns

    async def _groups(
        self,
        pieces: Sequence[TurnDraft],
        proof: GoldProof,
        state: JsonObject,
        seed: int,
        perturbation: Perturbation,
    ) -> list[tuple[int, ...]]:
        """Calls of each turn that commute; pages are read one by one, until the thing is there."""
        calls = iter(proof.gold.calls)
        groups = await find_parallel_calls(
            [[next(calls) for _ in piece.calls] for piece in pieces], state, self.session, seed
        )
        return [
            () if perturbation.act == "page" and turn == perturbation.turn else group
            for turn, group in enumerate(groups)
        ]

    async def _hashes(self, pieces: Sequence[TurnDraft], proof: GoldProof, state: JsonObject) -> list[str]:
        """State hash after each turn."""
        await self.session.reset(state)
        hashes, calls = [], iter(proof.gold.calls)
        for piece in pieces:
            for call in (next(calls) for _ in piece.calls):
                await self.session.call(call.tool, call.arguments, call.actor)
            hashes.append(await self.session.state_hash())
        return hashes

    def _check_words(self, piece: TurnDraft, calls: Sequence[GoldCall]) -> None:
        known = [*self.known.values(), *piece.known]
        fault = find_tool_mention(piece.query, self.writer.tool_names) or find_leaked_value(piece.query, calls, known)
        if fault:
            raise RecordDropped(fault.reason, fault.detail)


def _retell(base: Task, wording: Wording, variant: str) -> Task:
    """Return a task whose user has another register, and another motive where its story has several."""
    rng = random.Random(derive_seed(base.seed, "told", variant))
    persona = base.persona.model_copy(update={"style": draw_user_voice(rng)})
    story = read_story(base, wording.scenarios)
    motives = list_motives(story.scenario, story.names, base.gold_calls) if story else []
    others = [motive for motive in motives if motive != base.motive]
    return base.model_copy(update={"persona": persona, "motive": rng.choice(others) if others else base.motive})


def replace_arguments(call: GoldCall, values: Mapping[str, tuple[JsonValue, FromOutput | FromUser]]) -> GoldCall:
    """Return the call with other top-level arguments."""
    new = {name: value for name, value in values.items() if name in call.arguments}
    return call.model_copy(
        update={
            "arguments": {**call.arguments, **{name: value for name, (value, _) in new.items()}},
            "provenance": {**call.provenance, **{name: source for name, (_, source) in new.items()}},
            "result": None,
        }
    )


def is_leaf_of(value: JsonValue, result: JsonValue) -> bool:
    """Return True if a value is a leaf of a result, so that an agent can read it there."""
    if isinstance(result, dict | list):
        return any(is_leaf_of(value, inner) for inner in (result.values() if isinstance(result, dict) else result))
    return result == value and type(result) is type(value)
