"""What an agent says of results that nobody wrote phrases for."""

import random
from datetime import date
from pathlib import Path

import pytest
from playing import Stage

from trajsmith.environments.library import ENVIRONMENTS
from trajsmith.environments.library import __file__ as library_file
from trajsmith.grounding import is_end_out_of_reach
from trajsmith.phrasing import EntityPhrases, Phrasebook, ToolPhrases, Wording, load_phrasebook
from trajsmith.phrasing.languages import get_language
from trajsmith.records import AnswerFact, GoldCall, ToolSpec
from trajsmith.usersim import Dialogue, PlaySettings, ScriptedAgent, ScriptedUser, prepare_scripted_agent
from trajsmith.usersim.reporting import (
    ReportWriter,
    drop_repeated_openings,
    fit_to_question,
    render_missing_facts,
    summarize_reports,
)


def facts(*values):
    return [AnswerFact(value=value) for value in values]


def test_facts_that_are_left_out_are_said_by_the_names_of_their_fields():
    result = {"customer": {"full_name": "Marisol Quinn", "tier": "gold"}, "points": 0}
    found = render_missing_facts("Your order is placed.", facts("Marisol Quinn", "gold", 0), [result])
    assert found == ["Full name: Marisol Quinn.", "Tier: gold.", "Points: 0."]


def test_what_was_said_is_not_said_again_and_what_has_no_field_is_still_said():
    assert render_missing_facts("You have gold, Marisol Quinn.", facts("Marisol Quinn", "gold"), []) == []
    assert render_missing_facts("Done.", facts("a", "b"), [{"x": 1}]) == ["It also shows a and b."]


def test_only_the_first_report_of_a_message_begins_with_done():
    reports = ["Okay, it is in your calendar.", "All right, I've reserved Attic.", "Done, the reminder is set."]
    assert drop_repeated_openings(reports) == [reports[0], "I've reserved Attic.", "the reminder is set."]


def test_a_line_of_a_batch_begins_with_what_it_is_about():
    reports = [f"It's the Sea Lark {number} on {number} May." for number in (3, 9)]
    assert summarize_reports(reports, ["", ""])[0] == ["The Sea Lark 3 on 3 May.", "The Sea Lark 9 on 9 May."]


def test_each_line_of_a_batch_has_a_name_and_what_holds_of_all_is_said_once():
    reports = [f"That's done, with a refund of £{amount}.00. It can't be undone." for amount in (45, 12)]
    lines, shared = summarize_reports(reports, ["the order from 3 May", "the order from 9 May"])
    assert lines == [
        "The order from 3 May: that's done, with a refund of £45.00.",
        "The order from 9 May: that's done, with a refund of £12.00.",
    ]
    assert shared == ["It can't be undone."]
    lines, shared = summarize_reports(
        ['"Quiz night" is declined.', '"Garden lunch" is declined.'], ['"Quiz night"', ""]
    )
    assert lines == ['"Quiz night" is declined.', '"Garden lunch" is declined.'] and shared == []
    lines, _ = summarize_reports(["Done, your £22.00 to Vets is cancelled.", "That's done: Gym is off."], ["", ""])
    assert lines == ["Your £22.00 to Vets is cancelled.", "Gym is off."], "in a list nobody says done for each"


def write_note(name, arguments, rows, text):
    cls = ENVIRONMENTS.get("calendar")
    phrasebook = load_phrasebook(Path(library_file).parent / "calendar" / "phrases.yaml")
    writer = ReportWriter(Wording(phrasebook, cls.describe().tools), "plain", random.Random(1))
    call = GoldCall(tool=name, arguments=arguments, provenance={}, effect="read")
    return writer.add_limit_note(call, {"result": rows}, text).removeprefix(text)


def test_a_list_that_holds_as_many_as_its_tool_shows_is_told_with_a_word_that_there_may_be_more():
    rows = [{"task_id": f"K{number}", "task": f"Task {number}"} for number in range(1, 9)]
    every = "Open: " + ", ".join(str(row["task"]) for row in rows) + "."
    assert "8" in write_note("list_tasks", {}, rows, every)
    assert write_note("list_tasks", {}, rows[:7], every) == "", "fewer than it would show"
    assert write_note("list_tasks", {}, rows, "Task 1 is the most urgent one.") == "", "not the whole list is told"


def test_a_full_page_is_told_with_a_word_that_there_may_be_another():
    tool = ToolSpec(
        name="list_things", description="List things, at most 2.", server="s",
        input_schema={"type": "object", "properties": {"page": {"type": "integer"}}},
    )  # fmt: skip
    rows = {"result": [{"title": "First"}, {"title": "Second"}]}
    assert not is_end_out_of_reach(tool, {}, rows)
    bare = tool.model_copy(update={"input_schema": {"type": "object", "properties": {}}})
    assert is_end_out_of_reach(bare, {}, rows)
    writer = ReportWriter(Wording(Phrasebook(), [tool]), "plain", random.Random(1))
    call = GoldCall(tool="list_things", arguments={}, provenance={}, effect="read")
    note = writer.add_limit_note(call, rows, "First, Second.").removeprefix("First, Second.")
    assert note.strip() in [text.format(count=2) for text in get_language().reports.more_pages]
    assert writer.add_limit_note(call, {"result": rows["result"][:1]}, "First.") == "First."


def test_of_several_answers_in_a_message_each_says_what_it_is_about():
    entities = {"payee_id": EntityPhrases(noun="payee", plural="payees")}
    tools = {
        "list_payees": ToolPhrases(
            brief=["You have {out.result|length} on the list."], done=["Your payees are {out.result|length} people."]
        )
    }
    schema = {"type": "object", "properties": {}}
    spec = ToolSpec(server="b", name="list_payees", description="List.", input_schema=schema)
    writer = ReportWriter(Wording(Phrasebook(tools=tools, entities=entities), [spec]), "short", random.Random(1))
    call = GoldCall(tool="list_payees", arguments={}, provenance={}, effect="read")
    rows = {"result": [{"payee_id": "P1", "name": "Ann"}]}
    assert writer.report(call, rows) == "You have 1 on the list."
    assert writer.report(call, rows, alone=False) == "Your payees are 1 people."


def test_what_is_reported_twice_is_said_in_other_words():
    tools = {"add_note": ToolPhrases(done=["It's noted.", "That's on the list.", "You have it in writing."])}
    spec = ToolSpec(server="n", name="add_note", description="Add.", input_schema={"type": "object", "properties": {}})
    call = GoldCall(tool="add_note", arguments={}, provenance={}, effect="write")
    for seed in range(9):
        writer = ReportWriter(Wording(Phrasebook(tools=tools), [spec]), "plain", random.Random(seed))
        assert len({writer.report(call, {"note_id": "N1"}) for _ in range(3)}) == 3
        writer.varies, writer.used = False, set()
        assert writer.report(call, {"note_id": "N1"}) and not writer.used, "lines of a list may be alike"


def test_a_steady_report_takes_the_first_phrase_that_fits_every_time():
    done = ["{% if out.note_id == 'N2' %}N2 is noted.{% endif %}", "It's noted.", "That's on the list."]
    spec = ToolSpec(server="n", name="add_note", description="Add.", input_schema={"type": "object", "properties": {}})
    call = GoldCall(tool="add_note", arguments={}, provenance={}, effect="write")
    for seed in range(9):
        wording = Wording(Phrasebook(tools={"add_note": ToolPhrases(done=done)}), [spec])
        writer = ReportWriter(wording, "plain", random.Random(seed))
        writer.steady = True
        told = [writer.report(call, {"note_id": number}) for number in ("N1", "N1", "N2", "N1")]
        assert told == ["It's noted.", "It's noted.", "N2 is noted.", "It's noted."]


def test_a_template_can_tell_that_a_due_date_has_passed():
    done = "It{% if now and out.due_at < now %} was{% else %}'s{% endif %} due by {out.due_at|date}."
    tool = ToolSpec(
        server="n", name="get_ticket", description="Get.", input_schema={"type": "object", "properties": {}}
    )
    call = GoldCall(tool="get_ticket", arguments={}, provenance={}, effect="read")
    book = Phrasebook(tools={"get_ticket": ToolPhrases(done=[done])})
    writer = ReportWriter(Wording(book, [tool]), "plain", random.Random(0))
    for now, told in (("", "It's due"), ("2026-01-02", "It's due"), ("2026-01-06", "It was due")):
        writer.now = now
        assert writer.report(call, {"due_at": "2026-01-03T08:58:00"}).startswith(told)


def test_what_is_asked_for_next_is_not_told_before():
    """ "£100.00 is left today." leaves nothing to ask by "What's left of today's limit?"."""
    done = ("Paid £280.00. £100.00 is left today.", "Paid £280.00.")
    book = Phrasebook(tools={"pay": ToolPhrases(done=done)})
    tool = ToolSpec(server="bank", name="pay", description="Pay.", input_schema={"type": "object", "properties": {}})
    call = GoldCall(tool="pay", arguments={}, provenance={}, effect="write")
    for seed in range(6):
        writer = ReportWriter(Wording(book, [tool]), "plain", random.Random(seed))
        writer.later = facts(100.0)
        assert writer.report(call, {}, facts(280.0)) == done[1]
        writer.later = facts(280.0)
        assert writer.report(call, {}, facts(280.0)) in done, "what is asked for now is told"


def test_what_a_refusal_tells_is_not_told_before_it():
    """ "They can get £200.00 at most. I couldn't do it, because they can get no more than £200.00 for now." """
    done = ("Seaview is saved.", "Seaview is saved. They can get £200.00 at most.")
    book = Phrasebook(tools={"add": ToolPhrases(done=done)})
    tool = ToolSpec(server="bank", name="add", description="Add.", input_schema={"type": "object", "properties": {}})
    call = GoldCall(tool="add", arguments={}, provenance={}, effect="write")
    said = set()
    for seed in range(8):
        writer = ReportWriter(Wording(book, [tool]), "plain", random.Random(seed))
        said.add(writer.report(call, {}))
        for limit in ("£200.00", "£200"):
            writer.reason = f"Seaview can get no more than {limit} for now"
            assert writer.report(call, {}) == done[0]
    assert said == set(done)


@pytest.mark.parametrize(
    ("question", "says_no"),
    [
        ("Is it possible to find out whether a window is open?", False),
        ("Any chance you could see whether a window is open?", False),
        ("Is a window open?", True),
        ("Could you see whether a window is open?", True),
        ("And the bathroom, is a window open there?", True),
        ("Which windows are open?", False),
        ("Is it open or shut?", False),
        ("Could you go over the windows?", False),
        ("And would a window be open?", True),
        ("Can you make sure that all windows are shut?", True),
        ("Please tell me what is open in that room.", False),
        ("Would you say which windows are open?", False),
    ],
)
def test_a_no_does_not_answer_whether_something_can_be_found_out(question, says_no):
    assert fit_to_question("No, they're all shut.", question) == (
        "No, they're all shut." if says_no else "They're all shut."
    )
    assert fit_to_question("No. They're all shut.", question) == (
        "No. They're all shut." if says_no else "They're all shut."
    )
    assert fit_to_question("Nothing is open.", question) == "Nothing is open."


def test_a_question_for_a_yes_or_no_gets_one_where_words_have_it():
    done = ("The gate is open.", "{% if out.open %}No, the gate is open.{% else %}Yes, all are locked.{% endif %}")
    book = Phrasebook(tools={"look": ToolPhrases(done=done)})
    tool = ToolSpec(server="home", name="look", description="Look.", input_schema={"type": "object", "properties": {}})
    call = GoldCall(tool="look", arguments={}, provenance={}, effect="read")
    for seed in range(6):
        writer = ReportWriter(Wording(book, [tool]), "plain", random.Random(seed))
        said = writer.report(call, {"open": True}, question="Are all the doors locked?")
        assert said == "No, the gate is open."


def write_report(environment, tool, content, before=None, others=(), seed=1, **arguments):
    cls = ENVIRONMENTS.get(environment)
    phrasebook = load_phrasebook(Path(library_file).parent / environment / "phrases.yaml")
    writer = ReportWriter(Wording(phrasebook, cls.describe().tools), "short", random.Random(seed))
    writer.before, writer.others = (lambda call: before), (lambda call: list(others))
    return writer.report(GoldCall(tool=tool, arguments=arguments, provenance={}, effect="write"), content)


MOVED = {
    "service": "Sea Lark 18",
    "departs_at": "2026-04-20T09:25:00",
    "arrives_at": "2026-04-20T13:33:00",
    "from_station": "Skarra Harbour",
    "to_station": "Grenport Harbour",
    "fare": "saver",
    "travel_class": "standard",
    "price": 90.4,
}


def test_a_price_that_has_changed_is_told_with_the_difference():
    before = {"departs_at": "2026-05-08T09:25:00", "price": 74.4}
    for seed in range(6):
        text = write_report("travel", "move_trip", MOVED, before, seed=seed)
        assert "£16.00" in text and "£90.40" in text, text
    assert "£16.00" not in write_report("travel", "move_trip", MOVED), "nothing was shown before"


def test_a_second_measurement_is_compared_with_the_first():
    result = {"connection": "home_wifi", "download_mbps": 60.3, "upload_mbps": 15.1}
    for seed in range(6):
        text = write_report("mobile_care", "run_speed_test", result, {**result, "download_mbps": 3.4}, seed=seed)
        assert "60.3" in text and "3.4" in text, text


def test_a_door_that_stays_unlocked_is_told_when_another_one_is_locked():
    locked = {"lock_name": "terrace door", "status": "locked", "battery_percent": 80, "door_open": False}
    others = [{"lock_name": "cellar door", "status": "unlocked"}, {"lock_name": "front door", "status": "locked"}]
    for seed in range(8):
        text = write_report("smart_home", "set_door_lock", locked, others=others, seed=seed, action="lock")
        *_, last = text.rstrip(".").split(". ")
        assert "cellar door" in last and ("unlocked" in last or "isn't locked yet" in last), text
        assert "front door" not in text, text
        text = write_report("smart_home", "set_door_lock", locked, others=others[1:], seed=seed, action="lock")
        assert "unlocked" not in text and "front door" not in text, text


async def test_agents_with_one_voice_say_the_same_of_the_same(tmp_path):
    stage = Stage("bank", tmp_path)
    settings = PlaySettings(voice="brief")
    texts = []
    for task in await stage.tasks(12, mean_calls=2):
        plays = []
        for candidate in range(3):
            agent = ScriptedAgent(task, stage.wording, candidate)
            prepare_scripted_agent(agent, settings, date.min)
            user = ScriptedUser(task, stage.wording, 0)
            dialogue = Dialogue(stage.spec, task, stage.state, stage.session(), agent, user, settings, candidate)
            trajectory = await dialogue.play()
            assert (await stage.verdict(task, trajectory)).accepted
            last = [trajectory.messages[span.stop - 1].content for span in trajectory.turns]
            plays.append(last)
            texts += [m.content for m in trajectory.messages if m.role == "assistant" and m.tool_calls]
        assert plays[0] == plays[1] == plays[2]
    assert not any(texts), "nothing is said of what comes next"
    with pytest.raises(ValueError, match="there is no voice 'loud'; there are: plain, brief"):
        PlaySettings(voice="loud")
