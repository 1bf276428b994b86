"""The configurations of live MCP servers, run from end to end on the real servers."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CONFIGS = ["mcp_memory", "mcp_filesystem", "mcp_git"]


def trajsmith(*arguments: str, seed: str = "0") -> subprocess.CompletedProcess:
    environment = {**os.environ, "PYTHONHASHSEED": seed}
    command = [sys.executable, "-m", "trajsmith", *arguments]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.servers
@pytest.mark.skipif(
    not (ROOT / ".servers/.installed").exists(), reason="the MCP servers are not installed: make servers"
)
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", CONFIGS)
def test_config_gives_trajectories_that_replay(name, tmp_path, full):
    run, count = tmp_path / name, 26 if full else 12
    done = trajsmith("run", f"configs/{name}.yaml", "--run", str(run), "--set", f"sample.count={count}")
    assert done.returncode == 0, done.stderr
    summary = json.loads((run / "summary.json").read_text())
    (calls,) = summary["coverage"].values()
    assert summary["funnel"]["accepted"] >= 0.75 * count
    assert sum(number > 0 for number in calls.values()) >= 4

    first = json.loads((run / "trajectories.jsonl").read_text().splitlines()[0])["id"]
    again = trajsmith("replay", str(run), "--id", first, seed="17")
    assert again.returncode == 0, again.stdout
    assert "1 of 1 trajectories replayed to equal state hashes" in again.stdout
    assert str(run) not in (run / "trajectories.jsonl").read_text(), "a path of the machine is in the records"


@pytest.mark.servers
@pytest.mark.skipif(
    not (ROOT / ".servers/.installed").exists(), reason="the MCP servers are not installed: make servers"
)
@pytest.mark.timeout(300)
def test_the_configuration_of_the_tutorial_gives_trajectories(tmp_path):
    text = (ROOT / "docs/tutorials/mcp-server.md").read_text()
    config = (
        text.split("```yaml\n")[1]
        .split("```")[0]
        .replace("node_modules/.bin", str(ROOT / ".servers/node_modules/.bin"))
    )
    (tmp_path / "files.yaml").write_text(config)
    run = tmp_path / "run"
    done = trajsmith("run", str(tmp_path / "files.yaml"), "--run", str(run), "--set", "sample.count=8")
    assert done.returncode == 0, done.stderr
    assert json.loads((run / "summary.json").read_text())["funnel"]["accepted"] >= 3
