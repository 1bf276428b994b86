"""Generator of the household's initial states."""

import random
from datetime import datetime, timedelta
from typing import NamedTuple

from trajsmith.environments.library import _people
from trajsmith.environments.library.smart_home.state import (
    AccessCode,
    Days,
    Device,
    EnergyReading,
    Floor,
    Home,
    Lock,
    Member,
    Role,
    Room,
    Scene,
    SceneStep,
    Schedule,
    Sensor,
    SmartHomeState,
    Thermostat,
)
from trajsmith.records import derive_seed


class Extent(NamedTuple):
    """Number of entries in a household of one size."""

    rooms: int
    devices: tuple[int, int]
    """Fewest and most devices of a room."""
    members: int
    locks: int
    scenes: int
    schedules: int
    weeks: int


class Appliance(NamedTuple):
    """A plugged-in device that a kind of room may have."""

    name: str
    noisy: bool = False
    always_on: bool = False


EXTENTS = {
    "small": Extent(6, (3, 4), 5, 2, 5, 5, 4),
    "medium": Extent(16, (4, 6), 9, 4, 8, 8, 8),
    "large": Extent(40, (6, 8), 16, 6, 10, 10, 60),
}
ROOMS: dict[Floor, tuple[str, ...]] = {
    "ground_floor": (
        "kitchen",
        "living room",
        "dining room",
        "hallway",
        "utility room",
        "study",
        "guest toilet",
        "library",
    ),
    "first_floor": (
        "main bedroom",
        "bathroom",
        "nursery",
        "playroom",
        "guest room",
        "dressing room",
        "landing",
        "sewing room",
    ),
    "basement": (
        "laundry room",
        "workshop",
        "wine cellar",
        "home cinema",
        "gym",
        "pantry",
        "sauna",
        "hobby room",
    ),
    "attic": (
        "attic bedroom",
        "music room",
        "attic studio",
        "attic bathroom",
        "reading nook",
        "games room",
        "loft",
        "children's den",
    ),
    "garden_house": (
        "conservatory",
        "pool room",
        "potting shed",
        "garden studio",
        "summer kitchen",
        "bike shed",
        "changing room",
        "garden lounge",
    ),
}
CHILD_ROOMS = ("nursery", "playroom", "children's den")
APPLIANCES: dict[str, tuple[Appliance, ...]] = {
    "kitchen": (
        Appliance("fridge", always_on=True),
        Appliance("dishwasher", noisy=True),
        Appliance("coffee machine"),
        Appliance("bread maker", noisy=True),
    ),
    "living room": (Appliance("router", always_on=True), Appliance("television"), Appliance("record player")),
    "hallway": (Appliance("robot vacuum", noisy=True), Appliance("shoe dryer")),
    "utility room": (Appliance("washing machine", noisy=True), Appliance("freezer", always_on=True)),
    "laundry room": (Appliance("tumble dryer", noisy=True), Appliance("clothes steamer")),
    "workshop": (Appliance("compressor", noisy=True), Appliance("dust extractor", noisy=True)),
    "wine cellar": (Appliance("wine cooler", always_on=True),),
    "bathroom": (Appliance("towel heater"), Appliance("extractor fan")),
    "study": (Appliance("printer"), Appliance("backup drive", always_on=True)),
    "main bedroom": (Appliance("electric blanket"), Appliance("air purifier")),
    "nursery": (Appliance("sound machine"), Appliance("baby monitor", always_on=True)),
    "gym": (Appliance("treadmill", noisy=True), Appliance("fan")),
    "conservatory": (Appliance("irrigation pump"), Appliance("plant mister")),
    "music room": (Appliance("amplifier", noisy=True), Appliance("digital piano")),
}
OTHER_APPLIANCES = (Appliance("fan"), Appliance("dehumidifier"), Appliance("radio"), Appliance("smart socket"))
LIGHTS = ("ceiling light", "floor lamp", "wall light", "table lamp", "light strip", "spotlight")
BLINDS = ("roller blind", "venetian blind", "skylight blind")


class Recipe(NamedTuple):
    """A scene that people set up: how bright and how open, where, and when it may start by itself."""

    name: str
    description: str
    brightness: int
    opening: int
    rooms: tuple[str, ...]
    """Rooms that it sets, as far as the home has them."""
    days: tuple[Days, ...]
    times: tuple[str, ...]
    """Starting times, at least a quarter of an hour from those of all other scenes."""


SCENES = (
    Recipe(
        "movie night",
        "low lights and closed blinds",
        15,
        0,
        ("living room", "home cinema"),
        ("weekends", "every_day"),
        ("19:45", "20:30"),
    ),
    Recipe(
        "good morning",
        "bright lights and open blinds",
        80,
        100,
        ("main bedroom", "kitchen", "nursery", "bathroom"),
        ("weekdays", "every_day"),
        ("07:00", "07:30"),
    ),
    Recipe(
        "dinner party",
        "warm, half-bright lights",
        55,
        40,
        ("dining room", "living room", "kitchen"),
        ("weekends",),
        ("18:00", "19:00"),
    ),
    Recipe(
        "reading time",
        "good light for a book",
        70,
        60,
        ("library", "reading nook", "living room"),
        ("weekends", "every_day"),
        ("20:00", "20:15"),
    ),
    Recipe(
        "wind down",
        "dim lights before bed",
        10,
        10,
        ("main bedroom", "living room", "children's den", "nursery"),
        ("every_day", "weekdays"),
        ("20:45", "21:45"),
    ),
    Recipe(
        "afternoon nap",
        "everything dark and calm",
        5,
        0,
        ("main bedroom", "nursery", "guest room"),
        ("weekends", "every_day"),
        ("13:30", "14:15"),
    ),
    Recipe(
        "homework hour",
        "bright and clear for desk work",
        95,
        70,
        ("study", "kitchen", "playroom"),
        ("weekdays",),
        ("15:45", "16:30"),
    ),
    Recipe(
        "spa evening",
        "soft light all around",
        25,
        20,
        ("sauna", "bathroom", "attic bathroom", "main bedroom"),
        ("weekends",),
        ("17:45", "18:15"),
    ),
    Recipe(
        "big clean",
        "full light, with the loud appliances running",
        100,
        100,
        ("kitchen", "living room", "hallway"),
        ("weekends",),
        ("09:45", "10:30"),
    ),
    Recipe(
        "laundry run",
        "light for the chores, with the loud machines running",
        60,
        50,
        ("laundry room", "utility room", "bathroom", "kitchen"),
        ("weekdays", "every_day"),
        ("08:45", "11:15"),
    ),
)
NOISY_SCENES = ("big clean", "laundry run")
LOCKS = (
    ("front door", False),
    ("back door", False),
    ("garage door", True),
    ("garden gate", False),
    ("cellar door", True),
    ("terrace door", False),
)
ROLES: tuple[Role, ...] = ("owner", "family", "child", "guest", "helper", "helper", "guest", "family", "child")


def make_state(size: str, seed: int) -> SmartHomeState:
    """A household of the given size; the same seed gives the same household."""
    rng = random.Random(derive_seed("smart_home", size, seed))
    extent = EXTENTS[size]
    now = datetime(2026, rng.randrange(1, 13), rng.randrange(1, 28), rng.randrange(18, 22), rng.choice((5, 20, 35, 50)))
    persons = _people.people(rng, extent.members)
    street, city, _ = _people.street_address(rng)
    price = rng.choice((0.24, 0.27, 0.31, 0.34))
    home = Home(owner_name=persons[0].name, street=street, city=city, price_per_kwh=price)
    state = SmartHomeState(now=now, seed=seed, home=home)
    for number, person in enumerate(persons):
        member_id = _number(state, "member", "M{}")
        state.members[member_id] = Member(
            member_id=member_id, member_name=person.name, role=ROLES[number % len(ROLES)] if number < 9 else "guest"
        )
    for room_name, floor in _pick_rooms(rng, extent.rooms):
        _add_room(state, rng, room_name, floor, extent)
    _add_locks(state, rng, extent.locks)
    _add_scenes(state, rng, extent.scenes)
    _add_schedules(state, rng, extent.schedules)
    return state


def is_quiet_hours(moment: datetime) -> bool:
    """Return whether a time lies in the quiet hours."""
    return moment.hour >= 22 or moment.hour < 7


def _number(state: SmartHomeState, kind: str, pattern: str) -> str:
    number = state.counters[kind] = state.counters.get(kind, 0) + 1
    return pattern.format(number)


def _pick_rooms(rng: random.Random, count: int) -> list[tuple[str, Floor]]:
    """Kitchen, living room and main bedroom always; the rest by chance, but spread over the floors of the house."""
    chosen: list[tuple[str, Floor]] = [
        ("kitchen", "ground_floor"),
        ("living room", "ground_floor"),
        ("main bedroom", "first_floor"),
    ]
    floors = list(ROOMS) if count > 10 else ["ground_floor", "first_floor", rng.choice(("basement", "attic"))]
    known = [(name, floor) for floor in ROOMS if floor in floors for name in ROOMS[floor]]
    chosen += rng.sample([pair for pair in known if pair not in chosen], count - len(chosen))
    return sorted(chosen, key=lambda pair: list(ROOMS).index(pair[1]))


def _add_room(state: SmartHomeState, rng: random.Random, room_name: str, floor: Floor, extent: Extent) -> None:
    room_id = _number(state, "room", "R{}")
    child = room_name in CHILD_ROOMS
    state.rooms[room_id] = Room(room_id=room_id, room_name=room_name, floor=floor, for_children=child)
    appliances = list(APPLIANCES.get(room_name, rng.sample(OTHER_APPLIANCES, 2)))
    rng.shuffle(appliances)
    names: list[str | Appliance] = [rng.choice(LIGHTS), rng.choice(BLINDS), *appliances, *rng.sample(LIGHTS, 5)]
    unique = list(dict.fromkeys(names))
    for item in unique[: rng.randint(*extent.devices)]:
        _add_device(state, rng, room_id, item)
    _add_climate(state, rng, room_id, extent)
    _add_readings(state, rng, room_id, extent.weeks)


def _add_climate(state: SmartHomeState, rng: random.Random, room_id: str, extent: Extent) -> None:
    thermostat_id = _number(state, "thermostat", "T{}")
    current = rng.randrange(34, 44) / 2
    state.thermostats[thermostat_id] = Thermostat(
        thermostat_id=thermostat_id,
        room_id=room_id,
        mode=rng.choice(("on", "on", "eco", "off")),
        current_temperature=current,
        target_temperature=min(max(current + rng.choice((-1, 0.5, 1, 2)), 16), 21),
    )
    _add_sensor(state, room_id, "window", float(rng.random() < 0.2))
    if extent.rooms > 10 or rng.random() < 0.5:
        _add_sensor(state, room_id, "humidity", float(rng.randrange(36, 64)))
    if extent.rooms > 20 or rng.random() < 0.2:
        _add_sensor(state, room_id, "air_quality", float(rng.randrange(420, 1400, 10)))


def _add_readings(state: SmartHomeState, rng: random.Random, room_id: str, weeks: int) -> None:
    monday = state.now.date() - timedelta(days=state.now.weekday())
    base = rng.uniform(4, 30)
    for week in range(weeks, 0, -1):
        reading_id = _number(state, "reading", "E{}")
        state.energy_readings[reading_id] = EnergyReading(
            reading_id=reading_id,
            room_id=room_id,
            week_start=monday - timedelta(weeks=week),
            kwh=round(base * rng.uniform(0.7, 1.4), 1),
        )


def _add_device(state: SmartHomeState, rng: random.Random, room_id: str, item: str | Appliance) -> None:
    device_id = _number(state, "device", "D{}")
    room_name = state.rooms[room_id].room_name
    appliance = item if isinstance(item, Appliance) else None
    name = item.name if isinstance(item, Appliance) else item
    blind = name in BLINDS
    noisy = appliance is not None and appliance.noisy
    always = appliance is not None and appliance.always_on
    on = always or (rng.random() < 0.4 and not (noisy and is_quiet_hours(state.now)))
    level = rng.choice((0, 20, 50, 85, 100)) if blind else rng.choice((15, 30, 45, 70, 90, 100))
    dimmable = blind or (appliance is None and rng.random() < 0.8)
    state.devices[device_id] = Device(
        device_id=device_id,
        room_id=room_id,
        device_name=f"{room_name} {name}",
        kind="blind" if blind else "appliance" if appliance else "light",
        power=None if blind else "on" if on else "off",
        level=level if dimmable else None,
        online=always or rng.random() > 0.06,
        noisy=noisy,
        always_on=always,
    )


def _add_sensor(state: SmartHomeState, room_id: str, kind: str, value: float) -> None:
    sensor_id = _number(state, "sensor", "S{}")
    state.sensors[sensor_id] = Sensor.model_validate(
        {"sensor_id": sensor_id, "room_id": room_id, "kind": kind, "value": value}
    )


def _add_locks(state: SmartHomeState, rng: random.Random, count: int) -> None:
    picked = [LOCKS[0], *rng.sample(LOCKS[1:], count - 1)]
    members = list(state.members.values())
    forgotten = rng.sample([name for name, _ in picked], 1 if count == 2 else rng.choice((1, 2)))
    for lock_name, adults_only in picked:
        lock_id, locked = _number(state, "lock", "L{}"), lock_name not in forgotten
        state.locks[lock_id] = Lock(
            lock_id=lock_id,
            lock_name=lock_name,
            status="locked" if locked else "unlocked",
            battery_percent=rng.choice((6 if locked else 22, 22, 38, 51, 64, 77, 83, 90, 96)),
            door_open=not locked and rng.random() < 0.08,
            adults_only=adults_only,
        )
        _add_code(state, rng, lock_id, members[0])
        allowed = [member for member in members[1:] if not (adults_only and member.role == "child")]
        others = 3 if rng.random() < 0.3 else 2
        for member in rng.sample(allowed, min(others, len(allowed))):
            _add_code(state, rng, lock_id, member)


def _add_code(state: SmartHomeState, rng: random.Random, lock_id: str, member: Member) -> None:
    access_code_id = _number(state, "access_code", "A{}")
    if member.role == "owner":
        created, until = _people.moment_before(rng, state.now, 400), None
    elif member.role in ("guest", "helper"):
        created = _people.moment_before(rng, state.now, 10)
        until = created.date() + timedelta(days=rng.choice((7, 10, 14)))
    else:
        created = _people.moment_before(rng, state.now, 200)
        until = created.date() + timedelta(days=365)
    state.access_codes[access_code_id] = AccessCode(
        access_code_id=access_code_id,
        lock_id=lock_id,
        member_id=member.member_id,
        pin=f"{rng.randrange(10**6):06d}",
        created_at=created,
        valid_until=until,
        revoked=False,
    )


def _add_scenes(state: SmartHomeState, rng: random.Random, count: int) -> None:
    usable = [device for device in state.devices.values() if not device.always_on]
    loud = [device for device in usable if device.noisy]
    recipes = [recipe for recipe in SCENES if loud or recipe.name not in NOISY_SCENES]
    for recipe in [*recipes[:2], *rng.sample(recipes[2:], min(count, len(recipes)) - 2)]:
        rooms = [room for name in recipe.rooms for room in state.rooms.values() if room.room_name == name][:2]
        near = {room.room_id for room in rooms}
        calm = [device for device in usable if device.kind != "appliance" and device.room_id in near]
        devices = calm[:5]
        if recipe.name in NOISY_SCENES:
            devices = [*calm[:2], *rng.sample(loud, min(2, len(loud)))]
        scene_id = _number(state, "scene", "SC{}")
        steps = [_step(device, recipe.brightness, recipe.opening) for device in devices]
        state.scenes[scene_id] = Scene(
            scene_id=scene_id, scene_name=recipe.name, description=recipe.description, steps=steps
        )


def _step(device: Device, brightness: int, opening: int) -> SceneStep:
    if device.kind == "blind":
        return SceneStep(device_id=device.device_id, power=None, level=opening)
    level = brightness if device.level is not None else None
    return SceneStep(device_id=device.device_id, power="on" if brightness > 20 or level else "off", level=level)


def _add_schedules(state: SmartHomeState, rng: random.Random, count: int) -> None:
    recipes = {recipe.name: recipe for recipe in SCENES}
    slots = [(rng.choice(recipes[scene.scene_name].times), scene) for scene in state.scenes.values()]
    for starts_at, scene in sorted(slots[:count], key=lambda slot: slot[0]):
        schedule_id = _number(state, "schedule", "P{}")
        state.schedules[schedule_id] = Schedule(
            schedule_id=schedule_id,
            scene_id=scene.scene_id,
            days=rng.choice(recipes[scene.scene_name].days),
            starts_at=starts_at,
        )
