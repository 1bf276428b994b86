"""What a state of a bundled environment says in one place, it does not contradict in another."""

from datetime import timedelta
from itertools import pairwise

import pytest

from trajsmith.environments.library import ENVIRONMENTS
from trajsmith.environments.library.calendar.seeds import make_state as make_calendar
from trajsmith.environments.library.mobile_care.rules import add_months
from trajsmith.environments.library.mobile_care.seeds import make_state as make_provider
from trajsmith.environments.library.smart_home.seeds import make_state as make_home
from trajsmith.environments.library.travel.seeds import make_state as make_desk

SEEDS = range(6)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_hotel_stay_goes_with_a_trip_and_no_two_overlap(seed: int) -> None:
    state = make_desk("medium", seed)
    for traveller_id in state.travellers:
        arrivals = {
            (ride.to_city, ride.arrives_at(trip.travels_on).date())
            for trip in state.bookings.values()
            if trip.traveller_id == traveller_id and trip.status != "cancelled"
            for ride in [state.connections[trip.connection_id]]
        }
        stays = [s for s in state.stays.values() if s.traveller_id == traveller_id and s.status != "cancelled"]
        places = {(state.hotels[state.rooms[stay.room_id].hotel_id].city, stay.check_in) for stay in stays}
        assert places <= arrivals
        ordered = sorted(stays, key=lambda stay: stay.check_in)
        assert all(first.check_out <= second.check_in for first, second in pairwise(ordered))


@pytest.mark.parametrize("seed", SEEDS)
def test_a_minimum_term_is_counted_in_calendar_months(seed: int) -> None:
    state = make_provider("medium", seed)
    for line in state.lines.values():
        assert line.term_ends == add_months(line.plan_since, state.plans[line.plan_id].term_months)


@pytest.mark.parametrize("seed", SEEDS)
def test_no_event_of_today_is_over(seed: int) -> None:
    state = make_calendar("medium", seed)
    tomorrow = state.now.replace(hour=0, minute=0) + timedelta(days=1)
    today = [e for e in state.events.values() if tomorrow - timedelta(days=1) <= e.starts_at < tomorrow]
    assert all(event.starts_at > state.now for event in today)


@pytest.mark.parametrize("seed", SEEDS)
def test_an_unlocked_door_can_be_locked_from_afar(seed: int) -> None:
    state = make_home("medium", seed)
    unlocked = [lock for lock in state.locks.values() if lock.status == "unlocked"]
    assert unlocked
    assert all(lock.battery_percent >= 10 for lock in unlocked)


@pytest.mark.parametrize("seed", range(12))
def test_a_month_has_days_in_which_its_data_were_used(seed: int) -> None:
    """Nobody has used 11 of 12 GB on the first day of the month."""
    assert make_provider("small", seed).now.day >= 10


@pytest.mark.parametrize("seed", range(6))
def test_lists_show_what_decides_whether_something_can_be_cancelled(seed: int) -> None:
    """Who organises an event, and whether a stay can be cancelled: nobody needs to try it."""
    calendar = ENVIRONMENTS.get("calendar")(make_calendar("small", seed))
    rows = calendar.list_events(days=14)
    own = {row.event_id for row in rows if row.organiser == calendar.state.owner.name}
    assert own == {row.event_id for row in rows if calendar.state.events[row.event_id].organiser_id is None}
    travel = ENVIRONMENTS.get("travel")(make_desk("small", seed))
    for stay in travel.state.stays.values():
        row = next(row for row in travel.list_stays(stay.traveller_id) if row.reservation_id == stay.reservation_id)
        assert row.refundable == travel.state.rooms[stay.room_id].refundable
