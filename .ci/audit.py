"""Supply chain: licences of all packages, known weaknesses, and a software bill of materials (CycloneDX).

    python .ci/audit.py PYTHON [--out FOLDER] [--online]

PYTHON is the interpreter of the environment whose packages are examined; the programs pip-licenses, cyclonedx-py and
pip-audit are beside the one that runs this (`make audit` installs them apart, so that they are no dependencies).
Exit code 1 if a licence is not allowed or a weakness is known; with --online also if weaknesses could not be asked for.
"""

import argparse
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
REQUIREMENTS = ROOT / ".ci" / "requirements.txt"
ALLOWED = re.compile(
    r"\b(?:MIT|BSD|Apache(?:2\.0)?|ISC|PSF|Python Software Foundation|MPL|Mozilla Public License 2|Zlib|0BSD|CC0"
    r"|BSL-1\.0|CNRI|Unlicense|HPND|Public Domain)\b",
    re.IGNORECASE,
)
"""Licences under which packages may be used beside Apache-2.0 code; a package offers one of them at least."""
REFUSED = re.compile(r"GPL|General Public License|Commons Clause", re.IGNORECASE)
"""What no other licence makes up for, unless the package offers that one in its place (`OR`)."""


def run(program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a program that stands beside this interpreter."""
    return subprocess.run([str(Path(sys.executable).with_name(program)), *arguments], capture_output=True, text=True)


def is_allowed(licence: str) -> bool:
    """Return True if a package may be used: a name, an SPDX expression or a whole text, of which one choice is allowed.

    An expression that also joins by `AND`, and a text of several lines, is judged whole.
    """
    whole = " AND " in licence or "\n" in licence
    choices = [licence] if whole else licence.split(" OR ")
    return any(ALLOWED.search(choice) and not REFUSED.search(choice) for choice in choices)


def list_licences(python: str) -> tuple[list[dict[str, str]], list[str]]:
    """Return (packages with their licences, faults)."""
    done = run("pip-licenses", "--python", python, "--format=json", "--from=mixed", "--with-urls")
    if done.returncode:
        return [], [f"licences: {done.stderr.strip().splitlines()[-1:]}"]
    packages: list[dict[str, str]] = json.loads(done.stdout)
    bad = [one for one in packages if not is_allowed(one["License"]) and one["Name"] != "trajsmith"]
    return packages, [f"licence of {one['Name']} {one['Version']}: {one['License']}" for one in bad]


def find_weaknesses() -> tuple[str, list[str]]:
    """Return (what was asked, weaknesses that are known)."""
    done = run(
        "pip-audit", "-r", str(REQUIREMENTS), "--no-deps", "--disable-pip", "--format=json", "--progress-spinner=off"
    )
    try:
        packages: list[dict[str, Any]] = json.loads(done.stdout)["dependencies"]
    except (json.JSONDecodeError, KeyError, TypeError):
        return f"not asked: {(done.stderr.strip().splitlines() or ['no answer'])[-1][:200]}", []
    skipped = [one for one in packages if "skip_reason" in one]
    known = [f"{one['name']} {one['version']}: {weak['id']}" for one in packages for weak in one.get("vulns", [])]
    if len(skipped) == len(packages):
        return "not asked: the service knows none of the packages, or is not reached", known
    return f"{len(packages) - len(skipped)} of {len(packages)} packages", known


def main() -> int:
    """Write the three lists and say what is wrong."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("python")
    parser.add_argument("--out", type=Path, default=ROOT / "dist")
    parser.add_argument("--online", action="store_true", help="fail if weaknesses could not be asked for")
    chosen = parser.parse_args()
    chosen.out.mkdir(parents=True, exist_ok=True)
    packages, faults = list_licences(chosen.python)
    (chosen.out / "licences.json").write_text(json.dumps(packages, indent=1))
    print(f"licences: {len(packages)} packages, {len(faults)} not allowed")
    bom = chosen.out / "sbom.cdx.json"
    written = run(
        "cyclonedx-py", "requirements", str(REQUIREMENTS), "--output-reproducible", "--of", "JSON", "-o", str(bom)
    )
    if written.returncode:
        faults.append(f"bill of materials: {written.stderr.strip().splitlines()[-1:]}")
    else:
        print(f"bill of materials: {len(json.loads(bom.read_text())['components'])} components in {bom}")
    asked, known = find_weaknesses()
    print(f"known weaknesses: {len(known)} ({asked})")
    faults += [f"weakness: {one}" for one in known]
    if chosen.online and asked.startswith("not asked"):
        faults.append(f"weaknesses: {asked}")
    for fault in faults:
        print(f"error: {fault}", file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
