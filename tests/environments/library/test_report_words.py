"""Reports of the bundled environments say what a result means, in every wording."""

import random
import re
from collections.abc import Mapping

import pytest

from trajsmith.environments.library import ENVIRONMENTS, get_phrases_path
from trajsmith.phrasing import Wording, list_slots, load_phrasebook, load_scenarios
from trajsmith.phrasing.templates import render_phrase

_EMPTY = re.compile(r"\{% if [^%]*%\}\{% endif %\}")
"""A condition that decides nothing."""

SPEED = {"connection": "home_wifi", "download_mbps": 0.0, "upload_mbps": 0.0}
SIM = {
    "label": "hotspot",
    "number": "+44 1",
    "old_sims_retired": 1,
    "next_step": "switch airplane mode on and off once",
}
LOCK = {"lock_name": "terrace door", "status": "unlocked", "battery_percent": 64, "door_open": True}
LIGHT = {"status_light": "blinking_red", "display_code": "R-915", "router_model": "Harbour"}


def say_all(environment: str, tool: str, out: Mapping[str, object]) -> list[str | None]:
    """Return what every template of a tool makes of a result."""
    book = load_phrasebook(get_phrases_path(ENVIRONMENTS.get(environment)))
    phrases = book.tools[tool]
    wording = Wording(book, ())
    return [
        wording.results([template], out, {}, random.Random(0))
        for template in (*phrases.done, *phrases.brief, *phrases.detailed)
        if "before" not in list_slots(template)
    ]


def test_no_speed_at_all_is_called_no_connection() -> None:
    assert all("no connection at all" in said for said in say_all("mobile_care", "run_speed_test", SPEED))


def test_an_add_on_that_starts_later_is_not_called_on() -> None:
    booked = {"booking_id": "BK1", "label": "main phone", "name": "Neighbour Pass", "price": 6.0}
    days = {"valid_from": "2026-06-21", "valid_until": "2026-06-28"}
    for said in say_all("mobile_care", "book_add_on", {**booked, **days}):
        assert said is not None
        assert "21 June" in said or not any(
            word in said for word in (" is on,", "You have ", " line has ", "You can ")
        ), said


def test_an_activation_asks_for_no_step_that_may_be_done() -> None:
    assert not any("lease " in said for said in say_all("mobile_care", "activate_sim", SIM))


@pytest.mark.parametrize(("tool", "out"), [("list_locks", {"result": [LOCK]}), ("set_door_lock", LOCK)])
def test_an_open_door_is_said_to_be_open(tool: str, out: Mapping[str, object]) -> None:
    row = {"lock_id": "K1"}
    given = {"result": [{**LOCK, **row}]} if "result" in out else {**LOCK, **row}
    for said in say_all("smart_home", tool, given):
        assert "open" in said.replace("open to everybody", "").replace("Please remember", ""), said


def test_a_fault_of_the_router_is_named() -> None:
    for said in say_all("mobile_care", "restart_router", LIGHT):
        assert "something is wrong" not in said and "fault is still there" not in said


def test_a_light_of_the_router_is_explained() -> None:
    for tool in ("read_router_light", "restart_router"):
        for said in say_all("mobile_care", tool, LIGHT):
            assert said is not None
            assert any(word in said for word in ("signal", "network", "cable", "lost the line", "technician")), said


def test_a_new_phone_number_is_told_without_the_newsletter() -> None:
    book = load_phrasebook(get_phrases_path(ENVIRONMENTS.get("retail")))
    out = {"phone": "+44 7700 900123", "newsletter": True, "email": "a@example.com"}
    phrases = book.tools["update_contact"]
    for template in (*phrases.done, *phrases.brief, *phrases.detailed):
        said = Wording(book, ()).results([template], out, {"phone": out["phone"]}, random.Random(0))
        assert said is not None and "newsletter" not in said and out["phone"] in said


ORDER = {"standing_order_id": "S1", "payee_name": "Gym", "amount": 9.0, "frequency": "monthly", "next_on": "2026-06-21"}
DEPOSIT = {
    "transaction_id": "T1",
    "booked_on": "2026-08-24",
    "description": "Refund",
    "kind": "deposit",
    "direction": "in",
    "amount": 3.0,
    "status": "booked",
}
STAY = {
    "reservation_id": "S1",
    "hotel_name": "Inn Lunna",
    "city": "Lunna",
    "title": "twin room at Inn Lunna",
    "check_in": "2026-05-03",
    "check_out": "2026-05-04",
    "guests": 1,
    "total": 90.0,
    "status": "booked",
}


@pytest.mark.parametrize(
    ("environment", "tool", "out", "unsupported"),
    [
        ("bank", "list_standing_orders", {"result": [ORDER]}, ("they ", "each ", "those days")),
        ("bank", "list_transactions", {"result": [DEPOSIT]}, ("dispute", "pending", "list with dates")),
        ("travel", "reserve_room", STAY, ("breakfast",)),
        ("travel", "list_stays", {"result": [STAY]}, ("at most", "depends")),
    ],
)
def test_a_report_says_nothing_that_the_result_does_not_support(
    environment: str, tool: str, out: Mapping[str, object], unsupported: tuple[str, ...]
) -> None:
    for said in say_all(environment, tool, out):
        assert not any(words in (said or "").lower() for words in unsupported), said


def list_question_answers(environment: str, tool: str, out: Mapping[str, object], asks: str) -> list[str | None]:
    """Return what every template makes of a result as the answer to a question, in phrases and scenarios."""
    path = get_phrases_path(ENVIRONMENTS.get(environment))
    book = load_phrasebook(path)
    scenarios = load_scenarios(path.with_name("scenarios.yaml"))
    steps = [step for scenario in scenarios.scenarios for step in scenario.steps if step.tool == tool]
    questions = [*book.tools[tool].questions, *(step.question for step in steps if step.question)]
    templates = [template for question in questions if asks in question.asks for template in question.answer]
    return [Wording(book, ()).results([template], out, {}, random.Random(0)) for template in templates]


@pytest.mark.parametrize(("service", "other"), [("home_internet", "mobile network"), ("mobile", "home internet")])
def test_an_answer_about_outages_speaks_of_both_services(service: str, other: str) -> None:
    row = {"outage_id": "OU1", "service": service, "status": "resolved", "cause": "a storm"}
    times = {"started_at": "2026-06-15T12:05:00", "expected_end": "2026-06-15T19:05:00"}
    answers = list_question_answers(
        "mobile_care", "list_outages", {"result": [{**row, **times}]}, "$.result[*].service"
    )
    assert len(answers) >= 2
    for said in answers:
        assert said is not None and other in said.lower(), said


def test_an_outage_that_goes_on_is_told_with_its_end() -> None:
    row = {"outage_id": "OU1", "service": "mobile", "status": "ongoing", "cause": "a storm"}
    times = {"started_at": "2026-06-15T12:05:00", "expected_end": "2026-06-15T19:05:00"}
    answers = list_question_answers(
        "mobile_care", "list_outages", {"result": [{**row, **times}]}, "$.result[*].service"
    )
    assert len(answers) >= 2
    for said in answers:
        assert said is not None and "ongoing" in said and "19:05" in said, said


def test_the_owner_is_told_which_code_is_their_own() -> None:
    """Who asks for the codes of a door is the owner, whom no list names like a stranger."""
    book = load_phrasebook(get_phrases_path(ENVIRONMENTS.get("smart_home")))
    code = {"access_code_id": "A1", "lock_name": "front door", "status": "active", "valid_until": None}
    rows = [
        {**code, "member_name": "Fiona Bay", "role": "owner"},
        {**code, "member_name": "Ivo Xu", "role": "helper", "access_code_id": "A2", "valid_until": "2026-03-02"},
    ]
    phrases = book.tools["list_access_codes"]
    values = {"out": {"result": rows}, "user_name": "Fiona Bay", "row_templates": Wording(book, ()).rows}
    for template in (*phrases.done, *phrases.brief, *phrases.detailed):
        said = render_phrase(template, values) or ""
        assert "Fiona Bay (you" in said and "Ivo Xu" in said and "Xu (you" not in said, said


def test_a_share_that_was_there_is_reported_as_a_change() -> None:
    out = {
        "share_id": "S1",
        "file_name": "Plan.xlsx",
        "person_name": "Lars Walsh",
        "role": "viewer",
        "outcome": "changed",
    }
    words = ("chang", "before", "already", "new role", "instead", "switched", "from now on", "now has")
    for said in say_all("file_store", "share_file", out):
        assert said is not None
        assert any(word in said for word in words), said


def test_an_escalation_claims_no_change_that_it_does_not_know() -> None:
    out = {"title": "Dead laptop", "team": "Second Line Support", "priority": "urgent", "due_at": "2026-05-01T13:10:00"}
    out |= {"team_lead": "Ann Bay", "status": "in_progress", "title": "No network", "escalated": True}
    said = [text for text in say_all("helpdesk", "escalate_ticket", out) if text]
    assert said
    for text in said:
        assert not any(word in text for word in ("become", "new due time", "priority is now")), text


def test_an_upgrade_tells_the_points_that_it_took() -> None:
    book = load_phrasebook(get_phrases_path(ENVIRONMENTS.get("travel")))
    out = {"travel_class": "comfort", "price": 99.8, "service": "Coast Runner 52", "passengers": 2, "fare": "saver"}
    out |= {"departs_at": "2026-09-12T08:40:00", "from_station": "Brindle", "to_station": "Holmey"}
    phrases = book.tools["upgrade_trip"]
    for template in (*phrases.done, *phrases.brief, *phrases.detailed):
        said = {
            way: Wording(book, ()).results([template], out, {"pay_with": way}, random.Random(0)) or ""
            for way in ("points", "card")
        }
        assert "600" in said["points"] and "points" not in said["card"] and "All 2" not in said["points"], said


def test_a_return_that_has_come_says_where_the_money_is() -> None:
    row = {"return_id": "R1", "order_id": "W1", "product_name": "Bike", "status": "received", "refund_amount": 99.0}
    book = load_phrasebook(get_phrases_path(ENVIRONMENTS.get("retail")))
    questions = [question for question in book.tools["list_returns"].questions if "$.result[*].status" in question.asks]
    assert questions
    for template in (text for question in questions for text in question.answer):
        said = Wording(book, ()).results([template], {"result": [row]}, {}, random.Random(0))
        assert said is not None and "99.00" in said, said


@pytest.mark.parametrize("resolved_at", [None, "2026-04-02T09:00:00"])
def test_only_an_open_ticket_is_overdue(resolved_at: str | None) -> None:
    book = load_phrasebook(get_phrases_path(ENVIRONMENTS.get("helpdesk")))
    out = {"title": "Dead laptop", "team": "Service Desk", "due_at": "2026-04-01T12:00:00", "resolved_at": resolved_at}
    templates = [
        template
        for question in book.tools["get_ticket"].questions
        if question.asks == ("$.team", "$.due_at")
        for template in question.answer
    ]
    assert len(templates) >= 3
    for template in templates:
        said = render_phrase(template, {"out": out, "arg": {}, "row_templates": {}, "now": "2026-05-01"}) or ""
        assert "Service Desk" in said and "1 April" in said
        assert ("overdue" in said) is (resolved_at is None), said
        assert ("is on it" not in said and "resolved" in said and "2 April" in said) or resolved_at is None, said


def test_a_room_that_is_warm_is_not_said_to_become_so() -> None:
    out = {"room_name": "kitchen", "temperature": 21.0, "target_temperature": 20.0, "window_open": False}
    said = [text or "" for text in say_all("smart_home", "set_temperature", out)]
    assert len(said) > 10 and not any("before long" in text for text in said), said


def test_a_report_of_the_locks_answers_no_yes_or_no() -> None:
    locks = [{**LOCK, "lock_id": "K1", "door_open": False}, {**LOCK, "lock_id": "K2", "status": "locked"}]
    said = [text or "" for text in say_all("smart_home", "list_locks", {"result": locks})]
    assert not any(text.startswith("Not quite") for text in said), said


def test_short_and_long_reports_differ() -> None:
    """A list without its key slides into the one before it, where the voices do not look for it."""
    for environment in ENVIRONMENTS.names():
        for tool, phrases in load_phrasebook(get_phrases_path(ENVIRONMENTS.get(environment))).tools.items():
            assert bool(phrases.done) == bool(phrases.brief) == bool(phrases.detailed), (environment, tool)


def test_no_sentence_of_a_tool_is_written_twice_in_a_list() -> None:
    for environment in ENVIRONMENTS.names():
        for tool, phrases in load_phrasebook(get_phrases_path(ENVIRONMENTS.get(environment))).tools.items():
            lists = [phrases.ask, phrases.say, phrases.narrate, phrases.confirm, phrases.done, phrases.brief]
            lists += [phrases.detailed, *(question.answer for question in phrases.questions)]
            for sentences in lists:
                assert len(set(sentences)) == len(sentences), (environment, tool, sentences)
                assert not any(_EMPTY.search(text) for text in sentences), (environment, tool)


REVERSED = re.compile(r"\b(?:shut|closed|over|on paper|paper bills|changed?|more than)\b")
"""Words of a question to which the answer's yes would mean no, unless it has both ("open or shut")."""


@pytest.mark.parametrize("environment", ENVIRONMENTS.names())
def test_a_yes_means_what_the_question_asks(environment: str) -> None:
    """ "Is the window shut?" - "No, they're all shut." """
    path = get_phrases_path(ENVIRONMENTS.get(environment))
    steps = [step for story in load_scenarios(path.with_name("scenarios.yaml")).scenarios for step in story.steps]
    questions = [question for tool in load_phrasebook(path).tools.values() for question in tool.questions]
    questions += [step.question for step in steps if step.question is not None]
    wrong = [
        text
        for question in questions
        if any(re.search(r"\b(?:Yes|No),", answer) for answer in question.answer)
        for text in (*question.ask, *question.say)
        if REVERSED.search(text) and " or " not in text
    ]
    assert not wrong


def test_a_code_that_has_expired_is_none_that_somebody_has() -> None:
    rows = [
        {"member_name": "Ida Lund", "status": "active", "valid_until": None},
        {"member_name": "Tom Reed", "status": "expired", "valid_until": "2026-01-03"},
    ]
    phrases = load_phrasebook(get_phrases_path(ENVIRONMENTS.get("smart_home"))).tools["list_access_codes"]
    values = {"out": {"result": rows}, "user_name": "Ida Lund", "row_templates": {}}
    said = [render_phrase(text, values) or "" for text in (*phrases.done, *phrases.brief, *phrases.detailed)]
    assert len(said) >= 4
    assert all("The code of Tom Reed has expired" in text and "2 people" not in text for text in said), said


@pytest.mark.parametrize(
    ("tool", "kind"),
    [
        ("toggle_airplane_mode", "request"),
        ("run_speed_test", "request"),
        ("read_sim_serial", "request"),
        ("activate_sim", "confirm"),
        ("activate_sim", "done"),
        ("change_plan", "confirm"),
        ("extend_due_date", "confirm"),
        ("book_add_on", "done"),
    ],
)
def test_what_is_said_at_length_and_often_begins_in_many_ways(tool: str, kind: str) -> None:
    """A third of 50 dialogues of mobile care have one of these: each way that comes twice costs its whole length."""
    texts = getattr(load_phrasebook(get_phrases_path(ENVIRONMENTS.get("mobile_care"))).tools[tool], kind)
    assert len({tuple(text.split()[:3]) for text in texts}) >= 11


def test_rows_of_a_list_are_told_in_many_forms() -> None:
    book = load_phrasebook(get_phrases_path(ENVIRONMENTS.get("mobile_care")))
    add_on = {"name": "World Week", "price": 19.0, "data_gb": 6, "days": 7}
    plan = {"name": "Summit", "monthly_price": 24.0, "data_gb": 80, "term_months": 12, "roaming_included": True}
    for entity, row, needed in (
        ("add_on_id", add_on, ("World Week", "£19.00", "6 GB", "7")),
        ("plan_id", plan, ("Summit", "£24.00", "80 GB", "roaming")),
    ):
        said = [render_phrase(template, dict(row)) or "" for template in book.entities[entity].row]
        assert len(said) >= 9
        assert not [text for text in said if any(value not in text for value in needed)]


def test_a_router_hangs_and_hangs_up_on_nobody() -> None:
    for tool in ("read_router_light", "restart_router"):
        stuck = {**LIGHT, "status_light": "blinking_amber"}
        assert not [said for said in say_all("mobile_care", tool, stuck) if said and "hung up" in said]


def test_what_is_left_in_an_account_is_its_balance() -> None:
    """The overdraft is not the user's own money: it is told beside the balance, if at all."""
    path = get_phrases_path(ENVIRONMENTS.get("bank")).with_name("scenarios.yaml")
    questions = [step.question for story in load_scenarios(path).scenarios for step in story.steps if step.question]
    asked = [
        each for each in questions if any("leave me in {row}" in say or "left in {row}" in say for say in each.say)
    ]
    assert len(asked) >= 3
    row = {"name": "Joint Account", "kind": "current", "balance": 3528.75, "available": 4028.75}
    for question in asked:
        assert question.asks == ("balance",), question.say
        for template in question.answer:
            said = render_phrase(template, {"row": row, "now": "2026-05-01"}) or ""
            assert "£3,528.75" in said and said != "£3,528.75.", said


def test_savings_are_told_with_their_target() -> None:
    goals = {"result": [{"goal_id": "G1", "title": "Bike", "saved": 300.0, "target": 1200.0}]}
    for said in say_all("bank", "list_savings_goals", goals):
        assert said is not None
        assert "£300.00" in said and ("£1,200.00" in said or "£900.00" in said), said


def test_a_window_that_is_known_to_be_open_is_not_told_again() -> None:
    out = {
        "room_name": "kitchen",
        "temperature": 19.0,
        "target_temperature": 17.0,
        "window_open": True,
        "heating": "on",
    }
    assert not any("window" in (said or "") for said in say_all("smart_home", "set_temperature", out))


def test_a_new_channel_is_not_praised() -> None:
    out = {"router_model": "Lantern", "wifi_name": "Willow-12", "wifi_channel": 6, "sent_at": "2026-01-26T17:35:00"}
    said = [text or "" for text in say_all("mobile_care", "resend_router_settings", out)]
    assert said and not any(word in text for text in said for word in ("clear", "quiet", "busy", "less")), said
