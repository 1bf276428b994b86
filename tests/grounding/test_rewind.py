"""Which sessions go back at once, and which by a fresh start and the same calls."""

from contextlib import AsyncExitStack

import pytest

from trajsmith.environments import Session
from trajsmith.environments.composite import CompositeSession
from trajsmith.environments.native_source import build_library_source
from trajsmith.environments.replaying import ReplayingSession
from trajsmith.grounding.rewind import replays


async def bank() -> Session:
    return await build_library_source("bank", {"small": 1}).open()


async def joined(first: Session, second: Session) -> Session:
    return CompositeSession(first.spec, {"first": first, "second": second}, {}, AsyncExitStack())


@pytest.mark.parametrize("live", [False, True], ids=["native", "replaying"])
async def test_a_session_replays_if_it_or_a_part_of_it_does(live: bool) -> None:
    native = await bank()
    session = ReplayingSession(await bank()) if live else await bank()
    assert replays(session) == live
    assert replays(await joined(native, session)) == live
