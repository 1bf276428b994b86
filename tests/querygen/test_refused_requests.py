"""Requests that an environment refuses: judged by what their own turn shows, and kept to the story of their step."""

import random
from types import SimpleNamespace

import pytest

from trajsmith.environments import ToolResult
from trajsmith.phrasing import EntityPhrases, Phrasebook, ScenarioStep, Wording
from trajsmith.querygen.vary._refusals import (
    RefusedRequest,
    _find_refusal,
    _list_other_rows,
    _list_other_values,
    find_refused_requests,
)
from trajsmith.querygen.vary._refused_task import is_visible
from trajsmith.records import FromOutput, FromUser, GoldCall, Selector, ToolSpec, UserFact

ROWS = [
    {"trip_id": "T1", "town": "Bergen", "kind": "train"},
    {"trip_id": "T2", "town": "Turin", "kind": "train"},
    {"trip_id": "T3", "town": "Genoa", "kind": "ferry"},
]
STATUS = {"T1": "confirmed", "T2": "travelled", "T3": "travelled"}
REASONS = ("illness", "work", "weather")
SCHEMA = {
    "type": "object",
    "properties": {"trip_id": {"type": "string"}, "reason": {"type": "string", "enum": list(REASONS)}},
    "required": ["trip_id", "reason"],
}
TOOLS = [
    ToolSpec(server="desk", name=name, description=f"{name}.", input_schema=SCHEMA)
    for name in ("list_trips", "get_trip", "cancel_trip")
]
REFUSAL = "the trip is travelled; only confirmed trips can be cancelled"


def choose(trip):
    """The value and the provenance of a trip that is chosen by its town."""
    town = next(row["town"] for row in ROWS if row["trip_id"] == trip)
    selector = Selector(rows="$.result", how="equals", field="town", value=town)
    return FromOutput(call=0, path="$.result[*].trip_id", selectors=(selector,))


def build_calls(trip="T1", reason="illness"):
    arguments, sources = {"trip_id": trip}, {"trip_id": choose(trip)}
    status = {"status": "confirmed"}
    return (
        GoldCall(tool="list_trips", arguments={}, provenance={}, effect="read", result={"result": ROWS}),
        GoldCall(tool="get_trip", arguments=arguments, provenance=sources, effect="read", result=status),
        GoldCall(
            tool="cancel_trip",
            arguments={**arguments, "reason": reason},
            provenance={**sources, "reason": FromUser(known="cancel_trip.reason")},
            effect="write",
            result={"ok": True},
        ),
    )


class Desk:
    """A session in which only a confirmed trip can be cancelled, and not for the weather."""

    async def call(self, tool, arguments, actor="assistant"):
        if tool == "list_trips":
            return ToolResult({"result": ROWS})
        if tool == "get_trip":
            return ToolResult({"status": STATUS[arguments["trip_id"]]})
        if STATUS[arguments["trip_id"]] != "confirmed":
            return ToolResult({"error": REFUSAL}, error="refused")
        if arguments["reason"] == "weather":
            return ToolResult({"error": "the weather is no reason to cancel"}, error="refused")
        return ToolResult({"ok": True})

    async def state_hash(self):
        return "same"

    async def checkpoint(self):
        return 0

    async def rollback(self, mark):
        """Nothing was changed."""


def build_case(step=None):
    calls = build_calls()
    known = UserFact(key="cancel_trip.reason", label="reason", value="illness", said="illness", slot="reason")
    book = Phrasebook(entities={"trip_id": EntityPhrases(noun="trip", by={"town": ["the trip to {value}"]})})

    async def at(number):
        return Desk()

    scenarios = SimpleNamespace(find=lambda name: SimpleNamespace(find_step=lambda name: step) if step else None)
    wording = Wording(book, TOOLS)
    wording.scenarios = scenarios
    return SimpleNamespace(
        calls=calls, spans=[(0, 3)], rng=random.Random(1), wording=wording, tools={tool.name: tool for tool in TOOLS},
        known={known.key: known}, steps=["look", "look", "cancel"], first_needed=lambda key: 0, at=at,
        state={"trips": {row["trip_id"]: {**row, "status": STATUS[row["trip_id"]]} for row in ROWS}},
        base=SimpleNamespace(policy="Only confirmed trips can be cancelled.", scenario_id="story"),
        find_step=lambda index: step,
    )  # fmt: skip


async def test_a_refusal_comes_with_what_the_other_row_shows():
    """The base task's own look-up showed a confirmed trip: with it, the reason would count as hidden."""
    calls = tuple(
        call.model_copy(update={"result": old.result})
        for call, old in zip(build_calls("T2"), build_calls(), strict=True)
    )
    refusal, shown = await _find_refusal(Desk(), 0, calls)
    assert refusal == REFUSAL
    assert [call.result for call in shown[:2]] == [{"result": ROWS}, {"status": "travelled"}]
    known = UserFact(key="k", label="town", value="Turin", said="Turin")
    case = build_case()
    assert is_visible(case, RefusedRequest(0, shown, "trip_id", known, refusal), "")
    assert not is_visible(case, RefusedRequest(0, calls, "trip_id", known, refusal), ""), "so that this test can fail"


async def test_refused_requests_show_what_their_own_trips_show():
    found = await find_refused_requests(build_case(), 0)
    others = [request for request in found if request.argument == "trip_id"]
    assert sorted(request.known.value for request in others) == ["Genoa", "Turin"]
    assert all(request.calls[1].result == {"status": "travelled"} for request in others)


@pytest.mark.parametrize(
    ("step", "towns"),
    [
        (None, ["Genoa", "Turin"]),
        (ScenarioStep(tool="cancel_trip"), ["Genoa", "Turin"]),
        (ScenarioStep(tool="cancel_trip", where={"kind": ["train"]}), ["Turin"]),
        (ScenarioStep(tool="cancel_trip", same_as={"trip_id": "book.trip_id"}), []),
    ],
    ids=["no story", "any row", "where", "same_as"],
)
def test_another_row_fits_the_step(step, towns):
    rows = _list_other_rows(build_case(step), 0)
    assert sorted(fact.value for _, _, fact in rows) == towns
    assert all(calls[1].arguments == {"trip_id": calls[2].arguments["trip_id"]} for _, calls, _ in rows)


@pytest.mark.parametrize(
    ("step", "reasons"),
    [
        (None, ["weather", "work"]),
        (ScenarioStep(tool="cancel_trip", arguments={"reason": ["illness", "weather"]}), ["weather"]),
        (ScenarioStep(tool="cancel_trip", same_as={"reason": "ask.reason"}), []),
    ],
    ids=["no story", "arguments", "same_as"],
)
def test_another_word_fits_the_step(step, reasons):
    values = _list_other_values(build_case(step), 0)
    assert sorted(calls[2].arguments["reason"] for _, calls, _ in values) == reasons
