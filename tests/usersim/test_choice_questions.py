"""Questions for one of several things: by name, only what fits, no list twice, and no long ones."""

import random
import re
from types import SimpleNamespace

import pytest

from trajsmith.phrasing import EntityPhrases, ParameterPhrases, Phrasebook, Wording
from trajsmith.phrasing.agreement_detection import find_confirmation_requests
from trajsmith.phrasing.voices import get_agent_voice, load_voices
from trajsmith.records import FromOutput, GoldCall, Selector
from trajsmith.usersim.choice_questions import ChoiceWriter, select_meant_rows
from trajsmith.usersim.scripted_agent import ScriptedAgent

NAMES = ("Drone Flight", "Office Tour", "Puppy Clips", "Lecture", "Panning Shot", "Cat Clip")
FILES = [
    {
        "file_id": f"F{n}",
        "file_name": f"{name}.{'zip' if n in (1, 3) else 'mp4'}",
        "file_type": kind,
        "size_mb": 12.5 + n,
    }
    for n, name in enumerate(NAMES)
    for kind in ["archive" if n in (1, 3) else "video"]
]
BOOK = Phrasebook(
    parameters={"file_type": ParameterPhrases(values={"archive": ("zip file",), "video": ("video",)})},
    entities={
        "file_id": EntityPhrases(
            noun="file",
            by={"file_name": ("the file {value}", "{value}"), "size_mb": ("the file of {value} MB",)},
            row="{file_name} ({size_mb} MB)",
        )
    },
)
WORDING = Wording(BOOK, [])


def pick(row, field="file_name"):
    return Selector(rows="$.result", field=field, how="equals", value=row[field])


def ask(rows, selector, told="", seed=0, style="plain", whole=True):
    writer = ChoiceWriter(WORDING, random.Random(seed), get_agent_voice(style))
    return writer.write("file_id", rows, selector, told, whole)


@pytest.mark.parametrize("style", load_voices().agents)
def test_few_things_are_listed_by_name_in_one_form(style):
    for seed in range(20):
        text = ask(FILES[:3], pick(FILES[0]), seed=seed, style=style)
        assert all(row["file_name"] in text for row in FILES[:3]) and "MB" not in text and "?" in text
        assert text.count("the file ") in (0, 3) and not find_confirmation_requests(text)


@pytest.mark.parametrize("style", load_voices().agents)
@pytest.mark.parametrize("field", ["file_name", "size_mb"])
def test_the_number_of_some_is_not_told_as_that_of_all(style, field):
    texts = {
        whole: [ask(FILES[:3], pick(FILES[0], field), seed=seed, style=style, whole=whole) for seed in range(30)]
        for whole in (True, False)
    }
    assert any("3 files" in text for text in texts[True])
    assert not any("3 files" in text for text in texts[False])
    assert all(row["file_name"] in text for text in texts[False] for row in FILES[:3])


def test_details_are_told_where_the_user_picks_by_them():
    assert "12.5 MB" in ask(FILES[:3], pick(FILES[0], "size_mb"))


def test_of_many_things_none_is_listed():
    assert ask(FILES, pick(FILES[0])) == "There are several files. Which file do you mean?"


def test_a_list_that_was_told_is_not_told_again():
    told = "I see " + ", ".join(row["file_name"] for row in FILES[:4])
    assert ask(FILES[:4], pick(FILES[0]), told) == "Which file do you mean?"


def test_only_what_fits_the_words_of_the_user_is_offered():
    rows = select_meant_rows(FILES, pick(FILES[1]), "Could you share the zip file with my team?", WORDING)
    assert [row["file_name"] for row in rows] == ["Office Tour.zip", "Lecture.zip"]
    assert select_meant_rows(FILES, pick(FILES[0]), "Could you share the zip file?", WORDING) == FILES


TRIPS = [
    {"booking_id": f"B{n}", "from_city": "Holmey", "to_city": city, "departs_at": f"2026-03-{n}", "status": status}
    for n, city, status in (
        (24, "Lunna", "confirmed"), (30, "Lunna", "confirmed"), (11, "Lunna", "travelled"), (12, "Hall", "travelled"),
    )
]  # fmt: skip
TRIP_WORDING = Wording(
    Phrasebook(
        entities={
            "booking_id": EntityPhrases(
                noun="trip", name=("your {to_city} trip on {departs_at|date}",), by={"to_city": ("my trip to {value}",)}
            )
        }
    ),
    [],
)


def test_a_word_of_the_story_is_no_word_on_the_thing():
    """ "She's never travelled in style" speaks of no trips that were travelled; and one that is over leaves no more."""
    said = "She's never travelled in style. When does my trip to Lunna leave?"
    rows = select_meant_rows(TRIPS, pick(TRIPS[0], "departs_at"), said, TRIP_WORDING, "booking_id")
    assert [row["booking_id"] for row in rows] == ["B24", "B30"]


@pytest.mark.parametrize("style", load_voices().agents)
def test_what_there_is_to_choose_from_is_joined_by_or(style):
    for seed in range(12):
        writer = ChoiceWriter(TRIP_WORDING, random.Random(seed), get_agent_voice(style))
        text = writer.write("booking_id", TRIPS[:2], pick(TRIPS[0], "departs_at"))
        assert not re.search(r" and your [^.]*\?", text), text


@pytest.mark.parametrize(("changed", "listed"), [("F0", True), (None, False)])
def test_after_a_write_to_one_thing_the_others_are_still_offered(changed, listed):
    read = GoldCall(tool="list_files", arguments={}, provenance={}, effect="read")
    write = GoldCall(
        tool="delete", arguments={"file_id": changed} if changed else {}, provenance={}, effect="write"
    )  # without an identifier, everything may have changed
    agent = SimpleNamespace(
        calls=[read, write], results=[SimpleNamespace(content={"result": FILES[:3]}), None], wording=WORDING, turn=0,
        rng=random.Random(0), voice=get_agent_voice("plain"), told="",
        task=SimpleNamespace(turns=[SimpleNamespace(query="")]),
    )  # fmt: skip
    agent._get_result = lambda number: agent.results[number]
    agent._stale = lambda *which: ScriptedAgent._stale(agent, *which)
    source = FromOutput(call=0, path="$.result[*].file_id")
    text = ScriptedAgent._which(agent, "file_id", source, pick(FILES[1]))
    assert [row["file_name"] in text for row in FILES[:3]] == [False, listed, listed]


@pytest.mark.parametrize("style", ["plain", "brief", "explanatory", "warm"])
def test_many_long_names_stand_below_each_other(style):
    """Five invitations in one sentence, each with its words around the name, are read by nobody."""
    rows = [{"file_id": f"F{n}", "file_name": f"{name} of the last conference.zip", "folder_name": "Talks"}
            for n, name in enumerate(("Recording", "Photographs", "Programme", "Evaluation"))]  # fmt: skip
    lead, *lines = ask(rows, pick(rows[1], "file_name"), style=style).split("\n")
    assert lead.endswith(":") and ("4" in lead or "could be" in lead)
    assert [line for line in lines if line.startswith("- ")] == lines[:4]
    assert "Photographs of the last conference.zip" in lines[1]
