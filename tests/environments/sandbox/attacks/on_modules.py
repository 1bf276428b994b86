"""What all plays of a worker share: classes, modules, builtins, the process itself. See `on_plays.py` for the victim."""
# ruff: noqa - attacks are written as attackers write

from attacks.catalog import attack


@attack("plays")
def replace_a_tool(info):
    type(info["me"]).get = lambda self: {"token": "FORGED", "counter": 999}
    return "replaced"


@attack("plays")
def replace_the_code_of_a_tool(info):
    type(info["me"]).get.__code__ = (lambda self: {"token": "FORGED", "counter": 999}).__code__
    return "replaced"


@attack("plays")
def replace_the_code_below_the_mark(info):
    function = type(info["me"]).get
    function = getattr(function, "__wrapped__", function)
    function.__defaults__ = ()
    function.__globals__["ONCE"] = 1
    function.__code__ = (lambda self: {"token": "FORGED", "counter": 999}).__code__
    return "replaced"


@attack("plays")
def replace_the_class_of_states(info):
    cls = type(info["me"].state)
    cls.counter = property(lambda self: 999)
    cls.model_dump = lambda *_, **__: {"token": "FORGED", "counter": 999}
    cls.model_dump_json = lambda *_, **__: '{"token": "FORGED", "counter": 999}'
    return "replaced"


@attack("plays")
def replace_the_base_of_all_models(info):
    from pydantic import BaseModel

    BaseModel.model_dump = lambda *_, **__: {"token": "FORGED"}
    BaseModel.model_dump_json = lambda *_, **__: '{"token": "FORGED"}'
    BaseModel.model_validate = classmethod(lambda cls, *_, **__: None)
    return "replaced"


@attack("plays")
def replace_the_base_of_environments(info):
    from trajsmith.environments import Environment

    Environment.call = lambda *_, **__: None
    return "replaced"


@attack("plays")
def replace_the_json_library(info):
    import json

    import orjson

    json.dumps = lambda *_, **__: '"FORGED"'
    json.loads = lambda *_, **__: {"token": "FORGED"}
    orjson.dumps = lambda *_, **__: b'"FORGED"'
    orjson.loads = lambda *_, **__: {"token": "FORGED", "counter": 999}
    return "replaced"


@attack("plays")
def replace_the_wire_library(info):
    import msgspec

    msgspec.msgpack.encode = lambda *_: b""
    msgspec.msgpack.Encoder = None
    return "replaced"


@attack("plays")
def replace_builtins(info):
    import builtins

    builtins.isinstance = lambda *_: True
    builtins.len = lambda *_: 0
    builtins.str = int
    builtins.dict = list
    return "replaced"


@attack("plays", shares=False)
def replace_what_writes_to_the_channel(info):
    import os

    os.write = lambda *_: 0
    os.read = lambda *_: b""
    return "replaced"


@attack("plays")
def replace_what_tells_the_time(info):
    import time

    time.time = lambda: 0
    time.monotonic = lambda: 0
    return "replaced"


@attack("plays")
def empty_the_modules(info):
    import sys

    for name in list(sys.modules):
        if name.startswith(("trajsmith", "pydantic", "msgspec", "orjson")):
            sys.modules[name] = None
    return "emptied"


@attack("plays")
def poison_the_modules(info):
    import sys

    class Poison:
        def __getattr__(self, name):
            raise KeyboardInterrupt

    for name in ("json", "orjson", "re", "datetime", "trajsmith.records", "trajsmith.environments.session"):
        sys.modules[name] = Poison()
    return "poisoned"


@attack("plays")
def find_the_sandbox_in_the_modules(info):
    import sys

    for name, module in list(sys.modules.items()):
        for secret in ("worker_main", "lock_worker", "WorkerServer", "lockdown", "serve", "worker"):
            if name.startswith("trajsmith.environments.sandbox") and hasattr(module, secret):
                return f"did: found {name}.{secret}"
    return "blocked: hidden"


@attack("plays")
def find_ctypes_by_subclasses(info):
    rest, seen = [object], set()
    while rest:
        for found in type.__subclasses__(rest.pop()):
            if found not in seen:
                seen.add(found)
                rest.append(found)
                if found.__name__ == "CFuncPtr":

                    class Pointer(found):
                        _flags_ = 1
                        _restype_ = next(kind for kind in seen if kind.__name__ == "c_int")

                    class Library:
                        _handle = 0

                    return f"did: called getpid: {Pointer(('getpid', Library()))()}"
    return "blocked: not found"


@attack("plays")
def find_os_by_subclasses(info):
    for found in object.__subclasses__():
        if found.__name__ == "_wrap_close":
            return "did: " + str(found.__init__.__globals__["listdir"](info["dir"]))
    return "blocked: not found"


@attack("plays")
def keep_in_a_global(info):
    global KEPT
    KEPT = info["me"].state.token
    return "kept"


@attack("plays")
def keep_in_a_class(info):
    type(info["me"]).HISTORY = [info["me"].state.token]
    return "kept"


@attack("plays")
def keep_the_object_and_change_it_later(info):
    import builtins

    builtins.kept_for_later = info["me"]
    return "kept"


@attack("plays")
def shut_others_out_by_interning(info):
    import sys

    sys.intern("x")
    sys.setswitchinterval(1e-9)
    sys.setrecursionlimit(40)
    return "set"


@attack("plays")
def set_the_random_state(info):
    import random

    random.seed = lambda *_: None
    random.random = lambda: 0.5
    return "replaced"


@attack("plays", shares=False)
def end_the_process(info):
    import os

    os._exit(0)


@attack("plays", shares=False)
def end_the_process_by_abort(info):
    import os

    os.abort()


@attack("plays", shares=False)
def end_the_process_by_a_bad_address(info):
    import ctypes

    ctypes.string_at(0)


@attack("plays", shares=False)
def end_the_process_by_bad_code(info):
    def nothing():
        return None

    exec(nothing.__code__.replace(co_code=b"\x64\xff" * 8, co_consts=(), co_stacksize=0))


@attack("plays", shares=False)
def end_the_process_by_a_signal(info):
    import signal

    signal.raise_signal(signal.SIGSEGV)


@attack("plays")
def leave_by_sys_exit(info):
    import sys

    sys.exit(0)


@attack("plays")
def leave_by_keyboard_interrupt(info):
    raise KeyboardInterrupt


@attack("plays")
def leave_by_generator_exit(info):
    raise GeneratorExit


@attack("plays")
def leave_by_memory_error(info):
    raise MemoryError


@attack("plays")
def leave_something_at_exit(info):
    import atexit

    atexit.register(print, "x")
    return "registered"


@attack("plays")
def open_a_pickle(info):
    import pickle

    return "did: " + str(pickle.loads(b"cos\nlistdir\n(S'/'\ntR."))


@attack("plays")
def evaluate_an_argument(info):
    return "did: " + str(eval("[c for c in ().__class__.__base__.__subclasses__()].__len__()", {"__builtins__": {}}))


@attack("plays")
def import_what_is_not_there(info):
    import http.server

    return "did: imported"


@attack("plays")
def look_up_the_layers(info):
    return "{0.__class__.__init__.__globals__}".format(info["me"])
