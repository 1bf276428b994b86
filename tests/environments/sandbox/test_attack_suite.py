"""`trajsmith env probe --attack`: the modes and providers hold, and the attacks do work where nothing stops them."""

import json
import shutil
import subprocess
import sys

import pytest

from trajsmith.environments.sandbox.attack_sources import ATTACKS
from trajsmith.environments.sandbox.attack_suite import AttackReport, run_attacks
from trajsmith.environments.sandbox.launchers import SANDBOXES, launch_directly
from trajsmith.environments.sandbox.probe import probe
from trajsmith.environments.sandbox.settings import SandboxSettings
from trajsmith.records import RunError

pytestmark = pytest.mark.timeout(300)


@pytest.mark.parametrize(
    ("mode", "provider"), [("default", "built_in"), ("strict", "built_in"), ("default", "bubblewrap")]
)
async def test_no_attack_comes_through(mode: str, provider: str, full: bool) -> None:
    if not full and (mode, provider) != ("default", "built_in"):
        pytest.skip("another mode or provider: with --full")
    if not probe().modes[mode].works:  # type: ignore[index]
        pytest.skip(f"mode {mode} does not work here")
    if provider == "bubblewrap" and shutil.which("bwrap") is None:
        pytest.skip("bubblewrap is not installed")
    report = await run_attacks(mode, provider)
    assert [one for one in report.outcomes if one.harm] == []
    assert len(report.outcomes) > 65 and {one.when for one in report.outcomes} == {"call", "load"}
    assert all(tried >= len(ATTACKS[kind]) for kind, (tried, _) in report.count().items())


def test_where_nothing_stops_them_the_attacks_succeed_and_the_command_says_so(full: bool) -> None:
    if not full:
        pytest.skip("attacks without a sandbox: with --full")
    command = [sys.executable, "-m", "trajsmith", "env", "probe", "--attack", "--mode", "unsafe", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("error: ") and "attacks were not stopped in mode unsafe" in done.stderr
    report = AttackReport.model_validate(json.loads(done.stdout))
    harmful = {kind for kind, (_, through) in report.count().items() if through}
    assert harmful >= {"files", "keys", "network", "processes"}
    assert sum(bool(one.harm) for one in report.outcomes) >= 20


def test_a_provider_that_is_missing_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(RunError, match="apt-get install bubblewrap"):
        SANDBOXES.get("bubblewrap")(["python"])


def test_a_provider_gets_the_command_and_an_unknown_one_is_named() -> None:
    assert launch_directly(["a", "b"]) == ["a", "b"]
    assert SandboxSettings(provider="bubblewrap").provider == "bubblewrap"
    with pytest.raises(ValueError, match="no sandbox_provider named 'bubblewrp'"):
        SandboxSettings(provider="bubblewrp")
