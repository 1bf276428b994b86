"""What the tools of the car-sharing company return where that is not an entity of the state."""

from datetime import date, datetime
from typing import Literal

from trajsmith.environments.library.car_share.state import (
    CarKind,
    Doors,
    Drive,
    FeeReason,
    Fuel,
    Help,
    Origin,
    Part,
    ReservationStatus,
    WarningLight,
)
from trajsmith.environments.native import StateModel


class MemberRecord(StateModel):
    member_id: str
    name: str
    contact_email: str
    city: str
    tariff_name: str
    member_since: date
    licence_valid_until: date


class ReservationRow(StateModel):
    reservation_id: str
    car_model: str
    plate: str
    station_name: str
    starts_at: datetime
    ends_at: datetime
    car_free_until: datetime | None
    """When the next member has the car, None if nobody has reserved it."""
    status: ReservationStatus
    price: float


class NearbyCar(StateModel):
    car_id: str
    car_model: str
    kind: CarKind
    fuel: Fuel
    seats: int
    level_percent: int
    """Charge of the battery, or petrol in the tank."""
    station_name: str
    walk_minutes: int
    hourly_price: float


class NewReservation(StateModel):
    reservation_id: str
    car_model: str
    station_name: str
    starts_at: datetime
    ends_at: datetime
    price: float


class Extension(StateModel):
    car_model: str
    ends_at: datetime
    extra_price: float
    price: float


class Cancellation(StateModel):
    car_model: str
    starts_at: datetime
    status: ReservationStatus
    to_pay: float


class DoorsSwitched(StateModel):
    car_model: str
    plate: str
    doors: Doors


class ImmobiliserReleased(StateModel):
    car_model: str
    immobiliser: Literal["released"]
    next_step: str


class CardActivated(StateModel):
    car_model: str
    charge_card: str
    valid_until: datetime


class FeeWaived(StateModel):
    reason: FeeReason
    amount: float
    status: Literal["waived"]


class DamageReported(StateModel):
    damage_id: str
    car_model: str
    part: Part
    origin: Origin
    to_pay_at_most: float


class RoadsideSent(StateModel):
    call_out_id: str
    car_model: str
    help: Help
    minutes: int
    """How long it takes until help is there."""


class TariffChange(StateModel):
    old_tariff: str
    tariff_name: str
    monthly_fee: float
    valid_from: date


class WindscreenCard(StateModel):
    plate: str
    windscreen_code: str


class Dashboard(StateModel):
    warning_light: WarningLight
    warning_text: str | None
    """Words beside the light, None without a light."""
    charge_percent: int
    odometer_km: int


class StartAttempt(StateModel):
    drive: Drive
    message: str
    start_code: str | None
    """Code under the message if the car does not start."""


class GloveCompartment(StateModel):
    charge_card: str
    claim_form: Literal["in its folder", "missing"]


class ChargingSocket(StateModel):
    charge_light: Literal["green", "red"]
    charge_percent: int
    full_at: datetime | None
    """When the battery is full, None if it is not being charged."""


class AppLock(StateModel):
    doors: Doors
    app_message: str
