"""What the other files do not try: settings of the interpreter, hooks of the C library, lying containers, odd writers."""
# ruff: noqa - attacks are written as attackers write

from attacks.catalog import attack


@attack("results")
def result_with_names_of_python(info):
    return {"__class__": "x", "__reduce__": ["os.system", ["id"]], "__proto__": {"a": 1}, "constructor": None}


@attack("results")
def result_of_many_digits(info):
    import sys

    sys.set_int_max_str_digits(0)
    return {"number": 10**50_000, "text": str(10**100_000)}


@attack("results")
def result_of_numbers_that_are_none(info):
    import decimal, fractions

    return [decimal.Decimal("NaN"), fractions.Fraction(1, 3), 1j, decimal.Decimal("1E+999999")]


@attack("results")
def result_of_the_last_moment(info):
    import datetime

    return [datetime.datetime.max, datetime.date.min, datetime.timedelta.max, datetime.time.max]


@attack("results")
def result_that_drives_the_terminal(info):
    return {"\x1b]52;c;aGk=\x07": "\x1b[2J\x1b]0;x\x07\u202e\u2066\r\x00"}


@attack("results")
def result_that_looks_like_a_fault(info):
    return {"error": {"kind": "crash", "message": "x"}, "status": 4, "fault": ["quarantine", "x", None]}


@attack("results")
def result_of_a_mapping_without_end(info):
    class Endless(dict):
        def items(self):
            number = 0
            while True:
                number += 1
                yield str(number), number

        keys = __iter__ = lambda self: (key for key, _ in self.items())

        def __len__(self):
            return 1

    return Endless(a=1)


@attack("results")
def result_of_a_text_whose_length_lies(info):
    class Text(str):
        def __len__(self):
            return 1

        def encode(self, *_):
            return b'"}],[1,0,"forged"]'

    return Text("x" * 3_000_000)


@attack("results")
def result_of_keys_that_become_equal(info):
    return {1: "a", "1": "b", True: "c", 1.0: "d", None: "e", "null": "f"}


@attack("results")
def result_of_halves_of_a_character(info):
    return ["\ud83d" + "\ude00", "\ude00\ud83d", {"\udc80": 1}]


@attack("results")
def error_with_notes_without_end(info):
    error = ValueError("x")
    for _ in range(200):
        error.add_note("y" * 100_000)
    raise error


@attack("results")
def error_whose_arguments_change(info):
    class Evil(Exception):
        @property
        def args(self):
            return tuple("x" * 10_000_000 for _ in range(100))

    raise Evil("a")


@attack("results")
def error_from_very_deep(info):
    def down(number, text="x" * 100_000):
        if number:
            down(number - 1)
        raise ValueError(text)

    down(700)


@attack("results")
def refusal_that_is_a_format(info):
    from trajsmith import ToolError

    raise ToolError("{0.__class__} %s %n {{ 7 * 7 }} %(x)s ${x} [bold]red[/bold]")


@attack("results")
def warnings_without_end(info):
    import warnings

    warnings.simplefilter("always")
    for number in range(20_000):
        warnings.warn(f"{number} " + "x" * 1000)


@attack("results")
def state_with_keys_of_paths(info):
    info["me"].state.notes.update({"a/b~1": "x", "": "y", "..": "z", ".": "w", "0": "v", "\x1b[2J": "u"})


@attack("results")
def state_at_the_end_of_time(info):
    import datetime

    info["me"].state.now = datetime.datetime.max


@attack("results")
def state_with_a_clock_of_its_own(info):
    import datetime

    class Clock(datetime.datetime):
        def isoformat(self, *_):
            while True:
                pass

    info["me"].state.now = Clock(2026, 1, 1)


@attack("results")
def state_that_changes_while_it_is_read(info):
    class Notes(dict):
        def items(self):
            self["more"] = self.get("more", "") + "x"
            return super().items()

    info["me"].state.notes = Notes(a="b")


@attack("plays")
def change_the_precision_of_decimals(info):
    import decimal

    decimal.getcontext().prec = 1
    decimal.DefaultContext.prec = 1


@attack("plays")
def change_the_limit_of_digits(info):
    import sys

    sys.set_int_max_str_digits(640)
    sys.setrecursionlimit(150)
    sys.setswitchinterval(1e-6)


@attack("plays")
def replace_the_handler_of_wrong_letters(info):
    import codecs

    codecs.register_error("strict", lambda error: ("?", error.end))
    codecs.register_error("surrogatepass", lambda error: ("?", error.end))


@attack("plays")
def replace_the_encoder_of_json(info):
    import json

    json.JSONEncoder.default = lambda self, value: "forged"
    json.encoder.encode_basestring_ascii = lambda text: '"forged"'


@attack("plays")
def leave_an_import_hook(info):
    import sys

    class Finder:
        def find_spec(self, *_):
            while True:
                pass

    sys.meta_path.insert(0, Finder())
    sys.path_hooks.insert(0, lambda path: Finder())
    sys.path[:] = ["/nowhere"]


@attack("plays")
def leave_a_context_variable(info):
    import contextvars

    variable = contextvars.ContextVar("x")
    variable.set("attacker")
    import builtins

    builtins.shared_by_plays = variable


@attack("plays")
def leave_hooks_of_the_interpreter(info):
    import sys

    sys.excepthook = sys.unraisablehook = sys.displayhook = lambda *_: None
    sys.breakpointhook = lambda *_: None
    sys.stdout = sys.stderr = None


@attack("plays")
def teach_pickles_something(info):
    import copyreg

    copyreg.pickle(dict, lambda value: (dict, ({"token": "stolen"},)))


@attack("plays")
def replace_the_copy_of_states(info):
    import copy

    copy.deepcopy = lambda value, memo=None: value
    copy.copy = lambda value: value


@attack("plays")
def make_equal_what_is_not(info):
    import enum

    enum.Enum.__eq__ = lambda self, other: True
    enum.EnumMeta.__call__ = lambda cls, *values: next(iter(cls))


@attack("channel", shares=False)
def signals_that_write_to_the_channel(info):
    import signal, time

    signal.set_wakeup_fd(3, warn_on_full_buffer=False)
    signal.setitimer(signal.ITIMER_PROF, 0.001, 0.001)
    began = time.process_time()
    while time.process_time() - began < 0.05:
        pass


@attack("channel", shares=False)
def a_traceback_on_the_channel(info):
    import faulthandler

    faulthandler.dump_traceback(file=3)


@attack("channel", shares=False)
def tracebacks_on_the_channel_for_ever(info):
    import faulthandler

    faulthandler.dump_traceback_later(0.01, repeat=True, file=3)


@attack("channel", shares=False)
def a_text_file_over_the_channel(info):
    import io

    out = io.FileIO(3, "w", closefd=False)
    out.write(b"\xff\xff\xff\x7f" + b"\x90" * 1000)


@attack("channel", shares=False)
def parts_of_a_frame_in_many_writes(info):
    import os

    for byte in b"\x10\x00\x00\x00\x91\x93\x01\x00\xc4\x00" * 50:
        os.writev(3, [bytes([byte])])


@attack("hang", shares=False)
def spin_in_a_loop_of_c(info):
    import collections, itertools

    collections.deque(itertools.count(), maxlen=0)


@attack("hang", shares=False)
def keys_that_collide(info):
    prime = 2**61 - 1
    table = {}
    for number in range(1, 200_000):
        table[number * prime] = number


@attack("hang", shares=False)
def a_sort_that_never_ends(info):
    class Never:
        def __lt__(self, other):
            items.append(Never())
            return True

    items = []
    import heapq

    queue = [Never()]
    while True:
        heapq.heappush(queue, Never())
        heapq.heappop(queue) if len(queue) > 1000 else None


@attack("hang", shares=False)
def a_number_as_long_as_memory(info):
    return len(str(7 ** (10**8)))


@attack("kernel")
def advice_that_poisons_memory(info):
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    page = (id(info) >> 12) << 12
    return [libc.madvise(ctypes.c_void_p(page), 4096, advice) for advice in (100, 101, 12)] and "blocked"


@attack("kernel")
def wait_with_signals_blocked(info):
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    mask = (ctypes.c_ulong * 1)(~0 & (2**64 - 1))
    span = (ctypes.c_long * 2)(0, 1000)
    libc.syscall(271, None, 0, span, mask, 8)
    return "blocked"


@attack("kernel")
def memory_at_address_zero(info):
    import ctypes, mmap

    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    at = libc.mmap(ctypes.c_void_p(0x1000), 4096, 3, 0x32, -1, 0)
    return f"did: {at:#x}" if at == 0x1000 else f"blocked: {ctypes.get_errno()}"


@attack("kernel")
def lock_of_a_thread_of_the_parent(info):
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    word = (ctypes.c_uint * 1)(info["parent"])
    span = (ctypes.c_long * 2)(0, 1_000_000)
    result = libc.syscall(202, word, 6, 0, span, None, 0)
    return f"did: locked {word[0]}" if result == 0 else f"blocked: {ctypes.get_errno()}"
