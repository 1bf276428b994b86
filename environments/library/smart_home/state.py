"""What the house knows: rooms, devices, heating, sensors, doors and their codes, scenes, schedules, energy."""

from datetime import date, datetime
from typing import Literal

from trajsmith.environments.native import EnvironmentState, StateModel

Floor = Literal["basement", "ground_floor", "first_floor", "attic", "garden_house"]
DeviceKind = Literal["light", "blind", "appliance"]
Power = Literal["on", "off"]
HeatingMode = Literal["on", "eco", "off"]
SensorKind = Literal["window", "humidity", "air_quality"]
LockStatus = Literal["locked", "unlocked"]
Role = Literal["owner", "family", "child", "guest", "helper"]
Days = Literal["weekdays", "weekends", "every_day"]


class Home(StateModel):
    owner_name: str
    street: str
    city: str
    price_per_kwh: float


class Member(StateModel):
    member_id: str
    member_name: str
    role: Role


class Room(StateModel):
    room_id: str
    room_name: str
    floor: Floor
    for_children: bool


class Device(StateModel):
    device_id: str
    room_id: str
    device_name: str
    kind: DeviceKind
    power: Power | None
    """None for blinds."""
    level: int | None
    """Brightness of a light that can be dimmed, or how far a blind is open, in percent."""
    online: bool
    noisy: bool
    always_on: bool


class Thermostat(StateModel):
    thermostat_id: str
    room_id: str
    mode: HeatingMode
    current_temperature: float
    target_temperature: float


class Sensor(StateModel):
    sensor_id: str
    room_id: str
    kind: SensorKind
    value: float
    """Window: 1 if open. Humidity: percent. Air quality: CO2 in ppm."""


class Lock(StateModel):
    lock_id: str
    lock_name: str
    status: LockStatus
    battery_percent: int
    door_open: bool
    adults_only: bool


class AccessCode(StateModel):
    access_code_id: str
    lock_id: str
    member_id: str
    pin: str
    created_at: datetime
    valid_until: date | None
    """None for the owner's own codes, which never end."""
    revoked: bool


class SceneStep(StateModel):
    device_id: str
    power: Power | None
    level: int | None


class Scene(StateModel):
    scene_id: str
    scene_name: str
    description: str
    steps: list[SceneStep]


class Schedule(StateModel):
    schedule_id: str
    scene_id: str
    days: Days
    starts_at: str


class EnergyReading(StateModel):
    reading_id: str
    room_id: str
    week_start: date
    kwh: float


class SmartHomeState(EnvironmentState):
    home: Home
    members: dict[str, Member] = {}
    rooms: dict[str, Room] = {}
    devices: dict[str, Device] = {}
    thermostats: dict[str, Thermostat] = {}
    sensors: dict[str, Sensor] = {}
    locks: dict[str, Lock] = {}
    access_codes: dict[str, AccessCode] = {}
    scenes: dict[str, Scene] = {}
    schedules: dict[str, Schedule] = {}
    energy_readings: dict[str, EnergyReading] = {}


# What the tools answer with


class RoomRow(StateModel):
    room_id: str
    room_name: str
    floor: Floor
    temperature: float


class DeviceRow(StateModel):
    device_id: str
    device_name: str
    kind: DeviceKind
    power: Power | None
    level: int | None
    online: bool


class RoomClimate(StateModel):
    room_name: str
    temperature: float
    target_temperature: float
    heating: HeatingMode
    window_open: bool
    humidity_percent: int | None
    co2_ppm: int | None


class EnergyUse(StateModel):
    room_name: str
    weeks: int
    total_kwh: float
    cost: float
    highest_week: date


class LockRow(StateModel):
    lock_id: str
    lock_name: str
    status: LockStatus
    battery_percent: int
    door_open: bool


class CodeRow(StateModel):
    access_code_id: str
    lock_name: str
    member_name: str
    role: Role
    valid_until: date | None
    status: Literal["active", "expired", "revoked"]


class NewCode(StateModel):
    access_code_id: str
    lock_name: str
    member_name: str
    pin: str
    valid_until: date


class SceneRow(StateModel):
    scene_id: str
    scene_name: str
    description: str
    devices: int


class SceneRun(StateModel):
    scene_name: str
    changed: list[str]
    offline: list[str]
    at_open_windows: list[str]


class ScheduleRow(StateModel):
    schedule_id: str
    scene_name: str
    days: Days
    starts_at: str
