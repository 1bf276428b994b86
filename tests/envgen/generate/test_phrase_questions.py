"""Questions about single values of records: each answer tells what was asked for, of every record that it is about."""

from datetime import datetime

import pytest

from trajsmith.envgen.generate.blueprint import Blueprint, BlueprintSource, Entity, TableColumn, ToolBlueprint
from trajsmith.envgen.generate.phrase_questions import MANY, build_get_questions, build_list_questions
from trajsmith.envgen.generate.phrase_slots import list_state_words
from trajsmith.envgen.generate.phrasebooks import render_phrasebook
from trajsmith.phrasing import Phrasebook, load_phrasebook
from trajsmith.phrasing.templates import render_phrase

TRIP = Entity(
    table="trips", noun="trip", cls="Trip", key="trip_id", label="trip_name",
    columns=(
        TableColumn(name="trip_id", kind="text"), TableColumn(name="trip_name", kind="text", unique=True),
        TableColumn(name="coach_id", kind="text", references="coaches"), TableColumn(name="fee", kind="number"),
        TableColumn(name="starts_at", kind="moment"), TableColumn(name="created_at", kind="moment"),
        TableColumn(name="seats", kind="whole"),
        TableColumn(name="guide", kind="text", required=False, pool=("Ingrid Moreau",)),
        TableColumn(name="open", kind="flag"), TableColumn(name="status", kind="choice", choices=("planned", "full")),
    ),
)  # fmt: skip
COACH = Entity(
    table="coaches", noun="coach", cls="Coach", key="coach_id", label="coach_name",
    columns=(TableColumn(name="coach_id", kind="text"), TableColumn(name="coach_name", kind="text", unique=True)),
)  # fmt: skip
LIST = ToolBlueprint(
    name="list_trips", description="List trips.", action="list", table="trips", fields=("coach_id", "status")
)
GET = ToolBlueprint(name="get_trip", description="Show a trip.", action="get", table="trips")
VALUES = {
    "fee": "£{}.00",
    "starts_at": "{} May",
    "created_at": "{} April",
    "seats": "{}",
    "status": "planned",
    "guide": "",
}


def make_row(number: int) -> dict:
    return {
        "trip_id": f"T{number}", "trip_name": f"Tour {number}", "coach_id": "C1", "fee": float(number), "guide": None,
        "starts_at": datetime(2026, 5, number, 9, 30).isoformat(), "created_at": f"2026-04-{number:02}T09:30:00",
        "seats": number, "open": True, "status": "planned",
    }  # fmt: skip


def make_blueprint(trip: Entity, *operations: ToolBlueprint) -> Blueprint:
    source = BlueprintSource(kind="tables", name="tours", digest="0")
    return Blueprint(
        name="tours", cls="Tours", title="Tours.", domain="travel", source=source, entities=(trip, COACH),
        operations=operations,
    )  # fmt: skip


@pytest.fixture(scope="module")
def book(tmp_path_factory) -> Phrasebook:
    blueprint = make_blueprint(TRIP, LIST, GET)
    path = tmp_path_factory.mktemp("tours") / "phrases.yaml"
    path.write_text(render_phrasebook(blueprint))
    return load_phrasebook(path)


@pytest.mark.parametrize("count", [1, 2, MANY, MANY + 3])
def test_every_answer_tells_all_that_was_asked_of_each_record(book, count):
    rows = [make_row(number) for number in range(3, 3 + count)]
    told = 0
    for question in book.tools["list_trips"].questions:
        if question.row:
            continue
        fields = [path.rpartition(".")[2] for path in question.asks]
        assert fields[0] == "trip_name" and len(fields) > 1
        for answer in question.answer:
            text = render_phrase(answer, {"out": {"result": rows}, "arg": {}})
            for number in range(3, 3 + count):
                for field in fields[1:]:
                    assert VALUES[field].format(number) in text, (answer, text)
                assert f'"Tour {number}"' in text
            assert "{" not in text
            told += 1
    assert told > 10


def test_an_empty_list_has_an_answer(book):
    for question in book.tools["list_trips"].questions:
        for answer in question.answer if not question.row else ():
            assert render_phrase(answer, {"out": {"result": []}, "arg": {}}) == "There are no trips like that."


def test_one_record_of_a_list_is_asked_about_and_told(book):
    single = {question.asks[0]: question for question in book.tools["list_trips"].questions if question.row}
    assert set(single) == {"fee", "starts_at", "created_at", "seats", "status", "guide"}
    assert {question.row for question in single.values()} == {"trip_id"}
    row = make_row(7)
    for field, question in single.items():
        assert all("{row}" in text for text in (*question.ask, *question.say))
        for answer in question.answer:
            assert VALUES[field].format(7) in render_phrase(answer, {"row": row, "out": {}, "arg": {}})
    assert "When does {row} start?" in single["starts_at"].say
    assert "find out when {row} was created" in single["created_at"].ask
    assert "How many seats does {row} have?" in single["seats"].say


def test_a_record_that_is_looked_up_is_asked_about_and_told(book):
    questions = {question.asks[0].removeprefix("$."): question for question in book.tools["get_trip"].questions}
    assert set(questions) == {"fee", "starts_at", "created_at", "seats", "status", "guide"}
    for field, question in questions.items():
        assert all("{trip_id}" in text for text in (*question.ask, *question.say))
        for answer in question.answer:
            assert VALUES[field].format(7) in render_phrase(answer, {"out": make_row(7), "arg": {}})
    assert "When was {trip_id} created?" in questions["created_at"].say
    assert questions["guide"].say == ("Who is the guide of {trip_id}?",)


def test_a_list_is_asked_for_by_a_filter_on_another_column_only(book):
    for question in build_list_questions(LIST, TRIP):
        if "row" in question:
            continue
        asked = " ".join(question["ask"])
        assert "the trips of {coach_id}" in asked
        assert ("{status|human}" in asked) is ("$.result[*].status" not in question["asks"])


def test_what_a_record_lacks_is_said_to_be_missing(book):
    asked = [question for question in book.tools["list_trips"].questions if "$.result[*].guide" in question.asks]
    assert any("Which trips are there, and who is the guide of each?" in question.say for question in asked)
    rows = [make_row(3), make_row(4) | {"guide": "Noor Sato"}]
    for question in asked:
        for answer in question.answer:
            text = render_phrase(answer, {"out": {"result": rows}, "arg": {}})
            assert "no guide" in text and "Noor Sato" in text and "None" not in text


def test_links_and_flags_and_the_name_of_the_record_itself_are_not_asked_for():
    fares = TRIP.model_copy(update={"noun": "fee"})
    for entity, left_out in ((TRIP, ("coach_id", "open")), (fares, ("coach_id", "open", "fee"))):
        asked = {path for question in build_list_questions(LIST, entity) for path in question["asks"]}
        asked |= {path for question in build_get_questions(entity) for path in question["asks"]}
        assert asked and not [path for path in asked if path.rpartition(".")[2] in left_out]


def test_a_record_without_a_name_is_told_by_its_key():
    bare = TRIP.model_copy(update={"label": "", "columns": tuple(c for c in TRIP.columns if c.name != "trip_name")})
    questions = build_list_questions(LIST, bare)
    assert questions and not [question for question in questions if "row" in question]
    for question in questions:
        assert question["asks"][0] == "$.result[*].trip_id"
        assert all("T5" in render_phrase(text, {"out": {"result": [make_row(5)]}}) for text in question["answer"])


def test_states_are_said_in_further_words_where_lists_are_asked_for(book):
    column = TableColumn(name="status", kind="choice", choices=("in_progress", "completed", "done", "declined", "odd"))
    words = list_state_words(column)
    assert words["in_progress"] == ["in progress", "under way", "being worked on"]
    assert "finished" not in words["completed"] + words["done"], "it would fit both"
    assert words["declined"] == ["declined", "turned down"] and "odd" not in words
    assert book.parameters["list_trips.status"].values["planned"] == ("planned", "only planned so far")
    assert all(not phrases.values for name, phrases in book.parameters.items() if name != "list_trips.status")


def test_lists_tell_keys_only_now_and_then_where_names_are_enough(book):
    rows = book.entities["trip_id"].row
    assert any("{trip_id}" in row for row in rows) and any("{trip_id}" not in row for row in rows)
    within = TRIP.model_copy(
        update={
            "columns": tuple(
                c.model_copy(update={"unique": False}) if c.name == "trip_name" else c for c in TRIP.columns
            )
        }
    )
    blueprint = make_blueprint(within, LIST)
    assert '- \'"{trip_name}" ({trip_id}' in render_phrasebook(blueprint)
