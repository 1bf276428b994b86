"""Going back in a session, whatever it is."""

from typing import Protocol

from environments import Session
from environments.replaying import Replaying
from environments.session import Checkpointed
from environments.together import JoinedSession

__all__ = ["Checkpointed", "Rewindable", "replays", "rewindable"]


class Rewindable(Session, Checkpointed, Protocol):
    """A session that can go back."""


def rewindable(session: Session) -> Rewindable:
    """The session itself if it has checkpoints; else one that goes back by a fresh start and the same calls."""
    return session if isinstance(session, Checkpointed) else Replaying(session)


def replays(session: Session) -> bool:
    """Return True if going back is a fresh start and the same calls, in the session or in one of its parts."""
    if isinstance(session, JoinedSession):
        return any(replays(part) for part in session.parts)
    return isinstance(session, Replaying) or not isinstance(session, Checkpointed)
