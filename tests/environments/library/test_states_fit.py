"""What a state of a bundled environment says in one place, it does not contradict in another."""

from datetime import timedelta
from itertools import pairwise

import pytest

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
