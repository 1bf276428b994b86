"""What the calendar of one person knows: contacts, groups, calendars, events, guests, invitations, tasks, rooms."""

from datetime import date, datetime, time
from typing import Literal

from trajsmith.environments.native import EnvironmentState, StateModel

CalendarKind = Literal["work", "private", "subscribed"]
Answer = Literal["waiting", "accepted", "declined", "tentative"]
Priority = Literal["low", "normal", "high"]


class Owner(StateModel):
    name: str
    email: str
    works_from: time
    works_until: time


class Contact(StateModel):
    contact_id: str
    full_name: str
    email: str
    phone: str
    company: str | None
    group_id: str | None


class Group(StateModel):
    group_id: str
    group_name: str


class Calendar(StateModel):
    """Work calendars keep to working hours; subscribed ones can only be read."""

    calendar_id: str
    calendar_name: str
    kind: CalendarKind


class Event(StateModel):
    event_id: str
    calendar_id: str
    title: str
    starts_at: datetime
    ends_at: datetime
    organiser_id: str | None
    """Contact who organises it; None for the owner."""
    room_id: str | None


class Guest(StateModel):
    """A contact whom the owner has invited to an event."""

    guest_id: str
    event_id: str
    contact_id: str
    answer: Answer


class Invitation(StateModel):
    """An event to which a contact has invited the owner."""

    invitation_id: str
    contact_id: str
    subject: str
    starts_at: datetime
    ends_at: datetime
    received_at: datetime
    answer: Answer
    event_id: str | None
    """Entry in the owner's calendar, once accepted."""


class Reminder(StateModel):
    reminder_id: str
    event_id: str
    minutes_before: int


class Task(StateModel):
    task_id: str
    task: str
    due_on: date
    priority: Priority
    done: bool


class Room(StateModel):
    room_id: str
    room_name: str
    floor: int
    seats: int
    has_screen: bool


class CalendarState(EnvironmentState):
    owner: Owner
    contacts: dict[str, Contact] = {}
    groups: dict[str, Group] = {}
    calendars: dict[str, Calendar] = {}
    events: dict[str, Event] = {}
    guests: dict[str, Guest] = {}
    invitations: dict[str, Invitation] = {}
    reminders: dict[str, Reminder] = {}
    tasks: dict[str, Task] = {}
    rooms: dict[str, Room] = {}

    def clash(self, starts_at: datetime, ends_at: datetime, but: str | None = None) -> Event | None:
        """An event of the owner that overlaps a span of time; subscribed calendars do not count."""
        for event in self.events.values():
            overlaps = event.starts_at < ends_at and starts_at < event.ends_at and event.event_id != but
            if overlaps and self.calendars[event.calendar_id].kind != "subscribed":
                return event
        return None

    def guests_of(self, event_id: str) -> list[Guest]:
        return [guest for guest in self.guests.values() if guest.event_id == event_id]

    def is_room_free(self, room: Room, event: Event) -> bool:
        """Return whether no other event is in the room while this one lasts."""
        return not any(
            other.room_id == room.room_id
            and other.event_id != event.event_id
            and other.starts_at < event.ends_at
            and event.starts_at < other.ends_at
            for other in self.events.values()
        )
