"""The rules of the car-sharing environment bind, and the member's own tools work together with the agent's."""

from datetime import datetime, timedelta

import pytest

from trajsmith.environments.library.car_share import CarShare
from trajsmith.environments.library.car_share.state import Car, Fee, Reservation
from trajsmith.records import JsonObject


@pytest.fixture
def share() -> CarShare:
    """A member with one car now and another one next week, without fees, beside a car without faults."""
    env = CarShare(CarShare.seed_state("small", 1))
    state = env.state
    state.fees.clear()
    state.call_outs.clear()
    state.damages.clear()
    for key, each in list(state.reservations.items()):
        if each.status != "running":
            del state.reservations[key]
    car = car_of(env)
    car.warning, car.start_fault, car.app_connected, car.charging_point_works = None, "none", True, True
    car.doors = "unlocked"
    return env


def car_of(env: CarShare) -> Car:
    return env.state.cars[env.state.car_in_use]


def trip_of(env: CarShare) -> Reservation:
    return next(each for each in env.state.reservations.values() if each.member_id == env.state.user_id)


def add_fee(env: CarShare, fee_id: str, **fields: object) -> None:
    given = {"reason": "late_return", "amount": 20.0, "status": "open", "charged_on": env.state.now.date()} | fields
    env.state.fees[fee_id] = Fee(fee_id=fee_id, member_id=env.state.user_id, **given)


def refused(env: CarShare, tool: str, arguments: JsonObject, reason: str) -> None:
    before = env.dump()
    result = env.call(tool, arguments)
    assert not result.ok
    assert reason in str(result.content)
    assert env.dump() == before


def done(env: CarShare, tool: str, arguments: JsonObject, user: bool = False) -> JsonObject:
    result = env.call(tool, arguments, "user" if user else "assistant")
    assert result.ok, result.content
    return result.content


def test_only_the_callers_membership_is_opened(share: CarShare) -> None:
    stranger = next(each for each in share.state.members.values() if each.member_id != share.state.user_id)
    refused(share, "find_member", {"membership_number": stranger.card_number}, "is not the caller's")
    refused(share, "list_reservations", {"member_id": stranger.member_id}, "only the caller's own membership")
    add_fee(share, "FE9")
    share.state.fees["FE9"].member_id = stranger.member_id
    refused(share, "waive_fee", {"fee_id": "FE9"}, "only the caller's own membership")
    own = done(share, "find_member", {"membership_number": share.state.caller.membership_number})
    assert own["member_id"] == share.state.user_id


def test_doors_are_switched_with_the_code_of_the_car_and_not_while_it_is_on(share: CarShare) -> None:
    refused(share, "lock_car", {"windscreen_code": "ZZ1"}, "not the code of the reserved car")
    code = {"windscreen_code": done(share, "read_windscreen_code", {}, user=True)["windscreen_code"]}
    refused(share, "unlock_car", code, "unlocked already")
    assert done(share, "press_start_button", {}, user=True)["drive"] == "on"
    refused(share, "lock_car", code, "drive is still on")
    assert done(share, "lock_doors_with_app", {}, user=True)["app_message"] == "Please switch off the drive first"
    assert done(share, "press_start_button", {}, user=True)["message"] == "Switched off"
    assert done(share, "lock_car", code)["doors"] == "locked"
    refused(share, "lock_car", code, "locked already")
    assert done(share, "unlock_car", code)["doors"] == "unlocked"


@pytest.mark.parametrize("tool", ["read_dashboard", "press_start_button", "look_in_glove_compartment"])
def test_nobody_gets_into_a_car_that_was_locked_from_outside(share: CarShare, tool: str) -> None:
    done(share, "lock_car", {"windscreen_code": car_of(share).windscreen_code})
    result = share.call(tool, {}, "user")
    assert not result.ok
    assert "the doors are locked" in str(result.content)
    done(share, "read_windscreen_code", {}, user=True)


def test_the_agent_locks_what_the_app_does_not_reach(share: CarShare) -> None:
    car = car_of(share)
    car.app_connected, car.doors = False, "unlocked"
    assert done(share, "lock_doors_with_app", {}, user=True) == {
        "doors": "unlocked",
        "app_message": "No connection to the car",
    }
    done(share, "lock_car", {"windscreen_code": car.windscreen_code})
    assert car.doors == "locked"


def test_the_immobiliser_needs_the_code_of_the_last_attempt_and_another_one(share: CarShare) -> None:
    car = car_of(share)
    car.start_fault = "immobiliser"
    refused(share, "release_immobiliser", {"start_code": "IA-1"}, "have the start button pressed again")
    first = done(share, "press_start_button", {}, user=True)
    assert (first["drive"], first["message"]) == ("off", "Immobiliser active")
    second = done(share, "press_start_button", {}, user=True)["start_code"]
    refused(share, "release_immobiliser", {"start_code": first["start_code"]}, "not the code of the last attempt")
    assert done(share, "release_immobiliser", {"start_code": second})["immobiliser"] == "released"
    assert car.drive == "off"
    assert done(share, "press_start_button", {}, user=True)["message"] == "Ready to drive"


def test_a_weak_battery_is_no_matter_of_the_immobiliser(share: CarShare) -> None:
    car_of(share).start_fault = "weak_battery"
    code = done(share, "press_start_button", {}, user=True)["start_code"]
    refused(share, "release_immobiliser", {"start_code": code}, "not about the immobiliser")


def test_a_car_with_its_cable_in_does_not_start(share: CarShare) -> None:
    assert done(share, "plug_in_charging_cable", {}, user=True)["charge_light"] == "green"
    assert done(share, "press_start_button", {}, user=True) == {
        "drive": "off",
        "message": "Charging cable still in",
        "start_code": None,
    }


def test_a_point_that_is_out_of_order_charges_nothing(share: CarShare) -> None:
    car_of(share).charging_point_works = False
    shown = done(share, "plug_in_charging_cable", {}, user=True)
    assert (shown["charge_light"], shown["full_at"]) == ("red", None)


def test_help_comes_for_a_red_light_and_once(share: CarShare) -> None:
    car = car_of(share)
    assert done(share, "read_dashboard", {}, user=True)["warning_light"] == "none"
    refused(share, "send_roadside", {"warning_text": "Motor too hot"}, "does not report this")
    car.warning = "Service due"
    refused(share, "send_roadside", {"warning_text": "Service due"}, "only for a red one")
    car.warning = "Motor too hot"
    shown = done(share, "read_dashboard", {}, user=True)
    assert shown["warning_light"] == "red"
    assert done(share, "send_roadside", {"warning_text": shown["warning_text"]})["help"] == "tow_truck"
    refused(share, "send_roadside", {"warning_text": shown["warning_text"]}, "on its way to this car already")


def test_the_charge_card_of_the_car_is_activated_once(share: CarShare) -> None:
    card = done(share, "look_in_glove_compartment", {}, user=True)["charge_card"]
    refused(share, "activate_charge_card", {"charge_card": "1-1"}, "no charge card with this number")
    active = done(share, "activate_charge_card", {"charge_card": card})
    assert active["valid_until"] == trip_of(share).ends_at.isoformat()
    refused(share, "activate_charge_card", {"charge_card": card}, "active already")


def test_a_booking_ends_where_the_next_member_begins(share: CarShare) -> None:
    trip = trip_of(share)
    end, price = trip.ends_at, trip.price
    call = {"reservation_id": trip.reservation_id}
    refused(share, "extend_reservation", {**call, "extra_minutes": 300}, "at most 240 minutes")
    after = trip.model_copy(
        update={
            "reservation_id": "RS1",
            "member_id": "MB501",
            "status": "upcoming",
            "starts_at": end + timedelta(hours=1),
        }
    )
    share.state.reservations["RS1"] = after.model_copy(update={"ends_at": end + timedelta(hours=3)})
    refused(share, "extend_reservation", {**call, "extra_minutes": 90}, "the next member has the car from")
    longer = done(share, "extend_reservation", {**call, "extra_minutes": 60})
    assert longer["ends_at"] == (end + timedelta(hours=1)).isoformat()
    assert longer["price"] == round(price + longer["extra_price"], 2)
    trip.status = "completed"
    refused(share, "extend_reservation", {**call, "extra_minutes": 15}, "cannot be extended")


def test_a_car_is_reserved_in_time_and_for_one_member_at_once(share: CarShare) -> None:
    state = share.state
    member = state.members[state.user_id]
    car_id = done(share, "list_cars_nearby", {"member_id": state.user_id})["result"][0]["car_id"]
    day = state.now.date() + timedelta(days=3)
    call = {"member_id": state.user_id, "car_id": car_id, "start_date": day.isoformat(), "slot": "whole_day"}
    refused(share, "reserve_car", {**call, "start_date": state.now.date().isoformat()}, "from tomorrow to 30 days")
    valid, member.licence_valid_until = member.licence_valid_until, state.now.date()
    refused(share, "reserve_car", call, "driving licence")
    member.licence_valid_until = valid
    made = done(share, "reserve_car", call)
    assert datetime.fromisoformat(made["ends_at"]) - datetime.fromisoformat(made["starts_at"]) == timedelta(hours=12)
    refused(share, "reserve_car", {**call, "slot": "morning"}, "is taken from 07:00 to 19:00")
    other = next(each for each in state.cars if each not in (car_id, state.car_in_use))
    refused(share, "reserve_car", {**call, "car_id": other, "slot": "afternoon"}, "another reservation at that time")


@pytest.mark.parametrize(("hours", "share_to_pay"), [(23, 0.5), (25, 0.0)])
def test_half_is_paid_for_what_is_cancelled_late(share: CarShare, hours: int, share_to_pay: float) -> None:
    trip = trip_of(share)
    refused(share, "cancel_reservation", {"reservation_id": trip.reservation_id}, "is running and cannot be cancelled")
    start = share.state.now + timedelta(hours=hours)
    share.state.reservations["RS1"] = trip.model_copy(
        update={"reservation_id": "RS1", "status": "upcoming", "starts_at": start, "price": 40.0}
    )
    assert done(share, "cancel_reservation", {"reservation_id": "RS1"})["to_pay"] == 40.0 * share_to_pay


def test_one_small_fee_is_waived_in_a_year(share: CarShare) -> None:
    add_fee(share, "FE1", reason="town_fine")
    add_fee(share, "FE2", amount=30.5)
    add_fee(share, "FE3")
    add_fee(share, "FE4", reason="cleaning")
    refused(share, "waive_fee", {"fee_id": "FE1"}, "only fees for a late return or for cleaning")
    refused(share, "waive_fee", {"fee_id": "FE2"}, "above 30 pounds")
    assert done(share, "waive_fee", {"fee_id": "FE3"})["status"] == "waived"
    refused(share, "waive_fee", {"fee_id": "FE3"}, "already waived")
    refused(share, "waive_fee", {"fee_id": "FE4"}, "in the last 12 months already")


def test_damage_costs_who_did_it_and_is_reported_once(share: CarShare) -> None:
    state = share.state
    call = {"member_id": state.user_id, "part": "wheel"}
    assert done(share, "report_damage", {**call, "origin": "found"})["to_pay_at_most"] == 0
    refused(share, "report_damage", {**call, "origin": "own"}, "reported during this trip already")
    own = done(share, "report_damage", {"member_id": state.user_id, "part": "windscreen", "origin": "own"})
    assert own["to_pay_at_most"] == state.tariffs[state.members[state.user_id].tariff_id].excess


def test_one_change_of_tariff_waits_for_the_next_month(share: CarShare) -> None:
    state = share.state
    now = state.members[state.user_id].tariff_id
    first, second = [each for each in state.tariffs if each != now][:2]
    refused(share, "change_tariff", {"member_id": state.user_id, "tariff_id": now}, "already")
    change = done(share, "change_tariff", {"member_id": state.user_id, "tariff_id": first})
    assert change["valid_from"].endswith("-01")
    assert state.members[state.user_id].tariff_id == now
    refused(share, "change_tariff", {"member_id": state.user_id, "tariff_id": second}, "waiting for the first")


def test_tools_of_the_user_are_not_the_agents(share: CarShare) -> None:
    result = share.call("read_dashboard", {})
    assert not result.ok
    assert "unknown tool" in str(result.content)


@pytest.mark.parametrize("seed", range(1, 9))
def test_seed_states_are_consistent_and_keep_the_rules(seed: int) -> None:
    state = CarShare.seed_state("small", seed)
    assert state == CarShare.seed_state("small", seed)
    member, car = state.members[state.user_id], state.cars[state.car_in_use]
    assert member.card_number == state.caller.membership_number
    assert state.stations[car.station_id].city == member.city
    mine = [each for each in state.reservations.values() if each.member_id == state.user_id]
    assert [each.car_id for each in mine if each.status == "running"] == [car.car_id]
    assert all(
        (each.starts_at > state.now) == (each.status == "upcoming") for each in mine if each.status != "cancelled"
    )
    assert next(each for each in mine if each.status == "running").ends_at > state.now
    assert car.doors == "unlocked" or not car.app_connected
    assert (car.start_fault != "weak_battery") or car.warning == "Battery not charging"
    upcoming = [each for each in state.reservations.values() if each.status in ("running", "upcoming")]
    assert not [
        (one, other)
        for one in upcoming
        for other in upcoming
        if one is not other
        and one.car_id == other.car_id
        and one.starts_at < other.ends_at
        and other.starts_at < one.ends_at
    ]
