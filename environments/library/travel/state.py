"""What the travel desk knows: travellers, stations, connections, trips, hotels, rooms, stays, vouchers."""

from datetime import date, datetime, time, timedelta
from typing import Literal

from trajsmith.environments.native import EnvironmentState, StateModel

Tier = Literal["explorer", "voyager", "navigator"]
Mode = Literal["train", "ferry", "rail_and_ferry"]
Runs = Literal["daily", "weekdays", "weekends"]
TravelClass = Literal["standard", "comfort"]
Fare = Literal["saver", "flexible"]
Extra = Literal["bicycle", "dog", "hot_meal", "quiet_seat"]
TripStatus = Literal["confirmed", "travelled", "cancelled"]
StayStatus = Literal["booked", "completed", "cancelled"]
Payment = Literal["card", "points"]

COMFORT_SURCHARGE = 0.5
"""Part of the fare that the comfort class costs on top."""
MOVE_FEE = 8.0
"""What moving a saver trip costs for each passenger, in pounds."""


class Traveller(StateModel):
    traveller_id: str
    name: str
    email: str
    phone: str
    tier: Tier
    points: int


class Station(StateModel):
    station_id: str
    station_name: str
    city: str
    step_free: bool


class Connection(StateModel):
    """A service of the timetable; it departs once on each day that it runs."""

    connection_id: str
    service: str
    mode: Mode
    from_station_id: str
    to_station_id: str
    from_city: str
    to_city: str
    departs: time
    minutes: int
    runs: Runs
    standard_seats: int
    comfort_seats: int
    bicycle_places: int
    saver_fare: float
    flexible_fare: float

    def runs_on(self, day: date) -> bool:
        weekend = day.weekday() >= 5
        return self.runs == "daily" or weekend == (self.runs == "weekends")

    def departs_at(self, day: date) -> datetime:
        return datetime.combine(day, self.departs)

    def arrives_at(self, day: date) -> datetime:
        return self.departs_at(day) + timedelta(minutes=self.minutes)

    def seats(self, travel_class: TravelClass) -> int:
        return self.standard_seats if travel_class == "standard" else self.comfort_seats

    def price(self, fare: Fare, travel_class: TravelClass, passengers: int) -> float:
        base = self.saver_fare if fare == "saver" else self.flexible_fare
        return round(base * passengers * (1 + COMFORT_SURCHARGE * (travel_class == "comfort")), 2)


class Booking(StateModel):
    booking_id: str
    traveller_id: str
    connection_id: str
    travels_on: date
    booked_at: datetime
    passengers: int
    travel_class: TravelClass
    fare: Fare
    extras: list[Extra]
    moved: bool
    voucher_code: str | None
    price: float
    status: TripStatus


class Hotel(StateModel):
    hotel_id: str
    hotel_name: str
    city: str
    stars: int
    check_in_from: str
    breakfast_price: float
    pets_allowed: bool
    has_parking: bool


class Room(StateModel):
    """An offer of a hotel: all rooms of one kind at one price."""

    room_id: str
    hotel_id: str
    title: str
    sleeps: int
    rooms: int
    price_per_night: float
    refundable: bool


class Stay(StateModel):
    reservation_id: str
    traveller_id: str
    room_id: str
    check_in: date
    nights: int
    guests: int
    total: float
    status: StayStatus

    @property
    def check_out(self) -> date:
        return self.check_in + timedelta(days=self.nights)


class Voucher(StateModel):
    voucher_code: str
    traveller_id: str
    issued_for: str
    balance: float
    valid_until: date


class TravelState(EnvironmentState):
    travellers: dict[str, Traveller] = {}
    stations: dict[str, Station] = {}
    connections: dict[str, Connection] = {}
    bookings: dict[str, Booking] = {}
    hotels: dict[str, Hotel] = {}
    rooms: dict[str, Room] = {}
    stays: dict[str, Stay] = {}
    vouchers: dict[str, Voucher] = {}

    def on_board(self, connection_id: str, day: date) -> list[Booking]:
        """The confirmed bookings of one departure."""
        return [
            booking
            for booking in self.bookings.values()
            if (booking.connection_id, booking.travels_on, booking.status) == (connection_id, day, "confirmed")
        ]

    def seats_left(self, connection: Connection, day: date, travel_class: TravelClass) -> int:
        taken = (b for b in self.on_board(connection.connection_id, day) if b.travel_class == travel_class)
        return connection.seats(travel_class) - sum(booking.passengers for booking in taken)

    def compute_move_fee(self, booking: Booking) -> float:
        """Compute what moving a trip to another day costs."""
        free = booking.fare == "flexible" or self.travellers[booking.traveller_id].tier == "navigator"
        return 0.0 if free else round(MOVE_FEE * booking.passengers, 2)

    def bicycles_left(self, connection: Connection, day: date) -> int:
        taken = [b for b in self.on_board(connection.connection_id, day) if "bicycle" in b.extras]
        return connection.bicycle_places - len(taken)

    def count_rooms_left(self, room: Room, check_in: date, nights: int) -> int:
        """Count the rooms of this kind that are free in every one of the nights."""
        check_out = check_in + timedelta(days=nights)
        taken = [
            stay
            for stay in self.stays.values()
            if stay.room_id == room.room_id
            and stay.status == "booked"
            and stay.check_in < check_out
            and check_in < stay.check_out
        ]
        busiest = max(
            (sum(s.check_in <= check_in + timedelta(days=n) < s.check_out for s in taken) for n in range(nights)),
            default=0,
        )
        return room.rooms - busiest
