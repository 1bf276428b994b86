"""What the tools of the provider return where that is not an entity of the state."""

from datetime import date, datetime
from typing import Literal

from trajsmith.environments.library.mobile_care.state import (
    InvoiceStatus,
    LineStatus,
    Network,
    OutageStatus,
    Service,
    StatusLight,
    TimeWindow,
    VisitStatus,
)
from trajsmith.environments.native import StateModel

Connection = Literal["home_wifi", "mobile"]


class LineSummary(StateModel):
    line_id: str
    label: str
    number: str
    plan_name: str
    status: LineStatus
    term_ends: date


class DataUsage(StateModel):
    label: str
    used_gb: float
    allowance_gb: int | None
    """None means unlimited."""
    left_gb: float | None
    renews_on: date


class PlanChange(StateModel):
    label: str
    old_plan: str
    plan_name: str
    monthly_price: float
    term_ends: date | None
    """None if the plan can be left at any time."""


class AddOnBooking(StateModel):
    booking_id: str
    label: str
    name: str
    price: float
    valid_from: date
    valid_until: date


class BillExtension(StateModel):
    invoice_id: str
    period: str
    amount: float
    due_on: date
    status: InvoiceStatus


class SimActivation(StateModel):
    label: str
    number: str
    old_sims_retired: int
    next_step: str


class OutageSummary(StateModel):
    outage_id: str
    service: Service
    status: OutageStatus
    cause: str
    started_at: datetime
    expected_end: datetime


class SettingsSent(StateModel):
    router_model: str
    wifi_name: str
    wifi_channel: int
    sent_at: datetime


class BookedVisit(StateModel):
    visit_id: str
    scheduled_for: date
    time_window: TimeWindow
    status: VisitStatus


class RouterDisplay(StateModel):
    router_model: str
    status_light: StatusLight
    display_code: str


class PhoneSignal(StateModel):
    phone_model: str
    network: Network
    signal_bars: int


class SpeedTest(StateModel):
    connection: Connection
    download_mbps: float
    upload_mbps: float


class SimInTray(StateModel):
    phone_model: str
    sim_serial: str
