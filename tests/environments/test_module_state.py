"""Values that live in a module: each play has its own, and the module looks untouched in between."""

from trajsmith.environments.foreign import run_source
from trajsmith.environments.module_state import ModuleState

SOURCE = """
import itertools
import threading
from enum import Enum
from typing import Annotated, ClassVar
from pydantic import BaseModel

LIMIT = 3
Choice = Annotated[int | str, "either"]
NAMES = ["a"]
_user = None
lock = threading.Lock()

class Kind(Enum):
    ONE = 1

class Entry(BaseModel):
    known: ClassVar[dict] = {}
    text: str = ""

class Desk:
    shelf = {}
    count = 0

    def __init__(self, names):
        self.names = names

    def put(self, name):
        global _user, _last
        self.names.append(name)
        self.shelf[name] = LIMIT
        type(self).count += 1
        Entry.known[name] = 1
        _user = _last = name

    def seen(self):
        return self.names, NAMES, self.shelf, self.count, _user, Entry.known

desk = Desk(NAMES)

def put(name):
    desk.put(name)
"""


def loaded():
    module = run_source(SOURCE, "desk.py", "test_module_state_desk")
    return module, ModuleState(module, SOURCE)


def test_plays_share_nothing():
    module, state = loaded()
    one, two = state.copy_initial_values(), state.copy_initial_values()
    with state.swap_in(one):
        module.put("x")
    with state.swap_in(two):
        assert module.desk.seen() == (["a"], ["a"], {}, 0, None, {})
        assert "_last" not in vars(module)
    with state.swap_in(one):
        assert module.desk.seen() == (["a", "x"], ["a", "x"], {"x": 3}, 1, "x", {"x": 1})
        assert module._last == "x"


def test_what_was_one_object_stays_one():
    module, state = loaded()
    with state.swap_in(state.copy_initial_values()):
        assert module.desk.names is module.NAMES


def test_the_module_is_as_it_was_between_calls():
    module, state = loaded()
    before = {name: id(value) for name, value in vars(module).items()}
    with state.swap_in(state.copy_initial_values()):
        module.put("x")
    assert {name: id(value) for name, value in vars(module).items()} == before
    assert (module.NAMES, module.Desk.count, module.Desk.shelf) == (["a"], 0, {})


def test_an_exception_leaves_the_module_as_it_was():
    module, state = loaded()
    values = state.copy_initial_values()
    try:
        with state.swap_in(values):
            module.put("x")
            raise KeyError
    except KeyError:
        pass
    assert module.NAMES == ["a"]
    with state.swap_in(values):
        assert module.NAMES == ["a", "x"]


def test_methods_are_bound_to_the_plays_own_object():
    module, state = loaded()
    values = state.copy_initial_values()
    bound = state.bind_function(module.desk.put, values)
    with state.swap_in(values):
        assert bound.__self__ is module.desk
    assert state.bind_function(module.put, values) is module.put


def test_what_cannot_be_copied_is_told():
    _, state = loaded()
    assert [note.partition(":")[0] for note in state.notes] == ["plays share lock, it cannot be copied"]


def test_type_hints_are_no_state() -> None:
    """Copying one looks at frames, which the sandbox does not allow."""
    module = run_source(SOURCE, "desk.py", "environment_hints")
    state = ModuleState(module, SOURCE)
    assert all(
        value is not module.Choice and getattr(value, "__metadata__", None) is None
        for value in state.copy_initial_values()
    )
