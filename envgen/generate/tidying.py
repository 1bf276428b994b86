"""Ruff on generated code, and pytest on generated tests: both are programs of their own, which may fail or hang."""

import os
import re
import subprocess
import sys
from pathlib import Path

from trajectory import InputError, RunError, install_command

LENGTH = 120
RULES = "F401,I,UP,RUF100"
OURS = 'lint.isort.known-first-party=["environments", "trajectory"]'
"""Without it the order of imports would depend on where the command is given."""
RUFF_SECONDS = 60
TEST_SECONDS = 300


class Untidy(RunError):
    """Ruff cannot read a text, or comes to no end with it."""


def tidied(code: str) -> str:
    """Code without unused imports, with sorted ones, formatted.

    Raises:
        InputError: Ruff is not installed.
        Untidy: It cannot read the code.
    """
    rules = ("--select", RULES, "--target-version", "py311", "--config", OURS)
    fixed = _ruff(code, "check", *rules, "--fix", "--exit-zero", "--quiet")
    return formatted(fixed)


def formatted(code: str) -> str:
    """The same code, laid out as ruff does.

    Raises:
        InputError: Ruff is not installed.
        Untidy: It cannot read the code.
    """
    return _ruff(code, "format", "--quiet", "--line-length", str(LENGTH))


def _ruff(code: str, command: str, *arguments: str) -> str:
    whole = [sys.executable, "-m", "ruff", command, *arguments, "--isolated", "--stdin-filename", "environment.py", "-"]
    try:
        done = subprocess.run(whole, input=code.encode(), capture_output=True, check=False, timeout=RUFF_SECONDS)
    except subprocess.TimeoutExpired as error:
        raise Untidy(f"ruff {command} did not end in {RUFF_SECONDS} seconds") from error
    said = done.stderr.decode(errors="replace")
    if "No module named ruff" in said:
        raise InputError(f"generated code is formatted by ruff: {install_command('envgen')}")
    if done.returncode:
        raise Untidy(f"ruff {command}: {' '.join(said.split())[:400] or f'exit code {done.returncode}'}")
    return done.stdout.decode()


def run_tests(folder: Path, *files: str, log: Path | None = None) -> str:
    """What pytest says of the tests in a folder: the first failure, else its last line; see `passed`.

    They run in a process that sees no keys, and imports nothing from the folder by chance: an environment may be called
    as a module of Python is.

    Args:
        files: Which tests, or other arguments; all in the folder if none.
        log: Gets all that pytest says.

    Raises:
        InputError: pytest is not installed.
        RunError: It did not end.
    """
    options = ("-q", "-p", "no:cacheprovider", "-c", os.devnull, "--noconftest", "--import-mode=importlib")
    command = [sys.executable, "-P", "-m", "pytest", *options, "--rootdir=.", *files]
    try:
        done = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, check=False, timeout=TEST_SECONDS,
            env=_bare_variables(),
        )  # fmt: skip
    except subprocess.TimeoutExpired as error:
        raise RunError(f"{folder}: the tests did not end in {TEST_SECONDS} seconds") from error
    if "No module named pytest" in done.stderr:
        raise InputError(f"generated environments are tested by pytest: {install_command('envgen')}")
    if log is not None:
        log.write_bytes(done.stdout.encode())
    lines = done.stdout.strip().splitlines() or [done.stderr.strip()[-200:]]
    failed = next((line for line in lines if line.startswith(("FAILED", "ERROR"))), "")
    return re.sub(r" in [\d.]+s.*", "", failed or lines[-1]).strip("= ")


def passed(said: str) -> bool:
    """Whether what `run_tests` gave says that all is well."""
    return bool(re.fullmatch(r"\d+ passed(, \d+ (skipped|deselected|warnings?))*", said))


def _bare_variables() -> dict[str, str]:
    """The environment variables that generated tests see: no keys; and they need no plugins, whose start is slow."""
    kept = {name: os.environ[name] for name in ("PATH", "PYTHONPATH", "HOME", "TMPDIR", "LANG") if name in os.environ}
    return {**kept, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
