"""The surface of the kernel: calls that an environment has no use for, and ways to make calls unseen."""
# ruff: noqa - attacks are written as attackers write

from attacks.catalog import attack


@attack("kernel", "seccomp")
def memory_file(info):
    import ctypes

    made = ctypes.CDLL(None, use_errno=True).syscall(info["nr"]["memfd_create"], b"x", 0)
    return f"did: {made}" if made >= 0 else f"blocked: {ctypes.get_errno()}"


@attack("kernel", "seccomp")
def secret_memory(info):
    import ctypes

    made = ctypes.CDLL(None, use_errno=True).syscall(info["nr"]["memfd_secret"], 0)
    return f"did: {made}" if made >= 0 else f"blocked: {ctypes.get_errno()}"


@attack("kernel", "seccomp uid", "rlimits seccomp")
def io_uring(info):
    import ctypes

    made = ctypes.CDLL(None, use_errno=True).syscall(info["nr"]["io_uring_setup"], 4, ctypes.create_string_buffer(120))
    return f"did: {made}" if made >= 0 else f"blocked: {ctypes.get_errno()}"


@attack("kernel", "seccomp")
def old_asynchronous_io(info):
    import ctypes

    context = ctypes.c_ulong(0)
    done = ctypes.CDLL(None, use_errno=True).syscall(info["nr"]["io_setup"], 4, ctypes.byref(context))
    return "did: set up" if done == 0 else f"blocked: {ctypes.get_errno()}"


@attack("kernel", "seccomp")
def page_faults_in_user_space(info):
    import ctypes

    made = ctypes.CDLL(None, use_errno=True).syscall(info["nr"]["userfaultfd"], 1)
    return f"did: {made}" if made >= 0 else f"blocked: {ctypes.get_errno()}"


@attack("kernel", "seccomp uid")
def programs_in_the_kernel(info):
    import ctypes, struct

    attributes = struct.pack("=4I", 2, 4, 4, 4).ljust(72, b"\0")
    made = ctypes.CDLL(None, use_errno=True).syscall(info["nr"]["bpf"], 0, attributes, 72)
    return f"did: {made}" if made >= 0 else f"blocked: {ctypes.get_errno()}"


@attack("kernel", "seccomp")
def performance_counters(info):
    import ctypes, struct

    attributes = struct.pack("=IIQQQQQ", 1, 112, 0, 0, 0, 0, 1 << 5 | 1 << 6).ljust(112, b"\0")
    made = ctypes.CDLL(None, use_errno=True).syscall(info["nr"]["perf_event_open"], attributes, 0, -1, -1, 0)
    return f"did: {made}" if made >= 0 else f"blocked: {ctypes.get_errno()}"


@attack("kernel", "seccomp")
def watch_the_file_system(info):
    import ctypes

    made = ctypes.CDLL(None, use_errno=True).syscall(info["nr"]["fanotify_init"], 0x200, 0)
    return f"did: {made}" if made >= 0 else f"blocked: {ctypes.get_errno()}"


@attack("kernel", "seccomp")
def timers_by_descriptor(info):
    import ctypes

    made = ctypes.CDLL(None, use_errno=True).syscall(info["nr"]["timerfd_create"], 1, 0)
    return f"did: {made}" if made >= 0 else f"blocked: {ctypes.get_errno()}"


@attack("kernel", "seccomp")
def timers_of_posix(info):
    import ctypes

    made = ctypes.c_int()
    done = ctypes.CDLL(None, use_errno=True).syscall(info["nr"]["timer_create"], 1, None, ctypes.byref(made))
    return "did: made" if done == 0 else f"blocked: {ctypes.get_errno()}"


@attack("kernel", "seccomp")
def signals_by_descriptor(info):
    import ctypes

    made = ctypes.CDLL(None, use_errno=True).syscall(info["nr"]["signalfd4"], -1, ctypes.create_string_buffer(8), 8, 0)
    return f"did: {made}" if made >= 0 else f"blocked: {ctypes.get_errno()}"


@attack("kernel", "seccomp")
def events_by_descriptor(info):
    import ctypes

    made = ctypes.CDLL(None, use_errno=True).syscall(info["nr"]["eventfd2"], 0, 0)
    return f"did: {made}" if made >= 0 else f"blocked: {ctypes.get_errno()}"


@attack("kernel", "seccomp")
def polling_set(info):
    import select

    global kept
    kept = select.epoll()


@attack("kernel", "seccomp")
def pipes(info):
    import os

    return f"did: {os.pipe()}"


@attack("kernel", "seccomp")
def copy_of_a_descriptor(info):
    import os

    return f"did: {os.dup(0)}"


@attack("kernel", "seccomp")
def another_place_for_the_channel(info):
    import os

    return f"did: {os.dup2(3, 9)}"


@attack("kernel", "seccomp")
def flags_of_the_channel(info):
    import os

    os.set_blocking(3, False)
    os.set_blocking(3, True)
    return "did: set"


@attack("kernel", "seccomp")
def shared_memory_of_system_v(info):
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    made = libc.shmget(0, 4096, 0o1600)
    if made < 0:
        return f"blocked: {ctypes.get_errno()}"
    libc.shmctl(made, 0, None)
    return "did: made"


@attack("kernel", "seccomp")
def queues_of_system_v(info):
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    made = libc.msgget(0, 0o1600)
    if made < 0:
        return f"blocked: {ctypes.get_errno()}"
    libc.msgctl(made, 0, None)
    return "did: made"


@attack("kernel", "seccomp")
def semaphores_of_system_v(info):
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    made = libc.semget(0, 1, 0o1600)
    if made < 0:
        return f"blocked: {ctypes.get_errno()}"
    libc.semctl(made, 0, 0)
    return "did: made"


@attack("kernel", "seccomp")
def queues_of_posix(info):
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    libc.syscall(info["nr"]["mq_open"], b"canary", 0, 0, None)
    return "did: reached the kernel" if ctypes.get_errno() == 2 else f"blocked: {ctypes.get_errno()}"


@attack("kernel", "seccomp")
def personality(info):
    import ctypes

    done = ctypes.CDLL(None, use_errno=True).personality(0x0040000)
    return "did: no randomness of addresses" if done >= 0 else f"blocked: {ctypes.get_errno()}"


@attack("kernel", "seccomp")
def filter_of_its_own(info):
    import ctypes, struct

    code = ctypes.create_string_buffer(struct.pack("=HBBI", 6, 0, 0, 0x7FFF0000), 8)
    header = struct.pack("=H6xQ", 1, ctypes.addressof(code))
    done = ctypes.CDLL(None, use_errno=True).syscall(info["nr"]["seccomp"], 1, 0, header)
    return "did: installed" if done == 0 else f"blocked: {ctypes.get_errno()}"


@attack("kernel", "seccomp")
def filter_that_a_sibling_answers(info):
    import ctypes, struct

    code = ctypes.create_string_buffer(struct.pack("=HBBI", 6, 0, 0, 0x7FFF0000), 8)
    header = struct.pack("=H6xQ", 1, ctypes.addressof(code))
    made = ctypes.CDLL(None, use_errno=True).syscall(info["nr"]["seccomp"], 1, 8, header)
    return f"did: {made}" if made >= 0 else f"blocked: {ctypes.get_errno()}"


@attack("kernel", "seccomp")
def ruleset_of_its_own(info):
    import ctypes

    made = ctypes.CDLL(None, use_errno=True).syscall(
        info["nr"]["landlock_create_ruleset"], ctypes.byref(ctypes.c_uint64(1)), 8, 0
    )
    return f"did: {made}" if made >= 0 else f"blocked: {ctypes.get_errno()}"
