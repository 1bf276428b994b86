"""Grounding of program sources: from an empty chain that names a source to executed calls."""

from trajsmith.environments import Session
from trajsmith.grounding import Grounder
from trajsmith.grounding.user_facts import collect_user_facts
from trajsmith.phrasing import humanize
from trajsmith.querygen.parallel_calls import do_calls_commute
from trajsmith.querygen.programs.composition import ComposedProgram, ProgramComposer, ProgramSettings
from trajsmith.records import Chain, GroundedChain, JsonObject, RecordDropped, UserFact


async def ground_program(
    chain: Chain, grounder: Grounder, session: Session, settings: ProgramSettings
) -> GroundedChain:
    """Compose a program on the chain's state and run it.

    Raises:
        RecordDropped: The environment has no tables, or nothing that was tried could be proved.
        EnvironmentFault: The environment broke.
    """
    composer = ProgramComposer(grounder, session, settings.for_source(chain.source), chain.seed)
    composed = await composer.compose()
    hashes = await composer.runner.replay_states(composed.run.calls)
    if hashes is None:
        raise RecordDropped("gold_not_repeatable", "a call of the program is refused when it is made again")
    calls = tuple(composed.run.calls)
    last = len(calls) - composed.run.writes  # a program reads before it writes
    joined = (*composed.groups[:last], *composed.groups[last : last + 1] * composed.run.writes)
    if joined != composed.groups and await do_calls_commute(calls, joined, grounder.state, session, chain.seed):
        composed.run.groups = list(joined)
    return GroundedChain(
        chain_id=chain.id,
        environment=chain.environment,
        initial_state=chain.state,
        calls=calls,
        states=tuple(hashes),
        known=(
            *collect_user_facts(composed.program.opening, grounder.tools, grounder.phrasebook),
            *_list_facts(composed),
        ),
        attempts=len(calls),
        seed=chain.seed,
        source=chain.source,
        program=composed.model_dump(mode="json", exclude={"run": {"calls"}}),
    )


def load_composed(grounded: GroundedChain) -> ComposedProgram:
    """Read the program of a grounded chain."""
    content: JsonObject = dict(grounded.program or {})
    composed = ComposedProgram.model_validate(content)
    return composed.model_copy(update={"run": composed.run.model_copy(update={"calls": list(grounded.calls)})})


def _list_facts(composed: ComposedProgram) -> list[UserFact]:
    """List what the user says of fixed arguments: those of the writes, and those of the list."""
    write, spoken_values = composed.program.write, composed.words.spoken_values
    fixed = [("each", name, value) for name, value in (write.arguments if write else {}).items()]
    fixed += [("list", name, value) for name, value in composed.program.rows.arguments.items()]
    return [
        UserFact(
            key=f"{kind}.{name}",
            label=humanize(name),
            value=value,
            said=spoken_values.get(name, str(value)),
            slot=name,
        )
        for kind, name, value in fixed
    ]
