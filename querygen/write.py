"""From a grounded chain to a task: turns, words, what the user knows, checks."""

import random
from collections.abc import Callable, Iterable, Sequence
from datetime import date
from functools import cached_property
from typing import Literal

from pydantic import Field, PositiveInt

from trajsmith.environments import Session
from trajsmith.grounding import build_selector_key, iterate_leaves, list_needed_keys
from trajsmith.phrasing import Wording, find_clock_date, format_value, get_user_voice, render_clock
from trajsmith.phrasing.fact_detection import is_fact_stated
from trajsmith.phrasing.wording import derive_request_phrase
from trajsmith.querygen.author import AuthorSettings, ModelTaskAuthor, TaskWording
from trajsmith.querygen.gold_proof import GoldProof, run_gold
from trajsmith.querygen.parallel_calls import find_parallel_calls
from trajsmith.querygen.partition import find_goals, partition_calls, partition_scenario, raise_joins
from trajsmith.querygen.persona import draw_greeting, draw_turn_opening, find_outcome, make_persona, render_query
from trajsmith.querygen.plan import TaskPlan, TurnPlan, find_unrequested_reads
from trajsmith.querygen.programs.write import write_program_parts
from trajsmith.querygen.programs.written_execution import ProgramLimits
from trajsmith.querygen.query_gates import (
    build_tool_patterns,
    find_leaked_value,
    find_tool_mention,
    find_wordless_values,
)
from trajsmith.querygen.questions import find_asking_sentence
from trajsmith.querygen.request import RequestWriter
from trajsmith.querygen.requested_info import build_general_info, drop_outdated_facts, fill_facts
from trajsmith.querygen.shown_tools import ShownToolsSettings, select_distractors
from trajsmith.querygen.story import Story, find_story
from trajsmith.querygen.tool_queries import plan_tool_search
from trajsmith.records import (
    EnvironmentSpec,
    FromOutput,
    FrozenModel,
    GoldCall,
    GroundedChain,
    JsonObject,
    JsonValue,
    RecordDropped,
    RequestedInfo,
    Task,
    ToolSearch,
    ToolSpec,
    Turn,
    UserFact,
    canonical_json,
    derive_seed,
    list_answer_facts,
)
from trajsmith.verify import RubricSettings, WrittenCheckSettings
from trajsmith.verify.check_audit import AuditSettings


class WriteSettings(FrozenModel):
    """Settings of task writing."""

    mean_calls: float = Field(2.6, ge=1, le=5)
    """Tool calls per turn that the cut aims at."""
    direct: float = Field(0.15, ge=0, le=1)
    """Share of tasks in direct mode: everything is said at once and the user answers no questions."""
    joint: float = Field(0.15, ge=0, le=1)
    """Probability that the user asks for a step of a scenario together with the one before it, if both are about the
    same thing; a step may set a higher one."""
    withhold: float = Field(0.4, ge=0, le=1)
    """Probability that a turn of a conversation leaves something out that the agent must ask for."""
    questions: float = Field(0.6, ge=0, le=1)
    """Share of reads that are asked for by a narrow question, among those of which the phrasebook has some."""
    shown_tools: PositiveInt | None = None
    """Tools shown to the agent: those that are needed and others drawn by chance up to this many; None shows all."""
    tools: ShownToolsSettings = ShownToolsSettings()
    """Tasks that show few tools, or tools of other environments beside their own; not with `shown_tools`."""
    policy: bool = True
    """False leaves the policy out of the agent's prompt, for models with little room."""
    author: AuthorSettings = AuthorSettings()
    """How a model writes, where the writer is one."""
    audit: AuditSettings = AuditSettings()
    """How the checks of every task are tested."""
    checks: WrittenCheckSettings = WrittenCheckSettings()
    """Check functions that a model writes, where `roles.checker` names one."""
    rubric: RubricSettings = RubricSettings()
    """Criteria of each task."""


class TaskWriter:
    """Writes the tasks of one environment: the plan is made here, the words are scripted or an author's."""

    def __init__(
        self,
        spec: EnvironmentSpec,
        wording: Wording,
        settings: WriteSettings,
        others: Callable[[], Iterable[ToolSpec]] = tuple,
    ) -> None:
        """`others` gives the tools of other environments, which may be shown as distractors."""
        self.others = others
        self.spec = spec
        self.wording = wording
        self.settings = settings
        self.tool_names = build_tool_patterns(spec)

    @cached_property
    def own_tools(self) -> list[ToolSpec]:
        """Tools of the environment that the agent may call."""
        return [tool for tool in self.spec.tools if tool.actor == "assistant"]

    @cached_property
    def distractors(self) -> list[ToolSpec]:
        """Tools of other environments that can be shown beside the own ones."""
        return select_distractors(self.own_tools, list(self.others()))

    async def write(
        self, grounded: GroundedChain, state: JsonObject, session: Session, author: ModelTaskAuthor | None = None
    ) -> Task:
        """One task. The gold calls are made again on a fresh state, so that nothing rests on the search's own word.

        Args:
            author: The models that find the words; None for the scripted language.

        Raises:
            RecordDropped: The words give away what the user cannot know, the gold run fails, or the checks are weak.
            ModelFault: A model could not answer.
        """
        rng = random.Random(derive_seed(grounded.seed, "write"))
        story = find_story(grounded, self.wording.scenarios)
        if story is None:
            cuts = partition_calls(grounded.calls, rng, self.settings.mean_calls)
        else:
            entities = self.wording.phrasebook.entities
            kinds = {name for name, entity in entities.items() if entity.by} if entities else None
            joins = raise_joins(grounded.calls, grounded.steps, story.joins, self.settings.joint, kinds, story.apart)
            cuts = partition_scenario(grounded.steps, joins, rng)
        plan = self._plan(grounded, state, cuts, rng, story)
        shown = await self._shown(plan, state, session) if author else {}
        proof = await self._proof(grounded, state, session, cuts)
        words = await author.write(plan, shown) if author else self._scripted(plan)
        asked = [self._asked(words, number, author is not None) for number in range(len(cuts))]
        hashes = proof.form_hashes
        groups = await find_parallel_calls(
            [grounded.calls[slice(*cut)] for cut in cuts], state, session, derive_seed(grounded.seed, "parallel")
        )
        turns = [
            self._turn(words, number, asked[number], hashes[number], groups[number]) for number in range(len(cuts))
        ]
        tested = await proof.test(asked, self.spec, self.settings.audit, derive_seed(grounded.seed, "audit"))
        weakness = tested.fault(None)
        if weakness:
            raise RecordDropped("weak_checks", weakness)
        exposed, distractors, search = self._draw_shown_tools(grounded)
        task = Task(
            grounded_id=grounded.id,
            environments=(grounded.environment,),
            initial_state=grounded.initial_state,
            persona=words.plan.persona,
            scenario=words.plan.scenario,
            scenario_id=grounded.scenario,
            motive=story.motive if story else "",
            policy=self.spec.policy if self.settings.policy else "",
            exposed_tools=exposed,
            distractors=distractors,
            search=search,
            user_tools=tuple(tool.name for tool in self.spec.tools if tool.actor == "user"),
            mode=plan.mode,
            source=grounded.source,
            difficulty=estimate_difficulty(grounded, turns),
            language=words.language,
            prompts=words.prompts,
            turns=tested.apply_to_turns(turns),
            masks=proof.masks,
            audit=tested.audit,
            seed=grounded.seed,
        )
        if author:
            author.keep(grounded.id, words.queries)
        return task

    async def write_program(
        self,
        grounded: GroundedChain,
        state: JsonObject,
        session: Session,
        source: str,
        limits: ProgramLimits | None = None,
    ) -> Task:
        """Write the task of a grounded program.

        Args:
            grounded: The program.
            state: The initial state.
            session: A session of the environment.
            source: Its Python text, which was proved in the sandbox.
            limits: Limits of the sandbox for its mutants.

        Raises:
            RecordDropped: The words lack a value, the gold run fails, or the checks are weak.
        """
        parts = await write_program_parts(
            grounded, self.spec, self.wording, state, session, self.settings.audit, source, limits
        )
        fault = find_tool_mention(parts.turn.query, self.tool_names)
        if fault:
            raise RecordDropped(fault.reason, fault.detail)
        exposed, distractors, search = self._draw_shown_tools(grounded)
        return Task(
            grounded_id=grounded.id,
            environments=(grounded.environment,),
            initial_state=grounded.initial_state,
            persona=parts.persona,
            scenario=parts.scenario,
            policy=self.spec.policy if self.settings.policy else "",
            exposed_tools=exposed,
            distractors=distractors,
            search=search,
            user_tools=tuple(tool.name for tool in self.spec.tools if tool.actor == "user"),
            mode="direct",
            source=grounded.source,
            solution=parts.solution,
            difficulty=estimate_difficulty(grounded, [parts.turn]),
            language=parts.language,
            prompts=parts.prompts,
            turns=(parts.turn,),
            masks=parts.proof.masks,
            audit=parts.audit,
            seed=grounded.seed,
        )

    def _draw_shown_tools(
        self, grounded: GroundedChain
    ) -> tuple[tuple[str, ...], tuple[ToolSpec, ...], ToolSearch | None]:
        """Names of the tools that the agent is shown, in the order of the environment, distractors, and how they are
        searched for, if they are; all tools are shown where one could not be found.
        """
        own = self.own_tools
        needed = {call.tool for call in grounded.calls if call.actor == "assistant"}
        rng = random.Random(derive_seed(grounded.seed, "shown tools"))
        if self.settings.shown_tools is None:
            exposed, distractors, searched = self.settings.tools.draw(own, needed, lambda: self.distractors, rng)
            if not searched:
                return exposed, distractors, None
            search = plan_tool_search(own, distractors, self.wording, self.settings.tools.search_results, rng)
            return exposed, distractors if search else (), search
        others = [tool.name for tool in own if tool.name not in needed]
        drawn = rng.sample(others, min(len(others), max(0, self.settings.shown_tools - len(needed))))
        return tuple(tool.name for tool in own if tool.name in needed or tool.name in drawn), (), None

    def _plan(
        self,
        grounded: GroundedChain,
        state: JsonObject,
        cuts: Sequence[tuple[int, int]],
        rng: random.Random,
        story: Story | None,
    ) -> TaskPlan:
        """Turns, persona and who says what when, with the scripted words for it."""
        own_device = any(call.actor == "user" for call in grounded.calls)  # who must act there can be asked, too
        mode: Literal["direct", "conversation"] = "direct" if rng.random() < self.settings.direct else "conversation"
        mode = "conversation" if own_device else mode
        persona, scenario = make_persona(self.wording.phrasebook, state, [call.result for call in grounded.calls], rng)
        if story is not None:
            persona, scenario = story.cast(persona)
        now = find_clock_date(state)
        known = {entry.key: self._worded(entry, rng, now) for entry in grounded.known}
        initial, voice = canonical_json(state).decode(), get_user_voice(persona.style)
        writer = RequestWriter(
            self.wording, grounded.calls, known, initial, rng, now, voice, questions=self.settings.questions
        )
        turns = []
        for number, (start, stop) in enumerate(cuts):
            goals = find_goals(grounded.calls, start, stop, steps=grounded.steps)
            withhold = mode == "conversation" and rng.random() < self.settings.withhold and len(goals) < 2
            steps = story.list_steps(goals) if story else ()
            request = writer.write(start, stop, goals, withhold, steps, story.motive if story and not number else "")
            outcome = find_outcome(grounded.calls[start - 1])
            trouble = story is not None and story.scenario.trouble
            opening = (
                draw_turn_opening(persona, outcome, rng, writer.frames, trouble)
                if start
                else draw_greeting(persona, state, rng, self.wording.phrasebook)
            )
            known.update((key, fact) for key, fact in writer.row_facts.items() if key not in known)
            keys = dict.fromkeys(key for call in grounded.calls[start:stop] for key in list_needed_keys(call))
            stated = {
                key: is_fact_stated(request.text, known[key], self.wording) for key in known if key in request.stated
            }
            turns.append(
                TurnPlan(
                    start=start,
                    stop=stop,
                    goals=tuple(goals),
                    meaning=request.text,
                    opening=opening,
                    intent=request.intent,
                    fresh=tuple(key for key in stated if stated[key]),
                    implied=tuple(key for key in stated if not stated[key]),
                    held=tuple(key for key in keys if key not in writer.stated),
                    asked=request.asked,
                    steps=steps,
                )
            )
        return TaskPlan(grounded, mode, persona, scenario, known, tuple(turns), now, render_clock(state), story)

    def _scripted(self, plan: TaskPlan) -> TaskWording:
        """The plan's own words.

        Raises:
            RecordDropped: They name a tool or a value that only a tool could have told, or lack words for values.
        """
        queries = []
        wordless = find_wordless_values(plan.grounded.calls, self.wording.phrasebook) if plan.story is None else None
        if wordless:
            raise RecordDropped(wordless.reason, wordless.detail)
        rng = random.Random(derive_seed(plan.grounded.seed, "typing"))
        slipped: set[str] = set()
        for turn in plan.turns:
            query = render_query(turn.opening, turn.meaning, plan.persona, plan.known.values(), plan.now, rng, slipped)
            fault = find_tool_mention(query, self.tool_names) or find_leaked_value(
                query, plan.grounded.calls, plan.known.values()
            )
            if fault:
                raise RecordDropped(fault.reason, fault.detail)
            queries.append(query)
        return TaskWording(plan, tuple(queries))

    async def _shown(self, plan: TaskPlan, state: JsonObject, session: Session) -> dict[int, tuple[JsonValue, ...]]:
        """Return what the intermediate steps still show at the end of their turn: candidates of a wider goal."""
        between, calls = find_unrequested_reads(plan), plan.grounded.calls
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
                facts = self._facts(index, call)
                if (
                    again.ok
                    and facts
                    and facts == self._facts(index, call.model_copy(update={"result": again.content}))
                ):
                    shown[index] = facts
        return shown

    def _facts(self, index: int, call: GoldCall) -> tuple[JsonValue, ...]:
        """Return the values that a call's result lets an answer state."""
        info = build_general_info(index, call, "", "", self.wording)
        return tuple(fact.value for fact in fill_facts(info, call, self.wording).facts)

    def _asked(self, words: TaskWording, number: int, written: bool) -> tuple[RequestedInfo, ...]:
        """Return what a turn asks for; where a model has `written` it, with the sentences of its query."""
        turn, calls = words.plan.turns[number], words.plan.grounded.calls
        asked = list(turn.asked)
        if turn.expansion is not None:
            call = calls[turn.expansion]
            wish = derive_request_phrase(self.wording.tools[call.tool])
            info = build_general_info(turn.expansion, call, wish, "", self.wording)
            asked.append(fill_facts(info, call, self.wording))
        if written:
            query = words.queries[number]
            asked = [info.model_copy(update={"question": find_asking_sentence(query, info)}) for info in asked]
            asked = [fill_facts(info, calls[info.call], self.wording) for info in asked]
        return tuple(drop_outdated_facts(info, calls[: turn.stop]) for info in asked)

    def _turn(
        self,
        words: TaskWording,
        number: int,
        asked: tuple[RequestedInfo, ...],
        form_hash: str,
        groups: tuple[int, ...],
    ) -> Turn:
        plan = words.plan
        turn = plan.turns[number]
        stated = plan.stated(number)
        return Turn(
            intent=turn.intent,
            query=words.queries[number],
            known=tuple(plan.known[key].model_copy(update={"stated": key in stated}) for key in plan.needed(turn)),
            gold_calls=plan.grounded.calls[turn.start : turn.stop],
            state_hash=plan.grounded.states[turn.stop - 1],
            form_hash=form_hash,
            answer_facts=tuple(fact.value for fact in list_answer_facts(asked)),
            asked=asked,
            checks=(),
            steps=plan.grounded.steps[turn.start : turn.stop],
            groups=groups,
            refinements=turn.edits,
        )

    async def _proof(
        self, grounded: GroundedChain, state: JsonObject, session: Session, cuts: Sequence[tuple[int, int]]
    ) -> GoldProof:
        """The gold run, made again: it must lead to where grounding said that it leads."""
        turns = [grounded.calls[start:stop] for start, stop in cuts]
        gold = await run_gold(turns, state, session, self.settings.audit.live)
        if await session.state_hash() != grounded.states[-1]:
            raise RecordDropped("gold_not_repeatable", "the same calls led to another state")
        return await GoldProof.of(gold, session)

    def _worded(self, known: UserFact, rng: random.Random, now: date) -> UserFact:
        """The entry with the words in which this user says it."""
        if known.how != "value":
            name = known.slot.split("|")[0]
            return known.model_copy(update={"said": self.wording.describe(name.split(".")[-1], known, rng, now)})
        return known.model_copy(
            update={"said": format_value(self.wording.value(known.key.partition(".")[0], known.slot, known.value, rng))}
        )


def estimate_difficulty(grounded: GroundedChain, turns: Sequence[Turn]) -> float:
    """Estimate difficulty from 0 to 1: calls, values from earlier results, rows to select, facts to ask for."""
    calls = len(grounded.calls)
    flows = [
        source for call in grounded.calls for _, source, _ in iterate_leaves(call) if isinstance(source, FromOutput)
    ]
    picks = {
        build_selector_key(source.call, selector)
        for source in flows
        for selector in source.selectors
        if selector.how != "only"
    }
    held = sum(not entry.stated for turn in turns for entry in turn.known)
    writes = sum(call.effect == "write" for call in grounded.calls)
    return round(min(1.0, 0.04 * calls + 0.02 * len(flows) + 0.04 * len(picks) + 0.04 * held + 0.03 * writes), 3)
