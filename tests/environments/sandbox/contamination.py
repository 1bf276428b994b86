"""Small environments, most of which keep something where other sessions find it. Data of the isolation tests."""

from dataclasses import dataclass
from textwrap import dedent, indent

CALLS = (1, 2, 1, 3)
"""Arguments of the calls that every test makes."""


@dataclass(frozen=True)
class Case:
    """An environment whose class `Desk` has one tool, `act(number)`."""

    name: str
    source: str
    rule: str | None
    """The rule by which the gate asks for a process per session; None if sessions may share a worker."""
    path: str | None
    """What the digest of the module shows to have changed; None for nothing."""
    differs: bool
    """True if other sessions change its results, in a virtual world."""


def case(
    name: str, body: str, *, module: str = "", members: str = "", rule: str | None, path: str | None, differs: bool
) -> Case:
    """Put the parts of an environment together."""
    text = [
        "import datetime, functools, itertools, random, uuid",
        "from pydantic import BaseModel",
        "class Notes(BaseModel):",
        "    total: int = 0",
        dedent(module),
        "class Desk:",
        indent(dedent(members), "    "),
        "    def __init__(self):",
        "        self.notes = Notes()",
        "    def act(self, number):",
        indent(dedent(body), "        "),
    ]
    return Case(name, "\n".join(text) + "\n", rule, path, differs)


CASES = [
    case(
        "clean",
        "self.notes.total += number; return self.notes.total",
        rule=None, path=None, differs=False,
    ),
    case(
        "constant_table",
        "self.notes.total += RATES['low'] * number; return self.notes.total",
        module="RATES = {'low': 2, 'high': 5}",
        rule=None, path=None, differs=False,
    ),
    case(
        "global_counter",
        "global ISSUED; ISSUED += 1; return ISSUED",
        module="ISSUED = 0",
        rule="global", path="environment_code.ISSUED", differs=True,
    ),
    case(
        "module_cache",
        "SEEN[number] = SEEN.get(number, 0) + 1; return SEEN[number]",
        module="SEEN = {}",
        rule="shared", path="environment_code.SEEN[1]", differs=True,
    ),
    case(
        "class_list",
        "self.HISTORY.append(number); return len(self.HISTORY)",
        members="HISTORY = []",
        rule="shared", path="environment_code.Desk.HISTORY", differs=True,
    ),
    case(
        "mutable_default",
        "return remember(number)",
        module="""
        def remember(number, known=[]):
            known.append(number)
            return len(known)
        """,
        rule="shared", path="environment_code.remember(known)", differs=True,
    ),
    case(
        "cached_method",
        "return self.twice(number)",
        members="""
        @functools.lru_cache(maxsize=None)
        def twice(self, number):
            return 2 * number
        """,
        rule="cache", path="environment_code.Desk.twice", differs=False,
    ),
    case(
        "cached_function",
        "return twice(number)",
        module="""
        @functools.lru_cache(maxsize=None)
        def twice(number):
            return 2 * number
        """,
        rule="cache", path="environment_code.twice", differs=False,
    ),
    case(
        "itertools_count",
        "return next(NUMBERS)",
        module="NUMBERS = itertools.count(100)",
        rule="shared", path="environment_code.NUMBERS", differs=True,
    ),
    case(
        "module_generator_of_chance",
        "return CHANCE.random()",
        module="CHANCE = random.Random(7)",
        rule="shared", path="environment_code.CHANCE", differs=True,
    ),
    case(
        "shared_chance",
        "return random.random()",
        rule=None, path="random", differs=False,
    ),
    case(
        "closure_cell",
        "return ISSUE()",
        module="""
        def issuer():
            issued = 0
            def issue():
                nonlocal issued
                issued += 1
                return issued
            return issue
        ISSUE = issuer()
        """,
        rule="shared", path="environment_code.ISSUE.<closure issued>", differs=True,
    ),
    case(
        "function_attribute",
        "return issue()",
        module="""
        def issue():
            issue.issued = getattr(issue, "issued", 0) + 1
            return issue.issued
        """,
        rule="shared", path="environment_code.issue.issued", differs=True,
    ),
    case(
        "singleton",
        "return STORE.put(number)",
        module="""
        class Store:
            def __init__(self):
                self.rows = []
            def put(self, number):
                self.rows.append(number)
                return len(self.rows)
        STORE = Store()
        """,
        rule="shared", path="environment_code.STORE.rows", differs=True,
    ),
    case(
        "generator",
        "return next(NUMBERS)",
        module="""
        def numbers():
            number = 0
            while True:
                number += 1
                yield number
        NUMBERS = numbers()
        """,
        rule="shared", path="environment_code.NUMBERS.<local number>", differs=True,
    ),
    case(
        "clock_and_uuid",
        "return str(uuid.uuid4()) + datetime.datetime.now().isoformat()",
        rule=None, path=None, differs=False,
    ),
    case(
        "object_id",
        "return id(self)",
        rule="object-id", path=None, differs=False,  # it may or may not: not compared
    ),
    case(
        "set_order",
        "return [*{'a', 'b', 'c', str(number)}]",
        rule=None, path=None, differs=False,
    ),
]  # fmt: skip
"""The eighteen of the measured study, written anew; thirteen share what they change."""

LEAKS = {
    "alias of a module dict": "kept = SEEN\nkept[number] = 1",
    "result of a helper": "given()[number] = 1",
    "parameter of a helper": "put(SEEN, number)",
    "parameter by star": "put(*[SEEN, number])",
    "keyword of a helper": "put(key=number, table=SEEN)",
    "bound method": "add = ROWS.append\nadd(number)",
    "method handed to map": "list(map(ROWS.append, [number]))",
    "method of the class": "list.append(ROWS, number)",
    "heap": "heapq.heappush(ROWS, number)",
    "operator": "operator.setitem(SEEN, number, 1)",
    "augmented": "rows = ROWS\nrows += [number]",
    "walrus": "(kept := SEEN)[number] = 1",
    "element of an element": "for row in PLANS.values():\n    row['price'] += 1",
    "element of a copy": "dict(PLANS)['basic']['price'] += 1",
    "chosen element": "max(PLANS.values(), key=lambda row: row['price'])['price'] += 1",
    "found element": "row = next((row for row in PLANS.values() if row['price']), None)\nrow['price'] = 0",
    "matched element": "match PLANS:\n    case {'basic': row}:\n        row['price'] = 0",
    "element kept in the state": "self.rows = []\nself.rows.append(PLANS['basic'])\nself.rows[0]['price'] += 1",
    "fallback": "kept = None or SEEN\nkept[number] = 1",
    "class attribute by type": "type(self).count = 1",
    "class attribute by name": "Desk.count = 1",
    "class attribute by setattr": "setattr(Desk, 'count', 1)",
    "model made at load": "LAST.total += 1",
    "model with loose fields": "Loose(**{'rows': PLANS}).rows['basic']['price'] += 1",
    "enum member": "Level.LOW.value.append(number)",
    "dispatch": "TABLE['put'](number)",
    "partial": "PUT(number)",
    "lambda": "GIVE()[number] = 1",
    "slice": "ROWS[:] = [number]",
    "deletion": "del SEEN[0]",
    "order": "ROWS.sort(reverse=True)",
    "shuffle": "random.shuffle(ROWS)",
    "attribute of a module": "random.count = number",
    "attribute of a library class": "BaseModel.count = number",
    "default dict": "COUNTS[number] += 1",
    "namespace": "SPACE.count = number",
    "iterator in a container": "next(ITERATORS['ids'])",
    "precision": "decimal.getcontext().prec = number",
    "logger": "logging.getLogger('desk').disabled = True",
    "filled when loaded": "FILLED[0].append(number)",
    "loop when loaded": "KEPT.append(number)",
    "table put on a class": "self.TABLE[number] = 1",
    "method of the class that takes all": "list.extend(ROWS, [number])",
    "method of the type that takes all": "type(ROWS).extend(ROWS, [number])",
    "iterator when loaded": "next(ITERATOR)",
    "rest of a tuple": "REST.append(number)",
    "cast when loaded": "CAST[number] = 1",
    "sum of lists": "SUM.append(number)",
    "default of a field": "Held().thing.count = number",
    "static method": "self.price.count = number",
    "class as keyword": "mark(kind=Desk)",
    "class in a loop": "for kind in (Desk, Notes):\n    kind.count = number",
    "class by condition": "kind = Desk if number else Notes\nkind.count = number",
    "class under another name": "self.touch()",
    "attribute of a variable": "LOG.tally = number",
    "pattern when loaded": "TAKEN.append(number)",
    "iterator of copies": "COPIES[0].append(number)",
    "variable after variable": "one = PLANS\nfor two in one.values():\n    three = two\n    three['price'] += 1",
    "augmented element": "rows = ROWS\nrows += [number]",
    "getattr of a class attribute": "getattr(self, 'HISTORY').append(number)",
}
"""More ways to change something that exists once: bodies of `act`, with `LEAK_MODULE` above the class."""

LEAK_MODULE = """
import decimal, functools, heapq, itertools, logging, operator
from collections import defaultdict
from enum import Enum
from types import SimpleNamespace
from typing import Any, Dict
SEEN, ROWS = {0: 0}, [*range(9)]
PLANS = {"basic": {"price": 1}}
COUNTS = defaultdict(int)
SPACE = SimpleNamespace(count=0)
ITERATORS = {IDS}
LAST = Notes()
class Loose(BaseModel):
    rows: Dict[str, Any]
def put(table, key):
    table[key] = 1
def add(rows, number):
    rows.append(number)
PUT = functools.partial(add, ROWS)
"""
"""Beside the leak that is tested everything here is harmless."""

LEAK_HELPERS = {
    "result of a helper": "def given():\n    return SEEN",
    "enum member": "class Level(Enum):\n    LOW = [1]",
    "dispatch": "def put_row(number):\n    ROWS.append(number)\nTABLE = {'put': put_row}",
    "lambda": "GIVE = lambda: SEEN",
    "filled when loaded": "FILLED = []\nFILLED.append([])",
    "loop when loaded": "for KEPT in [[1], [2]]:\n    pass",
    "table put on a class": "Desk.TABLE = {}",
    "iterator when loaded": "ITERATOR = iter((1, 2, 3))",
    "rest of a tuple": "FIRST, *REST = (1, 2, 3)",
    "cast when loaded": "from typing import cast\nCAST = cast(Any, {})",
    "sum of lists": "SUM = sum((), [])",
    "default of a field": "class Thing: pass\nclass Held(BaseModel):\n    thing: Any = Thing()",
    "static method": "Desk.price = staticmethod(lambda: 1)",
    "class as keyword": "def mark(kind):\n    kind.count = 1",
    "class under another name": "Desk.touch = classmethod(lambda kind: setattr(kind, 'count', 1))",
    "attribute of a variable": "LOG = logging.getLogger('desk')",
    "pattern when loaded": "match {'a': []}:\n    case {'a': TAKEN}:\n        pass",
    "iterator of copies": "COPIES = tuple(map(lambda number: [number], (1, 2)))",
}
"""What some leaks need besides; below the class `Desk` where it names that."""

FINE = {
    "deep copy": "own = copy.deepcopy(PLANS)\nown['basic']['price'] += 1\nreturn own",
    "flat copy": "own = list(NAMES)\nown.append(number)\nreturn own",
    "merged": "own = {**RATES, 'x': number}\nown['y'] = 1\nreturn own",
    "sum": "total = 0\nfor rate in RATES.values():\n    total += rate\nreturn total",
    "pattern": "return bool(PATTERN.match(str(number)))",
    "closure of a call": "count = 0\ndef up():\n    nonlocal count\n    count += 1\nup()\nreturn count",
    "default that is read": "return known(number)",
    "fields with defaults": "own = Fields()\nown.rows.append(number)\nreturn own.rows",
    "builtins as parameters": "def plus(open, id, input):\n    return open + id + input\nreturn plus(1, 2, number)",
    "format written out": "return '{:.2f} {name}'.format(number, name='n')",
    "seeded chance": "return random.Random(number).random()",
    "key function": "return sorted(NAMES, key=lambda name: RATES.get(name, 9))",
    "text about code": "return 'call open (see docs) or __init__ of it'",
    "joined": "return ', '.join(NAMES) + str(random.Random(number).choice(NAMES))",
    "table of named tuples": "return SIZES['small'].rows * number",
    "paths": "return os.path.join('/', str(number))",
    "names in the docstring": '"""Uses eval(x) and __class__."""\nreturn number',
}
"""Bodies of `act` that keep to themselves, with `FINE_MODULE` above the class."""

COSTLY = {
    "reads nested constants": "plan = PLANS['basic']\nreturn [plan['price'] * number, *plan]",
    "gives constants": "return PLANS",
    "helper that reads": "return price(PLANS, 'basic')",
    "service without state": "return TAX.of(number)",
    "typed model of constants": "own = Typed(**{'plans': PLANS})\nown.plans['basic'].price += 1\nreturn own.plans",
}
"""Such bodies that get a process all the same: the gate follows nothing into variables and calls."""

FINE_MODULE = """
import copy, os, re
from typing import List, NamedTuple, Optional
from pydantic import Field
PLANS = {"basic": {"price": 1}}
RATES = {"low": 2}
NAMES = ["a", "b"]
PATTERN = re.compile("1")
class Size(NamedTuple):
    rows: int
SIZES = {"small": Size(1)}
def price(plans, name):
    return plans[name]["price"]
def known(number, names=[]):
    return number in names
class Tax:
    def __init__(self):
        self.rate = 2
    def of(self, number):
        return number * self.rate
TAX = Tax()
class Plan(BaseModel):
    price: int
    parent: "Optional[Plan]" = None
class Typed(BaseModel):
    plans: dict[str, Plan]
class Fields(BaseModel):
    rows: List[int] = []
    names: List[str] = Field(default_factory=list)
"""


def leak_source(name: str, body: str | None = None) -> str:
    """One of `LEAKS` as an environment; or with another body."""
    ids = '{"ids": itertools.count()}' if name == "iterator in a container" else "{}"
    helpers = "" if body else LEAK_HELPERS.get(name, "")
    module = LEAK_MODULE.replace("{IDS}", ids) + ("" if "Desk" in helpers else helpers)
    leak = case(name, body or LEAKS[name], module=module, members="HISTORY = []", rule="", path="", differs=True)
    return leak.source + (helpers if "Desk" in helpers else "")


def fine_source(name: str) -> str:
    """One of `FINE` or `COSTLY` as an environment."""
    return case(name, (FINE | COSTLY)[name], module=FINE_MODULE, rule=None, path=None, differs=False).source
