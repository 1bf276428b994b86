"""Grounding of goals: a call that meets the goal, the look-ups that a user needs to ask for it, and pruning."""

import random
from collections.abc import Sequence

from pydantic import PositiveInt

from trajsmith.environments import Session
from trajsmith.grounding import Grounder, Rewindable, is_identifier, iterate_leaves, make_rewindable
from trajsmith.phrasing import Scenario, ScenarioBook, ScenarioStep
from trajsmith.querygen.state_first.edits import StateEdit
from trajsmith.querygen.state_first.goals import StateGoal, draw_goal
from trajsmith.querygen.state_first.proposals import StateProposal, StateProposer, validate_proposal
from trajsmith.querygen.state_first.row_links import RowLinks
from trajsmith.querygen.state_first.solver import solve_goal
from trajsmith.records import (
    Chain,
    FromOutput,
    FrozenModel,
    GoldCall,
    GroundedChain,
    JsonObject,
    RecordDropped,
    content_hash,
    derive_seed,
)
from trajsmith.toolgraph import Sampler

_GOAL = "goal"


class StateFirstSettings(FrozenModel):
    """Settings of tasks that start from a change of the state."""

    tries: PositiveInt = 16
    """Goals that are drawn for one task until a solver meets one."""
    edits: PositiveInt = 3
    """Calls of each tool from which the changes of an environment are learnt."""
    proposals: PositiveInt = 3
    """Proposals of a model for one task until one fits; only with a model as `proposer`."""


async def ground_goal(
    chain: Chain,
    edits: Sequence[StateEdit],
    grounder: Grounder,
    sampler: Sampler,
    session: Session,
    settings: StateFirstSettings,
) -> GroundedChain:
    """Draw a goal on the chain's state and find the calls that meet it.

    Args:
        chain: Names environment, state and seed; it has no tools.
        edits: Changes that the environment allows, learnt on another state.
        grounder: Grounder of the chain's state.
        sampler: Draws the look-ups that lead to a call.
        session: A session of the environment.
        settings: How often is tried.

    Raises:
        RecordDropped: No goal could be drawn, or no solver met one that was.
        EnvironmentFault: The environment broke.
    """
    place, reasons, links = make_rewindable(session), list[str](), RowLinks(grounder.state)
    for number in range(settings.tries):
        rng = random.Random(derive_seed(chain.seed, "goal", number))
        goal = draw_goal(edits, links, rng)
        if goal is None:
            raise RecordDropped("no_goal", f"{chain.environment}: no change that was learnt fits this state")
        try:
            return await _ground_one(chain, goal, grounder, links, sampler, place, rng)
        except RecordDropped as drop:
            reasons.append(drop.reason)
    raise RecordDropped(max(sorted(set(reasons)), key=reasons.count), f"{settings.tries} goals were tried")


async def ground_proposal(
    chain: Chain,
    proposer: StateProposer,
    grounder: Grounder,
    sampler: Sampler,
    session: Session,
    settings: StateFirstSettings,
) -> tuple[GroundedChain, JsonObject]:
    """Let a model propose records and a goal, and find the calls that meet it on the state with these records.

    Args:
        chain: Names environment, state and seed; it has no tools.
        proposer: Asks the model.
        grounder: Grounder of the chain's state.
        sampler: Draws the look-ups that lead to a call.
        session: A session of the environment.
        settings: How often is tried.

    Returns:
        The grounded chain, and the state that it starts from.

    Raises:
        RecordDropped: No proposal fitted; the reason is that of most of them.
        ModelFault: The model gives no usable answer.
        EnvironmentFault: The environment broke.
    """
    earlier, reasons = list[tuple[StateProposal, str]](), list[str]()
    for number in range(settings.proposals):
        proposal = await proposer.propose(chain, grounder.state, earlier)
        try:
            state, goal = await validate_proposal(proposal, grounder, session)
            own = Grounder(grounder.spec, state, grounder.phrasebook, grounder.settings, grounder.givers)
            asked = chain.model_copy(update={"state": content_hash(state)})
            rng = random.Random(derive_seed(chain.seed, "proposal", number))
            grounded = await _ground_one(asked, goal, own, RowLinks(state), sampler, make_rewindable(session), rng)
            return grounded, state
        except RecordDropped as drop:
            reasons.append(drop.reason)
            earlier.append((proposal, str(drop)))
    raise RecordDropped(max(sorted(set(reasons)), key=reasons.count), earlier[-1][1])


async def _ground_one(
    chain: Chain,
    goal: StateGoal,
    grounder: Grounder,
    links: RowLinks,
    sampler: Sampler,
    session: Rewindable,
    rng: random.Random,
) -> GroundedChain:
    """Find a call that meets the goal, and its look-ups by the search that grounds chains."""
    call = await solve_goal(goal, grounder, links, session, rng)
    if call is None:
        raise RecordDropped("goal_not_met", "no single call of a tool leads to this change")
    step = ScenarioStep(tool=call.tool, id=_GOAL, arguments={name: (call.arguments[name],) for name in call.fixed})
    scenario = Scenario(id=_GOAL, motives=(_GOAL,), steps=(step,))
    drawn = sampler.draw_lead_up(scenario, rng, chain.environment)
    if drawn is None:
        raise RecordDropped("goal_not_reachable", f"no look-ups lead to {call.tool}")
    tools, steps, dependencies = drawn
    asked = chain.model_copy(
        update={
            "tools": tuple(tools), "steps": tuple(steps), "dependencies": tuple(dependencies), "scenario": _GOAL,
            "seed": derive_seed(chain.seed, "calls", rng.randrange(1 << 30)),
        }
    )  # fmt: skip
    meant = [str(value) for name, value in call.arguments.items() if is_identifier(name)]
    rows = links.list_linked([text for text in (goal.key, *meant) if text])
    grounded = await grounder.derive(scenarios=ScenarioBook(scenarios=(scenario,)), rows=rows).ground(asked, session)
    if grounded.calls[-1].effect != "write":
        raise RecordDropped("goal_not_met", "the search ends with a look-up")
    calls = await prune_calls(grounded.calls, goal, grounder, session)
    if len(calls) < len(grounded.calls):
        raise RecordDropped("goal_with_needless_calls", f"{len(grounded.calls) - len(calls)} calls are not needed")
    content = grounded.model_dump(exclude={"id", "chain_id", "scenario", "steps", "source", "goal", "seed"})
    return GroundedChain(**content, chain_id=chain.id, source=chain.source, goal=goal.model_dump(), seed=chain.seed)


async def prune_calls(
    calls: Sequence[GoldCall], goal: StateGoal, grounder: Grounder, session: Rewindable
) -> list[GoldCall]:
    """Return the calls without which the goal is not met, or which later arguments come from.

    Raises:
        RecordDropped: The calls do not meet the goal.
        EnvironmentFault: The environment broke.
    """
    if not await _meets(calls, goal, grounder, session):
        raise RecordDropped("goal_not_met", "the calls of the search end in another state")
    used = {source.call for call in calls for _, source, _ in iterate_leaves(call) if isinstance(source, FromOutput)}
    return [
        call for number, call in enumerate(calls)
        if number in used or not await _meets([*calls[:number], *calls[number + 1 :]], goal, grounder, session)
    ]  # fmt: skip


async def _meets(calls: Sequence[GoldCall], goal: StateGoal, grounder: Grounder, session: Rewindable) -> bool:
    await session.reset(grounder.state)
    initial = await session.snapshot()
    for call in calls:
        await session.call(call.tool, call.arguments, call.actor)
    return goal.holds(initial, await session.snapshot())
