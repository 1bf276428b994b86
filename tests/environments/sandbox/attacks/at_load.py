"""While a module is loaded, initial states are made, or a play starts."""
# ruff: noqa - attacks are written as attackers write

from attacks.catalog import attack


@attack("load", when="load", shares=False)
def load_that_hangs(info):
    while True:
        pass


@attack("load", when="load", shares=False)
def load_that_hangs_and_catches_everything(info):
    while True:
        try:
            while True:
                pass
        except BaseException:
            pass


@attack("load", when="load", shares=False)
def load_that_waits(info):
    import threading

    lock = threading.Lock()
    lock.acquire()
    lock.acquire()


@attack("load", when="load", shares=False)
def load_that_takes_all_memory(info):
    kept = []
    while True:
        kept.append(bytes(1 << 24))


@attack("load", when="load", shares=False)
def load_that_forks(info):
    import os
    import time

    if os.fork() == 0:
        while True:
            time.sleep(1)


@attack("load", when="load", shares=False)
def load_that_forks_many(info):
    import os
    import time

    for _ in range(50):
        if os.fork() == 0:
            while True:
                time.sleep(1)


@attack("load", when="load", shares=False)
def load_that_forks_below_python(info):
    import ctypes
    import time

    child = ctypes.CDLL(None).syscall(info["nr"]["clone"], 17, 0, 0, 0, 0)
    if child == 0:
        while True:
            time.sleep(1)
    return "did: forked" if child > 0 else "blocked"


@attack("load", when="load", shares=False)
def load_that_starts_a_thread(info):
    import threading
    import time

    threading.Thread(target=time.sleep, args=(60,), daemon=True).start()


@attack("load", when="load")
def load_that_prints(info):
    import sys

    for _ in range(100):
        print("x" * 10_000)
        sys.stderr.write("y" * 10_000)
        sys.__stdout__.write("z" * 10_000)


@attack("load", when="load", shares=False)
def load_that_prints_to_the_channel(info):
    import os

    os.write(3, b"\x01\x00\x00\x00\x90")


@attack("load", when="load")
def load_that_leaves(info):
    import sys

    sys.exit(0)


@attack("load", when="load")
def load_that_leaves_by_interrupt(info):
    raise KeyboardInterrupt


@attack("load", when="load", shares=False)
def load_that_ends_the_process(info):
    import os

    os._exit(0)


@attack("load", when="load", shares=False)
def load_that_closes_the_channel(info):
    import os

    os.close(3)


@attack("load", when="load", shares=False)
def load_that_reads_the_channel(info):
    import os

    return "read " + repr(os.read(3, 100))


@attack("load", when="load", shares=False)
def load_that_raises_what_cannot_be_printed(info):
    class Evil(Exception):
        def __str__(self):
            while True:
                pass

    raise Evil


@attack("load", when="load", shares=False)
def load_that_answers_itself(info):
    import os
    import struct

    import msgspec

    spec = b'{"name": "forged", "version": "0", "tools": []}'
    body = msgspec.msgpack.encode([[0, 0, spec]])
    os.write(3, struct.pack("<I", len(body)) + body)


@attack("load", when="load")
def load_that_poisons_the_modules(info):
    import sys

    for name in (
        "trajsmith.environments.session",
        "trajsmith.records",
        "orjson",
        "msgspec",
        "trajsmith.environments.programs",
    ):
        sys.modules[name] = None


@attack("load", when="load")
def load_that_replaces_builtins(info):
    import builtins

    builtins.isinstance = lambda *_: False
    builtins.str = None


@attack("load", when="load", shares=False)
def load_that_switches_the_timer_off(info):
    import signal

    signal.setitimer(signal.ITIMER_PROF, 0)
    while True:
        pass


@attack("load", when="load")
def load_that_asks_for_the_channel_of_a_play(info):
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    channel = libc.syscall(info["nr"]["pidfd_getfd"], 0, 0, 0)
    return "did: has a channel" if channel >= 0 else f"blocked: {ctypes.get_errno()}"


@attack("load", when="load", shares=False)
def load_that_sleeps_through_its_end(info):
    class Late:
        def __del__(self):
            while True:
                pass

    import builtins

    builtins.late = Late()


@attack("load", when="load")
def load_that_nests_deeply(info):
    return eval("(" * 5000 + ")" * 5000)


@attack("load", when="load")
def load_of_much_code(info):
    exec("x = [" + "1," * 2_000_000 + "]", {})


@attack("load", when="states", shares=False)
def states_that_hang(info):
    while True:
        pass


@attack("load", when="states", shares=False)
def states_that_end_the_process(info):
    import os

    os._exit(0)


@attack("load", when="states")
def states_that_read_a_file(info):
    open("/etc/passwd").read()


@attack("load", when="states")
def states_that_leave(info):
    raise SystemExit


@attack("load", when="start", shares=False)
def start_that_hangs(info):
    while True:
        pass


@attack("load", when="start", shares=False)
def start_that_ends_the_process(info):
    import os

    os._exit(0)


@attack("load", when="start")
def start_that_raises(info):
    raise KeyboardInterrupt


@attack("load", when="start")
def start_that_reads_a_file(info):
    open("/etc/passwd").read()
