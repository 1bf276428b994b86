"""Generator of the calendar's initial states."""

import random
from datetime import date, datetime, time, timedelta
from typing import NamedTuple

from trajsmith.environments.library import _people
from trajsmith.environments.library.calendar.state import (
    Answer,
    Calendar,
    CalendarKind,
    CalendarState,
    Contact,
    Event,
    Group,
    Guest,
    Invitation,
    Owner,
    Priority,
    Reminder,
    Room,
    Task,
)
from trajsmith.records import derive_seed


class Size(NamedTuple):
    contacts: int
    groups: int
    days_back: int
    days_ahead: int
    share: float
    """Part of the slots of a day that hold an event."""
    invitations: int
    tasks: int
    rooms: int


SIZES = {
    "small": Size(12, 3, 4, 22, 0.2, 5, 7, 4),
    "medium": Size(42, 5, 50, 60, 0.26, 10, 22, 7),
    "large": Size(400, 8, 600, 150, 0.45, 30, 160, 12),
}
GROUPS = (
    "Book club",
    "Project Juniper",
    "Choir",
    "Neighbours",
    "Sales team",
    "Football parents",
    "Design team",
    "Cousins",
)
COMPANIES = ("Larkspur Studio", "Tidal Data", "Fern & Finch", "Orbit Freight", "Kestrel Legal", "Maple Foods")
PRIVATE_NAMES = ("Family", "Personal", "Home", "Free time")
WORK_NAMES = ("Work", "Office", "Projects")
SUBSCRIBED = {
    "School holidays": ("Autumn fair at school", "Parents' evening", "Sports day", "School concert"),
    "Town events": ("Farmers' market", "Street festival", "Open air theatre", "Library sale"),
    "Club fixtures": ("Home match", "Away match", "Club training camp", "Annual general meeting"),
}
WORK_TITLES = (
    "Budget review",
    "Planning meeting",
    "Client call",
    "Status update",
    "Design workshop",
    "Interview",
    "Team retro",
    "Contract review",
    "Product demo",
    "Training session",
    "Roadmap discussion",
    "Supplier meeting",
)
WITH_CONTACT = ("One-to-one with {}", "Coffee with {}", "Call with {}", "Handover with {}")
ERRANDS = ("Dentist appointment", "Haircut", "Car service", "Eye test", "Vet appointment", "Parcel delivery")
EVENINGS = (
    "Swim training",
    "Yoga class",
    "Piano lesson",
    "Pottery course",
    "Cinema evening",
    "Birthday dinner",
    "Language class",
    "Dance class",
)
WEEKENDS = ("Bike ride", "Garden day", "Climbing trip", "Trip to the lake", "Visit from the family", "Car boot sale")
INVITED_TO = {
    "work": ("Strategy day", "Kick-off meeting", "Press briefing", "Feedback round", "Safety briefing", "Site visit"),
    "evening": ("Housewarming party", "Quiz night", "Board game evening", "Farewell drinks", "Barbecue", "Film night"),
    "weekend": ("Garden lunch", "Museum visit", "Forest walk", "Picnic", "Christening", "Boat trip"),
}
TASKS = (
    "Renew the passport",
    "Book train tickets",
    "Send the invoice",
    "Water the office plants",
    "Buy a birthday card",
    "Read the contract",
    "Call the plumber",
    "Return the library books",
    "Prepare the slides",
    "Pay the electricity bill",
    "Order printer paper",
    "Write the minutes",
    "Fix the garden gate",
    "Update the address list",
)
EXAMPLE_TITLES = (
    "Flute practice",
    "Picnic by the lake",
    "Quarterly review",
    "Guitar practice",
    "Visit to the spa",
    "Handover meeting",
    "Run with friends",
    "Photo shoot",
)
EXAMPLE_TASKS = (
    "Book a table for Friday",
    "Send the photos to Grandma",
    "Renew the parking permit",
    "Draft the agenda",
    "Pick up the dry cleaning",
    "Cancel the magazine",
    "Ask for a quote",
)
ROOMS = (
    "Birch",
    "Maple",
    "Atrium",
    "Harbour",
    "Library",
    "Lantern",
    "Attic",
    "Orchard",
    "Bridge",
    "Cedar",
    "Loft",
    "Dune",
)
WORK_SLOTS = ((9, 0), (10, 30), (13, 30), (15, 30))
EVENING_SLOTS = ((18, 0), (20, 0))
WEEKEND_SLOTS = ((10, 0), (14, 0), (17, 0))


def make_state(size: str, seed: int) -> CalendarState:
    """A calendar of the given size; the same seed gives the same calendar."""
    plan = SIZES[size]
    rng = random.Random(derive_seed("calendar", size, seed))
    now = datetime(2026, rng.randrange(1, 13), rng.randrange(1, 28), rng.randrange(8, 17), rng.choice((0, 5, 20, 40)))
    owner, *others = _people.people(rng, plan.contacts + 1)
    state = CalendarState(
        now=now,
        seed=seed,
        owner=Owner(
            name=owner.name,
            email=owner.email,
            works_from=time(rng.choice((8, 8, 9))),
            works_until=time(rng.choice((17, 18)), rng.choice((0, 30))),
        ),
    )
    _add_contacts(state, rng, others, plan.groups)
    _add_calendars(state, rng)
    for name in rng.sample(ROOMS, plan.rooms):
        room_id = _id(state, "room", "R{}", 20)
        seats = rng.choice((4, 6, 8)) if len(state.rooms) else 12
        state.rooms[room_id] = Room(
            room_id=room_id, room_name=name, floor=rng.randrange(0, 5), seats=seats, has_screen=rng.random() < 0.6
        )
    for offset in range(-plan.days_back, plan.days_ahead + 1):
        _add_day(state, rng, now.date() + timedelta(days=offset), plan.share)
    _add_invitations(state, rng, plan.invitations)
    _add_tasks(state, rng, plan.tasks)
    return state


def _id(state: CalendarState, kind: str, pattern: str, start: int) -> str:
    number = state.counters[kind] = state.counters.get(kind, start) + 1
    return pattern.format(number)


def _add_contacts(state: CalendarState, rng: random.Random, others: list[_people.Person], groups: int) -> None:
    for name in rng.sample(GROUPS, groups):
        group_id = _id(state, "group", "G{}", 0)
        state.groups[group_id] = Group(group_id=group_id, group_name=name)
    members = list(state.groups) * 4
    rng.shuffle(members)
    for person in others:
        contact_id = _id(state, "contact", "P{}", 100)
        state.contacts[contact_id] = Contact(
            contact_id=contact_id,
            full_name=person.name,
            email=person.email,
            phone=person.phone,
            company=rng.choice(COMPANIES) if rng.random() < 0.6 else None,
            group_id=members.pop() if members and rng.random() < 0.8 else None,
        )


def _add_calendars(state: CalendarState, rng: random.Random) -> None:
    kinds: tuple[tuple[CalendarKind, str], ...] = (
        ("work", rng.choice(WORK_NAMES)),
        *(("private", name) for name in rng.sample(PRIVATE_NAMES, 2)),
        ("subscribed", rng.choice(list(SUBSCRIBED))),
    )
    for kind, name in kinds:
        calendar_id = _id(state, "calendar", "CAL{}", 0)
        state.calendars[calendar_id] = Calendar(calendar_id=calendar_id, calendar_name=name, kind=kind)


def _add_day(state: CalendarState, rng: random.Random, day: date, share: float) -> None:
    """Events of one day, in slots that never overlap."""
    weekend = day.weekday() >= 5
    work, *private, subscribed = state.calendars.values()
    for slot in WEEKEND_SLOTS if weekend else WORK_SLOTS + EVENING_SLOTS:
        if rng.random() >= share:
            continue
        starts_at = datetime.combine(day, time(*slot))
        if day == state.now.date() and starts_at <= state.now:
            continue  # lists of what is coming begin today
        kind = _part_of_day(starts_at)
        if kind == "work" and rng.random() < 0.85:
            _add_work_event(state, rng, work, starts_at)
            continue
        title = _fresh(state, rng, {"work": ERRANDS, "evening": EVENINGS, "weekend": WEEKENDS}[kind])
        _add_event(state, rng, rng.choice(private), title, starts_at, rng.choice((45, 60, 90)))
    public = datetime.combine(day, time(11))
    if rng.random() < 0.08 and (day != state.now.date() or public > state.now):
        _add_event(state, rng, subscribed, rng.choice(SUBSCRIBED[subscribed.calendar_name]), public, 120)


def _part_of_day(moment: datetime) -> str:
    if moment.weekday() >= 5:
        return "weekend"
    return "evening" if (moment.hour, moment.minute) in EVENING_SLOTS else "work"


def _fresh(state: CalendarState, rng: random.Random, titles: tuple[str, ...]) -> str:
    """A title that none of the last events has."""
    recent = {event.title for event in list(state.events.values())[-4:]}
    return rng.choice([title for title in titles if title not in recent])


def _add_work_event(state: CalendarState, rng: random.Random, work: Calendar, starts_at: datetime) -> None:
    title, minutes = _fresh(state, rng, WORK_TITLES), rng.choice((30, 45, 60, 90))
    contacts = rng.sample(list(state.contacts), rng.choice((0, 0, 1, 1, 2)))
    if len(contacts) == 1 and rng.random() < 0.6:
        title = rng.choice(WITH_CONTACT).format(state.contacts[contacts[0]].full_name)
    event = _add_event(state, rng, work, title, starts_at, minutes)
    if len(contacts) == 1 and rng.random() < 0.25:
        event.organiser_id = contacts[0]
        return
    for contact_id in contacts:
        _add_guest(state, rng, event, contact_id)
    room = rng.choice(list(state.rooms.values()))
    if rng.random() < 0.25 and state.is_room_free(room, event):
        event.room_id = room.room_id


def _add_event(
    state: CalendarState, rng: random.Random, calendar: Calendar, title: str, starts_at: datetime, minutes: int
) -> Event:
    event_id = _id(state, "event", "E{}", 1000)
    event = Event(
        event_id=event_id,
        calendar_id=calendar.calendar_id,
        title=title,
        starts_at=starts_at,
        ends_at=starts_at + timedelta(minutes=minutes),
        organiser_id=None,
        room_id=None,
    )
    state.events[event_id] = event
    if starts_at > state.now and calendar.kind != "subscribed" and rng.random() < 0.2:
        reminder_id = _id(state, "reminder", "N{}", 0)
        state.reminders[reminder_id] = Reminder(
            reminder_id=reminder_id, event_id=event_id, minutes_before=rng.choice((20, 90))
        )
    return event


def _add_guest(state: CalendarState, rng: random.Random, event: Event, contact_id: str) -> None:
    guest_id = _id(state, "guest", "U{}", 0)
    answer: Answer = rng.choice(("accepted", "accepted", "waiting", "tentative", "declined"))
    state.guests[guest_id] = Guest(guest_id=guest_id, event_id=event.event_id, contact_id=contact_id, answer=answer)


def _add_invitations(state: CalendarState, rng: random.Random, count: int) -> None:
    """Invitations to the coming weeks; about one of five is in the way of something."""
    for number in range(count):
        day = state.now.date() + timedelta(days=rng.randrange(2, 25))
        slots = WEEKEND_SLOTS if day.weekday() >= 5 else WORK_SLOTS + EVENING_SLOTS
        taken = {invitation.starts_at for invitation in state.invitations.values()}
        starts = [datetime.combine(day, time(*slot)) for slot in slots]
        starts = [start for start in starts if start not in taken] or starts
        free = [start for start in starts if state.clash(start, start + timedelta(minutes=90)) is None]
        starts_at = rng.choice(free if free and rng.random() < 0.8 else starts)
        invitation_id = _id(state, "invitation", "I{}", 0)
        subjects = INVITED_TO[_part_of_day(starts_at)]
        subject = subjects[(number + state.seed) % len(subjects)]
        state.invitations[invitation_id] = Invitation(
            invitation_id=invitation_id,
            contact_id=rng.choice(list(state.contacts)),
            subject=subject,
            starts_at=starts_at,
            ends_at=starts_at + timedelta(minutes=rng.choice((60, 90))),
            received_at=_people.moment_before(rng, state.now, 6),
            answer=rng.choice(("waiting", "waiting", "tentative")),
            event_id=None,
        )


def _add_tasks(state: CalendarState, rng: random.Random, count: int) -> None:
    names = rng.sample(TASKS, min(count, len(TASKS)))
    for number in range(count):
        due = state.now.date() + timedelta(days=rng.randrange(-6, 20))
        name = names[number % len(names)] + (f" (part {number // len(names) + 1})" if number >= len(names) else "")
        priority: Priority = rng.choice(("low", "normal", "normal", "high"))
        task_id = _id(state, "task", "K{}", 0)
        done = number >= 3 and (number >= 12 or rng.random() < 0.3)
        state.tasks[task_id] = Task(task_id=task_id, task=name, due_on=due, priority=priority, done=done)
