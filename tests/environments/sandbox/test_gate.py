"""The gate: which code may share a worker, and that nothing makes it fail."""

import ast
from pathlib import Path

import pytest
from contamination import CASES, COSTLY, FINE, LEAKS, Case, fine_source, leak_source
from hypothesis import example, given, settings
from hypothesis import strategies as st

from trajsmith.environments import library
from trajsmith.environments.sandbox.gate import LARGEST, can_share_worker, examine_source

REACHES = {
    "a module's module": "import dataclasses\ndef f():\n    return dataclasses.sys.modules",
    "a module's import": "import uuid\ndef f():\n    return uuid.os.listdir('/')",
    "an import of an import": "from uuid import os",
    "a module in a variable": "import uuid\ndef f():\n    found = uuid\n    return found.os",
    "a module in a list": "import uuid\ndef f():\n    return [uuid][0].os",
    "a module as an argument": "import uuid\ndef f():\n    return vars_of(uuid)",
    "a codec": "import json\ndef f():\n    return json.codecs.open('x')",
    "attrgetter": "import operator\ndef f(path):\n    return operator.attrgetter(path)(())",
    "methodcaller": "from operator import methodcaller\ndef f(name):\n    return methodcaller(name)(1)",
    "a formatter": "import string\ndef f(text, thing):\n    return string.Formatter().format(text, thing)",
    "format of a variable": "def f(text, thing):\n    return text.format(thing)",
    "format in map": "def f(text, things):\n    return list(map(text.format, things))",
    "format with a dunder": "def f(thing):\n    return '{0.__class__}'.format(thing)",
    "a type adapter": "import pydantic\ndef f(text):\n    return pydantic.TypeAdapter(text)",
    "a made model": "from pydantic import create_model\ndef f(text):\n    return create_model('M', x=(text, ...))",
    "an import string": "from pydantic import BaseModel, ImportString\nclass M(BaseModel):\n    x: ImportString",
    "pickled model": "from pydantic import BaseModel\ndef f(x):\n    return BaseModel.parse_raw(x, proto='pickle')",
    "an alias that is an attribute": "from pydantic import BaseModel, Field\nclass M(BaseModel):\n"
    "    x: object = Field(alias='__subclasses__')",
    "type hints": "import typing\ndef f(thing):\n    return typing.get_type_hints(thing)",
    "a forward reference": "import typing\ndef f(text):\n    return typing.ForwardRef(text)",
    "an annotation that calls": "def f(x: 'open(1)'):\n    return x",
    "an annotation in a type": "from typing import Optional\nX = Optional['eval(chr(49))']",
    "a text in a text": "def f(x: \"list['eval(1)']\"):\n    return x",
    "a format in a format": "def f(thing):\n    return '{:{0.__class__}}'.format(thing)",
    "a default with a builtin": "def f(open=open):\n    return open('x')",
    "a builtin of another scope": "def f(x=lambda open: 1):\n    return open('x')",
    "a global builtin": "def f():\n    global open\n    if 0:\n        open = 1\n    return open('x')",
    "an annotation with a module": "import uuid\nclass M:\n    x: 'uuid.os.getpid()'",
    "a dunder of a result": "def f():\n    return print.__self__",
    "a dunder in an f-string": "def f(x):\n    return f'{x.__class__}'",
    "a dunder in a pattern": "def f(x):\n    match x:\n        case object(__class__=found):\n            return found",
    "a traceback": "def f():\n    try:\n        g()\n    except Exception as e:\n        return e.__traceback__",
    "a frame": "def f():\n    found = (x for x in ())\n    return found.gi_frame",
    "every class": "def f():\n    return int.mro()",
    "getattr in map": "def f(things, names):\n    return list(map(getattr, things, names))",
    "getattr by variable": "def f(thing, name):\n    return getattr(thing, name)",
    "getattr of a dunder": "def f(thing):\n    return getattr(thing, '__class__')",
    "setattr by variable": "def f(thing, name):\n    setattr(thing, name, 1)",
    "setattr of nothing": "def f():\n    setattr()",
    "eval as a decorator": "@eval\n@(lambda found: '1 + 1')\ndef f(): pass",
    "builtin behind a variable": "if 0:\n    open = 1\ndef f():\n    return open('x')",
    "builtin behind a comprehension": "def f():\n    [open for open in ()]\n    return open('x')",
    "a channel by number": "import io\ndef f():\n    return io.FileIO(3, 'w')",
    "globals": "def f():\n    globals()['x'] = 1",
    "a private name elsewhere": "import random\ndef f(chance):\n    return chance._randbelow",
    "three-argument type": "def f(name):\n    return type(name, (), {})",
    "a metaclass": "class Meta(type): pass\nclass A(metaclass=Meta): pass",
    "__del__": "class A:\n    def __del__(self): pass",
    "__getattribute__": "class A:\n    def __getattribute__(self, name): return 1",
    "a bare except": "def f():\n    try:\n        g()\n    except:\n        pass",
    "BaseException": "def f():\n    try:\n        g()\n    except (ValueError, BaseException):\n        pass",
    "leaving finally": "def f():\n    for x in ():\n        try:\n            g()\n        finally:\n            break",
    "a swallowing exit": "class A:\n    def __exit__(self, *error):\n        return True",
    "a module outside": "import requests",
    "everything of a module": "from math import *",
    "a neighbour": "from . import other",
    "a renamed main": "__name__ = '__main__'",
}
"""Ways to reach what belongs to others, among them all that got past the gates of the study."""


def rules(source: str, severity: str = "process") -> set[str]:
    return {finding.rule for finding in examine_source(source, "desk.py") if finding.severity == severity}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_each_leak_is_refused_by_its_rule_and_nothing_else_is(case: Case) -> None:
    assert can_share_worker(examine_source(case.source, "desk.py")) == (case.rule is None)
    assert case.rule is None or case.rule in rules(case.source)


@pytest.mark.parametrize("name", LEAKS)
def test_what_exists_once_is_followed_to_where_it_changes(name: str) -> None:
    assert rules(leak_source(name)) & {"shared", "import"}, "the leak was not seen"
    harmless = leak_source(name, "return number")
    assert rules(harmless) == set(), "it would be refused without the leak too"


@pytest.mark.parametrize("name", FINE)
def test_code_that_keeps_to_itself_may_share(name: str) -> None:
    assert [
        str(finding) for finding in examine_source(fine_source(name), "desk.py") if finding.severity == "process"
    ] == []


@pytest.mark.parametrize("name", COSTLY)
def test_shared_objects_are_not_followed_into_variables_and_calls(name: str) -> None:
    assert rules(fine_source(name)) == {"shared"}


@pytest.mark.parametrize("name", REACHES)
def test_reaching_for_others_is_refused(name: str) -> None:
    ast.parse(REACHES[name])
    assert rules(REACHES[name]), "it got past the gate"


@pytest.mark.parametrize(
    ("expression", "rule"),
    [
        ("datetime.datetime.now()", "clock"),
        ("time.time()", "clock"),
        ("uuid.uuid4()", "uuid"),
        ("random.choice([1, 2])", "random"),
        ("secrets.token_hex()", "entropy"),
        ("time.monotonic()", "real-clock"),
    ],
)
def test_clock_and_chance_are_noted_and_may_share(expression: str, rule: str) -> None:
    source = f"import datetime, random, secrets, time, uuid\ndef f():\n    return {expression}\n"
    assert (rules(source), rules(source, "note")) == (set(), {rule})


def test_a_finding_says_where_and_what() -> None:
    (finding,) = examine_source("SEEN = {}\ndef f(x):\n    SEEN[x] = 1\n", "desk.py")
    assert str(finding) == "desk.py:3: does more than look at SEEN, of which there is one for all sessions"
    assert (finding.line, finding.rule, finding.severity) == (3, "shared", "process")


NOT_COPIED = {
    "closure": "def make():\n    rows = []\n    def put(x):\n        rows.append(x)\n    return put\nPUT = make()",
    "default": "def put(x, rows=[]):\n    rows.append(x)",
    "default of a lambda": "PUT = lambda x, rows=[]: rows.append(x)",
    "cache": "import functools\n@functools.cache\ndef put(x):\n    return [x]",
    "memo": "def memo(f):\n    seen = {}\n    def g(x):\n        seen[x] = 1\n    return g\n@memo\ndef f(x): return x",
    "generator": "NUMBERS = (x for x in [1, 2])\ndef f():\n    return next(NUMBERS)",
    "function attribute": "def f():\n    f.calls = 1",
    "new class attribute": "class A:\n    def f(self):\n        A.calls = 1",
    "member of an enumeration": "from enum import Enum\nclass A(Enum):\n    X = [1]\ndef f():\n    A.X.value.append(1)",
}
COPIED = {
    "variable": "COUNT = 0\ndef f():\n    global COUNT\n    COUNT += 1",
    "table": "SEEN = {}\ndef f(x):\n    SEEN[x] = 1",
    "instance": "class Api:\n    def put(self, x):\n        self.x = x\napi = Api()\ndef f(x):\n    api.put(x)",
    "iterator": "import itertools\nIDS = itertools.count()\ndef f():\n    return next(IDS)",
    "class attribute": "class A:\n    calls = 0\n    def f(self):\n        A.calls += 1",
    "class table": "class A:\n    rows = []\n    def f(self):\n        self.rows.append(1)",
}


@pytest.mark.parametrize("name", [*NOT_COPIED, *COPIED])
def test_where_plays_have_their_own_variables_the_rest_is_still_shared(name: str) -> None:
    source = {**NOT_COPIED, **COPIED}[name]
    assert not can_share_worker(examine_source(source, "desk.py"))
    assert can_share_worker(examine_source(source, "desk.py", own_variables=True)) == (name in COPIED)


def test_what_a_file_does_as_a_script_is_not_looked_at() -> None:
    body = "    import requests\n    exec('1')\n"
    assert can_share_worker(examine_source("if __name__ == '__main__':\n" + body, "desk.py"))
    assert not can_share_worker(examine_source("if __name__ != '__main__':\n" + body, "desk.py"))


@pytest.mark.parametrize("path", sorted(Path(library.__file__).parent.glob("*/__init__.py")), ids=str)
def test_the_bundled_environments_may_share(path: Path) -> None:
    assert [str(f) for f in examine_source(path.read_text("utf-8"), path.parent.name) if f.severity == "process"] == []


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("def f(:", "does not parse"),
        ("x = 1\0", ""),
        ("x = '\ud800'", "cannot be read"),
        ("x = " + "-" * 100_000 + "1", "nests too deeply"),
        ("x = 1" + " + 1" * 50_000, "nests too deeply"),
        ("x" + ".a" * 100_000, "nests too deeply"),
        ("x" + "()" * 50_000, "nests too deeply"),
        ("x = " + "lambda: " * 5_000 + "1", "nests too deeply"),
        ("if a: pass\n" + "elif a: pass\n" * 5_000, "nests too deeply"),
        ("(" * 10_000, "does not parse"),
        ("x = " + "9" * 100_000, "does not parse"),
        ("#" * (LARGEST + 1), "bytes"),
        ("#" * (LARGEST // 2) + "é" * (LARGEST // 3), "bytes"),
    ],
    ids=lambda value: str(len(value)) if len(value) > 40 else repr(value),
)
def test_what_cannot_be_examined_is_one_finding(source: str, message: str) -> None:
    (finding,) = examine_source(source, "desk.py")
    assert (finding.rule, finding.severity) == ("unreadable", "process")
    assert message in finding.message


TOKENS = (
    "x self cls def class lambda return yield await async for in if else match case with as try except finally raise "
    "import from global nonlocal del None True ( ) [ ] { } : , . = += := * ** @ -> | + 1 'a' f'{x}' '__class__' pass "
    "X x.y x[0] f(x) \n \n    \n        ; print open id getattr __init__ random uuid dict list append"
)
WORDS = st.sampled_from(TOKENS.split(" "))
SOURCES = [case.source for case in CASES] + [leak_source(name) for name in LEAKS]


@given(st.one_of(st.text(), st.lists(WORDS, max_size=40).map(" ".join)))
@example("def f(a, *b, c=[], **d): f(*a, **d)\nf(1)")
@example("@x\nclass x(x): x = x = x")
@settings(max_examples=150, deadline=None)
def test_no_text_makes_it_fail(source: str) -> None:
    assert all(finding.line >= 1 for finding in examine_source(source, "desk.py"))


@given(st.sampled_from(SOURCES), st.lists(st.tuples(st.integers(0, 2000), st.integers(0, 60), WORDS), max_size=3))
@settings(max_examples=100, deadline=None)
def test_no_damaged_environment_makes_it_fail(source: str, damages: list[tuple[int, int, str]]) -> None:
    for start, length, word in damages:
        source = source[:start] + word + source[start + length :]
    assert all(finding.line >= 1 for finding in examine_source(source, "desk.py"))


NODES = [node for source in SOURCES for node in ast.walk(ast.parse(source))]
STATEMENTS = st.sampled_from([node for node in NODES if isinstance(node, ast.stmt)])


@given(st.lists(STATEMENTS, min_size=1, max_size=8))
@settings(max_examples=100, deadline=None)
def test_no_shuffled_program_makes_it_fail(statements: list[ast.stmt]) -> None:
    findings = examine_source(ast.unparse(ast.Module(statements, [])), "desk.py")
    assert all(finding.line >= 1 for finding in findings)
