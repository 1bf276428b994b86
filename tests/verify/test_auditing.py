"""Checks are tested: gold and equivalent runs pass, every kind of mistake fails, checks that are no good go."""

from collections import Counter
from typing import Any

import desk
import pytest

from trajsmith.records import AnswerCheck, CheckAudit, CodeCheck, FromUser, UntouchedCheck
from trajsmith.verify.check_audit import AuditSettings, audit_task
from trajsmith.verify.check_panel import CheckPanel
from trajsmith.verify.checks import build_checks
from trajsmith.verify.code_checks import CodeCheckRunner
from trajsmith.verify.mutants import KINDS, RunMutator
from trajsmith.verify.nondeterminism import find_nondeterminism_mask
from trajsmith.verify.reported_facts import collect_reported_facts

MANY = AuditSettings(mutants=60, equivalents=4, masking=8)


async def examine(judge: CheckPanel, settings: AuditSettings = MANY) -> Any:
    return await audit_task(judge, desk.SPEC, settings, 3)


async def test_derived_checks_notice_every_mistake_and_refuse_no_equivalent() -> None:
    found = await examine(await desk.jury())
    assert set(found.audit.made) == set(KINDS)
    assert found.audit.caught == found.audit.made
    assert found.audit.discrimination == 1.0
    assert (found.audit.equivalent, found.audit.accepted) == (4, 4)
    assert (found.audit.escaped, found.audit.refused, found.audit.dropped, found.weakness) == ((), (), (), None)


async def test_runs_that_were_made_already_are_judged_too() -> None:
    judge = await desk.jury()
    _, runs = await find_nondeterminism_mask(judge.gold, desk.session())
    found = await audit_task(judge, desk.SPEC, AuditSettings(mutants=0), 3, runs)
    assert (found.audit.equivalent, found.audit.accepted, found.weakness) == (3, 3, None)


async def test_arguments_that_do_not_matter_are_masked() -> None:
    """Every list shows at least four notes, whatever limit there is; a title or a color is never free."""
    found = await examine(await desk.jury())
    assert found.masked == {0: ("limit",)}
    turns = (await desk.make_task()).turns
    assert [call.mask for call in found.apply_to_turns(turns)[0].gold_calls] == [("limit",), (), (), (), ()]


async def test_the_rule_of_the_policy_is_checked() -> None:
    judge = await desk.jury()
    assert [check.kind for check in judge.checks[-1]].count("policy") == 1
    early = desk.TURNS[1][1].model_copy(update={"provenance": {"note_id": FromUser(known="k")}})
    gold = await desk.gold_run([[early]])
    assert not [check for check in judge.checks[0] if check.kind == "policy"]
    outcomes = await judge.outcomes(
        type(gold.ran)(states=judge.gold.ran.states, calls=gold.ran.calls, calls_until=[0, 1]), 1, judge.says
    )
    assert [outcome.detail for outcome in outcomes if outcome.kind == "policy"] == ["archive before any of list_notes"]


async def test_mutants_are_other_runs_with_the_mistake_made_for_real() -> None:
    judge = await desk.jury()
    mutator = RunMutator(judge.gold, desk.SPEC, judge.facts, {3, 7}, 1)
    kinds: Counter[str] = Counter()
    for mutant in mutator.all():
        ran = await judge.gold.branch(mutant.start, mutant.steps) if mutant.kind != "answer" else judge.gold.ran
        assert ran is not None
        kinds[mutant.kind] += 1
        if mutant.says == "at the end unarchive takes back call 6":
            assert ran.states[-1]["notes"]["N1"]["archived"] is False
        if mutant.kind == "dropped":
            assert len(ran.calls) == len(judge.gold.ran.calls) - 1
        if mutant.kind in ("doubled", "extra", "undone"):
            assert len(ran.calls) == len(judge.gold.ran.calls) + 1
    assert set(kinds) == set(KINDS)


async def test_what_was_not_seen_cannot_be_told() -> None:
    judge = await desk.jury()
    mutator = RunMutator(judge.gold, desk.SPEC, judge.facts, {7}, 1)
    dropped = next(m for m in mutator.dropped() if "count_notes" in m.says)
    ran = await judge.gold.branch(dropped.start, dropped.steps)
    assert ran is not None
    reported = collect_reported_facts(judge.facts, judge.sources, ran, {})
    assert [[fact.value for fact in facts] for facts in reported] == [["trip", "N4"], []]


def with_check(judge: CheckPanel, check: Any, code: CodeCheckRunner | None = None) -> CheckPanel:
    checks = [judge.checks[0], (*judge.checks[1], check)]
    return CheckPanel(judge.gold, judge.masks, checks, judge.facts, code)


async def test_an_answer_that_an_equivalent_run_cannot_give_is_dropped() -> None:
    judge = await desk.jury()
    found = await examine(with_check(judge, AnswerCheck(says="the answer tells 09:00", value="trip", turn=1)))
    assert found.audit.dropped == ("the answer tells 09:00: the gold run fails it",)
    assert found.weakness is None
    assert len(found.checks[1]) == len(judge.checks[1])


async def test_checks_that_notice_too_little_make_a_weak_task() -> None:
    judge = await desk.jury()
    only = [(), tuple(c for c in judge.checks[1] if isinstance(c, UntouchedCheck | AnswerCheck))]
    found = await examine(CheckPanel(judge.gold, judge.masks, only, judge.facts))
    assert found.weakness is not None
    assert "wrong runs pass, for example" in found.weakness
    assert found.audit.escaped


async def test_checks_that_nothing_fails_make_a_weak_task() -> None:
    judge = await desk.jury()
    none: list[tuple[Any, ...]] = [(), ()]
    assert (await examine(CheckPanel(judge.gold, judge.masks, none, judge.facts))).weakness == (
        "doing nothing passes all checks"
    )


async def test_checks_that_refuse_an_equivalent_run_make_a_weak_task() -> None:
    """Without masks the checks ask for the very ids and times of the gold run."""
    judge = await desk.jury()
    bare = judge.masks.model_copy(update={"tables": (), "leaves": {}, "clock": "", "counters": ""})
    checks = build_checks(desk.forms_of(judge.gold, bare), desk.FACTS, (), judge.gold.ran.calls)
    found = await examine(CheckPanel(judge.gold, bare, checks, judge.facts))
    assert found.weakness is not None
    assert found.weakness.startswith("an equivalent run fails")


@pytest.mark.parametrize(
    ("source", "dropped"),
    [
        pytest.param("return final['notes']['N1']['archived']", None, id="good"),
        pytest.param("return True", "no wrong run fails it", id="always"),
        pytest.param("return False", "the gold run fails it", id="never"),
        pytest.param("return 'N4' in final['notes']", "an equivalent run fails it", id="counts-on-an-id"),
        pytest.param("return final['nothing']", "could not tell: crash: KeyError: 'nothing'", id="raises"),
        pytest.param("return 1", "could not tell: output_schema: a check must return True or False", id="no-bool"),
    ],
)
async def test_written_functions_are_tested_too(source: str, dropped: str | None) -> None:
    code = CodeCheckRunner()
    check = CodeCheck(says="written", source=f"def check(initial, final, answer):\n    {source}\n")
    try:
        found = await examine(with_check(await desk.jury(), check, code), AuditSettings(mutants=25, equivalents=2))
    finally:
        code.close()
    assert [text.split(" (check_")[0] for text in found.audit.dropped] == (
        [] if dropped is None else [f"written: {dropped}"]
    )
    assert any(isinstance(each, CodeCheck) for each in found.checks[1]) is (dropped is None)


def test_discrimination() -> None:
    assert CheckAudit().discrimination is None
    assert CheckAudit(made={"a": 3, "b": 1}, caught={"a": 3, "b": 0}).discrimination == 0.75
