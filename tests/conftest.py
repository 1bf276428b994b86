"""What tests of several packages share: the failing language server, on the path and running when it is asked for."""

import os
import sys
from pathlib import Path

import pytest

os.environ["COLUMNS"] = "200"  # consoles take their width when they are made, at import

sys.path.insert(0, str(Path(__file__).parent / "language_server"))


@pytest.fixture(scope="module")
def language_server():
    """One server process for a module; it only fails where a message tells it to."""
    from running_server import RunningServer

    with RunningServer() as server:
        yield server


@pytest.fixture(scope="session", autouse=True)
def no_package_is_imported_by_its_folder():
    """Fail where code imports `export` in place of `trajsmith.export`: that works only in the root of a checkout."""
    yield
    folders = {path.parent.name for path in Path(__file__).parents[1].glob("*/__init__.py")} - {"trajsmith"}
    assert not folders & set(sys.modules)
