"""What the provider knows (accounts, lines, bills, network), and what stands in the caller's home (router, phone)."""

from datetime import date, datetime
from typing import Literal

from trajsmith.environments.native import EnvironmentState, StateModel

LineStatus = Literal["active", "suspended"]
AddOnKind = Literal["data", "roaming", "calls"]
InvoiceStatus = Literal["paid", "open", "overdue"]
SimStatus = Literal["sent", "in_use", "retired"]
OutageStatus = Literal["ongoing", "planned", "resolved"]
Service = Literal["home_internet", "mobile"]
VisitStatus = Literal["booked", "completed"]
TimeWindow = Literal["morning", "afternoon", "evening"]
StatusLight = Literal["solid_green", "blinking_amber", "solid_amber", "blinking_red"]
RouterFault = Literal["none", "stuck", "settings", "cable"]
Network = Literal["5G", "4G", "no_service"]


class Address(StateModel):
    street: str
    city: str
    postal_code: str


class Customer(StateModel):
    customer_id: str
    name: str
    contact_number: str
    contact_email: str
    address: Address
    customer_since: date
    paperless: bool


class Plan(StateModel):
    plan_id: str
    name: str
    monthly_price: float
    data_gb: int | None
    """None means unlimited."""
    term_months: int
    roaming_included: bool
    on_sale: bool


class Line(StateModel):
    line_id: str
    customer_id: str
    label: str
    number: str
    plan_id: str
    plan_since: date
    term_ends: date
    status: LineStatus
    used_gb: float


class AddOn(StateModel):
    add_on_id: str
    name: str
    kind: AddOnKind
    price: float
    data_gb: int
    days: int


class Booking(StateModel):
    booking_id: str
    line_id: str
    add_on_id: str
    valid_from: date
    valid_until: date


class SimCard(StateModel):
    serial: str
    customer_id: str
    line_id: str | None
    status: SimStatus
    sent_on: date


class Invoice(StateModel):
    invoice_id: str
    customer_id: str
    period: str
    issued_on: date
    due_on: date
    amount: float
    status: InvoiceStatus
    extended: bool


class Router(StateModel):
    """A router as the provider's network sees it, with its true fault."""

    customer_id: str
    model: str
    wifi_name: str
    wifi_channel: int
    fault: RouterFault
    marking: int
    """Digits of the code on its display."""
    speed_mbps: float
    restarted_at: datetime | None
    restarts: int
    settings_sent_at: datetime | None


class Phone(StateModel):
    """The phone that a customer holds; its SIM tray, and whether it has a second (built-in) SIM."""

    customer_id: str
    model: str
    tray_serial: str
    built_in_sim: bool
    signal_bars: int
    coverage_bars: int
    network: Network
    coverage: Network
    reconnects: int


class Outage(StateModel):
    outage_id: str
    city: str
    service: Service
    status: OutageStatus
    cause: str
    started_at: datetime
    expected_end: datetime


class Visit(StateModel):
    visit_id: str
    customer_id: str
    scheduled_for: date
    time_window: TimeWindow
    status: VisitStatus
    symptom: str


class Caller(StateModel):
    """Person on the phone, and the facts that they can tell about themselves."""

    name: str
    phone_number: str
    email: str


class MobileCareState(EnvironmentState):
    user_id: str
    """The customer who calls; the tools of the user act on this customer's router and phone."""
    caller: Caller
    customers: dict[str, Customer] = {}
    plans: dict[str, Plan] = {}
    lines: dict[str, Line] = {}
    add_ons: dict[str, AddOn] = {}
    bookings: dict[str, Booking] = {}
    sim_cards: dict[str, SimCard] = {}
    invoices: dict[str, Invoice] = {}
    routers: dict[str, Router] = {}
    """By customer."""
    phones: dict[str, Phone] = {}
    """By customer."""
    outages: dict[str, Outage] = {}
    visits: dict[str, Visit] = {}
