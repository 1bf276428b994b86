"""What the probe says of this machine and of machines that lack something, and that the pool never does with less."""

import errno
import json
import os
import platform
import time
from functools import cache
from io import StringIO
from pathlib import Path

import pytest
from attacks.clients import ordinary_user, run_script
from rich.console import Console

from trajsmith.environments.sandbox import probe as probing
from trajsmith.environments.sandbox.probe import ModeVerdict, ProbeReport, probe, render

MODES = ("default", "strict")
CASES = {
    "nothing": ({}, None, "", ()),
    "no user namespaces": ({"unshare": errno.EPERM}, "namespaces", "user namespaces", ("strict",)),
    "Landlock not built": ({"landlock_create_ruleset": errno.ENOSYS}, "landlock", "Landlock is missing", MODES),
    "Landlock not on": ({"landlock_create_ruleset": errno.EOPNOTSUPP}, "landlock", "lsm= list", MODES),
    "no seccomp": ({"seccomp": errno.ENOSYS}, "seccomp", "seccomp filters are missing", MODES),
    "no pidfds": ({"pidfd_open": errno.ENOSYS}, "pidfd", "pidfds are missing", MODES),
    "no CPU timer": ({"setitimer": errno.ENOSYS}, "cpu_timer", "", MODES),
    "no limits": ({"prlimit64": errno.EPERM}, "rlimits", "", MODES),
}  # fmt: skip


@cache
def here() -> ProbeReport:
    """What this machine has."""
    return probe()


@pytest.fixture(scope="module")
def reports() -> dict[str, ProbeReport]:
    """What the probe says in each case."""
    said = run_script("denied", "probe", json.dumps([case[0] for case in CASES.values()])).strip().splitlines()
    return {name: ProbeReport.model_validate_json(text) for name, text in zip(CASES, said, strict=True)}


@pytest.mark.parametrize("name", CASES)
def test_what_is_missing_is_named_and_stops_the_modes_that_need_it(reports: dict[str, ProbeReport], name: str) -> None:
    _, feature, words, modes = CASES[name]
    report = reports[name]
    if feature is not None and not here().feature(feature).available:
        pytest.skip(f"{feature} is missing here anyway")
    for found in report.features:
        if found.name == feature:
            assert not found.available and words in found.detail
        elif found.name not in ("namespaces", "notifications"):  # they need other features themselves
            assert found.available == here().feature(found.name).available, found
    for mode, verdict in report.modes.items():
        if mode in modes:
            assert not verdict.works and words in verdict.message
            assert "\n" not in verdict.message
        elif here().modes[mode].works:
            assert verdict.works, verdict


@pytest.mark.parametrize(
    "name,mode,words",
    [("no user namespaces", "strict", "namespaces are missing"), ("no pidfds", "default", "pidfd"),
     ("Landlock not built", "default", "Landlock is missing"), ("no seccomp", "default", "seccomp filters")],
)  # fmt: skip
def test_the_pool_refuses_with_the_name_of_what_is_missing(name: str, mode: str, words: str) -> None:
    if not here().modes[mode].works:
        pytest.skip(f"mode {mode} does not work here: {here().modes[mode].message}")
    said = run_script("denied", mode, json.dumps(CASES[name][0]), "{}").strip()
    assert words in said and "\n" not in said


@pytest.mark.parametrize(
    "name,settings", [("no user namespaces", {}), ("Landlock not built", {"allow_missing": ["landlock"]})]
)
def test_the_pool_works_where_what_is_missing_is_not_needed(name: str, settings: dict[str, object]) -> None:
    if not here().modes["default"].works:
        pytest.skip(f"mode default does not work here: {here().modes['default'].message}")
    assert run_script("denied", "default", json.dumps(CASES[name][0]), json.dumps(settings)).strip() == "ok"


def test_an_ordinary_user_is_told_the_same_but_for_users() -> None:
    user = ordinary_user()
    report = ProbeReport.model_validate_json(run_script("denied", "probe", "[{}]", user=user))
    assert report.feature("uid").available
    assert ("not root" in report.feature("uid").detail) == (user is not None or os.geteuid() != 0)
    assert report.modes["default"].works == here().modes["default"].works


def test_open_files_of_the_caller_change_nothing() -> None:
    held = [os.open("/dev/null", os.O_RDONLY) for _ in range(100)]
    try:
        assert probe() == here()
    finally:
        for descriptor in held:
            os.close(descriptor)


def test_nothing_of_the_probe_sticks() -> None:
    before = _settings()
    probe()
    assert _settings() == before


def _settings() -> tuple[object, ...]:
    files = sorted(Path("/").iterdir())
    return os.getuid(), files, os.sched_getaffinity(0), Path("/proc/self/limits").read_text()


def test_another_kind_of_machine_gets_one_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "riscv64")
    report = probe()
    assert not report.feature("architecture").available
    assert not any(found.available for found in report.features if found.name != "kernel")
    assert "x86_64 or aarch64" in report.modes["default"].message
    assert report.modes["unsafe"].works


def test_a_filter_without_effect_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probing.seccomp, "install", lambda code: None)
    report = probe()
    assert "no effect" in report.feature("seccomp").detail
    assert not report.modes["default"].works


def test_an_open_door_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The last trial locks a worker as the pool does, and tries what must not work."""
    monkeypatch.setattr(probing.lockdown, "lock_worker", lambda *_, **__: None)
    report = probe()
    assert all(found.available for found in report.features if found.name in ("seccomp", "landlock"))
    assert report.modes["default"] == ModeVerdict(
        works=False, message="a locked worker can open a file: please report this machine, and do not use it"
    )


def test_a_trial_that_dies_or_hangs_is_a_missing_feature(monkeypatch: pytest.MonkeyPatch) -> None:
    assert probing._in_child(lambda: os.kill(os.getpid(), 9) or "") == (False, "the trial was killed or hung")
    assert probing._in_child(lambda: str(1 / 0)) == (False, "ZeroDivisionError: division by zero")
    monkeypatch.setattr(probing, "_ENOUGH_SECONDS", 0.05)
    assert probing._in_child(_sleep) == (False, "the trial was killed or hung")


def _sleep() -> str:
    time.sleep(30)
    return ""


def test_the_table_shows_every_feature_and_mode() -> None:
    console = Console(width=200, record=True, file=StringIO())
    console.print(render(here()))
    text = console.export_text()
    for found in here().features:
        assert found.name in text
    for mode in ("default", "strict", "unsafe"):
        assert f"mode {mode}" in text


def test_the_report_survives_json() -> None:
    assert ProbeReport.model_validate_json(here().model_dump_json()) == here()
