"""The parts of the loop: references in tests, code from blocks, what it reaches for, records, what answers hold."""

from types import SimpleNamespace

import pytest
from pydantic import ValidationError

from trajsmith.envgen.sources import ThemeSource
from trajsmith.envgen.synthesis.acceptance import find_words_fault, format_phrasebook
from trajsmith.envgen.synthesis.answer_schemas import (
    EnvironmentPhrasing,
    Proposal,
    Repair,
    Requirements,
    RowPick,
    Texts,
    ToolPlan,
    UnitTest,
)
from trajsmith.envgen.synthesis.code_assembly import _split_imports, assemble_module, extract_method, remove_tools
from trajsmith.envgen.synthesis.design_stages import (
    find_plan_fault,
    find_seeds_fault,
    find_state_fault,
    find_tools_fault,
)
from trajsmith.envgen.synthesis.examination import _find_unplanned
from trajsmith.envgen.synthesis.execution import run_unit_tests
from trajsmith.envgen.synthesis.prompt_specs import SOURCE_SPECS, SPECS
from trajsmith.envgen.synthesis.prompted_generation import find_code_block, find_syntax_fault
from trajsmith.envgen.synthesis.records import Complaint, Theme
from trajsmith.envgen.synthesis.references import (
    UnresolvedTestReference,
    meets_condition,
    resolve_pick,
    resolve_references,
)
from trajsmith.envgen.synthesis.repair_stage import find_repair_fault, merge_tests
from trajsmith.envgen.synthesis.settings import STAGES
from trajsmith.envgen.synthesis.static_checks import find_closed_access, find_nondeterminism, find_process_only
from trajsmith.envgen.synthesis.unit_tests import describe_tools
from trajsmith.environments.library import ENVIRONMENTS
from trajsmith.environments.native_source import build_library_source
from trajsmith.models.prompts import Prompts
from trajsmith.records import RunError
from trajsmith.records.journal import StepJournal

STATE = {
    "now": "2026-04-14T09:30:00",
    "members": {"M2": {"member_id": "M2", "fees": 20.0}, "M1": {"member_id": "M1", "fees": 0.0}},
    "loans": {
        "L1": {"loan_id": "L1", "member_id": "M2", "status": "out", "due_on": "2026-04-10"},
        "L2": {"loan_id": "L2", "member_id": "M2", "status": "returned", "due_on": "2026-04-20"},
    },
}


def pick(**given):
    return resolve_pick(RowPick(**given), STATE, [])


def test_picks_find_rows_by_conditions_in_the_order_of_keys():
    assert pick(table="members", field="member_id") == "M1"
    assert pick(table="members", where={"fees": {"above": 15}}, field="member_id") == "M2"
    assert pick(table="members", field="member_id", number=1) == "M2"
    has_one_out = [{"table": "loans", "column": "member_id", "where": {"status": "out"}, "at_least": 1}]
    assert pick(table="members", having=has_one_out, field="fees") == 20.0
    has_none = [{"table": "loans", "column": "member_id", "at_most": 0}]
    assert pick(table="members", having=has_none, field="$key") == "M1"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"table": "guests", "field": "x"}, "no table guests"),
        ({"table": "members", "field": "age"}, "no column age"),
        ({"table": "members", "where": {"fees": {"above": 99}}, "field": "fees"}, "no row 0 of members fits"),
    ],
    ids=["table", "column", "row"],
)
def test_what_a_pick_cannot_find_is_said(given, said):
    with pytest.raises(UnresolvedTestReference, match=said):
        pick(**given)


def test_references_are_looked_up_at_any_depth():
    told = {"loan": {"$pick": {"table": "loans", "where": {"due_on": {"below": {"$days": 0}}}, "field": "loan_id"}}}
    assert resolve_references(told, STATE, []) == {"loan": "L1"}
    assert resolve_references({"id": {"$result": [0, "result.1.id"]}}, STATE, [{"result": [{"id": 1}, {"id": 2}]}]) == {
        "id": 2
    }
    with pytest.raises(UnresolvedTestReference, match="call 3 was not made"):
        resolve_references({"$result": [3, "x"]}, STATE, [{}])
    with pytest.raises(UnresolvedTestReference, match="pick cannot be read"):
        resolve_references({"$pick": {"table": "loans"}}, STATE, [])


@pytest.mark.parametrize(
    ("value", "wanted", "holds"),
    [(1, True, False), (3, {"least": 3, "below": 4}, True), ("Abc", {"contains": "bC"}, True),
     (None, {"above": 1}, False), ({"a": 1}, {"a": 1}, True), (5, {"not": 5}, False)],
)  # fmt: skip
def test_conditions(value, wanted, holds):
    assert meets_condition(value, wanted) is holds


def unit(**given):
    plain = {"name": "a", "tool": "get_ticket", "about": "b", "expect": "answered"}
    return UnitTest(**{**plain, **given})


@pytest.fixture
def helpdesk():
    return build_library_source("helpdesk", {"small": 1, "medium": 1, "large": 1})


TICKET = {"$pick": {"table": "tickets", "field": "ticket_id"}}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"result": {"ticket_id": TICKET}, "unchanged": True}, ""),
        ({"result": {"ticket_id": "INC1"}}, "ticket_id of the result must be INC1, but it is INC"),
        ({"result": {"colour": "red"}}, "nothing stands at colour"),
        ({"expect": "refused"}, "must be refused, but it answers"),
        ({"calls": [{"tool": "get_ticket", "arguments": {"ticket_id": "no"}}]}, "must be answered, but it is refused"),
        ({"calls": [{"tool": "get_ticket", "arguments": {}}], "expect": "refused", "rule": "R1"}, "its arguments do"),
        ({"changes": [{"table": "tickets", "by": 1}]}, "must become +1, but there were"),
        ({"calls": [{"tool": "get_ticket", "arguments": {"ticket_id": {"$pick": {"table": "moons", "field": "x"}}}}]},
         "cannot be played, from 10 seeds on: the state has no table moons"),
    ],
    ids=["passes", "value", "path", "answered", "refused", "arguments", "rows", "unplayable"],
)  # fmt: skip
async def test_a_test_says_what_is_not_as_it_should_be(helpdesk, given, said):
    calls = [{"tool": "get_ticket", "arguments": {"ticket_id": TICKET}}]
    (verdict,) = await run_unit_tests(helpdesk, [unit(**{"calls": calls, **given})])
    assert said in verdict.fault if said else verdict.passed
    assert verdict.lines[0].startswith("start from the medium state of seed")


async def test_lines_tell_every_call_with_its_outcome_and_changes(helpdesk):
    calls = [{"tool": "get_ticket", "arguments": {"ticket_id": "INC1"}}]
    (verdict,) = await run_unit_tests(helpdesk, [unit(expect="refused", says="not found", calls=calls)])
    assert verdict.passed and "refused" in verdict.lines[1] and verdict.lines[1].endswith("changes nothing")
    (verdict,) = await run_unit_tests(helpdesk, [unit(expect="refused", rule="R1", calls=calls)])
    assert "what it is about is not there" in verdict.fault


async def test_tools_of_the_user_are_tested_by_calls_of_the_user():
    care = build_library_source("mobile_care", {"small": 1, "medium": 1, "large": 1})
    calls = [{"tool": "read_router_light", "arguments": {}}]
    (verdict,) = await run_unit_tests(care, [unit(tool="read_router_light", calls=calls)])
    assert verdict.passed, verdict.fault
    spec = await care.spec()
    shown = {one["name"] for one in describe_tools(spec) if one.get("actor") == "user"}
    assert "read_router_light" in shown == {tool.name for tool in spec.tools if tool.actor == "user"}


def test_a_test_is_of_the_tool_that_it_calls_last():
    with pytest.raises(ValidationError, match="last call must be of get_ticket"):
        unit(calls=[{"tool": "list_tickets", "arguments": {}}])
    with pytest.raises(ValidationError, match="must be refused"):
        unit(calls=[{"tool": "get_ticket", "arguments": {}}], rule="R1")


PARTS = ['"""Own."""\nfrom datetime import date\n\nclass A:\n    day: date\n',
         "import random\nfrom datetime import datetime\n\nLIMIT = 3\n\nclass B:\n    @tool\n    def one(self):\n"
         "        return self._two() + LIMIT\n\n    @tool\n    def other(self):\n        return random, datetime\n\n"
         "    def _two(self):\n        return 2\n",
         "def make_state(size, seed):\n    return NAMES\n"]  # fmt: skip


def test_blocks_become_one_formatted_file():
    lists = Texts.model_validate({"lists": [{"name": "NAMES", "values": list("abcdef")}]}).lists
    code = assemble_module('About "it".', lists, *PARTS)
    assert code.startswith('"""About \'it\'."""\n\nimport random\nfrom datetime import date, datetime\n')
    assert code.index("class A") < code.index("class B") < code.index("NAMES = (") < code.index("def make_state")
    assert "Own" not in code
    less = remove_tools(code, ["other"])
    assert "def other" not in less and "import random" not in less and "def one" in less
    shown = extract_method(code, "one")
    assert "LIMIT = 3" in shown and "def _two" in shown and "def other" not in shown


@pytest.mark.parametrize(
    "code",
    ["import subprocess\n", "import os\nos.system('id')\n", "open('/etc/passwd')\n", "eval('1')\n", "import socket\n",
     "import typing\ntyping.sys.modules\n", "().__class__.__base__.__subclasses__()\n", "getattr(1, '__globals__')\n",
     "from dataclasses import inspect\n"],
)  # fmt: skip
def test_what_reaches_outside_is_seen_before_it_runs(code):
    assert find_closed_access(code)


def test_bundled_environments_reach_for_nothing_and_tell_no_time_of_their_own():
    import inspect

    code = inspect.getsource(inspect.getmodule(ENVIRONMENTS.get("bank")))
    assert (find_closed_access(code), find_nondeterminism(code), find_process_only(code)) == ([], [], [])


@pytest.mark.parametrize(
    "code", ["import uuid\nuuid.uuid4()\n", "import time\ntime.time()\n", "import random\nrandom.random()\n"]
)
def test_clock_and_chance_of_its_own_are_seen(code):
    assert find_nondeterminism(code) and not find_closed_access(code)


def test_code_is_the_longest_block_of_a_reply():
    assert find_code_block("Here:\n```python\nx = 1\n```\nand\n```python\nx = 1\ny = 2\n```") == "x = 1\ny = 2\n"
    assert find_code_block("no code at all") is None
    assert "line 1" in find_syntax_fault("def f(:") and not find_syntax_fault("x = 1")


async def test_records_are_made_once_and_a_torn_line_is_made_again(tmp_path):
    source = ThemeSource(kind="domain", name="tool rental", summary="", origin="command line", licence=None)
    made = []

    async def work():
        made.append(1)
        return Theme(source=source)

    store = StepJournal(tmp_path)
    first = await store.step("themes", Theme, ["a"], work)
    assert await StepJournal(tmp_path).step("themes", Theme, ["a"], work) == first and len(made) == 1
    await store.step("themes", Theme, ["b"], work)
    file = tmp_path / "themes.jsonl"
    file.write_bytes(file.read_bytes()[:-20])
    again = StepJournal(tmp_path)
    assert len(again.all("themes", Theme)) == 1
    await again.step("themes", Theme, ["b"], work)
    assert len(made) == 3 and len(StepJournal(tmp_path).all("themes", Theme)) == 2
    file.write_text("{}\n")
    with pytest.raises(RunError, match="changed by hand"):
        StepJournal(tmp_path).all("themes", Theme)


PROPOSAL = Proposal(
    unusable="", name="tool_rental", title="t", domain="d", description="x", entities=("tools", "rentals")
)
NEEDS = Requirements.model_validate(
    {"tasks": [{"id": f"T{n}", "request": "a", "outcome": "b"} for n in range(1, 5)],
     "rules": [{"id": "R1", "text": "a"}, {"id": "R2", "text": "b"}]}
)  # fmt: skip


def planned(**given):
    plain = {"name": "a", "effect": "write", "does": "x", "parameters": [], "returns": "y", "refuses": [],
             "rules": ["R1", "R2"], "serves": ["T1", "T2", "T3", "T4"]}  # fmt: skip
    return {**plain, **given}


@pytest.mark.parametrize(
    ("tools", "said"),
    [
        ([planned(), planned(), planned(effect="read")], "one name"),
        ([planned(), planned(name="b"), planned(name="c")], "that read"),
        ([planned(), planned(name="b"), planned(name="c", effect="read", actor="user")], "the assistant needs tools"),
        ([planned(serves=["T1"]), planned(name="b", serves=[], effect="read"), planned(name="c", serves=["T2", "T3"])],
         "no tool serves T4"),
        ([planned(rules=[]), planned(name="b", rules=[], effect="read"), planned(name="c", rules=["R2"])], "keeps R1"),
        ([planned(), planned(name="b"), planned(name="c", effect="read")], ""),
    ],
    ids=["names", "effects", "all_reads_are_the_users", "tasks", "rules", "right"],
)  # fmt: skip
def test_a_plan_serves_every_task_and_keeps_every_rule(tools, said):
    fault = find_plan_fault(ToolPlan.model_validate({"tools": tools}), NEEDS, 20)
    assert said in fault if said else not fault


def test_tools_have_the_actor_of_the_plan():
    plan = ToolPlan.model_validate(
        {"tools": [planned(), planned(name="b", effect="read"), planned(name="c", actor="user")]}
    )
    design = SimpleNamespace(requirements=NEEDS, plan=plan)
    there = {"a": "assistant", "b": "user", "c": "assistant"}
    spec = SimpleNamespace(tools=[SimpleNamespace(name=name, actor=actor) for name, actor in there.items()])
    assert [complaint.what for complaint in _find_unplanned(design, spec)] == [
        "b is the assistant's in the plan, but has actor='user' in the code",
        "c is the user's in the plan, but has actor='assistant' in the code",
    ]


def test_code_must_have_what_was_planned():
    right = "class ToolRentalState(EnvironmentState):\n    tools: dict = {}\n    rentals: dict = {}\n"
    assert not find_state_fault(right, PROPOSAL)
    assert "rentals are missing" in find_state_fault(right.replace("rentals", "loans"), PROPOSAL)
    assert "class ToolRentalState" in find_state_fault("x = 1", PROPOSAL)
    assert "exactly one class" in find_tools_fault("x = 1", ["a"])
    assert "missing: a" in find_tools_fault("class X(Environment[S]):\n    def b(self): ...\n", ["a"])
    assert "make_state" in find_seeds_fault("x = 1") and "exactly size and seed" in find_seeds_fault(
        "def make_state(n): ..."
    )


TEST = unit(name="old", rule="", calls=[{"tool": "get_ticket", "arguments": {}}])
MOVED = unit(name="old", tool="list_tickets", calls=[{"tool": "list_tickets", "arguments": {}}])
FOR_RULE = TEST.model_copy(update={"name": "new", "rule": "R1", "expect": "refused"})
SHOWN = [Complaint(id="T1", kind="test", test="old", tool="get_ticket", what="x"),
         Complaint(id="B1", kind="rule", test="R1", what="y")]  # fmt: skip


def repaired(tests=(), **wrong):
    decisions = [{"complaint": name, "wrong": side, "why": "z"} for name, side in wrong.items()]
    return Repair.model_validate({"decisions": decisions, "tests": [test.model_dump() for test in tests]})


@pytest.mark.parametrize(
    ("found", "code", "said"),
    [
        (repaired(T1="code"), "x", "missing are B1"),
        (repaired(T1="code", B1="code", X9="code"), "x", "no complaint X9"),
        (repaired(T1="code", B1="code"), None, "give the whole corrected file"),
        (repaired(T1="test", B1="code"), "x", "found old wrong"),
        (repaired([TEST], T1="code", B1="code"), "x", "may not be changed"),
        (repaired([TEST.model_copy(update={"name": "new"})], T1="code", B1="code"), "x", "is new"),
        (repaired([MOVED], T1="test", B1="code"), "x", "must stay one of get_ticket"),
        (repaired([TEST], T1="test", B1="code"), "x", ""),
        (repaired([FOR_RULE], T1="code", B1="test"), "x", ""),
    ],
    ids=["undecided", "unknown", "no code", "no test", "untouched", "new", "another tool", "mended", "new for a rule"],
)  # fmt: skip
def test_a_repair_decides_all_and_touches_only_what_it_found_wrong(found, code, said):
    fault = find_repair_fault(found, code, SHOWN, [TEST])
    assert said in fault if said else not fault


def test_mended_tests_take_the_place_of_the_old_ones():
    other, mended = TEST.model_copy(update={"name": "other"}), TEST.model_copy(update={"about": "new"})
    new = TEST.model_copy(update={"name": "new"})
    assert merge_tests([TEST, other], [new, mended]) == (mended, other, new)


def words(**given):
    plain = {"roles": ["caller"], "names": ["employees.*.name"], "tools": [],
             "entities": [{"key": "ticket_id", "noun": "ticket", "plural": "tickets", "own": ["my ticket"],
                           "by": {"title": ['the ticket "{value}"']}}]}  # fmt: skip
    return EnvironmentPhrasing.model_validate({**plain, **given})


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, ""),
        ({"names": ["../../etc"]}, "no path"),
        ({"roles": ["{{ cycler.__init__ }}"]}, "braces may only hold"),
        ({"roles": ["{% for x in y %}"]}, "braces may only hold"),
        ({"tools": [{"tool": "get_ticket", "ask": ["show {ticket_id.__class__}"]}]}, "braces may only hold"),
        ({"tools": [{"tool": "fly", "ask": ["fly"]}]}, "fly is no tool"),
    ],
    ids=["right", "path", "expression", "statement", "attribute", "tool"],
)
def test_words_become_templates_only_if_braces_hold_names(given, said):
    fault = find_words_fault(words(**given), ENVIRONMENTS.get("helpdesk").describe())
    assert said in fault if said else not fault


def test_words_become_a_phrasebook(tmp_path):
    from trajsmith.phrasing import load_phrasebook

    (tmp_path / "phrases.yaml").write_text(format_phrasebook(words(), "helpdesk"))
    book = load_phrasebook(tmp_path / "phrases.yaml")
    assert book.entities["ticket_id"].by == {"title": ('the ticket "{value}"',)}
    assert book.name_from == ("employees.*.name",)


def test_every_stage_has_a_prompt_that_can_be_rendered():
    prompts, specs = Prompts(), SPECS | SOURCE_SPECS
    for stage in STAGES:
        assert len(prompts.get(specs[stage]).messages(**specs[stage].example)) == 2
    assert sorted(specs) == sorted(STAGES)


@pytest.mark.parametrize("days", [10**12, "soon", None])
def test_a_day_that_cannot_be_is_a_fault_of_the_test_and_no_crash(days):
    with pytest.raises(UnresolvedTestReference, match=r"\$days"):
        resolve_references({"$days": days}, STATE, [])


def test_lines_are_counted_as_the_parser_counts_them():
    code = 'A = "a\u2028b\x0cc"\nimport json; B = 1\n\n\nclass S:\n    pass\n'
    imports, rest = _split_imports(code)
    assert imports == [] and "import json; B = 1" in rest and "class S" in rest
    imports, rest = _split_imports('A = "a\u2028b"\nimport json\nB = 1\n')
    assert imports == ["import json"] and "import" not in rest and "B = 1" in rest
