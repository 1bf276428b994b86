"""Checks of what environments state about days, limits and what is left, and of what they leave behind."""

from datetime import date, timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from corner_shop import (
    TOOLS,
    Play,
    Refuse,
    Session,
    Shop,
    Tool,
    changed,
    initial,
    number,
    place_order,
    row,
    set_note,
    summary,
    text,
)
from examining import calls, found, report_on

from trajsmith.envcheck import CheckPlan
from trajsmith.envcheck.case_runner import extract_refusal
from trajsmith.envcheck.checks.stated_limits import _rules
from trajsmith.envcheck.exploration import ExplorationEffort
from trajsmith.environments import ToolResult
from trajsmith.records import EnvironmentFault, JsonObject

OPEN_DAYS = 6


def today(play: Play) -> date:
    return date.fromisoformat(play.state["now"][:10])


def complain(play: Play, order_id: str, early: int = 0) -> JsonObject:
    order = row(play, "orders", order_id)
    last = date.fromisoformat(order["placed_on"]) + timedelta(days=OPEN_DAYS)
    if today(play) > last - timedelta(days=early):
        raise Refuse(f"one could complain about order {order_id} only until {last}")
    if order["note"] == "complaint":
        raise Refuse(f"there is a complaint about order {order_id} already")
    order["note"] = "complaint"
    return summary(order)


def complain_a_day_less(play: Play, order_id: str) -> JsonObject:
    return complain(play, order_id, early=1)


def complain_a_day_more(play: Play, order_id: str) -> JsonObject:
    return complain(play, order_id, early=-1)


def with_complaints(run: Any) -> dict[str, Tool]:
    tool = Tool(run, "Complain about an order.", {"order_id": text("Order number.")}, ("order_id",))
    return {**TOOLS, "complain": tool}


async def test_what_is_possible_until_a_day_is_possible_on_it() -> None:
    assert await found(Shop(tools=with_complaints(complain)), "last_day") == []
    (finding,) = await found(Shop(tools=with_complaints(complain_a_day_less)), "last_day")
    assert "refuses on the last day" in finding.message
    assert calls(finding) == ["complain"]
    (finding,) = await found(Shop(tools=with_complaints(complain_a_day_more)), "last_day")
    assert "succeeds after the last day" in finding.message


def remind(play: Play, order_id: str, until: str) -> JsonObject:
    order = row(play, "orders", order_id)
    if until < today(play).isoformat():
        raise Refuse(f"{until} has passed already")
    if order["note"] == until:
        raise Refuse(f"order {order_id} has this reminder already")
    order["note"] = until
    return summary(order)


def remind_any_day(play: Play, order_id: str, until: str) -> JsonObject:
    row(play, "orders", order_id)["note"] = f"until {until}"
    return summary(row(play, "orders", order_id))


async def test_what_is_to_come_does_not_lie_in_the_past() -> None:
    parameters = {"order_id": text("Order number."), "until": text("Day.", format="date")}
    sound = Tool(remind, "Be reminded of an order.", parameters, ("order_id", "until"))
    faulty = Tool(remind_any_day, "Be reminded of an order.", parameters, ("order_id", "until"))
    assert await found(Shop(tools={**TOOLS, "remind": sound}), "past_days") == []
    (finding,) = await found(Shop(tools={**TOOLS, "remind": faulty}), "past_days")
    assert (finding.tool, calls(finding)) == ("remind", ["remind"])


@pytest.mark.parametrize(("day", "expected"), [("2026-01-05", []), ("2031-01-05", ["remind"])], ids=["over", "ahead"])
async def test_what_is_over_in_initial_states_may_be_corrected(day: str, expected: list[str]) -> None:
    def move(play: Play, order_id: str, until: str) -> JsonObject:
        row(play, "orders", order_id)["until"] = until
        return summary(row(play, "orders", order_id))

    def start(seed: int) -> JsonObject:
        state = initial(seed)
        for order in state["orders"].values():
            order["until"] = day
        return state

    parameters = {"order_id": text("Order number."), "until": text("Day.", format="date")}
    moving = Tool(move, "Move the end of an order.", parameters, ("order_id", "until"))
    shop = Shop(tools={**TOOLS, "remind": moving}, states=start)
    assert [one.tool for one in await found(shop, "past_days")] == expected


@pytest.mark.parametrize(
    ("relation", "limits"), [("pipelines", []), ("pipeline_runs", [4]), ("job_runs", []), ("runs", [])]
)
def test_a_limit_is_of_what_it_names_whole(relation: str, limits: list[int]) -> None:
    names = ("pipelines", "pipeline_runs", "job_runs", "runs", "projects")
    views = [SimpleNamespace(relations={name: {} for name in names})]
    session: Any = SimpleNamespace(
        data=SimpleNamespace(views=views, references=()), explored=SimpleNamespace(by_tool={"create": []}),
        spec=SimpleNamespace(policy="A project has at most 4 pipeline runs."),
    )  # fmt: skip
    tool: Any = SimpleNamespace(name="create", description="", parameters={})
    assert [rule.number for rule in _rules(session, tool, relation)] == limits


async def test_a_limit_in_the_description_of_a_parameter_holds() -> None:
    customer_id = TOOLS["add_credit"].parameters["customer_id"]
    for most, expected in ((500, []), (300, ["add_credit"])):
        amount = number(f"Pounds, at most {most}.", minimum=1, maximum=900)
        shop = Shop(tools=changed("add_credit", parameters={"customer_id": customer_id, "amount": amount}))
        assert [finding.tool for finding in await found(shop, "parameter_limits")] == expected


async def test_what_is_made_stands_beside_what_was_there() -> None:
    def counts_too_late(play: Play, **arguments: Any) -> JsonObject:
        made = place_order(play, **arguments)
        play.state["counters"]["order"] -= 1
        return made

    (finding,) = await found(Shop({"place_order": counts_too_late}), "overwrites")
    assert finding.severity == "error"
    assert calls(finding) == ["place_order", "place_order"]


async def test_less_than_nothing_is_never_left() -> None:
    def miscounts(play: Play, **arguments: Any) -> JsonObject:
        made = place_order(play, **arguments)
        left = row(play, "products", arguments["product_id"])["stock"] - 2
        return {**made, "left_in_stock": left}

    (finding,) = await found(Shop({"place_order": miscounts}), "remaining")
    assert "left_in_stock is -" in finding.seen


async def test_what_is_moved_is_not_copied() -> None:
    def put_away(play: Play, order_id: str) -> JsonObject:
        order = row(play, "orders", order_id)
        play.state["archive"][f"A{order_id}"] = {"archive_id": f"A{order_id}", **order}
        return summary(order)

    def with_archive(seed: int) -> JsonObject:
        state = initial(seed)
        old = {f"AW{number}": {"archive_id": f"AW{number}", "order_id": f"W{number}"} for number in range(3)}
        return {**state, "archive": old}

    tool = Tool(put_away, "Put an order away.", {"order_id": text("Order number.")}, ("order_id",))
    (finding,) = await found(Shop(tools={**TOOLS, "put_away": tool}, states=with_archive), "copies")
    assert "is in orders as well" in finding.seen


async def test_a_state_that_cannot_be_loaded() -> None:
    class Choosy(Session):
        async def reset(self, state: JsonObject) -> None:
            if any(order["note"] == "poison" for order in state["orders"].values()):
                raise EnvironmentFault("state", "shop", "there is poison in it")
            await super().reset(state)

    class ChoosyShop(Shop):
        async def open(self) -> Session:
            return Choosy(self)

    def poisons(play: Play, order_id: str, note: str) -> JsonObject:
        return set_note(play, order_id, "poison")

    (finding,) = await found(ChoosyShop({"set_note": poisons}), "round_trip")
    assert finding.tool == "set_note"
    assert "there is poison in it" in finding.seen


async def test_what_the_source_has_noticed_is_told() -> None:
    class Watched(Shop):
        async def look(self) -> tuple[list[str], list[str]] | None:
            return ["shop.CACHE"], ["clock"]

        def gate(self) -> list[JsonObject]:
            return [{"line": 7, "rule": "global", "message": "a global statement"}]

    report = await report_on(Watched(), "undeclared_state", "gate")
    assert {(one.check, one.severity, one.tool) for one in report.findings} == {
        ("undeclared_state", "error", None),
        ("gate", "note", None),
    }
    assert "shop.CACHE" in report.findings[0].message
    assert report.score < 1.0


async def test_where_plays_share_nothing_nothing_is_left_behind() -> None:
    class Apart(Shop):
        async def look(self) -> tuple[list[str], list[str]] | None:
            return None

    (check,) = (await report_on(Apart(), "undeclared_state")).checks
    assert (check.outcome, check.findings) == ("skipped", 0)
    assert "processes of their own" in check.reason


@pytest.mark.parametrize("ignores", [True, False], ids=["ignored", "used"])
async def test_a_parameter_that_makes_no_difference_is_noted(ignores: bool) -> None:
    def priced(play: Play, product_id: str, currency: str = "GBP") -> JsonObject:
        shown = {"name": row(play, "products", product_id)["name"]}
        return shown if ignores else {**shown, "currency": currency}

    parameters = {"product_id": text("Product."), "currency": text("Currency.", enum=["GBP", "EUR", "CHF", "SEK"])}
    tool = Tool(priced, "Name a product.", parameters, ("product_id", "currency"), reads=True)
    plan = CheckPlan(effort=ExplorationEffort(first=50, enough=40, walks=0), seeds=8, starts=3)
    report = await report_on(Shop(tools={**TOOLS, "name_product": tool}), "inert", plan=plan)
    assert [(one.tool, one.severity) for one in report.findings] == ([("name_product", "note")] if ignores else [])


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ({"status": "failed", "message": "no such run"}, "no such run"),
        ({"status": "error"}, ""),
        ({"success": False, "id": "r1", "name": "Nightly", "message": "locked", "at": "now"}, "locked"),
        ({"run_id": "r1", "run_name": "Nightly", "tester": "Ann", "host": "ci", "status": "failed"}, None),
        ({"run_id": "r1", "status": "passed"}, None),
    ],
)
def test_a_record_whose_status_is_failed_is_no_refusal(content: JsonObject, reason: str | None) -> None:
    assert extract_refusal(ToolResult(content)) == reason
