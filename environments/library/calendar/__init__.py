"""Personal calendar with contacts, invitations, tasks and meeting rooms."""

from datetime import date, datetime, time, timedelta
from typing import Annotated, Literal

from pydantic import Field

from trajsmith.environments.library.calendar import views
from trajsmith.environments.library.calendar.seeds import EXAMPLE_TASKS, EXAMPLE_TITLES, make_state
from trajsmith.environments.library.calendar.state import Calendar as CalendarEntry
from trajsmith.environments.library.calendar.state import CalendarState, Event, Guest, Priority, Reminder, Task
from trajsmith.environments.native import Environment, tool
from trajsmith.records import ConfirmationRule, ToolError

MAX_GUESTS = 6
MAX_REMINDERS = 3
MAX_OPEN_TASKS = 15
ROOM_DAYS = 30
ROOM_HOURS = 3

Reply = Literal["accept", "decline", "maybe"]
ClockTime = Annotated[
    str,
    Field(
        pattern=r"^([01]\d|2[0-3]):[0-5]\d$",
        examples=["08:30", "09:30", "11:15", "12:00", "14:45", "16:00", "19:15", "17:15"],
    ),
]


class Calendar(Environment[CalendarState]):
    """A person's calendar: events, guests, invitations, reminders, tasks, contacts and meeting rooms."""

    domain = "productivity/calendar"
    policy = """
    # Rules of the calendar

    1. New and moved events start in the future, at most a year ahead, and never overlap another event of the owner.
       Subscribed calendars do not count.
    2. Events of the work calendar lie within the owner's working hours, Monday to Friday.
    3. Subscribed calendars can only be read. Past events stay as they are. Events that somebody else organises cannot
       be changed: not moved or cancelled, and no guests invited.
    4. An event has at most 6 guests, each invited once. With its guests and the owner it must fit into its room.
    5. An invitation is answered before its event starts; it can be accepted only if the time is free. A yes or no
       is final.
    6. An event has at most 3 reminders, at different times, and only in the future.
    7. Meeting rooms are for work events of at most 3 hours within the next 30 days; one room per event.
    8. A task is not due in the past, and at most 15 tasks are open.
    """

    @classmethod
    def seed_state(cls, size: str, seed: int) -> CalendarState:
        return make_state(size, seed)

    @tool(effect="read")
    def list_events(
        self, from_day: date | None = None, days: Annotated[int, Field(ge=1, le=14, examples=[2, 3, 5, 7])] = 7
    ) -> list[views.EventRow]:
        """List the events of some days, in order of time, at most 10.

        Args:
            from_day: First day; today if left out.
            days: Number of days.
        """
        from_day = from_day or self.state.now.date()
        events = [event for event in self.state.events.values() if 0 <= (event.starts_at.date() - from_day).days < days]
        events.sort(key=lambda event: event.starts_at)
        return [views.event_row(self.state, event) for event in events[:10]]

    @tool(effect="read")
    def find_events(self, title: str) -> list[views.EventRow]:
        """Find events by words of their title, coming events first, at most 6.

        Args:
            title: Title or part of it.
        """
        wanted = title.strip().lower()
        events = [event for event in self.state.events.values() if wanted in event.title.lower()]
        events.sort(key=lambda event: (event.starts_at < self.state.now, abs(event.starts_at - self.state.now)))
        return [views.event_row(self.state, event) for event in events[:6]]

    @tool(effect="read")
    def get_event(self, event_id: str) -> views.EventDetails:
        """Show organiser, guests with their answers, room and reminders (in minutes before the start) of an event.

        Args:
            event_id: Event.
        """
        return self._details(event_id)

    @tool(effect="write", confirm="never")
    def create_event(
        self,
        title: Annotated[str, Field(min_length=1, max_length=80, examples=[*EXAMPLE_TITLES])],
        day: date,
        start_time: ClockTime,
        minutes: Annotated[int, Field(ge=15, le=480, examples=[30, 45, 60, 90])],
        calendar_name: str,
    ) -> views.EventRow:
        """Put a new event into one of the owner's calendars.

        Args:
            title: Title of the event.
            day: Day of the event.
            start_time: Start, as hours and minutes on the 24-hour clock.
            minutes: Length in minutes.
            calendar_name: Calendar that it goes into.
        """
        calendar = self._writable(calendar_name)
        starts_at = datetime.combine(day, time.fromisoformat(start_time))
        ends_at = starts_at + timedelta(minutes=minutes)
        self._check_time(calendar, starts_at, ends_at)
        event = self._new_event(calendar, title.strip(), starts_at, ends_at, organiser_id=None)
        return views.event_row(self.state, event)

    @tool(effect="write", confirm="never")
    def move_event(self, event_id: str, day: date, start_time: ClockTime) -> views.EventRow:
        """Move an event to another time; its length stays.

        Args:
            event_id: Event.
            day: New day.
            start_time: New start, as hours and minutes on the 24-hour clock.
        """
        event = self._own_event(event_id)
        starts_at = datetime.combine(day, time.fromisoformat(start_time))
        ends_at = starts_at + (event.ends_at - event.starts_at)
        if starts_at == event.starts_at:
            raise ToolError("the event is already at that time")
        self._check_time(self.state.calendars[event.calendar_id], starts_at, ends_at, but=event_id)
        moved = event.model_copy(update={"starts_at": starts_at, "ends_at": ends_at})
        room = self.state.rooms.get(event.room_id or "")
        if room is not None and not self.state.is_room_free(room, moved):
            raise ToolError(f"the {room.room_name} room is taken at that time")
        if room is not None and starts_at > self.state.now + timedelta(days=ROOM_DAYS):
            raise ToolError(f"the {room.room_name} room can be booked at most {ROOM_DAYS} days ahead")
        self.state.events[event_id] = moved
        return views.event_row(self.state, moved)

    @tool(
        effect="write",
        destructive=True,
        confirm=ConfirmationRule(
            always=True, because="a cancelled event is gone for good and its guests are told at once"
        ),
    )
    def cancel_event(self, event_id: str) -> views.CancelledEvent:
        """Cancel an event that the owner organises; its guests are told and its room becomes free.

        Args:
            event_id: Event.
        """
        event = self._own_event(event_id)
        guests = self.state.guests_of(event_id)
        for guest in guests:
            del self.state.guests[guest.guest_id]
        for reminder in [r for r in self.state.reminders.values() if r.event_id == event_id]:
            del self.state.reminders[reminder.reminder_id]
        del self.state.events[event_id]
        informed = [self.state.contacts[guest.contact_id].full_name for guest in guests if guest.answer != "declined"]
        return views.CancelledEvent(title=event.title, starts_at=event.starts_at, guests_told=informed)

    @tool(effect="read")
    def find_free_time(
        self, day: date, minutes: Annotated[int, Field(ge=15, le=480, examples=[30, 60, 90, 120])] = 30
    ) -> list[views.FreeTime]:
        """Find free time on a day: within working hours, at weekends between 9 and 21 o'clock.

        Args:
            day: Day to look at.
            minutes: Shortest free time that counts, in minutes.
        """
        if day < self.state.now.date():
            raise ToolError(f"{day} has already passed")
        return views.free_spans(self.state, day, minutes)

    @tool(effect="read")
    def find_contact(self, full_name: str) -> list[views.ContactRow]:
        """Find contacts by name, at most 8, with email, phone, company and group.

        Args:
            full_name: Name or part of it.
        """
        wanted = full_name.strip().lower()
        contacts = [contact for contact in self.state.contacts.values() if wanted in contact.full_name.lower()]
        return [views.contact_row(self.state, contact) for contact in contacts[:8]]

    @tool(effect="read")
    def list_group_members(self, group_name: str) -> list[views.ContactRow]:
        """List the contacts of a group, at most 8.

        Args:
            group_name: Name of the group.
        """
        wanted = group_name.strip().lower()
        group = next((g for g in self.state.groups.values() if g.group_name.lower() == wanted), None)
        if group is None:
            names = ", ".join(g.group_name for g in self.state.groups.values())
            raise ToolError(f"no group called {group_name}; there are: {names}")
        members = [contact for contact in self.state.contacts.values() if contact.group_id == group.group_id]
        return [views.contact_row(self.state, contact) for contact in members[:8]]

    @tool(effect="write", confirm="never")
    def invite_contact(self, event_id: str, contact_id: str) -> views.EventDetails:
        """Invite a contact to an event that the owner organises.

        Args:
            event_id: Event.
            contact_id: Contact to invite.
        """
        event = self._own_event(event_id)
        contact = self.lookup(self.state.contacts, contact_id, "contact")
        guests = self.state.guests_of(event_id)
        if any(guest.contact_id == contact_id for guest in guests):
            raise ToolError(f"{contact.full_name} is already invited")
        if len(guests) >= MAX_GUESTS:
            raise ToolError(f"an event has at most {MAX_GUESTS} guests")
        room = self.state.rooms.get(event.room_id or "")
        if room is not None and len(guests) + 2 > room.seats:
            raise ToolError(f"the {room.room_name} room has only {room.seats} seats")
        guest_id = self.new_id("guest", "U{}")
        self.state.guests[guest_id] = Guest(
            guest_id=guest_id, event_id=event_id, contact_id=contact_id, answer="waiting"
        )
        return self._details(event_id)

    @tool(effect="read")
    def list_invitations(self) -> list[views.InvitationRow]:
        """List the invitations that the owner has received to coming events, next first, at most 8."""
        coming = [invitation for invitation in self.state.invitations.values() if invitation.starts_at > self.state.now]
        coming.sort(key=lambda invitation: invitation.starts_at)
        return [views.invitation_row(self.state, invitation) for invitation in coming[:8]]

    @tool(
        effect="write",
        confirm=ConfirmationRule(arguments={"reply": ("accept", "decline")}, because="a yes or a no is final"),
    )
    def answer_invitation(self, invitation_id: str, reply: Reply) -> views.InvitationRow:
        """Answer an invitation; accepting it puts the event into the calendar.

        Args:
            invitation_id: Invitation.
            reply: The owner's answer.
        """
        invitation = self.lookup(self.state.invitations, invitation_id, "invitation")
        if invitation.starts_at <= self.state.now:
            raise ToolError("the event has already started, so the invitation can no longer be answered")
        if invitation.answer in ("accepted", "declined"):
            raise ToolError(f"the invitation is already {invitation.answer}")
        if reply == "accept":
            clash = self.state.clash(invitation.starts_at, invitation.ends_at)
            if clash is not None:
                raise ToolError(
                    f'you already have "{clash.title}" then, from {clash.starts_at:%H:%M} to {clash.ends_at:%H:%M}'
                )
            calendar = next(c for c in self.state.calendars.values() if c.kind == "private")
            event = self._new_event(
                calendar, invitation.subject, invitation.starts_at, invitation.ends_at, invitation.contact_id
            )
            invitation.event_id, invitation.answer = event.event_id, "accepted"
        elif reply == "maybe" and invitation.answer == "tentative":
            raise ToolError("the invitation is already answered with maybe")
        else:
            invitation.answer = "declined" if reply == "decline" else "tentative"
        return views.invitation_row(self.state, invitation)

    @tool(effect="write", confirm="never")
    def set_reminder(
        self, event_id: str, minutes_before: Annotated[int, Field(ge=0, le=10080, examples=[5, 10, 15, 30, 60, 120])]
    ) -> views.EventDetails:
        """Set a reminder for a coming event.

        Args:
            event_id: Event.
            minutes_before: Minutes before the start of the event.
        """
        event = self.lookup(self.state.events, event_id, "event")
        own = [r.minutes_before for r in self.state.reminders.values() if r.event_id == event_id]
        if event.starts_at - timedelta(minutes=minutes_before) <= self.state.now:
            raise ToolError("the time of this reminder has already passed")
        if minutes_before in own:
            raise ToolError(f"there is already a reminder {minutes_before} minutes before")
        if len(own) >= MAX_REMINDERS:
            raise ToolError(f"an event has at most {MAX_REMINDERS} reminders")
        reminder_id = self.new_id("reminder", "N{}")
        self.state.reminders[reminder_id] = Reminder(
            reminder_id=reminder_id, event_id=event_id, minutes_before=minutes_before
        )
        return self._details(event_id)

    @tool(effect="write", confirm="never")
    def book_room(
        self, event_id: str, seats: Annotated[int, Field(ge=2, le=12, examples=[2, 3, 4, 6])]
    ) -> views.EventDetails:
        """Book the smallest free meeting room with enough seats for a work event.

        Args:
            event_id: Event of the work calendar.
            seats: Number of seats needed.
        """
        event = self._own_event(event_id)
        if self.state.calendars[event.calendar_id].kind != "work":
            raise ToolError("meeting rooms are for events of the work calendar only")
        if event.room_id is not None:
            raise ToolError(f"the event already has the {self.state.rooms[event.room_id].room_name} room")
        if event.ends_at - event.starts_at > timedelta(hours=ROOM_HOURS):
            raise ToolError(f"rooms can be booked for at most {ROOM_HOURS} hours")
        if event.starts_at > self.state.now + timedelta(days=ROOM_DAYS):
            raise ToolError(f"rooms can be booked at most {ROOM_DAYS} days ahead")
        needed = max(seats, len(self.state.guests_of(event_id)) + 1)
        fitting = [r for r in self.state.rooms.values() if r.seats >= needed and self.state.is_room_free(r, event)]
        if not fitting:
            raise ToolError(f"no room with {needed} seats is free at that time")
        event.room_id = min(fitting, key=lambda room: (room.seats, room.room_id)).room_id
        return self._details(event_id)

    @tool(effect="read")
    def list_tasks(self, priority: Priority | None = None) -> list[views.TaskRow]:
        """List the open tasks, those due first at the top, at most 8.

        Args:
            priority: Only tasks of this priority.
        """
        tasks = [task for task in self.state.tasks.values() if not task.done and priority in (None, task.priority)]
        return [self._task_row(task) for task in sorted(tasks, key=lambda task: task.due_on)[:8]]

    @tool(effect="write", confirm="never")
    def add_task(
        self,
        task: Annotated[str, Field(min_length=1, max_length=120, examples=[*EXAMPLE_TASKS])],
        due_date: date,
        priority: Priority = "normal",
    ) -> views.TaskRow:
        """Add a task to the list.

        Args:
            task: What is to be done.
            due_date: Last day for it.
            priority: How urgent it is.
        """
        if due_date < self.state.now.date():
            raise ToolError(f"{due_date} has passed, and a task can't be due in the past")
        if sum(not other.done for other in self.state.tasks.values()) >= MAX_OPEN_TASKS:
            raise ToolError(f"there are already {MAX_OPEN_TASKS} open tasks")
        task_id = self.new_id("task", "K{}")
        added = Task(task_id=task_id, task=task.strip(), due_on=due_date, priority=priority, done=False)
        self.state.tasks[task_id] = added
        return self._task_row(added)

    @tool(effect="write", confirm="never")
    def complete_task(self, task_id: str) -> Task:
        """Tick off an open task.

        Args:
            task_id: Task.
        """
        task = self.lookup(self.state.tasks, task_id, "task")
        if task.done:
            raise ToolError("the task is already done")
        task.done = True
        return task

    def _details(self, event_id: str) -> views.EventDetails:
        return views.event_details(self.state, self.lookup(self.state.events, event_id, "event"))

    def _task_row(self, task: Task) -> views.TaskRow:
        return views.TaskRow(
            task_id=task.task_id,
            task=task.task,
            due_on=task.due_on,
            priority=task.priority,
            overdue=task.due_on < self.state.now.date(),
        )

    def _writable(self, calendar_name: str) -> CalendarEntry:
        wanted = calendar_name.strip().lower()
        match = next((c for c in self.state.calendars.values() if c.calendar_name.lower() == wanted), None)
        if match is None:
            names = ", ".join(calendar.calendar_name for calendar in self.state.calendars.values())
            raise ToolError(f"no calendar called {calendar_name}; there are: {names}")
        if match.kind == "subscribed":
            raise ToolError(f"{match.calendar_name} is a subscribed calendar, which can only be read")
        return match

    def _own_event(self, event_id: str) -> Event:
        """A coming event that the owner may change."""
        event = self.lookup(self.state.events, event_id, "event")
        calendar = self.state.calendars[event.calendar_id]
        if calendar.kind == "subscribed":
            raise ToolError(f"{calendar.calendar_name} is a subscribed calendar, which can only be read")
        if event.starts_at <= self.state.now:
            raise ToolError("the event has already started or is over, so it stays as it is")
        if event.organiser_id is not None:
            organiser = self.state.contacts[event.organiser_id].full_name
            raise ToolError(f"the organiser is {organiser}, so only they can change it")
        return event

    def _check_time(
        self, calendar: CalendarEntry, starts_at: datetime, ends_at: datetime, but: str | None = None
    ) -> None:
        if not self.state.now < starts_at <= self.state.now + timedelta(days=365):
            raise ToolError("events have to start in the future, at most a year ahead")
        owner = self.state.owner
        opens = datetime.combine(starts_at.date(), owner.works_from)
        closes = datetime.combine(starts_at.date(), owner.works_until)
        outside = starts_at < opens or ends_at > closes or starts_at.weekday() >= 5
        if calendar.kind == "work" and outside:
            hours = f"{owner.works_from:%H:%M} to {owner.works_until:%H:%M}"
            raise ToolError(
                f"events in {calendar.calendar_name} must be within your working hours, Monday to Friday from {hours}"
            )
        clash = self.state.clash(starts_at, ends_at, but)
        if clash is not None:
            raise ToolError(
                f'you already have "{clash.title}" then, from {clash.starts_at:%H:%M} to {clash.ends_at:%H:%M}'
            )

    def _new_event(
        self, calendar: CalendarEntry, title: str, starts_at: datetime, ends_at: datetime, organiser_id: str | None
    ) -> Event:
        event_id = self.new_id("event", "E{}")
        event = Event(
            event_id=event_id,
            calendar_id=calendar.calendar_id,
            title=title,
            starts_at=starts_at,
            ends_at=ends_at,
            organiser_id=organiser_id,
            room_id=None,
        )
        self.state.events[event_id] = event
        return event


__all__ = ["Calendar"]
