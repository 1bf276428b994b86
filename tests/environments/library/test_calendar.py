"""The calendar: every rule of its policy binds, and a meeting can be planned, filled and moved."""

from datetime import date, datetime, time, timedelta

import pytest

from trajsmith.environments.library import get_phrases_path
from trajsmith.environments.library.calendar import Calendar
from trajsmith.environments.library.calendar.state import Event
from trajsmith.phrasing import ScenarioBook, load_scenarios

MINUTE, DAY = timedelta(minutes=1), timedelta(days=1)


@pytest.fixture
def planner() -> Calendar:
    """A calendar without events; the owner works from 9 to 17 o'clock."""
    planner = Calendar(Calendar.seed_state("small", 1))
    for table in (planner.state.events, planner.state.guests, planner.state.reminders, planner.state.invitations):
        table.clear()
    planner.state.owner.works_from, planner.state.owner.works_until = time(9), time(17)
    return planner


def named(planner: Calendar, kind: str) -> str:
    return next(c.calendar_name for c in planner.state.calendars.values() if c.kind == kind)


def monday(planner: Calendar) -> date:
    today = planner.state.now.date()
    return today + (7 - today.weekday()) * DAY


def given(planner: Calendar, kind: str = "work", start: str = "10:00", **more: object) -> dict[str, object]:
    base = {"title": "Handover", "day": str(monday(planner)), "start_time": start, "minutes": 60}
    return {**base, "calendar_name": named(planner, kind), **more}


def create(planner: Calendar, kind: str = "work", start: str = "10:00", **more: object) -> Event:
    result = planner.call("create_event", given(planner, kind, start, **more))
    assert result.ok, result.content
    return planner.state.events[result.content["event_id"]]


def reason(planner: Calendar, tool: str, **arguments: object) -> str:
    before = planner.dump()
    result = planner.call(tool, arguments)
    assert result.error == "refused"
    assert planner.dump() == before
    return str(result.content["error"])


def test_events_start_in_the_future_and_do_not_overlap(planner: Calendar) -> None:
    yesterday = str(planner.state.now.date() - DAY)
    assert "in the future" in reason(planner, "create_event", **given(planner, "private", day=yesterday))
    event = create(planner)
    assert 'you already have "Handover" then' in reason(planner, "create_event", **given(planner, "private", "10:30"))
    other = create(planner, "private", "11:00")
    move = {"event_id": other.event_id, "day": str(monday(planner)), "start_time": "10:15"}
    assert 'you already have "Handover" then' in reason(planner, "move_event", **move)
    assert planner.call("move_event", {**move, "event_id": event.event_id, "start_time": "09:30"}).ok


def test_work_events_keep_to_working_hours(planner: Calendar) -> None:
    assert "working hours" in reason(planner, "create_event", **given(planner, start="16:30"))
    saturday = str(monday(planner) + 5 * DAY)
    assert "working hours" in reason(planner, "create_event", **given(planner, day=saturday))
    assert create(planner, "private", "16:30", day=saturday).title == "Handover"
    assert create(planner, start="16:00").starts_at.hour == 16


def test_subscribed_past_and_foreign_events_stay(planner: Calendar) -> None:
    assert "can only be read" in reason(planner, "create_event", **given(planner, "subscribed"))
    event = create(planner)
    event.organiser_id = next(iter(planner.state.contacts))
    assert "the organiser is" in reason(planner, "cancel_event", event_id=event.event_id)
    event = planner.state.events[event.event_id]
    event.organiser_id = None
    planner.state.now, before = event.starts_at + MINUTE, planner.state.now
    assert "already started" in reason(planner, "cancel_event", event_id=event.event_id)
    planner.state.now = before
    assert planner.call("cancel_event", {"event_id": event.event_id}).content["guests_told"] == []


def test_guests_are_limited_by_number_and_room(planner: Calendar) -> None:
    event, contacts = create(planner), list(planner.state.contacts)
    for contact_id in contacts[:6]:
        assert planner.call("invite_contact", {"event_id": event.event_id, "contact_id": contact_id}).ok
    assert "already invited" in reason(planner, "invite_contact", event_id=event.event_id, contact_id=contacts[0])
    assert "at most 6 guests" in reason(planner, "invite_contact", event_id=event.event_id, contact_id=contacts[6])
    small = create(planner, start="13:00")
    room = next(iter(planner.state.rooms.values()))
    room.seats, small.room_id = 2, room.room_id
    assert planner.call("invite_contact", {"event_id": small.event_id, "contact_id": contacts[0]}).ok
    assert "only 2 seats" in reason(planner, "invite_contact", event_id=small.event_id, contact_id=contacts[1])


def test_invitations_need_free_time_and_an_early_answer(planner: Calendar) -> None:
    fresh = Calendar.seed_state("small", 1).invitations
    first, second = list(fresh.values())[:2]
    first.starts_at = second.starts_at = datetime.combine(monday(planner), time(18))
    first.ends_at = second.ends_at = first.starts_at + 60 * MINUTE
    planner.state.invitations.update({first.invitation_id: first, second.invitation_id: second})
    assert planner.call("answer_invitation", {"invitation_id": first.invitation_id, "reply": "accept"}).ok
    assert any(event.title == first.subject for event in planner.state.events.values())
    assert "then, from" in reason(planner, "answer_invitation", invitation_id=second.invitation_id, reply="accept")
    assert "already accepted" in reason(planner, "answer_invitation", invitation_id=first.invitation_id, reply="maybe")
    before, planner.state.now = planner.state.now, first.starts_at + MINUTE
    late = reason(planner, "answer_invitation", invitation_id=second.invitation_id, reply="decline")
    assert "no longer be answered" in late
    planner.state.now = before
    assert planner.call("answer_invitation", {"invitation_id": second.invitation_id, "reply": "decline"}).ok


def test_reminders_differ_are_few_and_lie_ahead(planner: Calendar) -> None:
    event_id = create(planner).event_id
    for minutes in (5, 15, 30):
        assert planner.call("set_reminder", {"event_id": event_id, "minutes_before": minutes}).ok
    assert "already a reminder 15" in reason(planner, "set_reminder", event_id=event_id, minutes_before=15)
    assert "at most 3 reminders" in reason(planner, "set_reminder", event_id=event_id, minutes_before=60)
    other = create(planner, start="14:00").event_id
    planner.state.now = planner.state.events[other].starts_at - 20 * MINUTE
    assert "already passed" in reason(planner, "set_reminder", event_id=other, minutes_before=30)
    assert planner.call("set_reminder", {"event_id": other, "minutes_before": 10}).ok


def test_rooms_are_for_short_work_events_of_the_next_weeks(planner: Calendar) -> None:
    private = create(planner, "private", "18:00").event_id
    assert "work calendar only" in reason(planner, "book_room", event_id=private, seats=2)
    long = create(planner, start="09:00", minutes=200).event_id
    assert "at most 3 hours" in reason(planner, "book_room", event_id=long, seats=2)
    later = create(planner, day=str(monday(planner) + 42 * DAY)).event_id
    assert "at most 30 days ahead" in reason(planner, "book_room", event_id=later, seats=2)
    event = create(planner, start="13:00").event_id
    booked = planner.call("book_room", {"event_id": event, "seats": 2})
    seats = {room.room_name: room.seats for room in planner.state.rooms.values()}
    assert seats[booked.content["room_name"]] == min(seats.values())
    assert "already has the" in reason(planner, "book_room", event_id=event, seats=2)


def test_a_room_is_given_to_one_event_at_a_time(planner: Calendar) -> None:
    event, other = create(planner), create(planner, start="13:00")
    planner.state.rooms = dict(list(planner.state.rooms.items())[:1])
    assert planner.call("book_room", {"event_id": event.event_id, "seats": 2}).ok
    assert planner.call("book_room", {"event_id": other.event_id, "seats": 2}).ok
    taken = create(planner, start="15:00")
    planner.state.events[event.event_id].starts_at = taken.starts_at
    planner.state.events[event.event_id].ends_at = taken.ends_at
    assert "is free at that time" in reason(planner, "book_room", event_id=taken.event_id, seats=2)


def test_tasks_are_not_due_in_the_past_and_not_too_many(planner: Calendar) -> None:
    today = planner.state.now.date()
    task = {"task": "Draft the agenda", "due_date": str(today)}
    assert "has passed" in reason(planner, "add_task", **{**task, "due_date": str(today - DAY)})
    open_tasks = sum(not task.done for task in planner.state.tasks.values())
    for _ in range(15 - open_tasks):
        assert planner.call("add_task", task).ok
    assert "already 15 open tasks" in reason(planner, "add_task", **task)
    first = planner.call("list_tasks", {}).content["result"][0]
    assert planner.call("complete_task", {"task_id": first["task_id"]}).content["done"] is True
    assert "already done" in reason(planner, "complete_task", task_id=first["task_id"])
    assert planner.call("add_task", task).ok


def test_a_meeting_from_free_time_to_another_day(planner: Calendar) -> None:
    day = monday(planner)
    free = planner.call("find_free_time", {"day": str(day), "minutes": 60}).content["result"]
    assert free == [{"starts_at": f"{day}T09:00:00", "ends_at": f"{day}T17:00:00"}]
    event_id = create(planner, start="09:00").event_id
    contact = next(iter(planner.state.contacts.values()))
    found = planner.call("find_contact", {"full_name": contact.full_name}).content["result"]
    assert planner.call("invite_contact", {"event_id": event_id, "contact_id": found[0]["contact_id"]}).ok
    room = planner.call("book_room", {"event_id": event_id, "seats": 2}).content["room_name"]
    move = {"event_id": event_id, "day": str(day + DAY), "start_time": "11:30"}
    assert planner.call("move_event", move).content["ends_at"] == f"{day + DAY}T12:30:00"
    details = planner.call("get_event", {"event_id": event_id}).content
    assert details["guests"] == [{"full_name": contact.full_name, "answer": "waiting"}]
    assert (details["room_name"], details["organiser"]) == (room, planner.state.owner.name)
    listed = planner.call("list_events", {"from_day": str(day)}).content["result"]
    assert [row["event_id"] for row in listed] == [event_id]


@pytest.mark.parametrize("size", ["small", "medium"])
def test_seed_states_keep_the_rules(size: str) -> None:
    for seed in range(1, 6):
        state = Calendar.seed_state(size, seed)
        for event in state.events.values():
            calendar = state.calendars[event.calendar_id]
            if calendar.kind != "subscribed":
                assert state.clash(event.starts_at, event.ends_at, event.event_id) is None, "double booking"
            if calendar.kind == "work":
                assert state.owner.works_from <= event.starts_at.time()
                assert event.ends_at.time() <= state.owner.works_until
            if event.room_id:
                room = state.rooms[event.room_id]
                assert state.is_room_free(room, event) and len(state.guests_of(event.event_id)) < room.seats
        assert sum(not task.done for task in state.tasks.values()) <= 15
        assert all(invitation.received_at < state.now for invitation in state.invitations.values())


def test_events_are_listed_from_today_if_no_day_is_given(planner: Calendar) -> None:
    today = planner.state.now.date()
    assert planner.call("list_events", {}).content == planner.call("list_events", {"from_day": str(today)}).content
    soon = [event for event in planner.state.events.values() if 0 <= (event.starts_at.date() - today).days < 7]
    assert len(planner.call("list_events", {}).content["result"]) == min(len(soon), 10)


@pytest.fixture
def stories() -> ScenarioBook:
    return load_scenarios(get_phrases_path(Calendar).with_name("scenarios.yaml"))


def test_what_is_put_off_moves_to_a_later_day(stories: ScenarioBook) -> None:
    put_off = [
        step
        for story in stories.scenarios
        for step in story.steps
        if step.tool == "move_event" and any("put off" in text or " wait" in text for text in step.texts)
    ]
    assert put_off
    assert [step.later_than.get("day") for step in put_off] == ["list_events.starts_at"] * len(put_off)


def test_a_request_for_many_events_says_which_days(stories: ScenarioBook) -> None:
    asks = [text for batch in stories.batches if batch.list == "list_events" for text in batch.ask]
    assert asks
    assert [text for text in asks if "seven days" not in text] == []
