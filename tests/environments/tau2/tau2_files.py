"""What the tests of the τ²-bench adapter share: a checkout written for them, with one domain in that form."""

import shutil
from pathlib import Path
from typing import Any

from trajsmith.environments.adapters.tau2.program import Tau2Program, load
from trajsmith.environments.adapters.tau2.settings import Tau2Settings, build_payload
from trajsmith.environments.program_sessions import LocalEpisodeLink, RestorableSession
from trajsmith.records import canonical_json

CHECKOUT = Path(__file__).parent / "checkout"


def settings(path: Path = CHECKOUT, **more: Any) -> Tau2Settings:
    return Tau2Settings(domain="lending", path=path, **more)


def lending(**more: Any) -> Tau2Program:
    return load(build_payload(settings(**more)))


def play_of(program: Tau2Program, number: int = 0):
    return program.start(canonical_json(program.states(0)[number]))


async def session_of(program: Tau2Program, number: int = 0) -> RestorableSession:
    session = RestorableSession(program.spec, LocalEpisodeLink(program))
    await session.reset(program.states(0)[number])
    return session


def copied(target: Path, **changes: str) -> Path:
    """A copy of the checkout with other texts in some files, by their path with "/" written "__" and "." "_DOT_"."""
    shutil.copytree(CHECKOUT, target)
    for name, text in changes.items():
        (target / name.replace("__", "/").replace("_DOT_", ".")).write_text(text)
    return target
