"""Check functions, which came from outside too: `attack` is called with the initial and final state and the answer."""
# ruff: noqa - attacks are written as attackers write

from attacks.catalog import attack


@attack("checks", when="check")
def check_that_changes_what_it_is_given(info):
    info["initial"].clear()
    info["final"]["token"] = "FORGED"
    return True


@attack("checks", when="check")
def check_that_says_yes_to_the_next(info):
    import builtins

    builtins.bool = lambda *_: True
    globals()["check"] = lambda *_: True
    return False


@attack("checks", when="check")
def check_that_returns_something_else(info):
    class Yes:
        def __bool__(self):
            while True:
                pass

    return Yes()


@attack("checks", when="check")
def check_that_returns_a_number(info):
    return 7


@attack("checks", when="check")
def check_that_raises(info):
    raise KeyboardInterrupt


@attack("checks", when="check", shares=False)
def check_that_ends_the_process(info):
    import os

    os._exit(0)


@attack("checks", when="check", shares=False)
def check_that_hangs(info):
    while True:
        pass


@attack("checks", when="check", shares=False)
def check_that_takes_all_memory(info):
    kept = []
    while True:
        kept.append(bytes(1 << 24))


@attack("checks", when="check")
def check_that_reads_a_file(info):
    open("/etc/passwd").read()
    return True


@attack("checks", when="check", shares=False)
def check_that_forges_its_reply(info):
    import os
    import struct

    import msgspec

    body = msgspec.msgpack.encode([[0, 0, b'{"result": true}']])
    os.write(3, struct.pack("<I", len(body)) + body)
    os._exit(0)


@attack("checks", when="check")
def check_that_forks(info):
    import os
    import time

    if os.fork() == 0:
        time.sleep(60)
    return True
