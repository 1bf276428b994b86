"""The smart home: each rule of its policy binds, and its tools work together."""

from datetime import datetime
from typing import Any

import pytest

from trajsmith.environments.library.smart_home import SmartHome
from trajsmith.environments.library.smart_home.seeds import NOISY_SCENES, SCENES
from trajsmith.environments.library.smart_home.state import (
    AccessCode,
    Device,
    Home,
    Lock,
    Member,
    Room,
    Scene,
    SceneStep,
    Schedule,
    Sensor,
    SmartHomeState,
    Thermostat,
)

DAY, NIGHT = datetime(2026, 5, 12, 14, 0), datetime(2026, 5, 12, 23, 30)


def device(device_id: str, kind: Any, **changes: Any) -> Device:
    made = Device(
        device_id=device_id,
        room_id="R1",
        device_name=device_id.lower(),
        kind=kind,
        power="off",
        level=None,
        online=True,
        noisy=False,
        always_on=False,
    )
    return made.model_copy(update=changes)


def code(access_code_id: str, member_id: str, lock_id: str = "L1") -> AccessCode:
    return AccessCode(
        access_code_id=access_code_id,
        lock_id=lock_id,
        member_id=member_id,
        pin="123456",
        created_at=DAY,
        valid_until=None if member_id == "M1" else DAY.date(),
        revoked=False,
    )


@pytest.fixture
def house() -> SmartHome:
    roles: tuple[Any, ...] = ("owner", "family", "child", "helper", "guest")
    names = ("Ada Owner", "Ben Family", "Cleo Child", "Dan Helper", "Eva Guest")
    members = {f"M{n}": Member(member_id=f"M{n}", member_name=names[n - 1], role=roles[n - 1]) for n in range(1, 6)}
    rooms = {
        "R1": Room(room_id="R1", room_name="kitchen", floor="ground_floor", for_children=False),
        "R2": Room(room_id="R2", room_name="nursery", floor="first_floor", for_children=True),
    }
    devices = [
        device("LAMP", "light", level=40),
        device("BLIND", "blind", power=None, level=0),
        device("KETTLE", "appliance"),
        device("VACUUM", "appliance", noisy=True),
        device("FRIDGE", "appliance", power="on", always_on=True),
        device("RADIO", "appliance", online=False),
    ]
    locks = [("L1", "front door", "locked", 80, False), ("L2", "cellar door", "unlocked", 5, True)]
    state = SmartHomeState(
        now=DAY,
        home=Home(owner_name="Ada Owner", street="1 Elm Court", city="Carrick", price_per_kwh=0.3),
        members=members,
        rooms=rooms,
        devices={item.device_id: item for item in devices},
        thermostats={
            f"T{n}": Thermostat(
                thermostat_id=f"T{n}", room_id=f"R{n}", mode="on", current_temperature=19, target_temperature=19
            )
            for n in (1, 2)
        },
        sensors={"S1": Sensor(sensor_id="S1", room_id="R1", kind="window", value=0)},
        locks={
            lock_id: Lock.model_validate(
                {
                    "lock_id": lock_id,
                    "lock_name": name,
                    "status": status,
                    "battery_percent": battery,
                    "door_open": False,
                    "adults_only": adults,
                }
            )
            for lock_id, name, status, battery, adults in locks
        },
        access_codes={"A1": code("A1", "M1")},
        counters={"access_code": 1},
        scenes={
            "SC1": Scene(
                scene_id="SC1",
                scene_name="big clean",
                description="loud",
                steps=[
                    SceneStep(device_id="VACUUM", power="on", level=None),
                    SceneStep(device_id="RADIO", power="on", level=None),
                ],
            ),
            "SC2": Scene(
                scene_id="SC2",
                scene_name="dinner",
                description="calm",
                steps=[
                    SceneStep(device_id="LAMP", power="on", level=55),
                    SceneStep(device_id="BLIND", power=None, level=50),
                ],
            ),
        },
        schedules={
            "P1": Schedule(schedule_id="P1", scene_id="SC1", days="weekdays", starts_at="10:00"),
            "P2": Schedule(schedule_id="P2", scene_id="SC2", days="every_day", starts_at="18:00"),
        },
    )
    return SmartHome(state)


def refused(home: SmartHome, tool: str, reason: str, **arguments: Any) -> None:
    before = home.dump()
    result = home.call(tool, arguments)
    assert result.error == "refused", result.content
    assert reason in result.text
    assert home.dump() == before


def passes(home: SmartHome, tool: str, **arguments: Any) -> Any:
    result = home.call(tool, arguments)
    assert result.ok, result.content
    return result.content


def test_quiet_hours_bind_loud_appliances_scenes_and_doors(house: SmartHome) -> None:
    house.state.now = NIGHT
    refused(house, "switch_device", "too loud for the quiet hours", device_id="VACUUM", power="on")
    refused(house, "run_scene", "has loud appliances", scene_id="SC1")
    refused(house, "set_door_lock", "no door is unlocked in the quiet hours", lock_id="L1", action="unlock")
    assert passes(house, "switch_device", device_id="KETTLE", power="on")["power"] == "on"
    assert passes(house, "run_scene", scene_id="SC2")["changed"] == ["lamp", "blind"]
    house.state.now = DAY
    assert passes(house, "switch_device", device_id="VACUUM", power="on")["power"] == "on"
    assert passes(house, "set_door_lock", lock_id="L1", action="unlock")["status"] == "unlocked"


def test_loud_scenes_are_not_scheduled_at_night_and_schedules_keep_their_distance(house: SmartHome) -> None:
    refused(house, "reschedule_scene", "in the quiet hours", schedule_id="P1", starts_at="22:00")
    refused(house, "reschedule_scene", "in the quiet hours", schedule_id="P1", starts_at="06:59")
    refused(house, "reschedule_scene", "must be 15 minutes apart", schedule_id="P1", starts_at="18:14")
    assert passes(house, "reschedule_scene", schedule_id="P1", starts_at="18:15")["starts_at"] == "18:15"
    assert passes(house, "reschedule_scene", schedule_id="P2", starts_at="22:30")["starts_at"] == "22:30"


def test_schedules_on_other_days_may_start_together(house: SmartHome) -> None:
    house.state.schedules["P2"].days = "weekends"
    assert passes(house, "reschedule_scene", schedule_id="P1", starts_at="18:00")["starts_at"] == "18:00"


def test_temperatures_have_limits(house: SmartHome) -> None:
    refused(house, "set_temperature", "between 12 and 24 degrees", room_id="R1", target_temperature=24.5)
    refused(house, "set_temperature", "between 12 and 21 degrees", room_id="R2", target_temperature=21.5)
    assert passes(house, "set_temperature", room_id="R1", target_temperature=21.5)["target_temperature"] == 21.5
    assert passes(house, "set_temperature", room_id="R2", target_temperature=21)["target_temperature"] == 21


def test_an_open_window_stops_heating_up_and_blinds(house: SmartHome) -> None:
    house.state.sensors["S1"].value = 1
    refused(house, "set_temperature", "a window is open there", room_id="R1", target_temperature=20)
    refused(house, "set_level", "cannot move while the window is open", device_id="BLIND", level=50)
    assert passes(house, "set_temperature", room_id="R1", target_temperature=18)["target_temperature"] == 18
    house.state.thermostats["T1"].target_temperature = 22
    refused(house, "set_temperature", "a window is open there", room_id="R1", target_temperature=20)
    assert passes(house, "set_temperature", room_id="R1", target_temperature=19)["target_temperature"] == 19
    house.state.scenes["SC2"].steps.append(SceneStep(device_id="RADIO", power="on", level=None))
    ran = passes(house, "run_scene", scene_id="SC2")
    assert (ran["changed"], ran["at_open_windows"], ran["offline"]) == (["lamp"], ["blind"], ["radio"])


def test_devices_that_must_run_or_are_offline_stay_as_they_are(house: SmartHome) -> None:
    refused(house, "switch_device", "must always run", device_id="FRIDGE", power="off")
    refused(house, "switch_device", "is offline", device_id="RADIO", power="on")
    refused(house, "switch_device", "is a blind", device_id="BLIND", power="on")
    refused(house, "set_level", "has no level", device_id="KETTLE", level=50)
    refused(house, "set_level", "already at 0 percent", device_id="BLIND", level=0)
    assert passes(house, "set_level", device_id="LAMP", level=40)["power"] == "on"


def test_locks_need_a_closed_door_and_a_battery(house: SmartHome) -> None:
    refused(house, "set_door_lock", "battery at 5 percent", lock_id="L2", action="lock")
    house.state.locks["L2"].battery_percent = 10
    house.state.locks["L2"].door_open = True
    refused(house, "set_door_lock", "stands open", lock_id="L2", action="lock")
    house.state.locks["L2"].door_open = False
    assert passes(house, "set_door_lock", lock_id="L2", action="lock")["status"] == "locked"


def test_codes_are_limited_by_role_number_and_time(house: SmartHome) -> None:
    def new(member_name: str, until_day: str, lock_id: str = "L1") -> dict[str, str]:
        return {"lock_id": lock_id, "member_name": member_name, "until_day": until_day}

    refused(house, "create_access_code", "adults only", **new("Cleo Child", "2026-06-01", "L2"))
    refused(house, "create_access_code", "last 21 days at most", **new("Dan Helper", "2026-06-03"))
    refused(house, "create_access_code", "in the past", **new("Dan Helper", "2026-05-11"))
    refused(house, "create_access_code", "already has a code", **new("Ada Owner", "2026-06-01"))
    refused(house, "create_access_code", "nobody named Zoe", **new("Zoe", "2026-06-01"))
    made = passes(house, "create_access_code", **new("dan helper", "2026-06-02"))
    assert made["access_code_id"] == "A2" and len(made["pin"]) == 6
    passes(house, "create_access_code", **new("Ben Family", "2027-05-01"))
    passes(house, "create_access_code", **new("Cleo Child", "2026-06-20"))
    refused(house, "create_access_code", "4 active codes", **new("Eva Guest", "2026-05-20"))


def test_only_codes_of_others_that_still_work_are_revoked(house: SmartHome) -> None:
    refused(house, "revoke_access_code", "owner's own codes", access_code_id="A1")
    house.state.access_codes["A2"] = code("A2", "M2")
    assert passes(house, "revoke_access_code", access_code_id="A2")["status"] == "revoked"
    refused(house, "revoke_access_code", "no longer works", access_code_id="A2")
    assert [row["member_name"] for row in passes(house, "list_access_codes", lock_id="L1")["result"]] == ["Ada Owner"]


def test_an_evening_at_home(house: SmartHome) -> None:
    room_id = passes(house, "list_rooms", floor="ground_floor")["result"][0]["room_id"]
    lamp = next(row for row in passes(house, "list_devices", room_id=room_id)["result"] if row["kind"] == "light")
    passes(house, "set_level", device_id=lamp["device_id"], level=80)
    passes(house, "set_temperature", room_id=room_id, target_temperature=21)
    scene_id = next(row["scene_id"] for row in passes(house, "list_scenes")["result"] if row["scene_name"] == "dinner")
    assert passes(house, "run_scene", scene_id=scene_id)["scene_name"] == "dinner"
    refused(house, "run_scene", "would change nothing", scene_id=scene_id)
    assert passes(house, "get_room_climate", room_id=room_id)["heating"] == "on"
    refused(house, "get_energy_use", "no energy readings", room_id=room_id)


@pytest.mark.parametrize("seed", range(1, 9))
def test_seed_states_keep_the_rules(seed: int) -> None:
    state = SmartHome.seed_state("medium", seed)
    assert state == SmartHome.seed_state("medium", seed)
    rooms = {room.room_name for room in state.rooms.values()}
    assert len(rooms) == len(state.rooms) and {item.room_id for item in state.devices.values()} == set(state.rooms)
    for lock in state.locks.values():
        codes = [made for made in state.access_codes.values() if made.lock_id == lock.lock_id]
        holders = [state.members[made.member_id] for made in codes]
        assert len(codes) <= 4 and len({holder.member_id for holder in holders}) == len(codes)
        assert not (lock.adults_only and any(holder.role == "child" for holder in holders))
        assert not (lock.door_open and lock.status == "locked")
    assert all(item.power == "on" and item.online for item in state.devices.values() if item.always_on)
    limits = [(t.target_temperature, state.rooms[t.room_id].for_children) for t in state.thermostats.values()]
    assert all(12 <= target <= (21 if child else 24) for target, child in limits)
    assert all(step.device_id in state.devices for scene in state.scenes.values() for step in scene.steps)
    assert all("07:00" <= schedule.starts_at < "22:00" for schedule in state.schedules.values())


@pytest.mark.parametrize("size", ["small", "medium"])
@pytest.mark.parametrize("seed", range(1, 5))
def test_scenes_set_rooms_that_they_are_for_at_fitting_times(size: str, seed: int) -> None:
    state = SmartHome.seed_state(size, seed)
    recipes = {recipe.name: recipe for recipe in SCENES}
    for scene in state.scenes.values():
        rooms = {state.rooms[state.devices[step.device_id].room_id].room_name for step in scene.steps}
        assert scene.steps and (scene.scene_name in NOISY_SCENES or rooms <= set(recipes[scene.scene_name].rooms))
    planned = [state.scenes[schedule.scene_id].scene_name for schedule in state.schedules.values()]
    assert len(set(planned)) == len(planned)
    for schedule in state.schedules.values():
        recipe = recipes[state.scenes[schedule.scene_id].scene_name]
        assert schedule.starts_at in recipe.times and schedule.days in recipe.days
