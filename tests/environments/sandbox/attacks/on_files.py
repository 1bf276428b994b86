"""Files: reading, writing, looking. Canaries are in `info["dir"]`."""
# ruff: noqa - attacks are written as attackers write

from attacks.catalog import attack


@attack("files", "landlock seccomp")
def read_a_file_of_the_system(info):
    return "did: " + open("/etc/passwd").read(40)


@attack("files", "landlock seccomp")
def read_a_file_by_open(info):
    return open(info["dir"] + "/secret.txt").read()


@attack("files", "landlock seccomp")
def read_a_file_by_pathlib(info):
    import pathlib

    return pathlib.Path(info["dir"], "secret.txt").read_text()


@attack("files", "landlock seccomp")
def read_a_file_by_descriptor(info):
    import os

    return os.read(os.open("secret.txt", os.O_RDONLY, dir_fd=os.open(info["dir"], os.O_PATH)), 100).decode()


@attack("files", "landlock seccomp")
def read_a_file_by_io(info):
    import io

    return io.FileIO(info["dir"] + "/secret.txt").readall().decode()


@attack("files", "landlock seccomp")
def read_a_file_by_opener(info):
    import codecs

    return codecs.open(info["dir"] + "/secret.txt").read()


@attack("files", "landlock seccomp")
def read_a_file_by_linecache(info):
    import linecache

    return linecache.getline(info["dir"] + "/secret.txt", 1)


@attack("files", "landlock seccomp")
def read_a_file_by_tokenize(info):
    import tokenize

    return tokenize.open(info["dir"] + "/secret.txt").read()


@attack("files", "landlock seccomp")
def read_a_file_by_posix(info):
    import posix

    return posix.read(posix.open(info["dir"] + "/secret.txt", 0), 100).decode()


@attack("files", "landlock seccomp")
def read_a_file_by_loader(info):
    from importlib.machinery import SourceFileLoader

    return SourceFileLoader("x", info["dir"] + "/secret.txt").get_data(info["dir"] + "/secret.txt").decode()


@attack("files", "landlock seccomp")
def read_a_file_by_zipimport(info):
    import zipimport

    return "did: " + str(zipimport._zip_searchorder and open(info["dir"] + "/secret.txt").read())


@attack("files")
def read_a_file_by_sqlite_import(info):
    import sqlite3

    link = sqlite3.connect(f"file:{info['dir']}/secret.txt?mode=ro", uri=True)
    return "did: " + str(link.execute("select * from sqlite_master").fetchall())


@attack("files", "landlock seccomp")
def read_a_file_by_sqlite_attach(info):
    import sqlite3

    link = sqlite3.connect(":memory:")
    link.execute("attach ? as other", (info["dir"] + "/new.db",))
    link.execute("create table other.t (a)")
    return "did: attached"


@attack("files", "landlock seccomp")
def read_a_file_by_openat2(info):
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    how = (ctypes.c_uint64 * 3)(0, 0, 0)
    made = libc.syscall(info["nr"]["openat2"], -100, (info["dir"] + "/secret.txt").encode(), ctypes.byref(how), 24)
    space = ctypes.create_string_buffer(100)
    libc.read(made, space, 100)
    return space.value.decode()


@attack("files", "landlock seccomp uid")
def read_a_file_by_handle(info):
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    handle, mount = ctypes.create_string_buffer(b"\x80\0\0\0", 136), ctypes.c_int()
    path = (info["dir"] + "/secret.txt").encode()
    if libc.syscall(info["nr"]["name_to_handle_at"], -100, path, handle, ctypes.byref(mount), 0):
        return f"blocked: name_to_handle_at {ctypes.get_errno()}"
    anchor = libc.open(info["dir"].encode(), 0)
    made = libc.syscall(info["nr"]["open_by_handle_at"], anchor, handle, 0)
    if made < 0:
        return f"blocked: open_by_handle_at {ctypes.get_errno()}"
    space = ctypes.create_string_buffer(100)
    libc.read(made, space, 100)
    return space.value.decode()


@attack("files", "seccomp")
def ask_for_a_handle(info):
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    handle, mount = ctypes.create_string_buffer(b"\x80\0\0\0", 136), ctypes.c_int()
    path = (info["dir"] + "/secret.txt").encode()
    failed = libc.syscall(info["nr"]["name_to_handle_at"], -100, path, handle, ctypes.byref(mount), 0)
    return "blocked" if failed else "did: learnt that the file is there"


@attack("files", "seccomp")
def ask_for_the_size(info):
    import os

    return f"size={os.stat(info['dir'] + '/sized').st_size}"


@attack("files", "seccomp")
def ask_for_the_size_by_statx(info):
    import ctypes

    space = ctypes.create_string_buffer(256)
    path = (info["dir"] + "/sized").encode()
    ctypes.CDLL(None).syscall(info["nr"]["statx"], -100, path, 0, 0x7FF, space)
    return f"size={int.from_bytes(space.raw[40:48], 'little')}"


@attack("files", "seccomp")
def ask_whether_it_exists(info):
    import os

    return "did: saw it" if os.path.exists(info["dir"] + "/secret.txt") else "blocked: not there"


@attack("files", "seccomp")
def ask_whether_it_exists_by_access(info):
    import os

    return "did: saw it" if os.access(info["dir"] + "/secret.txt", os.R_OK) else "blocked: not there"


@attack("files", "seccomp")
def ask_whether_it_exists_by_chdir(info):
    import os

    os.chdir(info["dir"])
    return "did: went there"


@attack("files", "landlock seccomp")
def list_a_folder(info):
    import os

    return "did: " + ",".join(os.listdir(info["dir"]))


@attack("files", "landlock seccomp")
def list_a_folder_by_glob(info):
    import glob

    found = glob.glob(info["dir"] + "/*")
    return "did: " + ",".join(found) if found else "blocked: nothing found"


@attack("files", "seccomp")
def read_a_link(info):
    import os

    return "did: " + os.readlink("/proc/self/exe")
