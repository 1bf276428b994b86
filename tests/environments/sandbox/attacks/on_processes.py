"""Processes: starting, signalling, becoming somebody else, outliving the parent."""
# ruff: noqa - attacks are written as attackers write

from attacks.catalog import attack


@attack("processes", "landlock seccomp uid", "landlock rlimits seccomp")
def run_a_program(info):
    import subprocess

    return "did: " + subprocess.run(["/bin/echo", "hi"], capture_output=True).stdout.decode()


@attack("processes", "landlock seccomp uid", "landlock rlimits seccomp")
def run_a_shell(info):
    import os

    code = os.system("exit 7")
    return "did: ran" if os.waitstatus_to_exitcode(code) == 7 else f"blocked: {code}"


@attack("processes", "landlock seccomp uid", "landlock rlimits seccomp")
def run_by_popen(info):
    import os

    return "did: " + os.popen("echo hi").read() or "blocked"


@attack("processes", "landlock seccomp uid", "landlock rlimits seccomp")
def run_by_posix_spawn(info):
    import os

    return f"did: {os.waitpid(os.posix_spawn('/bin/true', ['true'], {}), 0)}"


@attack("processes", "landlock seccomp", shares=False)
def become_another_program(info):
    import os

    os.execv("/bin/sh", ["sh", "-c", "printf '\"did: became a shell\"\\n' >&3; sleep 1"])


@attack("processes", "seccomp", shares=False)
def become_a_program_without_a_file(info):
    import ctypes, os

    made = os.memfd_create("x", 0)
    os.write(made, open("/bin/true", "rb").read())
    libc = ctypes.CDLL(None, use_errno=True)
    child = os.fork()
    if child == 0:
        libc.syscall(info["nr"]["execveat"], made, b"", (ctypes.c_char_p * 2)(b"x", None), None, 0x1000)
        os._exit(9)
    return f"did: {os.waitpid(child, 0)}"


@attack("processes", "seccomp uid", "rlimits seccomp")
def fork(info):
    import os, time

    if os.fork() == 0:
        time.sleep(60)
        os._exit(0)
    return "did: forked"


@attack("processes", "landlock seccomp uid", "landlock rlimits seccomp")
def fork_by_forkpty(info):
    import os, time

    if os.forkpty()[0] == 0:
        time.sleep(60)
        os._exit(0)
    return "did: forked"


@attack("processes", "seccomp uid", "rlimits seccomp")
def fork_by_the_call(info):
    import ctypes, os, time

    child = ctypes.CDLL(None, use_errno=True).syscall(info["nr"]["clone"], 17, 0, 0, 0, 0)
    if child == 0:
        time.sleep(60)
        os._exit(0)
    return "did: forked" if child > 0 else f"blocked: {ctypes.get_errno()}"


@attack("processes", "seccomp uid", "rlimits seccomp")
def fork_by_the_new_call(info):
    import ctypes, os, time

    space = (ctypes.c_uint64 * 11)(0, 0, 0, 0, 17, 0, 0, 0, 0, 0, 0)
    child = ctypes.CDLL(None, use_errno=True).syscall(info["nr"]["clone3"], space, 88)
    if child == 0:
        time.sleep(60)
        os._exit(0)
    return "did: forked" if child > 0 else f"blocked: {ctypes.get_errno()}"


@attack("processes", "seccomp uid", "rlimits seccomp")
def fork_a_grandchild_and_hide(info):
    import os, time

    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            time.sleep(60)
        os._exit(0)
    return "did: forked"


@attack("processes", "seccomp uid", "rlimits seccomp")
def fork_many(info):
    import os, time

    for number in range(30):
        if os.fork() == 0:
            time.sleep(60)
            os._exit(0)
    return "did: forked 30"


@attack("processes", "landlock seccomp uid")
def multiprocessing_process(info):
    import multiprocessing

    process = multiprocessing.get_context("fork").Process(target=int)
    process.start()
    process.join(2)
    return f"did: {process.exitcode}"


@attack("processes", "seccomp uid", "rlimits seccomp")
def start_a_thread(info):
    import threading, time

    threading.Thread(target=time.sleep, args=(60,), daemon=True).start()


@attack("processes", "seccomp uid", "rlimits seccomp")
def start_a_thread_below_threading(info):
    import _thread, time

    _thread.start_new_thread(time.sleep, (60,))


@attack("processes", "seccomp uid", "rlimits seccomp")
def start_many_threads(info):
    import threading, time

    for _ in range(50):
        threading.Thread(target=time.sleep, args=(60,), daemon=True).start()


@attack("processes", "landlock seccomp uid")
def thread_pool(info):
    from concurrent.futures import ThreadPoolExecutor

    return f"did: {ThreadPoolExecutor(2).submit(int).result(2)}"


@attack("processes", "seccomp uid", "rlimits seccomp", shares=False)
def thread_of_faulthandler(info):
    import faulthandler

    faulthandler.dump_traceback_later(60, exit=True)
    return "did: armed"


@attack("processes", "seccomp")
def signal_everybody(info):
    import os

    os.kill(-1, 0)
    return "did: may signal others"


@attack("processes", "landlock seccomp uid")
def signal_the_parent(info):
    import os, signal

    os.kill(info["parent"], signal.SIGURG)


@attack("processes", "landlock seccomp uid")
def signal_the_parent_with_a_value(info):
    import ctypes, signal

    space = ctypes.create_string_buffer(128)
    ctypes.cast(space, ctypes.POINTER(ctypes.c_int))[0] = signal.SIGWINCH
    ctypes.cast(space, ctypes.POINTER(ctypes.c_int))[2] = -1
    number, parent = info["nr"]["rt_tgsigqueueinfo"], info["parent"]
    done = ctypes.CDLL(None, use_errno=True).syscall(number, parent, parent, signal.SIGWINCH, space)
    return "did: sent" if done == 0 else f"blocked: {ctypes.get_errno()}"


@attack("processes", "landlock seccomp uid")
def signal_a_thread_of_the_parent(info):
    import ctypes, signal

    libc = ctypes.CDLL(None, use_errno=True)
    done = libc.syscall(info["nr"]["tgkill"], info["parent"], info["parent"], signal.SIGURG)
    return "did: sent" if done == 0 else f"blocked: {ctypes.get_errno()}"


@attack("processes", "landlock seccomp uid")
def signal_the_parent_by_pidfd(info):
    import os, signal

    process = os.pidfd_open(info["parent"])
    try:
        signal.pidfd_send_signal(process, signal.SIGURG)
    finally:
        os.close(process)


@attack("processes", "landlock seccomp uid")
def signal_its_own_parent(info):
    import os

    os.kill(os.getppid(), 0)
    return "did: may signal it"


@attack("processes", "seccomp")
def signal_by_an_owner_of_a_descriptor(info):
    import fcntl, os, signal

    fcntl.fcntl(3, fcntl.F_SETOWN, info["parent"])
    fcntl.fcntl(3, 10, signal.SIGURG)
    fcntl.fcntl(3, fcntl.F_SETFL, fcntl.fcntl(3, fcntl.F_GETFL) | os.O_ASYNC)
    return "did: set"


@attack("processes", "landlock seccomp uid")
def end_a_sibling(info):
    import os, signal, time

    os.kill(info["sibling"], signal.SIGKILL)
    time.sleep(0.05)


@attack("processes", "landlock seccomp uid")
def end_the_group(info):
    import os, signal

    os.killpg(os.getpgrp(), signal.SIGURG)


@attack("processes", "seccomp uid")
def become_root(info):
    import os

    os.setuid(0)
    return "did: is root" if os.geteuid() == 0 else "blocked"


@attack("processes", "landlock seccomp uid", "landlock no_new_privs rlimits seccomp")
def become_root_by_a_program(info):
    import subprocess

    user = subprocess.run([info["dir"] + "/id", "-u"], capture_output=True, text=True).stdout.strip()
    return "did: ran as root" if user == "0" else f"blocked: ran as {user}"


@attack("processes", "seccomp")
def leave_the_session(info):
    import os

    return f"did: {os.setsid()}"
