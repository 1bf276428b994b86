"""Generator of the help desk's initial states."""

import random
from datetime import date, datetime, timedelta

from trajsmith.environments.library import _people
from trajsmith.environments.library.helpdesk.state import (
    HOURS_TO_FIX,
    NEW_MODELS,
    NEXT_PRIORITY,
    PRIORITY_OF,
    SECOND_LINE,
    AccessRequest,
    AccessStatus,
    Article,
    Category,
    Comment,
    Device,
    DeviceKind,
    Employee,
    HelpdeskState,
    Impact,
    Licence,
    Purpose,
    Replacement,
    ReplaceReason,
    Software,
    System,
    SystemName,
    Team,
    Ticket,
    TicketStatus,
)
from trajsmith.records import derive_seed

EMPLOYEES = {"small": 6, "medium": 24, "large": 400}
DEPARTMENTS = ("Finance", "Sales", "Engineering", "Marketing", "Human Resources", "Operations")
TEAMS: tuple[tuple[str, list[Category]], ...] = (
    ("Service Desk", ["email", "printing"]),
    ("Network Team", ["network"]),
    ("Workplace Devices", ["hardware"]),
    ("Applications and Access", ["software", "account"]),
    ("Second Line Support", []),
)
PROBLEMS: dict[Category, tuple[str, ...]] = {
    "email": (
        "Shared mailbox has vanished",
        "Outgoing mail stuck in the outbox",
        "Calendar invitations arrive twice",
        "Mailbox is full",
        "Signature is lost after every restart",
    ),
    "network": (
        "Wi-Fi drops out in meeting rooms",
        "Remote connection is very slow",
        "No connection at the desk socket",
        "Guest Wi-Fi rejects visitors",
        "Internal pages do not load from home",
    ),
    "hardware": (
        "Laptop battery lasts an hour",
        "Docking station does not charge",
        "Screen flickers on the second monitor",
        "Laptop fan is very loud",
        "Headset microphone is dead",
    ),
    "software": (
        "Spreadsheet program crashes on large files",
        "Update asks for administrator rights",
        "PDF editor will not start",
        "Time sheet app shows the wrong week",
        "Chat notifications never appear",
    ),
    "printing": (
        "Second-floor printer prints blank pages",
        "Scans never reach the inbox",
        "Badge printing does not work",
        "Label printer jams",
        "Colour printing is greyed out",
    ),
    "account": (
        "Login code never arrives",
        "Password was reset twice this week",
        "New surname not shown in the directory",
        "Locked out after the holidays",
        "Profile does not sync between devices",
    ),
}
EXAMPLE_PROBLEMS = (
    "very slow since this morning",
    "stopped working after the last update",
    "an error message every few minutes",
    "asks for the password again and again",
    "worked yesterday but is dead today",
    "freezes several times a day",
    "fails every few minutes",
    "does not work outside the office",
)
EXAMPLE_COMMENTS = (
    "I can show you what happens",
    "I still need this solved",
    "Nothing has changed so far",
    "Please keep me informed",
    "I am at my desk most of the day",
    "Please call me before you come by",
    "I will be on leave next week",
    "It matters to me that this is done soon",
)
USER_COMMENTS = (
    "Is there any news on this?",
    "Nothing has changed since I reported it.",
    "Please let me know how it's going.",
    "Thanks for looking into it.",
    "I'd be glad of a quick answer.",
    "I can be reached at my desk all week.",
)
TEAM_COMMENTS = (
    "We're looking into it.",
    "We've found the cause and are working on it.",
    "We have asked the vendor for advice.",
    "This is next on our list.",
    "A fix is being tested.",
)
MODELS: dict[DeviceKind, tuple[str, ...]] = {
    "laptop": ("Corvid 13", "Corvid 14 Pro", "Altair Flex", "Fennel Book 15"),
    "phone": ("Pico 7", "Pico 8", "Lumen S", "Lumen Max"),
    "monitor": ("Vista 24", "Vista 27", "Panorama 34"),
}
PRODUCTS: dict[Purpose, tuple[tuple[str, float], ...]] = {
    "design": (("Inkwell Studio", 42.0), ("Palette Lite", 9.5), ("Framecut Video", 36.0)),
    "development": (("Anvil IDE", 28.0), ("Branchline", 12.0), ("Probe Profiler", 55.0)),
    "office": (("Foliant PDF", 7.0), ("Tabula Sheets Plus", 14.5), ("Gantry Planner", 31.5)),
    "analytics": (("Contour BI", 48.0), ("Plotwise", 18.0), ("Querydeck", 24.0)),
    "meetings": (("Roundtable Rooms", 11.0), ("Captionly", 6.5), ("Boardwalk Whiteboard", 8.0)),
}
ARTICLES: dict[Category, tuple[tuple[str, int, list[str]], ...]] = {
    "email": (
        (
            "Free up space in your mailbox",
            10,
            ["sort your mail by size", "move old mail to the archive", "empty the bin"],
        ),
        ("Add a shared mailbox", 5, ["open the mail settings", "choose to add a mailbox", "type its name and restart"]),
        ("Set an out-of-office reply", 3, ["open automatic replies", "pick the dates", "write the text and save"]),
    ),
    "network": (
        (
            "Connect to the office Wi-Fi",
            5,
            ["choose the staff network", "sign in with your work email", "accept the certificate"],
        ),
        (
            "Work from home over the secure tunnel",
            15,
            ["start the tunnel app", "approve the sign-in", "wait for the green lock"],
        ),
        (
            "Fix a Wi-Fi connection that drops",
            10,
            ["forget the network", "restart the laptop", "join the network again"],
        ),
    ),
    "hardware": (
        (
            "Make a laptop battery last longer",
            5,
            ["lower the brightness", "turn on power saving", "close unused programs"],
        ),
        (
            "Set up two monitors",
            10,
            ["plug both into the dock", "open the display settings", "drag the screens into order"],
        ),
        (
            "Clean a laptop keyboard safely",
            15,
            ["switch the laptop off", "blow out the dust", "wipe the keys with a damp cloth"],
        ),
    ),
    "software": (
        ("Install a program yourself", 10, ["open the software portal", "pick the program", "press install and wait"]),
        (
            "Repair a program that crashes",
            15,
            ["close the program", "open the app list and choose repair", "restart the laptop"],
        ),
        (
            "Delay an update until the evening",
            3,
            ["open the update notice", "choose a later time", "leave the laptop plugged in"],
        ),
    ),
    "printing": (
        ("Add the nearest printer", 5, ["open the printer settings", "search by floor", "print a test page"]),
        ("Scan to your inbox", 3, ["hold your badge to the printer", "choose scan", "pick your name"]),
        ("Clear a paper jam", 10, ["open the side door", "pull the paper out slowly", "close the door and wait"]),
    ),
    "account": (
        (
            "Change your password",
            5,
            ["open the account page", "enter the old password", "choose a new one of 14 characters"],
        ),
        (
            "Move login codes to a new phone",
            10,
            ["open the account page on a laptop", "remove the old phone", "scan the new code"],
        ),
        ("Unlock your account", 5, ["open the unlock page", "answer the security question", "sign in again"]),
    ),
}
SYSTEMS: tuple[tuple[SystemName, bool, list[str]], ...] = (
    ("shared_drive", False, []),
    ("customer_database", True, []),
    ("payroll", True, ["Finance", "Human Resources"]),
    ("source_code", True, ["Engineering", "Operations"]),
    ("sales_dashboard", False, []),
    ("remote_access", False, []),
    ("document_archive", True, []),
)
AGES: dict[TicketStatus, tuple[int, int]] = {
    "new": (0, 2),
    "in_progress": (2, 10),
    "waiting_for_reply": (3, 14),
    "resolved": (4, 40),
    "closed": (45, 150),
}


def make_state(size: str, seed: int) -> HelpdeskState:
    """A help desk of the given size; the same seed gives the same help desk."""
    rng = random.Random(derive_seed("helpdesk", size, seed))
    now = datetime(2026, rng.randrange(1, 13), rng.randrange(1, 28), rng.randrange(8, 18), rng.choice((0, 10, 20, 40)))
    counters = {"ticket": 4100, "comment": 900, "device": 300, "replacement": 20, "licence": 500, "request": 700}
    state = HelpdeskState(now=now, seed=seed, counters=counters)
    persons = _people.people(rng, EMPLOYEES[size] + len(TEAMS))
    for number, ((name, handles), lead) in enumerate(zip(TEAMS, persons, strict=False), start=1):
        state.teams[f"TEAM{number}"] = Team(team_id=f"TEAM{number}", name=name, lead=lead.name, handles=list(handles))
    for system, needs_approval, departments in SYSTEMS:
        state.systems[system] = System(system=system, needs_approval=needs_approval, departments=list(departments))
    _add_articles(state, rng, per_topic=2 if size == "small" else 3)
    _add_employees(state, rng, persons[len(TEAMS) :])
    for employee in state.employees.values():
        _add_devices(state, rng, employee)
        _add_tickets(state, rng, employee)
        _add_requests(state, rng, employee)
    _add_software(state, rng, per_purpose=2 if size == "small" else 3)
    return state


def _next(state: HelpdeskState, kind: str, prefix: str) -> str:
    state.counters[kind] += 1
    return f"{prefix}{state.counters[kind]}"


def _add_articles(state: HelpdeskState, rng: random.Random, per_topic: int) -> None:
    for topic, texts in ARTICLES.items():
        for title, minutes, steps in rng.sample(texts, per_topic):
            article_id = f"KB{101 + len(state.articles)}"
            state.articles[article_id] = Article(
                article_id=article_id,
                title=title,
                topic=topic,
                steps=list(steps),
                minutes=minutes,
                updated_on=_people.moment_before(rng, state.now, 400).date(),
            )


def _add_employees(state: HelpdeskState, rng: random.Random, persons: list[_people.Person]) -> None:
    """One head without manager, one manager for about seven people, all others below these."""
    managers = 1 + len(persons) // 8
    sites = [city for city, _ in rng.sample(_people.CITIES, 3)]
    for number, person in enumerate(persons):
        above = None if number == 0 else 0 if number <= managers else rng.randrange(1, managers + 1)
        state.employees[f"E{100 + number}"] = Employee(
            employee_id=f"E{100 + number}",
            name=person.name,
            email=person.email,
            site=rng.choice(sites),
            department=rng.choice(DEPARTMENTS),
            manager_id=None if above is None else f"E{100 + above}",
        )


def _add_devices(state: HelpdeskState, rng: random.Random, employee: Employee) -> None:
    sets: tuple[list[DeviceKind], ...] = (["laptop", "phone"], ["laptop", "monitor"], ["laptop", "phone", "monitor"])
    for kind in rng.choice(sets):
        bought = state.now.date() - timedelta(days=rng.choice((rng.randrange(60, 1000), rng.randrange(1100, 2400))))
        device = Device(
            device_id=_next(state, "device", "DEV"),
            employee_id=employee.employee_id,
            kind=kind,
            model=rng.choice(MODELS[kind]),
            purchased_on=bought,
            warranty_until=bought + timedelta(days=3 * 365),
            status="in_use",
        )
        state.devices[device.device_id] = device
        if kind != "laptop" and rng.random() < 0.2:
            device.status = "reported_lost" if kind == "phone" else "being_replaced"
            replacement_id = _next(state, "replacement", "RPL")
            state.replacements[replacement_id] = Replacement(
                replacement_id=replacement_id,
                device_id=device.device_id,
                new_model=NEW_MODELS[kind],
                reason="lost_or_stolen" if kind == "phone" else _monitor_reason(state, device),
                collect_on=_workday(rng, state),
            )


def _monitor_reason(state: HelpdeskState, monitor: Device) -> ReplaceReason:
    """Why a monitor is replaced; one that is too young for that is made older."""
    today = state.now.date()
    if monitor.warranty_until >= today:
        monitor.purchased_on = today - timedelta(days=3 * 365 + 90)
        monitor.warranty_until = today - timedelta(days=90)
    return "worn_out" if today - monitor.purchased_on > timedelta(days=6 * 365) else "broken"


def _workday(rng: random.Random, state: HelpdeskState) -> date:
    day = _people.day_after(rng, state.now, 14)
    return day + timedelta(days=7 - day.weekday() if day.weekday() > 4 else 0)


def _add_tickets(state: HelpdeskState, rng: random.Random, employee: Employee) -> None:
    """An open one and a freshly resolved one for all; most have one or two more."""
    categories = rng.sample(list(PROBLEMS), 4)
    more: list[TicketStatus] = ["new", "in_progress", "waiting_for_reply", "resolved", "closed"]
    statuses: list[TicketStatus] = ["in_progress", "resolved", *rng.sample(more, rng.choice((0, 1, 1, 2)))]
    for index, (status, category) in enumerate(zip(statuses, categories, strict=False)):
        newest, oldest = AGES[status]
        if index == 1:
            oldest = 14
        opened = state.now - timedelta(minutes=rng.randrange(newest * 1440 + 20, oldest * 1440))
        impact: Impact = rng.choice(("minor", "one_person", "one_person", "one_team"))
        priority = PRIORITY_OF[impact]
        team = next(team for team in state.teams.values() if category in team.handles)
        due = opened + timedelta(hours=HOURS_TO_FIX[priority])
        escalated = status in ("in_progress", "closed") and due < state.now and rng.random() < 0.2
        done = status in ("resolved", "closed")
        ticket = Ticket(
            ticket_id=_next(state, "ticket", "INC"),
            employee_id=employee.employee_id,
            category=category,
            impact=impact,
            title=rng.choice(PROBLEMS[category]),
            team_id=SECOND_LINE if escalated else team.team_id,
            priority=NEXT_PRIORITY[priority] if escalated else priority,
            status=status,
            opened_at=opened,
            due_at=due,
            resolved_at=opened + timedelta(minutes=rng.randrange(60, 3 * 1440)) if done else None,
            escalated=escalated,
            times_reopened=1 if done and rng.random() < 0.15 else 0,
        )
        state.tickets[ticket.ticket_id] = ticket
        _add_comments(state, rng, ticket, employee)


def _add_comments(state: HelpdeskState, rng: random.Random, ticket: Ticket, employee: Employee) -> None:
    if ticket.status == "new" or rng.random() < 0.3:
        return
    end = ticket.resolved_at or state.now
    pairs = [(employee.name, rng.choice(USER_COMMENTS)), (state.teams[ticket.team_id].name, rng.choice(TEAM_COMMENTS))]
    for number, (author, text) in enumerate(pairs if rng.random() < 0.5 else pairs[1:], start=1):
        comment_id = _next(state, "comment", "CM")
        minutes = int((end - ticket.opened_at).total_seconds() / 60 * number / 3)
        state.comments[comment_id] = Comment(
            comment_id=comment_id,
            ticket_id=ticket.ticket_id,
            author=author,
            text=text,
            posted_at=ticket.opened_at + timedelta(minutes=minutes),
        )


def _add_requests(state: HelpdeskState, rng: random.Random, employee: Employee) -> None:
    allowed = [
        candidate
        for candidate in state.systems.values()
        if employee.department in (candidate.departments or DEPARTMENTS)
    ]
    statuses: list[AccessStatus] = ["granted", "declined", "expired", "granted"]
    rng.shuffle(statuses)
    if employee.manager_id is not None:
        statuses.insert(0, "pending")
    chosen = sorted(rng.sample(allowed, rng.choice((1, 2, 2, 3))), key=lambda system: not system.needs_approval)
    for system, status in zip(chosen, statuses, strict=False):
        if status in ("pending", "declined") and not system.needs_approval:
            status = "granted"
        asked = _people.moment_before(rng, state.now, 6 if status == "pending" else 30)
        until = _people.day_after(rng, state.now, 50)
        if status == "expired":
            asked = state.now - timedelta(days=rng.randrange(60, 90), minutes=rng.randrange(600))
            until = state.now.date() - timedelta(days=rng.randrange(5, 40))
        request_id = _next(state, "request", "REQ")
        state.access_requests[request_id] = AccessRequest(
            request_id=request_id,
            employee_id=employee.employee_id,
            system=system.system,
            status=status,
            requested_at=asked,
            until=until,
        )


def _add_software(state: HelpdeskState, rng: random.Random, per_purpose: int) -> None:
    everyone = list(state.employees.values())
    for purpose, products in PRODUCTS.items():
        for name, cost in rng.sample(products, per_purpose):
            software_id = f"SW{11 + len(state.software)}"
            count = max(1, round(len(everyone) * rng.uniform(0.05, 0.4)))
            state.software[software_id] = Software(
                software_id=software_id,
                name=name,
                purpose=purpose,
                seats=count + rng.choice((0, 1, 2, 3, 5, 8)),
                monthly_cost=round(cost * rng.uniform(0.9, 1.1), 1),
            )
            for employee in rng.sample(everyone, count):
                licence_id = _next(state, "licence", "LIC")
                state.licences[licence_id] = Licence(
                    licence_id=licence_id,
                    software_id=software_id,
                    employee_id=employee.employee_id,
                    status="active",
                    assigned_on=_people.moment_before(rng, state.now, 700).date(),
                )
