"""Environments whose worker lies about the plays that it forks, and whose plays lie about how they begin.

Each value is code that runs while the file loads, after that of `evil_worker.py`. Data of `test_hostile_forks.py`.
"""

from evil_worker import EVIL

TOOLS = r'''
import time

LATE = 0.8
"""Share of the wall limit that something late takes."""
real_fork = os.fork


def wait(seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pass


def stay():
    while True:
        pass


def answer_fork(content):
    """Answer the request to fork in place of the worker, which waits for ever then."""
    request = sys._getframe(2).f_locals["request"]
    write(frame(encode([[request[0], *content]])))
    stay()


def make_fork(of_worker=None, of_play=None, before=None):
    def fork():
        if before:
            before()
        child = real_fork()
        if child and of_worker:
            of_worker(child)
        if not child and of_play:
            of_play()
        return child
    return fork


def refuse(child):
    raise OSError(11, "no process")


def fork_again(child):
    try:
        real_fork()
    except OSError:
        pass


def ask():
    return libc.syscall(438, 0, 0, 0)


def speak():
    """Say something before anybody asked."""
    ask()
    write(frame(b"\x90"))
    stay()


def fill():
    KEPT.append(bytearray(256 << 20))
    stay()


def answer_late(operations):
    inner = Server._answer
    def late(self, request):
        reply = inner(self, request)
        if request[1] in operations:
            self._timer._set = lambda *_: None
            __import__("signal").setitimer(2, 0)
            wait(LATE * WALL)
        return reply
    return late


def answer_with(operation, name):
    inner = Server._answer
    def lie(self, request):
        if request[1] == operation:
            self._timer._set = lambda *_: None
            __import__("signal").setitimer(2, 0)
            return REPLIES[name](request[0])
        return inner(self, request)
    return lie


def die_in_turn():
    """End each play after one call more than the one before, so that none ends when its calls are made again."""
    inner, calls = Server._answer, []
    def last(self, request):
        reply = inner(self, request)
        if request[1] == 0:
            calls.append(1)
            if len(calls) == NUMBER[0] - 1:  # the first one makes the initial states
                raw(frame(encode([list(reply)])), True)
        return reply
    os.fork = make_fork(before=lambda: NUMBER.__setitem__(0, NUMBER[0] + 1))
    return last


NUMBER = [0]
'''

FORKS = {
    "none": "os.fork = stay",
    "late": "os.fork = make_fork(before=lambda: wait(LATE * WALL)); Server._answer = answer_late({1, 4})",
    "made and refused": "os.fork = make_fork(refuse, stay)",
    "made and refused, and it keeps memory": "os.fork = make_fork(refuse, fill)",
    "made and refused, and it asks for the channel": "os.fork = make_fork(refuse, lambda: [ask() for _ in range(9)])",
    "made, and the play asks for nothing": "os.fork = make_fork(of_play=stay)",
    "made, and the play ends": "os.fork = make_fork(of_play=lambda: os._exit(0))",
    "made, and the play has its channel and ends": "os.fork = make_fork(of_play=lambda: (ask(), os._exit(0)))",
    "made, and the worker ends": "os.fork = make_fork(of_worker=lambda child: os._exit(0))",
    "made, and the worker answers nothing": "os.fork = make_fork(of_worker=lambda child: stay(), of_play=stay)",
    "the play speaks first": "os.fork = make_fork(of_play=speak)",
    "an answer and no play": "os.fork = lambda: answer_fork((0, encode(77)))",
    "an answer of no number": "os.fork = lambda: answer_fork((0, encode('x')))",
    "an answer of the first process": "os.fork = lambda: answer_fork((0, encode(1)))",
    "an answer of a number below": "os.fork = lambda: answer_fork((0, encode(-1)))",
    "an answer that it wrote": "os.fork = lambda: answer_fork((7, encode(77)))",
    "an answer of wrong files": "os.fork = lambda: answer_fork((5, encode('not mine')))",
    "a fault of trajsmith": "os.fork = lambda: answer_fork((4, encode(['recycled', 'x', None])))",
    "a refusal with escapes": r"os.fork = lambda: answer_fork((4, encode(['limit', '\x1b[2J\n', '\x1b]0;x\x07'])))",
    "bytes for ever": "os.fork = lambda: [write(b'\\xff' * 4096) for _ in iter(int, 1)]",
}
"""What becomes of the request to fork a play; none of these opens a session, but for those of `RACES`."""
RACES = {"made, and the worker ends"}
"""Lies that a play may outlive by a moment, in which it answers."""
STEPS = {
    f"{name} to {word}": f"Server._answer = answer_with({operation}, {name!r})"
    for word, operation in (("start", 1), ("base", 4), ("prepare", 10), ("states", 7))
    for name in (
        "content int", "content many lists", "status 99", "status of files", "json many lists", "json 100000 deep",
        "frame of a giant", "frame of 16 MB of lists", "the end", "nothing", "fault of trajsmith", "bytes for ever",
    )
}  # fmt: skip
"""A lie at one step of a play."""
WELL = {"fork twice": "os.fork = make_fork(of_worker=fork_again)"}
"""Lies that reach nothing, and open a session all the same."""


def evil_source(code: str, wall: float) -> str:
    """Return the source of an environment with one of these."""
    return EVIL + TOOLS + f"\nWALL = {wall}\n" + code + "\n"
