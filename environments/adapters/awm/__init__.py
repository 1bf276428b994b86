"""Environments of Agent World Model: a FastAPI server over SQLAlchemy and SQLite, run in process without a port."""

from trajsmith.environments.adapters.awm.settings import AwmSettings, build_payload, discover

__all__ = ["AwmSettings", "build_payload", "discover"]
