"""What "that account" may mean: only a thing that was really spoken of."""

import random
import re

import pytest

from trajsmith.phrasing import EntityPhrases, Phrasebook, ToolPhrases, Wording
from trajsmith.querygen.request import RequestWriter
from trajsmith.records import FromOutput, FromUser, GoldCall, Selector, ToolSpec, UserFact
from trajsmith.verify import ReferenceCheck, build_gold_turn

ACCOUNTS = {"result": [{"account_id": "A1", "balance": 5.0}, {"account_id": "A2", "balance": 9.0}]}
LOWEST = Selector(rows="$.result", how="smallest", field="balance", value=5.0)
PICK = FromOutput(call=0, path="$.result[*].account_id", selectors=(LOWEST,))
KEY = "pick.0.$.result.balance.smallest=5.0"


def tool(name: str, **parameters: str) -> ToolSpec:
    schema = {"type": "object", "properties": {key: {"type": kind} for key, kind in parameters.items()}}
    return ToolSpec(
        server="bank", name=name, description=f"{name}.", input_schema=schema | {"required": sorted(parameters)}
    )


def pays(name: str, amount: float) -> GoldCall:
    sources = {"account_id": PICK, "amount": FromUser(known=f"{name}.amount")}
    given = {"account_id": "A1", "amount": amount}
    return GoldCall(tool=name, arguments=given, provenance=sources, effect="write", result={"balance": 1.0})


def request(first_template: str, seed: int) -> str:
    """One turn with two payments from one account; the first is asked for by this template."""
    tools = [tool("list_accounts"), *(tool(name, account_id="string", amount="number") for name in ("send", "pay"))]
    book = Phrasebook(
        tools={"send": ToolPhrases(ask=[first_template]), "pay": ToolPhrases(ask=["pay {amount} from {account_id}"])},
        entities={"account_id": EntityPhrases(noun="account", own=["my account"])},
    )
    calls = [GoldCall(tool="list_accounts", arguments={}, provenance={}, effect="read", result=ACCOUNTS)]
    calls += [pays("send", 2.0), pays("pay", 1.0)]
    known = {
        KEY: UserFact(
            key=KEY, label="balance", value=5.0, said="the lowest", slot="account_id|balance", how="smallest"
        ),
        **{
            f"{name}.amount": UserFact(
                key=f"{name}.amount", label="amount", value=amount, said=str(amount), slot="amount"
            )
            for name, amount in (("send", 2.0), ("pay", 1.0))
        },
    }
    rng = random.Random(seed)
    writer = RequestWriter(Wording(book, tools), calls, known, '{"A1": 1, "A2": 2}', rng)
    found = writer.write(0, 3, (1, 2), withhold=False)
    assert found.stated == known.keys()
    return found.text


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("template", ["send {amount}", "send {amount} from {account_id}"])
def test_an_account_is_named_before_it_is_that_account(template, seed):
    text = request(template, seed)
    assert text.index("account with the lowest balance") < text.index("that account")


@pytest.mark.parametrize("seed", range(12))
def test_a_payee_is_called_by_name_again(seed):
    """People and firms are no "that payee"."""
    payees = {"result": [{"payee_id": "P1", "name": "Ida Larsen"}, {"payee_id": "P2", "name": "Valley Water"}]}
    named = Selector(rows="$.result", how="equals", field="name", value="Ida Larsen")
    pick, key = (
        FromOutput(call=0, path="$.result[*].payee_id", selectors=(named,)),
        "pick.0.$.result.name.equals=Ida Larsen",
    )
    tools = [tool("list_payees"), *(tool(name, payee_id="string") for name in ("thank", "pay"))]
    book = Phrasebook(
        tools={"thank": ToolPhrases(ask=["thank {payee_id}"]), "pay": ToolPhrases(ask=["pay {payee_id}"])},
        entities={"payee_id": EntityPhrases(noun="payee", own=["my payee"], by={"name": ["{value}"]})},
    )
    calls = [GoldCall(tool="list_payees", arguments={}, provenance={}, effect="read", result=payees)]
    calls += [
        GoldCall(tool=name, arguments={"payee_id": "P1"}, provenance={"payee_id": pick}, effect="write", result={})
        for name in ("thank", "pay")
    ]
    fact = UserFact(key=key, label="name", value="Ida Larsen", said="Ida Larsen", slot="payee_id|name", how="equals")
    writer = RequestWriter(Wording(book, tools), calls, {key: fact}, '{"P1": 1, "P2": 2}', random.Random(seed))
    text = writer.write(0, 3, (1, 2), withhold=False).text
    assert text.count("Ida Larsen") == 2 and "payee" not in text


TASKS = {
    "result": [
        {"task_id": "T1", "task_name": "Fix the roof", "project_id": "P7"},
        {"task_id": "T2", "task_name": "Paint the fence", "project_id": "P8"},
    ]
}
BOOK = Phrasebook(
    tools={
        "close_task": ToolPhrases(ask=["close {task_id}"]),
        "pause_project": ToolPhrases(ask=["pause {project_id}"]),
        "list_tasks": ToolPhrases(ask=["see the tasks", "see the tasks of {project_id}"]),
    },
    entities={
        "task_id": EntityPhrases(noun="task", own=["that task"], by={"task_name": ['the task "{value}"']}),
        "project_id": EntityPhrases(
            noun="project",
            own=["that project"],
            by={"project_name": ['the project "{value}"']},
            within={"task_id": ["{phrase} of {owner}"]},
        ),
    },
)
FIRST_TASK = Selector(rows="$.result", how="equals", field="task_name", value="Fix the roof")
TASK_KEY = "pick.0.$.result.task_name.equals=Fix the roof"
TASK_FACT = UserFact(
    key=TASK_KEY, label="task name", value="Fix the roof", said="Fix the roof", slot="task_id|task_name", how="equals"
)
OPTIONAL = ToolSpec(
    server="bank",
    name="list_tasks",
    description="List tasks.",
    input_schema={"type": "object", "properties": {"project_id": {"type": "string"}}, "required": []},
)


def take(path: str) -> FromOutput:
    return FromOutput(call=0, path=f"$.result[*].{path}", selectors=(FIRST_TASK,))


def call_with(name: str, effect: str, **sources: FromOutput) -> GoldCall:
    given = {"task_id": "T1", "project_id": "P7"}
    arguments = {parameter: given[parameter] for parameter in sources}
    result = {"result": TASKS["result"][:1]} if effect == "read" else {}
    return GoldCall(tool=name, arguments=arguments, provenance=sources, effect=effect, result=result)


def write_two_turns(second: GoldCall, seed: int) -> str:
    """The request for a call that takes what only a row has told, after a turn about the task of that row."""
    tools = [OPTIONAL, tool("close_task", task_id="string"), tool("pause_project", project_id="string")]
    calls = [
        GoldCall(tool="list_tasks", arguments={}, provenance={}, effect="read", result=TASKS),
        call_with("close_task", "write", task_id=take("task_id")),
        second,
    ]
    writer = RequestWriter(Wording(BOOK, tools), calls, {TASK_KEY: TASK_FACT}, '"T1" "T2" "P7"', random.Random(seed))
    writer.write(0, 2, (1,), withhold=False)
    return writer.write(2, 3, (2,), withhold=False).text


@pytest.mark.parametrize("seed", range(12))
def test_what_only_a_row_has_told_is_called_by_the_thing_of_that_row(seed):
    text = write_two_turns(
        call_with("pause_project", "write", project_id=FromOutput(call=0, path="$.result[*].project_id")), seed
    )
    assert "that project" not in text and re.search(r"the project of (?:that task|the task \"Fix the roof\")", text)


@pytest.mark.parametrize("seed", range(12))
def test_a_list_of_what_belongs_to_one_thing_is_asked_for_with_it(seed):
    source = FromOutput(call=0, path="$.result[*].project_id")
    assert "project" in write_two_turns(call_with("list_tasks", "read", project_id=source), seed)


@pytest.mark.parametrize(
    ("effect", "text", "faults"),
    [
        ("write", "Please pause that project.", ["unresolved_reference"]),
        ("write", 'Please pause the project of the task "Fix the roof".', []),
        ("read", "Which tasks are there?", ["unnamed_value"]),
        ("read", "Which tasks does the project of that task have?", []),
        ("read", "Which tasks does P7 have?", []),
        ("read", "What are its tasks?", []),
    ],
)
def test_a_reader_knows_nothing_that_only_a_row_has_told(effect, text, faults):
    tools = [OPTIONAL, tool("close_task", task_id="string"), tool("pause_project", project_id="string")]
    source = FromOutput(call=0, path="$.result[*].project_id")
    calls = [
        GoldCall(tool="list_tasks", arguments={}, provenance={}, effect="read", result=TASKS),
        call_with("close_task", "write", task_id=take("task_id")),
        call_with("pause_project" if effect == "write" else "list_tasks", effect, project_id=source),
    ]
    check = ReferenceCheck(Wording(BOOK, tools), '"T1" "T2" "P7"')
    check.read(build_gold_turn('Please close the task "Fix the roof".', calls[:2], 0, calls, ()))
    found = check.read(build_gold_turn(text, calls[2:], 2, calls, ()))
    assert [fault.kind for fault in found] == faults


@pytest.mark.parametrize(("between", "faults"), [(1, []), (2, ["unresolved_reference"])])
def test_that_task_is_not_what_was_spoken_of_long_ago(between, faults):
    tools = [OPTIONAL, tool("close_task", task_id="string")]
    calls = [
        GoldCall(tool="list_tasks", arguments={}, provenance={}, effect="read", result=TASKS),
        call_with("close_task", "write", task_id=take("task_id")),
    ]
    calls += [GoldCall(tool="list_tasks", arguments={}, provenance={}, effect="read", result={"result": []})] * between
    calls.append(calls[1])
    check = ReferenceCheck(Wording(BOOK, tools), '"T1" "T2" "P7"')
    check.read(build_gold_turn('Please close the task "Fix the roof".', calls[:2], 0, calls, ()))
    for number in range(between):
        check.read(build_gold_turn("Which tasks are open?", calls[2:3], 2 + number, calls, ()))
    found = check.read(build_gold_turn("Please close that task.", calls[-1:], 2 + between, calls, ()))
    assert [fault.kind for fault in found] == faults


def test_it_is_not_what_was_spoken_of_before_a_list():
    model = ReferenceCheck(Wording(BOOK, [OPTIONAL]), "").model
    model.begin_turn(1, 0)
    model.activate("project_id", "P7")
    assert model.latest().id == "P7"
    model.blur("task_id")
    assert model.latest() is None


def test_it_is_the_project_whose_tasks_were_shown_in_it():
    tools = [OPTIONAL, tool("get_project", project_id="string")]
    model = ReferenceCheck(Wording(BOOK, tools), "").model
    model.begin_turn(1, 0)
    tasks = [{"task_id": "T1"}, {"task_id": "T2"}]
    model.observe_call(0, "get_project", {"project_id": "P7"}, {"project_id": "P7", "tasks": tasks}, "read")
    model.observe_outcome(0, requested=True)
    assert model.latest().id == "P7"
    model.observe_call(1, "list_tasks", {}, {"result": tasks[:1]}, "read")
    model.observe_outcome(1, requested=True)
    assert model.latest().id == "T1"


def test_a_thing_is_called_by_the_name_that_it_had_before_the_turn():
    model = ReferenceCheck(Wording(BOOK, [OPTIONAL]), "").model
    for index, title in enumerate(("Fix the roof", "Mend the roof")):
        model.observe_call(index, "list_tasks", {}, {"result": [{"task_id": "T1", "task_name": title}]}, "read")
    task = model.entities["task_id"]["T1"]
    assert [task.find_before("task_name", call) for call in (0, 1, 2)] == [None, "Fix the roof", "Mend the roof"]


@pytest.mark.parametrize("seed", range(6))
def test_a_name_of_the_row_is_not_that_of_what_the_row_belongs_to(seed):
    tools = [OPTIONAL, tool("pause_project", project_id="string")]
    calls = [
        GoldCall(tool="list_tasks", arguments={}, provenance={}, effect="read", result=TASKS),
        call_with("pause_project", "write", project_id=take("project_id")),
    ]
    book = BOOK.model_copy(update={"entities": {**BOOK.entities, "project_id": PROJECT_WITH_NAMES}})
    writer = RequestWriter(Wording(book, tools), calls, {TASK_KEY: PROJECT_FACT}, '"T1" "P7"', random.Random(seed))
    assert 'the project of the task "Fix the roof"' in writer.write(0, 2, (1,), withhold=False).text


PROJECT_WITH_NAMES = BOOK.entities["project_id"].model_copy(update={"by": {"task_name": ('the project "{value}"',)}})
PROJECT_FACT = TASK_FACT.model_copy(update={"slot": "project_id|task_name"})


@pytest.mark.parametrize("seed", range(6))
def test_what_was_renamed_is_called_by_its_new_name(seed):
    tools = [OPTIONAL, tool("close_task", task_id="string"), tool("rename_task", task_id="string", task_name="string")]
    renamed = GoldCall(
        tool="rename_task",
        arguments={"task_id": "T1", "task_name": "Mend the roof"},
        provenance={"task_id": take("task_id"), "task_name": FromUser(known="rename_task.task_name")},
        effect="write",
        result={"task_id": "T1", "task_name": "Mend the roof"},
    )
    read = GoldCall(tool="list_tasks", arguments={}, provenance={}, effect="read", result=TASKS)
    now = {"result": [TASKS["result"][0] | {"task_name": "Mend the roof"}, TASKS["result"][1]]}
    later = read.model_copy(update={"result": now})
    calls = [read, renamed, later, later, call_with("close_task", "write", task_id=take("task_id"))]
    named = UserFact(
        key="rename_task.task_name", label="name", value="Mend the roof", said="Mend the roof", slot="task_name"
    )
    book = BOOK.model_copy(
        update={"tools": {**BOOK.tools, "rename_task": ToolPhrases(ask=["rename {task_id} to {task_name}"])}}
    )
    known = {TASK_KEY: TASK_FACT, named.key: named}
    writer = RequestWriter(Wording(book, tools), calls, known, '"T1" "T2"', random.Random(seed))
    writer.write(0, 2, (1,), withhold=False)
    for start in (2, 3):
        writer.write(start, start + 1, (start,), withhold=False)
    assert "Fix the roof" not in writer.write(4, 5, (4,), withhold=False).text


PAGES = {"result": [{"page_id": "G1", "page_title": "Style guide", "database_id": "D5"}]}
PROJECTS = {
    "result": [{"project_id": key, "project_name": name} for key, name in (("P7", "Price list"), ("P8", "Trade fair"))]
}
PAGE_BOOK = Phrasebook(
    tools={
        "close_project": ToolPhrases(ask=["close {project_id}"]),
        "back_up_database": ToolPhrases(ask=["back up {database_id}"]),
    },
    entities={
        "page_id": EntityPhrases(noun="page", own=["that page"], by={"page_title": ['the page "{value}"']}),
        "project_id": EntityPhrases(
            noun="project", own=["that project"], by={"project_name": ['the project "{value}"']}
        ),
        "database_id": EntityPhrases(
            noun="database",
            own=["that database"],
            within={"page_id": ["{phrase} of {owner}"], "project_id": ["{phrase} of {owner}"]},
        ),
    },
)
PAGE_TOOLS = [
    tool("list_projects"),
    tool("close_project", project_id="string"),
    tool("list_pages", project_id="string"),
    tool("back_up_database", database_id="string"),
]


def pick_project(name: str) -> tuple[FromOutput, UserFact]:
    selector = Selector(rows="$.result", how="equals", field="project_name", value=name)
    key = f"pick.0.$.result.project_name.equals={name}"
    fact = UserFact(key=key, label="name", value=name, said=name, slot="project_id|project_name", how="equals")
    return FromOutput(call=0, path="$.result[*].project_id", selectors=(selector,)), fact


def write_of_database(closed: str, seed: int) -> str:
    """The request to back up the database of a page that is looked up in P7, after a turn about one of two projects."""
    (source, fact), (first, first_fact) = pick_project("Price list"), pick_project(closed)
    given = {"Price list": "P7", "Trade fair": "P8"}[closed]
    calls = [
        GoldCall(tool="list_projects", arguments={}, provenance={}, effect="read", result=PROJECTS),
        GoldCall(
            tool="close_project", arguments={"project_id": "P7"}, provenance={"project_id": source}, effect="write",
            result={},
        ),
        GoldCall(
            tool="close_project", arguments={"project_id": given}, provenance={"project_id": first}, effect="write",
            result={},
        ),
        GoldCall(
            tool="list_pages", arguments={"project_id": "P7"}, provenance={"project_id": source}, effect="read",
            result=PAGES,
        ),
        GoldCall(
            tool="back_up_database",
            arguments={"database_id": "D5"},
            provenance={"database_id": FromOutput(call=3, path="$.result[*].database_id")},
            effect="write",
            result={},
        ),
    ]  # fmt: skip
    known = {one.key: one for one in (fact, first_fact)}
    writer = RequestWriter(Wording(PAGE_BOOK, PAGE_TOOLS), calls, known, '"P7" "P8" "D5" "G1"', random.Random(seed))
    writer.write(0, 2, (1,), withhold=False)
    writer.write(2, 3, (2,), withhold=False)
    return writer.write(3, 5, (4,), withhold=False).text


@pytest.mark.parametrize("seed", range(8))
def test_the_row_in_between_is_named_and_its_owner_once(seed):
    assert "the database of the page in that project" in write_of_database("Price list", seed)


@pytest.mark.parametrize("seed", range(8))
def test_that_project_is_not_the_one_before_the_last(seed):
    assert "that project" not in write_of_database("Trade fair", seed)


@pytest.mark.parametrize(("text", "faults"), [
    ("Please tell me the tasks of that project.", ["wrong_referent"]),
    ("Please tell me the tasks of P7.", []),
])  # fmt: skip
def test_that_project_is_the_last_one_also_inside_another_phrase(text, faults):
    tools = [OPTIONAL, tool("create_project", project_name="string")]
    made = GoldCall(
        tool="create_project", arguments={"project_name": "Trade fair"}, provenance={}, effect="write",
        result={"project_id": "P9", "project_name": "Trade fair"},
    )  # fmt: skip
    calls = [
        GoldCall(tool="list_tasks", arguments={}, provenance={}, effect="read", result=TASKS),
        made,
        call_with("list_tasks", "read", project_id=FromOutput(call=0, path="$.result[*].project_id")),
    ]
    check = ReferenceCheck(Wording(BOOK, tools), '"T1" "T2" "P7"')
    check.read(build_gold_turn("Which tasks are there?", calls[:1], 0, calls, ()))
    check.read(build_gold_turn('Please add a project called "Trade fair".', calls[1:2], 1, calls, ()))
    found = check.read(build_gold_turn(text, calls[2:], 2, calls, ()))
    assert [fault.kind for fault in found] == faults
