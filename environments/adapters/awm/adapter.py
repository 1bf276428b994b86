"""The adapter of AWM: a FastAPI server over SQLite; needs the extra `awm`."""

from trajsmith.environments.adapters.awm.settings import PRELOAD, AwmSettings, build_payload
from trajsmith.environments.adapters.registry import ADAPTERS, Adapter, SourceOptions, open_sandboxed
from trajsmith.environments.sandbox.serialization import split_words
from trajsmith.environments.session import EnvironmentSource

EVENTS = split_words("""
    compile exec function.__new__ object.__getattr__ object.__setattr__ sqlite3.connect sqlite3.connect/handle
    sys._getframe
""")
"""Audit events of calls: SQLAlchemy compiles functions, FastAPI reads them."""


def open_source(settings: AwmSettings, options: SourceOptions) -> EnvironmentSource:
    """Open the environment that the settings name; nothing runs yet."""
    return open_sandboxed("awm", build_payload(settings), options, PRELOAD, events=EVENTS)


ADAPTERS.register("awm")(Adapter(AwmSettings, open_source))
