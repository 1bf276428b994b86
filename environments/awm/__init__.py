"""Environments of Agent World Model: a FastAPI server over SQLAlchemy and SQLite, run in process without a port."""

from environments.awm.settings import AwmSettings, discover, payload

__all__ = ["AwmSettings", "discover", "payload"]
