"""Resources: memory, time, descriptors, output. Those without a kernel layer are for the worker's own limits."""
# ruff: noqa - attacks are written as attackers write

from attacks.catalog import attack


@attack("resources", "rlimits")
def much_memory_at_once(info):
    global kept
    kept = bytes(1 << 30)


@attack("resources", "rlimits")
def much_memory_by_mmap(info):
    import mmap

    global kept
    kept = mmap.mmap(-1, 1 << 30, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)


@attack("resources", "rlimits seccomp")
def much_memory_by_mmap_that_is_shared(info):
    import mmap

    global kept
    kept = mmap.mmap(-1, 1 << 30)


@attack("resources", "rlimits seccomp")
def much_memory_that_is_shared(info):
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    place = libc.mmap(None, 1 << 30, 3, 0x21, -1, ctypes.c_long(0))
    return "did: took it" if place not in (None, 2**64 - 1) else f"blocked: {ctypes.get_errno()}"


@attack("resources", "rlimits")
def much_memory_by_brk(info):
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    libc.sbrk.restype = ctypes.c_void_p
    place = libc.sbrk(ctypes.c_long(1 << 30))
    return "did: took it" if place != 2**64 - 1 else f"blocked: {ctypes.get_errno()}"


@attack("resources", "seccomp")
def much_memory_in_a_memory_file(info):
    import os

    global kept
    kept = os.memfd_create("x")
    os.ftruncate(kept, 1 << 30)
    return "did: took it"


@attack("resources", "rlimits seccomp")
def many_descriptors(info):
    import os

    for _ in range(300):
        os.dup(0)
    return "did: has 300 more"


@attack("resources", "rlimits seccomp")
def many_sockets(info):
    import socket

    global kept
    kept = [socket.socket() for _ in range(300)]


@attack("resources", "rlimits seccomp")
def many_signals_in_a_queue(info):
    import ctypes, os, signal

    signal.pthread_sigmask(signal.SIG_BLOCK, {40})
    libc = ctypes.CDLL(None, use_errno=True)
    done = [libc.sigqueue(os.getpid(), 40, ctypes.c_void_p(0)) for _ in range(200)]
    return "did: queued 200" if not any(done) else f"blocked: {ctypes.get_errno()}"


@attack("resources", "seccomp", shares=False)
def deep_stack_in_c(info):
    import ctypes

    libc = ctypes.CDLL(None)
    libc.alloca = None
    kind = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
    count = [0]

    @kind
    def compare(a, b):
        count[0] += 1
        pair = (ctypes.c_int * 2)(2, 1)
        libc.qsort(pair, 2, 4, compare)
        return 0

    libc.qsort((ctypes.c_int * 2)(2, 1), 2, 4, compare)


@attack("resources", "seccomp")
def sleep(info):
    import time

    before = time.monotonic()
    time.sleep(0.2)
    return "did: slept" if time.monotonic() - before > 0.1 else "blocked: it was over at once"


@attack("resources", "seccomp")
def sleep_in_select(info):
    import select, time

    before = time.monotonic()
    select.select([], [], [], 0.2)
    return "did: slept" if time.monotonic() - before > 0.1 else "blocked: it was over at once"


@attack("hang", shares=False)
def spin(info):
    while True:
        pass


@attack("hang", shares=False)
def spin_in_c(info):
    return sum(range(10**12))


@attack("hang", shares=False)
def spin_and_catch_everything(info):
    while True:
        try:
            while True:
                pass
        except BaseException:
            pass


@attack("hang", shares=False)
def spin_in_finally(info):
    try:
        while True:
            pass
    finally:
        while True:
            pass


@attack("hang", shares=False)
def spin_in_a_generator(info):
    def forever():
        while True:
            try:
                yield
            except BaseException:
                pass

    for _ in forever():
        pass


@attack("hang")
def backtrack_in_a_pattern(info):
    import re

    return bool(re.match(r"(a+)+$", "a" * 40 + "b"))


@attack("hang")
def power(info):
    return len(str(9 ** (9**9)))


@attack("hang")
def long_text(info):
    return len("x" * (1 << 40))


@attack("hang")
def recursion(info):
    def down(number):
        return down(number + 1)

    return down(0)


@attack("hang", shares=False)
def recursion_that_catches(info):
    def down():
        try:
            down()
        finally:
            down()

    down()


@attack("hang", shares=False)
def recursion_without_a_limit(info):
    import sys

    sys.setrecursionlimit(10**9)

    class Deep:
        def __repr__(self):
            return repr(self)

    return repr(Deep())


@attack("hang", shares=False)
def switch_the_timer_off(info):
    import signal

    signal.setitimer(signal.ITIMER_PROF, 0)
    while True:
        pass


@attack("hang", shares=False)
def leave_a_timer_for_the_next(info):
    import signal

    signal.setitimer(signal.ITIMER_PROF, 0.02, 0.001)
    return "armed"


@attack("hang", shares=False)
def replace_the_handler(info):
    import signal

    signal.signal(signal.SIGPROF, lambda *_: None)
    while True:
        pass


@attack("hang", shares=False)
def wait_for_a_lock(info):
    import threading

    lock = threading.Lock()
    lock.acquire()
    lock.acquire()


@attack("hang", shares=False)
def wait_for_the_channel(info):
    import select

    select.poll().poll()


@attack("hang")
def wait_for_input(info):
    return input()


@attack("hang")
def memory_in_small_pieces(info):
    kept = []
    while True:
        kept.append(bytearray(b"x") * (1 << 20))


@attack("hang")
def memory_in_a_dict(info):
    kept, number = {}, 0
    while True:
        kept[number] = [number]
        number += 1


@attack("hang")
def say_much_to_nobody(info):
    import sys

    for _ in range(200):
        print("x" * 100_000)
        sys.stderr.write("y" * 100_000)
    return "said"


@attack("hang", shares=False)
def spin_in_a_collector_callback(info):
    import gc

    def forever(phase, _):
        while True:
            pass

    gc.callbacks.append(forever)
    gc.collect()


@attack("hang")
def spin_in_a_destructor(info):
    class Sticky:
        def __del__(self):
            while True:
                pass

    Sticky()
    return "x"


@attack("hang", shares=False)
def spin_at_the_next_call(info):
    import sys

    class Late:
        def __del__(self):
            while True:
                pass

    sys.modules["late_" + str(id(info))] = Late()
    del sys.modules["late_" + str(id(info))]
    return "x"
