"""What is installed and what may run code: the lock names every dependency, and the linter refuses exec and eval."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path
from runpy import run_path

import pytest

ROOT = Path(__file__).parents[2]
LOCK = ROOT / ".ci" / "requirements.txt"


def read_lock() -> dict[str, str]:
    """Version of every package in the lock."""
    return dict(re.findall(r"^([\w.-]+)(?:\[[\w,-]+\])?==(\S+) \\$", LOCK.read_text(), re.M))


STUB = """\
#!{python}
import json, sys
name, arguments = sys.argv[0].rpartition("/")[2], sys.argv[1:]
if name == "pip-licenses":
    packages = {{"a 1": "MIT", "b 2": "{licence}"}}
    print(json.dumps([{{"Name": one[0], "Version": one[2], "License": packages[one]}} for one in packages]))
elif name == "cyclonedx-py":
    open(arguments[arguments.index("-o") + 1], "w").write(json.dumps({{"components": [{{"name": "a"}}]}}))
else:
    print({audit!r})
"""


@pytest.mark.parametrize(
    ("licence", "audit", "options", "code", "says"),
    [
        (
            "BSD-3-Clause",
            '{"dependencies": [{"name": "a", "version": "1", "vulns": []}]}',
            [],
            0,
            "0 (1 of 1 packages)",
        ),
        ("GPL-3.0", '{"dependencies": []}', [], 1, "error: licence of b 2: GPL-3.0"),
        ("MIT", '{"dependencies": [{"name": "a", "version": "1", "vulns": [{"id": "CVE-1"}]}]}', [], 1, "a 1: CVE-1"),
        ("MIT", '{"dependencies": [{"name": "a", "skip_reason": "not found"}]}', [], 0, "not asked"),
        (
            "MIT",
            '{"dependencies": [{"name": "a", "skip_reason": "not found"}]}',
            ["--online"],
            1,
            "error: weaknesses: not",
        ),
        ("MIT", "no network", ["--online"], 1, "error: weaknesses: not asked"),
    ],
    ids=["clean", "licence", "weakness", "unreachable", "must reach", "broken"],
)
def test_the_audit_finds_licences_and_weaknesses(
    tmp_path: Path, licence: str, audit: str, options: list[str], code: int, says: str
) -> None:
    """With stubs of the programs that it runs: the service that knows weaknesses is not there in tests."""
    for name in ("pip-licenses", "cyclonedx-py", "pip-audit"):
        (tmp_path / name).write_text(STUB.format(python=sys.executable, licence=licence, audit=audit))
        (tmp_path / name).chmod(0o755)
    (tmp_path / "python").symlink_to(sys.executable)
    command = [tmp_path / "python", ROOT / ".ci" / "audit.py", sys.executable, "--out", tmp_path / "dist", *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == code
    assert says in done.stdout + done.stderr
    assert (tmp_path / "dist" / "sbom.cdx.json").is_file() and (tmp_path / "dist" / "licences.json").is_file()


@pytest.mark.parametrize(
    ("licence", "allowed"),
    [
        ("Proprietary, limited use", False),
        ("Commercial (see DISCLAIMER)", False),
        ("GPL-3.0; see permitted uses", False),
        ("BSL-1.1", False),
        ("Apache-2.0 with Commons Clause", False),
        ("MIT AND GPL-3.0-only", False),
        ("GPL-3.0-only AND (MIT OR Apache-2.0)", False),
        ("GNU GENERAL PUBLIC LICENSE\nVersion 3\nParts that are public domain OR MIT stay so.", False),
        ("GPL-2.0-only OR MIT", True),
        ("MPL-2.0 AND (Apache-2.0 OR MIT)", True),
        ("Apache-2.0 WITH LLVM-exception AND BSL-1.0", True),
        ("3-Clause BSD License", True),
        ("DFSG approved; MIT License", True),
        ("MIT-CMU", True),
        ("ISC License (ISCL)", True),
        ("Apache2.0", True),
        ("UNKNOWN", False),
    ],
)
def test_words_that_hold_the_name_of_a_licence_are_no_licence(licence: str, allowed: bool) -> None:
    assert run_path(str(ROOT / ".ci" / "audit.py"))["is_allowed"](licence) is allowed


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
