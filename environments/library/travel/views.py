"""What the tools of the travel desk return: rows of lists and details, put together from the state."""

from datetime import date, datetime

from trajsmith.environments.library.travel.state import (
    Booking,
    Connection,
    Extra,
    Fare,
    Mode,
    Room,
    Stay,
    StayStatus,
    TravelClass,
    TravelState,
    TripStatus,
    Voucher,
)
from trajsmith.environments.native import StateModel


class TripRow(StateModel):
    booking_id: str
    from_city: str
    to_city: str
    departs_at: datetime
    passengers: int
    fare: Fare
    price: float
    move_fee: float
    status: TripStatus


class TripDetails(StateModel):
    booking_id: str
    service: str
    mode: Mode
    from_station: str
    to_station: str
    departs_at: datetime
    arrives_at: datetime
    passengers: int
    travel_class: TravelClass
    fare: Fare
    extras: list[Extra]
    price: float
    status: TripStatus


class DepartureRow(StateModel):
    departure_id: str
    service: str
    mode: Mode
    departs_at: datetime
    arrives_at: datetime
    saver_fare: float
    flexible_fare: float
    standard_seats_left: int
    comfort_seats_left: int


class TripRefund(StateModel):
    booking_id: str
    from_city: str
    to_city: str
    refund: float
    status: TripStatus


class VoucherRow(StateModel):
    voucher_code: str
    issued_for: str
    balance: float
    valid_until: date


class VoucherUse(StateModel):
    booking_id: str
    voucher_code: str
    amount_used: float
    balance_left: float
    new_price: float


class RoomRow(StateModel):
    room_id: str
    hotel_id: str
    hotel_name: str
    title: str
    stars: int
    sleeps: int
    price_per_night: float
    refundable: bool


class StayRow(StateModel):
    reservation_id: str
    hotel_id: str
    hotel_name: str
    city: str
    title: str
    check_in: date
    check_out: date
    guests: int
    total: float
    refundable: bool
    status: StayStatus


def trip_row(state: TravelState, booking: Booking) -> TripRow:
    connection = state.connections[booking.connection_id]
    return TripRow(
        booking_id=booking.booking_id,
        from_city=connection.from_city,
        to_city=connection.to_city,
        departs_at=connection.departs_at(booking.travels_on),
        passengers=booking.passengers,
        fare=booking.fare,
        price=booking.price,
        move_fee=state.compute_move_fee(booking),
        status=booking.status,
    )


def trip_details(state: TravelState, booking: Booking) -> TripDetails:
    connection = state.connections[booking.connection_id]
    stations = state.stations
    return TripDetails(
        booking_id=booking.booking_id,
        service=connection.service,
        mode=connection.mode,
        from_station=stations[connection.from_station_id].station_name,
        to_station=stations[connection.to_station_id].station_name,
        departs_at=connection.departs_at(booking.travels_on),
        arrives_at=connection.arrives_at(booking.travels_on),
        passengers=booking.passengers,
        travel_class=booking.travel_class,
        fare=booking.fare,
        extras=booking.extras,
        price=booking.price,
        status=booking.status,
    )


def departure_row(state: TravelState, connection: Connection, day: date) -> DepartureRow:
    return DepartureRow(
        departure_id=f"{connection.connection_id}/{day}",
        service=connection.service,
        mode=connection.mode,
        departs_at=connection.departs_at(day),
        arrives_at=connection.arrives_at(day),
        saver_fare=connection.saver_fare,
        flexible_fare=connection.flexible_fare,
        standard_seats_left=state.seats_left(connection, day, "standard"),
        comfort_seats_left=state.seats_left(connection, day, "comfort"),
    )


def room_row(state: TravelState, room: Room) -> RoomRow:
    hotel = state.hotels[room.hotel_id]
    return RoomRow(
        room_id=room.room_id,
        hotel_id=hotel.hotel_id,
        hotel_name=hotel.hotel_name,
        title=room.title,
        stars=hotel.stars,
        sleeps=room.sleeps,
        price_per_night=room.price_per_night,
        refundable=room.refundable,
    )


def stay_row(state: TravelState, stay: Stay) -> StayRow:
    room = state.rooms[stay.room_id]
    hotel = state.hotels[room.hotel_id]
    return StayRow(
        reservation_id=stay.reservation_id,
        hotel_id=hotel.hotel_id,
        hotel_name=hotel.hotel_name,
        city=hotel.city,
        title=room.title,
        check_in=stay.check_in,
        check_out=stay.check_out,
        guests=stay.guests,
        total=stay.total,
        refundable=room.refundable,
        status=stay.status,
    )


def voucher_row(voucher: Voucher) -> VoucherRow:
    return VoucherRow(
        voucher_code=voucher.voucher_code,
        issued_for=voucher.issued_for,
        balance=voucher.balance,
        valid_until=voucher.valid_until,
    )
