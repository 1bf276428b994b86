"""What the tools of the calendar return, put together from the state."""

from datetime import date, datetime, time, timedelta

from trajsmith.environments.library.calendar.state import Answer, CalendarState, Contact, Event, Invitation, Priority
from trajsmith.environments.native import StateModel


class ContactRow(StateModel):
    contact_id: str
    full_name: str
    email: str
    phone: str
    company: str | None
    group_name: str | None


class EventRow(StateModel):
    event_id: str
    title: str
    starts_at: datetime
    ends_at: datetime
    calendar_name: str
    organiser: str


class GuestRow(StateModel):
    full_name: str
    answer: Answer


class EventDetails(StateModel):
    event_id: str
    title: str
    starts_at: datetime
    ends_at: datetime
    calendar_name: str
    organiser: str
    guests: list[GuestRow]
    room_name: str | None
    reminders: list[int]
    """Minutes before the start."""


class InvitationRow(StateModel):
    invitation_id: str
    subject: str
    invited_by: str
    starts_at: datetime
    ends_at: datetime
    answer: Answer


class TaskRow(StateModel):
    task_id: str
    task: str
    due_on: date
    priority: Priority
    overdue: bool


class FreeTime(StateModel):
    starts_at: datetime
    ends_at: datetime


class CancelledEvent(StateModel):
    title: str
    starts_at: datetime
    guests_told: list[str]


def contact_row(state: CalendarState, contact: Contact) -> ContactRow:
    return ContactRow(
        contact_id=contact.contact_id,
        full_name=contact.full_name,
        email=contact.email,
        phone=contact.phone,
        company=contact.company,
        group_name=state.groups[contact.group_id].group_name if contact.group_id else None,
    )


def event_row(state: CalendarState, event: Event) -> EventRow:
    return EventRow(
        event_id=event.event_id,
        title=event.title,
        starts_at=event.starts_at,
        ends_at=event.ends_at,
        calendar_name=state.calendars[event.calendar_id].calendar_name,
        organiser=get_organiser(state, event),
    )


def get_organiser(state: CalendarState, event: Event) -> str:
    return state.contacts[event.organiser_id].full_name if event.organiser_id else state.owner.name


def event_details(state: CalendarState, event: Event) -> EventDetails:
    return EventDetails(
        event_id=event.event_id,
        title=event.title,
        starts_at=event.starts_at,
        ends_at=event.ends_at,
        calendar_name=state.calendars[event.calendar_id].calendar_name,
        organiser=get_organiser(state, event),
        guests=[
            GuestRow(full_name=state.contacts[guest.contact_id].full_name, answer=guest.answer)
            for guest in state.guests_of(event.event_id)
        ],
        room_name=state.rooms[event.room_id].room_name if event.room_id else None,
        reminders=sorted(r.minutes_before for r in state.reminders.values() if r.event_id == event.event_id),
    )


def invitation_row(state: CalendarState, invitation: Invitation) -> InvitationRow:
    return InvitationRow(
        invitation_id=invitation.invitation_id,
        subject=invitation.subject,
        invited_by=state.contacts[invitation.contact_id].full_name,
        starts_at=invitation.starts_at,
        ends_at=invitation.ends_at,
        answer=invitation.answer,
    )


def free_spans(state: CalendarState, day: date, minutes: int) -> list[FreeTime]:
    """Spans of the working day, or of the whole waking day at weekends, that are free for long enough."""
    weekend = day.weekday() >= 5
    opens = time(9) if weekend else state.owner.works_from
    closes = time(21) if weekend else state.owner.works_until
    cursor, end = max(datetime.combine(day, opens), state.now), datetime.combine(day, closes)
    spans = []
    busy = [
        (event.starts_at, event.ends_at)
        for event in state.events.values()
        if event.starts_at.date() == day and state.calendars[event.calendar_id].kind != "subscribed"
    ]
    for starts_at, ends_at in [*sorted(busy), (end, end)]:
        until = min(starts_at, end)
        if until - cursor >= timedelta(minutes=minutes):
            spans.append(FreeTime(starts_at=cursor, ends_at=until))
        cursor = max(cursor, ends_at)
    return spans
