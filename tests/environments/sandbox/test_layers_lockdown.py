"""What a locked worker can still do, what a session adds, and what happens where a layer is missing."""

import json
import os
import resource
from collections.abc import Iterator
from typing import Any

import pytest
from attacks.clients import ALL, Bare

from trajsmith.environments.sandbox import limits, syscalls
from trajsmith.environments.sandbox.lockdown import LayerMissing, WorkerLimits, lock_worker, map_shared_memory

ROOT = os.geteuid() == 0


@pytest.fixture(scope="module")
def bare() -> Iterator[Bare]:
    made = Bare()
    yield made
    made.close()


@pytest.fixture(params=["worker", "session", "session in namespaces"])
def place(request: pytest.FixtureRequest) -> dict[str, Any]:
    """Where a source runs: arguments of `Bare.run`."""
    layers = ALL | ({"namespaces"} if "namespaces" in request.param else set())
    return {"layers": layers, "session": "session" in request.param}


def _said(bare: Bare, place: dict[str, Any], body: str) -> Any:
    source = "def attack(info):\n" + "".join(f"    {line}\n" for line in body.strip().splitlines())
    answer = bare.run(source=source, **place)
    if answer["ready"] is None and "namespaces" in place["layers"]:
        pytest.skip("no namespaces here")
    assert answer["ready"] == '"ready"', answer
    return json.loads(answer["said"])


WORKS = {
    "arithmetic": ("return sum(range(1000))", 499500),
    "memory": ("return len(bytearray(200 << 20))", 200 << 20),
    "garbage": ("import gc\nx = []\nx.append(x)\ndel x\nreturn gc.collect() >= 0", True),
    "printing": ("print('x')\nreturn 'ok'", "ok"),
    "time": ("import time\nreturn time.time() > 1e9 and time.monotonic() > 0 and time.process_time() >= 0", True),
    "dates": ("import datetime\nreturn datetime.datetime.now().year > 2000", True),
    "chance": ("import os, random\nreturn len(os.urandom(8)) + int(random.random())", 8),
    "database": (
        "import sqlite3\nlink = sqlite3.connect(':memory:')\nlink.execute('create table t (a)')\n"
        "link.executemany('insert into t values (?)', [(n,) for n in range(5000)])\n"
        "return link.execute('select sum(a) from t where a % 2').fetchone()[0]",
        6250000,
    ),
    "models": (
        "import pydantic\nM = pydantic.create_model('M', x=(int, 3), y=(list[dict[str, int]], []))\n"
        "return M.model_validate({'y': [{'a': 1}]}).model_dump_json()",
        '{"x":3,"y":[{"a":1}]}',
    ),
    "locks": ("import threading\nwith threading.Lock():\n    return threading.get_ident() != 0", True),
    "patterns": ("import re\nreturn re.sub('(a)(b)', r'\\\\2\\\\1', 'ab')", "\\2\\1"),
    "deep recursion": ("def f(n):\n    return n and 1 + f(n - 1)\nreturn f(900)", 900),
    "exceptions": ("try:\n    1 / 0\nexcept ZeroDivisionError as error:\n    return str(error)", "division by zero"),
    "sleeping at once": ("import time\ntime.sleep(3600)\nreturn 'over'", "over"),
    "logging": ("import logging\nlogging.getLogger('x').warning('y')\nreturn 'ok'", "ok"),
    "own number": ("import os\nreturn os.getpid() > 0", True),
    "reading nothing": ("import sys\nreturn sys.stdin.read()", ""),
}


@pytest.mark.parametrize("name", WORKS)
def test_a_locked_process_computes(bare: Bare, place: dict[str, Any], name: str) -> None:
    body, expected = WORKS[name]
    assert _said(bare, place, body) == expected


def test_the_timer_of_the_sandbox_fires(bare: Bare, place: dict[str, Any]) -> None:
    # The handler must be installed before the lock; the default action ends the process.
    body = "import signal\nsignal.setitimer(signal.ITIMER_PROF, 0.02)\nwhile True:\n    pass"
    source = "def attack(info):\n" + "".join(f"    {line}\n" for line in body.splitlines())
    answer = bare.run(source=source, **place)
    if answer["ready"] is None:
        pytest.skip("no namespaces here")
    assert answer["said"] == '"it is gone"'


def test_the_kernel_ends_a_session_that_takes_too_much_time(bare: Bare) -> None:
    spin = "def attack(info):\n    while True:\n        pass\n"
    answer = bare.run(ALL, spin, session=True, limits={"cpu_seconds": 1})
    assert answer["ready"] == '"ready"'
    assert answer["said"] == '"it is gone"'


def test_limits_only_go_down(bare: Bare) -> None:
    source = "def attack(info):\n    import resource\n    return resource.getrlimit(resource.RLIMIT_NOFILE)\n"
    assert json.loads(bare.run({"rlimits"}, source, limits={"open_files": 20})["said"]) == [20, 20]
    many = bare.run({"rlimits"}, source, limits={"open_files": 1 << 40})
    assert 16 < json.loads(many["said"])[0] < 1 << 40


@pytest.mark.skipif(not ROOT, reason="only root gives workers users of their own")
def test_a_worker_of_root_has_a_user_of_its_own_and_nothing_of_root(bare: Bare, place: dict[str, Any]) -> None:
    assert _said(bare, place, "import os\nreturn [os.getuid(), os.geteuid(), os.getgid()]") == [70000] * 3


@pytest.mark.parametrize("wide", [True, False], ids=["all users", "users below 65536"])
def test_users_of_workers_are_nobody_elses(wide: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits.Path, "read_text", lambda _: f"0 100000 {2**32 - 1 if wide else 65536}\n")
    limits.list_users.cache_clear()
    try:
        users = limits.list_users()
    finally:
        limits.list_users.cache_clear()
    for taken in (range(61184, 65520), range(65534, 65536), range(100_000, 600_100_000), range(60_001)):
        assert users[-1] < taken[0] or users[0] > taken[-1], "systemd's, nobody's, sub-users, people"
    assert len(users) > 500


@pytest.mark.parametrize(
    "call", ["os.close(3)", "os.dup2(0, 3)", "os.fork()", "os.pipe()", "signal.signal(signal.SIGPROF, signal.SIG_IGN)"]
)
def test_a_locked_process_cannot_reach_its_channel_or_signals(bare: Bare, place: dict[str, Any], call: str) -> None:
    body = f"import os, signal\ntry:\n    {call}\nexcept PermissionError:\n    return 'refused'\nreturn 'done'"
    assert _said(bare, place, body) == "refused"


@pytest.mark.parametrize(
    "missing,feature",
    [({"landlock_create_ruleset": 38}, "landlock"), ({"landlock_create_ruleset": 95}, "landlock"),
     ({"landlock_restrict_self": 1}, "landlock"), ({"seccomp": 38}, "seccomp")],
    ids=["no Landlock", "Landlock not switched on", "Landlock forbidden", "no seccomp"],
)  # fmt: skip
def test_a_missing_layer_is_named_and_nothing_runs(bare: Bare, missing: dict[str, int], feature: str) -> None:
    answer = bare.run(ALL, "def attack(info):\n    return 'ran'\n", deny=missing)
    assert "LayerMissing" in answer["ready"] and f"{feature}" in answer["ready"].lower()
    assert "missing" in answer["ready"]
    assert "ran" not in answer["said"]


def test_root_that_may_not_change_its_user_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def forbidden(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(limits, "get_capabilities", lambda: 1 << limits.CAP_SETUID)
    monkeypatch.setattr("os.setgroups", forbidden)
    with pytest.raises(LayerMissing, match=r"cannot become user 70000.*start as an ordinary user"):
        limits.become_user(70000)


def test_namespaces_that_are_forbidden_are_named(bare: Bare) -> None:
    answer = bare.run({"namespaces"}, "def attack(info):\n    return 'ran'\n", deny={"unshare": 1})
    assert "namespaces are missing" in answer["ready"] and "mode: default" in answer["ready"]


def test_shared_memory_is_seen_by_both_sides() -> None:
    descriptor = os.memfd_create("shared")
    os.ftruncate(descriptor, 64)
    one, other = map_shared_memory(descriptor, 64), map_shared_memory(descriptor, 64)
    os.close(descriptor)
    one[5] = 77
    assert other[5] == 77 and len(other) == 64


def test_shared_memory_that_cannot_be_is_an_error() -> None:
    with pytest.raises(OSError, match="mmap"):
        map_shared_memory(0, 0)


def test_locking_nothing_is_possible() -> None:
    before = resource.getrlimit(resource.RLIMIT_AS)
    lock_worker(frozenset({"audit", "hide"}), WorkerLimits())  # names of others' layers
    assert resource.getrlimit(resource.RLIMIT_AS) == before


def test_an_unknown_machine_is_an_error_with_a_way_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.machine", lambda: "riscv64")
    with pytest.raises(LayerMissing, match="needs Linux on x86_64 or aarch64, this is riscv64") as found:
        syscalls.machine()
    assert found.value.feature == "architecture"


@pytest.mark.parametrize(
    ("text", "users"),
    [
        ("         0          0 4294967295\n", range(70_000, 74_096)),
        ("0 100000 65536\n", range(60_578, 61_184)),
        ("0 1000 1\n1 100000 65536\n", range(60_578, 61_184)),
        ("0 100000 200000\n", range(70_000, 74_096)),
    ],
    ids=["machine", "container", "rootless", "wide"],
)
def test_workers_get_users_that_nobody_else_gives_away(
    monkeypatch: pytest.MonkeyPatch, text: str, users: range
) -> None:
    monkeypatch.setattr(limits.Path, "read_text", lambda _: text)
    limits.list_users.cache_clear()
    try:
        assert limits.list_users() == users
        assert len({limits.choose_user(number) for number in range(600)}) == 600
        assert all(limits.choose_user(number) in users[:-1] for number in range(10_000))
        assert not set(users) & set(range(61_184, 65_520)), "systemd's own services"
    finally:
        monkeypatch.undo()
        limits.list_users.cache_clear()
