"""The second look and repairs: tools whose schemas do not say what they want are called all the same."""

import random
from typing import Any

import pytest
from depot import Depot, depot_state, only
from upheld import assert_provenance_is_right, assert_runs_again

from trajsmith.environments import NativeSession, ToolResult
from trajsmith.grounding import Grounder, GroundSettings, Lessons
from trajsmith.grounding.fields import SchemaField, get_types, list_input_fields
from trajsmith.grounding.hints import read_hints
from trajsmith.grounding.observed_values import find_observed_values
from trajsmith.grounding.references import resolve_reference
from trajsmith.grounding.repair import rank_helpers
from trajsmith.grounding.rows import RowIndex, score_likeness, split_joined_keys
from trajsmith.grounding.schema_values import fit_value
from trajsmith.grounding.search import StepFailure, get_refusal_text
from trajsmith.grounding.value_source import ValueSource
from trajsmith.phrasing import Phrasebook
from trajsmith.records import FromOutput, GoldCall, GroundedChain, RecordDropped

SETTINGS = GroundSettings(min_calls=1, guess=True, wide=16, repairs=8, budget=150, jumps=10, jumps_per_step=8)
GIVERS = {("plan_job", "job_id"): [("list_jobs", "$.result[*].job_id"), ("add_job", "$.job_id")]}


async def ground(tool: str, seed: int = 0, lessons: Lessons | None = None, **more: Any) -> GroundedChain:
    settings = SETTINGS.model_copy(update=more)
    grounder = Grounder(Depot.describe(), depot_state(), Phrasebook(), settings, GIVERS)
    return await grounder.ground(only(tool, seed), NativeSession(Depot, Depot.describe()), lessons)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    ("tool", "before"),
    [
        pytest.param("sign_in", (), id="credentials-of-one-account"),
        pytest.param("sign_out", ("sign_in",), id="undoes-what-must-be-done-first"),
        pytest.param("set_level", (), id="limits-that-the-refusal-names"),
        pytest.param("start_press", ("close_guards",), id="everything-of-a-list-of-choices"),
        pytest.param("add_job", ("sign_in",), id="what-the-refusal-asks-for"),
        pytest.param("list_jobs", ("sign_in", "add_job"), id="makes-what-is-listed"),
        pytest.param("kept_job", (), id="keys-of-maps-in-maps"),
        pytest.param("find_manager", (), id="names-in-an-inner-object"),
    ],
)
async def test_it_is_called(tool: str, before: tuple[str, ...], seed: int) -> None:
    grounded = await ground(tool, seed)
    made = [call.tool for call in grounded.calls]
    assert made[-1] == tool
    assert set(before) <= set(made[:-1])
    await assert_runs_again(grounded, depot_state(), NativeSession(Depot, Depot.describe()))
    assert_provenance_is_right(grounded, Depot.describe())


async def test_what_is_missing_is_made_first_and_then_referred_to() -> None:
    calls = (await ground("plan_job", repairs=16, budget=400)).calls
    made = [call.tool for call in calls]
    assert made[0] == "sign_in"
    assert "add_job" in made
    assert made[-1] == "plan_job"
    source = calls[-1].provenance["job_id"]
    assert isinstance(source, FromOutput)
    assert resolve_reference(source, calls[source.call].result) == calls[-1].arguments["job_id"]


async def test_without_repairs_a_chain_stays_as_it_is() -> None:
    with pytest.raises(RecordDropped, match="0 of 1 tools could be called; not: sign_out"):
        await ground("sign_out", repairs=0)


async def test_without_guessing_nobody_says_ids() -> None:
    with pytest.raises(RecordDropped):
        await ground("plan_job", guess=False, repairs=0)


async def test_lessons_serve_the_next_search() -> None:
    lessons = Lessons()
    first = await ground("set_level", 1, lessons)
    second = await ground("set_level", 2, lessons)
    assert lessons.refusals["set_level"] == ["level must be between 440 and 450"]
    hints = lessons.hints("set_level", "level")
    assert hints is not None
    assert (hints.low, hints.high) == (440, 450)
    assert second.attempts <= first.attempts


# Texts


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("Mode must be one of: 'bus', 'car'", {"choices": ("bus", "car")}, id="quoted"),
        pytest.param("Invalid type. Must be one of: top, new, or job", {"choices": ("top", "new", "job")}, id="bare"),
        pytest.param(
            "State of it (locked, unlocked, done).", {"choices": ("locked", "unlocked", "done")}, id="brackets"
        ),
        pytest.param("Ticker (e.g., 'BTC', 'ETH').", {"examples": ("BTC", "ETH"), "choices": ()}, id="examples"),
        pytest.param("must be between 1 and 30", {"low": 1, "high": 30}, id="between"),
        pytest.param("amount must be greater than 0", {"low": 1, "high": None}, id="above"),
        pytest.param("Number of rows, at most 50", {"low": None, "high": 50}, id="at-most"),
        pytest.param("The day (YYYY-MM-DD)", {"template": "%Y-%m-%d"}, id="day"),
        pytest.param("Format: YYYY-MM-DDTHH:MM:SS", {"template": "%Y-%m-%dT%H:%M:%S"}, id="moment"),
        pytest.param("as MM/YYYY", {"template": "%m/%Y"}, id="month"),
        pytest.param("Start date in ISO 8601", {"template": "%Y-%m-%d"}, id="iso-day"),
        pytest.param("rows.0: Input should be a valid dictionary", {"kind": "object"}, id="kind"),
        pytest.param("Subject: Field required (and 1 more)", {"keys": ("Subject",)}, id="key"),
        pytest.param("The name of the thing.", {"choices": (), "examples": (), "template": None}, id="nothing"),
    ],
)
def test_what_texts_say(text: str, expected: dict[str, Any]) -> None:
    hints = read_hints(text)
    assert {name: getattr(hints, name) for name in expected} == expected


@pytest.mark.parametrize(
    ("content", "text"),
    [
        pytest.param({"error": "no"}, "no", id="error"),
        pytest.param({"success": False, "message": "not now"}, "not now", id="message"),
        pytest.param({"success": False}, '{"success":false}', id="nothing-said"),
        pytest.param("no", "no", id="text"),
    ],
)
def test_refusal_text(content: Any, text: str) -> None:
    assert get_refusal_text(ToolResult(content, "refused")) == text


# Rows and names


@pytest.mark.parametrize(
    ("name", "context", "better", "worse"),
    [
        pytest.param(("repo",), (), ("repository",), ("region",), id="short-for"),
        pytest.param(("pid",), (), ("product", "id"), ("id",), id="initials"),
        pytest.param(("first", "name"), (), ("name", "first"), ("name", "last"), id="turned-around"),
        pytest.param(("id",), ("order",), ("order", "id"), ("user", "id"), id="of-the-tool's-noun"),
        pytest.param(("origin", "city"), (), ("city",), ("country",), id="the-same-last-word"),
    ],
)
def test_likeness(name: Any, context: Any, better: Any, worse: Any) -> None:
    assert score_likeness(name, context, better) > score_likeness(name, context, worse)
    assert score_likeness(name, context, better) <= score_likeness(name, context, name) == 1.0


def test_rows_hold_keys_parents_and_inner_objects() -> None:
    state = {
        "courses": {"C1": {"name": "Maths"}},
        "files": {"C1": {"F1": "http://a"}},
        "users": {"U1": {"name": {"first": "Ida"}, "zip": "100"}},
    }
    index = RowIndex(state)
    together = [row.values for row in index.rows if row.values.get(("file", "id")) == "F1"]
    assert together
    assert together[0][("course", "id")] == "C1"
    people = [row.values for row in index.rows if ("name", "first") in row.values]
    assert any(row.get(("zip",)) == "100" and row.get(("user", "id")) == "U1" for row in people)


def test_joined_keys_are_taken_apart() -> None:
    trips = {"2026-03-02_LON_PAR": [{"no": 1}], "2026-03-03_PAR_ROM": [{"no": 2}], "x": [{"no": 3}]}
    index = RowIndex({"trips": trips, "pairs": {"LON-PAR": {"km": 3}, "PAR-ROM": {"km": 4}}})
    assert sorted(split_joined_keys(index, 3, random.Random(0), 9)) == [
        ("2026-03-02", "LON", "PAR"),
        ("2026-03-03", "PAR", "ROM"),
    ]
    assert sorted(split_joined_keys(index, 2, random.Random(0), 9)) == [("LON", "PAR"), ("PAR", "ROM")]
    assert split_joined_keys(index, 1, random.Random(0), 9) == []


@pytest.mark.parametrize(
    ("schema", "given", "expected"),
    [
        pytest.param({"type": "integer"}, "12", 12, id="number-of-a-text"),
        pytest.param({"type": "string"}, 12, "12", id="text-of-a-number"),
        pytest.param({"type": "integer"}, 12.5, None, id="no-whole-number"),
        pytest.param({"type": "integer", "maximum": 5}, 7, None, id="too-large"),
        pytest.param({"type": "string", "pattern": "^A"}, "B1", None, id="pattern"),
        pytest.param({"type": "string", "enum": ["a"]}, "b", None, id="no-choice"),
        pytest.param({"type": "string", "format": "date"}, "2026-03-02T10:00:00", "2026-03-02", id="day-of-a-moment"),
        pytest.param({"type": "boolean"}, "yes", None, id="no-flag"),
    ],
)
def test_fitted(schema: dict[str, Any], given: Any, expected: Any) -> None:
    assert fit_value(given, SchemaField("x", "x", (), get_types(schema), True, schema)) == expected


def test_every_guess_fits_the_schema() -> None:
    spec, state = Depot.describe(), depot_state()
    source = ValueSource(state)
    for tool in spec.tools:
        for leaf in list_input_fields(tool):
            found = source.propose_widely(leaf, random.Random(0), tool.input_schema)
            assert found
            if "array" not in leaf.types:
                assert all(fit_value(value, leaf) == value for _, value in found)
            assert len({repr(value) for _, value in found}) == len(found)


def test_earlier_results_are_referred_to_by_path() -> None:
    call = GoldCall(
        tool="find_guest",
        arguments={},
        provenance={},
        effect="read",
        result={
            "guest": {"guest_id": "G1", "name": "Ida"},
            "rooms": [{"room": 7, "view": "sea"}, {"room": 9, "view": "yard"}],
        },
    )
    leaf = SchemaField("guest_id", "guest_id", (), frozenset({"string"}), True, {})
    assert [(value, source.path) for _, value, source in find_observed_values(leaf, [call], random.Random(0))] == [
        ("G1", "$.guest.guest_id")
    ]
    room = SchemaField("room", "room", (), frozenset({"integer"}), True, {})
    found = list(find_observed_values(room, [call], random.Random(0)))
    assert [value for _, value, _ in found] == [7, 9]
    assert [resolve_reference(source, call.result) for _, _, source in found] == [7, 9]


def test_helpers_come_from_the_graph_the_refusal_and_the_names() -> None:
    tools = {tool.name: tool for tool in Depot.describe().tools}
    unmet = StepFailure(0, "plan_job", unmet=["job_id"])
    assert [tool for _, tool in rank_helpers(only("plan_job"), unmet, tools, GIVERS, True)][:2] == [
        "list_jobs",
        "add_job",
    ]
    refused = StepFailure(0, "list_jobs", refusals=["Authentication required. Please sign in first."])
    assert next(tool for _, tool in rank_helpers(only("list_jobs"), refused, tools, {}, False)) == "sign_in"
    empty = StepFailure(0, "list_jobs", fruitless=2)
    assert [tool for _, tool in rank_helpers(only("list_jobs"), empty, tools, {}, True)] == ["add_job"]
    assert not list(rank_helpers(only("set_level"), StepFailure(0, "set_level"), tools, {}, False))
