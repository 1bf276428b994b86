"""The network, and sockets of every kind."""
# ruff: noqa - attacks are written as attackers write

from attacks.catalog import attack


@attack("network", "landlock seccomp uid")
def connect_by_tcp(info):
    import socket

    socket.create_connection(("127.0.0.1", info["port"]), 1).send(b"x")


@attack("network", "seccomp")
def connect_by_fast_open(info):
    import socket

    socket.socket().sendto(b"x", 0x20000000, ("127.0.0.1", info["port"]))


@attack("network", "landlock seccomp uid")
def connect_by_urllib(info):
    import urllib.request

    urllib.request.urlopen(f"http://127.0.0.1:{info['port']}/", timeout=0.2)


@attack("network", "landlock seccomp")
def connect_by_asyncio(info):
    import asyncio

    asyncio.run(asyncio.wait_for(asyncio.open_connection("127.0.0.1", info["port"]), 1))


@attack("network", "seccomp")
def send_by_udp(info):
    import socket

    socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", ("127.0.0.1", info["port"]))


@attack("network", "landlock seccomp uid")
def look_up_a_name(info):
    import socket

    return f"did: {socket.gethostbyname('localhost')}"


@attack("network", "seccomp")
def listen_by_tcp(info):
    import socket

    global kept
    kept = socket.socket()
    kept.bind(("127.0.0.1", 0))
    kept.listen()
    return "did: listening"


@attack("network", "landlock seccomp")
def connect_to_an_abstract_socket(info):
    import socket

    socket.socket(socket.AF_UNIX).connect("\0" + info["abstract"])


@attack("network", "seccomp")
def connect_to_a_socket_file(info):
    import socket

    socket.socket(socket.AF_UNIX).connect(info["dir"] + "/sock")


@attack("network", "seccomp")
def open_an_abstract_socket(info):
    import socket

    global kept
    kept = socket.socket(socket.AF_UNIX)
    kept.bind("\0mine-" + info["abstract"])
    kept.listen()
    return "did: listening"


@attack("network", "seccomp")
def open_a_pair_of_sockets(info):
    import socket

    global kept
    kept = socket.socketpair()


@attack("network", "seccomp")
def open_a_netlink_socket(info):
    import socket

    global kept
    kept = socket.socket(16, socket.SOCK_RAW, 0)
    kept.bind((0, 0))
    return "did: bound"


@attack("network", "seccomp")
def open_a_vsock(info):
    import socket

    global kept
    kept = socket.socket(40, socket.SOCK_STREAM)


@attack("network", "seccomp uid")
def open_a_raw_socket(info):
    import socket

    global kept
    kept = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)


@attack("network", "seccomp uid")
def open_a_packet_socket(info):
    import socket

    global kept
    kept = socket.socket(17, socket.SOCK_RAW, 3)


@attack("network")
def open_a_crypto_socket(info):
    import socket

    global kept
    kept = socket.socket(38, socket.SOCK_SEQPACKET)
    kept.bind(("hash", "sha256"))


@attack("network")
def open_a_can_socket(info):
    import socket

    global kept
    kept = socket.socket(29, socket.SOCK_RAW, 1)


@attack("network")
def open_a_bluetooth_socket(info):
    import socket

    global kept
    kept = socket.socket(31, socket.SOCK_RAW, 1)


@attack("network", "seccomp")
def name_the_interfaces(info):
    import socket

    return f"did: {socket.if_nameindex()}"


@attack("network")
def pass_a_descriptor_over_the_channel(info):
    import socket, array

    global kept
    kept = socket.socket(fileno=3)
    kept.sendmsg([b"\n"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [0]))])
    return "did: sent"


@attack("network")
def send_from_the_channel_to_elsewhere(info):
    import ctypes, struct

    libc = ctypes.CDLL(None, use_errno=True)
    to = struct.pack("=H", 1) + (info["dir"] + "/sock").encode() + b"\0"
    done = libc.sendto(3, b"", 0, 0, to, len(to))
    return "did: sent" if done >= 0 else f"blocked: {ctypes.get_errno()}"


@attack("network", "seccomp")
def shutdown_the_channel(info):
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    return "did: one way is closed" if libc.shutdown(3, 0) == 0 else f"blocked: {ctypes.get_errno()}"


@attack("network", "seccomp")
def options_of_the_channel(info):
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    value = ctypes.c_int(1)
    done = libc.setsockopt(3, 1, 16, ctypes.byref(value), 4)
    return "did: set" if done == 0 else f"blocked: {ctypes.get_errno()}"
