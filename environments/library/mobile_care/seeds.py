"""Generator of the provider's initial states."""

import random
from datetime import date, datetime, timedelta

from trajsmith.environments.library import _people
from trajsmith.environments.library.mobile_care.rules import add_months
from trajsmith.environments.library.mobile_care.state import (
    AddOn,
    AddOnKind,
    Address,
    Booking,
    Caller,
    Customer,
    Invoice,
    InvoiceStatus,
    Line,
    MobileCareState,
    Outage,
    OutageStatus,
    Phone,
    Plan,
    Router,
    RouterFault,
    Service,
    SimCard,
    SimStatus,
    Visit,
)
from trajsmith.records import derive_seed

CUSTOMERS = {"small": 6, "medium": 24, "large": 500}
PLANS: tuple[tuple[str, float, int | None, int, bool, bool], ...] = (
    ("Pebble", 8.0, 3, 0, False, True),
    ("Brook", 13.0, 12, 12, False, True),
    ("Meadow", 18.5, 30, 12, False, True),
    ("Summit", 24.0, 80, 12, True, True),
    ("Horizon", 33.0, None, 24, True, True),
    ("Tiny Talk", 6.5, 1, 0, False, False),
    ("Evergreen", 27.5, None, 12, False, False),
)
ADD_ONS: tuple[tuple[str, AddOnKind, float, int, int], ...] = (
    ("Data Top-up 5", "data", 4.5, 5, 30),
    ("Data Top-up 20", "data", 11.0, 20, 30),
    ("Three Day Burst", "data", 3.0, 8, 3),
    ("Neighbour Pass", "roaming", 6.0, 4, 7),
    ("World Week", "roaming", 19.0, 6, 7),
    ("Evening Abroad Calls", "calls", 5.5, 0, 30),
    ("Worldwide Minutes", "calls", 9.0, 0, 30),
)
LABELS = ("tablet", "work phone", "smartwatch", "kids' phone", "spare phone", "car hotspot")
ROUTERS = ("Hearth 2", "Hearth 3 Pro", "Lantern Mini", "Lantern Max")
PHONES = ("Aster 9", "Aster 10 Lite", "Kestrel One", "Orbit X2", "Poppy 5")
WIFI_WORDS = ("Larch", "Comet", "Robin", "Harbour", "Thistle", "Amber", "Pixel", "Willow")
CAUSES: dict[Service, tuple[str, ...]] = {
    "home_internet": ("a fibre cable cut by road works", "a power failure at the exchange", "a flooded street cabinet"),
    "mobile": ("storm damage to a mast", "a broken link between masts", "a faulty antenna"),
}
PLANNED: dict[Service, str] = {"home_internet": "new equipment at the exchange", "mobile": "an upgrade of the masts"}
FAULTS: tuple[RouterFault, ...] = ("none", "none", "none", "stuck", "settings", "cable")
CALLER_FAULTS: tuple[RouterFault, ...] = ("settings", "settings", "settings", "cable", "cable", "cable", "stuck")
SYMPTOMS = ("no internet at all", "slow in the evenings", "line drops out", "new socket needed")


def make_state(size: str, seed: int) -> MobileCareState:
    """A provider of the given size and one of its customers on the phone; the same seed gives the same state."""
    rng = random.Random(derive_seed("mobile_care", size, seed))
    now = datetime(2026, rng.randrange(1, 13), rng.randrange(10, 28), rng.randrange(8, 20), rng.choice((5, 20, 35, 50)))
    persons = _people.people(rng, CUSTOMERS[size])
    calling = rng.randrange(len(persons))
    person = persons[calling]
    state = MobileCareState(
        now=now,
        seed=seed,
        user_id=f"A{3001 + calling}",
        caller=Caller(name=person.name, phone_number=person.phone, email=person.email),
    )
    _add_offers(state)
    for each in persons:
        _add_customer(state, rng, each)
    _add_outages(state, rng)
    return state


def _number(state: MobileCareState, kind: str) -> int:
    state.counters[kind] = state.counters.get(kind, 0) + 1
    return state.counters[kind]


def _add_offers(state: MobileCareState) -> None:
    for number, (name, price, data, term, roaming, on_sale) in enumerate(PLANS, 1):
        state.plans[f"PL{number:02d}"] = Plan(
            plan_id=f"PL{number:02d}",
            name=name,
            monthly_price=price,
            data_gb=data,
            term_months=term,
            roaming_included=roaming,
            on_sale=on_sale,
        )
    for number, (name, kind, price, data_gb, days) in enumerate(ADD_ONS, 1):
        state.add_ons[f"AO{number:02d}"] = AddOn(
            add_on_id=f"AO{number:02d}", name=name, kind=kind, price=price, data_gb=data_gb, days=days
        )


def _add_customer(state: MobileCareState, rng: random.Random, person: _people.Person) -> None:
    customer_id = f"A{3000 + _number(state, 'customer')}"
    street, city, postal_code = _people.street_address(rng)
    state.customers[customer_id] = Customer(
        customer_id=customer_id,
        name=person.name,
        contact_number=person.phone,
        contact_email=person.email,
        address=Address(street=street, city=city, postal_code=postal_code),
        customer_since=state.now.date() - timedelta(days=rng.randrange(850, 3000)),
        paperless=rng.random() < 0.6,
    )
    count = rng.choice((2, 3)) if customer_id == state.user_id else rng.choice((1, 1, 2))
    for label in ("main phone", *rng.sample(LABELS, count - 1)):
        _add_line(state, rng, customer_id, label, person.phone if label == "main phone" else None)
    _add_devices(state, rng, customer_id)
    _add_invoices(state, rng, customer_id)
    if rng.random() < 0.35:
        _add_past_visit(state, rng, customer_id)


def _add_line(state: MobileCareState, rng: random.Random, customer_id: str, label: str, number: str | None) -> None:
    plan = rng.choice(list(state.plans.values()))
    today = state.now.date()
    since = today - timedelta(days=rng.randrange(40, 800))
    line_id = f"LN{700 + _number(state, 'line') * 3}"
    suspended = label != "main phone" and rng.random() < 0.12
    state.lines[line_id] = Line(
        line_id=line_id,
        customer_id=customer_id,
        label=label,
        plan_id=plan.plan_id,
        plan_since=since,
        number=number or f"+44 7{rng.randrange(100, 999)} {rng.randrange(100000, 999999)}",
        term_ends=add_months(since, plan.term_months),
        status="suspended" if suspended else "active",
        used_gb=round(rng.uniform(0.1, 1.05) * (plan.data_gb or 60), 1),
    )
    _add_sim(state, rng, customer_id, line_id, "in_use", since)
    if not suspended and rng.random() < 0.25:
        add_on = rng.choice([each for each in state.add_ons.values() if each.kind == "calls"])
        booking_id = f"BK{400 + _number(state, 'booking')}"
        start = today - timedelta(days=rng.randrange(1, 20))
        state.bookings[booking_id] = Booking(
            booking_id=booking_id,
            line_id=line_id,
            add_on_id=add_on.add_on_id,
            valid_from=start,
            valid_until=start + timedelta(days=add_on.days),
        )


def _add_sim(
    state: MobileCareState, rng: random.Random, customer_id: str, line_id: str | None, status: SimStatus, sent_on: date
) -> str:
    serial = f"8944{rng.randrange(10**8, 10**9)}{_number(state, 'sim'):06d}"
    state.sim_cards[serial] = SimCard(
        serial=serial, customer_id=customer_id, line_id=line_id, status=status, sent_on=sent_on
    )
    return serial


def _add_devices(state: MobileCareState, rng: random.Random, customer_id: str) -> None:
    mine = customer_id == state.user_id
    fault = rng.choice(CALLER_FAULTS if mine else FAULTS)
    restarted = rng.random() < 0.5
    state.routers[customer_id] = Router(
        customer_id=customer_id,
        model=rng.choice(ROUTERS),
        fault=fault,
        marking=rng.randrange(100, 1000),
        wifi_name=f"{rng.choice(WIFI_WORDS)}-{rng.randrange(10, 100)}",
        wifi_channel=rng.choice((1, 6, 11)),
        speed_mbps=rng.choice((38.0, 67.0, 145.0, 310.0, 500.0)),
        restarted_at=state.now.replace(hour=rng.randrange(0, 8), minute=15) if restarted else None,
        restarts=1 if restarted else 0,
        settings_sent_at=None,
    )
    fresh = mine or rng.random() < 0.2
    if fresh:
        serial = _add_sim(state, rng, customer_id, None, "sent", state.now.date() - timedelta(days=rng.randrange(2, 9)))
    else:
        serial = next(sim.serial for sim in state.sim_cards.values() if sim.customer_id == customer_id)
    connected = not fresh or rng.random() < 0.6
    coverage = rng.choice(("5G", "5G", "4G"))
    state.phones[customer_id] = Phone(
        customer_id=customer_id,
        model=rng.choice(PHONES),
        tray_serial=serial,
        built_in_sim=fresh and connected,
        signal_bars=rng.choice((1, 2)) if connected else 0,
        coverage_bars=rng.choice((3, 4, 5)),
        network="4G" if connected else "no_service",
        coverage=coverage,
        reconnects=0,
    )


def _add_invoices(state: MobileCareState, rng: random.Random, customer_id: str) -> None:
    lines = [line for line in state.lines.values() if line.customer_id == customer_id]
    monthly = sum(state.plans[line.plan_id].monthly_price for line in lines)
    latest = state.now.date() - timedelta(days=rng.randrange(1, 13))
    for back in range(rng.choice((2, 3, 4))):
        issued = add_months(latest, -back)
        status: InvoiceStatus = "open" if back == 0 else "overdue" if back == 1 and rng.random() < 0.18 else "paid"
        invoice_id = f"IN{20000 + _number(state, 'invoice') * 7}"
        state.invoices[invoice_id] = Invoice(
            invoice_id=invoice_id,
            customer_id=customer_id,
            period=f"{issued:%B %Y}",
            issued_on=issued,
            due_on=issued + timedelta(days=18),
            status=status,
            extended=False,
            amount=round(monthly + 28.0 + rng.choice((0.0, 1.2, 2.4, 5.15, 11.9)), 2),
        )


def _add_past_visit(state: MobileCareState, rng: random.Random, customer_id: str) -> None:
    visit_id = f"V{900 + _number(state, 'visit')}"
    day = state.now.date() - timedelta(days=rng.randrange(20, 300))
    state.visits[visit_id] = Visit(
        visit_id=visit_id,
        customer_id=customer_id,
        scheduled_for=day - timedelta(days=1 if day.weekday() == 6 else 0),
        time_window="morning",
        status="completed",
        symptom=rng.choice(SYMPTOMS),
    )


def _add_outages(state: MobileCareState, rng: random.Random) -> None:
    home = state.customers[state.user_id].address.city
    services: tuple[Service, ...] = ("home_internet", "mobile")
    for city in sorted({customer.address.city for customer in state.customers.values()}):
        for service in rng.sample(services, rng.choice((1, 2))):
            status: OutageStatus = rng.choice(("ongoing", "planned", "resolved"))
            if city == home and service == "home_internet" and rng.random() < 0.7:
                status = "resolved"
            works = service == "mobile" or state.routers[state.user_id].fault != "cable"
            if city == home and works and status == "ongoing":
                status = "resolved"  # the caller's phone finds its network, their router its signal
            _add_outage(state, rng, city, service, status)


def _add_outage(state: MobileCareState, rng: random.Random, city: str, service: Service, status: OutageStatus) -> None:
    start = {
        "ongoing": state.now - timedelta(minutes=15 * rng.randrange(2, 40)),
        "planned": state.now + timedelta(days=rng.randrange(2, 9)),
        "resolved": state.now - timedelta(days=rng.randrange(1, 6)),
    }[status]
    length = timedelta(hours=rng.randrange(2, 14))
    outage_id = f"OU{50 + _number(state, 'outage')}"
    state.outages[outage_id] = Outage(
        outage_id=outage_id,
        city=city,
        service=service,
        status=status,
        started_at=start,
        cause=PLANNED[service] if status == "planned" else rng.choice(CAUSES[service]),
        expected_end=(state.now if status == "ongoing" else start) + length,
    )
