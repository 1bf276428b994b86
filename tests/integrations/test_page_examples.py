"""The examples of docs/integrations.md, run as printed: each section's shell and Python blocks, one after the other."""

import os
import re
import shutil
import signal
import subprocess
from importlib.util import find_spec

import pytest
from other_side import ROOT

pytestmark = pytest.mark.servers
PAGE = (ROOT / "docs" / "integrations.md").read_text("utf-8")
ENVIRONMENTS = {
    "ATIF": "atif", "OpenEnv": "openenv", "verifiers": "verifiers", "Inspect": "inspect",
    "Readers with an older `datasets`": "datasets",
}  # fmt: skip
"""Section to the environment whose programs come before ours; the others need ours only."""


def read_sections():
    """Return the blocks of each section, those for the shell and those for Python."""
    sections = re.split(r"^## (.+)$", PAGE, flags=re.MULTILINE)[1:]
    found = {
        name: re.findall(r"^```(bash|python)\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
        for name, text in zip(sections[::2], sections[1::2], strict=True)
    }
    return {name: blocks for name, blocks in found.items() if blocks}


def build_script(blocks):
    """Return the blocks as one shell script; the port of a server that goes on is waited for."""
    parts = ["set -eo pipefail", "set -m"]
    for language, code in blocks:
        parts.append(code if language == "bash" else f"python - <<'END_OF_BLOCK'\n{code}END_OF_BLOCK\n")
        if code.rstrip().endswith("127.0.0.1:8000 &"):
            parts.append("until (exec 3<> /dev/tcp/127.0.0.1/8000) 2> /dev/null; do kill -0 %1; sleep 1; done")
    return "\n".join([*parts, "kill $(jobs -p) 2> /dev/null || true"])


@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", read_sections())
def test_the_example_runs_as_printed(run, tmp_path, checked, name):
    if name == "mcp.json" and shutil.which("npm") is None:
        pytest.skip("npm is not installed, which fetches the server of mcp.json")
    there = ROOT / ".integrations" / ENVIRONMENTS.get(name, "")
    if not there.is_dir():
        pytest.skip(f"{there.name} is not installed: run `make integrations`")
    if name in ("Harbor", "TRL") and find_spec("torch") is None:
        pytest.skip("the train extra is not installed: run `make train-extra`")
    shutil.copytree(run.path, tmp_path / "runs" / "quickstart")
    (tmp_path / ".integrations").symlink_to(ROOT / ".integrations")
    for needed in ("trajsmith", "python"):
        assert (ROOT / ".venv" / "bin" / needed).exists()
    bins = [*([there / "bin"] if name in ENVIRONMENTS else []), ROOT / ".venv" / "bin"]
    env = os.environ | {
        "PATH": ":".join([*map(str, bins), os.environ["PATH"]]), "PYTHONPATH": str(ROOT / "src"),
        "VIRTUAL_ENV": str(bins[0].parent), "HF_HOME": str(tmp_path / "home"),
    }  # fmt: skip
    process = subprocess.Popen(
        ["bash", "-c", build_script(read_sections()[name])], cwd=tmp_path, env=env, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True,
    )  # fmt: skip
    try:
        out, _ = process.communicate(timeout=850)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        raise
    assert process.returncode == 0, out[-4000:]
    checked("docs/integrations.md", "", f"examples: {name}", 1, 1)
