"""Runs scripts in the environments in which the other sides of integrations are installed."""

import os
import subprocess
import sys
from pathlib import Path

import orjson
import pytest

ROOT = Path(__file__).parents[2]
HERE = Path(__file__).parent


def find_python(name):
    """Return the interpreter of an integration's environment; skip where it is not installed."""
    python = ROOT / ".integrations" / name / "bin" / "python"
    if not python.exists():
        pytest.skip(f"{name} is not installed: run `make integrations`")
    return str(python)


def run_script(name, script, *arguments, timeout=1500):
    """Run a script of this folder where the other side is installed, and return the JSON lines that it prints."""
    command = [find_python(name), str(HERE / script), *map(str, arguments)]
    env = os.environ | {"PYTHONPATH": str(ROOT / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(command, capture_output=True, text=True, env=env, cwd=ROOT, timeout=timeout, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    return [orjson.loads(line) for line in done.stdout.splitlines() if line.startswith(("[", "{"))]


def read_version(package, name=None):
    """Return the version of a package in the environment of an integration, or in ours."""
    python = find_python(name) if name else sys.executable
    command = [python, "-c", f"import importlib.metadata as m; print(m.version({package!r}))"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def start(command, folder, ready):
    """Start a server and return it with the line that says where it is."""
    env = os.environ | {"PYTHONPATH": str(ROOT / "src"), "PYTHONUNBUFFERED": "1"}
    server = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=env, cwd=folder)
    lines = []
    for line in server.stderr:
        lines.append(line)
        if ready in line:
            return server, line
    pytest.fail("".join(lines))


def stop(server):
    server.terminate()
    server.communicate(timeout=30)
