"""What the environment gives out has names that do not depend on the order or the time of a run."""

from typing import Any

import desk
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trajsmith.environments import diff
from trajsmith.records import JsonObject, NondeterminismMask
from trajsmith.verify.nondeterminism import find_nondeterminism_mask
from trajsmith.verify.normalized_state import build_place_pattern, normalize_state

steady = settings(deadline=None, derandomize=True, max_examples=60)


async def test_the_masks_of_a_run_are_what_its_origins_show() -> None:
    gold = await desk.gold_run()
    masks, runs = await find_nondeterminism_mask(gold, desk.session())
    assert (masks.counters, masks.clock, masks.tables) == ("counters", "now", ("notes",))
    assert masks.leaves == {
        "notes/*/note_id": "id",
        "notes/*/parent_id": "id",
        "notes/*/made_at": "clock",
        "notes/*/pin": "chance",
    }
    assert set(masks.names) == {"N4", "N5", "N6"}
    wanted = [normalize_state(gold.initial, state, masks).hash for state in gold.ran.states]
    for run in runs:
        assert [normalize_state(run.initial, state, masks).hash for state in run.ran.states] == wanted
    assert [run.ran.states == gold.ran.states for run in runs] == [False, False]


async def test_a_run_that_is_given_nothing_has_no_masks() -> None:
    gold = await desk.gold_run([[desk.TURNS[0][0]]])
    masks, _ = await find_nondeterminism_mask(gold, desk.session())
    assert (masks.tables, masks.leaves, masks.names) == ((), {}, {})


async def form_after(steps: list[tuple[str, JsonObject]], state: JsonObject = desk.STATE) -> Any:
    gold = await desk.gold_run()
    masks, _ = await find_nondeterminism_mask(gold, desk.session())
    session = desk.session()
    await session.reset(state)
    for name, arguments in steps:
        assert (await session.call(name, arguments)).ok
    return normalize_state(state, await session.snapshot(), masks)


TRIP = ("add_note", {"title": "trip", "color": "blue"})
TENT = ("add_note", {"title": "tent", "color": "red"})


def child_of(parent: str) -> tuple[str, JsonObject]:
    return ("add_note", {"title": "map", "color": "red", "parent_id": parent})


LATER = {**desk.STATE, "now": "2026-03-02T09:05:00"}
MORE = {**desk.STATE, "counters": {"note": 40}}


async def test_equal_runs_have_one_form() -> None:
    gold = await form_after([TRIP, TENT, child_of("N4")])
    assert (await form_after([TENT, TRIP, child_of("N5")])).hash == gold.hash
    assert (await form_after([TRIP, child_of("N4"), TENT])).hash == gold.hash
    assert (await form_after([TRIP, TENT, child_of("N4")], LATER)).hash == gold.hash
    assert (await form_after([TENT, TRIP, child_of("N42")], MORE)).hash == gold.hash


@pytest.mark.parametrize(
    "steps",
    [
        pytest.param([TRIP, TENT, child_of("N5")], id="child-of-another-new-note"),
        pytest.param([TRIP, TENT, child_of("N1")], id="child-of-an-old-note"),
        pytest.param([TRIP, TENT, child_of("N4"), TRIP], id="one-more"),
        pytest.param([TRIP, child_of("N4")], id="one-less"),
        pytest.param([TRIP, ("add_note", {"title": "tent", "color": "blue"}), child_of("N4")], id="another-color"),
        pytest.param([TRIP, TENT, child_of("N4"), ("paint", {"note_id": "N5", "color": "blue"})], id="painted-later"),
    ],
)
async def test_other_runs_have_another(steps: list[tuple[str, JsonObject]]) -> None:
    gold = await form_after([TRIP, TENT, child_of("N4")])
    other = await form_after(steps)
    assert other.hash != gold.hash
    assert diff(gold.document, other.document)


async def test_what_was_given_out_can_be_looked_up() -> None:
    form = await form_after([TRIP])
    assert "N4" in form.generated_values.values()
    name = form.names["N4"]
    assert form.document["notes"][name]["note_id"] == name
    assert form.document["notes"][name]["made_at"] == "start+0s"
    assert form.document["notes"][name]["pin"] == "<str>"
    assert "counters" not in form.document


TITLE = st.sampled_from(["a", "b"])
NEW = st.lists(st.tuples(TITLE, st.integers(0, 3)), max_size=4)
MASKS = NondeterminismMask(counters="counters", tables=("t",), leaves={"t/*/id": "id", "t/*/of": "id"})


def built(new: list[tuple[str, int]], order: list[int], first: int) -> JsonObject:
    """Rows made in some order, each with a reference to another one of them."""
    keys = {number: f"K{first + place}" for place, number in enumerate(order)}
    rows = {
        keys[n]: {"id": keys[n], "title": new[n][0], "of": keys[new[n][1]] if new[n][1] < len(new) else None}
        for n in order
    }
    return {"counters": {"k": first + len(new)}, "t": {"old": {"id": "old", "title": "x", "of": None}, **rows}}


@steady
@given(NEW, st.randoms(use_true_random=False), st.integers(1, 50))
def test_names_do_not_depend_on_order_or_numbers(new: list[tuple[str, int]], rng: Any, first: int) -> None:
    initial = built([], [], 0)
    gold = built(new, list(range(len(new))), 1)
    order = rng.sample(range(len(new)), len(new))
    other = built(new, order, first)
    assert normalize_state(initial, gold, MASKS).hash == normalize_state(initial, other, MASKS).hash


@steady
@given(NEW, NEW)
def test_other_contents_have_other_forms(new: list[tuple[str, int]], other: list[tuple[str, int]]) -> None:
    initial = built([], [], 0)
    mine, theirs = (normalize_state(initial, built(rows, list(range(len(rows))), 1), MASKS) for rows in (new, other))
    titles = sorted(title for title, _ in new) == sorted(title for title, _ in other)
    if not titles:
        assert mine.hash != theirs.hash
    assert (mine.hash == theirs.hash) == (not diff(mine.document, theirs.document))


@pytest.mark.parametrize(
    ("place", "pattern"),
    [
        pytest.param(("notes", "N1", "pin"), "notes/*/pin", id="table"),
        pytest.param(("log", "0", "text"), "log/*/text", id="list"),
        pytest.param(("user", "name"), "user/name", id="object"),
    ],
)
def test_patterns(place: tuple[str, ...], pattern: str) -> None:
    document = {"notes": {"N1": {"pin": "1"}}, "log": [{"text": "x"}], "user": {"name": "y"}}
    assert build_place_pattern(place, document) == pattern


def test_what_is_brought_back_was_not_given_out() -> None:
    """A row that comes out of the trash keeps its id and its old time, whatever masks say of new rows."""
    masks = NondeterminismMask(clock="now", tables=("files",), leaves={"files/*/id": "id", "files/*/made_at": "clock"})
    old = {"id": "F7", "made_at": "2026-01-05T10:00:00"}
    new = {"id": "F9", "made_at": "2026-03-02T09:00:00"}
    initial = {"now": "2026-03-02T09:00:00", "files": {}, "trash": {"T1": {"file": old}}}
    form = normalize_state(initial, {**initial, "files": {"F7": old, "F9": new}, "trash": {}}, masks)
    assert form.document["files"]["F7"] == old
    assert list(form.names) == ["F9"]
    assert form.document["files"][form.names["F9"]] == {"id": form.names["F9"], "made_at": "start+0s"}
