"""Going back in a session, whatever it is."""

from typing import Protocol

from environments import Session
from environments.replaying import Replaying
from environments.session import Checkpointed

__all__ = ["Checkpointed", "Rewindable", "rewindable"]


class Rewindable(Session, Checkpointed, Protocol):
    """A session that can go back."""


def rewindable(session: Session) -> Rewindable:
    """The session itself if it has checkpoints; else one that goes back by a fresh start and the same calls."""
    return session if isinstance(session, Checkpointed) else Replaying(session)
