"""`trajsmith env probe --attack`: the modes and providers hold, and the attacks do work where nothing stops them."""

import json
import shutil
import socket
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from trajsmith.environments.sandbox import attack_suite
from trajsmith.environments.sandbox.attack_sources import ATTACKS, LOADING
from trajsmith.environments.sandbox.attack_suite import AttackOutcome, AttackReport
from trajsmith.environments.sandbox.launchers import SANDBOXES, launch_directly
from trajsmith.environments.sandbox.probe import probe
from trajsmith.environments.sandbox.settings import SandboxSettings
from trajsmith.records import RunError

pytestmark = pytest.mark.timeout(300)
BUILT_IN = {"environment", "descriptors"}
"""What the built-in provider stops in every mode: it passes no keys and no descriptors on."""


def run_attacks(mode: str, *options: str) -> "subprocess.CompletedProcess[str]":
    """Run the command: memory is judged, so in a process where no other test's threads grow it."""
    command = [sys.executable, "-m", "trajsmith", "env", "probe", "--attack", "--json", "--mode", mode, *options]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("mode", "provider"), [("default", "built_in"), ("strict", "built_in"), ("default", "bubblewrap")]
)
def test_no_attack_comes_through(mode: str, provider: str, full: bool) -> None:
    if not full and (mode, provider) != ("default", "built_in"):
        pytest.skip("another mode or provider: with --full")
    if not probe().modes[mode].works:  # type: ignore[index]
        pytest.skip(f"mode {mode} does not work here")
    if provider == "bubblewrap" and shutil.which("bwrap") is None:
        pytest.skip("bubblewrap is not installed")
    done = run_attacks(mode, "--provider", provider)
    report = AttackReport.model_validate(json.loads(done.stdout))
    assert [one for one in report.outcomes if one.harm] == []
    assert len(report.outcomes) > 65 and {one.when for one in report.outcomes} == {"call", "load"}
    assert all(tried >= len(ATTACKS[kind]) for kind, (tried, _) in report.count().items())


def test_where_nothing_stops_them_the_attacks_succeed_and_the_command_says_so(full: bool) -> None:
    if not full:
        pytest.skip("attacks without a sandbox: with --full")
    done = run_attacks("unsafe")
    assert done.returncode == 1
    assert done.stderr.startswith("error: ") and "attacks were not stopped in mode unsafe" in done.stderr
    report = AttackReport.model_validate(json.loads(done.stdout))
    stopped = {(one.when, one.name) for one in report.outcomes if one.kind in LOADING and not one.harm}
    late = {("load", "change rights"), ("load", "new session")}  # the file is gone, the worker leads a session already
    kernel = {(when, "memory of the parent") for when in ("call", "load")}  # where Yama is on
    assert stopped - late - kernel == {(when, name) for when in ("call", "load") for name in BUILT_IN}
    assert ("load", "fork") not in {(one.when, one.name) for one in report.outcomes}


class Loaded:
    """A play whose file reports what it is told to."""

    def __init__(self, report: object) -> None:
        self.report = report

    async def call(self, tool: str, arguments: object) -> SimpleNamespace:
        return SimpleNamespace(content={"result": self.report})


async def judge_report(monkeypatch: pytest.MonkeyPatch, report: object, reach: str | None) -> list[AttackOutcome]:
    """Judge the report of a loading file that reached the network, or changed a file."""
    with attack_suite._make_world() as world:

        async def start(source: object, token: str) -> Loaded:
            if reach == "network":
                with socket.create_connection(world.listeners["tcp"].getsockname()):
                    pass
            elif reach == "files":
                (world.folder / "new").write_text("x")
            return Loaded(report)

        monkeypatch.setattr(attack_suite, "_start", start)
        return await attack_suite._attack_while_loading(world, SandboxSettings())


@pytest.mark.parametrize("report", [None, "forged", [], {"TCP": "None"}])
async def test_a_report_without_the_attacks_counts_none_as_stopped(
    monkeypatch: pytest.MonkeyPatch, report: object
) -> None:
    with pytest.raises(RunError, match="attacks of a loading file were not reported, first: open a file"):
        await judge_report(monkeypatch, report, None)


@pytest.mark.parametrize(("reach", "name"), [("network", "TCP"), ("files", "make a file")])
async def test_harm_of_a_loading_file_is_that_of_its_class(
    monkeypatch: pytest.MonkeyPatch, reach: str, name: str
) -> None:
    names = [one for names in LOADING.values() for one in names]
    report = {one: "None" if one == name else "blocked: PermissionError" for one in names}
    outcomes = await judge_report(monkeypatch, report, reach)
    assert [(one.kind, one.name) for one in outcomes if one.harm] == [(reach, name)]


async def test_a_loading_file_that_harms_unseen_is_not_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    report = {one: "blocked: OSError" for names in LOADING.values() for one in names}
    outcomes = await judge_report(monkeypatch, report, "network")
    assert {one.kind for one in outcomes if one.harm} == {"network"}


@pytest.mark.parametrize(("option", "value"), [("--mode", "strict"), ("--provider", "built_in")])
def test_options_of_attacks_are_refused_without_them(option: str, value: str) -> None:
    command = [sys.executable, "-m", "trajsmith", "env", "probe", option, value]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (2, f"error: {option} is for attacks: add --attack\n")


def test_a_provider_that_is_missing_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(RunError, match="apt-get install bubblewrap"):
        SANDBOXES.get("bubblewrap")(["python"])


def test_bubblewrap_runs_an_interpreter_that_is_reached_through_links(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    if shutil.which("bwrap") is None:
        pytest.skip("bubblewrap is not installed")
    (tmp_path / "linked").symlink_to(sys.prefix)
    program = tmp_path / "linked" / "bin" / "python"
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "linked"))
    monkeypatch.setattr(sys, "executable", str(program))
    says = [str(program), "-c", "import sys, pydantic; print(sys.prefix)"]
    done = subprocess.run(SANDBOXES.get("bubblewrap")(says), capture_output=True, text=True, check=False)
    if "ermission" in done.stderr or "not permitted" in done.stderr:
        pytest.skip("bubblewrap may make no namespaces here")
    assert (done.stdout.strip(), done.returncode) == (str(tmp_path / "linked"), 0), done.stderr


def test_a_provider_gets_the_command_and_an_unknown_one_is_named() -> None:
    assert launch_directly(["a", "b"]) == ["a", "b"]
    assert SandboxSettings(provider="bubblewrap").provider == "bubblewrap"
    with pytest.raises(ValueError, match="no sandbox_provider named 'bubblewrp'"):
        SandboxSettings(provider="bubblewrp")
