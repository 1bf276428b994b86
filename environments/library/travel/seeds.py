"""Generator of the travel desk's initial states."""

import random
from datetime import date, datetime, time, timedelta

from trajsmith.environments.library import _people
from trajsmith.environments.library.travel.state import (
    Booking,
    Connection,
    Extra,
    Fare,
    Hotel,
    Mode,
    Room,
    Station,
    Stay,
    StayStatus,
    TravelClass,
    Traveller,
    TravelState,
    TripStatus,
    Voucher,
)
from trajsmith.records import derive_seed

# Travellers, mainland cities, islands, connections of each pair of cities, hotels of each city.
SIZES = {"small": (6, 4, 1, 1, 1), "medium": (34, 5, 2, 1, 2), "large": (700, 9, 3, 4, 4)}
PORTS = ("Castermouth", "Grenport", "Selbay", "Tidewell")
INLAND = ("Brindle", "Dunwold", "Elmsgate", "Farrowby", "Hallowick", "Merestone", "Oakenford", "Wrenbridge")
ISLANDS = ("Skarra", "Holmey", "Lunna", "Tarnsay")
TRAINS = ("Heron Express", "Northern Arrow", "Valley Link", "Moorland Flyer", "Coast Runner", "Amber Line")
FERRIES = ("Sea Lark", "Puffin Line", "Grey Seal", "Island Maid")
HOTELS = (
    "Lantern House",
    "Customs House",
    "Weaver's Rest",
    "Anchor House",
    "Hotel Meridian",
    "Rookery Lodge",
    "Quayside Rooms",
    "Clocktower House",
    "Garden Court",
    "Ferryman's Rest",
    "Hotel Solstice",
    "Juniper Lodge",
    "Hotel Aurora",
    "Mill House",
    "Orchard Court",
    "Sailmaker's Rooms",
    "Hotel Corona",
    "Beacon House",
    "Linden Court",
    "Shepherd's Rest",
    "Hotel Bellevue",
    "Cobble House",
    "Willow Lodge",
    "Priory Court",
    "Chapel Rooms",
    "Hotel Alder",
)
"""Names of hotels; each is given once, as long as there are enough."""
ROOMS = (("single room", 1, 62.0), ("double room", 2, 84.0), ("twin room", 2, 79.0), ("family room", 4, 118.0))
DEPARTURES = ((6, 10), (7, 5), (8, 40), (9, 25), (11, 15), (12, 50), (14, 5), (15, 30), (16, 45), (17, 20), (18, 55))
REASONS = ("a delayed train", "a cancelled crossing", "a customer survey", "a returned saver ticket", "a birthday")


def make_state(size: str, seed: int) -> TravelState:
    """A travel desk of the given size; the same seed gives the same desk."""
    travellers, mainland, islands, services, hotels = SIZES[size]
    rng = random.Random(derive_seed("travel", size, seed))
    now = datetime(2026, rng.randrange(1, 13), rng.randrange(1, 28), rng.randrange(8, 19), rng.choice((0, 10, 25, 50)))
    state = TravelState(now=now, seed=seed)
    _add_stations(state, rng, mainland, islands)
    _add_connections(state, rng, services)
    _add_hotels(state, rng, hotels)
    for person in _people.people(rng, travellers):
        traveller = Traveller(
            traveller_id=state_id(state, "traveller", "T{}", 300),
            name=person.name,
            email=person.email,
            phone=person.phone,
            tier=rng.choice(("explorer", "explorer", "voyager", "navigator")),
            points=rng.choice((120, 340, 610, 880, 1250, 2100)),
        )
        state.travellers[traveller.traveller_id] = traveller
        _add_journeys(state, rng, traveller)
        _add_vouchers(state, rng, traveller)
    return state


def state_id(state: TravelState, kind: str, pattern: str, start: int) -> str:
    """The next id of a kind, counted in the state from `start`."""
    number = state.counters[kind] = state.counters.get(kind, start) + 1
    return pattern.format(number)


def _add_stations(state: TravelState, rng: random.Random, mainland: int, islands: int) -> None:
    ports = max(1, mainland // 3)
    harbours = rng.sample(PORTS, ports) + rng.sample(ISLANDS, islands)
    for city in rng.sample(INLAND, mainland - ports) + harbours:
        suffix = "Harbour" if city in harbours else rng.choice(("Central", "Main Station", "Parkway"))
        station_id = state_id(state, "station", "ST{}", 10)
        state.stations[station_id] = Station(
            station_id=station_id, station_name=f"{city} {suffix}", city=city, step_free=rng.random() < 0.7
        )


def _mode(origin: str, target: str) -> Mode:
    if origin not in ISLANDS and target not in ISLANDS:
        return "train"
    return "ferry" if all(city in PORTS + ISLANDS for city in (origin, target)) else "rail_and_ferry"


def _add_connections(state: TravelState, rng: random.Random, services: int) -> None:
    for origin in state.stations.values():
        for target in state.stations.values():
            if origin is target:
                continue
            count = services + rng.choice((0, 0, 1))
            distance = 40 + 17 * (sum(map(ord, origin.city + target.city)) % 11)
            for number, departs in enumerate(sorted(rng.sample(DEPARTURES, count))):
                _add_connection(state, rng, (origin, target), time(*departs), distance, daily=number == 0)


def _add_connection(
    state: TravelState, rng: random.Random, ends: tuple[Station, Station], departs: time, distance: int, daily: bool
) -> None:
    origin, target = ends
    mode = _mode(origin.city, target.city)
    fare = round(7 + distance * 0.11 + rng.choice((0.0, 1.5, 3.0, 4.5)) + (6 if mode != "train" else 0), 1)
    connection_id = state_id(state, "connection", "K{}", 100)
    state.connections[connection_id] = Connection(
        connection_id=connection_id,
        mode=mode,
        departs=departs,
        service=f"{rng.choice(TRAINS if mode == 'train' else FERRIES)} {rng.randrange(11, 99)}",
        from_station_id=origin.station_id,
        to_station_id=target.station_id,
        from_city=origin.city,
        to_city=target.city,
        minutes=distance + (45 if mode != "train" else 0) + rng.choice((0, 5, 10)),
        runs="daily" if daily else rng.choice(("daily", "weekdays", "weekends")),
        standard_seats=rng.choice((24, 36, 48)),
        comfort_seats=rng.choice((6, 8, 12)),
        bicycle_places=rng.choice((2, 4, 6)),
        saver_fare=fare,
        flexible_fare=round(fare * 1.6, 1),
    )


def _add_hotels(state: TravelState, rng: random.Random, count: int) -> None:
    names = rng.sample(HOTELS, len(HOTELS))
    for city in [station.city for station in state.stations.values()]:
        wanted = count + rng.choice((0, 0, 1))
        fresh, names = names[:wanted], names[wanted:]
        for name in (*fresh, *(f"{name} {city}" for name in rng.sample(HOTELS, wanted - len(fresh)))):
            stars = rng.choice((2, 3, 3, 4))
            hotel = Hotel(
                hotel_id=state_id(state, "hotel", "H{}", 40),
                hotel_name=name,
                city=city,
                stars=stars,
                check_in_from=rng.choice(("14:00", "15:00", "16:00")),
                breakfast_price=4.5 + 2.5 * stars,
                pets_allowed=rng.random() < 0.5,
                has_parking=rng.random() < 0.6,
            )
            state.hotels[hotel.hotel_id] = hotel
            for kind, sleeps, price in rng.sample(ROOMS, rng.choice((2, 2, 3))):
                room_id = state_id(state, "room", "RM{}", 500)
                state.rooms[room_id] = Room(
                    room_id=room_id,
                    hotel_id=hotel.hotel_id,
                    title=f"{kind} at {hotel.hotel_name}",
                    sleeps=sleeps,
                    rooms=rng.choice((1, 2, 3)),
                    price_per_night=price + 11 * stars + rng.choice((-9, -4, 0, 5, 8)),
                    refundable=rng.random() < 0.7,
                )


def _add_journeys(state: TravelState, rng: random.Random, traveller: Traveller) -> None:
    """Past and coming journeys from one home city, most of them with a hotel stay.

    No two trips are on neighbouring days, and a stay is where the trip of its first day goes and over before the next.
    """
    home = rng.choice([station.city for station in state.stations.values()])
    today = state.now.date()
    for offset in sorted(rng.sample(range(-44, -2, 3), rng.choice((0, 1, 1)))):
        trip = _add_trip(state, rng, traveller, today + timedelta(days=offset), "travelled", home)
        if trip is not None and rng.random() < 0.4:
            _add_stay(state, rng, traveller, trip, rng.choice((1, 2)), "completed")
    coming = sorted(rng.sample(range(3, 36, 6), rng.choice((1, 2, 2, 3))))
    for number, offset in enumerate(coming):
        last = number == len(coming) - 1
        status: TripStatus = "cancelled" if number and rng.random() < 0.12 else "confirmed"
        trip = _add_trip(state, rng, traveller, today + timedelta(days=offset), status, home)
        if trip is None or status == "cancelled":
            continue
        if rng.random() < 0.75 or (last and not number):
            _add_stay(state, rng, traveller, trip, rng.choice((1, 2, 2, 3, 5)), "booked")
    if rng.random() < 0.25:
        _add_cancelled_stay(state, rng, traveller)


def _add_trip(
    state: TravelState, rng: random.Random, traveller: Traveller, day: date, status: TripStatus, home: str
) -> Booking | None:
    """A trip from a city to any other; None if no seats are left."""
    passengers = rng.choice((1, 1, 1, 2, 2, 3))
    extras: list[Extra] = ["quiet_seat"] if rng.random() < 0.25 else []
    connection = rng.choice([c for c in state.connections.values() if c.runs_on(day) and c.from_city == home])
    travel_class: TravelClass = rng.choice(("standard", "standard", "standard", "comfort"))
    if state.seats_left(connection, day, travel_class) < passengers:
        return None
    fare: Fare = rng.choice(("saver", "flexible"))
    booking_id = state_id(state, "booking", "B{}", 7000)
    latest = min(state.now, datetime.combine(day, time(0)))
    price = connection.price(fare, travel_class, passengers) + 4 * len(extras)
    booking = state.bookings[booking_id] = Booking(
        booking_id=booking_id,
        traveller_id=traveller.traveller_id,
        connection_id=connection.connection_id,
        travels_on=day,
        booked_at=_people.moment_before(rng, latest, 20),
        passengers=passengers,
        travel_class=travel_class,
        fare=fare,
        extras=extras,
        moved=rng.random() < 0.1,
        voucher_code=None,
        price=round(price, 2),
        status=status,
    )
    return booking


def _add_stay(
    state: TravelState, rng: random.Random, traveller: Traveller, trip: Booking, nights: int, status: StayStatus
) -> None:
    """A stay where a trip goes, from the day of its arrival, for those who travel."""
    connection = state.connections[trip.connection_id]
    check_in = connection.arrives_at(trip.travels_on).date()
    rooms = [r for r in state.rooms.values() if state.hotels[r.hotel_id].city == connection.to_city]
    fitting = [r for r in rooms if r.sleeps >= trip.passengers] or rooms
    room = rng.choice([r for r in fitting if r.refundable or rng.random() < 0.4] or fitting)
    if status == "booked" and state.count_rooms_left(room, check_in, nights) < 1:
        return
    _add_reservation(state, traveller, room, check_in, nights, min(trip.passengers, room.sleeps), status)


def _add_cancelled_stay(state: TravelState, rng: random.Random, traveller: Traveller) -> None:
    room = rng.choice(list(state.rooms.values()))
    check_in = state.now.date() + timedelta(days=rng.randrange(42, 56))
    _add_reservation(state, traveller, room, check_in, rng.choice((1, 2, 3)), 1, "cancelled")


def _add_reservation(
    state: TravelState, traveller: Traveller, room: Room, check_in: date, nights: int, guests: int, status: StayStatus
) -> None:
    reservation_id = state_id(state, "stay", "S{}", 2000)
    state.stays[reservation_id] = Stay(
        reservation_id=reservation_id,
        traveller_id=traveller.traveller_id,
        room_id=room.room_id,
        check_in=check_in,
        nights=nights,
        guests=guests,
        total=round(nights * room.price_per_night, 2),
        status=status,
    )


def _add_vouchers(state: TravelState, rng: random.Random, traveller: Traveller) -> None:
    for balance in rng.sample((10.0, 15.0, 25.0, 40.0), rng.choice((1, 1, 2))):
        code = state_id(state, "voucher", "GO-{}" + rng.choice("KMRTX"), 4100)
        days = rng.randrange(5, 120) if rng.random() < 0.85 else -rng.randrange(3, 30)
        state.vouchers[code] = Voucher(
            voucher_code=code,
            traveller_id=traveller.traveller_id,
            issued_for=rng.choice(REASONS),
            balance=balance,
            valid_until=state.now.date() + timedelta(days=days),
        )
