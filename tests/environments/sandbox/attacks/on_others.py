"""What a process may set of itself and of others: priority, limits, namespaces, names, timers."""
# ruff: noqa - attacks are written as attackers write

from attacks.catalog import attack


@attack("processes", "seccomp uid")
def nice_the_parent(info):
    import os

    os.setpriority(os.PRIO_PROCESS, info["parent"], os.getpriority(os.PRIO_PROCESS, info["parent"]) + 1)


@attack("processes", "seccomp")
def nice_itself(info):
    import os

    os.nice(3)


@attack("processes", "seccomp")
def idle_class_of_disk(info):
    import ctypes

    done = ctypes.CDLL(None, use_errno=True).syscall(info["nr"]["ioprio_set"], 1, 0, 3 << 13)
    return "did: set" if done == 0 else f"blocked: {ctypes.get_errno()}"


@attack("processes", "seccomp")
def pin_itself(info):
    import os

    os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])
    return "did: pinned"


@attack("processes", "seccomp uid")
def pin_the_parent(info):
    import os

    os.sched_setaffinity(info["parent"], [max(os.sched_getaffinity(0))])


@attack("processes", "seccomp uid")
def real_time(info):
    import os

    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    return "did: is real time"


@attack("processes", "seccomp uid")
def batch_class_for_the_parent(info):
    import os

    os.sched_setscheduler(info["parent"], os.SCHED_BATCH, os.sched_param(0))


@attack("processes", "rlimits seccomp uid")
def limits_of_the_parent(info):
    import resource

    resource.prlimit(info["parent"], resource.RLIMIT_CORE, (1000, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    return "did: set"


@attack("processes", "rlimits seccomp")
def raise_its_limits(info):
    import resource

    resource.setrlimit(resource.RLIMIT_NOFILE, (4096, 4096))
    resource.setrlimit(resource.RLIMIT_AS, (-1, -1))
    return "did: raised"


@attack("processes", "seccomp")
def allow_core_files(info):
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    return "did: dumpable" if libc.prctl(4, 1, 0, 0, 0) == 0 else f"blocked: {ctypes.get_errno()}"


@attack("processes", "seccomp")
def outlive_the_parent(info):
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    return "did: will outlive it" if libc.prctl(1, 0, 0, 0, 0) == 0 else f"blocked: {ctypes.get_errno()}"


@attack("processes", "seccomp")
def adopt_orphans(info):
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    return "did: reaper" if libc.prctl(36, 1, 0, 0, 0) == 0 else f"blocked: {ctypes.get_errno()}"


@attack("processes", "seccomp")
def rename_itself(info):
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    return "did: renamed" if libc.prctl(15, b"innocent", 0, 0, 0) == 0 else f"blocked: {ctypes.get_errno()}"


@attack("processes", "seccomp")
def new_namespaces(info):
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    return "did: unshared" if libc.unshare(0x10000000) == 0 else f"blocked: {ctypes.get_errno()}"


@attack("processes", "seccomp uid", "rlimits seccomp")
def fork_into_namespaces(info):
    import ctypes, os

    child = ctypes.CDLL(None, use_errno=True).syscall(info["nr"]["clone"], 17 | 0x10000000, 0, 0, 0, 0)
    if child == 0:
        os._exit(0)
    return "did: forked" if child > 0 else f"blocked: {ctypes.get_errno()}"


@attack("processes", "landlock seccomp uid")
def enter_the_namespaces_of_the_parent(info):
    import ctypes, os

    libc = ctypes.CDLL(None, use_errno=True)
    process = os.pidfd_open(info["parent"])
    done = libc.setns(process, 0x40000000)
    os.close(process)
    return "did: entered" if done == 0 else f"blocked: {ctypes.get_errno()}"


@attack("processes", "seccomp uid")
def name_the_host(info):
    import os, socket

    socket.sethostname(os.uname().nodename)
    return "did: named"


@attack("processes", "seccomp uid")
def set_the_clock(info):
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    space = ctypes.create_string_buffer(208)
    space[0] = 2
    done = libc.adjtimex(space)
    return "did: set" if done >= 0 else f"blocked: {ctypes.get_errno()}"


@attack("processes", "seccomp uid")
def take_capabilities(info):
    import ctypes, struct

    libc = ctypes.CDLL(None, use_errno=True)
    words = struct.pack("=6I", 1 << 7, 1 << 7, 0, 0, 0, 0)
    done = libc.capset(struct.pack("=Ii", 0x20080522, 0), words)
    return "did: took" if done == 0 else f"blocked: {ctypes.get_errno()}"


@attack("processes")
def wait_for_others(info):
    import os

    return f"did: {os.waitid(os.P_PID, info['sibling'], os.WNOHANG | os.WEXITED)}"


@attack("processes", "seccomp")
def ignore_signals(info):
    import signal

    signal.signal(signal.SIGPROF, signal.SIG_IGN)


@attack("processes", "seccomp")
def block_signals(info):
    import signal

    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGPROF})
    return "did: blocked SIGPROF"


@attack("processes", "seccomp")
def a_timer_of_another_kind(info):
    import signal

    signal.setitimer(signal.ITIMER_REAL, 50)
    return "did: armed"
