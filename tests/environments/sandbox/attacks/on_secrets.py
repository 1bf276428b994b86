"""Secrets of the parent and of other workers: environment, memory, descriptors."""
# ruff: noqa - attacks are written as attackers write

from attacks.catalog import attack


@attack("secrets", "clean")
def own_environment(info):
    import os

    return str(dict(os.environ))


@attack("secrets", "landlock seccomp uid")
def own_environment_of_the_kernel(info):
    return open("/proc/self/environ", errors="replace").read()


@attack("secrets", "clean")
def own_environment_of_libc(info):
    import ctypes

    libc = ctypes.CDLL(None)
    libc.getenv.restype = ctypes.c_char_p
    return str(libc.getenv(b"TRAJSMITH_CANARY_API_KEY"))


@attack("secrets", "clean seccomp")
def inherited_descriptors(info):
    import os

    found = []
    for descriptor in range(4, 256):
        try:
            found.append(os.pread(descriptor, 200, 0).decode(errors="replace"))
        except OSError:
            pass
    return "".join(found)


@attack("secrets", "landlock seccomp uid")
def parent_environment(info):
    return open(f"/proc/{info['parent']}/environ", errors="replace").read()


@attack("secrets", "landlock seccomp")
def parent_command(info):
    return "did: " + open(f"/proc/{info['parent']}/cmdline").read(20)


@attack("secrets", "landlock seccomp uid")
def parent_memory(info):
    with open(f"/proc/{info['parent']}/mem", "rb", 0) as file:
        file.seek(info["address"])
        return file.read(200).decode(errors="replace")


@attack("secrets", "landlock seccomp uid")
def parent_memory_map(info):
    return "did: " + open(f"/proc/{info['parent']}/maps").read(40)


@attack("secrets", "landlock seccomp uid")
def parent_descriptors(info):
    import os

    return os.pread(os.open(f"/proc/{info['parent']}/fd/{info['leak']}", os.O_RDONLY), 200, 0).decode()


@attack("secrets", "landlock seccomp uid")
def parent_memory_by_process_vm_readv(info):
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    space = ctypes.create_string_buffer(200)
    pair = ctypes.c_size_t * 2
    mine, theirs = pair(ctypes.addressof(space), 200), pair(info["address"], 200)
    libc.process_vm_readv(info["parent"], mine, 1, theirs, 1, 0)
    return space.raw.decode(errors="replace") or f"blocked: {ctypes.get_errno()}"


@attack("secrets", "landlock seccomp uid")
def attach_to_the_parent(info):
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    if libc.ptrace(0x4206, info["parent"], 0, 0):
        return f"blocked: {ctypes.get_errno()}"
    libc.ptrace(0x4207, info["parent"], 0, 0)  # stop it, so that it can be let go
    libc.waitpid(info["parent"], None, 0x40000000)
    libc.ptrace(17, info["parent"], 0, 0)
    return "did: attached"


@attack("secrets", "landlock seccomp uid")
def descriptor_of_the_parent(info):
    import ctypes, os

    libc = ctypes.CDLL(None, use_errno=True)
    process = libc.syscall(info["nr"]["pidfd_open"], info["parent"], 0)
    stolen = libc.syscall(info["nr"]["pidfd_getfd"], process, info["leak"], 0)
    if stolen < 0:
        os.close(process)
        return f"blocked: {ctypes.get_errno()}"
    return os.pread(stolen, 200, 0).decode()


@attack("secrets", "landlock seccomp uid")
def compare_with_the_parent(info):
    import ctypes, os

    libc = ctypes.CDLL(None, use_errno=True)
    order = libc.syscall(info["nr"]["kcmp"], os.getpid(), info["parent"], 1, 0, 0)
    return f"did: {order}" if order >= 0 else f"blocked: {ctypes.get_errno()}"


@attack("secrets", "landlock seccomp uid")
def sibling_memory(info):
    with open(f"/proc/{info['sibling']}/mem", "rb", 0) as file:
        file.seek(info["sibling_address"])
        return file.read(100).decode(errors="replace")


@attack("secrets", "landlock seccomp uid")
def sibling_memory_by_process_vm_readv(info):
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    space = ctypes.create_string_buffer(100)
    pair = ctypes.c_size_t * 2
    mine, theirs = pair(ctypes.addressof(space), 100), pair(info["sibling_address"], 100)
    libc.process_vm_readv(info["sibling"], mine, 1, theirs, 1, 0)
    return space.raw.decode(errors="replace") or f"blocked: {ctypes.get_errno()}"


@attack("secrets", "landlock seccomp uid")
def attach_to_a_sibling(info):
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    if libc.ptrace(0x4206, info["sibling"], 0, 0):
        return f"blocked: {ctypes.get_errno()}"
    return "did: attached"


@attack("secrets", "landlock seccomp uid")
def write_to_the_parent(info):
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    space = ctypes.create_string_buffer(b"canary", 6)
    pair = ctypes.c_size_t * 2
    mine, theirs = pair(ctypes.addressof(space), 6), pair(info["address"], 6)
    done = libc.process_vm_writev(info["parent"], mine, 1, theirs, 1, 0)
    return "did: wrote" if done > 0 else f"blocked: {ctypes.get_errno()}"


@attack("secrets", "seccomp")
def keys_of_the_kernel(info):
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    key = libc.syscall(info["nr"]["add_key"], b"user", b"canary", b"x", 1, -1)
    return f"did: {key}" if key > 0 else f"blocked: {ctypes.get_errno()}"


@attack("secrets", "seccomp")
def keyrings_of_the_kernel(info):
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    key = libc.syscall(info["nr"]["keyctl"], 0, -3, 1)
    return f"did: {key}" if key > 0 else f"blocked: {ctypes.get_errno()}"


@attack("secrets", "seccomp uid")
def messages_of_the_kernel(info):
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    space = ctypes.create_string_buffer(4096)
    count = libc.klogctl(3, space, 4095)
    return "did: " + space.value[:40].decode(errors="replace") if count > 0 else f"blocked: {ctypes.get_errno()}"


@attack("secrets", "seccomp")
def name_of_the_host(info):
    import os

    return "did: " + os.uname().nodename


@attack("secrets", "landlock seccomp")
def users_of_the_host(info):
    import pwd

    return "did: " + pwd.getpwuid(0).pw_dir


@attack("secrets", "landlock seccomp")
def times_of_the_parent(info):
    return "did: " + open(f"/proc/{info['parent']}/stat").read(40)


@attack("secrets", "landlock seccomp uid")
def every_environment(info):
    import os

    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                found.append(open(f"/proc/{name}/environ", errors="replace").read())
            except OSError:
                pass
    return "".join(text for text in found if "CANARY" in text)


@attack("secrets", "seccomp")
def credentials_of_the_parent_over_the_channel(info):
    import socket, struct

    global kept
    kept = socket.socket(fileno=3)
    parent, user, _ = struct.unpack("3i", kept.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
    return f"did: parent is {parent} of user {user}"
