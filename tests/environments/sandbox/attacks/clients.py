"""How tests talk to the processes in which attacks are made."""

import json
import os
import secrets
import subprocess
import sys
from collections.abc import Iterable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from attacks.catalog import Attack
from attacks.world import KEY

HERE = Path(__file__).resolve().parents[1]
PROJECT = HERE.parents[2]
PACKAGES = [path for path in sys.path if path.endswith("site-packages")]
OTHER_USER = 65534
"""An ordinary user: "nobody"."""
ALL = frozenset({"uid", "rlimits", "undumpable", "landlock", "no_new_privs", "pdeathsig", "seccomp", "clean"})
"""All layers of a bare worker; `clean` is what the zygote does by starting with no environment and no descriptors."""


def environment() -> dict[str, str]:
    """Of a process that is attacked: it has a secret, and finds this folder."""
    kept = {name: value for name, value in os.environ.items() if name in ("PATH", "HOME", "LANG")}
    return kept | {
        KEY: f"canary-{secrets.token_hex(12)}",
        "PYTHONPATH": os.pathsep.join([str(HERE), str(PROJECT), *PACKAGES]),
    }


def as_user(user: int | None) -> dict[str, Any]:
    """Arguments of `Popen` to start a process that is attacked, as another user where one is given.

    It leads a process group: some attacks signal their group, and must reach neither the tests nor other processes that
    are attacked at the same time.
    """
    other = {} if user is None else {"user": user, "group": user, "extra_groups": []}
    return other | {"process_group": 0}


@cache
def python_of(user: int | None) -> str | None:
    """An interpreter that this user may run, and that finds this checkout; None if there is none."""
    if user is None:
        return sys.executable
    for path in (sys.executable, f"/usr/bin/python3.{sys.version_info.minor}"):
        with suppress(OSError):
            order = [path, "-c", "import trajsmith.environments.sandbox.lockdown, trajsmith.environments.native"]
            done = subprocess.run(order, env=environment(), cwd="/", capture_output=True, check=False, **as_user(user))
            if done.returncode == 0:
                return path
    return None


def ordinary_user() -> int | None:
    """An ordinary user to be; None where this process is one already. Skips the test where root cannot be one."""
    if os.geteuid() != 0:
        return None
    if python_of(OTHER_USER) is None:
        pytest.skip(f"user {OTHER_USER} cannot run Python, or cannot read this checkout")
    return OTHER_USER


class Bare:
    """A parent of bare workers, see `bare.py`."""

    def __init__(self, user: int | None = None) -> None:
        self._process = subprocess.Popen(
            [str(python_of(user)), "-m", "attacks.bare"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment(), cwd="/", **as_user(user),
        )  # fmt: skip

    def run(self, layers: Iterable[str], source: str, **order: Any) -> dict[str, Any]:
        """One attack on a fresh worker with these layers: {"ready", "said", "found"}."""
        assert self._process.stdin and self._process.stdout
        self._process.stdin.write(json.dumps({"layers": sorted(layers), "source": source, **order}) + "\n")
        self._process.stdin.flush()
        answer: dict[str, Any] = json.loads(self._process.stdout.readline())
        return answer

    def achieves(self, layers: Iterable[str], attack: Attack, **order: Any) -> bool:
        """True if the attack succeeds against these layers."""
        return achieved(self.run(layers, attack.source, **order))

    def close(self) -> None:
        assert self._process.stdin and self._process.stdout
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()


def achieved(answer: dict[str, Any]) -> bool:
    """True if something was found outside, or the attack says so itself."""
    return bool(answer["found"]) or "did: " in answer["said"]


def run_script(module: str, *arguments: str, user: int | None = None, seconds: int = 120) -> str:
    """Standard output of a module of this folder, run as a process of its own."""
    done = subprocess.run(
        [str(python_of(user)), "-m", f"attacks.{module}", *arguments],
        env=environment(), cwd="/", capture_output=True, text=True, timeout=seconds, check=False, **as_user(user),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout
