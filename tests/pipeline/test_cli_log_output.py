"""`trajsmith -v` and `-vv`: log lines on standard error; without them the package logs nothing."""

import subprocess
import sys

import pytest

CONFIG = """
name: tiny
seed: 1
run: {run}
environments:
  - {{library: bank, states: {{small: 1}}}}
  - {{python: {file}}}
sample: {{count: 6, length: [3, 4]}}
ground: {{min_calls: 4}}
"""
ENVIRONMENT = '''
from trajsmith import Environment, EnvironmentState, tool


class LockState(EnvironmentState):
    opened: int = 0


class Lock(Environment[LockState]):
    """A lock that never opens."""

    @classmethod
    def seed_state(cls, size, seed):
        return LockState(now="2026-05-04T09:00:00", seed=seed)

    @tool(effect="read")
    def read_lock(self) -> int:
        """Read how often the lock was opened."""
        return self.state.opened
'''


@pytest.fixture
def command(tmp_path):
    (tmp_path / "lock.py").write_text(ENVIRONMENT)
    config = tmp_path / "tiny.yaml"
    config.write_text(CONFIG.format(run=tmp_path / "run", file=tmp_path / "lock.py"))

    def run(*options):
        arguments = [sys.executable, "-m", "trajsmith", *options, "run", str(config), "--fresh"]
        return subprocess.run(arguments, capture_output=True, text=True, timeout=120)

    return run


def test_each_verbosity_prints_its_own_levels(command) -> None:
    plain, verbose, very_verbose = command(), command("-v"), command("-vv")
    assert (plain.returncode, verbose.returncode, very_verbose.returncode) == (0, 0, 0), plain.stderr
    assert " INFO " not in plain.stderr and " DEBUG " not in plain.stderr
    assert "INFO trajsmith.pipeline.engine: stage ground: start, 0 of 6 inputs done before" in verbose.stderr
    assert "INFO trajsmith.environments.sandbox.host: lock: worker" in verbose.stderr
    assert " DEBUG " not in verbose.stderr
    assert "DEBUG trajsmith.pipeline.engine: stage ground: chain_" in very_verbose.stderr
    assert " dropped: too_few_calls: " in very_verbose.stderr
    assert " INFO " not in very_verbose.stdout
