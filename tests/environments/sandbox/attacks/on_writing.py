"""Files: writing, making, mounting. Canaries are in `info["dir"]`."""
# ruff: noqa - attacks are written as attackers write

from attacks.catalog import attack


@attack("files", "landlock seccomp")
def write_a_new_file(info):
    open(info["dir"] + "/new.txt", "w").write("x")


@attack("files", "landlock seccomp")
def make_an_empty_file(info):
    import os

    os.mknod(info["dir"] + "/empty")


@attack("files", "landlock rlimits seccomp")
def append_to_a_file(info):
    open(info["dir"] + "/victim.txt", "a").write("x")


@attack("files", "landlock seccomp")
def truncate_a_file(info):
    import os

    os.truncate(info["dir"] + "/victim.txt", 0)


@attack("files", "landlock seccomp")
def empty_a_file_by_opening(info):
    import os

    os.open(info["dir"] + "/victim.txt", os.O_WRONLY | os.O_TRUNC)


@attack("files", "landlock seccomp")
def remove_a_file(info):
    import os

    os.unlink(info["dir"] + "/victim.txt")


@attack("files", "landlock seccomp")
def rename_a_file(info):
    import os

    os.rename(info["dir"] + "/victim.txt", info["dir"] + "/other.txt")


@attack("files", "landlock seccomp")
def make_a_folder(info):
    import os

    os.mkdir(info["dir"] + "/made")


@attack("files", "landlock seccomp")
def make_a_link(info):
    import os

    os.symlink("/etc/passwd", info["dir"] + "/link")


@attack("files", "landlock seccomp uid")
def make_a_hard_link(info):
    import os

    os.link(info["dir"] + "/secret.txt", info["dir"] + "/hard")


@attack("files", "landlock seccomp")
def make_a_pipe_with_a_name(info):
    import os

    os.mkfifo(info["dir"] + "/fifo")


@attack("files", "seccomp uid")
def change_the_mode(info):
    import os

    os.chmod(info["dir"] + "/victim.txt", 0o600)


@attack("files", "seccomp uid")
def change_the_owner(info):
    import os

    os.chown(info["dir"] + "/victim.txt", 70000, 70000)
    return "did: owner changed"


@attack("files", "seccomp uid")
def change_the_times(info):
    import os

    os.utime(info["dir"] + "/secret.txt", (1, 1))
    return "did: times changed"


@attack("files", "seccomp")
def set_an_attribute(info):
    import os

    os.setxattr(info["dir"] + "/victim.txt", "user.x", b"x")
    return "did: attribute set"


@attack("files", "landlock seccomp")
def copy_a_tree(info):
    import shutil

    shutil.copy(info["dir"] + "/secret.txt", info["dir"] + "/copy")


@attack("files", "landlock rlimits seccomp")
def temporary_file(info):
    import tempfile

    with tempfile.NamedTemporaryFile(dir=info["dir"]) as file:
        file.write(b"x")
        return "did: " + file.name


@attack("files", "landlock seccomp")
def shared_memory_file(info):
    import os

    path = f"/dev/shm/canary-{info['parent']}"
    made = os.open(path, os.O_CREAT | os.O_RDWR)
    os.unlink(path)
    return f"did: made {made}"


@attack("files", "landlock seccomp")
def fill_the_disk(info):
    with open(info["dir"] + "/fill", "wb") as file:
        for _ in range(8):
            file.write(bytes(1 << 20))


@attack("files", "landlock seccomp")
def database_file(info):
    import sqlite3

    sqlite3.connect(info["dir"] + "/x.db").execute("create table t (a)")


@attack("files")
def database_with_an_extension(info):
    import sqlite3

    link = sqlite3.connect(":memory:")
    link.enable_load_extension(True)
    link.execute("select load_extension('libutil.so.1')")


@attack("files")
def raw_disk(info):
    import os

    for name in os.listdir("/sys/block"):
        if not name.startswith(("loop", "ram", "zram")):
            os.close(os.open("/dev/" + name, os.O_RDONLY))
            return "did: opened a disk"
    return "blocked: no disk"


@attack("files", "landlock seccomp uid")
def kernel_settings(info):
    path = "/proc/self/oom_score_adj"
    value = open(path).read()
    open(path, "w").write(value)
    return "did: wrote to /proc"


@attack("files", "landlock seccomp")
def a_terminal(info):
    import os

    return f"did: made a terminal {os.openpty()}"


@attack("files")
def type_into_the_terminal(info):
    import fcntl

    for descriptor in range(3):
        try:
            fcntl.ioctl(descriptor, 0x5412, b"x")
            return "did: typed"
        except OSError:
            pass
    fcntl.ioctl(open("/dev/tty", "rb"), 0x5412, b"x")
    return "did: typed"


@attack("files", "seccomp")
def watch_a_folder(info):
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    made = libc.inotify_init1(0)
    return "did: watches" if libc.inotify_add_watch(made, info["dir"].encode(), 0xFFF) > 0 else "blocked"


@attack("files", "seccomp uid")
def change_the_root(info):
    import os

    os.chroot(info["dir"])
    return "did: new root"


@attack("files", "landlock seccomp uid")
def mount_over_a_folder(info):
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    path = (info["dir"] + "/mount").encode()
    done = libc.mount(b"none", path, b"tmpfs", 0, None) == 0
    libc.umount2(path, 2)
    return "did: mounted" if done else f"blocked: {ctypes.get_errno()}"


@attack("files", "seccomp")
def mount_in_a_namespace_of_its_own(info):
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(0x10000000 | 0x00020000):
        return f"blocked: unshare {ctypes.get_errno()}"
    return "did: is root of its own namespace"


@attack("files", "seccomp uid")
def mount_by_the_new_calls(info):
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    made = libc.syscall(info["nr"]["fsopen"], b"tmpfs", 0)
    return f"did: {made}" if made >= 0 else f"blocked: {ctypes.get_errno()}"


@attack("files", "seccomp uid")
def clone_the_tree_of_mounts(info):
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    made = libc.syscall(info["nr"]["open_tree"], -100, b"/", 1)
    return f"did: {made}" if made >= 0 else f"blocked: {ctypes.get_errno()}"


@attack("files", "seccomp")
def list_the_mounts(info):
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    request, space = (ctypes.c_uint64 * 4)(32, 0xFFFFFFFFFFFFFFFF, 0, 0), ctypes.create_string_buffer(4096)
    count = libc.syscall(458, request, space, 512, 0)
    return f"did: {count} mounts" if count > 0 else f"blocked: {ctypes.get_errno()}"


@attack("files", "clean seccomp")
def map_a_descriptor_that_is_there(info):
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    for descriptor in range(64):
        place = libc.mmap(None, 4096, 1, 2, descriptor, ctypes.c_long(0))
        if place not in (None, 2**64 - 1):
            return "did: " + ctypes.string_at(place, 64).decode(errors="replace")
    return "blocked"
