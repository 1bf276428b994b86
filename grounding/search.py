"""Grounding: a chain is run for real, with arguments found by search, before any sentence is written.

Depth-first over the steps of the chain. A step's arguments are drawn until a call succeeds (a read returns something, a
write changes the state). When a step cannot be satisfied, the search jumps back to the latest step that gave it a
value (conflict-directed backjumping) and takes another row, person or date there. A step that stays hopeless is left
out with everything that hangs on it.
"""

import random
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from operator import eq
from typing import Any, Protocol

from trajsmith.environments import ToolResult
from trajsmith.grounding.assign import ArgumentPlan, Assigner, Assignment, AssignmentContext
from trajsmith.grounding.constraints import StepCall, StepConstraints
from trajsmith.grounding.contradictions import ExecutedWrite, find_contradiction, list_changes, sets_what_is_there
from trajsmith.grounding.fields import SchemaField
from trajsmith.grounding.lessons import Lessons
from trajsmith.grounding.lookups import remove_trailing_lookups, remove_unused_lookups
from trajsmith.grounding.plan import Option
from trajsmith.grounding.rewind import Rewindable
from trajsmith.grounding.settings import GroundSettings
from trajsmith.grounding.user_facts import collect_user_values
from trajsmith.phrasing import Scenario, ScenarioStep, iterate_rows
from trajsmith.records import Chain, EnvironmentFault, GoldCall, JsonObject, ToolSpec


class SearchContext(Protocol):
    """Interface that a search needs from its grounder."""

    @property
    def state(self) -> JsonObject: ...
    @property
    def settings(self) -> GroundSettings: ...
    @property
    def tools(self) -> dict[str, ToolSpec]: ...
    @property
    def assigner(self) -> Assigner: ...


@dataclass
class SearchFrame:
    """One step that has been called, or is being tried."""

    step: int
    mark: Any
    """Checkpoint from before the step."""
    conflict: set[int] = field(default_factory=set)
    """Steps whose choice this one depends on."""
    tried: set[bytes] = field(default_factory=set)
    blamed_by: int | None = None
    """Step for whose sake this one is tried again; if nothing new is found here, that step is hopeless."""
    call: GoldCall | None = None
    leaves: dict[str, Any] = field(default_factory=dict)
    state: str = ""
    write: ExecutedWrite | None = None
    """Of a write: what it changed."""
    constraints: StepConstraints | None = None
    """Of a step of a scenario."""
    redundant: bool = False
    """Of a call that only reads: an earlier one shows the same."""


@dataclass
class StepFailure:
    """Why a step was left out."""

    step: int
    tool: str
    unmet: list[str] = field(default_factory=list)
    """Required leaves that had no value."""
    refusals: list[str] = field(default_factory=list)
    """What the refusals of its calls said, each once, the latest last."""
    fruitless: int = 0
    """Calls that succeeded, but returned or changed nothing."""
    constraint: str = ""
    """Constraint of the scenario that left no value: "same_as account_id"."""
    repeated: bool = False
    """True if a call showed nothing but what an earlier one had shown."""
    contradictions: list[str] = field(default_factory=list)
    """How calls that succeeded contradicted earlier ones."""


@dataclass(frozen=True)
class ChainDraft:
    """A chain as it is searched: as asked for, or with tools that were put before steps that failed."""

    chain: Chain
    helps: tuple[tuple[int, int], ...] = ()
    """(step, step that was put before it for its sake)."""
    scenario: Scenario | None = None
    """Scenario that the chain tells."""

    def get_step(self, number: int) -> ScenarioStep | None:
        """Return the scenario's step that a tool of the chain is; None for look-ups and outside of scenarios."""
        if self.scenario is None or number >= len(self.chain.steps):
            return None
        return self.scenario.find_step(self.chain.steps[number])


class GroundingSearch:
    """One search: the steps of one chain on one session."""

    def __init__(
        self,
        ground: SearchContext,
        draft: ChainDraft,
        session: Rewindable,
        lessons: Lessons,
        budget: int,
        rng: random.Random,
    ) -> None:
        self.ground = ground
        self.settings = ground.settings
        self.draft, self.chain = draft, draft.chain
        self.session = session
        self.lessons = lessons
        self.budget = budget
        self.rng = rng
        self.frames: list[SearchFrame] = []
        self.skipped: list[int] = []
        self.failures: dict[int, StepFailure] = {}
        self.hopeless: set[int] = set()
        self.attempts = self.faults = 0
        self.initial = ""
        self._snapshots: dict[str, JsonObject] = {}
        """State by hash, of the states that writes led to."""
        self.jumps: dict[int, int] = defaultdict(int)
        self.sources: dict[int, dict[str, list[tuple[int, str]]]] = defaultdict(lambda: defaultdict(list))
        self.producers = {dependency.producer for dependency in self.chain.dependencies}
        for dependency in self.chain.dependencies:
            self.sources[dependency.consumer][dependency.parameter].append((dependency.producer, dependency.output))

    async def run(self) -> None:
        """Make the calls; `frames` holds them, `failures` why others could not be made.

        Raises:
            EnvironmentFault: The environment broke more often than the settings allow.
        """
        await self.session.reset(self.ground.state)
        self.initial = before = await self.session.state_hash()
        self._snapshots[self.initial] = await self.session.snapshot()
        step = 0
        frame: SearchFrame | None = None
        while step < len(self.chain.tools) and self.attempts < self.budget:
            frame = frame or SearchFrame(step, await self.session.checkpoint())
            before = self.frames[-1].state if self.frames else self.initial
            if step not in self.hopeless and await self._advance(frame, before):
                self.frames.append(frame)
                if self.draft.get_step(step) is not None:
                    remove_unused_lookups(self.frames, self.draft)
                step, frame = step + 1, None
            elif frame.blamed_by is not None and self.draft.scenario is not None and self._may_jump(frame):
                frame = await self._jump(frame)  # the choice before may be wrong: a customer who has no such card
                step = frame.step
            elif frame.blamed_by is not None:
                self.hopeless.add(frame.blamed_by)
                frame.blamed_by = None
                frame.tried.clear()
            elif self._may_jump(frame):
                frame = await self._jump(frame)
                step = frame.step
            else:
                self.skipped.append(step)
                step, frame = step + 1, None
        if self.draft.scenario is not None:
            remove_trailing_lookups(self.frames, self.draft)
        grounded = {frame.step for frame in self.frames}
        self.skipped = [step for step in range(len(self.chain.tools)) if step not in grounded]
        self._record_successes()

    def _may_jump(self, frame: SearchFrame) -> bool:
        """A jump must be able to help, and leave enough of the budget to make the calls again."""
        return (
            bool(frame.conflict)
            and not frame.redundant
            and frame.step not in self.hopeless
            and self.jumps[frame.step] < self.settings.jumps_per_step
            and sum(self.jumps.values()) < self.settings.jumps
            and self.attempts < self.budget * 0.6
        )

    async def _jump(self, failed: SearchFrame) -> SearchFrame:
        """Undo everything back to the latest step that the failed one depends on, and return that step's frame."""
        self.jumps[failed.step] += 1
        target = max(failed.conflict)
        while self.frames[-1].step != target:
            self.frames.pop()
        frame = self.frames.pop()
        frame.conflict |= {step for step in failed.conflict if step < target}
        frame.call, frame.blamed_by = None, failed.step if failed.blamed_by is None else failed.blamed_by
        self.skipped = [step for step in self.skipped if step < target]
        await self.session.rollback(frame.mark)
        return frame

    async def _advance(self, frame: SearchFrame, before: str) -> bool:
        """Try argument sets until one call is good."""
        tool = self.chain.tools[frame.step]
        index = {done.step: number for number, done in enumerate(self.frames)}
        sources = {
            leaf: [(index[producer], path) for producer, path in sources_of_leaf if producer in index]
            for leaf, sources_of_leaf in self.sources[frame.step].items()
        }
        frame.conflict |= {
            self.frames[number].step for sources_of_leaf in sources.values() for number, _ in sources_of_leaf
        }
        frame.conflict |= {helper for step, helper in self.draft.helps if step == frame.step and helper in index}
        calls = self.calls()
        context = AssignmentContext(calls, collect_user_values(calls))
        failure = self.failures.setdefault(frame.step, StepFailure(frame.step, tool))
        step = self.draft.get_step(frame.step)
        looks_up = frame.step in self.producers and step is None
        frame.constraints = constraints = None
        if step is not None:
            words = partial(self.ground.assigner.list_row_words, calls=calls)
            frame.constraints = constraints = StepConstraints(
                step, self._list_step_calls(), words, calls, self.ground.assigner.values.now.date()
            )
        if constraints is not None and constraints.missing:
            failure.constraint = constraints.missing
            return False
        rows = constraints.rows if constraints is not None else None
        plan = self.ground.assigner.plan(tool, sources, context, self.rng, looks_up, self.lessons, rows)
        identity = self.ground.assigner.identity
        foreign = identity.list_foreign_values(calls)
        for path in (*plan.required, *plan.optional) if foreign else ():
            plan.restrict(path, lambda value: not isinstance(value, str) or value not in foreign)
        same_user = identity.find_look_up(calls, tool)
        if same_user is not None:
            for path, value in same_user.arguments.items():
                plan.restrict(path, partial(eq, value))
        if self.draft.scenario is not None and step is None:
            plan.leave_out(list(plan.optional))  # what narrows a look-up down has to be said, and is not the story
        elif step is not None or not looks_up:
            self._limit_to_words(plan, step, [path for path in plan.optional if sources.get(path)])
        if constraints is not None and not self._constrain(frame, plan, constraints, context, failure):
            return False
        tries, wide = (
            number // 2 if self.draft.helps else number for number in (self.settings.tries, self.settings.wide)
        )
        again = self.settings.guess and frame.blamed_by is not None
        if looks_up:
            plan.alone = 0.0
        if not again and await self._draws(frame, plan, before, failure, max(tries, 1)):
            return True
        if looks_up and plan.optional and not plan.required:
            plan.alone = 1.0  # some lists show nothing without a filter
            if not again and await self._draws(frame, plan, before, failure, max(tries, 1)):
                return True
        if wide and self._worth_a_second_look(plan, failure):
            self.ground.assigner.widen(plan, sources, context, self.rng, self.settings.guess)
            if await self._draws(frame, plan, before, failure, wide):
                return True
        failure.unmet = plan.unmet
        return False

    def _limit_to_words(self, plan: ArgumentPlan, step: ScenarioStep | None, linked: Sequence[str]) -> None:
        """Leave a goal the optional arguments that one of its sentences names; `linked` are those of earlier calls."""
        if step is None:
            plan.limit_to_sentences(self.ground.assigner.list_texts(plan.tool), linked, self.rng)
            return
        texts = step.texts if step.has_words else self.ground.assigner.list_texts(plan.tool)
        plan.limit_to_story(texts, (*step.arguments, *step.same_as), self.rng)

    def _list_step_calls(self) -> dict[str, StepCall]:
        """The scenario's steps that were called, by name."""
        calls: dict[str, StepCall] = {}
        for number, frame in enumerate(self.frames):
            step = self.draft.get_step(frame.step)
            if step is not None and frame.call is not None:
                calls[step.name] = StepCall(number, frame.call)
        return calls

    def _constrain(
        self,
        frame: SearchFrame,
        plan: ArgumentPlan,
        constraints: StepConstraints,
        context: AssignmentContext,
        failure: StepFailure,
    ) -> bool:
        """Bind what the scenario's step asks for; False if nothing satisfies it."""
        assigner = self.ground.assigner

        def says(leaf: SchemaField, value: Any) -> Option:
            return assigner.build_user_option(plan.tool, leaf, value, context)

        fields = assigner.fields[plan.tool]
        failure.constraint, used = constraints.apply(plan, fields, says, self.rng)
        used |= {constraints.calls[reference.split(".")[0]].index for reference in constraints.step.where_same.values()}
        frame.conflict |= {self.frames[number].step for number in used}
        return not failure.constraint

    async def _examine_write(self, tool: str, call: GoldCall) -> tuple[ExecutedWrite, str | None]:
        """Return what a write changed, and how that contradicts what was done before."""
        helpers = {helper for _, helper in self.draft.helps}  # what was put in to make this possible is not undone
        earlier = [one.write for one in self.frames if one.write is not None and one.step not in helpers]
        before = self._snapshots[self.frames[-1].state if self.frames else self.initial]
        after = await self.session.snapshot()
        write = ExecutedWrite(call, list_changes(before, after))
        assigner, scenario = self.ground.assigner, self.draft.scenario
        self._snapshots[await self.session.state_hash()] = after
        if scenario is not None and scenario.change_of_mind:
            return write, None
        destructive = assigner.is_destructive(tool)
        today = assigner.values.now.date()
        contradiction = find_contradiction(write, earlier, scenario is not None, destructive, today)
        required = self.ground.tools[tool].required
        if contradiction is None and scenario is None and sets_what_is_there(write, before, required):
            contradiction = "no_change"
        return write, contradiction

    def _worth_a_second_look(self, plan: ArgumentPlan, failure: StepFailure) -> bool:
        return self.settings.guess or not plan.possible or self.lessons.has_hints(plan.tool)

    async def _draws(
        self, frame: SearchFrame, plan: ArgumentPlan, before: str, failure: StepFailure, tries: int
    ) -> bool:
        """Draw argument sets until a call is good, or as often as allowed; the same set is called once."""
        for assignment in plan.draw_untried(self.rng, frame.tried, tries):
            if self.attempts >= self.budget:
                return False
            if await self._try(frame, plan.tool, assignment, before, failure):
                return True
        return False

    async def _try(
        self, frame: SearchFrame, tool: str, assignment: Assignment, before: str, failure: StepFailure
    ) -> bool:
        spec = self.ground.tools[tool]
        if self.draft.scenario is not None and self.draft.get_step(frame.step) is None:
            frame.redundant = any(call.tool == tool and call.arguments == assignment.arguments for call in self.calls())
            if frame.redundant:
                return False
        self.attempts += 1
        try:
            result = await self.session.call(tool, assignment.arguments, spec.actor)
        except EnvironmentFault:
            self.faults += 1
            if self.faults > self.settings.faults:
                raise
            await self.session.rollback(frame.mark)
            return False
        if not result.ok:
            self._refused(tool, assignment, result, failure)
            if result.error == "refused" and await self.session.state_hash() != before:
                await self.session.rollback(frame.mark)  # foreign tools may have begun before they refused
            return False
        after = await self.session.state_hash()
        changed = after != before
        if not _is_good(spec.annotations.read_only_hint, changed, result):
            failure.fruitless += 1
            self.lessons.record_failure(tool, assignment.leaves)
            if changed:
                await self.session.rollback(frame.mark)
            return False
        call = assignment.as_call(spec, changed, result.content)
        if self.ground.assigner.identity.is_another(call, self.calls()):
            return False
        if not changed and self._is_known(tool, result.content):
            frame.redundant = True
            failure.repeated = True
            return False
        frame.write = None
        if changed:
            frame.write, contradiction = await self._examine_write(tool, call)
            if contradiction is not None:
                failure.contradictions.append(contradiction)
                await self.session.rollback(frame.mark)
                return False
        unmet = frame.constraints.find_unmet(result.content) if frame.constraints is not None else ""
        if unmet:
            failure.constraint = unmet
            if changed:
                await self.session.rollback(frame.mark)
            return False
        frame.state, frame.leaves, frame.call = after, assignment.leaves, call
        return True

    def _is_known(self, tool: str, content: Any) -> bool:
        """Return whether an earlier call showed the same: one of this tool, or one that gave the very same object.

        Outside of stories, the object may also be a row of a list, and so may all rows of a list that was read before:
        who has read them does not look them up again.
        """
        record = content if isinstance(content, Mapping) and len(content) > 2 else None
        rows = [row for row in iterate_rows(content) if row is not content] if record is None else []

        def is_shown(call: GoldCall) -> bool:
            if record is not None and call.tool != tool:
                return call.result == record or self._lists(call.result, record)
            is_listed = bool(rows) and call.effect == "read" and all(self._lists(call.result, row) for row in rows)
            return is_listed or (call.tool == tool and call.result == content)

        return any(map(is_shown, self.calls()))

    def _lists(self, result: Any, record: Mapping[str, Any]) -> bool:
        """Return whether a result has all of a record among its rows; a story says itself what is looked up."""
        return self.draft.scenario is None and any(
            all(name in row and row[name] == value for name, value in record.items()) for row in iterate_rows(result)
        )

    def _refused(self, tool: str, assignment: Assignment, result: ToolResult, failure: StepFailure) -> None:
        text = get_refusal_text(result)
        if text not in failure.refusals:
            if failure.refusals and self.draft.helps:
                self._record_successes()  # it was refused for another reason: what was done before it has helped
            failure.refusals.append(text)
        self.lessons.record_refusal(tool, text, self.ground.assigner.fields[tool], assignment.leaves)
        self.lessons.record_failure(tool, assignment.leaves)

    def calls(self) -> list[GoldCall]:
        """The calls that were made, in order."""
        return [frame.call for frame in self.frames if frame.call is not None]

    def _record_successes(self) -> None:
        """Record the values that worked, to be tried first in later searches."""
        for frame in self.frames:
            self.lessons.record_success(self.chain.tools[frame.step], frame.leaves)


def _is_good(reads: bool | None, changed: bool, result: ToolResult) -> bool:
    """A read returns something, a write changes something; a tool that does not say which it is does either."""
    if reads is None:
        return changed or not is_empty(result)
    return not is_empty(result) if reads else changed


def is_empty(result: ToolResult) -> bool:
    """Return whether a result holds nothing: an empty text or list, null, or an object of only such."""
    return _holds_nothing(result.content)


def get_refusal_text(result: ToolResult) -> str:
    """Return the message of a refusal, without its wrapper."""
    content = result.content
    texts = (
        [content.get(key) for key in ("error", "message", "reason", "detail")] if isinstance(content, Mapping) else ()
    )
    return next((text for text in texts if isinstance(text, str) and text), result.text)


def _holds_nothing(content: Any) -> bool:
    if isinstance(content, Mapping):
        return all(_holds_nothing(value) for value in content.values())
    return content in (None, "", [])
