"""Control centre of a household's smart home."""

from datetime import date, timedelta
from typing import Annotated, Literal

from pydantic import Field

from trajsmith.environments.library.smart_home.seeds import is_quiet_hours, make_state
from trajsmith.environments.library.smart_home.state import (
    AccessCode,
    CodeRow,
    Device,
    DeviceRow,
    EnergyUse,
    Floor,
    Lock,
    LockRow,
    LockStatus,
    Member,
    NewCode,
    Power,
    RoomClimate,
    RoomRow,
    SceneRow,
    SceneRun,
    SceneStep,
    Schedule,
    ScheduleRow,
    SmartHomeState,
    Thermostat,
)
from trajsmith.environments.native import Environment, tool
from trajsmith.records import ConfirmationRule, ToolError

COLDEST, WARMEST, WARMEST_FOR_CHILDREN = 12.0, 24.0, 21.0
LOW_BATTERY = 10
CODES_PER_LOCK = 4
CODE_DAYS = {"family": 365, "child": 365, "guest": 21, "helper": 21}
MINUTES_APART = 15


class SmartHome(Environment[SmartHomeState]):
    """Control centre of one household: devices, heating, doors and codes, scenes, schedules and energy use."""

    domain = "home/automation"
    policy = """
    # Rules of the house

    1. Quiet hours run from 22:00 to 07:00. In them no loud appliance is switched on, no scene that uses one is run,
       and no door is unlocked. Scenes with loud appliances are never scheduled inside quiet hours.
    2. Heating is set between 12 and 24 degrees, in children's rooms to 21 at most. While a window of
       the room is open, it is neither turned up nor set above the temperature that the room has.
    3. Appliances that must always run (fridge, router and the like) are never switched off.
    4. Devices that are offline cannot be controlled. Blinds do not move while the window of their room is open.
    5. A door that stands open cannot be locked. A lock with less than 10 percent battery cannot be operated from here.
    6. A lock has at most 4 active codes, one per person. Codes for guests and helpers last 21 days at most, for the
       family a year. Children get no codes for doors that are for adults only.
    7. The owner's own codes cannot be revoked.
    8. Schedules that share a day start at least 15 minutes apart.
    """

    @classmethod
    def seed_state(cls, size: str, seed: int) -> SmartHomeState:
        return make_state(size, seed)

    @tool(effect="read")
    def list_rooms(self, floor: Floor | None = None) -> list[RoomRow]:
        """List the rooms of the home with their temperature, at most 30.

        Args:
            floor: Only rooms on this floor.
        """
        warmth = {thermostat.room_id: thermostat.current_temperature for thermostat in self.state.thermostats.values()}
        return [
            RoomRow(room_id=room.room_id, room_name=room.room_name, floor=room.floor, temperature=warmth[room.room_id])
            for room in sorted(self.state.rooms.values(), key=lambda room: (len(room.room_id), room.room_id))
            if floor in (None, room.floor)
        ][:30]

    @tool(effect="read")
    def list_devices(self, room_id: str) -> list[DeviceRow]:
        """List the lights, blinds and appliances of a room and how they are set.

        Args:
            room_id: Room to look at.
        """
        self.lookup(self.state.rooms, room_id, "room")
        return [_device_row(device) for device in self.state.devices.values() if device.room_id == room_id]

    @tool(effect="read")
    def get_room_climate(self, room_id: str) -> RoomClimate:
        """Show temperature, heating, window and air of a room.

        Args:
            room_id: Room to look at.
        """
        room = self.lookup(self.state.rooms, room_id, "room")
        thermostat = self._thermostat(room_id)
        humidity = self._sensor_value(room_id, "humidity")
        co2 = self._sensor_value(room_id, "air_quality")
        return RoomClimate(
            room_name=room.room_name,
            temperature=thermostat.current_temperature,
            target_temperature=thermostat.target_temperature,
            heating=thermostat.mode,
            window_open=self._window_open(room_id),
            humidity_percent=None if humidity is None else int(humidity),
            co2_ppm=None if co2 is None else int(co2),
        )

    @tool(effect="read")
    def get_energy_use(
        self, room_id: str, weeks: Annotated[int, Field(ge=1, le=4, examples=[2, 3, 4])] = 4
    ) -> EnergyUse:
        """Show how much electricity a room has used in the last full weeks, and what it cost in pounds.

        Args:
            room_id: Room to look at.
            weeks: How many weeks to go back.
        """
        room = self.lookup(self.state.rooms, room_id, "room")
        readings = [reading for reading in self.state.energy_readings.values() if reading.room_id == room_id]
        latest = sorted(readings, key=lambda reading: reading.week_start, reverse=True)[:weeks]
        if not latest:
            raise ToolError(f"there are no energy readings for the {room.room_name}")
        total = round(sum(reading.kwh for reading in latest), 1)
        highest = max(latest, key=lambda reading: reading.kwh)
        return EnergyUse(
            room_name=room.room_name,
            weeks=len(latest),
            total_kwh=total,
            cost=round(total * self.state.home.price_per_kwh, 2),
            highest_week=highest.week_start,
        )

    @tool(effect="write", confirm="never")
    def switch_device(self, device_id: str, power: Power) -> DeviceRow:
        """Switch a light or an appliance on or off.

        Args:
            device_id: Light or appliance.
            power: On or off.
        """
        device = self._online(device_id)
        name = device.device_name
        if device.power is None:
            raise ToolError(f"the {name} is a blind, which can only be opened or closed")
        if device.power == power:
            raise ToolError(f"the {name} is already {power}")
        if device.always_on:
            raise ToolError(f"the {name} must always run and is never switched off")
        if power == "on" and device.noisy and is_quiet_hours(self.state.now):
            raise ToolError(f"the {name} is too loud for the quiet hours from 22:00 to 07:00")
        device.power = power
        return _device_row(device)

    @tool(effect="write", confirm="never")
    def set_level(
        self, device_id: str, level: Annotated[int, Field(ge=0, le=100, examples=[10, 25, 35, 40, 60, 75, 80])]
    ) -> DeviceRow:
        """Set the brightness of a light that can be dimmed, or how far a blind is open.

        Args:
            device_id: Light or blind.
            level: Brightness or opening in percent; 0 is dark or closed.
        """
        device = self._online(device_id)
        name = device.device_name
        if device.level is None:
            raise ToolError(f"the {name} has no level and can only be on or off")
        if device.kind == "blind" and self._window_open(device.room_id):
            raise ToolError(f"the {name} cannot move while the window is open")
        if device.level == level and device.power in (None, "on" if level else "off"):
            raise ToolError(f"the {name} is already at {level} percent")
        device.level = level
        if device.power is not None:
            device.power = "on" if level else "off"
        return _device_row(device)

    @tool(effect="write", confirm="never")
    def set_temperature(
        self,
        room_id: str,
        target_temperature: Annotated[float, Field(ge=5, le=25, examples=[17.0, 18.5, 19.0, 19.5, 20.0, 20.5, 22.5])],
    ) -> RoomClimate:
        """Set the temperature that a room is heated to; this also turns its heating on.

        Args:
            room_id: Room to heat.
            target_temperature: Wanted temperature in degrees Celsius.
        """
        room = self.lookup(self.state.rooms, room_id, "room")
        thermostat = self._thermostat(room_id)
        warmest = WARMEST_FOR_CHILDREN if room.for_children else WARMEST
        if not COLDEST <= target_temperature <= warmest:
            raise ToolError(f"the {room.room_name} can be set between {COLDEST:g} and {warmest:g} degrees only")
        if thermostat.mode == "on" and thermostat.target_temperature == target_temperature:
            raise ToolError(f"the {room.room_name} is already set to {target_temperature:g} degrees")
        highest = min(thermostat.target_temperature, thermostat.current_temperature)
        if target_temperature > highest and self._window_open(room_id):
            raise ToolError("a window is open there and has to be closed first")
        thermostat.target_temperature = target_temperature
        thermostat.mode = "on"
        return self.get_room_climate(room_id)

    @tool(effect="read")
    def list_locks(self) -> list[LockRow]:
        """List the door locks: locked or not, door open or not, battery."""
        return [_lock_row(lock) for lock in self.state.locks.values()]

    @tool(
        effect="write",
        confirm=ConfirmationRule(
            arguments={"action": ("unlock",)}, because="anybody can walk in through an unlocked door"
        ),
    )
    def set_door_lock(self, lock_id: str, action: Literal["lock", "unlock"]) -> LockRow:
        """Lock or unlock a door from afar.

        Args:
            lock_id: Lock of the door.
            action: Lock or unlock.
        """
        lock = self.lookup(self.state.locks, lock_id, "lock")
        wanted: LockStatus = "locked" if action == "lock" else "unlocked"
        if lock.status == wanted:
            raise ToolError(f"the {lock.lock_name} is already {wanted}")
        if lock.battery_percent < LOW_BATTERY:
            raise ToolError(
                f"the {lock.lock_name} cannot be operated with its battery at {lock.battery_percent} percent"
            )
        if action == "lock" and lock.door_open:
            raise ToolError(f"the {lock.lock_name} stands open and has to be closed before it can be locked")
        if action == "unlock" and is_quiet_hours(self.state.now):
            raise ToolError("no door is unlocked in the quiet hours from 22:00 to 07:00")
        lock.status = wanted
        return _lock_row(lock)

    @tool(effect="read")
    def list_access_codes(self, lock_id: str) -> list[CodeRow]:
        """List who has a code for a door, and until when; at most 10, the newest codes. Revoked codes are not shown.

        Args:
            lock_id: Lock of the door.
        """
        self.lookup(self.state.locks, lock_id, "lock")
        codes = [code for code in self.state.access_codes.values() if code.lock_id == lock_id and not code.revoked]
        return [self._code_row(code) for code in codes][-10:]

    @tool(effect="write", confirm=ConfirmationRule(always=True, because="a code lets a person into the home"))
    def create_access_code(self, lock_id: str, member_name: str, until_day: date) -> NewCode:
        """Create a door code for a person of the household or a guest or helper.

        Args:
            lock_id: Lock of the door.
            member_name: Full name of the person, as registered with the home.
            until_day: Last day on which the code works.
        """
        lock = self.lookup(self.state.locks, lock_id, "lock")
        member = self._member(member_name)
        self._check_new_code(lock, member, until_day)
        code = AccessCode(
            access_code_id=self.new_id("access_code", "A{}"),
            lock_id=lock_id,
            member_id=member.member_id,
            pin=f"{self.random().randrange(10**6):06d}",
            created_at=self.state.now,
            valid_until=until_day,
            revoked=False,
        )
        self.state.access_codes[code.access_code_id] = code
        return NewCode(
            access_code_id=code.access_code_id,
            lock_name=lock.lock_name,
            member_name=member.member_name,
            pin=code.pin,
            valid_until=until_day,
        )

    @tool(
        effect="write",
        destructive=True,
        confirm=ConfirmationRule(always=True, because="a revoked code never works again"),
    )
    def revoke_access_code(self, access_code_id: str) -> CodeRow:
        """Make a door code stop working at once.

        Args:
            access_code_id: Code to revoke.
        """
        code = self.lookup(self.state.access_codes, access_code_id, "access code")
        member = self.state.members[code.member_id]
        if member.role == "owner":
            raise ToolError("the owner's own codes cannot be revoked")
        if not self._active(code):
            raise ToolError(f"the code of {member.member_name} no longer works anyway")
        code.revoked = True
        return self._code_row(code)

    @tool(effect="read")
    def list_scenes(self) -> list[SceneRow]:
        """List the scenes of the home, at most 10: settings of several devices under one name.

        `devices` counts what a scene sets.
        """
        return [
            SceneRow(
                scene_id=scene.scene_id,
                scene_name=scene.scene_name,
                description=scene.description,
                devices=len(scene.steps),
            )
            for scene in self.state.scenes.values()
        ][:10]

    @tool(effect="write", confirm="never")
    def run_scene(self, scene_id: str) -> SceneRun:
        """Set all devices of a scene; what is offline or blocked by an open window is left out.

        The result names what was changed, what is offline, and the blinds that a window keeps from moving; devices
        that were already set that way are in none of these lists.

        Args:
            scene_id: Scene to run.
        """
        scene = self.lookup(self.state.scenes, scene_id, "scene")
        if is_quiet_hours(self.state.now) and self._loud(scene_id):
            raise ToolError(
                f"the scene {scene.scene_name} has loud appliances, and the quiet hours run from 22:00 to 07:00"
            )
        changed, offline, at_open_windows = [], [], []
        for step in scene.steps:
            device = self.state.devices[step.device_id]
            if not device.online:
                offline.append(device.device_name)
            elif device.kind == "blind" and self._window_open(device.room_id):
                at_open_windows.append(device.device_name)
            elif _apply(device, step):
                changed.append(device.device_name)
        if not changed:
            raise ToolError(f"the scene {scene.scene_name} would change nothing right now")
        return SceneRun(scene_name=scene.scene_name, changed=changed, offline=offline, at_open_windows=at_open_windows)

    @tool(effect="read")
    def list_schedules(self) -> list[ScheduleRow]:
        """List which scenes run by themselves, on which days and at what time, earliest first, at most 10."""
        schedules = sorted(self.state.schedules.values(), key=lambda schedule: schedule.starts_at)
        return [self._schedule_row(schedule) for schedule in schedules][:10]

    @tool(effect="write", confirm="never")
    def reschedule_scene(
        self,
        schedule_id: str,
        starts_at: Annotated[
            str,
            Field(
                pattern=r"^([01]\d|2[0-3]):[0-5]\d$",
                examples=["06:45", "07:45", "09:15", "12:15", "15:15", "18:30", "21:15", "22:30"],
            ),
        ],
    ) -> ScheduleRow:
        """Let a scheduled scene start at another time of the day.

        Args:
            schedule_id: Schedule to change.
            starts_at: New time as hours and minutes, for example "18:30".
        """
        schedule = self.lookup(self.state.schedules, schedule_id, "schedule")
        if schedule.starts_at == starts_at:
            raise ToolError(f"that schedule already starts at {starts_at}")
        if self._loud(schedule.scene_id) and (starts_at >= "22:00" or starts_at < "07:00"):
            raise ToolError("a scene with loud appliances cannot be scheduled in the quiet hours from 22:00 to 07:00")
        for other in self.state.schedules.values():
            shared = "every_day" in (other.days, schedule.days) or other.days == schedule.days
            if other is not schedule and shared and _minutes_between(other.starts_at, starts_at) < MINUTES_APART:
                name = self.state.scenes[other.scene_id].scene_name
                raise ToolError(
                    f"{name} starts at {other.starts_at}, and schedules must be {MINUTES_APART} minutes apart"
                )
        schedule.starts_at = starts_at
        return self._schedule_row(schedule)

    def _online(self, device_id: str) -> Device:
        device = self.lookup(self.state.devices, device_id, "device")
        if not device.online:
            raise ToolError(f"the {device.device_name} is offline and cannot be controlled")
        return device

    def _thermostat(self, room_id: str) -> Thermostat:
        return next(thermostat for thermostat in self.state.thermostats.values() if thermostat.room_id == room_id)

    def _sensor_value(self, room_id: str, kind: str) -> float | None:
        sensors = self.state.sensors.values()
        return next((sensor.value for sensor in sensors if sensor.room_id == room_id and sensor.kind == kind), None)

    def _window_open(self, room_id: str) -> bool:
        return self._sensor_value(room_id, "window") == 1

    def _loud(self, scene_id: str) -> bool:
        steps = self.state.scenes[scene_id].steps
        return any(step.power == "on" and self.state.devices[step.device_id].noisy for step in steps)

    def _member(self, member_name: str) -> Member:
        for member in self.state.members.values():
            if member.member_name.casefold() == member_name.strip().casefold():
                return member
        raise ToolError(f"nobody named {member_name} is registered with the home")

    def _active(self, code: AccessCode) -> bool:
        return not code.revoked and (code.valid_until is None or code.valid_until >= self.state.now.date())

    def _check_new_code(self, lock: Lock, member: Member, until_day: date) -> None:
        name, today = member.member_name, self.state.now.date()
        every = self.state.access_codes.values()
        codes = [code for code in every if code.lock_id == lock.lock_id and self._active(code)]
        if any(code.member_id == member.member_id for code in codes):
            raise ToolError(f"{name} already has a code for the {lock.lock_name}")
        if len(codes) >= CODES_PER_LOCK:
            raise ToolError(f"the {lock.lock_name} already has {CODES_PER_LOCK} active codes, which is the limit")
        if member.role == "child" and lock.adults_only:
            raise ToolError(f"the {lock.lock_name} is for adults only and {name} is a child")
        if until_day < today:
            raise ToolError("the last day of a code must not lie in the past")
        days = CODE_DAYS.get(member.role, 365)
        if until_day > today + timedelta(days=days):
            kind = "guests and helpers" if member.role in ("guest", "helper") else "the family"
            raise ToolError(f"codes for {kind} last {days} days at most")

    def _code_row(self, code: AccessCode) -> CodeRow:
        member = self.state.members[code.member_id]
        return CodeRow(
            access_code_id=code.access_code_id,
            lock_name=self.state.locks[code.lock_id].lock_name,
            member_name=member.member_name,
            role=member.role,
            valid_until=code.valid_until,
            status="revoked" if code.revoked else "active" if self._active(code) else "expired",
        )

    def _schedule_row(self, schedule: Schedule) -> ScheduleRow:
        return ScheduleRow(
            schedule_id=schedule.schedule_id,
            scene_name=self.state.scenes[schedule.scene_id].scene_name,
            days=schedule.days,
            starts_at=schedule.starts_at,
        )


def _device_row(device: Device) -> DeviceRow:
    return DeviceRow(
        device_id=device.device_id,
        device_name=device.device_name,
        kind=device.kind,
        power=device.power,
        level=device.level,
        online=device.online,
    )


def _lock_row(lock: Lock) -> LockRow:
    return LockRow(
        lock_id=lock.lock_id,
        lock_name=lock.lock_name,
        status=lock.status,
        battery_percent=lock.battery_percent,
        door_open=lock.door_open,
    )


def _apply(device: Device, step: SceneStep) -> bool:
    """Set a device as a scene wants it; False if it was so already."""
    before = (device.power, device.level)
    device.power = step.power if step.power is not None else device.power
    device.level = step.level if step.level is not None else device.level
    return (device.power, device.level) != before


def _minutes_between(first: str, second: str) -> int:
    """Shortest way around the clock between two times like "07:15"."""
    minutes = [int(text[:2]) * 60 + int(text[3:]) for text in (first, second)]
    apart = abs(minutes[0] - minutes[1])
    return min(apart, 24 * 60 - apart)


__all__ = ["SmartHome"]
