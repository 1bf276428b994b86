"""Requests from files of several shapes, and what their words tell of a state."""

import json

import pytest

from trajsmith.envgen.sources.requests import MAX_REQUEST_CHARACTERS, extract_request, read_requests
from trajsmith.envgen.sources.statefulness import estimate_statefulness
from trajsmith.records import InputError

STATEFUL = {
    "strong command": ("Please cancel order 4512.", "changes a record: cancel"),
    "record beside a weak command": ("Add a reminder to call mum at six", "changes a record: add reminder"),
    "behind a wish": ("I would like to reschedule the viewing of the flat.", "changes a record: reschedule"),
    "second clause": ("Find a table for two in Graz and reserve it.", "changes a record: reserve"),
    "own record": ("Show my bookings for May", "reads a record: show booking"),
    "numbered record": ("Look up the invoice #1024", "reads a record: look invoice"),
    "upcoming": ("List upcoming flights to Oslo", "reads a record: list flight"),
    "own thing of any kind": ("Record my heart rate of today", "about what is the speaker's own: record"),
    "question about one's own": ("When is our next appointment?", "about the speaker's own appointment"),
    "gerund": ("I need help renewing a loan of two books", "changes a record: renew"),
    "check in is one word": ("Check in to flight KL1001 for me", "changes a record: checkin"),
}
NOT = {
    "knowledge": ("Who painted the Night Watch?", "a question that names no record of a person"),
    "content": ("Write a poem about autumn.", "makes or works out something: write"),
    "computation": ("Calculate the area of a circle of radius 5", "makes or works out something: calculate"),
    "media": ("Create a video of example1.jpg and example2.jpg", "makes or works out something: create"),
    "order is no command": ("Translate this in order to publish it", "makes or works out something: translate"),
    "quoted commands": ("Fix the grammar of 'He cancel my order and buy a new one'", "no word tells of a state"),
    "talk": ("Thanks, that was lovely!", "no word tells of a state"),
    "no words": ("42 + 17", "no words in it"),
}


@pytest.mark.parametrize(("text", "reason"), STATEFUL.values(), ids=STATEFUL)
def test_requests_that_need_a_state(text, reason):
    found = estimate_statefulness(text)
    assert (found.stateful, found.reason) == (True, reason)


@pytest.mark.parametrize(("text", "reason"), NOT.values(), ids=NOT)
def test_requests_that_need_none(text, reason):
    found = estimate_statefulness(text)
    assert (found.stateful, found.reason) == (False, reason)


@pytest.mark.parametrize(
    "line",
    [
        "Cancel  my order",
        {"query": "Cancel my order"},
        {"instruction": "", "text": "Cancel my order"},
        {"messages": [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "Cancel my order"}]},
        {"conversations": [{"from": "human", "value": "Cancel my order"}, {"from": "gpt", "value": "Done."}]},
        {"question": [[{"role": "user", "content": "Cancel my order"}], [{"role": "user", "content": "And this."}]]},
    ],
    ids=["text", "query", "second field", "messages", "sharegpt", "turns"],
)
def test_a_request_is_found_in_the_usual_shapes(line):
    assert extract_request(line) == "Cancel my order"


def test_lines_without_a_request_are_named(tmp_path):
    file = tmp_path / "tasks.jsonl"
    file.write_text('{"query": "' + "a" * 3000 + '"}\n{"id": 4}\n17\n')
    texts, left_out = read_requests(file)
    assert [len(text) for text in texts] == [MAX_REQUEST_CHARACTERS]
    assert [(one.what, one.reason) for one in left_out] == [
        ("line 2", "no request in it"),
        ("line 3", "no request in it"),
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "it is empty; each line needs a request"),
        ('{"id": 1}\n{"id": 2}', "no request in any of 2 lines; each needs one of query, request"),
        ("not JSON", "tasks.jsonl:1: no JSON"),
    ],
    ids=["empty", "no request", "no JSON"],
)
def test_unusable_files_say_what_is_needed(tmp_path, text, message):
    file = tmp_path / "tasks.jsonl"
    file.write_text(text)
    with pytest.raises(InputError, match=message):
        read_requests(file)


def test_one_json_object_is_no_task_set(tmp_path):
    file = tmp_path / "tasks.json"
    file.write_text(json.dumps({"query": "Cancel my order"}))
    with pytest.raises(InputError, match="a task set is JSON Lines, or a JSON list"):
        read_requests(file)
