"""Resolve our dependencies from the package index: lowest and newest, alone and beside frameworks that go together.

python .ci/resolve.py UV

Each resolution holds for all Python versions from 3.11 on (`uv pip compile --universal`), and all run side by side. A
request that times out is tried once more. Exit code 1 if one does not resolve, or the index does not answer twice.
"""

import re
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

ALONE = {"lowest": ["--resolution", "lowest-direct"], "newest": ["--resolution", "highest"]}
BESIDE = (
    "verifiers==0.4.* inspect-ai==0.3.285",
    "openenv==0.10.* nemo-gym==0.4.* inspect-ai==0.3.285",
    "harbor>=0.24",
)
"""Packages whose own needs go together."""
NO_ANSWER = re.compile(r"timed? ?out|error sending request|connection (?:reset|refused|closed)|failed to fetch", re.I)
WAIT = 5.0
"""Seconds before the second try."""


def build_commands(uv: str) -> list[tuple[str, list[str], str]]:
    """Return the name of each resolution, its command and what it reads."""
    compile_with = [uv, "pip", "compile", "--quiet", "--universal", "--no-header", "pyproject.toml"]
    commands = [(name, [*compile_with, "--python-version", "3.11", *options], "") for name, options in ALONE.items()]
    for beside in BESIDE:
        text = "\n".join(beside.split())
        commands.append((f"beside {beside}", [*compile_with, "--python-version", "3.12", "-"], text))
    return commands


def resolve(name: str, command: list[str], text: str) -> tuple[bool, str]:
    """Return whether it resolves, and a line that says so or why not."""
    for last in (False, True):
        start = time.monotonic()
        done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
        if done.returncode == 0:
            packages = sum("==" in line for line in done.stdout.splitlines())
            return True, f"resolves {name}: {packages} packages in {time.monotonic() - start:.0f} s"
        if last or not NO_ANSWER.search(done.stderr):
            break
        time.sleep(WAIT)
    reason = "the package index did not answer, twice" if NO_ANSWER.search(done.stderr) else "does not resolve"
    return False, f"{name}: {reason}\n{done.stderr.strip()}"


def main(uv: str) -> int:
    """Resolve everything and return the exit code."""
    commands = build_commands(uv)
    with ThreadPoolExecutor(len(commands)) as pool:
        outcomes = list(pool.map(lambda one: resolve(*one), commands))
    for good, line in outcomes:
        print(line, file=sys.stdout if good else sys.stderr)
    return 0 if all(good for good, _ in outcomes) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
