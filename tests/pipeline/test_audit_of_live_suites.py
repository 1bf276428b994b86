"""Audits of suites that a library runs, on a suite written here; the libraries' own are in integrations."""

import asyncio
import json
from importlib.util import find_spec

import pytest
from typer.testing import CliRunner

from trajsmith.cli.app import app
from trajsmith.pipeline.live_audit import LiveAudit, LiveResult, LiveTask, build_gold, read_golds, say
from trajsmith.pipeline.suite_counts import SuiteAudit, SuiteCall
from trajsmith.records import EnvironmentFault, InputError

HEAT, COOL = (SuiteCall("set", {"room": "hall", "degrees": degrees}) for degrees in (21, 16))
READ = SuiteCall("read", {"room": "hall"})


class Rooms:
    """A suite whose task is done when the hall has 21 degrees and, if `asked`, the number is told."""

    def __init__(self, asked=False, blind=False, broken="", valid=None):
        self.asked, self.blind, self.broken, self.valid = asked, blind, broken, valid
        self.plays = []

    async def validate(self, task):
        return self.valid

    async def play(self, task, calls):
        self.plays.append(calls)
        if self.broken and any(call.arguments.get("degrees") == self.broken for call in calls):
            raise EnvironmentFault("crash", task, "it broke")
        degrees, results, told = 18, [], ""
        for call in calls:
            if call.tool == "message_user":
                told += call.arguments["text"]
                results.append("")
                continue
            degrees = call.arguments.get("degrees", degrees)
            results.append(f"{degrees} degrees")
        done = (degrees == 21 or self.blind) and (not self.asked or "21" in told) and bool(calls)
        return LiveResult(float(done), tuple(results))


def audit(player, *golds, mutants=10, passes=1.0):
    counts = SuiteAudit("rooms")
    others = LiveTask("other", (build_gold((COOL,), ""),))
    tasks = [LiveTask("warm", golds), others]
    asyncio.run(LiveAudit(counts, player, tasks, mutants, 0, passes).examine())
    return counts


def test_mutants_count_where_the_same_calls_give_other_results_afterwards():
    counts = audit(Rooms(), build_gold((READ, HEAT), ""))
    assert (counts.tasks, counts.played, counts.gold_passes, counts.empty_fails) == (2, 2, 1, 2)
    # Leaving the look-up out leads to the same state, and so does a call that comes before that of gold.
    assert counts.equivalent == 2
    assert counts.mutants == counts.caught == {"call left out": 1, "argument changed": 1}
    assert counts.reasons == {"gold fails: reward 0": 1}


def test_a_wrong_state_that_passes_escapes():
    counts = audit(Rooms(blind=True), build_gold((READ, HEAT), ""))
    assert counts.mutants == {"call left out": 1, "argument changed": 1} and not counts.caught
    assert counts.reasons["mutant escapes: call left out"] == 1


def test_a_text_counts_if_it_is_the_answer():
    gold = build_gold((HEAT, say("It has 21 degrees."), say("Bye.")), "21 degrees")
    counts = audit(Rooms(asked=True), gold)
    assert counts.mutants["text left out"] == counts.caught["text left out"] == 2  # left out, and another one


def test_the_first_form_of_an_answer_that_passes_is_gold():
    golds = [build_gold((say(text),), "21") for text in ("twenty-one", "\\boxed{21}")]
    counts = SuiteAudit("rooms")
    asyncio.run(LiveAudit(counts, Rooms(asked=True, blind=True), [LiveTask("a", tuple(golds))], 4, 0, 1.0).examine())
    assert counts.gold_passes == 1 and counts.mutants == counts.caught == {"text left out": 2}


@pytest.mark.parametrize(
    ("valid", "passes", "more"),
    [(True, 1, {}), (False, 0, {"gold fails: the task's own validation": 1}), (None, 0, {})],
    ids=["passes", "fails", "none"],
)
def test_the_tasks_own_validation_is_a_gold_play(valid, passes, more):
    counts = SuiteAudit("rooms")
    asyncio.run(LiveAudit(counts, Rooms(valid=valid), [LiveTask("a", ())], 4, 0, 1.0).examine())
    assert counts.gold_passes == passes
    assert counts.reasons == {"no gold play is known, so that there are no mutants": 1} | more


def test_what_cannot_be_judged_is_neither_passed_nor_failed():
    class Silent(Rooms):
        async def play(self, task, calls):
            result = await super().play(task, calls)
            return result if HEAT in calls else LiveResult(None, result.results)

    counts = audit(Silent(), build_gold((READ, HEAT), ""))
    assert counts.reasons["empty play is undecided: no reward is given"] == 2
    assert counts.reasons["mutant is undecided: no reward is given: call left out"] == 1
    counts = audit(Rooms(broken=16), build_gold((READ, HEAT), ""))
    assert counts.reasons == {"mutant cannot be judged: crash": 2, "cannot be judged: crash": 1}
    assert counts.caught == {"call left out": 1}


def test_where_the_play_ends_with_gold_the_last_results_are_compared():
    class Ends(Rooms):
        async def play(self, task, calls):
            ends = next((at for at, call in enumerate(calls, 1) if call == HEAT), len(calls))
            return await super().play(task, calls[:ends])

    counts = audit(Ends(), build_gold((READ, HEAT), ""))
    assert counts.mutants == counts.caught == {"call left out": 1, "argument changed": 1}


def test_gold_plays_of_a_file(tmp_path):
    file = tmp_path / "gold.jsonl"
    lines = [
        {"tool": "read", "arguments": {"room": "hall"}},
        {"tool": "message_user", "arguments": {"text": "It is 5."}},
    ]
    file.write_text(json.dumps({"task": "a", "lines": lines, "answer": "5"}) + "\n")
    gold = read_golds(file)["a"]
    assert gold.calls == (READ, say("It is 5."))
    assert gold.lacks([READ]) and not gold.lacks([say("5")])


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[]", ":1: a gold play is"),
        ('{"task": "a", "lines": [{"tool": "x"}]}', ":1: a gold play is"),
        ('{"lines": []}', ":1: a gold play is"),
        ("{", "gold plays cannot be read"),
    ],
    ids=["list", "no arguments", "no task", "no JSON"],
)
def test_gold_plays_that_are_none_are_refused(tmp_path, text, says):
    (tmp_path / "gold.jsonl").write_text(text)
    with pytest.raises(InputError, match="gold play") as refusal:
        read_golds(tmp_path / "gold.jsonl")
    assert says in str(refusal.value) and "\n" not in str(refusal.value)


@pytest.mark.parametrize(("option", "library"), [("--verifiers", "verifiers"), ("--openenv", "openenv")])
def test_the_library_must_be_there(option, library):
    if find_spec(library) is not None:
        pytest.skip(f"{library} is installed here")
    error = CliRunner().invoke(app, ["audit", option, "x"]).exception
    assert isinstance(error, InputError) and f"{library} is not installed here" in str(error)


def test_gold_plays_are_for_suites_that_bring_none():
    error = CliRunner().invoke(app, ["audit", "--harbor", "x", "--gold", "y"]).exception
    assert isinstance(error, InputError) and str(error).startswith("--gold names gold plays for --verifiers")
