"""The digest of foreign modules: what changes it, what it calls the change, and that it runs nobody's code."""

import json
import sys
from collections.abc import Iterator
from types import ModuleType

import pytest
from contamination import CALLS, CASES, LEAKS, Case, leak_source
from hypothesis import given, settings
from hypothesis import strategies as st

from trajsmith.environments.foreign import run_source
from trajsmith.environments.sandbox import digest
from trajsmith.environments.sandbox.digest import collect_module_entries, find_differences

NAME = "environment_code"
NAMES = (NAME,)


@pytest.fixture(autouse=True)
def forget() -> Iterator[None]:
    yield
    sys.modules.pop(NAME, None)


def seen(module: ModuleType, *calls: str) -> list[str]:
    """What statements in a module change, as told."""
    entries = collect_module_entries(NAMES)
    assert collect_module_entries(NAMES) == entries, "looking changed it"
    for call in calls:
        exec(call, dict(vars(module)), {"m": module})
    return find_differences(entries, collect_module_entries(NAMES))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_all_that_sessions_share_is_seen_and_nothing_else(case: Case) -> None:
    module = run_source(case.source, "desk.py")
    told = seen(module, "desk = Desk()\n" + "\n".join(f"desk.act({number})" for number in CALLS))
    assert case.path in told if case.path else told == []


UNSEEN = {"precision", "logger", "attribute of a variable", "default of a field"}
"""What libraries keep is not looked into."""


@pytest.mark.parametrize("name", sorted(set(LEAKS) - UNSEEN))
def test_leaks_change_it(name: str) -> None:
    module = run_source(leak_source(name), "desk.py")
    try:
        assert seen(module, "Desk().act(3)"), "the leak was not seen"
    finally:
        clean(module)


def clean(module: ModuleType) -> None:
    """Take out what a test put into libraries."""
    for owner in (vars(module).get("json"), module.BaseModel, module.random):
        for name in ("count", "hook", "tally"):
            if owner is not None and name in vars(owner):
                delattr(owner, name)


PLACES = """
import collections, contextlib, functools, io, itertools, json, random, types
from pydantic import BaseModel
TEXT, LIST, TABLE, SET = "a", [1, [2]], {"x": {"y": 1}, (1, 2): 0}, {1, 2}
QUEUE = collections.deque([1])
COUNTS = collections.Counter("aab")
ORDER = collections.OrderedDict(a=1, b=2)
SPACE = types.SimpleNamespace(a=1)
BUFFER = io.StringIO("a")
BYTES = bytearray(b"a")
CYCLE, ITER, CHAIN = itertools.cycle([1, 2]), iter([1, 2, 3]), itertools.chain([1], [2])
STEP = itertools.count().__next__
PUT = functools.partial(LIST.append, 9)
CHANCE = random.Random(1)
class Base:
    shared = []
class Shop(Base):
    HISTORY = []
    __slots__ = ("slot",)
    def visit(self, *, seen={}):
        seen["x"] = 1
    @staticmethod
    def static(seen=[]):
        seen.append(1)
    @property
    def many(self, seen=[]):
        seen.append(1)
        return seen
class Model(BaseModel):
    rows: list[int] = []
SHOP, MODEL, ROWS = Shop(), Model(), type("Rows", (list,), {})()
SHOP.slot = 1
"""


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ("m.TEXT = 'b'", ".TEXT"),
        ("m.TEXT = 1", ".TEXT"),
        ("m.NEW = 1", ".NEW"),
        ("del m.TEXT", ".TEXT"),
        ("m.LIST.append(3)", ".LIST"),
        ("m.LIST[1][0] = 3", ".LIST[1][0]"),
        ("m.LIST.reverse()", ".LIST[0]"),
        ("m.TABLE['z'] = 1", ".TABLE['z']"),
        ("m.TABLE['x']['y'] = 2", ".TABLE['x']['y']"),
        ("m.TABLE['x'] = m.TABLE.pop('x')", ".TABLE"),
        ("m.SET.add(3)", ".SET"),
        ("m.QUEUE.append(3)", ".QUEUE"),
        ("m.COUNTS.update('b')", ".COUNTS['b']"),
        ("m.ORDER.move_to_end('a')", ".ORDER"),
        ("m.SPACE.a = 2", ".SPACE.a"),
        ("m.BUFFER.read()", ".BUFFER"),
        ("m.BUFFER.close()", ".BUFFER"),
        ("m.BYTES += b'b'", ".BYTES"),
        ("next(m.CYCLE)", ".CYCLE"),
        ("next(m.ITER)", ".ITER"),
        ("next(m.CHAIN)", ".CHAIN"),
        ("m.STEP()", ".STEP.__self__"),
        ("m.PUT()", ".LIST"),
        ("m.CHANCE.random()", ".CHANCE"),
        ("m.Shop.HISTORY.append(1)", ".Shop.HISTORY"),
        ("m.Shop.shared.append(1)", ".Base.shared"),
        ("m.Shop.count = 1", ".Shop.count"),
        ("m.SHOP.visit()", ".Shop.visit(seen)['x']"),
        ("m.SHOP.static()", ".Shop.static(seen)"),
        ("m.SHOP.many", ".Shop.many.fget(seen)"),
        ("m.SHOP.slot = 2", ".SHOP.slot"),
        ("m.Shop.visit.calls = 1", ".Shop.visit.calls"),
        ("m.Shop.visit.__code__ = (lambda self: 1).__code__", ".Shop.visit"),
        ("m.MODEL.rows.append(1)", ".MODEL.rows"),
        ("m.ROWS.append(1)", ".ROWS"),
        ("m.json.tally = 1", ".json"),
        ("m.json.hook = m.Shop", ".json"),
        ("m.BaseModel.hook = m.Shop.visit", ".BaseModel"),
    ],
)
def test_every_place_is_looked_at_and_named(change: str, path: str) -> None:
    module = run_source(PLACES, "desk.py")
    try:
        told = seen(module, change)
    finally:
        clean(module)
    assert any(one.startswith(NAME + path) for one in told), told


def test_of_many_changes_the_parent_is_told() -> None:
    module = run_source("TABLE = {'x': {}}\n", "desk.py")
    assert seen(module, "m.TABLE['x'].update((n, n) for n in range(9))") == [f"{NAME}.TABLE['x']"]


def test_only_the_top_of_what_is_new_is_told() -> None:
    module = run_source("TABLE = {}\n", "desk.py")
    assert seen(module, "m.TABLE['x'] = {'rows': [{'y': [1, 2]}]}") == [f"{NAME}.TABLE['x']"]


def test_what_libraries_fill_when_they_need_it_is_no_change() -> None:
    source = """
import datetime, json, logging, re, typing, uuid, warnings
from enum import Flag
from pydantic import BaseModel
LOG, PATTERN = logging.getLogger("desk"), re.compile("a")
class Row(BaseModel):
    number: int = 0
class Bits(Flag):
    A = 1
    B = 2
def act():
    LOG.isEnabledFor(10); PATTERN.match("a"); re.compile("b"); Row(number=1).model_dump_json(); Row.model_json_schema()
    warnings.warn("old", stacklevel=1); typing.List[int]; json.dumps(1); Bits.A | Bits.B; uuid.uuid1()
"""
    module = run_source(source, "desk.py")
    with pytest.warns(UserWarning, match="old"):
        assert seen(module, "m.act()") == []


HOSTILE = """
import collections, itertools, random
TRIPPED = []
def trip(*args, **kwargs):
    if ARMED[0]:
        TRIPPED.append(1)
    return 1
ARMED = [False]
NAMES = ("__eq__ __repr__ __str__ __len__ __bool__ __iter__ __getattr__ __contains__ __reduce__ __int__ __getitem__ "
         "__format__ __index__ __reduce_ex__ __dir__ __sizeof__ items keys values get __next__ __float__").split()
class Meta(type):
    def __getattribute__(cls, name):
        trip()
        return type.__getattribute__(cls, name)
    def __hash__(cls):
        trip()
        return type.__hash__(cls)
    def __eq__(cls, other):
        trip()
        return cls is other
    __instancecheck__ = __subclasscheck__ = __repr__ = trip
def members():
    found = {name: trip for name in NAMES}
    def look(self, name):
        trip()
        return object.__getattribute__(self, name)
    def number(self):
        trip()
        return 7
    hidden = {"__class__": property(trip), "__dict__": property(trip)}
    return {**found, **hidden, "__getattribute__": look, "__hash__": number}
class Plain(metaclass=Meta):
    vars().update(members())
class Slots(metaclass=Meta):
    __slots__ = ("x",)
    vars().update(members())
def sub(base):
    return Meta("Sub", (base,), members())
THINGS = [Plain(), Slots(), Plain, *(sub(base)() for base in (
    dict, list, set, str, int, float, tuple, frozenset, bytes, collections.deque, collections.OrderedDict,
    collections.defaultdict, random.Random))]
FILLED = [sub(list)([Plain()]), sub(dict)({Plain(): Plain()}), {Plain(), Plain()}, {Plain(): 1},
          collections.OrderedDict([(Plain(), 1)]), itertools.count(sub(int)(3)), itertools.repeat(Plain()),
          itertools.chain([Plain()]), map(trip, [1]), list.__iter__(sub(list)([1])), enumerate([Plain()])]
def own(x=Plain(), *, y=Slots()):
    return x
own.__defaults__ = sub(tuple)((Plain(),))
own.__kwdefaults__ = sub(dict)({"y": Plain()})
own.__dict__ = sub(dict)({sub(str)("z"): Plain()})
globals()[sub(str)("odd")] = Plain()
"""


def test_no_foreign_code_runs() -> None:
    module = run_source(HOSTILE, "desk.py")
    module.ARMED[0] = True
    try:
        find_differences(collect_module_entries(NAMES), collect_module_entries(NAMES))
    finally:
        module.ARMED[0] = False
    assert module.TRIPPED == []


def test_depth_size_and_cycles_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(digest, "OBJECTS", 3_000)
    source = """
DEEP = []
for _ in range(20_000):
    DEEP = [DEEP]
LOOP = []
LOOP.append(LOOP)
WIDE = [[number] for number in range(2_000)]
LARGE, LONG = 10 ** 10_000, "x" * 10 ** 6
"""
    module = run_source(source, "desk.py")
    assert seen(module) == []
    assert len(collect_module_entries(NAMES)) < 5_000
    assert seen(module, "m.LARGE += 1") == [f"{NAME}.LARGE"]
    assert seen(module, "m.LONG = m.LONG[:-1] + 'y'") == [f"{NAME}.LONG"]


def test_a_module_that_is_not_there_is_no_error() -> None:
    assert collect_module_entries(["no_such_module"]) != collect_module_entries([])
    assert (
        find_differences(collect_module_entries(["no_such_module"]), collect_module_entries(["no_such_module"])) == []
    )


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.floats(allow_nan=False) | st.text("ab", max_size=2),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab", max_size=2), inner, max_size=3),
    max_leaves=6,
)


@given(VALUES, VALUES)
@settings(max_examples=150, deadline=None)
def test_values_differ_exactly_if_they_are_not_the_same(one: object, other: object) -> None:
    module = sys.modules[NAME] = ModuleType(NAME)
    module.VALUE = one
    entries = collect_module_entries(NAMES)
    module.VALUE = other
    same = json.dumps(one) == json.dumps(other)
    assert (find_differences(entries, collect_module_entries(NAMES)) == []) == same
