"""Effects of rows on groups of tasks: planted ones are attributed, twins are not told apart, chance says nothing."""

import random

import pytest

from trajsmith.evals.attribution import RoundRows, attribute_gains, count_shares

KINDS = [
    ("environment", "bank"),
    ("environment", "shop"),
    ("skill", "tool search"),
    ("source", "program"),
    ("tool", "a"),
]
GROUPS = [("environment", "bank"), ("environment", "shop"), ("skill", "tool search"), ("variant", "refused")]


def make_rounds(count, effects, seed=1, tasks=300, twins=()):
    """Make rounds: `effects` is (kind of rows, group) to the gain for all rows of one round more."""
    rng, rounds, had = random.Random(seed), [], dict.fromkeys(KINDS, 0.0)
    for number in range(1, count + 1):
        control = dict.fromkeys(KINDS, 0.3)
        targeted = {kind: min(0.9, max(0.0, 0.3 + rng.uniform(-0.3, 0.4))) for kind in KINDS}
        for one, other in twins:
            targeted[other] = targeted[one]
        had = {kind: had[kind] + targeted[kind] - control[kind] for kind in KINDS}
        outcomes = []
        for _ in range(tasks):
            groups = frozenset(group for group in GROUPS if rng.random() < 0.4)
            gain = sum(size * had[kind] for (kind, group), size in effects.items() if group in groups)
            up, down = min(0.9, 0.1 + max(gain, 0)), min(0.9, 0.1 + max(-gain, 0))
            draw = rng.random()
            outcomes.append((groups, 1.0 if draw < up else -1.0 if draw > 1 - down else 0.0))
        rounds.append(RoundRows(number=number, targeted=targeted, control=control, outcomes=tuple(outcomes)))
    return rounds


PLANTED = {(("skill", "tool search"), ("skill", "tool search")): 0.4}


def test_a_planted_effect_is_attributed_to_its_rows_with_its_size():
    clear = []
    for seed in range(10):
        effects = attribute_gains(make_rounds(8, PLANTED, seed)).effects
        clear += [one for one in effects if (one.group, one.verdict) == ("tool search", "attributed")]
    assert len(clear) >= 8 and {one.rows for one in clear} == {"tool search"}, clear
    assert sum(one.low < 0.04 < one.high for one in clear) >= len(clear) - 2, clear


def test_without_effects_hardly_anything_is_named():
    found = [attribute_gains(make_rounds(6, {}, seed)) for seed in range(12)]
    quiet = [one for one in found if not one.effects]
    assert len(quiet) >= 10
    assert all("too little to say which rows moved which tasks: none of 20 pairs" in one.says for one in quiet)


def test_kinds_of_rows_that_changed_alike_are_not_told_apart():
    twins = [(("skill", "tool search"), ("tool", "a"))]
    found = attribute_gains(make_rounds(8, PLANTED, 1, twins=twins))
    one = next(one for one in found.effects if one.group == "tool search")
    assert one.verdict == "not to be told apart"
    assert {f"{one.dimension} {one.rows}", *one.alike} == {"skill tool search", "tool a"}


@pytest.mark.parametrize("count", [0, 1, 2])
def test_few_rounds_say_too_little_and_show_the_shares(count):
    found = attribute_gains(make_rounds(count, PLANTED))
    assert f"too little to say which rows moved which tasks: {count} of at least 3 rounds" in found.says
    assert not found.effects and bool(found.shares) == bool(count)
    assert all(len(one.differences) == count for one in found.shares)


def test_small_groups_and_even_shares_are_not_tested():
    rounds = make_rounds(4, PLANTED, tasks=3)
    assert attribute_gains(rounds).tested == 0
    even = [one.model_copy(update={"targeted": one.control}) for one in make_rounds(4, PLANTED)]
    found = attribute_gains(even)
    assert (found.tested, found.shares) == (0, ())


def test_one_round_alone_carries_no_effect():
    quiet = make_rounds(5, {}, 3)
    loud = tuple((groups, 1.0) for groups, _ in quiet[0].outcomes)
    flat = [one.model_copy(update={"targeted": one.control}) for one in quiet[1:]]
    rounds = [quiet[0].model_copy(update={"outcomes": loud}), *flat]
    silent = [one.model_copy(update={"outcomes": tuple((groups, 0.0) for groups, _ in one.outcomes)}) for one in flat]
    assert attribute_gains([rounds[0], *silent]).effects == ()


def test_shares_count_a_row_once_for_each_of_its_kinds():
    rows = [{"tool": ("a", "a", "b"), "environment": ("x",)}, {"tool": ("b",), "environment": ("x",)}]
    assert count_shares(rows) == {("tool", "a"): 0.5, ("tool", "b"): 1.0, ("environment", "x"): 1.0}
    assert count_shares([]) == {}
