"""What the car-sharing company knows (members, cars, reservations, fees), and the car at which the caller stands."""

from datetime import date, datetime
from typing import Literal

from trajsmith.environments.native import EnvironmentState, StateModel

CarKind = Literal["city_car", "estate", "van"]
Fuel = Literal["electric", "petrol", "hybrid"]
ReservationStatus = Literal["running", "upcoming", "completed", "cancelled"]
Slot = Literal["morning", "afternoon", "whole_day"]
FeeReason = Literal["late_return", "cleaning", "town_fine", "lost_card"]
FeeStatus = Literal["open", "paid", "waived"]
WarningLight = Literal["none", "amber", "red"]
StartFault = Literal["none", "immobiliser", "weak_battery"]
Doors = Literal["locked", "unlocked"]
Drive = Literal["on", "off"]
Part = Literal["front_bumper", "rear_bumper", "driver_side", "passenger_side", "windscreen", "wheel"]
Origin = Literal["found", "own"]
Help = Literal["mechanic", "tow_truck"]


class Tariff(StateModel):
    tariff_id: str
    name: str
    monthly_fee: float
    hourly_price: float
    km_price: float
    excess: float
    """What the member pays at most for damage of their own doing."""


class Member(StateModel):
    member_id: str
    name: str
    card_number: str
    contact_email: str
    city: str
    tariff_id: str
    next_tariff_id: str | None
    """Tariff from the first of next month on, if a change was asked for."""
    member_since: date
    licence_valid_until: date


class Station(StateModel):
    station_id: str
    station_name: str
    city: str
    walk_minutes: int
    """Minutes on foot from where the members of this town are."""


class Car(StateModel):
    """A car with its true condition; most of it shows only to those who are at the car."""

    car_id: str
    car_model: str
    plate: str
    kind: CarKind
    fuel: Fuel
    seats: int
    station_id: str
    charge_percent: int
    """Charge of the battery, or of petrol in the tank."""
    odometer_km: int
    doors: Doors
    windscreen_code: str
    warning: str | None
    """What the dashboard warns of."""
    start_fault: StartFault
    starts: int
    """How often the start button was pressed during this reservation."""
    drive: Drive
    cable_in: bool
    plugs: int
    charging_point_works: bool
    app_connected: bool
    lock_attempts: int
    remote_commands: int
    charge_card: str
    charge_card_active: bool
    claim_form: bool


class Reservation(StateModel):
    reservation_id: str
    member_id: str
    car_id: str
    starts_at: datetime
    ends_at: datetime
    status: ReservationStatus
    price: float


class Fee(StateModel):
    fee_id: str
    member_id: str
    reason: FeeReason
    amount: float
    charged_on: date
    status: FeeStatus


class Damage(StateModel):
    damage_id: str
    reservation_id: str
    car_id: str
    part: Part
    origin: Origin
    reported_at: datetime


class CallOut(StateModel):
    call_out_id: str
    car_id: str
    help: Help
    cause: str
    arrives_at: datetime


class Caller(StateModel):
    """Person on the phone, and the facts that they can tell about themselves."""

    name: str
    membership_number: str


class CarShareState(EnvironmentState):
    user_id: str
    """The member who calls; the tools of the user act on the car that this member has now."""
    car_in_use: str
    caller: Caller
    tariffs: dict[str, Tariff] = {}
    members: dict[str, Member] = {}
    stations: dict[str, Station] = {}
    cars: dict[str, Car] = {}
    reservations: dict[str, Reservation] = {}
    fees: dict[str, Fee] = {}
    damages: dict[str, Damage] = {}
    call_outs: dict[str, CallOut] = {}
