"""What a request asks: narrow questions, the row that one is about, fields that a phrase names."""

import random

import pytest
from speaking import capital, parts
from writing_desk import Place, Told

from trajsmith.models.serialization import build_request_body
from trajsmith.models.settings import ModelSettings
from trajsmith.phrasing import Phrasebook, Question, ScenarioStep, ToolPhrases, Wording
from trajsmith.querygen.questions import list_askable_questions
from trajsmith.querygen.request import RequestWriter
from trajsmith.querygen.requested_info import build_general_info, fill_facts
from trajsmith.records import GoldCall, RecordDropped, ToolSpec, canonical_json
from trajsmith.usersim.reporting import ReportWriter
from trajsmith.verify.checks import derive_checks, run_check

CLIMATE = GoldCall(
    tool="get_room_climate", arguments={"room_id": "R1"}, provenance={}, effect="read",
    result={
        "room_id": "R1", "room_name": "study", "temperature": 19.5, "target_temperature": 21.0, "heating": "auto",
        "window_open": False, "humidity_percent": 40,
    },
)  # fmt: skip
LOCKS = GoldCall(
    tool="list_locks", arguments={}, provenance={}, effect="read",
    result={
        "result": [
            {"lock_id": "L1", "lock_name": "front door", "status": "locked", "battery_percent": 80, "door_open": False},
            {"lock_id": "L2", "lock_name": "garage door", "status": "unlocked", "battery_percent": 80, "door_open": 1}
        ]
    },
)  # fmt: skip
BATTERY = Question(
    asks=("battery_percent",),
    row="lock_id",
    ask=("check the battery of {row}",),
    say=("How full is the battery of {row}?",),
    answer=("It's at {row.battery_percent}%.", "The battery of the {row.lock_name} is at {row.battery_percent}%."),
)
WINDOW = Question(
    asks=("$.window_open",),
    say=("Is a window open in {room_id}?",),
    answer=("{% if out.window_open %}Yes, a window is open.{% else %}No, they're all shut.{% endif %}",),
)


@pytest.fixture(scope="module")
def home():
    return Place("smart_home")


def with_questions(wording, **questions):
    """The wording with these questions, by tool, in place of its own."""
    tools = dict(wording.phrasebook.tools)
    for tool, asked in questions.items():
        tools[tool] = tools[tool].model_copy(update={"questions": tuple(asked)})
    phrasebook = wording.phrasebook.model_copy(update={"tools": tools})
    return Wording(phrasebook, list(wording.tools.values()))


def write(wording, call, seed=1, steps=(), **arguments):
    writer = RequestWriter(wording, [call], {}, "", random.Random(seed), **arguments)
    return writer, writer.write(0, 1, [0], withhold=False, steps=steps)


def test_a_phrase_that_names_a_field_asks_for_it_too(home):
    info = build_general_info(0, CLIMATE, "x", "check whether a window is open in {room_id}", home.wording)
    facts = fill_facts(info, CLIMATE, home.wording).facts
    assert ("window open", False) in [(fact.label, fact.value) for fact in facts]
    checks = derive_checks({}, {}, {}, facts, 0)
    old_answer = "It's 19.5 degrees in the study, with a target of 21 (heating mode: auto)."
    assert [check.says for check in checks if run_check(check, {}, {}, old_answer, ()).passed is False] == [
        "the answer tells window open: no"
    ]
    assert all(run_check(check, {}, {}, f"{old_answer} The windows are shut.", ()).passed for check in checks)


def test_a_slot_or_an_argument_asks_for_nothing(home):
    call = CLIMATE.model_copy(update={"arguments": {"heating": "auto"}})
    info = build_general_info(0, call, "x", "see how {humidity_percent} the heating is", home.wording)
    assert info.fields == home.wording.tool("get_room_climate").facts


def test_a_question_about_a_row_calls_it_by_something_unique(home):
    wording = with_questions(home.wording, list_locks=[BATTERY])
    for seed in range(20):
        writer, request = write(wording, LOCKS, seed, questions=1.0)
        (info,) = request.asked
        assert info.narrow and info.row.field in ("lock_name", "status")  # both batteries are at 80
        fact = writer.row_facts[info.known]
        assert fact.said in request.text and fact.stated and info.known in request.stated
        row = next(row for row in LOCKS.result["result"] if row[info.row.field] == info.row.value)
        assert [told.value for told in info.facts] == [row["battery_percent"]]
        assert writer.references.model.top("lock_id").id == row["lock_id"]


def test_a_list_without_a_row_of_its_own_name_is_asked_for_as_a_whole(home):
    twins = [{**row, "lock_name": "door", "status": "locked"} for row in LOCKS.result["result"]]
    call = LOCKS.model_copy(update={"result": {"result": twins}})
    _, request = write(with_questions(home.wording, list_locks=[BATTERY]), call, questions=1.0)
    assert not request.asked[0].narrow


def test_the_question_of_a_scenario_comes_before_those_of_the_phrasebook(home):
    wording = with_questions(home.wording, list_locks=[BATTERY])
    own = Question(
        asks=("$.result[*].status",), say=("Can burglars just walk in?",), answer=("{out.result|rows('lock_id')}",)
    )
    step = ScenarioStep(tool="list_locks", question=own)
    for seed in range(10):
        _, request = write(wording, LOCKS, seed, steps=[step])
        assert request.text == "Can burglars just walk in?"
        assert request.asked[0].fields == own.asks
    _, request = write(
        wording, LOCKS, 1, steps=[ScenarioStep(tool="list_locks", say=("I forgot to lock up, I think.",))]
    )
    assert request.text == "I forgot to lock up, I think."


def test_questions_are_asked_as_often_as_is_set(home):
    wording = with_questions(home.wording, list_locks=[BATTERY])
    narrow = [write(wording, LOCKS, seed, questions=0.6)[1].asked[0].narrow for seed in range(300)]
    assert 0.5 < sum(narrow) / 300 < 0.7
    assert not any(write(wording, LOCKS, seed, questions=0.0)[1].asked[0].narrow for seed in range(20))


@pytest.fixture
async def asked_tasks():
    """Tasks of the smart home in which every read that can be is asked for by a question."""
    place = Place("smart_home", questions=1.0, withhold=0.0)
    place.wording = with_questions(place.wording, list_locks=[BATTERY], get_room_climate=[WINDOW])
    chains = await place.grounded(14)
    written = []
    for grounded in chains:
        try:
            written.append((grounded, await place.task(grounded)))
        except RecordDropped:
            continue
    return place, [(grounded, task) for grounded, task in written if any(i.narrow for t in task.turns for i in t.asked)]


async def test_a_task_holds_what_is_asked_and_its_checks_derive_from_it(asked_tasks):
    _, written = asked_tasks
    assert written
    for _, task in written:
        for turn in task.turns:
            assert turn.answer_facts == tuple(fact.value for fact in turn.facts)
            for info in turn.asked:
                fact = info.facts[0] if info.facts else None
                if info.narrow:
                    assert fact is not None and info.call < len(task.gold_calls)
                    assert not info.known or info.known in [entry.key for entry in turn.known]
                    assert any(check.kind == "answer" and check.value == fact.value for check in turn.checks)


async def test_a_models_query_must_ask_the_question(asked_tasks):
    place, written = asked_tasks
    grounded, task = next(
        (grounded, task) for grounded, task in written if any(info.row for turn in task.turns for info in turn.asked)
    )
    number, info = next((n, info) for n, turn in enumerate(task.turns) for info in turn.asked if info.row)

    def silent(request):
        queries = [
            capital(part["meaning"])
            for part in parts(build_request_body(request, ModelSettings(model="m"), native=True), "meaning", "x")
        ]
        queries[number] = queries[number].replace(info.question, f"It's about {task.turns[number].known[-1].said}.")
        return {"turns": [{"subgoals": [], "query": query} for query in queries]}

    model = Told(silent)
    with pytest.raises(RecordDropped) as drop:
        await place.task(grounded, place.author(model, rounds=1))
    assert drop.value.reason == "query_does_not_ask"
    assert f"ask: {info.question}" in model.requests[0].messages[-1].content


def report(home, style, tool="list_locks", seed=1, **phrases):
    tools = dict(home.wording.phrasebook.tools)
    tools[tool] = tools[tool].model_copy(update=phrases)
    book = home.wording.phrasebook.model_copy(update={"tools": tools})
    return ReportWriter(Wording(book, list(home.wording.tools.values())), style, random.Random(seed))


def test_the_style_of_an_agent_decides_how_a_result_is_reported(home):
    phrases = {"done": ("done",), "brief": ("short",), "detailed": ("long",)}
    said = {
        style: {report(home, style, seed=seed, **phrases).report(LOCKS, LOCKS.result) for seed in range(30)}
        for style in ("short", "plain", "explanatory")
    }
    assert said == {"short": {"short"}, "plain": {"done", "short"}, "explanatory": {"done", "long"}}
    assert report(home, "short", done=("done",), brief=()).report(LOCKS, LOCKS.result) == "done"


def test_a_question_is_answered_and_nothing_else_is_told(home):
    wording = with_questions(home.wording, list_locks=[BATTERY])
    _, request = write(wording, LOCKS, questions=1.0)
    answer = report(home, "plain").answer(request.asked[0], LOCKS, LOCKS.result)
    assert answer in (
        "It's at 80%.",
        "The battery of the front door is at 80%.",
        "The battery of the garage door is at 80%.",
    )


def test_after_another_report_an_answer_says_what_it_is_about(home):
    pronouns = BATTERY.model_copy(update={"answer": ("It's at {row.battery_percent}%.",)})
    wording = with_questions(home.wording, list_locks=[pronouns])
    _, request = write(wording, LOCKS, questions=1.0)
    writer = report(home, "plain")
    assert writer.answer(request.asked[0], LOCKS, LOCKS.result, first=True) == "It's at 80%."
    assert "the garage door" in writer.answer(request.asked[0], LOCKS, LOCKS.result, first=False, row="the garage door")


ORDERS = GoldCall(
    tool="list_locks", arguments={}, provenance={}, effect="read",
    result={"result": [{"lock_id": f"L{n}", "lock_name": f"door {n}", "battery_percent": 80 - n, "status": status}
                       for n, status in enumerate(["locked", "unlocked", "locked", "unlocked"], 1)]},
)  # fmt: skip


@pytest.mark.parametrize("seed", range(8))
def test_a_question_about_a_row_keeps_to_the_condition_of_its_step(home, seed):
    asked = list_askable_questions(
        [BATTERY], 0, ORDERS.result, home.wording, random.Random(seed), {"status": ("unlocked",)}
    )
    assert [question.row.selector.value for question in asked] in (["door 2"], ["door 4"])


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize(("place", "meant"), [(2, "door 1"), (0, "door 3")], ids=["changed before", "changed after"])
def test_a_question_about_a_row_is_about_what_the_task_changes(home, seed, place, meant):
    writes = [
        GoldCall(tool="set_door_lock", arguments={"lock_id": lock}, provenance={}, effect="write", result={})
        for lock in ("L3", "L1")
    ]
    calls = [*writes[:place], ORDERS, *writes[place:]]
    asked = list_askable_questions([BATTERY], place, ORDERS.result, home.wording, random.Random(seed), calls=calls)
    assert [question.row.selector.value for question in asked] == [meant]


@pytest.mark.parametrize(("most", "asked"), [(4, ["door 2", "door 3", "door 4"]), (9, ["door 1"])])
def test_a_question_is_about_no_row_whose_namesake_a_cut_list_hides(home, most, asked):
    locks = home.wording.tools["list_locks"]
    tools = [locks.model_copy(update={"description": f"Return at most {most} locks."})]
    wording = Wording(home.wording.phrasebook, tools)
    initial = canonical_json([*ORDERS.result["result"], {"lock_id": "L9", "lock_name": "door 1"}]).decode()
    found = {
        question.row.selector.value
        for seed in range(30)
        for question in list_askable_questions(
            [BATTERY], 0, ORDERS.result, wording, random.Random(seed), calls=[ORDERS], initial=initial
        )
    }
    assert found >= set(asked)
    assert ("door 1" in found) == ("door 1" in asked)


@pytest.mark.parametrize(("arguments", "fields"), [({"newsletter": True}, ()), ({"phone": "+44 7"}, ("$.phone",))])
def test_what_a_write_leaves_as_it_is_need_not_be_told(arguments, fields):
    """Whoever orders a newsletter does not want to hear their phone number."""
    properties = {name: {"type": ["string", "boolean", "null"]} for name in ("customer_id", "phone", "newsletter")}
    schema = {"type": "object", "properties": properties, "required": ["customer_id"]}
    tool = ToolSpec(server="shop", name="update", description="Update.", input_schema=schema)
    book = Phrasebook(tools={"update": ToolPhrases(done=("Done.",), facts=("$.phone",))})
    call = GoldCall(tool="update", arguments={"customer_id": "C1", **arguments}, provenance={}, effect="write")
    assert build_general_info(0, call, "x", "x", Wording(book, [tool])).fields == fields
