"""The channel to the parent: forged, broken, endless, stolen frames."""
# ruff: noqa - attacks are written as attackers write

from attacks.catalog import attack


@attack("channel", shares=False)
def forged_reply_for_the_next(info):
    import os
    import struct

    import msgspec

    body = msgspec.msgpack.encode([[number, 0, b'{"token": "FORGED", "counter": 999}'] for number in range(2)])
    os.write(3, struct.pack("<I", len(body)) + body)
    return "sent"


@attack("channel", shares=False)
def forged_reply_and_then_the_end(info):
    import os
    import struct

    import msgspec

    body = msgspec.msgpack.encode([[0, 0, b'{"token": "FORGED", "counter": 999}']])
    os.write(3, struct.pack("<I", len(body)) + body)
    os._exit(0)


@attack("channel", shares=False)
def forged_reply_with_the_right_number(info):
    import gc
    import os
    import struct

    import msgspec

    for found in gc.get_objects():
        if type(found) is list and len(found) > 5 and type(found[0]) is int and found[0] > 1 << 40:
            body = msgspec.msgpack.encode([[found[0], 0, b'{"token": "FORGED", "counter": 999}']])
            os.write(3, struct.pack("<I", len(body)) + body)
    os._exit(0)


@attack("channel", shares=False)
def frame_of_a_giant(info):
    import os

    os.write(3, b"\xff\xff\xff\xff" + b"x" * 1000)
    return "sent"


@attack("channel", shares=False)
def frame_that_never_ends(info):
    import os

    os.write(3, b"\xff\xff\xff\x00")
    while True:
        os.write(3, b"x" * 65536)


@attack("channel", shares=False)
def frame_that_is_cut_off(info):
    import os

    os.write(3, b"\x10\x00\x00\x00abc")
    os._exit(0)


@attack("channel", shares=False)
def frame_that_cannot_be_read(info):
    import os

    os.write(3, b"\x04\x00\x00\x00\xc1\xc1\xc1\xc1")
    return "sent"


@attack("channel", shares=False)
def frame_that_nests(info):
    import os
    import struct

    body = b"\x91" * 1_000_000
    os.write(3, struct.pack("<I", len(body)) + body)
    return "sent"


@attack("channel", shares=False)
def frame_that_says_it_is_large(info):
    import os
    import struct

    body = b"\xdd\xff\xff\xff\xff"
    os.write(3, struct.pack("<I", len(body)) + body)
    return "sent"


@attack("channel", shares=False)
def frame_that_is_empty(info):
    import os

    os.write(3, b"\x00\x00\x00\x00")
    return "sent"


@attack("channel", shares=False)
def many_frames(info):
    import os

    while True:
        os.write(3, b"\x01\x00\x00\x00\x90" * 10_000)


@attack("channel", shares=False)
def frame_after_the_answer(info):
    import os

    class Late:
        def __del__(self):
            os.write(3, b"\x01\x00\x00\x00\x90")

    info["me"].__dict__["late"] = Late()
    return "armed"


@attack("channel", shares=False)
def close_the_channel(info):
    import os

    os.close(3)
    return "closed"


@attack("channel", shares=False)
def close_everything(info):
    import os

    os.closerange(0, 100)
    return "closed"


@attack("channel", shares=False)
def put_something_else_on_the_channel(info):
    import os

    os.dup2(0, 3)
    return "replaced"


@attack("channel", shares=False)
def read_the_channel(info):
    import os

    return "read " + repr(os.read(3, 10))


@attack("channel", shares=False)
def look_at_the_channel(info):
    import socket

    return "saw " + repr(socket.socket(fileno=3).recv(10, socket.MSG_PEEK))


@attack("channel", shares=False)
def do_not_answer(info):
    import time

    while True:
        time.sleep(3600)


@attack("channel", shares=False)
def steal_the_next_frame_and_answer_it(info):
    import os
    import struct

    import msgspec

    class Thief:
        stolen = None

    for found in type(info["me"]).__dict__.values():
        if type(found).__name__ == "Thief":
            replies = [[request[0], 0, b'{"token": "FORGED", "counter": 999}'] for request in found.stolen]
            body = msgspec.msgpack.encode(replies)
            os.write(3, struct.pack("<I", len(body)) + body)
            return "answered for another play"
    data = os.read(3, 1 << 16)
    Thief.stolen = msgspec.msgpack.decode(data[4 : 4 + struct.unpack_from("<I", data)[0]])
    type(info["me"]).thief = Thief()
    return "stole"
