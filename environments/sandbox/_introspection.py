"""Looking into objects without running their code: what the digest of foreign modules is made of.

A reader takes an object of one exact type and gives a token (plain data that stands for what it is by itself) and its
children (labels and objects). Nothing here calls a method that a foreign class could have replaced.
"""

import array
import contextvars
import datetime
import decimal
import functools
import io
import itertools
import pathlib
import random
import re
import types
import warnings
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

Child = tuple[str, Any]
Reading = tuple[Any, list[Child]]

TYPE_DICT = type.__dict__["__dict__"].__get__
TYPE_MRO = type.__dict__["__mro__"].__get__
_TYPE_BASES = type.__dict__["__bases__"].__get__
_TYPE_FLAGS = type.__dict__["__flags__"].__get__
_MODULE_DICT = types.ModuleType.__dict__["__dict__"].__get__  # type: ignore[index]
_RANDOM_STATE: Any = random.Random.__mro__[1].__dict__["getstate"]
_IMMUTABLE_TYPE = 1 << 8
LARGEST = 50_000
"""Elements of a container beyond which it only counts."""
_MODULE_NAMES = frozenset({
    "__annotations__", "__builtins__", "__cached__", "__doc__", "__file__", "__loader__", "__name__", "__package__",
    "__path__", "__spec__", "__warningregistry__",
})  # fmt: skip
_CLASS_NAMES = frozenset({
    "__annotations__", "__class_vars__", "__dataclass_fields__", "__dataclass_params__", "__dict__", "__doc__",
    "__firstlineno__", "__match_args__", "__module__", "__orig_bases__", "__parameters__", "__private_attributes__",
    "__qualname__", "__signature__", "__slotnames__", "__static_attributes__", "__weakref__", "_abc_impl",
    "_value2member_map_",
})  # fmt: skip
"""What the interpreter, copy, typing, enum and pydantic keep in a class, some of it filled when first needed."""
_QUIET = (
    "_thread", "abc", "asyncio", "concurrent", "trajsmith", "fastapi", "logging", "pydantic", "pydantic_core",
    "sqlalchemy", "starlette", "threading", "trajectory", "typing", "typing_extensions", "weakref",
)  # fmt: skip
"""Packages whose own objects are not looked into: they fill caches as they please."""
_DATA = frozenset(map(id, (bool, bytearray, bytes, complex, deque, dict, float, frozenset, int, list, set, str, tuple)))


# Values without children: what stands for them in the digest

_LONG = 200
"""Characters or bytes from which on a hash stands for a text."""


def _integer(value: int) -> Any:
    return value if value.bit_length() < 1024 else hex(value)


def _text(value: str | bytes) -> Any:
    return value if len(value) < _LONG else (len(value), hash(value))


def _constant(value: Any) -> Any:
    return id(value)


_LEAVES: dict[type, Callable[[Any], Any]] = {
    type(None): lambda value: value,
    bool: lambda value: value,
    int: _integer,
    float: lambda value: value,
    complex: lambda value: value,
    str: _text,
    bytes: _text,
    bytearray: lambda value: hash(bytes(value)),
    array.array: lambda value: hash(value.tobytes()),
    range: repr,
    datetime.date: datetime.date.isoformat,
    datetime.datetime: lambda value: value.replace(tzinfo=None).isoformat(),
    datetime.time: lambda value: value.replace(tzinfo=None).isoformat(),
    datetime.timedelta: lambda value: (value.days, value.seconds, value.microseconds),
    decimal.Decimal: str,
    io.StringIO: lambda value: None if value.closed else (value.tell(), _text(value.getvalue())),
    io.BytesIO: lambda value: None if value.closed else (value.tell(), _text(value.getvalue())),
    **dict.fromkeys((pathlib.PurePosixPath, pathlib.PureWindowsPath, pathlib.PosixPath), str),
    **dict.fromkeys(
        (
            datetime.timezone, re.Pattern, slice, type(...), type(NotImplemented), types.CodeType,
            types.GetSetDescriptorType, types.MemberDescriptorType, types.MethodDescriptorType,
            types.WrapperDescriptorType, types.ClassMethodDescriptorType, types.GenericAlias, types.UnionType,
        ),
        _constant,
    ),
}  # fmt: skip
LEAVES = {id(kind): reader for kind, reader in _LEAVES.items()}
"""Types without children, by identity, as looking for a class asks its metaclass for a hash. Their tokens compare by
value, or by identity where nothing in them can change."""


@dataclass(frozen=True)
class ForeignTypes:
    """Test of which functions, classes and objects count as foreign."""

    modules: frozenset[str]
    """Their names."""
    namespaces: frozenset[int]
    """`id`s of their dicts."""

    def is_function(self, value: Any) -> bool:
        return type(value) is types.FunctionType and id(value.__globals__) in self.namespaces

    def is_class(self, kind: type) -> bool:
        module = TYPE_DICT(kind).get("__module__")
        return type(module) is str and module in self.modules

    def is_foreign_object(self, value: Any) -> bool:
        """A foreign function or class, or an object of a foreign class."""
        kind = type(value)
        if kind is types.FunctionType:
            return self.is_function(value)
        return self.is_class(value if issubclass(kind, type) else kind)


def list_module_items(namespace: Mapping[str, Any]) -> list[Child]:
    """The names of a foreign module with their values."""
    return [(f".{name}", value) for name, value in _list_named(namespace) if name not in _MODULE_NAMES]


def read_object(value: Any, foreign: ForeignTypes) -> Reading:
    """Token and children of any object but a leaf."""
    kind = type(value)
    reader = _READERS.get(id(kind))
    if reader is not None:
        return reader(value)
    if kind is types.FunctionType:
        return _read_function(value, foreign)
    if kind is types.ModuleType:
        return _read_module(value, foreign)
    if issubclass(kind, type):
        return _read_class(value, foreign)
    return _read_object(value, kind, foreign)


def _list_named(namespace: Any) -> list[tuple[str, Any]]:
    """The items of a namespace. A name may be an object of a foreign class of strings: it gets another."""
    items = dict.items(namespace) if isinstance(namespace, dict) else namespace.items()
    return [(name if type(name) is str else f"<name {number}>", item) for number, (name, item) in enumerate(items)]


def _items(mapping: dict[Any, Any]) -> list[Child]:
    children: list[Child] = []
    for number, (key, value) in enumerate(itertools.islice(dict.items(mapping), LARGEST)):
        leaf = LEAVES.get(id(type(key)))
        if leaf is None:
            children += ((f"<key {number}>", key), (f"[<key {number}>]", value))
        else:
            children.append((f"[{leaf(key)!r}]", value))
    return children


def _elements(values: Iterable[Any]) -> list[Child]:
    return [(f"[{number}]", value) for number, value in enumerate(itertools.islice(values, LARGEST))]


def _read_list(value: list[Any]) -> Reading:
    return ("list", list.__len__(value)), _elements(list.__iter__(value))


def _read_tuple(value: tuple[Any, ...]) -> Reading:
    return ("tuple", tuple.__len__(value)), _elements(tuple.__iter__(value))


def _read_deque(value: deque[Any]) -> Reading:
    return ("deque", deque.__len__(value)), _elements(deque.__iter__(value))


def _read_dict(value: dict[Any, Any]) -> Reading:
    items = _items(value)
    return ("dict", dict.__len__(value), [label for label, _ in items]), items


def _read_ordered(value: "OrderedDict[Any, Any]") -> Reading:
    """Its order is its own; asking for it looks keys up, which foreign keys must not notice."""
    token, items = _read_dict(value)
    plain = all(id(type(key)) in LEAVES for key in dict.keys(value))
    return (token, repr(list(OrderedDict.__iter__(value))) if plain else None), items


def _read_default(value: "defaultdict[Any, Any]") -> Reading:
    token, items = _read_dict(value)
    return token, [*items, (".default_factory", defaultdict.__dict__["default_factory"].__get__(value))]


def _read_set(value: Collection[Any], iterate: Callable[[Any], Iterable[Any]] = set.__iter__) -> Reading:
    plain, rest = [], []
    for item in iterate(value):
        leaf = LEAVES.get(id(type(item)))
        if leaf is None:
            rest.append(item)
        else:
            plain.append(repr(leaf(item)))
    return ("set", sorted(plain), len(rest)), _elements(rest)


def _read_frozenset(value: frozenset[Any]) -> Reading:
    return _read_set(value, frozenset.__iter__)


def _read_method(value: Any) -> Reading:
    owner = value.__self__
    if owner is None or type(owner) is types.ModuleType:
        return ("builtin", id(value)), []
    return "method", [
        (".__self__", owner),
        *([(".__func__", value.__func__)] if type(value) is types.MethodType else []),
    ]


def _read_wrapped(value: Any) -> Reading:
    return type(value).__name__, [("", value.__func__)]


def _read_property(value: property) -> Reading:
    return "property", [(".fget", value.fget), (".fset", value.fset), (".fdel", value.fdel)]


def _read_partial(value: "functools.partial[Any]") -> Reading:
    own = functools.partial.__dict__["__dict__"].__get__(value)
    return "partial", [(".func", value.func), (".args", value.args), (".keywords", value.keywords), (".__dict__", own)]


def _read_lru_cache(value: Any) -> Reading:
    wrapped = dict.get(value.__dict__, "__wrapped__")
    return ("lru_cache", tuple(value.cache_info())), [(".__wrapped__", wrapped)]


def _read_generator(value: Any) -> Reading:
    frame = value.gi_frame
    if frame is None:
        return ("generator", "finished"), []
    return ("generator", frame.f_lasti), [
        (f".<local {name}>", item) for name, item in dict(frame.f_locals).items()
    ] + [(".<yield from>", value.gi_yieldfrom)]  # fmt: skip


def _read_iterator(value: Any) -> Reading:
    """Read the position of a built-in iterator, as it would be pickled. Newer interpreters cannot pickle all of
    them.
    """
    if "__reduce__" not in TYPE_DICT(type(value)):
        return ("iterator", id(value)), []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        _, *rest = value.__reduce__()
    if len(rest) == 1 and type(rest[0]) is tuple and all(id(type(item)) in LEAVES for item in rest[0]):
        return (type(value).__name__, [LEAVES[id(type(item))](item) for item in rest[0]]), []
    return type(value).__name__, [(f".<{number}>", item) for number, item in enumerate(rest)]


def _read_cell(value: types.CellType) -> Reading:
    try:
        return "cell", [("", value.cell_contents)]
    except ValueError:
        return "an empty cell", []


def _read_random(value: random.Random) -> Reading:
    return hash(_RANDOM_STATE(value)), []


def _read_variable(value: "contextvars.ContextVar[Any]") -> Reading:
    return "variable", [(".get()", value.get(None))]


def _read_function(value: types.FunctionType, foreign: ForeignTypes) -> Reading:
    if not foreign.is_function(value):
        wrapped = dict.get(value.__dict__, "__wrapped__")
        return ("library", id(value)), [] if wrapped is None else [(".__wrapped__", wrapped), *_closure(value)]
    code, defaults, keywords, own = value.__code__, value.__defaults__, value.__kwdefaults__, value.__dict__
    children = _closure(value)
    if defaults is not None:
        names = code.co_varnames[max(0, code.co_argcount - tuple.__len__(defaults)) : code.co_argcount]
        children += [(f"({name})", item) for name, item in zip(names, tuple.__iter__(defaults), strict=False)]
    if keywords is not None:
        children += [(f"({name})", item) for name, item in _list_named(keywords)]
    children += [(f".{name}", item) for name, item in _list_named(own)]
    return id(code), children


def _closure(value: types.FunctionType) -> list[Child]:
    if not value.__closure__:
        return []
    names = value.__code__.co_freevars
    return [(f".<closure {name}>", cell) for name, cell in zip(names, value.__closure__, strict=False)]


def _read_module(value: types.ModuleType, foreign: ForeignTypes) -> Reading:
    namespace = _MODULE_DICT(value)
    if id(namespace) in foreign.namespaces:
        return "a foreign module", []
    return _read_library(value, namespace, foreign)


def _read_class(value: type, foreign: ForeignTypes) -> Reading:
    if _TYPE_FLAGS(value) & _IMMUTABLE_TYPE:
        return id(value), []
    namespace = TYPE_DICT(value)
    if not foreign.is_class(value):
        return _read_library(value, namespace, foreign)
    children = [(f".<base {number}>", base) for number, base in enumerate(_TYPE_BASES(value)) if base is not object]
    for name, item in _list_named(namespace):
        if name not in _CLASS_NAMES and not name.startswith("__pydantic"):
            children.append((f".{name}", item))
    return id(value), children


def _read_library(value: Any, namespace: Mapping[str, Any], foreign: ForeignTypes) -> Reading:
    """Of a library only what foreign code may have put there."""
    data, children = 0, []
    for name, item in _list_named(namespace):
        if id(type(item)) in _DATA:
            data += name not in _MODULE_NAMES
        elif type(item) is not types.BuiltinFunctionType and foreign.is_foreign_object(item):
            children.append((f".{name}", item))
    return (id(value), data), children


def _read_object(value: Any, kind: type, foreign: ForeignTypes) -> Reading:
    """An object of a class, library or foreign: as the builtin it is based on, then its attributes."""
    module = TYPE_DICT(kind).get("__module__")
    if type(module) is str and module.partition(".")[0] in _QUIET and module not in foreign.modules:
        return ("library", id(value)), []
    token, children = _read_base(value, kind)
    getters = [
        (name, getter)
        for owner in TYPE_MRO(kind)
        for name, getter in TYPE_DICT(owner).items()
        if type(getter) is types.MemberDescriptorType
        or (name == "__dict__" and type(getter) is types.GetSetDescriptorType)
    ]
    for name, getter in getters:
        try:
            held = getter.__get__(value)
        except (AttributeError, TypeError):  # an empty slot; a descriptor of another class, put here by foreign code
            continue
        if name == "__dict__" and type(held) is dict:
            children += [(f".{key}", item) for key, item in _list_named(held)]
        else:
            children.append((f".{name}", held))
    if token is None and not getters:
        token = id(value)
    return (id(kind), token), children


def _read_base(value: Any, kind: type) -> Reading:
    for base, reader in _BASES:
        if issubclass(kind, base):
            return reader(value)
    return None, []


def _exactly(make: Callable[[Any], Any]) -> Callable[[Any], Reading]:
    return lambda value: (make(value), [])


_ITERATORS: list[Any] = [
    enumerate, filter, map, reversed, zip, type(iter([])), type(iter(())), type(iter({})), type(iter({}.values())),
    type(iter({}.items())), type(iter(set())), type(iter("")), type(iter("é")), type(iter(b"")), type(iter(range(1))),
    type(iter(int, 1)), type(reversed([])), type(reversed({})),
    *(value for value in vars(itertools).values() if type(value) is type),
]  # fmt: skip
_BY_TYPE: dict[type, Callable[[Any], Reading]] = {
    list: _read_list,
    tuple: _read_tuple,
    dict: _read_dict,
    set: _read_set,
    frozenset: _read_frozenset,
    deque: _read_deque,
    OrderedDict: _read_ordered,
    defaultdict: _read_default,
    types.MethodType: _read_method,
    types.BuiltinMethodType: _read_method,
    types.MethodWrapperType: _read_method,
    staticmethod: _read_wrapped,
    classmethod: _read_wrapped,
    property: _read_property,
    functools.partial: _read_partial,
    type(functools.lru_cache(len)): _read_lru_cache,
    types.GeneratorType: _read_generator,
    types.CellType: _read_cell,
    contextvars.ContextVar: _read_variable,
    **dict.fromkeys(_ITERATORS, _read_iterator),
}
_READERS = {id(kind): reader for kind, reader in _BY_TYPE.items()}
_BASES: tuple[tuple[type, Callable[[Any], Reading]], ...] = (
    (OrderedDict, _read_ordered),
    (defaultdict, _read_default),
    (dict, _read_dict),
    (list, _read_list),
    (tuple, _read_tuple),
    (set, _read_set),
    (frozenset, _read_frozenset),
    (deque, _read_deque),
    (int, _exactly(int.__int__)),
    (str, _exactly(str.__str__)),
    (float, _exactly(float.__float__)),
    (random.Random, _read_random),
)
