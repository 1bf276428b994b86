"""Labels of the single calls of an accepted trajectory, by making the run again without them.

Base is the run without those calls that can go together. A call is *needed* if that run cannot do without it, too.
The calls that can go are told apart by adding them to it one after the other, in their order, and measuring how far
its results and states are from those that were recorded: a *harmful* call leads away, a *recovering* one leads back, a
*redundant* one does neither. Others ask a model about each step; here the label is what runs show.
"""

from collections.abc import Set as AbstractSet

from trajsmith.environments import Session
from trajsmith.environments.injected_faults import open_turn
from trajsmith.records import EnvironmentFault, JsonObject, JsonValue, StepLabel, Trajectory, canonical_json
from trajsmith.verify.call_removal import find_call_id
from trajsmith.verify.normalized_state import iter_leaves
from trajsmith.verify.pruning import explain_talk_need, is_outcome_equal

OTHER_OUTCOME = "the run without it gives other results or states"
ASKED = "the task asks for it; results, states and words are the same without it"
REFINED = "a search for tools that the next search refines"
LEADS_AWAY = "with it, the run without other calls that can go ends further from the recorded results and states"
LEADS_BACK = "with it, the run comes back to the recorded results and states after an earlier call led away"
NO_DIFFERENCE = (
    "with and without it the run gives the same results and states, and nothing said later rests on it alone"
)

Leaves = frozenset[tuple[bytes, bytes]]


async def label_steps(
    trajectory: Trajectory, removable: AbstractSet[int], asked: AbstractSet[int], state: JsonObject, session: Session
) -> tuple[StepLabel, ...] | None:
    """Return one label per call of the agent, in order; None if the environment broke during a run.

    Args:
        trajectory: An accepted trajectory that replays.
        removable: Events that can go, all of them together, as `find_redundant_calls` gives them.
        asked: Events that make gold calls, or show why a request cannot be met.
        state: Its initial state.
        session: A session of its environment; it is reset.
    """
    try:
        labels = await _label_removable(trajectory, sorted(removable), state, session)
        for index, event in enumerate(trajectory.events):
            if index not in removable and event.actor == "assistant" and find_call_id(trajectory, index) is not None:
                gone = {*removable, index}
                if not await is_outcome_equal(trajectory, gone, state, session):
                    why = OTHER_OUTCOME
                else:
                    why = explain_talk_need(trajectory, gone) or (ASKED if index in asked else REFINED)
                labels[index] = StepLabel(event=index, label="needed", why=why)
    except EnvironmentFault:
        return None
    return tuple(labels[index] for index in sorted(labels))


async def _label_removable(
    trajectory: Trajectory, removable: list[int], state: JsonObject, session: Session
) -> dict[int, StepLabel]:
    """Label calls that can go together by adding them one after the other to the run without them."""
    if not removable:
        return {}
    counterfactual = _Counterfactual(trajectory, frozenset(removable), state, session)
    await counterfactual.record()
    labels: dict[int, StepLabel] = {}
    before = 0
    for number, index in enumerate(removable):
        after = await counterfactual.measure(set(removable[: number + 1]))
        if after > before or (after == before > 0 and await counterfactual.measure({index})):
            labels[index] = StepLabel(event=index, label="harmful", why=LEADS_AWAY)
        elif after < before:
            labels[index] = StepLabel(event=index, label="recovering", why=LEADS_BACK)
        else:
            labels[index] = StepLabel(event=index, label="redundant", why=NO_DIFFERENCE)
        before = after
    return labels


class _Counterfactual:
    """Runs of a trajectory with some of its removable calls, and their distance from the recorded run."""

    def __init__(self, trajectory: Trajectory, removable: frozenset[int], state: JsonObject, session: Session) -> None:
        self.trajectory, self.removable, self.state, self.session = trajectory, removable, state, session
        self.recorded: list[Leaves] = []

    async def record(self) -> None:
        """Keep the states after the turns of the whole run."""
        _, self.recorded = await self._run(self.removable)

    async def measure(self, remaining: AbstractSet[int]) -> int:
        """Return the number of other results and of other leaves of the states after the turns; 0 if none differs.

        Args:
            remaining: The removable calls that are made.
        """
        results, states = await self._run(remaining)
        return results + sum(len(one ^ other) for one, other in zip(states, self.recorded, strict=True))

    async def _run(self, remaining: AbstractSet[int]) -> tuple[int, list[Leaves]]:
        """Return how many calls that stay give another result, and the leaves of the state after each turn."""
        differing, done, states = 0, 0, list[Leaves]()
        await self.session.reset(self.state)
        for number, span in enumerate(self.trajectory.turns):
            open_turn(self.session, number)
            while done < len(self.trajectory.events) and self.trajectory.events[done].message < span.stop:
                event = self.trajectory.events[done]
                if event.reached and (done not in self.removable or done in remaining):
                    result = await self.session.call(event.tool, event.arguments, event.actor)
                    same = result.ok == event.ok and result.hash == event.result_hash
                    differing += not same and done not in self.removable
                done += 1
            states.append(_freeze_leaves(await self.session.snapshot()))
        return differing, states


def _freeze_leaves(state: JsonValue) -> Leaves:
    return frozenset((canonical_json(list(path)), canonical_json(value)) for path, value in iter_leaves(state, ()))
