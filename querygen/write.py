"""From a grounded chain to a task: turns, words, what the user knows, checks. Design section 5, stage `write`."""

import random
import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from pydantic import Field, PositiveInt

from chatmodel import Wording
from chatmodel.recognise import tells
from chatmodel.surface import clock_of, drop_near_years, say
from environments import Session
from grounding import leaves, needed, selector_key
from grounding.names import is_identifier
from grounding.paths import find
from querygen.author import Author, AuthorSettings, Words
from querygen.gates import leaks, names_a_tool, tool_patterns
from querygen.partition import goals_of, partition
from querygen.persona import later_turn, make_persona, open_conversation
from querygen.plan import TaskPlan, TurnPlan, steps_between
from querygen.proving import Proof, run_gold
from querygen.request import RequestWriter
from trajectory import (
    Dropped,
    EnvironmentSpec,
    FromOutput,
    Frozen,
    GoldCall,
    GroundedChain,
    JsonObject,
    JsonValue,
    Known,
    Task,
    Turn,
    canonical_json,
    derive_seed,
)
from verify.auditing import AuditSettings

MOST_FACTS = 8


class WriteSettings(Frozen):
    """How tasks are written."""

    mean_calls: float = Field(2.6, ge=1, le=5)
    """Tool calls per turn that the cut aims at."""
    direct: float = Field(0.15, ge=0, le=1)
    """Share of tasks in direct mode: everything is said at once and the user answers no questions."""
    withhold: float = Field(0.4, ge=0, le=1)
    """Probability that a turn of a conversation leaves something out that the agent must ask for."""
    shown_tools: PositiveInt | None = None
    """Tools shown to the agent: those that are needed and others drawn by chance up to this many; None shows all."""
    policy: bool = True
    """False leaves the policy out of the agent's prompt, for models with little room."""
    author: AuthorSettings = AuthorSettings()
    """How a model writes, where the writer is one."""
    audit: AuditSettings = AuditSettings()
    """How the checks of every task are tested."""


class TaskWriter:
    """Writes the tasks of one environment: the plan is made here, the words are scripted or an author's."""

    def __init__(self, spec: EnvironmentSpec, wording: Wording, settings: WriteSettings) -> None:
        self.spec = spec
        self.wording = wording
        self.settings = settings
        self.tool_names = tool_patterns(spec)

    async def write(
        self, grounded: GroundedChain, state: JsonObject, session: Session, author: Author | None = None
    ) -> Task:
        """One task. The gold calls are made again on a fresh state, so that nothing rests on the search's own word.

        Args:
            author: The models that find the words; None for the scripted language.

        Raises:
            Dropped: The words give away what the user cannot know, the gold run fails now, or the checks are weak.
            ModelFault: A model could not answer.
        """
        rng = random.Random(derive_seed(grounded.seed, "write"))
        cuts = partition(grounded.calls, rng, self.settings.mean_calls)
        plan = self._plan(grounded, state, cuts, rng)
        shown = await self._shown(plan, state, session) if author else {}
        proof = await self._proof(grounded, state, session, cuts)
        words = await author.write(plan, shown) if author else self._scripted(plan)
        facts = [self._facts(turn, shown, grounded) for turn in words.plan.turns]
        hashes = proof.form_hashes
        turns = [self._turn(words, number, facts[number], hashes[number]) for number in range(len(cuts))]
        tested = await proof.test(facts, self.spec, self.settings.audit, derive_seed(grounded.seed, "audit"))
        weakness = tested.fault(None)
        if weakness:
            raise Dropped("weak_checks", weakness)
        task = Task(
            grounded_id=grounded.id,
            environments=(grounded.environment,),
            initial_state=grounded.initial_state,
            persona=words.plan.persona,
            scenario=words.plan.scenario,
            policy=self.spec.policy if self.settings.policy else "",
            exposed_tools=self._exposed(grounded),
            user_tools=tuple(tool.name for tool in self.spec.tools if tool.actor == "user"),
            mode=plan.mode,
            difficulty=difficulty(grounded, turns),
            language=words.language,
            prompts=words.prompts,
            turns=tested.put_into(turns),
            masks=proof.masks,
            audit=tested.audit,
            seed=grounded.seed,
        )
        if author:
            author.keep(grounded.id, words.queries)
        return task

    def _exposed(self, grounded: GroundedChain) -> tuple[str, ...]:
        """Names of the tools that the agent is shown, in the order of the environment."""
        names = [tool.name for tool in self.spec.tools if tool.actor == "assistant"]
        if self.settings.shown_tools is None:
            return tuple(names)
        needed = {call.tool for call in grounded.calls if call.actor == "assistant"}
        others = [name for name in names if name not in needed]
        room = min(len(others), max(0, self.settings.shown_tools - len(needed)))
        drawn = random.Random(derive_seed(grounded.seed, "shown tools")).sample(others, room)
        return tuple(name for name in names if name in needed or name in drawn)

    def _plan(
        self, grounded: GroundedChain, state: JsonObject, cuts: Sequence[tuple[int, int]], rng: random.Random
    ) -> TaskPlan:
        """Turns, persona and who says what when, with the scripted words for it."""
        mode: Literal["direct", "conversation"] = "direct" if rng.random() < self.settings.direct else "conversation"
        persona, scenario = make_persona(self.wording.phrasebook, state, [call.result for call in grounded.calls], rng)
        known = {entry.key: self._worded(entry, rng) for entry in grounded.known}
        writer = RequestWriter(self.wording, grounded.calls, known, canonical_json(state).decode(), rng)
        turns = []
        for number, (start, stop) in enumerate(cuts):
            withhold = mode == "conversation" and rng.random() < self.settings.withhold
            goals = goals_of(grounded.calls, start, stop)
            request = writer.write(start, stop, goals, withhold)
            opening = open_conversation(persona, rng) if number == 0 else later_turn(persona, rng)
            keys = dict.fromkeys(key for call in grounded.calls[start:stop] for key in needed(call))
            told = {key: tells(request.text, known[key], self.wording) for key in known if key in request.said}
            turns.append(
                TurnPlan(
                    start=start,
                    stop=stop,
                    goals=tuple(goals),
                    meaning=request.text,
                    opening=opening,
                    intent=request.intent,
                    fresh=tuple(key for key in told if told[key]),
                    implied=tuple(key for key in told if not told[key]),
                    held=tuple(key for key in keys if key not in writer.said),
                )
            )
        now = clock_of(state)
        clock = str(state.get("now", "")).replace("T", " ")[:16]
        return TaskPlan(grounded, mode, persona, scenario, known, tuple(turns), now, clock)

    def _scripted(self, plan: TaskPlan) -> Words:
        """The plan's own words.

        Raises:
            Dropped: They name a tool or a value that only a tool could have told.
        """
        queries = []
        for turn in plan.turns:
            query = drop_near_years(join_opening(turn.opening, turn.meaning), plan.now)
            fault = names_a_tool(query, self.tool_names) or leaks(query, plan.grounded.calls, plan.known.values())
            if fault:
                raise Dropped(fault.reason, fault.detail)
            queries.append(query)
        return Words(plan, tuple(queries))

    async def _shown(self, plan: TaskPlan, state: JsonObject, session: Session) -> dict[int, tuple[JsonValue, ...]]:
        """What the steps in between still show at the end of their turn: what a wider goal could ask for."""
        between, calls = steps_between(plan), plan.grounded.calls
        shown: dict[int, tuple[JsonValue, ...]] = {}
        if not between:
            return shown
        await session.reset(state)
        for turn in plan.turns:
            for call in calls[turn.start : turn.stop]:
                await session.call(call.tool, call.arguments, call.actor)
            for index in (index for index in between if turn.start <= index < turn.stop):
                call = calls[index]
                again = await session.call(call.tool, call.arguments, call.actor)
                facts = tuple(self.facts(call))
                if again.ok and facts and facts == tuple(self.facts(call.model_copy(update={"result": again.content}))):
                    shown[index] = facts
        return shown

    def _facts(
        self, turn: TurnPlan, shown: Mapping[int, tuple[JsonValue, ...]], grounded: GroundedChain
    ) -> tuple[JsonValue, ...]:
        """What the answer of a turn must tell."""
        facts = [fact for goal in turn.goals for fact in self.facts(grounded.calls[goal])]
        facts += [] if turn.expansion is None else shown[turn.expansion]
        return tuple(dict.fromkeys(facts))[:MOST_FACTS]

    def _turn(self, words: Words, number: int, facts: tuple[JsonValue, ...], form_hash: str) -> Turn:
        plan = words.plan
        turn = plan.turns[number]
        said = plan.stated(number)
        return Turn(
            intent=turn.intent,
            query=words.queries[number],
            known=tuple(plan.known[key].model_copy(update={"stated": key in said}) for key in plan.needed(turn)),
            gold_calls=plan.grounded.calls[turn.start : turn.stop],
            state_hash=plan.grounded.states[turn.stop - 1],
            form_hash=form_hash,
            answer_facts=facts,
            checks=(),
            refinements=turn.edits,
        )

    async def _proof(
        self, grounded: GroundedChain, state: JsonObject, session: Session, cuts: Sequence[tuple[int, int]]
    ) -> Proof:
        """The gold run, made again: it must lead to where grounding said that it leads."""
        turns = [grounded.calls[start:stop] for start, stop in cuts]
        gold = await run_gold(turns, state, session, self.settings.audit.live)
        if await session.state_hash() != grounded.states[-1]:
            raise Dropped("gold_not_repeatable", "the same calls led to another state")
        return await Proof.of(gold, session)

    def _worded(self, known: Known, rng: random.Random) -> Known:
        """The entry with the words in which this user says it."""
        if known.how != "value":
            name = known.slot.split("|")[0]
            return known.model_copy(update={"said": self.wording.describe(name.split(".")[-1], known, rng)})
        return known.model_copy(update={"said": say(self.wording.value("", known.slot, known.value, rng))})

    def facts(self, call: GoldCall) -> list[JsonValue]:
        """Values of a result that an answer must tell: as the phrasebook has it, else the first telling ones."""
        phrases = self.wording.tool(call.tool)
        if phrases.facts or phrases.done:
            found = [match.value for path in phrases.facts for match in find(call.result, path)]
        else:
            found = telling_values(call.result)
        return [value for value in dict.fromkeys(map(_plain, found)) if value is not None]


def join_opening(opening: str, text: str) -> str:
    """An opening and a request; after a comma or colon the request goes on in lower case, but for "I"."""
    lower = opening.endswith((",", ":")) and not re.match(r"I\b|[A-Z]{2}", text)
    return f"{opening} {text[:1].lower() + text[1:] if lower else text}".strip()


def _plain(value: Any) -> JsonValue:
    return value if isinstance(value, str | int | float) and not isinstance(value, bool) and value != "" else None


def telling_values(result: Any) -> list[Any]:
    """Short texts and numbers of a result that are no identifiers, the first few; of a text, its first line."""
    if isinstance(result, str):
        line = next((line.strip() for line in result.splitlines() if line.strip()), "")
        return [line] if 0 < len(line) <= 80 else []
    rows = [result]
    while len(rows) == 1 and isinstance(rows[0], dict) and len(rows[0]) == 1:
        inner = next(iter(rows[0].values()))
        rows = inner if isinstance(inner, list) else [inner]
    found: list[Any] = []
    for row in rows[:4]:
        if isinstance(row, dict):
            values = [value for key, value in row.items() if not is_identifier(key) and _short(value)]
            found += values[: 2 if len(rows) == 1 else 1]
        elif _short(row):
            found.append(row)
    return found


def _short(value: Any) -> bool:
    return (
        isinstance(value, str | int | float)
        and not isinstance(value, bool)
        and 0 < len(str(value)) <= 60
        and "\n" not in str(value)
    )


def difficulty(grounded: GroundedChain, turns: Sequence[Turn]) -> float:
    """0 to 1: calls, values that come from earlier results, rows to pick, and what must be asked for."""
    calls = len(grounded.calls)
    flows = [source for call in grounded.calls for _, source, _ in leaves(call) if isinstance(source, FromOutput)]
    picks = {
        selector_key(source.call, selector)
        for source in flows
        for selector in source.selectors
        if selector.how != "only"
    }
    held = sum(not entry.stated for turn in turns for entry in turn.known)
    writes = sum(call.effect == "write" for call in grounded.calls)
    return round(min(1.0, 0.04 * calls + 0.02 * len(flows) + 0.04 * len(picks) + 0.04 * held + 0.03 * writes), 3)
