"""What tests of several packages share: how much is tested, in which order, and the failing language server."""

import os
import signal
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE / "language_server"), str(HERE / "durations")]

from recorded_durations import DurationRecorder, RecordedDurations  # noqa: E402

KEPT = ("tests/packaging/", "tests/plugins/", "tests/examples/")
"""Tests of what users install and copy: `--most-seconds` does not leave them out."""

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # shells give this to what they start in the background
    signal.signal(signal.SIGINT, signal.default_int_handler)  # else programs that tests interrupt would inherit it

os.environ["COLUMNS"] = "200"  # consoles take their width when they are made, at import
os.environ["TRAJSMITH_CACHE"] = "off"  # tests find nothing that earlier ones left, nor leave anything at home

# Examples are the same in every run, and a slow machine is no failure.
settings.register_profile("steady", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("steady")


def pytest_addoption(parser):
    parser.addoption("--full", action="store_true", help="Every kill, attack and combination (`make test-full`).")
    parser.addoption("--most-seconds", type=float, metavar="N", help="Leave out what durations.txt says takes longer.")
    parser.addoption("--record-durations", action="store_true", help="Write tests/durations/durations.txt anew.")


def pytest_configure(config):
    if config.getoption("--record-durations") and not hasattr(config, "workerinput"):
        config.pluginmanager.register(DurationRecorder())


def pytest_collection_modifyitems(config, items):
    """Leave out long tests where asked, and put long files first: no worker is left with one when the others end."""
    durations = RecordedDurations.read()
    if (most := config.getoption("--most-seconds")) is not None:
        long = {
            item for item in items if durations.get_longest(item.nodeid) > most and not item.nodeid.startswith(KEPT)
        }
        config.hook.pytest_deselected(items=list(long))
        items[:] = [item for item in items if item not in long]
    totals = {file: durations.sum_file(file) for file in {item.nodeid.partition("::")[0] for item in items}}
    items.sort(key=lambda item: -totals[item.nodeid.partition("::")[0]])


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
    folders = {path.parent.name for path in HERE.parent.glob("*/__init__.py")} - {"trajsmith"}
    assert not folders & set(sys.modules)
