"""Long tests are found, left out where that is asked for, and put first."""

import re

import pytest
from recorded_durations import FILE, DurationRecorder, RecordedDurations, summarize

pytest_plugins = ["pytester"]


def test_a_shared_fixture_counts_for_its_file_and_a_test_for_itself() -> None:
    phases = {
        "a.py::test_first": {"setup": 9.0, "call": 0.2, "teardown": 0.0},
        "a.py::test_case[x]": {"setup": 1.0, "call": 0.5, "teardown": 0.0},
        "a.py::test_case[y]": {"setup": 1.0, "call": 2.5, "teardown": 0.5},
        "b.py::test_short": {"setup": 0.0, "call": 0.01, "teardown": 0.0},
    }
    found = {name: round(seconds, 6) for name, seconds in summarize(phases)}
    assert found == {"a.py": 8.0, "a.py::test_first": 1.2, "a.py::test_case": 4.0}


@pytest.mark.parametrize(
    ("node", "seconds"),
    [("a.py::test_case[y]", 4.0), ("a.py::test_new", 2.0), ("b.py::test_b", 0.0)],
)
def test_the_longest_of_file_and_function_counts(node: str, seconds: float) -> None:
    assert RecordedDurations(["2.0 a.py", "4.0 a.py::test_case"]).get_longest(node) == seconds


def test_a_run_writes_what_was_long(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        test_some="""
        import time, pytest

        @pytest.fixture(scope="module")
        def shared():
            time.sleep(0.3)

        def test_long(): time.sleep(0.2)
        def test_uses(shared): pass
        def test_short(): pass
        """
    )
    recorder = DurationRecorder(pytester.path / "durations.txt")
    assert pytester.inline_run("-p", "no:randomly", plugins=[recorder]).ret == 0
    lines = (pytester.path / "durations.txt").read_text().splitlines()
    assert [re.search(r"test_some.*", line)[0] for line in lines] == ["test_some.py", "test_some.py::test_long"]


def test_recorded_files_exist() -> None:
    root = FILE.parents[2]
    files = {line.split(maxsplit=1)[1].partition("::")[0] for line in FILE.read_text().splitlines()}
    missing = sorted(file for file in files if not (root / file).is_file())
    assert len(files) > 100
    assert not missing, "make durations writes durations.txt anew"
