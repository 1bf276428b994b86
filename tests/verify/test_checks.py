"""Checks, tested themselves: the gold run passes; doing nothing, too much or the wrong thing fails."""

import copy
from datetime import datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trajsmith.records import (
    AnswerCheck,
    CheckOutcome,
    CodeCheck,
    JsonObject,
    PolicyCheck,
    PolicyRule,
    StateCheck,
    UntouchedCheck,
)
from trajsmith.verify import check_gold_run, derive_checks, run_check
from trajsmith.verify.checks import MISSING, resolve_pointer

steady = settings(deadline=None, derandomize=True, max_examples=80)

BEFORE: JsonObject = {
    "now": datetime(2026, 3, 2).isoformat(),
    "counters": {"note": 1},
    "orders": {
        "W1": {"status": "pending", "lines": [{"sku": "A"}, {"sku": "B"}], "tags": ["x"], "paid": True},
        "W2": {"status": "pending", "lines": [], "tags": [], "paid": False},
    },
    "log": ["start"],
}


def changed(change: str, state: JsonObject = BEFORE) -> JsonObject:
    """A copy of the state, changed by one statement over `s`."""
    after = copy.deepcopy(state)
    exec(change, {"s": after})
    return after


def failures(checks: Any, state: JsonObject, answer: str = "") -> list[str]:
    return [check.kind for check in checks if run_check(check, BEFORE, state, answer).passed is not True]


CHANGES = [
    pytest.param("s['orders']['W1']['status'] = 'cancelled'", id="field"),
    pytest.param("s['orders']['W3'] = {'status': 'pending'}", id="new-row"),
    pytest.param("del s['orders']['W2']", id="lost-row"),
    pytest.param("del s['orders']['W1']['paid']", id="lost-field"),
    pytest.param("s['orders']['W1']['lines'].append({'sku': 'C'})", id="longer-list"),
    pytest.param("s['orders']['W1']['lines'].pop(0)", id="shorter-list-first"),
    pytest.param("s['orders']['W1']['lines'].pop()", id="shorter-list-last"),
    pytest.param("s['orders']['W1']['lines'][1]['sku'] = 'Z'", id="field-in-a-list"),
    pytest.param("s['orders']['W1']['paid'] = 1", id="flag-becomes-a-number"),
    pytest.param("s['log'].append('more')", id="top-level-list"),
    pytest.param("s['orders']['a/b~c'] = {'status': 'new'}", id="awkward-key"),
    pytest.param("s['orders']['W1'].update(status='shipped', paid=False); s['counters']['note'] = 2", id="several"),
]


@pytest.mark.parametrize("change", CHANGES)
def test_the_gold_run_passes_and_doing_nothing_fails(change: str) -> None:
    after = changed(change)
    checks = derive_checks(BEFORE, BEFORE, after, [], 0)
    assert failures(checks, after) == []
    assert "state" in failures(checks, BEFORE)
    assert check_gold_run([checks], BEFORE, [after]) is None


@pytest.mark.parametrize("change", CHANGES)
def test_a_wrong_extra_write_elsewhere_fails_untouched(change: str) -> None:
    after = changed(change)
    checks = derive_checks(BEFORE, BEFORE, after, [], 0)
    assert failures(checks, changed("s['orders']['W9'] = {'status': 'pending'}", after)) == ["untouched"]


@pytest.mark.parametrize(
    ("wrong", "kinds"),
    [
        pytest.param("s['orders']['W2']['status'] = 'cancelled'", ["state", "untouched"], id="another-row"),
        pytest.param("s['orders']['W1']['status'] = 'shipped'", ["state"], id="another-value"),
        pytest.param("del s['orders']['W1']", ["state", "untouched"], id="row-is-gone"),
        pytest.param(
            "s['orders']['W1'].update(status='cancelled', paid=False)", ["untouched"], id="more-in-the-same-row"
        ),
        pytest.param("s['orders']['W1']['status'] = 'cancelled'; del s['orders']['W2']", ["untouched"], id="too-much"),
        pytest.param("s['orders']['W1']['status'] = 'cancelled'; s['log'].clear()", ["untouched"], id="log-is-gone"),
    ],
)
def test_mutants_of_the_gold_run_fail(wrong: str, kinds: list[str]) -> None:
    checks = derive_checks(BEFORE, BEFORE, changed("s['orders']['W1']['status'] = 'cancelled'"), [], 0)
    assert failures(checks, changed(wrong)) == kinds


def test_untouched_names_what_was_touched() -> None:
    checks = derive_checks(BEFORE, BEFORE, changed("s['orders']['W1']['status'] = 'cancelled'"), [], 0)
    touched = changed("s['orders']['W2']['status'] = 'x'; s['log'].append('y')")
    outcome = next(run_check(check, BEFORE, touched, "") for check in checks if check.kind == "untouched")
    assert outcome == CheckOutcome(
        says="nothing changes but /orders/W1/status", kind="untouched", passed=False, detail="/log/-, /orders/W2/status"
    )


def test_a_later_turn_may_keep_what_an_earlier_one_changed() -> None:
    first = changed("s['orders']['W1']['status'] = 'cancelled'")
    second = changed("s['orders']['W2']['paid'] = True", first)
    checks = derive_checks(BEFORE, first, second, [], 1)
    assert [check.path for check in checks if isinstance(check, StateCheck)] == ["/orders/W2/paid"]
    assert failures(checks, second) == []
    assert check_gold_run([derive_checks(BEFORE, BEFORE, first, [], 0), checks], BEFORE, [first, second]) is None


def test_the_last_turn_holds_what_earlier_ones_did() -> None:
    first = changed("s['orders']['W1']['status'] = 'cancelled'")
    second = changed("s['orders']['W2']['paid'] = True", first)
    checks = derive_checks(BEFORE, first, second, [], 1, last=True)
    assert [check.path for check in checks if isinstance(check, StateCheck)] == ["/orders/W1/status", "/orders/W2/paid"]
    assert failures(checks, changed("s['orders']['W1']['status'] = 'pending'", second)) == ["state"]


def test_a_value_that_was_given_out_is_looked_up_in_the_run() -> None:
    check = AnswerCheck(says="x", value="N4", turn=0, at="/notes/new:a/note_id")
    assert run_check(check, {}, {}, "It is N7.", generated_values={"/notes/new:a/note_id": "N7"}).passed is True
    assert run_check(check, {}, {}, "It is N4.", generated_values={"/notes/new:a/note_id": "N7"}).passed is False
    missing = run_check(check, {}, {}, "It is N4.", generated_values={})
    assert (missing.passed, missing.detail) == (False, "there is no /notes/new:a/note_id")


FIRST = PolicyRule(says="x", tools=("pay",), after=("look", "find"))
SAME = PolicyRule(says="x", tools=("look",), same=("phone",))


@pytest.mark.parametrize(
    ("rule", "calls", "broken"),
    [
        pytest.param(FIRST, [("look", {}, True), ("pay", {}, True)], None, id="in-order"),
        pytest.param(FIRST, [("pay", {}, True)], "pay before any of look, find", id="too-early"),
        pytest.param(FIRST, [("look", {}, False), ("pay", {}, True)], "pay before any of look, find", id="refused"),
        pytest.param(FIRST, [("pay", {}, False)], None, id="refused-pay"),
        pytest.param(SAME, [("look", {"phone": "1"}, True), ("look", {"phone": "1"}, True)], None, id="twice"),
        pytest.param(
            SAME, [("look", {"phone": "1"}, True), ("look", {"phone": "2"}, True)],
            "look with another phone than before", id="another",
        ),
    ],
)  # fmt: skip
def test_policy_rules(rule: PolicyRule, calls: Any, broken: str | None) -> None:
    outcome = run_check(PolicyCheck(says="x", rule=rule), {}, {}, "", calls=calls)
    assert (outcome.kind, outcome.passed, outcome.detail) == ("policy", broken is None, broken or "")


def test_a_written_function_cannot_tell_without_the_sandbox() -> None:
    outcome = run_check(CodeCheck(says="x", source="def check(i, f, a): return True"), {}, {}, "")
    assert (outcome.passed, outcome.detail) == (None, "needs the sandbox")


def test_a_turn_that_only_reads_lets_nothing_change() -> None:
    checks = derive_checks(BEFORE, BEFORE, BEFORE, ["pending"], 0)
    assert [check.says for check in checks] == ["nothing in the state changes", "the answer tells pending"]
    assert failures(checks, BEFORE, "It is still pending.") == []
    assert failures(checks, changed("s['log'].append('x')"), "It is still pending.") == ["untouched"]


@pytest.mark.parametrize(
    ("fact", "answer", "passed"),
    [
        pytest.param(120.5, "You get £120.50 back.", True, id="money"),
        pytest.param(120.5, "You get £12.50 back.", False, id="wrong-money"),
        pytest.param(5, "There are 15 left.", False, id="part-of-a-number"),
        pytest.param("2026-03-03", "It comes on 3 March.", True, id="date"),
        pytest.param("out_for_delivery", "It's out for delivery.", True, id="snake"),
        pytest.param("W1", "", False, id="silence"),
    ],
)
def test_answers(fact: Any, answer: str, passed: bool) -> None:
    outcome = run_check(AnswerCheck(says="x", value=fact, turn=0), BEFORE, BEFORE, answer)
    assert (outcome.kind, outcome.passed) == ("answer", passed)


def test_doing_nothing_must_fail_something() -> None:
    assert (
        check_gold_run([derive_checks(BEFORE, BEFORE, BEFORE, [], 0)], BEFORE, [BEFORE])
        == "doing nothing passes all checks"
    )
    assert check_gold_run([derive_checks(BEFORE, BEFORE, BEFORE, ["pending"], 0)], BEFORE, [BEFORE]) is None


def test_checks_that_the_gold_run_fails_are_named() -> None:
    check = StateCheck(says="orders W1 status is cancelled", path="/orders/W1/status", value="cancelled")
    assert check_gold_run([[check]], BEFORE, [BEFORE]) == "the gold run fails: orders W1 status is cancelled"


@pytest.mark.parametrize(
    ("value", "found"),
    [
        pytest.param(True, 1, id="flag-or-number"),
        pytest.param([True], [1], id="in-a-list"),
        pytest.param(0, False, id="zero"),
    ],
)
def test_state_checks_tell_flags_from_numbers(value: Any, found: Any) -> None:
    check = StateCheck(says="x", path="/x", value=value)
    assert run_check(check, {}, {"x": found}, "").passed is False
    assert run_check(check, {}, {"x": value}, "").passed is True


@pytest.mark.parametrize(
    ("path", "value"),
    [
        pytest.param("/orders/W1/lines/1/sku", "B", id="through-a-list"),
        pytest.param("/orders/W1/lines/2", MISSING, id="beyond-a-list"),
        pytest.param("/orders/W1/lines/-1", MISSING, id="no-index"),
        pytest.param("/orders/W9/status", MISSING, id="no-row"),
        pytest.param("/now/x", MISSING, id="below-a-text"),
        pytest.param("/log", ["start"], id="list"),
    ],
)
def test_pointer(path: str, value: Any) -> None:
    assert resolve_pointer(BEFORE, path) == value


LEAF = st.none() | st.booleans() | st.integers(-2, 2) | st.sampled_from(["a", "b"])
ROW = st.dictionaries(st.sampled_from(["a", "b", "c/d"]), LEAF | st.lists(LEAF, max_size=3), max_size=3)
STATE = st.fixed_dictionaries({"t": st.dictionaries(st.sampled_from(["1", "2", "3"]), ROW, max_size=3), "u": ROW})


@steady
@given(STATE, STATE)
def test_whatever_changes_gold_passes_and_nothing_fails(before: JsonObject, after: JsonObject) -> None:
    checks = derive_checks(before, before, after, [], 0)
    assert [check.says for check in checks if run_check(check, before, after, "").passed is not True] == []
    changes = any(isinstance(check, StateCheck) for check in checks)
    fails = any(run_check(check, before, before, "").passed is False for check in checks)
    assert fails is changes
    assert isinstance(checks[-1], UntouchedCheck)
