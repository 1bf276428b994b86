"""Desk of a rail and ferry company that also books hotel rooms."""

from datetime import date, timedelta
from typing import Annotated

from pydantic import Field

from trajsmith.environments.library.travel.seeds import make_state
from trajsmith.environments.library.travel.state import (
    Booking,
    Connection,
    Extra,
    Fare,
    Hotel,
    Payment,
    Stay,
    TravelClass,
    Traveller,
    TravelState,
    TripStatus,
)
from trajsmith.environments.library.travel.views import (
    DepartureRow,
    RoomRow,
    StayRow,
    TripDetails,
    TripRefund,
    TripRow,
    VoucherRow,
    VoucherUse,
    departure_row,
    room_row,
    stay_row,
    trip_details,
    trip_row,
    voucher_row,
)
from trajsmith.environments.native import Environment, tool
from trajsmith.records import ConfirmationRule, ToolError

SALE_DAYS = 60
UPGRADE_POINTS = 300
EXTRA_PRICES: dict[Extra, float] = {"bicycle": 6.0, "dog": 9.0, "hot_meal": 12.0, "quiet_seat": 4.0}
DAY = timedelta(days=1)


class Travel(Environment[TravelState]):
    """Desk of a rail and ferry company: timetable, trips, hotel rooms and vouchers of its travellers."""

    domain = "travel/rail_and_hotel"
    policy = """
    # Rules of the travel desk

    1. Departures are sold from tomorrow until 60 days ahead, for at most 6 passengers, while seats of the class are
       left. Nobody can hold two trips that overlap in time.
    2. Only confirmed trips can be changed. Flexible trips can be moved to another day until 2 hours before departure,
       at no cost. Saver trips can be moved once, until 3 days before departure, for £8 per passenger; navigator
       members pay no fee.
    3. Flexible trips are refunded in full until 24 hours before departure; saver trips are refunded by half until
       7 days before. After that a trip cannot be cancelled. A trip earns a point per pound; the points of a cancelled
       trip are taken off again.
    4. An extra can be added once per trip, until departure: bicycles (£6) while places are left, dogs (£9) in the
       standard class only, quiet seats (£4), hot meals (£12 per passenger) until the day before.
    5. Trips without a dog can be upgraded to comfort while seats are left, for half the fare or 300 points per
       passenger.
    6. A voucher belongs to one traveller, is used before its last day, and only one is accepted per trip. What is left
       stays on the voucher.
    7. Rooms are reserved for 1 to 14 nights, from tomorrow until 60 days ahead, for no more guests than they sleep and
       while one is free in every night.
    8. Stays in refundable rooms can be cancelled until 2 days before check-in, for a full refund; other stays cannot be
       cancelled.
    """

    @classmethod
    def seed_state(cls, size: str, seed: int) -> TravelState:
        return make_state(size, seed)

    @tool(effect="read")
    def find_traveller(self, email: str) -> Traveller:
        """Find the traveller account that belongs to an email address, with its tier and points.

        Args:
            email: Email address of the account.
        """
        for traveller in self.state.travellers.values():
            if traveller.email == email.strip().lower():
                return traveller
        raise ToolError(f"no traveller with email {email}")

    @tool(effect="read")
    def list_trips(self, traveller_id: str, status: TripStatus | None = None) -> list[TripRow]:
        """List the trips of a traveller with fare and the fee for moving them, latest departure first, at most 8.

        Args:
            traveller_id: Traveller account.
            status: Only trips in this status.
        """
        self.lookup(self.state.travellers, traveller_id, "traveller")
        trips = [
            trip_row(self.state, booking)
            for booking in self.state.bookings.values()
            if booking.traveller_id == traveller_id and status in (None, booking.status)
        ]
        return sorted(trips, key=lambda row: row.departs_at, reverse=True)[:8]

    @tool(effect="read")
    def get_trip(self, booking_id: str) -> TripDetails:
        """Show the stations, times, fare and extras of a trip.

        Args:
            booking_id: Booking of the trip.
        """
        return trip_details(self.state, self.lookup(self.state.bookings, booking_id, "booking"))

    @tool(effect="read")
    def search_connections(self, from_city: str, to_city: str, travel_date: date) -> list[DepartureRow]:
        """Search the trains and ferries between two cities on one day, earliest first, at most 8.

        Args:
            from_city: City or island where the trip starts.
            to_city: City or island where the trip ends.
            travel_date: Day of departure, from tomorrow until 60 days ahead.
        """
        self._check_on_sale(travel_date)
        known = {station.city.lower(): station.city for station in self.state.stations.values()}
        ends = [known.get(city.strip().lower()) for city in (from_city, to_city)]
        if None in ends or ends[0] == ends[1]:
            raise ToolError(f"no connections from {from_city} to {to_city}; cities served: {', '.join(known.values())}")
        connections = [
            departure_row(self.state, connection, travel_date)
            for connection in self.state.connections.values()
            if [connection.from_city, connection.to_city] == ends and connection.runs_on(travel_date)
        ]
        return sorted(connections, key=lambda row: row.departs_at)[:8]

    @tool(
        effect="write",
        confirm=ConfirmationRule(arguments={"fare": ("saver",)}, because="a saver ticket is refunded by half at most"),
    )
    def book_trip(
        self,
        traveller_id: str,
        departure_id: str,
        fare: Fare,
        passengers: Annotated[int, Field(ge=1, le=6, examples=[1, 2, 3, 4])] = 1,
        travel_class: TravelClass = "standard",
    ) -> TripDetails:
        """Book seats on a departure for a traveller and charge the card on file.

        Args:
            traveller_id: Traveller account.
            departure_id: Departure, as found in the timetable.
            fare: Saver is cheaper; flexible can be moved and refunded more freely.
            passengers: How many people travel.
            travel_class: Class of the seats.
        """
        traveller = self.lookup(self.state.travellers, traveller_id, "traveller")
        connection, day = self._departure(departure_id)
        self._check_on_sale(day)
        self._check_seats(connection, day, travel_class, passengers)
        self._check_overlap(traveller_id, connection, day)
        booking = Booking(
            booking_id=self.new_id("booking", "B{}"),
            traveller_id=traveller_id,
            connection_id=connection.connection_id,
            travels_on=day,
            booked_at=self.state.now,
            passengers=passengers,
            travel_class=travel_class,
            fare=fare,
            extras=[],
            moved=False,
            voucher_code=None,
            price=connection.price(fare, travel_class, passengers),
            status="confirmed",
        )
        self.state.bookings[booking.booking_id] = booking
        traveller.points += int(booking.price)
        return trip_details(self.state, booking)

    @tool(
        effect="write",
        confirm=ConfirmationRule(
            always=True, because="the seats on the old day are given up, and saver trips pay a fee"
        ),
    )
    def move_trip(self, booking_id: str, new_date: date) -> TripDetails:
        """Move a trip to another day, on the same train or ferry.

        Args:
            booking_id: Booking of the trip.
            new_date: New day of departure.
        """
        booking, connection, leaves_in = self._open_trip(booking_id)
        if booking.fare == "saver" and (booking.moved or leaves_in < 3 * DAY):
            reason = "has been moved before" if booking.moved else "departs in less than 3 days"
            raise ToolError(f"this saver trip {reason} and can no longer be moved")
        if leaves_in < timedelta(hours=2):
            raise ToolError("this trip departs in less than 2 hours and can no longer be moved")
        if new_date == booking.travels_on:
            raise ToolError(f"the trip is already on {new_date}")
        self._check_on_sale(new_date)
        if not connection.runs_on(new_date):
            raise ToolError(f"{connection.service} runs on {connection.runs} only")
        self._check_seats(connection, new_date, booking.travel_class, booking.passengers)
        if "bicycle" in booking.extras and self.state.bicycles_left(connection, new_date) < 1:
            raise ToolError(f"no bicycle places are left on {new_date}")
        self._check_overlap(booking.traveller_id, connection, new_date, but=booking_id)
        booking.price = round(booking.price + self.state.compute_move_fee(booking), 2)
        booking.travels_on, booking.moved = new_date, True
        return trip_details(self.state, booking)

    @tool(
        effect="write",
        destructive=True,
        confirm=ConfirmationRule(always=True, because="a cancelled trip cannot be brought back"),
    )
    def cancel_trip(self, booking_id: str) -> TripRefund:
        """Cancel a trip and refund what its fare allows.

        Args:
            booking_id: Booking of the trip.
        """
        booking, connection, leaves_in = self._open_trip(booking_id)
        if booking.fare == "saver" and leaves_in < 7 * DAY:
            raise ToolError("saver trips can be cancelled only until 7 days before departure")
        if leaves_in < DAY:
            raise ToolError("flexible trips can be cancelled only until 24 hours before departure")
        refund = round(booking.price * (0.5 if booking.fare == "saver" else 1), 2)
        traveller = self.state.travellers[booking.traveller_id]
        traveller.points = max(0, traveller.points - int(booking.price))
        booking.status = "cancelled"
        return TripRefund(
            booking_id=booking_id,
            from_city=connection.from_city,
            to_city=connection.to_city,
            refund=refund,
            status=booking.status,
        )

    @tool(
        effect="write",
        confirm=ConfirmationRule(
            arguments={"extra": ("dog", "hot_meal")}, because="they cost more and cannot be taken off again"
        ),
    )
    def add_extra(self, booking_id: str, extra: Extra) -> TripDetails:
        """Add an extra to a trip: bicycle £6, dog £9, hot meal £12 per passenger, quiet seat £4.

        Args:
            booking_id: Booking of the trip.
            extra: What to add.
        """
        booking, connection, leaves_in = self._open_trip(booking_id)
        if extra in booking.extras:
            raise ToolError(f"the trip already has the extra {extra.replace('_', ' ')}")
        if extra == "bicycle" and self.state.bicycles_left(connection, booking.travels_on) < 1:
            raise ToolError(f"no bicycle places are left on {connection.service} on {booking.travels_on}")
        if extra == "dog" and booking.travel_class == "comfort":
            raise ToolError("dogs can travel in the standard class only")
        if extra == "hot_meal" and leaves_in < DAY:
            raise ToolError("hot meals can be ordered only until 24 hours before departure")
        count = booking.passengers if extra == "hot_meal" else 1
        booking.extras.append(extra)
        booking.price = round(booking.price + EXTRA_PRICES[extra] * count, 2)
        return trip_details(self.state, booking)

    @tool(
        effect="write",
        confirm=ConfirmationRule(always=True, because="the card or the points are charged at once and not given back"),
    )
    def upgrade_trip(self, booking_id: str, pay_with: Payment) -> TripDetails:
        """Upgrade a trip from the standard to the comfort class.

        Args:
            booking_id: Booking of the trip.
            pay_with: The card on file, or 300 points per passenger.
        """
        booking, connection, _ = self._open_trip(booking_id)
        if booking.travel_class == "comfort":
            raise ToolError("the trip is already in the comfort class")
        if "dog" in booking.extras:
            raise ToolError("trips with a dog cannot be upgraded to the comfort class")
        self._check_seats(connection, booking.travels_on, "comfort", booking.passengers)
        traveller = self.state.travellers[booking.traveller_id]
        points = UPGRADE_POINTS * booking.passengers
        if pay_with == "points" and traveller.points < points:
            raise ToolError(f"the upgrade costs {points} points and only {traveller.points} are left")
        if pay_with == "points":
            traveller.points -= points
        else:
            full = connection.price(booking.fare, "comfort", booking.passengers)
            surcharge = full - connection.price(booking.fare, "standard", booking.passengers)
            booking.price = round(booking.price + surcharge, 2)
        booking.travel_class = "comfort"
        return trip_details(self.state, booking)

    @tool(effect="read")
    def list_vouchers(self, traveller_id: str) -> list[VoucherRow]:
        """List the vouchers of a traveller that are still valid and have money on them, longest first, at most 8.

        Args:
            traveller_id: Traveller account.
        """
        self.lookup(self.state.travellers, traveller_id, "traveller")
        own = [voucher for voucher in self.state.vouchers.values() if voucher.traveller_id == traveller_id]
        vouchers = sorted(own, key=lambda voucher: voucher.valid_until, reverse=True)
        today = self.state.now.date()
        return [voucher_row(v) for v in vouchers if v.balance > 0 and v.valid_until >= today][:8]

    @tool(effect="write", confirm="never")
    def use_voucher(self, booking_id: str, voucher_code: str) -> VoucherUse:
        """Lower the price of a coming trip with a voucher; the difference goes back to the card.

        Args:
            booking_id: Booking of the trip.
            voucher_code: Code of the voucher.
        """
        booking, _, _ = self._open_trip(booking_id)
        voucher = self.lookup(self.state.vouchers, voucher_code.strip().upper(), "voucher")
        if voucher.traveller_id != booking.traveller_id:
            raise ToolError(f"voucher {voucher.voucher_code} belongs to another traveller")
        if voucher.valid_until < self.state.now.date():
            raise ToolError(f"voucher {voucher.voucher_code} ended on {voucher.valid_until}")
        if booking.voucher_code is not None:
            raise ToolError(f"the voucher {booking.voucher_code} has already been used for this trip")
        used = min(voucher.balance, booking.price)
        if used <= 0:
            raise ToolError("there is nothing left to pay with this voucher")
        voucher.balance = round(voucher.balance - used, 2)
        booking.price, booking.voucher_code = round(booking.price - used, 2), voucher.voucher_code
        return VoucherUse(
            booking_id=booking_id,
            voucher_code=voucher.voucher_code,
            amount_used=used,
            balance_left=voucher.balance,
            new_price=booking.price,
        )

    @tool(effect="read")
    def search_rooms(
        self,
        city: str,
        guests: Annotated[int, Field(ge=1, le=4, examples=[1, 2, 3])] = 1,
        refundable_only: bool = False,
    ) -> list[RoomRow]:
        """Search hotel rooms in a city, cheapest first, at most 8, whether or not they are free on a certain day.

        Args:
            city: City or island of the hotel.
            guests: How many people the room must sleep.
            refundable_only: Leave out rooms that cannot be cancelled.
        """
        rooms = [
            room_row(self.state, room)
            for room in self.state.rooms.values()
            if self.state.hotels[room.hotel_id].city.lower() == city.strip().lower()
            and room.sleeps >= guests
            and (room.refundable or not refundable_only)
        ]
        return sorted(rooms, key=lambda row: row.price_per_night)[:8]

    @tool(effect="read")
    def get_hotel(self, hotel_id: str) -> Hotel:
        """Show stars, breakfast price, pets, parking and check-in time of a hotel.

        Args:
            hotel_id: Hotel.
        """
        return self.lookup(self.state.hotels, hotel_id, "hotel")

    @tool(
        effect="write",
        confirm=ConfirmationRule(shown={"refundable": (False,)}, because="the room cannot be cancelled afterwards"),
    )
    def reserve_room(
        self,
        traveller_id: str,
        room_id: str,
        arrival_date: date,
        nights: Annotated[int, Field(ge=1, le=14, examples=[1, 2, 3, 4, 7])],
        guests: Annotated[int, Field(ge=1, le=4, examples=[1, 2, 3])] = 1,
    ) -> StayRow:
        """Reserve a hotel room for a traveller.

        Args:
            traveller_id: Traveller account.
            room_id: Kind of room to reserve.
            arrival_date: Day of arrival, from tomorrow until 60 days ahead.
            nights: Number of nights.
            guests: How many people stay.
        """
        self.lookup(self.state.travellers, traveller_id, "traveller")
        room = self.lookup(self.state.rooms, room_id, "room")
        self._check_on_sale(arrival_date)
        if guests > room.sleeps:
            raise ToolError(f"the {room.title} sleeps only {room.sleeps}")
        if self.state.count_rooms_left(room, arrival_date, nights) < 1:
            raise ToolError(f"the {room.title} is not free for all nights from {arrival_date}")
        stay = Stay(
            reservation_id=self.new_id("stay", "S{}"),
            traveller_id=traveller_id,
            room_id=room_id,
            check_in=arrival_date,
            nights=nights,
            guests=guests,
            total=round(nights * room.price_per_night, 2),
            status="booked",
        )
        self.state.stays[stay.reservation_id] = stay
        return stay_row(self.state, stay)

    @tool(effect="read")
    def list_stays(self, traveller_id: str) -> list[StayRow]:
        """List the hotel stays of a traveller, latest first, at most 8.

        Args:
            traveller_id: Traveller account.
        """
        self.lookup(self.state.travellers, traveller_id, "traveller")
        stays = [stay_row(self.state, stay) for stay in self.state.stays.values() if stay.traveller_id == traveller_id]
        return sorted(stays, key=lambda row: row.check_in, reverse=True)[:8]

    @tool(
        effect="write",
        destructive=True,
        confirm=ConfirmationRule(always=True, because="the room may be gone when it is wanted again"),
    )
    def cancel_stay(self, reservation_id: str) -> StayRow:
        """Cancel a hotel stay and refund it in full.

        Args:
            reservation_id: Reservation of the stay.
        """
        stay = self.lookup(self.state.stays, reservation_id, "reservation")
        if stay.status != "booked":
            raise ToolError(f"the stay is {stay.status}, and only booked stays can be cancelled")
        if not self.state.rooms[stay.room_id].refundable:
            raise ToolError("the room is not refundable, so the stay cannot be cancelled")
        if stay.check_in - self.state.now.date() < 2 * DAY:
            raise ToolError("stays can be cancelled only until 2 days before check-in")
        stay.status = "cancelled"
        return stay_row(self.state, stay)

    def _check_on_sale(self, day: date) -> None:
        today = self.state.now.date()
        if day <= today:
            raise ToolError(f"{day} is not on sale any more")
        if day > today + SALE_DAYS * DAY:
            raise ToolError(f"{day} is more than {SALE_DAYS} days ahead and not on sale yet")

    def _departure(self, departure_id: str) -> tuple[Connection, date]:
        connection_id, _, text = departure_id.partition("/")
        connection = self.state.connections.get(connection_id)
        try:
            day = date.fromisoformat(text)
        except ValueError:
            connection = None
        if connection is None or not connection.runs_on(day):
            raise ToolError(f"departure not found: {departure_id}")
        return connection, day

    def _open_trip(self, booking_id: str) -> tuple[Booking, Connection, timedelta]:
        """A confirmed trip, its connection, and the time until it departs."""
        booking = self.lookup(self.state.bookings, booking_id, "booking")
        if booking.status != "confirmed":
            raise ToolError(f"{_say_over(booking.status)}, and only confirmed trips can be changed")
        connection = self.state.connections[booking.connection_id]
        leaves_in = connection.departs_at(booking.travels_on) - self.state.now
        if leaves_in <= timedelta(0):
            raise ToolError("the trip has already departed")
        return booking, connection, leaves_in

    def _check_seats(self, connection: Connection, day: date, travel_class: TravelClass, passengers: int) -> None:
        left = self.state.seats_left(connection, day, travel_class)
        if left < passengers:
            raise ToolError(f"only {left} {travel_class} seats are left on {connection.service} on {day}")

    def _check_overlap(self, traveller_id: str, connection: Connection, day: date, but: str = "") -> None:
        start, end = connection.departs_at(day), connection.arrives_at(day)
        for other in self.state.bookings.values():
            if (other.traveller_id, other.status) != (traveller_id, "confirmed") or other.booking_id == but:
                continue
            ride = self.state.connections[other.connection_id]
            if ride.departs_at(other.travels_on) < end and start < ride.arrives_at(other.travels_on):
                raise ToolError(f"the traveller is on the way to {ride.to_city} at that time")


def _say_over(status: TripStatus) -> str:
    return "the trip has been travelled" if status == "travelled" else f"the trip is {status}"


__all__ = ["Travel"]
