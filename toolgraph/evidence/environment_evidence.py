"""All evidence that an environment at hand gives: its links tried, and recorded tasks played on it again."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from trajsmith.environments import EnvironmentSource
from trajsmith.toolgraph.evidence.execution import execute_links
from trajsmith.toolgraph.evidence.graph_evidence import GraphEvidence
from trajsmith.toolgraph.evidence.missing_lookups import add_lookups
from trajsmith.toolgraph.evidence.recorded_flows import mine_recordings
from trajsmith.toolgraph.evidence.recordings import RecordedCall, Recording, read_initial_state
from trajsmith.toolgraph.graph import LinkKey
from trajsmith.toolgraph.settings import ExecutionSettings


async def collect_evidence(
    source: EnvironmentSource,
    scores: Mapping[LinkKey, float],
    settings: ExecutionSettings,
    seed: int,
    recordings: Sequence[Recording] = (),
    advance: Callable[[], None] | None = None,
) -> GraphEvidence:
    """Try the links of an environment, and look for what recorded tasks took from it.

    Recorded tasks are played again on the initial state that they name, or else on the first one of the environment, to
    find the look-ups that they skip; their calls are tried as examples of calls that work.

    Args:
        source: The environment.
        scores: Link to its score by schemas.
        settings: Budget of the calls that try links.
        seed: The same seed makes the same calls.
        recordings: Conversations or executed tasks of this environment.
        advance: Called after each of them.

    Raises:
        EnvironmentFault: The environment does not start, or breaks while a recorded task is played.
    """
    tools = (await source.spec()).tools
    plain = {tool.full_name: tool.name for tool in tools}
    recordings = [_use_plain_names(recording, plain) for recording in recordings]
    if not recordings:
        return GraphEvidence(executed=[await execute_links(source, scores, settings, seed)])
    first = (await source.states(seed))[0]
    session = await source.open()
    played = []
    try:
        for recording in recordings:
            played.append(await add_lookups(recording, read_initial_state(recording) or first, session))
            if advance is not None:
                advance()
    finally:
        await session.close()
    executed = await execute_links(source, scores, settings, seed, played)
    return GraphEvidence(recorded=mine_recordings(played, tools), executed=[executed])


def _use_plain_names(recording: Recording, plain: Mapping[str, str]) -> Recording:
    """The recording with the tools of the environment by their plain names, as its sessions know them."""
    steps = tuple(
        replace(step, tool=plain.get(step.tool, step.tool)) if isinstance(step, RecordedCall) else step
        for step in recording.steps
    )
    return replace(recording, steps=steps)
