"""Shrinking, scores, the budget, replays and the page."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from corner_shop import Play, Refuse, Shop, cancel_order, place_order, row
from examining import PLAN

from trajsmith.envcheck import (
    CaseEvidence,
    CaseStep,
    CheckCase,
    CheckPlan,
    CheckSession,
    EnvironmentReport,
    Finding,
    StartState,
    check_environment,
    check_session,
    render_reports_html,
    replay_finding,
)
from trajsmith.envcheck.case_runner import CheckTimeExceeded
from trajsmith.envcheck.checks import CHECKS, Check, Suspicion
from trajsmith.envcheck.shrink import shrink_case
from trajsmith.envcheck.stated_numbers import find_counted_numbers, find_list_limit, find_upper_limits
from trajsmith.records import InputError, JsonObject


def step(tool: str, **arguments: Any) -> CaseStep:
    return CaseStep(tool=tool, arguments=arguments)


# Shrinking


async def test_a_case_becomes_as_small_as_still_shows_it() -> None:
    async def judge(case: CheckCase) -> CaseEvidence | None:
        tools = [one.tool for one in case.steps]
        return CaseEvidence(seen="b then d", expected="") if "b" in tools and tools[-1:] == ["d"] else None

    steps = tuple(step(name, note="x" * 90, size=[1, 2, 3]) for name in "abcabcd")
    case, evidence = await shrink_case(
        CheckCase(start=StartState(seed=0, index=0), steps=steps), CaseEvidence(seen="", expected=""), judge, {}
    )
    assert [one.tool for one in case.steps] == ["b", "d"]
    assert case.steps[0].arguments == {}
    assert evidence.seen == "b then d"


# Numbers in words


@pytest.mark.parametrize(
    ("text", "number", "noun"),
    [
        ("an event has at most 6 guests", 6, "guest"),
        ("only £1,250.50 of the limit is left", 1250.5, "of"),
        ("visits are possible from tomorrow to 30 days ahead", 30, "day"),
        ("A customer has at most one visit booked.", 1, "visit"),
    ],
)
def test_limits_in_texts(text: str, number: float, noun: str) -> None:
    assert [(limit.number, limit.rest[0]) for limit in find_upper_limits(text)] == [(number, noun)]


def test_both_ends_of_a_range() -> None:
    found = {(limit.side, limit.number) for limit in find_upper_limits("it can be set between 12 and 24 degrees only")}
    assert found == {("lower", 12), ("upper", 24)}


def test_what_numbers_count() -> None:
    assert find_counted_numbers("within 60 days, for 2 open orders") == ((60, "day"), (2, "order"))
    assert find_list_limit("List the orders, newest first, at most 8.") == 8
    assert find_list_limit("Delay an order.") is None


# Report


def breaks(play: Play, order_id: str) -> JsonObject:
    made = cancel_order(play, order_id)
    return {**made, "share": 1 / (row(play, "products", "P10")["stock"] * 0)}


async def crashing() -> tuple[Shop, EnvironmentReport]:
    shop = Shop({"cancel_order": breaks})
    return shop, await check_environment(shop, PLAN)


async def test_the_same_seed_says_the_same_and_a_faulty_tool_scores_less() -> None:
    shop, first = await crashing()
    second = await check_environment(shop, PLAN)
    assert first.model_dump(exclude={"cpu_seconds"}) == second.model_dump(exclude={"cpu_seconds"})
    scores = {tool.name: tool.score for tool in first.tools}
    assert scores["cancel_order"] < 0.75
    assert scores["get_product"] == 1.0
    assert min(scores.values()) < first.score < 1.0
    crash = next(check for check in first.checks if check.name == "crash")
    assert (crash.outcome, crash.findings) == ("failed", 1)


async def test_a_finding_is_shown_again_by_its_calls() -> None:
    shop, report = await crashing()
    (finding,) = (one for one in report.findings if one.check == "crash")
    shown = await replay_finding(shop, Finding.model_validate_json(finding.model_dump_json()), PLAN)
    assert shown.judged
    assert shown.evidence is not None
    assert "ZeroDivisionError" in shown.evidence.seen
    assert [line.split("(")[0] for line in shown.lines if line.startswith("call")] == ["call cancel_order"]


async def test_a_finding_that_was_mended_does_not_show() -> None:
    _, report = await crashing()
    shown = await replay_finding(Shop(), report.findings[0], PLAN)
    assert shown.evidence is None


async def test_a_finding_about_a_tool_that_is_gone_is_wrong_input() -> None:
    case = CheckCase(start=StartState(seed=0, index=0), steps=(step("ghost"),))
    finding = Finding(
        id="1", check="crash", severity="error", tool="ghost", message="", case=case, seen="", expected=""
    )
    with pytest.raises(InputError, match="calls ghost, which shop does not have"):
        await replay_finding(Shop(), finding, PLAN)
    with pytest.raises(InputError, match="a check that there is not: chess"):
        await replay_finding(Shop(), finding.model_copy(update={"check": "chess"}), PLAN)


async def test_a_budget_ends_an_examination_and_says_where() -> None:
    report = await check_environment(Shop(), CheckPlan(seconds=0.05))
    assert report.stopped == "exploring"
    assert report.score is None, "nothing can be said where nothing was looked at"
    assert {tool.score for tool in report.tools} == {None}
    assert {check.outcome for check in report.checks} == {"not reached"}
    assert "so there is no score" in render_reports_html([report])


async def test_checks_that_the_budget_does_not_reach_have_not_passed() -> None:
    class Endless(Check):
        name, about = "endless", "it never ends"

        async def look(self, exam: CheckSession) -> AsyncIterator[Suspicion]:
            raise CheckTimeExceeded
            yield

    first, *rest = CHECKS
    report = await check_environment(Shop(), PLAN, [first, Endless(), *rest])
    assert report.stopped == "endless"
    assert report.score == 1.0, "of what was done"
    assert [check.outcome for check in report.checks] == ["passed", *["not reached"] * (len(CHECKS))]


async def test_of_large_initial_states_a_few_are_read_and_the_report_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = await check_environment(Shop(), PLAN, CHECKS[:1])
    monkeypatch.setattr(check_session, "READ_BYTES", 1)
    report = await check_environment(Shop(), PLAN, CHECKS[:1])
    assert whole.states > 1 and not whole.sampled
    assert report.states == 1 and report.sampled
    assert report.calls > 0 and report.stopped == ""
    assert "learned from the first 1 only" in render_reports_html([report])


async def test_the_time_in_which_initial_states_are_read_counts() -> None:
    class SlowShop(Shop):
        async def states(self, seed: int) -> list[JsonObject]:
            await asyncio.sleep(0.3)
            return await super().states(seed)

    report = await check_environment(SlowShop(), CheckPlan(seconds=0.3, seeds=1))
    assert report.stopped == "exploring" and report.calls == 0


async def test_every_finding_is_confirmed_by_playing_its_case() -> None:
    """Chance in an environment makes suspicions that do not show again; they are counted, not told."""
    numbers = iter(range(10_000))

    def rarely(play: Play, **arguments: Any) -> JsonObject:
        if next(numbers) == 7:
            raise ZeroDivisionError
        return place_order(play, **arguments)

    report = await check_environment(
        Shop({"place_order": rarely}), PLAN, [one for one in CHECKS if one.name == "crash"]
    )
    assert report.findings == ()
    assert list(report.unconfirmed) == ["crash: place_order: crash:ZeroDivisionError"]


async def test_the_page_holds_everything_and_loads_nothing() -> None:
    def rude(play: Play, order_id: str) -> JsonObject:
        raise Refuse("<script>alert(1)</script> is not allowed here")

    shop = Shop({"cancel_order": rude})
    report = await check_environment(shop, PLAN, [one for one in CHECKS if one.name in ("reachable", "crash", "clock")])
    html = render_reports_html([report])
    assert "<script>" not in html
    assert "&lt;script&gt;" in html
    assert report.findings[0].id in html
    assert "cannot be started again in another process" in html
    assert "http:" not in html
    assert "https:" not in html
