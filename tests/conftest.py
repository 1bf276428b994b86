"""What tests of several packages share: how much is tested, in which order, and the failing language server."""

import os
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

os.environ["COLUMNS"] = "200"  # consoles take their width when they are made, at import

# Examples are the same in every run, and a slow machine is no failure.
settings.register_profile("steady", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("steady")

sys.path.insert(0, str(Path(__file__).parent / "language_server"))


def pytest_addoption(parser):
    parser.addoption("--full", action="store_true", help="Every kill, attack and combination (`make test-full`).")


def pytest_collection_modifyitems(items):
    """Put files with slow tests first, so that no worker is left with a long file when the others have ended."""
    long = ("slow", "train", "servers")
    slow = {item.path for item in items if any(item.get_closest_marker(name) for name in long)}
    items.sort(key=lambda item: item.path not in slow)


@pytest.fixture(scope="session")
def full(pytestconfig):
    """Whether everything is wanted, at any cost of time."""
    return pytestconfig.getoption("--full")


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
