"""What code may name that shares a worker with other sessions: modules, their public names, builtins, attributes."""

import functools
import importlib
from types import ModuleType

from trajsmith.environments.sandbox.serialization import split_words

LIBRARY = "trajsmith.environments.library"
"""The project's own environments: their modules may be imported from one another."""

MODULES: dict[str, frozenset[str] | None] = {
    **dict.fromkeys(
        split_words("""
        __future__ abc base64 bisect calendar cmath collections collections.abc copy csv dataclasses datetime
        decimal difflib enum fnmatch fractions functools hashlib heapq hmac html itertools json keyword math
        numbers operator pprint pydantic random re secrets shlex statistics string struct textwrap time typing
        typing_extensions unicodedata urllib.parse uuid zlib zoneinfo
    """)
    ),
    "contextlib": frozenset(
        split_words("""
        AbstractContextManager ExitStack closing contextmanager nullcontext suppress
    """)
    ),
    "trajsmith.environments.native": frozenset(split_words("Environment EnvironmentState StateModel tool")),
    "io": frozenset({"BytesIO", "StringIO"}),
    "logging": frozenset(
        split_words("""
        CRITICAL DEBUG ERROR INFO WARNING debug error exception getLogger info warning
    """)
    ),
    "mcp.server.fastmcp": frozenset({"Context", "FastMCP"}),
    "os": frozenset({"linesep", "sep"}),
    "os.path": frozenset(
        split_words("""
        basename commonpath commonprefix dirname isabs join normpath sep split splitext
    """)
    ),
    "pathlib": frozenset(split_words("Path PurePath PurePosixPath PureWindowsPath")),
    "sys": frozenset({"maxsize"}),
    "trajsmith": frozenset(["Environment", "EnvironmentState", "StateModel", "ToolError", "tool"]),
    "trajsmith.environments": frozenset(["Environment", "EnvironmentState", "StateModel", "ToolError", "tool"]),
    "trajsmith.records": frozenset({"ConfirmationRule", "PolicyRule", "ToolError", "derive_seed"}),
    "types": frozenset({"MappingProxyType", "SimpleNamespace"}),
    "warnings": frozenset({"warn"}),
}
"""Modules that may be imported, and which of their names; None for all public ones."""

PACKAGES = frozenset({"os", "urllib"})
"""Imported for a submodule; beyond what `MODULES` says nothing of them may be named."""

BANNED_MEMBERS = frozenset(
    split_words("""
        Formatter ForwardRef ImportString TypeAdapter attrgetter create_model evaluate_forward_ref
        field_size_limit get_annotations getcontext get_type_hints import_string make_dataclass methodcaller
        register_dialect setcontext setfirstweekday validate_arguments
    """)
)
"""Public names that evaluate text, reach attributes by text, or change what all sessions share."""

BUILTINS = frozenset(
    split_words("""
        __build_class__ __builtins__ __import__ __loader__ __spec__ breakpoint compile copyright credits delattr
        dir eval exec exit getattr globals hasattr help input license locals memoryview open quit setattr vars
    """)
)
"""Builtins that may not be named (`getattr` and its kin may be called with the attribute written out)."""

ATTRIBUTES = frozenset(
    split_words("""
        ag_await ag_code ag_frame cr_await cr_code cr_frame cr_origin f_back f_builtins f_code f_globals f_lasti
        f_lineno f_locals f_trace format_map func_globals gi_code gi_frame gi_yieldfrom mro parse_file parse_raw
        tb_frame tb_lasti tb_lineno tb_next with_traceback
    """)
)
"""Attributes that lead to frames, code or every class there is, or that evaluate text."""

DUNDERS = frozenset(
    split_words("""
        __abs__ __add__ __aenter__ __aexit__ __aiter__ __and__ __anext__ __await__ __bool__ __call__ __ceil__
        __contains__ __copy__ __deepcopy__ __delitem__ __divmod__ __doc__ __enter__ __eq__ __exit__ __float__
        __floor__ __floordiv__ __format__ __ge__ __getitem__ __gt__ __hash__ __iadd__ __iand__ __index__
        __init__ __int__ __invert__ __ior__ __isub__ __iter__ __le__ __len__ __lt__ __matmul__ __members__
        __missing__ __mod__ __mul__ __name__ __ne__ __neg__ __next__ __or__ __pos__ __post_init__ __pow__
        __qualname__ __radd__ __rand__ __repr__ __reversed__ __rmul__ __ror__ __round__ __rsub__ __rtruediv__
        __setitem__ __slots__ __str__ __sub__ __truediv__ __xor__
    """)
)
"""Names between double underscores that may be read, and defined in a class."""

MODULE_DUNDERS = frozenset(split_words("__all__ __author__ __doc__ __file__ __license__ __name__ __version__"))
"""Such names that may be used as variables."""

PRIVATE = frozenset(split_words("_asdict _fields _make _missing_ _name_ _replace _value_"))
"""Names that begin with an underscore and are public all the same."""

VALUE_MODULES = frozenset(
    split_words("""
        __future__ dataclasses datetime decimal fractions logging mcp.server.fastmcp pathlib pydantic re typing
        typing_extensions uuid zoneinfo
    """)
)
"""Modules whose classes and functions give objects that cannot be changed, or that each session sets up alike."""
CACHES = frozenset({("functools", "cache"), ("functools", "lru_cache")})
CLOCKS = frozenset(
    split_words("""
        asctime ctime gmtime localtime perf_counter perf_counter_ns strftime time time_ns
    """)
)
REAL_CLOCKS = frozenset(
    split_words("""
        monotonic monotonic_ns process_time process_time_ns thread_time thread_time_ns
    """)
)


def is_importable(module: str) -> bool:
    """Return whether code may import a module."""
    return module in MODULES or module == LIBRARY or module.startswith(LIBRARY + ".")


def find_submodule(module: str, name: str) -> str | None:
    """The module that is a member of a module, where code may use that."""
    inner = f"{module}.{name}"
    if inner in MODULES:
        return inner
    return inner if module.startswith(LIBRARY) and isinstance(_member(module, name), ModuleType) else None


@functools.cache
def is_public_member(module: str, name: str) -> bool:
    """Return whether code may use a member of a module: a public one that is no module itself."""
    if name in BANNED_MEMBERS or name.startswith("_"):
        return False
    if module.startswith(LIBRARY):
        value = _member(module, name)
        return value is not None and not isinstance(value, ModuleType)
    names = MODULES.get(module)
    if names is not None:
        return name in names
    if module not in MODULES:
        return False
    imported = importlib.import_module(module)
    declared = vars(imported).get("__all__")
    if declared is not None and name not in declared:
        return False
    value = _member(module, name)
    return value is not None and not isinstance(value, ModuleType)


def _member(module: str, name: str) -> object:
    """A member of an installed module; asked only for the standard library, pydantic and our own library."""
    try:
        imported = importlib.import_module(module)
    except ImportError:
        return None
    if name in vars(imported):
        return vars(imported)[name]
    try:
        lazy: object = getattr(imported, name)  # pydantic gives its members when they are first asked for
    except AttributeError:
        return None
    return lazy
