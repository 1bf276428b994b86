"""What is installed and what may run code: the lock names every dependency, and the linter refuses exec and eval."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LOCK = ROOT / ".ci" / "requirements.txt"


def read_lock() -> dict[str, str]:
    """Version of every package in the lock."""
    return dict(re.findall(r"^([\w.-]+)(?:\[[\w,-]+\])?==(\S+) \\$", LOCK.read_text(), re.M))


def test_every_package_of_the_lock_has_hashes() -> None:
    blocks = re.split(r"\n(?=\S)", LOCK.read_text().strip())
    assert len(blocks) == len(read_lock()) > 80
    assert [block.partition("\n")[0] for block in blocks if "--hash=sha256:" not in block] == []


def test_the_lock_has_every_dependency_at_a_version_that_it_may_have() -> None:
    requirements = pytest.importorskip("packaging.requirements")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    locked = read_lock()
    extras = project["optional-dependencies"]
    wanted = [requirements.Requirement(one) for one in (*project["dependencies"], *extras["dev"], *extras["docs"])]
    wrong = [
        str(one)
        for one in wanted
        if one.name != "trajsmith" and not one.specifier.contains(locked.get(one.name.lower().replace("_", "-"), "0"))
    ]
    assert not wrong, "run `make lock`"


@pytest.mark.parametrize(
    "code", ["exec('x')", "eval('x')", "import pickle\npickle.loads(b'')", "import marshal\nmarshal.loads(b'')"]
)
def test_the_linter_refuses_code_from_texts(code: str, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "ruff", "check", "--stdin-filename", "verify/new.py", "-"]
    done = subprocess.run(command, input=f"{code}\n", text=True, capture_output=True, cwd=ROOT)
    assert done.returncode == 1
    assert re.search(r"S102|S30[127]", done.stdout)
