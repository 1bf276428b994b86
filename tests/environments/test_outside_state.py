"""Which code may go back to a checkpoint within its process, and which repeats its calls after a fresh start."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent / "sandbox"))
from contamination import CASES, COSTLY, FINE, LEAKS, Case, fine_source, leak_source

from trajsmith.environments.outside_state import LONGEST, find_outside_state

NOT_FOLLOWED = {"deep copy", "table of named tuples"}
"""Harmless bodies that are reported all the same: nothing is followed into what a table holds."""
PLACES = {"cached_method", "cached_function"}
"""Cases whose results stay the same, though something is kept."""


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_what_is_kept_outside_of_the_state_is_found(case: Case) -> None:
    kept = case.path is not None and case.path != "random"  # the shared generator belongs to the virtual world
    assert bool(find_outside_state(case.source)) == kept
    assert kept or not case.differs


@pytest.mark.parametrize("name", LEAKS)
def test_every_way_to_change_what_exists_once_is_found(name: str) -> None:
    assert find_outside_state(leak_source(name))
    assert not find_outside_state(leak_source(name, "return number")), "it would be reported without the leak too"


@pytest.mark.parametrize("name", [*FINE, *COSTLY])
def test_code_that_looks_at_constants_keeps_nothing(name: str) -> None:
    assert bool(find_outside_state(fine_source(name))) == (name in NOT_FOLLOWED or name in COSTLY)


def test_a_class_in_the_type_of_a_variable_is_no_use_of_it() -> None:
    source = "class A: pass\ndef f(x):\n    kept: dict[str, A] = {}\n    return len(kept)\n"
    assert not find_outside_state(source)
    assert find_outside_state(source.replace("kept: dict[str, A] = {}", "kept = [x, A]"))


def test_a_field_that_is_called_type_reaches_nothing() -> None:
    assert not find_outside_state("def f(rows, type):\n    return [row for row in rows if row.type == type]\n")
    assert find_outside_state("import builtins\ndef f(x):\n    builtins.type(x).n = 1\n")


def test_a_place_says_where_and_what() -> None:
    places = find_outside_state("SEEN = {}\ndef f(x):\n    SEEN[x] = 1\n")
    assert [str(place) for place in places] == ["line 3: changes SEEN", "line 3: does more than look at SEEN"]


def test_variables_that_an_adapter_copies_for_each_play_may_change() -> None:
    source = "SEEN = {}\ndef f(x):\n    global COUNT\n    COUNT = x\n    SEEN[x] = 1\n"
    assert find_outside_state(source)
    assert not find_outside_state(source, own_variables=True)
    assert find_outside_state("def f(x, seen=[]):\n    seen.append(x)\n", own_variables=True)


@pytest.mark.parametrize("source", ["def (", "x = " + "(" * 5000, "a\x00b", "x" * (LONGEST + 1)])
def test_what_cannot_be_read_may_keep_anything(source: str) -> None:
    (place,) = find_outside_state(source)
    assert place.line == 1
