"""The travel desk: every rule of its policy binds, and a booking can be made, changed and cancelled."""

from datetime import timedelta

import pytest

from trajsmith.environments.library.travel import Travel
from trajsmith.environments.library.travel.state import Booking, Connection, Room, Traveller

DAY = timedelta(days=1)


@pytest.fixture
def desk() -> Travel:
    """A desk whose first traveller has no trips and no stays."""
    travel = Travel(Travel.seed_state("small", 1))
    travel.state.bookings.clear()
    travel.state.stays.clear()
    return travel


def traveller(desk: Travel) -> Traveller:
    return next(iter(desk.state.travellers.values()))


def daily(desk: Travel) -> Connection:
    return next(connection for connection in desk.state.connections.values() if connection.runs == "daily")


def departure(desk: Travel, days: int) -> str:
    return f"{daily(desk).connection_id}/{desk.state.now.date() + days * DAY}"


def book(desk: Travel, days: int = 10, fare: str = "flexible", **more: object) -> Booking:
    given = {"traveller_id": traveller(desk).traveller_id, "departure_id": departure(desk, days), "fare": fare, **more}
    result = desk.call("book_trip", given)
    assert result.ok, result.error
    return desk.state.bookings[result.content["booking_id"]]


def reason(desk: Travel, tool: str, **arguments: object) -> str:
    before = desk.dump()
    result = desk.call(tool, arguments)
    assert result.error == "refused"
    assert desk.dump() == before
    return str(result.content["error"])


def test_departures_are_sold_in_the_window_and_while_seats_last(desk: Travel) -> None:
    given = {"traveller_id": traveller(desk).traveller_id, "fare": "saver"}
    assert "not on sale" in reason(desk, "book_trip", departure_id=departure(desk, 0), **given)
    assert "not on sale" in reason(desk, "book_trip", departure_id=departure(desk, 61), **given)
    daily(desk).comfort_seats = 2
    refused = reason(desk, "book_trip", departure_id=departure(desk, 5), travel_class="comfort", passengers=3, **given)
    assert "only 2 comfort seats" in refused
    assert book(desk, 5, travel_class="comfort", passengers=2).status == "confirmed"


def test_trips_of_one_traveller_do_not_overlap(desk: Travel) -> None:
    book(desk, 5)
    given = {"traveller_id": traveller(desk).traveller_id, "fare": "saver"}
    assert "on the way to" in reason(desk, "book_trip", departure_id=departure(desk, 5), **given)
    assert book(desk, 6).status == "confirmed"


def test_saver_trips_move_once_and_early(desk: Travel) -> None:
    traveller(desk).tier = "explorer"
    today = desk.state.now.date()
    trip = book(desk, 10, "saver", passengers=2)
    before = trip.price
    assert desk.call("move_trip", {"booking_id": trip.booking_id, "new_date": str(today + 11 * DAY)}).ok
    assert desk.state.bookings[trip.booking_id].price == pytest.approx(before + 16)
    again = reason(desk, "move_trip", booking_id=trip.booking_id, new_date=str(today + 12 * DAY))
    assert "moved before" in again
    late = book(desk, 2, "saver")
    assert "less than 3 days" in reason(desk, "move_trip", booking_id=late.booking_id, new_date=str(today + 8 * DAY))
    flexible = book(desk, 3)
    price = flexible.price
    assert desk.call("move_trip", {"booking_id": flexible.booking_id, "new_date": str(today + 4 * DAY)}).ok
    assert desk.state.bookings[flexible.booking_id].price == price


def test_refunds_follow_the_fare(desk: Travel) -> None:
    assert "7 days before" in reason(desk, "cancel_trip", booking_id=book(desk, 5, "saver").booking_id)
    early = book(desk, 20, "saver")
    assert desk.call("cancel_trip", {"booking_id": early.booking_id}).content["refund"] == round(early.price / 2, 2)
    flexible = book(desk, 6)
    assert desk.call("cancel_trip", {"booking_id": flexible.booking_id}).content["refund"] == flexible.price
    assert "is cancelled" in reason(desk, "cancel_trip", booking_id=flexible.booking_id)


def test_deadlines_close_before_departure(desk: Travel) -> None:
    trip = book(desk, 5)
    new_date = str(desk.state.now.date() + 9 * DAY)
    desk.state.now = daily(desk).departs_at(trip.travels_on) - timedelta(hours=1)
    assert "less than 2 hours" in reason(desk, "move_trip", booking_id=trip.booking_id, new_date=new_date)
    assert "24 hours before" in reason(desk, "cancel_trip", booking_id=trip.booking_id)
    assert "24 hours before" in reason(desk, "add_extra", booking_id=trip.booking_id, extra="hot_meal")
    desk.state.now -= timedelta(hours=2)
    assert desk.call("move_trip", {"booking_id": trip.booking_id, "new_date": new_date}).ok


def test_extras_have_limits(desk: Travel) -> None:
    daily(desk).bicycle_places = 1
    first = book(desk, 5, travel_class="comfort")
    assert desk.call("add_extra", {"booking_id": first.booking_id, "extra": "bicycle"}).ok
    assert "already has" in reason(desk, "add_extra", booking_id=first.booking_id, extra="bicycle")
    assert "standard class only" in reason(desk, "add_extra", booking_id=first.booking_id, extra="dog")
    other = list(desk.state.travellers)[1]
    second = book(desk, 5, traveller_id=other)
    assert "no bicycle places" in reason(desk, "add_extra", booking_id=second.booking_id, extra="bicycle")
    assert desk.call("add_extra", {"booking_id": second.booking_id, "extra": "dog"}).ok


def test_upgrades_need_points_or_money_and_no_dog(desk: Travel) -> None:
    trip = book(desk, 5, passengers=2)
    desk.call("add_extra", {"booking_id": trip.booking_id, "extra": "dog"})
    assert "with a dog" in reason(desk, "upgrade_trip", booking_id=trip.booking_id, pay_with="card")
    plain = book(desk, 8, passengers=2)
    traveller(desk).points = 599
    assert "costs 600 points" in reason(desk, "upgrade_trip", booking_id=plain.booking_id, pay_with="points")
    traveller(desk).points = 600
    assert desk.call("upgrade_trip", {"booking_id": plain.booking_id, "pay_with": "points"}).ok
    assert traveller(desk).points == 0


def test_vouchers_are_personal_valid_and_one_per_trip(desk: Travel) -> None:
    own, other = list(desk.state.travellers)[:2]
    vouchers = list(desk.state.vouchers.values())[:3]
    good, strange, old = vouchers
    good.traveller_id, strange.traveller_id, old.traveller_id = own, other, own
    good.valid_until, old.valid_until = desk.state.now.date(), desk.state.now.date() - DAY
    good.balance = 5.0
    trip = book(desk, 5)
    price = trip.price
    codes = [voucher.voucher_code for voucher in vouchers]
    assert "another traveller" in reason(desk, "use_voucher", booking_id=trip.booking_id, voucher_code=codes[1])
    assert "ended on" in reason(desk, "use_voucher", booking_id=trip.booking_id, voucher_code=codes[2])
    used = desk.call("use_voucher", {"booking_id": trip.booking_id, "voucher_code": codes[0]})
    assert used.content["new_price"] == pytest.approx(price - 5)
    assert "already been used" in reason(desk, "use_voucher", booking_id=trip.booking_id, voucher_code=codes[0])


def test_only_vouchers_that_are_still_valid_are_listed(desk: Travel) -> None:
    own = traveller(desk).traveller_id
    good, old = list(desk.state.vouchers.values())[:2]
    good.traveller_id = old.traveller_id = own
    good.valid_until, old.valid_until = desk.state.now.date(), desk.state.now.date() - DAY
    listed = [row["voucher_code"] for row in desk.call("list_vouchers", {"traveller_id": own}).content["result"]]
    assert good.voucher_code in listed and old.voucher_code not in listed


def stay(desk: Travel, room: Room, days: int, **more: object) -> dict[str, object]:
    arrival = str(desk.state.now.date() + days * DAY)
    own = traveller(desk).traveller_id
    return {"traveller_id": own, "room_id": room.room_id, "arrival_date": arrival, "nights": 2, **more}


def test_rooms_are_reserved_while_free_and_large_enough(desk: Travel) -> None:
    room = next(room for room in desk.state.rooms.values() if room.sleeps == 2)
    room.rooms = 1
    assert "sleeps only 2" in reason(desk, "reserve_room", **stay(desk, room, 4, guests=3))
    assert desk.call("reserve_room", stay(desk, room, 4, guests=2)).ok
    assert "not free for all nights" in reason(desk, "reserve_room", **stay(desk, room, 5))
    assert desk.call("reserve_room", stay(desk, room, 6)).ok
    assert "not on sale" in reason(desk, "reserve_room", **stay(desk, room, 0))


def test_only_refundable_stays_are_cancelled_in_time(desk: Travel) -> None:
    room = next(iter(desk.state.rooms.values()))
    room.rooms, room.refundable = 9, True
    soon, later = (desk.call("reserve_room", stay(desk, room, days)).content["reservation_id"] for days in (1, 5))
    assert "until 2 days before" in reason(desk, "cancel_stay", reservation_id=soon)
    assert desk.call("cancel_stay", {"reservation_id": later}).content["status"] == "cancelled"
    fixed = desk.call("reserve_room", stay(desk, room, 9)).content["reservation_id"]
    desk.state.rooms[room.room_id].refundable = False
    assert "not refundable" in reason(desk, "cancel_stay", reservation_id=fixed)


def test_a_journey_from_search_to_cancellation(desk: Travel) -> None:
    account = desk.call("find_traveller", {"email": traveller(desk).email}).content
    line = daily(desk)
    day = str(desk.state.now.date() + 9 * DAY)
    route = {"from_city": line.from_city, "to_city": line.to_city, "travel_date": day}
    found = desk.call("search_connections", route).content["result"]
    own = {"traveller_id": account["traveller_id"]}
    trip = desk.call("book_trip", {**own, "departure_id": found[0]["departure_id"], "fare": "saver"}).content
    assert desk.call("add_extra", {"booking_id": trip["booking_id"], "extra": "quiet_seat"}).ok
    listed = desk.call("list_trips", own).content["result"]
    assert [row["booking_id"] for row in listed] == [trip["booking_id"]]
    assert listed[0]["price"] == pytest.approx(found[0]["saver_fare"] + 4)
    assert desk.call("cancel_trip", {"booking_id": trip["booking_id"]}).content["status"] == "cancelled"
    assert desk.call("get_trip", {"booking_id": trip["booking_id"]}).content["status"] == "cancelled"


@pytest.mark.parametrize("size", ["small", "medium"])
def test_seed_states_keep_the_rules(size: str) -> None:
    for seed in range(1, 6):
        state = Travel.seed_state(size, seed)
        for connection in state.connections.values():
            for day in {b.travels_on for b in state.bookings.values()}:
                assert state.seats_left(connection, day, "standard") >= 0, "oversold departure"
        assert all(state.connections[b.connection_id].runs_on(b.travels_on) for b in state.bookings.values())
        assert all(b.booked_at.date() <= b.travels_on for b in state.bookings.values())
        assert all(s.guests <= state.rooms[s.room_id].sleeps for s in state.stays.values())
        assert all(
            state.count_rooms_left(state.rooms[s.room_id], s.check_in, s.nights) >= 0 for s in state.stays.values()
        )
