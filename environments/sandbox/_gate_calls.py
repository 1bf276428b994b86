"""What calls do to objects that are passed to them, where the callee is Python's or a library's."""

import ast

from trajsmith.environments.sandbox.serialization import split_words

MUTATORS = frozenset(
    split_words("""
    __delitem__ __iadd__ __init__ __ior__ __setitem__ add append appendleft clear close delete discard extend
    extendleft insert intersection_update move_to_end pop popitem popleft register remove reverse rotate seed
    send setdefault setstate shuffle sort subtract symmetric_difference_update throw truncate update write
    writelines
""")
)
"""Methods that change their object."""
ABSORBERS = frozenset(
    split_words("""
    __setitem__ add append appendleft extend extendleft insert model_copy setdefault update
""")
)
"""Methods whose object then holds what they are given."""
READERS = frozenset(
    split_words("""
    __contains__ __getitem__ __iter__ __len__ __str__ copy count difference elements endswith find findall
    finditer format fullmatch get index intersection isdisjoint issubset issuperset items join keys lower lstrip
    match most_common partition replace rfind rstrip search split splitlines startswith strip sub
    symmetric_difference title total union upper values
""")
)
"""Methods that only look."""
TO_TEXT = frozenset(
    split_words("""
    count endswith find findall finditer format fullmatch index isdisjoint isoformat issubset issuperset join
    lower lstrip match model_dump model_dump_json partition replace rfind rstrip search split splitlines
    startswith strftime strip sub title total upper
""")
)
"""Methods whose result holds nothing of their object or arguments that could be changed."""
ELEMENTS = frozenset({"get"})
"""Methods that give one of the elements."""

PICKERS = frozenset({"max", "min", "next"})
"""Builtins that give one of the elements."""
COPIERS = frozenset(
    split_words("""
    bytearray dict enumerate filter frozenset iter list map reversed set sorted tuple zip
""")
)
"""Builtins that give a container or iterator of the elements."""
ITERATORS = frozenset(split_words("enumerate filter iter map reversed zip"))

PLAIN_MODULES = frozenset(
    split_words("""
    abc base64 calendar cmath contextlib csv datetime decimal difflib enum environments.native fnmatch fractions
    hashlib hmac html json keyword logging math mcp.server.fastmcp numbers os.path pathlib pprint pydantic re
    secrets shlex statistics string struct textwrap time trajectory typing typing_extensions unicodedata
    urllib.parse uuid warnings zlib zoneinfo
""")
)
"""Modules whose functions give results that hold nothing of their arguments that could be changed."""
CONTAINERS = frozenset(
    split_words("""
    BytesIO ChainMap Counter OrderedDict SimpleNamespace StringIO UserDict UserList defaultdict deque loads
""")
)
"""Members of modules that give an object that can be changed."""
FIRST_ARGUMENT = frozenset(
    split_words("""
    delitem heapify heappop heappush heappushpop heapreplace iadd iand iconcat insort insort_left insort_right
    ior isub setitem shuffle
""")
)
"""Members of modules that change their first argument."""
PASSED_ON = frozenset({"cast", "copy", "deepcopy", "choice", "getitem", "reduce"})
"""Members of modules that give (a copy of) an argument or of an element."""

PYDANTIC = frozenset(split_words("BaseModel EnvironmentState RootModel StateModel TypedDict"))
LOOSE = frozenset(
    split_words("""
    Any Dict List Mapping MutableMapping Sequence Set dict list object set tuple
""")
)
"""Types of fields whose values pydantic takes over as they are, at least within."""


def find_base_names(node: ast.ClassDef) -> set[str]:
    """The last words of a class's bases."""
    names = set()
    for base in node.bases:
        plain = base.value if isinstance(base, ast.Subscript) else base
        names.add(plain.attr if isinstance(plain, ast.Attribute) else plain.id if isinstance(plain, ast.Name) else "")
    return names


def find_pydantic_classes(tree: ast.Module) -> set[str]:
    """Names of classes of the file whose annotated attributes are fields, and so no state of the class."""
    classes = [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    models: set[str] = set()
    while True:
        more = {node.name for node in classes if find_base_names(node) & (PYDANTIC | models)} - models
        if not more:
            return models
        models |= more


def has_loose_fields(tree: ast.Module, models: set[str]) -> bool:
    """Return whether a field of some model accepts unvalidated objects: `Any`, or a container without its types."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef) and node.name in models:
            for statement in node.body:
                if isinstance(statement, ast.AnnAssign) and _is_loose(statement.annotation):
                    return True
    return False


def _is_loose(annotation: ast.expr) -> bool:
    typed = {id(node.value) for node in ast.walk(annotation) if isinstance(node, ast.Subscript)}
    named = (node for node in ast.walk(annotation) if isinstance(node, ast.Name) and id(node) not in typed)
    return any(node.id in LOOSE for node in named)
