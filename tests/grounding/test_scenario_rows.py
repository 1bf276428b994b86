"""Conditions of scenario steps on rows that the clock or an earlier step sets."""

from datetime import date, timedelta

import pytest

from trajsmith.environments import NativeSession
from trajsmith.environments.library import ENVIRONMENTS, get_phrases_path
from trajsmith.grounding import Grounder, GroundSettings
from trajsmith.grounding.constraints import StepConstraints
from trajsmith.grounding.scenario_checks import check_scenarios
from trajsmith.phrasing import Scenario, ScenarioBook, ScenarioStep, load_phrasebook
from trajsmith.phrasing.value_formatting import find_clock_date
from trajsmith.records import InputError, RecordDropped, content_hash
from trajsmith.toolgraph import GraphIndex, Sampler, SampleSettings, build_graph, sample_chains


async def ground_all(name, *steps, count=10, seeds=(1, 2, 3)):
    """Calls by step of all chains of one story that can be grounded, with the day of the clock."""
    cls = ENVIRONMENTS.get(name)
    spec, book = cls.describe(), load_phrasebook(get_phrases_path(cls))
    scenario = Scenario.model_validate({"id": "story", "motives": ["Hello."], "steps": steps})
    scenarios = ScenarioBook(scenarios=(scenario,))
    settings = SampleSettings(count=count, scenarios=1.0, length=(2, 11))
    found = []
    for seed in seeds:
        state = cls.seed_state("small", seed).model_dump(mode="json")
        sampler = Sampler(GraphIndex(build_graph(spec.tools), name), settings, scenarios)
        grounder = Grounder(spec, state, book, GroundSettings(), scenarios=scenarios)
        for chain in sample_chains({name: sampler}, {name: [content_hash(state)]}, settings, seed):
            try:
                grounded = await grounder.ground(chain, NativeSession(cls, spec))
            except RecordDropped:
                continue
            by_step = {step: call for step, call in zip(grounded.steps, grounded.calls, strict=True) if step}
            found.append((by_step, grounded, find_clock_date(state)))
    return found


async def test_a_stay_is_that_of_the_trip_that_the_story_is_about():
    dog = {"tool": "add_extra", "arguments": {"extra": ["dog"]}, "where": {"status": ["confirmed"]}}
    hotel = {
        "tool": "get_hotel",
        "where": {"status": ["booked"]},
        "where_same": {"city": "add_extra.to_city", "check_in": "add_extra.departs_at"},
    }
    told = 0
    for calls, grounded, _ in await ground_all("travel", dog, hotel, count=16):
        if "get_hotel" not in calls:
            continue
        told += 1
        rows = {
            call.tool: call.result["result"] for call in grounded.calls if call.tool in ("list_trips", "list_stays")
        }
        trip = next(
            row for row in rows["list_trips"] if row["booking_id"] == calls["add_extra"].arguments["booking_id"]
        )
        stays = [row for row in rows["list_stays"] if row["hotel_id"] == calls["get_hotel"].arguments["hotel_id"]]
        assert (trip["to_city"], trip["departs_at"][:10]) in [(row["city"], row["check_in"]) for row in stays]
    assert told


async def test_an_order_of_today_is_no_order_that_somebody_has_lost_track_of():
    look = {"tool": "get_order", "where": {"status": ["pending", "processing"]}, "days_old": {"placed_at": 1}}
    days = [
        (calls["get_order"].result["placed_at"][:10], now)
        for calls, _, now in await ground_all("retail", look, count=20)
    ]
    assert days
    assert all(date.fromisoformat(day) < date(now.year, now.month, now.day) for day, now in days)


async def test_what_is_given_away_costs_no_more_than_the_story_allows():
    look = {"tool": "get_order", "where": {"status": ["pending", "processing"]}, "up_to": {"total": 160}}
    totals = [calls["get_order"].result["total"] for calls, _, _ in await ground_all("retail", look, count=20)]
    assert totals
    assert max(totals) <= 160


async def list_days_ahead(step, count):
    """Return how far ahead the events lie that a step of the calendar is about."""
    return [
        date.fromisoformat(calls[step["tool"]].result["starts_at"][:10]) - date(now.year, now.month, now.day)
        for calls, _, now in await ground_all("calendar", step, count=count)
    ]


async def test_who_is_hurt_cancels_what_is_near():
    cancel = {"tool": "cancel_event", "days_near": {"starts_at": 5}}
    days = await list_days_ahead(cancel, count=10)
    assert days
    assert max(days) <= timedelta(days=5)


async def test_who_needs_a_room_asks_about_a_meeting_that_is_still_to_come():
    look = {"tool": "get_event", "days_coming": {"starts_at": 20}}
    days = await list_days_ahead(look, count=20)
    assert days
    assert timedelta(days=1) <= min(days) <= max(days) <= timedelta(days=20)


async def test_money_is_saved_from_an_account_that_has_some():
    save = {"tool": "add_to_savings_goal", "where": {"kind": ["current"]}, "at_least": {"balance": 250}}
    balances = []
    for calls, _, _ in await ground_all("bank", save, count=20):
        result = calls["add_to_savings_goal"].result
        balances.append(result["balance"] + result["amount"])
    assert balances
    assert min(balances) >= 250


async def test_access_lasts_as_many_days_as_the_story_needs():
    asks = {"tool": "request_access", "arguments": {"system": ["remote_access"]}, "days_ahead": {"until": 21}}
    lasting = [
        date.fromisoformat(calls["request_access"].arguments["until"]) - date(now.year, now.month, now.day)
        for calls, _, now in await ground_all("helpdesk", asks, count=6)
        if "until" in calls["request_access"].arguments
    ]
    assert lasting
    assert min(lasting) >= timedelta(days=21)


@pytest.mark.parametrize("reference", ["add_extra", "add_extra."])
def test_a_condition_that_names_no_field_is_refused(reference):
    steps = (
        {"tool": "add_extra", "arguments": {"extra": ["dog"]}},
        {"tool": "get_hotel", "where_same": {"city": reference}},
    )
    book = ScenarioBook(scenarios=(Scenario.model_validate({"id": "story", "motives": ["Hello."], "steps": steps}),))
    with pytest.raises(InputError, match=r"where_same: 'add_extra\.?' names no field"):
        check_scenarios(book, ENVIRONMENTS.get("travel").describe())


async def test_what_is_urgent_is_wanted_soon():
    """A laptop that fails before a presentation is not collected in five weeks."""
    asks = {"tool": "order_replacement", "days_within": {"collect_on": 10}}
    waits = [
        date.fromisoformat(calls["order_replacement"].arguments["collect_on"]) - date(now.year, now.month, now.day)
        for calls, _, now in await ground_all("helpdesk", asks, count=8)
    ]
    assert waits
    assert timedelta(0) < min(waits) <= max(waits) <= timedelta(days=10)


@pytest.mark.parametrize(
    ("rows", "unmet"),
    [
        ([{"door_open": False}, {"door_open": False}], ""),
        ([{"door_open": False}, {"door_open": True}], "every door_open"),
        ([{"door_open": False}], "least_rows"),
        ([], "least_rows"),
    ],
)
def test_nobody_passes_over_a_door_that_stands_open(rows, unmet):
    step = ScenarioStep(tool="list_locks", every={"door_open": (False,)}, least_rows=2)
    assert StepConstraints(step, {}).find_unmet({"result": rows}) == StepConstraints(step, {}).find_unmet(rows) == unmet


async def test_a_step_is_left_out_whose_result_does_not_bear_it_out():
    steps = [
        {"tool": "list_locks", "every": {"battery_percent": [0]}},
        {"tool": "list_scenes"},
        {"tool": "list_schedules"},
    ]
    shown = [calls for calls, _, _ in await ground_all("smart_home", *steps)]
    assert shown and not any("list_locks" in calls for calls in shown)


async def test_who_has_too_much_planned_is_shown_several_events():
    look = {"tool": "list_events", "arguments": {"days": [3]}, "least_rows": 4}
    calls = [calls["list_events"] for calls, _, _ in await ground_all("calendar", look, seeds=range(8))]
    assert calls
    assert min(len(call.result["result"]) for call in calls) >= 4


def test_a_condition_on_all_rows_names_a_field_of_the_tool():
    step = {"tool": "list_locks", "every": {"to_city": ["Selbay"]}}
    book = ScenarioBook(scenarios=(Scenario.model_validate({"id": "story", "motives": ["Hello."], "steps": [step]}),))
    with pytest.raises(InputError, match="every: no result of list_locks has a field 'to_city'"):
        check_scenarios(book, ENVIRONMENTS.get("smart_home").describe())


async def test_a_story_without_what_the_user_came_for_is_not_told():
    never = {"tool": "list_locks", "every": {"battery_percent": [0]}, "needed": True}
    assert await ground_all("smart_home", never, {"tool": "list_scenes"}, {"tool": "list_schedules"}) == []
