"""From a grounded chain to a task: turns, words, what the user knows, checks. Design section 5, stage `write`."""

import random
import re
from collections.abc import Sequence
from typing import Any, Literal

from pydantic import Field

from chatmodel import Wording
from chatmodel.surface import clock_of, drop_near_years, say
from environments import Session, diff
from grounding import leaves, needed, selector_key
from grounding.names import is_identifier
from grounding.paths import find
from querygen.partition import goals_of, partition
from querygen.persona import later_turn, make_persona, open_conversation
from querygen.request import Request, RequestWriter
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
from verify.checks import audit, derive_checks

MOST_FACTS = 8


class WriteSettings(Frozen):
    """How tasks are written."""

    mean_calls: float = Field(2.6, ge=1, le=5)
    """Tool calls per turn that the cut aims at."""
    direct: float = Field(0.15, ge=0, le=1)
    """Share of tasks in direct mode: everything is said at once and the user answers no questions."""
    withhold: float = Field(0.4, ge=0, le=1)
    """Probability that a turn of a conversation leaves something out that the agent must ask for."""


class TaskWriter:
    """Writes the tasks of one environment in scripted language."""

    def __init__(self, spec: EnvironmentSpec, wording: Wording, settings: WriteSettings) -> None:
        self.spec = spec
        self.wording = wording
        self.settings = settings
        self.tool_names = [re.compile(rf"\b{re.escape(tool.name)}\b") for tool in spec.tools if "_" in tool.name]

    async def write(self, grounded: GroundedChain, state: JsonObject, session: Session) -> Task:
        """One task. The gold calls are made again on a fresh state, so that nothing rests on the search's own word.

        Raises:
            Dropped: The words give away what the user cannot know, the gold run fails now, or the checks are weak.
        """
        rng = random.Random(derive_seed(grounded.seed, "write"))
        cuts = partition(grounded.calls, rng, self.settings.mean_calls)
        states = await self._gold_states(grounded, state, session, [stop for _, stop in cuts])
        mode: Literal["direct", "conversation"] = "direct" if rng.random() < self.settings.direct else "conversation"
        persona, scenario = make_persona(self.wording.phrasebook, state, [call.result for call in grounded.calls], rng)
        known = {entry.key: self._worded(entry, rng) for entry in grounded.known}
        writer = RequestWriter(self.wording, grounded.calls, known, canonical_json(state).decode(), rng)
        turns = []
        before = states[0]
        changes = [diff(before, after) for after in states[1:]]
        for number, ((start, stop), after) in enumerate(zip(cuts, states[1:], strict=True)):
            withhold = mode == "conversation" and rng.random() < self.settings.withhold
            goals = goals_of(grounded.calls, start, stop)
            request = writer.write(start, stop, goals, withhold)
            opening = open_conversation(persona, rng) if number == 0 else later_turn(persona, rng)
            turns.append(
                self._turn(
                    grounded,
                    known,
                    request,
                    writer.said,
                    opening,
                    (start, stop, number),
                    goals,
                    (states[0], before, after),
                    changes[number],
                )
            )
            before = after
        task = Task(
            grounded_id=grounded.id,
            environments=(grounded.environment,),
            initial_state=grounded.initial_state,
            persona=persona,
            scenario=scenario,
            policy=self.spec.policy,
            exposed_tools=tuple(tool.name for tool in self.spec.tools if tool.actor == "assistant"),
            user_tools=tuple(tool.name for tool in self.spec.tools if tool.actor == "user"),
            mode=mode,
            difficulty=difficulty(grounded, turns),
            language="scripted",
            turns=tuple(turns),
            seed=grounded.seed,
        )
        weakness = audit([turn.checks for turn in turns], states[0], states[1:], changes)
        if weakness:
            raise Dropped("weak_checks", weakness)
        return task

    async def _gold_states(
        self, grounded: GroundedChain, state: JsonObject, session: Session, stops: Sequence[int]
    ) -> list[JsonObject]:
        """The state before the first call and after each turn."""
        await session.reset(state)
        states = [await session.snapshot()]
        for number, call in enumerate(grounded.calls, 1):
            result = await session.call(call.tool, call.arguments, call.actor)
            if not result.ok:
                raise Dropped("gold_not_repeatable", f"{call.tool} is refused when the gold calls are made again")
            if number in stops:
                states.append(await session.snapshot())
        if await session.state_hash() != grounded.states[-1]:
            raise Dropped("gold_not_repeatable", "the same calls led to another state")
        return states

    def _turn(
        self,
        grounded: GroundedChain,
        known: dict[str, Known],
        request: Request,
        said: set[str],
        opening: str,
        where: tuple[int, int, int],
        goals: Sequence[int],
        states: tuple[JsonObject, JsonObject, JsonObject],
        changes: list[JsonObject],
    ) -> Turn:
        start, stop, number = where
        calls = grounded.calls[start:stop]
        keys = list(dict.fromkeys(key for call in calls for key in needed(call)))
        query = drop_near_years(join_opening(opening, request.text), clock_of(states[0]))
        self.check_words(query, grounded.calls, [known[key] for key in known])
        facts = [fact for goal in goals for fact in self.facts(grounded.calls[goal])][:MOST_FACTS]
        return Turn(
            intent=request.intent,
            query=query,
            known=tuple(known[key].model_copy(update={"stated": key in said}) for key in keys),
            gold_calls=calls,
            state_hash=grounded.states[stop - 1],
            answer_facts=tuple(facts),
            checks=derive_checks(*states, facts, number, changes),
        )

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

    def check_words(self, query: str, calls: Sequence[GoldCall], known: Sequence[Known]) -> None:
        """Mechanical gates: no tool name, no value that only a tool could have told."""
        if any(name.search(query) for name in self.tool_names):
            raise Dropped("query_names_a_tool", query[:120])
        sayable = {str(entry.value) for entry in known}
        for call in calls:
            for path, source, value in leaves(call):
                text = str(value)
                internal = isinstance(source, FromOutput) and is_identifier(path.split(".")[-1])
                if internal and len(text) >= 4 and text in query and text not in sayable:
                    raise Dropped("query_leaks_an_internal_value", f"{path}={text}")


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
