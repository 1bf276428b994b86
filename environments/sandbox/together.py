"""Calls of many plays at a time, for callers that go in step (batches of rollouts): one frame, and no task per call."""

import asyncio
from collections.abc import Sequence

from environments.hosted import HostedSession
from environments.sandbox.connection import Connection, NotJson, WorkerLost
from environments.sandbox.link import SandboxLink
from environments.sandbox.wire import Reply
from environments.session import Session, ToolResult
from trajectory import EnvironmentFault, JsonObject

Call = tuple[Session, str, JsonObject]
Outcome = ToolResult | EnvironmentFault


async def call_together(calls: Sequence[Call]) -> list[Outcome]:
    """Make one call on each of many sessions, in as few messages as there are workers; faults stand beside results.

    Sessions of other kinds than sandboxed ones are called one by one, all at a time. Each session may be there once.
    """
    outcomes: dict[int, Outcome] = {}
    frames: dict[Connection, list[tuple[int, int]]] = {}
    for place, (session, _, _) in enumerate(calls):
        worker = _worker(session)
        if worker is not None:
            frames.setdefault(worker, []).append((place, session.moment()))  # type: ignore[attr-defined]
    await asyncio.gather(*(_frame(worker, calls, places, outcomes) for worker, places in frames.items()))
    rest = [place for place in range(len(calls)) if place not in outcomes]
    for place, outcome in zip(rest, await asyncio.gather(*(_alone(*calls[place]) for place in rest)), strict=True):
        outcomes[place] = outcome
    return [outcomes[place] for place in range(len(calls))]


def _worker(session: Session) -> Connection | None:
    if isinstance(session, HostedSession) and isinstance(session.link, SandboxLink):
        return session.link.ready()
    return None


async def _frame(
    worker: Connection, calls: Sequence[Call], places: list[tuple[int, int]], outcomes: dict[int, Outcome]
) -> None:
    """The calls of one worker. What is left without an outcome has to be asked again."""
    links: list[SandboxLink] = [calls[place][0].link for place, _ in places]  # type: ignore[attr-defined]
    try:
        waiting = worker.send_together(
            link.request(calls[place][1], calls[place][2], "assistant", moment)
            for link, (place, moment) in zip(links, places, strict=True)
        )
    except WorkerLost:
        return
    for link, future, (place, moment) in zip(links, waiting, places, strict=True):
        session, tool, arguments = calls[place]
        try:
            reply: Reply = await future
            result = link.accept(reply, tool, arguments, "assistant", moment)
        except NotJson as error:
            result = ToolResult.refusal("invalid_arguments", f"not JSON data: {error}")
        except WorkerLost as lost:
            try:
                link.gone(lost, tool)
            except EnvironmentFault as fault:
                outcomes[place] = fault
            continue
        except EnvironmentFault as fault:
            outcomes[place] = fault
            continue
        session.took_place()  # type: ignore[attr-defined]
        outcomes[place] = result


async def _alone(session: Session, tool: str, arguments: JsonObject) -> Outcome:
    try:
        return await session.call(tool, arguments)
    except EnvironmentFault as fault:
        return fault
