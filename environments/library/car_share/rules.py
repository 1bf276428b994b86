"""The rules of the car-sharing company: finding what the caller may touch, and refusing what the policy forbids."""

from collections.abc import Mapping
from datetime import date, datetime, time, timedelta

from trajsmith.environments.library.car_share.results import (
    Dashboard,
    MemberRecord,
    NearbyCar,
    ReservationRow,
    StartAttempt,
)
from trajsmith.environments.library.car_share.state import (
    Car,
    CarKind,
    CarShareState,
    Fee,
    Help,
    Member,
    Reservation,
    Slot,
    StartFault,
    WarningLight,
)
from trajsmith.records import ToolError

WARNINGS: Mapping[str, tuple[WarningLight, Help]] = {
    "Tyre pressure low": ("amber", "mechanic"),
    "Service due": ("amber", "mechanic"),
    "Washer fluid low": ("amber", "mechanic"),
    "Battery not charging": ("red", "mechanic"),
    "Brake fluid low": ("red", "tow_truck"),
    "Motor too hot": ("red", "tow_truck"),
}
"""By the words on the dashboard: colour of the light, and who helps."""
START_MESSAGES: Mapping[StartFault, str] = {
    "none": "Ready to drive",
    "immobiliser": "Immobiliser active",
    "weak_battery": "12-volt battery too weak",
}
KIND_FACTORS: Mapping[CarKind, float] = {"city_car": 1.0, "estate": 1.4, "van": 1.8}
SLOTS: Mapping[Slot, tuple[time, time]] = {
    "morning": (time(7), time(13)),
    "afternoon": (time(13), time(19)),
    "whole_day": (time(7), time(19)),
}
WAIVABLE = ("late_return", "cleaning")
HIGHEST_WAIVER = 30.0
LONGEST_EXTENSION = 240


def own_member(state: CarShareState, member_id: str) -> Member:
    """Return the member, if it is the caller."""
    member = state.members.get(member_id)
    if member is None:
        raise ToolError(f"member not found: {member_id}")
    if member_id != state.user_id:
        raise ToolError("only the caller's own membership may be opened")
    return member


def own_reservation(state: CarShareState, reservation_id: str) -> Reservation:
    """Return the reservation, if it is the caller's."""
    reservation = state.reservations.get(reservation_id)
    if reservation is None:
        raise ToolError(f"reservation not found: {reservation_id}")
    own_member(state, reservation.member_id)
    return reservation


def find_trip(state: CarShareState) -> Reservation:
    """Return the reservation that the caller is using now."""
    return next(
        each for each in state.reservations.values() if each.member_id == state.user_id and each.status == "running"
    )


def car_by_code(state: CarShareState, windscreen_code: str) -> Car:
    """Return the car that the caller has now, if the code is the one behind its windscreen."""
    car = state.cars[state.car_in_use]
    if windscreen_code.strip().upper() != car.windscreen_code:
        raise ToolError("this is not the code of the reserved car; please have the code read at the windscreen")
    return car


def find_next_start(state: CarShareState, reservation: Reservation) -> datetime | None:
    """Return when another reservation of the same car begins."""
    return min(
        (
            each.starts_at
            for each in state.reservations.values()
            if each.car_id == reservation.car_id
            and each.status == "upcoming"
            and each.reservation_id != reservation.reservation_id
            and each.starts_at >= reservation.ends_at
        ),
        default=None,
    )


def build_row(state: CarShareState, reservation: Reservation) -> ReservationRow:
    """Describe a reservation with its car and its station."""
    car = state.cars[reservation.car_id]
    active = reservation.status in ("running", "upcoming")
    return ReservationRow(
        reservation_id=reservation.reservation_id,
        car_model=car.car_model,
        plate=car.plate,
        station_name=state.stations[car.station_id].station_name,
        starts_at=reservation.starts_at,
        ends_at=reservation.ends_at,
        car_free_until=find_next_start(state, reservation) if active else None,
        status=reservation.status,
        price=reservation.price,
    )


def compute_hourly_price(state: CarShareState, member: Member, car: Car) -> float:
    """Return what an hour in a car costs a member."""
    return round(state.tariffs[member.tariff_id].hourly_price * KIND_FACTORS[car.kind], 2)


def list_cars_in_town(state: CarShareState, member: Member) -> list[Car]:
    """Return the cars of a member's town but the one in use."""
    return [
        car
        for car in state.cars.values()
        if state.stations[car.station_id].city == member.city and car.car_id != state.car_in_use
    ]


def build_offer(state: CarShareState, member: Member, car: Car) -> NearbyCar:
    """Describe a car that a member may reserve."""
    station = state.stations[car.station_id]
    return NearbyCar(
        car_id=car.car_id,
        car_model=car.car_model,
        kind=car.kind,
        fuel=car.fuel,
        seats=car.seats,
        level_percent=car.charge_percent,
        station_name=station.station_name,
        walk_minutes=station.walk_minutes,
        hourly_price=compute_hourly_price(state, member, car),
    )


def build_record(state: CarShareState, member: Member) -> MemberRecord:
    """Describe a member with the name of the tariff."""
    return MemberRecord(
        member_id=member.member_id,
        name=member.name,
        contact_email=member.contact_email,
        city=member.city,
        tariff_name=state.tariffs[member.tariff_id].name,
        member_since=member.member_since,
        licence_valid_until=member.licence_valid_until,
    )


def check_new_reservation(
    state: CarShareState, member: Member, car: Car, starts_at: datetime, ends_at: datetime
) -> None:
    """Rule 3."""
    today = state.now.date()
    if not today < starts_at.date() <= today + timedelta(days=30):
        raise ToolError("a car can be reserved from tomorrow to 30 days ahead")
    if member.licence_valid_until < starts_at.date():
        raise ToolError(f"the driving licence is valid only until {member.licence_valid_until}")
    if state.stations[car.station_id].city != member.city:
        raise ToolError("this car stands in another town")
    for each in state.reservations.values():
        if each.status not in ("running", "upcoming") or each.ends_at <= starts_at or each.starts_at >= ends_at:
            continue
        if each.car_id == car.car_id:
            raise ToolError(
                f"the {car.car_model} is taken from {each.starts_at:%H:%M} to {each.ends_at:%H:%M} that day"
            )
        if each.member_id == member.member_id:
            raise ToolError("the member has another reservation at that time")


def check_extension(state: CarShareState, reservation: Reservation, extra_minutes: int) -> datetime:
    """Return the new end. Rule 4."""
    if reservation.status not in ("running", "upcoming"):
        raise ToolError(f"this reservation is {reservation.status} and cannot be extended")
    if extra_minutes > LONGEST_EXTENSION:
        raise ToolError(f"a reservation can be extended by at most {LONGEST_EXTENSION} minutes")
    ends_at = reservation.ends_at + timedelta(minutes=extra_minutes)
    following = find_next_start(state, reservation)
    if following is not None and following < ends_at:
        raise ToolError(f"the next member has the car from {following:%H:%M} on {following:%d %B}")
    return ends_at


def check_waiver(state: CarShareState, fee: Fee) -> None:
    """Rule 6."""
    year_ago = state.now.date() - timedelta(days=365)
    if fee.status != "open":
        raise ToolError(f"this fee is already {fee.status}")
    if fee.reason not in WAIVABLE:
        raise ToolError("only fees for a late return or for cleaning can be waived")
    if fee.amount > HIGHEST_WAIVER:
        raise ToolError("a fee above 30 pounds cannot be waived")
    for each in state.fees.values():
        if each.member_id == fee.member_id and each.status == "waived" and each.charged_on > year_ago:
            raise ToolError("one fee was waived in the last 12 months already")


def check_inside(car: Car) -> None:
    """Refuse what can be done only in the car once it was locked from outside; it may lock itself around a driver."""
    if car.doors == "locked" and car.remote_commands + car.lock_attempts:
        raise ToolError("the doors are locked, so the member cannot get into the car")


def render_dashboard(car: Car) -> Dashboard:
    """Describe the dashboard as a person sees it."""
    return Dashboard(
        warning_light=WARNINGS[car.warning][0] if car.warning is not None else "none",
        warning_text=car.warning,
        charge_percent=car.charge_percent,
        odometer_km=car.odometer_km,
    )


def press_start(car: Car) -> StartAttempt:
    """Switch the drive on or off as far as the car allows, and describe what the dashboard shows then."""
    car.starts, car.doors = car.starts + 1, "unlocked"  # who sits at the wheel is not locked out
    if car.drive == "on":
        car.drive, message = "off", "Switched off"
    elif car.cable_in:
        message = "Charging cable still in"
    else:
        message = START_MESSAGES[car.start_fault]
        car.drive = "on" if car.start_fault == "none" else "off"
    failed = message in (START_MESSAGES["immobiliser"], START_MESSAGES["weak_battery"])
    return StartAttempt(drive=car.drive, message=message, start_code=get_start_code(car) if failed else None)


def get_start_code(car: Car) -> str | None:
    """Return the code under the message of the last attempt to start; None if the car has started."""
    if car.starts == 0 or car.drive == "on":
        return None
    return f"{car.start_fault[0].upper()}{car.plate[-1]}-{(car.odometer_km * 7 + car.starts * 31) % 900 + 100}"


def find_first_of_next_month(day: date) -> date:
    """Return the first day of the month after a day's."""
    return (day.replace(day=1) + timedelta(days=32)).replace(day=1)
