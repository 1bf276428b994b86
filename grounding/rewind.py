"""Checkpoints for any session."""

from typing import Protocol

from trajsmith.environments import Session
from trajsmith.environments.composite import CompositeSession
from trajsmith.environments.replaying import ReplayingSession
from trajsmith.environments.session import Checkpointed

__all__ = ["Checkpointed", "Rewindable", "make_rewindable", "replays"]


class Rewindable(Session, Checkpointed, Protocol):
    """A session that can go back."""


def make_rewindable(session: Session) -> Rewindable:
    """The session itself if it has checkpoints; else one that goes back by a fresh start and the same calls."""
    return session if isinstance(session, Checkpointed) else ReplayingSession(session)


def replays(session: Session) -> bool:
    """Return True if going back is a fresh start and the same calls, in the session or in one of its parts."""
    if isinstance(session, CompositeSession):
        return any(replays(part) for part in session.parts)
    return isinstance(session, ReplayingSession) or not isinstance(session, Checkpointed)
