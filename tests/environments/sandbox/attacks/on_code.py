"""Memory and machine code: running what is no Python, and calls that filters might not see."""
# ruff: noqa - attacks are written as attackers write

from attacks.catalog import attack


@attack("kernel", "seccomp")
def memory_that_executes(info):
    import mmap

    global kept
    kept = mmap.mmap(-1, 4096, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, prot=7)


@attack("kernel", "seccomp")
def memory_made_executable(info):
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    place = libc.mmap(None, 4096, 3, 0x22, -1, ctypes.c_long(0))
    done = libc.mprotect(ctypes.c_void_p(place), 4096, 5)
    return "did: executable" if done == 0 else f"blocked: {ctypes.get_errno()}"


@attack("kernel", "seccomp")
def memory_made_executable_by_pkey(info):
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    place = libc.mmap(None, 4096, 3, 0x22, -1, ctypes.c_long(0))
    done = libc.syscall(info["nr"]["pkey_mprotect"], ctypes.c_void_p(place), 4096, 5, -1)
    return "did: executable" if done == 0 else f"blocked: {ctypes.get_errno()}"


@attack("kernel", "seccomp")
def code_made_writable(info):
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    place = ctypes.cast(libc.getpid, ctypes.c_void_p).value & ~4095
    if libc.mprotect(ctypes.c_void_p(place), 4096, 7):
        return f"blocked: {ctypes.get_errno()}"
    return "did: code can be written"


@attack("kernel", "seccomp", shares=False)
def machine_code(info):
    import ctypes, mmap, os

    text = b"\xb8\x2a\x00\x00\x00\xc3" if os.uname().machine == "x86_64" else b"\x40\x05\x80\x52\xc0\x03\x5f\xd6"
    memory = mmap.mmap(-1, 4096, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, prot=7)
    memory.write(text)
    answer = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(memory)))()
    return f"did: ran machine code: {answer}"


@attack("kernel", "seccomp", shares=False)
def calls_of_32_bits(info):
    import ctypes, mmap, os

    if os.uname().machine != "x86_64":
        return "blocked: this machine has none"
    memory = mmap.mmap(-1, 4096, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, prot=7)
    memory.write(b"\x53\xb8\x14\x00\x00\x00\xcd\x80\x5b\xc3")  # getpid by int 0x80
    answer = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(memory)))()
    return f"did: called: {answer}" if answer == os.getpid() else f"blocked: {answer}"


@attack("kernel", shares=False)
def calls_of_32_bits_by_existing_code(info):
    import ctypes, os, re

    if os.uname().machine != "x86_64":
        return "blocked: this machine has none"
    libc = ctypes.CDLL(None)
    start = ctypes.cast(libc.getpid, ctypes.c_void_p).value & ~4095
    text = ctypes.string_at(start, 200_000)
    for found in re.finditer(rb"\xcd\x80[\x00-\xff]{0,6}\xc3", text):
        ctypes.CFUNCTYPE(ctypes.c_int)(start + found.start())()
        return "did: called"
    return "blocked: no such code"


@attack("kernel", shares=False)
def calls_of_x32(info):
    import ctypes, os

    done = ctypes.CDLL(None, use_errno=True).syscall(0x40000000 | info["nr"]["getpid"])
    return "did: called" if done > 0 else f"blocked: {ctypes.get_errno()}"


@attack("kernel", shares=False)
def a_call_without_a_number(info):
    import ctypes

    done = ctypes.CDLL(None, use_errno=True).syscall(-1)
    return f"blocked: {done} {ctypes.get_errno()}"


@attack("kernel")
def high_words_of_arguments(info):
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    place = libc.mmap(None, 4096, 3, 0x22, -1, ctypes.c_long(0))
    number = info["nr"]["mprotect"]
    done = libc.syscall(number, ctypes.c_void_p(place), ctypes.c_long(4096), ctypes.c_long(1 << 32 | 4))
    return "did: executable" if done == 0 else f"blocked: {ctypes.get_errno()}"


@attack("kernel", "seccomp")
def descriptor_with_high_words(info):
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    made = libc.syscall(info["nr"]["fcntl"], ctypes.c_long(1 << 32), 0, 5)
    return f"did: {made}" if made >= 0 else f"blocked: {ctypes.get_errno()}"


@attack("kernel", "landlock seccomp")
def load_a_library(info):
    import ctypes

    ctypes.CDLL("libutil.so.1")
    return "did: loaded"


@attack("kernel")
def modules_of_the_kernel(info):
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    libc.syscall(info["nr"]["init_module"], b"", 0, b"")
    return "did: may load" if ctypes.get_errno() == 8 else f"blocked: {ctypes.get_errno()}"


@attack("kernel")
def another_kernel(info):
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    libc.syscall(info["nr"]["kexec_load"], 0, 17, None, 0)
    return "did: may load" if ctypes.get_errno() not in (1, 13, 38) else f"blocked: {ctypes.get_errno()}"


@attack("kernel")
def ports_of_the_machine(info):
    import ctypes, os

    if os.uname().machine != "x86_64":
        return "blocked: this machine has none"
    done = ctypes.CDLL(None, use_errno=True).iopl(3)
    return "did: has all ports" if done == 0 else f"blocked: {ctypes.get_errno()}"


@attack("kernel", "seccomp")
def segments_of_the_machine(info):
    import ctypes, os, struct

    if os.uname().machine != "x86_64":
        return "blocked: this machine has none"
    entry = struct.pack("=4I", 0, 0, 0xFFFFF, 1 | 1 << 4)
    done = ctypes.CDLL(None, use_errno=True).syscall(info["nr"]["modify_ldt"], 1, entry, 16)
    return "did: set" if done == 0 else f"blocked: {ctypes.get_errno()}"


@attack("kernel", "seccomp")
def policy_of_memory(info):
    import ctypes

    done = ctypes.CDLL(None, use_errno=True).syscall(info["nr"]["set_mempolicy"], 3, None, 0)
    done = done and ctypes.CDLL(None, use_errno=True).syscall(info["nr"]["set_mempolicy"], 0, None, 0)
    return "did: set" if done == 0 else f"blocked: {ctypes.get_errno()}"


@attack("kernel", "landlock seccomp uid")
def pages_of_others(info):
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    done = libc.syscall(info["nr"]["move_pages"], info["parent"], 0, None, None, None, 0)
    return "did: may move pages" if done == 0 else f"blocked: {ctypes.get_errno()}"


@attack("kernel", "seccomp uid")
def advice_on_memory_of_others(info):
    import ctypes, os

    libc = ctypes.CDLL(None, use_errno=True)
    pair = (ctypes.c_size_t * 2)(info["address"] & ~4095, 4096)
    process = libc.syscall(info["nr"]["pidfd_open"], info["parent"], 0)
    done = libc.syscall(info["nr"]["process_madvise"], process, pair, 1, 20, 0)
    os.close(process) if process >= 0 else None
    return "did: advised" if done >= 0 else f"blocked: {ctypes.get_errno()}"


@attack("kernel", "seccomp uid", "rlimits seccomp")
def lock_memory(info):
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    space = ctypes.create_string_buffer(8192)
    return "did: locked" if libc.mlock(space, 4096) == 0 else f"blocked: {ctypes.get_errno()}"


@attack("kernel")
def keys_for_memory(info):
    import ctypes

    made = ctypes.CDLL(None, use_errno=True).syscall(info["nr"]["pkey_alloc"], 0, 0)
    return f"did: {made}" if made >= 0 else f"blocked: {ctypes.get_errno()}"


@attack("kernel", "seccomp")
def wait_for_many(info):
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    libc.syscall(info["nr"]["futex_waitv"], None, 0, 0, None, 0)
    return "did: reached the kernel" if ctypes.get_errno() == 22 else f"blocked: {ctypes.get_errno()}"


@attack("kernel", "seccomp")
def splice_memory(info):
    import ctypes, os

    libc = ctypes.CDLL(None, use_errno=True)
    pair = (ctypes.c_size_t * 2)(ctypes.addressof(ctypes.create_string_buffer(16)), 16)
    libc.syscall(info["nr"]["vmsplice"], 1, pair, 1, 0)
    return "did: reached the kernel" if ctypes.get_errno() in (9, 22) else f"blocked: {ctypes.get_errno()}"


@attack("kernel", "seccomp uid")
def accounting(info):
    import ctypes

    done = ctypes.CDLL(None, use_errno=True).acct(None)
    return "did: switched off" if done == 0 else f"blocked: {ctypes.get_errno()}"


@attack("kernel", "seccomp")
def barriers(info):
    import ctypes

    done = ctypes.CDLL(None, use_errno=True).syscall(info["nr"]["membarrier"], 1, 0, 0)
    return "did: every processor was interrupted" if done == 0 else f"blocked: {ctypes.get_errno()}"
