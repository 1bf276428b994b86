"""Generator of the company's initial states."""

import random
from datetime import datetime, timedelta

from trajsmith.environments.library import _people
from trajsmith.environments.library.car_share.rules import SLOTS, WARNINGS, compute_hourly_price
from trajsmith.environments.library.car_share.state import (
    Caller,
    CallOut,
    Car,
    CarKind,
    CarShareState,
    Damage,
    Fee,
    FeeReason,
    FeeStatus,
    Fuel,
    Member,
    Part,
    Reservation,
    ReservationStatus,
    StartFault,
    Station,
    Tariff,
)
from trajsmith.records import derive_seed

MEMBERS = {"small": 6, "medium": 24, "large": 450}
TOWNS = {"small": 1, "medium": 3, "large": 12}
TARIFFS: tuple[tuple[str, float, float, float, float], ...] = (
    ("Sunday Driver", 1.5, 5.9, 0.38, 900.0),
    ("Weekly Shop", 6.0, 4.2, 0.32, 600.0),
    ("Everyday", 12.5, 3.1, 0.27, 350.0),
    ("Second Car", 29.0, 1.9, 0.22, 150.0),
)
MODELS: tuple[tuple[str, CarKind, Fuel, int], ...] = (
    ("Wren", "city_car", "electric", 4),
    ("Robin", "city_car", "electric", 4),
    ("Linnet", "city_car", "petrol", 4),
    ("Heron", "estate", "electric", 5),
    ("Bittern", "estate", "hybrid", 5),
    ("Curlew", "estate", "petrol", 5),
    ("Pelican", "van", "electric", 3),
    ("Gannet", "van", "petrol", 3),
    ("Siskin", "city_car", "hybrid", 4),
)
IN_USE = ("Wren", "Robin", "Heron", "Pelican")
"""Models that the caller may have: they run on electricity alone."""
PLACES = ("Market Hall", "Town Baths", "Library Yard", "Old Brewery", "Rose Gardens", "Station East", "Mill Bridge")
FINES: tuple[tuple[FeeReason, float, float], ...] = (
    ("late_return", 8.0, 38.0),
    ("cleaning", 12.0, 45.0),
    ("town_fine", 20.0, 70.0),
    ("lost_card", 10.0, 15.0),
)
RED = tuple(text for text, (light, _) in WARNINGS.items() if light == "red")
AMBER = tuple(text for text, (light, _) in WARNINGS.items() if light == "amber")
PARTS: tuple[Part, ...] = ("front_bumper", "rear_bumper", "driver_side", "passenger_side", "windscreen", "wheel")


def make_state(size: str, seed: int) -> CarShareState:
    """Make a company of the given size and one of its members at a car; the same seed gives the same state."""
    rng = random.Random(derive_seed("car_share", size, seed))
    now = datetime(2026, rng.randrange(1, 13), rng.randrange(8, 25), rng.randrange(9, 16), rng.choice((10, 25, 40, 55)))
    persons = _people.people(rng, MEMBERS[size])
    towns = rng.sample([city for city, _ in _people.CITIES], TOWNS[size])
    calling = rng.randrange(len(persons))
    number = f"{rng.randrange(100, 1000)} {rng.randrange(100, 1000)}"
    state = CarShareState(
        now=now,
        seed=seed,
        user_id=f"MB{501 + calling}",
        car_in_use="",
        caller=Caller(name=persons[calling].name, membership_number=number),
    )
    for index, (name, monthly, hourly, km, excess) in enumerate(TARIFFS, 1):
        tariff_id = f"TF{index}"
        state.tariffs[tariff_id] = Tariff(
            tariff_id=tariff_id, name=name, monthly_fee=monthly, hourly_price=hourly, km_price=km, excess=excess
        )
    for index, person in enumerate(persons):
        _add_member(state, rng, person, towns[index % len(towns)], number if index == calling else None)
    for town in towns:
        _add_town(state, rng, town, per_station=4)
    _give_car(state, rng)
    for member in state.members.values():
        _add_reservations(state, rng, member)
        _add_fees(state, rng, member)
    for car in list(state.cars.values()):
        _add_past_trouble(state, rng, car)
    return state


def _number(state: CarShareState, kind: str) -> int:
    state.counters[kind] = state.counters.get(kind, 0) + 1
    return state.counters[kind]


def _add_member(
    state: CarShareState, rng: random.Random, person: _people.Person, city: str, number: str | None
) -> None:
    member_id = f"MB{500 + _number(state, 'member')}"
    today = state.now.date()
    state.members[member_id] = Member(
        member_id=member_id,
        name=person.name,
        card_number=number or f"{rng.randrange(100, 1000)} {rng.randrange(100, 1000)}",
        contact_email=person.email,
        city=city,
        tariff_id=rng.choice(list(state.tariffs)),
        next_tariff_id=None,
        member_since=today - timedelta(days=rng.randrange(400, 2600)),
        licence_valid_until=today + timedelta(days=rng.randrange(120, 2400)),
    )


def _add_town(state: CarShareState, rng: random.Random, city: str, per_station: int) -> None:
    for place in rng.sample(PLACES, 4):
        station_id = f"ST{10 + _number(state, 'station')}"
        state.stations[station_id] = Station(
            station_id=station_id, station_name=place, city=city, walk_minutes=rng.randrange(2, 17)
        )
        for model in rng.sample(MODELS, per_station):
            _add_car(state, rng, station_id, model)


def _add_car(state: CarShareState, rng: random.Random, station_id: str, model: tuple[str, CarKind, Fuel, int]) -> None:
    car_id = f"CR{100 + _number(state, 'car') * 3}"
    name, kind, fuel, seats = model
    letters = "ABCDEFGHJKLMNPRSTUVWXY"
    state.cars[car_id] = Car(
        car_id=car_id,
        car_model=name,
        plate=f"{rng.choice(letters)}{rng.choice(letters)}{rng.randrange(20, 76)}-"
        f"{''.join(rng.choice(letters) for _ in range(3))}",
        kind=kind,
        fuel=fuel,
        seats=seats,
        station_id=station_id,
        charge_percent=rng.randrange(28, 100),
        odometer_km=rng.randrange(4200, 81000),
        doors="locked",
        windscreen_code=f"{rng.choice(letters)}{rng.choice(letters)}{rng.randrange(100, 1000)}",
        warning=None,
        start_fault="none",
        starts=0,
        drive="off",
        cable_in=False,
        plugs=0,
        charging_point_works=True,
        app_connected=True,
        lock_attempts=0,
        remote_commands=0,
        charge_card=f"{rng.randrange(1000, 10000)}-{rng.randrange(100, 1000)}",
        charge_card_active=False,
        claim_form=rng.random() < 0.7,
    )


def _give_car(state: CarShareState, rng: random.Random) -> None:
    """Put the caller at a car of their town, with what is wrong with it."""
    member = state.members[state.user_id]
    cars = [
        car
        for car in state.cars.values()
        if state.stations[car.station_id].city == member.city and car.car_model in IN_USE
    ]
    car = rng.choice(cars)
    state.car_in_use = car.car_id
    faults: tuple[StartFault, ...] = ("none", "immobiliser", "immobiliser", "immobiliser", "weak_battery")
    car.start_fault = rng.choice(faults)
    car.warning = rng.choice((*RED, *RED, *AMBER, None))
    if car.start_fault == "weak_battery":
        car.warning = "Battery not charging"
    car.charge_percent = rng.randrange(9, 90)
    # Locked out without the app, unlocked without it, or as it should be: people ask to unlock only what is locked.
    car.app_connected, car.doors = rng.choice(((False, "locked"), (False, "unlocked"), (True, "unlocked")))
    car.charging_point_works = rng.random() < 0.7


def _add_reservations(state: CarShareState, rng: random.Random, member: Member) -> None:
    near = [car for car in state.cars.values() if state.stations[car.station_id].city == member.city]
    if member.member_id == state.user_id:
        start = state.now - timedelta(minutes=rng.randrange(1, 7) * 30 + state.now.minute % 30)
        end = start.replace(minute=0) + timedelta(hours=rng.randrange(5, 8))
        _add_reservation(state, member, state.cars[state.car_in_use], start, end, "running")
        if rng.random() < 0.5:  # somebody has the car next
            other = next(each for each in state.members.values() if each.member_id != member.member_id)
            after = end + timedelta(minutes=rng.choice((60, 90, 150)))
            _add_reservation(state, other, state.cars[state.car_in_use], after, after + timedelta(hours=3), "upcoming")
    others = [car for car in near if car.car_id != state.car_in_use]
    count = rng.choice((2, 3)) if member.member_id == state.user_id else rng.choice((1, 1, 2))
    for ahead in rng.sample(range(1, 22), count):
        for car in rng.sample(others, len(others)):
            slot = rng.choice(list(SLOTS.values()))
            day = state.now.date() + timedelta(days=ahead)
            start, end = datetime.combine(day, slot[0]), datetime.combine(day, slot[1])
            if not _is_taken(state, car, start, end):
                _add_reservation(state, member, car, start, end, "upcoming")
                break
    for _ in range(rng.choice((2, 3, 4))):
        day = state.now.date() - timedelta(days=rng.randrange(2, 80))
        start = datetime.combine(day, rng.choice(list(SLOTS.values()))[0])
        past: ReservationStatus = "cancelled" if rng.random() < 0.25 else "completed"
        _add_reservation(state, member, rng.choice(others), start, start + timedelta(hours=rng.randrange(2, 7)), past)


def _is_taken(state: CarShareState, car: Car, start: datetime, end: datetime) -> bool:
    return any(
        each.car_id == car.car_id and each.status == "upcoming" and each.starts_at < end and start < each.ends_at
        for each in state.reservations.values()
    )


def _add_reservation(
    state: CarShareState, member: Member, car: Car, start: datetime, end: datetime, status: ReservationStatus
) -> None:
    reservation_id = f"RS{8000 + _number(state, 'reservation') * 7}"
    hours = (end - start).total_seconds() / 3600
    state.reservations[reservation_id] = Reservation(
        reservation_id=reservation_id,
        member_id=member.member_id,
        car_id=car.car_id,
        starts_at=start,
        ends_at=end,
        status=status,
        price=round(hours * compute_hourly_price(state, member, car) / (2 if status == "cancelled" else 1), 2),
    )


def _add_fees(state: CarShareState, rng: random.Random, member: Member) -> None:
    mine = member.member_id == state.user_id
    reasons = [FINES[0], FINES[1], rng.choice(FINES[2:])] if mine else [rng.choice(FINES)]
    for index, (reason, low, high) in enumerate(reasons[: rng.choice((2, 3)) if mine else 1]):
        status: FeeStatus = "open" if mine and index < 2 and rng.random() < 0.75 else rng.choice(("open", "paid"))
        fee_id = f"FE{300 + _number(state, 'fee')}"
        state.fees[fee_id] = Fee(
            fee_id=fee_id,
            member_id=member.member_id,
            reason=reason,
            amount=round(rng.uniform(low, high) * 2) / 2,
            charged_on=state.now.date() - timedelta(days=rng.randrange(2, 60)),
            status=status,
        )


def _add_past_trouble(state: CarShareState, rng: random.Random, car: Car) -> None:
    past = [each for each in state.reservations.values() if each.car_id == car.car_id and each.status == "completed"]
    if past and rng.random() < 0.4:
        damage_id = f"DM{40 + _number(state, 'damage')}"
        state.damages[damage_id] = Damage(
            damage_id=damage_id,
            reservation_id=past[0].reservation_id,
            car_id=car.car_id,
            part=rng.choice(PARTS),
            origin=rng.choice(("found", "own")),
            reported_at=past[0].ends_at,
        )
    if past and rng.random() < 0.2:
        call_out_id = f"CO{70 + _number(state, 'call_out')}"
        cause = rng.choice(RED)
        state.call_outs[call_out_id] = CallOut(
            call_out_id=call_out_id,
            car_id=car.car_id,
            help=WARNINGS[cause][1],
            cause=cause,
            arrives_at=past[0].ends_at - timedelta(minutes=40),
        )
