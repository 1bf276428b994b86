"""Which sessions go back at once, and which by a fresh start and the same calls."""

from contextlib import AsyncExitStack

import pytest

from environments import Session
from environments.native_source import library_source
from environments.replaying import Replaying
from environments.together import JoinedSession
from grounding.rewind import replays


async def bank() -> Session:
    return await library_source("bank", {"small": 1}).open()


async def joined(first: Session, second: Session) -> Session:
    return JoinedSession(first.spec, {"first": first, "second": second}, {}, AsyncExitStack())


@pytest.mark.parametrize("live", [False, True], ids=["native", "replaying"])
async def test_a_session_replays_if_it_or_a_part_of_it_does(live: bool) -> None:
    native = await bank()
    session = Replaying(await bank()) if live else await bank()
    assert replays(session) == live
    assert replays(await joined(native, session)) == live
