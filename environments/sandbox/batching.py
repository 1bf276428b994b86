"""Batched calls for callers that step many episodes at once (rollouts): one frame, and no task per call."""

import asyncio
from collections.abc import Coroutine, Sequence
from typing import Any, TypeVar

from trajsmith.environments.program_sessions import ProgramSession
from trajsmith.environments.sandbox.codec import Reply
from trajsmith.environments.sandbox.connection import RequestNotJson, WorkerConnection, WorkerLost
from trajsmith.environments.sandbox.link import SandboxLink
from trajsmith.environments.session import Session, ToolResult
from trajsmith.records import EnvironmentFault, JsonObject

BatchCall = tuple[Session, str, JsonObject]
BatchOutcome = ToolResult | EnvironmentFault
_Result = TypeVar("_Result")


async def call_batch(calls: Sequence[BatchCall]) -> list[BatchOutcome]:
    """Make one call on each of many sessions, in as few messages as there are workers; faults stand beside results.

    Sessions of other kinds than sandboxed ones are called one by one, all at a time. Each session may be there once.
    """
    if len(calls) == 1:
        return [await _call_single(*calls[0])]
    outcomes: dict[int, BatchOutcome] = {}
    frames: dict[WorkerConnection, list[tuple[int, int]]] = {}
    for place, (session, _, _) in enumerate(calls):
        worker = _worker(session)
        if worker is not None:
            frames.setdefault(worker, []).append((place, session.begin_step()))  # type: ignore[attr-defined]
    await _run_all([_send_frame(worker, calls, places, outcomes) for worker, places in frames.items()])
    rest = [place for place in range(len(calls)) if place not in outcomes]
    outcomes.update(zip(rest, await _run_all([_call_single(*calls[place]) for place in rest]), strict=True))
    return [outcomes[place] for place in range(len(calls))]


async def _run_all(work: Sequence[Coroutine[Any, Any, _Result]]) -> list[_Result]:
    """Run all at a time; one alone needs no task."""
    return [await work[0]] if len(work) == 1 else await asyncio.gather(*work) if work else []


def _worker(session: Session) -> WorkerConnection | None:
    if isinstance(session, ProgramSession) and isinstance(session.link, SandboxLink):
        return session.link.ready()
    return None


async def _send_frame(
    worker: WorkerConnection,
    calls: Sequence[BatchCall],
    places: list[tuple[int, int]],
    outcomes: dict[int, BatchOutcome],
) -> None:
    """The calls of one worker. What is left without an outcome has to be asked again."""
    links: list[SandboxLink] = [calls[place][0].link for place, _ in places]  # type: ignore[attr-defined]
    try:
        waiting = worker.send_batch(
            link.request(calls[place][1], calls[place][2], "assistant", step)
            for link, (place, step) in zip(links, places, strict=True)
        )
    except WorkerLost:
        return
    for link, future, (place, step) in zip(links, waiting, places, strict=True):
        session, tool, arguments = calls[place]
        try:
            reply: Reply = await future
            result = link.accept(reply, tool, arguments, "assistant", step)
        except RequestNotJson as error:
            result = ToolResult.refusal("invalid_arguments", f"not JSON data: {error}")
        except WorkerLost as lost:
            try:
                link.handle_loss(lost, tool)
            except EnvironmentFault as fault:
                outcomes[place] = fault
            continue
        except EnvironmentFault as fault:
            outcomes[place] = fault
            continue
        session.finish_step()  # type: ignore[attr-defined]
        outcomes[place] = result


async def _call_single(session: Session, tool: str, arguments: JsonObject) -> BatchOutcome:
    try:
        return await session.call(tool, arguments)
    except EnvironmentFault as fault:
        return fault
