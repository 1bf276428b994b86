"""Grounding: a chain is run for real, with arguments found by search, before any sentence is written.

Depth-first over the steps of the chain. A step's arguments are drawn until a call succeeds (a read returns something, a
write changes the state). When a step cannot be satisfied, the search jumps back to the latest step that gave it a
value (conflict-directed backjumping) and takes another row, person or date there. A step that stays hopeless is left
out with everything that hangs on it.
"""

import random
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import Field, NonNegativeInt, PositiveInt

from chatmodel import Phrasebook
from environments import Session, ToolResult
from grounding.assign import Assigner, Assignment, Context
from grounding.known import collect_known, said_in
from grounding.rewind import rewindable
from grounding.values import ValuePool
from trajectory import Chain, Dropped, EnvironmentSpec, Frozen, GoldCall, GroundedChain, JsonObject, derive_seed


class GroundSettings(Frozen):
    """How hard the search tries."""

    tries: PositiveInt = 10
    """Argument sets per step before it counts as hopeless."""
    jumps: NonNegativeInt = 24
    """Jumps back per chain."""
    jumps_per_step: NonNegativeInt = 6
    budget: PositiveInt = 120
    """Calls per chain."""
    optional: float = Field(0.35, ge=0, le=1)
    """Probability that an optional argument is given."""
    min_calls: PositiveInt = 3
    """A chain with fewer calls left is dropped."""


@dataclass
class Frame:
    """One step that has been called, or is being tried."""

    step: int
    mark: Any
    """Checkpoint from before the step."""
    conflict: set[int] = field(default_factory=set)
    """Steps whose choice this one depends on."""
    tries: int = 0
    tried: set[str] = field(default_factory=set)
    blamed_by: int | None = None
    """Step for whose sake this one is tried again; if nothing new is found here, that step is hopeless."""
    call: GoldCall | None = None
    state: str = ""


class Grounder:
    """Grounds chains of one environment on one initial state."""

    def __init__(
        self, spec: EnvironmentSpec, state: JsonObject, phrasebook: Phrasebook, settings: GroundSettings
    ) -> None:
        self.spec = spec
        self.state = state
        self.settings = settings
        self.tools = {tool.name: tool for tool in spec.tools}
        self.assigner = Assigner(self.tools, ValuePool(state), phrasebook, settings.optional)
        self.phrasebook = phrasebook

    async def ground(self, chain: Chain, session: Session) -> GroundedChain:
        """Run a chain; the session is reset first.

        Raises:
            Dropped: Too few steps of the chain could be called.
            EnvironmentFault: The environment broke.
        """
        return await _Search(self, chain, session).run()


class _Search:
    def __init__(self, grounder: Grounder, chain: Chain, session: Session) -> None:
        self.grounder = grounder
        self.settings = grounder.settings
        self.chain = chain
        self.session = rewindable(session)
        self.rng = random.Random(derive_seed(chain.seed, "ground"))
        self.frames: list[Frame] = []
        self.skipped: list[int] = []
        self.hopeless: set[int] = set()
        self.attempts = 0
        self.jumps: dict[int, int] = defaultdict(int)
        self.sources: dict[int, dict[str, list[tuple[int, str]]]] = defaultdict(lambda: defaultdict(list))
        self.producers = {dependency.producer for dependency in chain.dependencies}
        for dependency in chain.dependencies:
            self.sources[dependency.consumer][dependency.parameter].append((dependency.producer, dependency.output))

    async def run(self) -> GroundedChain:
        await self.session.reset(self.grounder.state)
        initial = before = await self.session.state_hash()
        step = 0
        frame: Frame | None = None
        while step < len(self.chain.tools) and self.attempts < self.settings.budget:
            frame = frame or Frame(step, await self.session.checkpoint())
            before = self.frames[-1].state if self.frames else initial
            if step not in self.hopeless and await self._advance(frame, before):
                self.frames.append(frame)
                step, frame = step + 1, None
            elif frame.blamed_by is not None:
                self.hopeless.add(frame.blamed_by)
                frame.blamed_by, frame.tries = None, 0
                frame.tried.clear()
            elif self._may_jump(frame):
                frame = await self._jump(frame)
                step = frame.step
            else:
                self.skipped.append(step)
                step, frame = step + 1, None
        return self._result(initial)

    def _may_jump(self, frame: Frame) -> bool:
        """A jump must be able to help, and leave enough of the budget to make the calls again."""
        return (
            bool(frame.conflict)
            and frame.step not in self.hopeless
            and self.jumps[frame.step] < self.settings.jumps_per_step
            and sum(self.jumps.values()) < self.settings.jumps
            and self.attempts < self.settings.budget * 0.6
        )

    async def _jump(self, failed: Frame) -> Frame:
        """Undo everything back to the latest step that the failed one depends on, and return that step's frame."""
        self.jumps[failed.step] += 1
        target = max(failed.conflict)
        while self.frames[-1].step != target:
            self.frames.pop()
        frame = self.frames.pop()
        frame.conflict |= {step for step in failed.conflict if step < target}
        frame.call, frame.tries, frame.blamed_by = None, 0, failed.step
        self.skipped = [step for step in self.skipped if step < target]
        await self.session.rollback(frame.mark)
        return frame

    async def _advance(self, frame: Frame, before: str) -> bool:
        """Try argument sets until one call is good."""
        tool = self.chain.tools[frame.step]
        index = {made.step: number for number, made in enumerate(self.frames)}
        sources = {
            leaf: [(index[producer], path) for producer, path in found if producer in index]
            for leaf, found in self.sources[frame.step].items()
        }
        frame.conflict |= {self.frames[number].step for found in sources.values() for number, _ in found}
        calls = [made.call for made in self.frames if made.call is not None]
        context = Context(calls, said_in(calls))
        plan = self.grounder.assigner.plan(tool, sources, context, self.rng, frame.step in self.producers)
        while plan.possible and frame.tries < self.settings.tries and self.attempts < self.settings.budget:
            frame.tries += 1
            assignment = plan.draw(self.rng)
            signature = repr(sorted(assignment.arguments.items()))
            if signature in frame.tried:
                continue
            frame.tried.add(signature)
            if await self._try(frame, tool, assignment, before):
                return True
            plan.blame(assignment)
        return False

    async def _try(self, frame: Frame, tool: str, assignment: Assignment, before: str) -> bool:
        spec = self.grounder.tools[tool]
        self.attempts += 1
        result = await self.session.call(tool, assignment.arguments, spec.actor)
        if not result.ok:
            return False
        after = await self.session.state_hash()
        changed = after != before
        if not _is_good(spec.annotations.read_only_hint, changed, result):
            if changed:
                await self.session.rollback(frame.mark)
            return False
        frame.state = after
        frame.call = GoldCall(
            tool=tool,
            actor=spec.actor,
            arguments=assignment.arguments,
            provenance=assignment.provenance,
            effect="write" if changed else "read",
            result=result.content,
        )
        return True

    def _result(self, initial: str) -> GroundedChain:
        calls = tuple(frame.call for frame in self.frames if frame.call is not None)
        if len(calls) < self.settings.min_calls:
            missing = ", ".join(self.chain.tools[step] for step in self.skipped[:4])
            raise Dropped(
                "too_few_calls", f"{len(calls)} of {len(self.chain.tools)} tools could be called; not: {missing}"
            )
        return GroundedChain(
            chain_id=self.chain.id,
            environment=self.chain.environment,
            initial_state=self.chain.state,
            calls=calls,
            states=tuple(frame.state for frame in self.frames),
            known=collect_known(calls, self.grounder.tools, self.grounder.phrasebook),
            skipped=tuple(self.chain.tools[step] for step in self.skipped),
            attempts=self.attempts,
            seed=self.chain.seed,
        )


def _is_good(reads: bool | None, changed: bool, result: ToolResult) -> bool:
    """A read returns something, a write changes something; a tool that does not say which it is does either."""
    if reads is None:
        return changed or not is_empty(result)
    return not is_empty(result) if reads else changed


def is_empty(result: ToolResult) -> bool:
    """True if a result holds nothing: an empty text or list, null, or an object of only such."""
    return _holds_nothing(result.content)


def _holds_nothing(content: Any) -> bool:
    if isinstance(content, Mapping):
        return all(_holds_nothing(value) for value in content.values())
    return content in (None, "", [])
