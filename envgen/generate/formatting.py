"""Run Ruff on generated code and pytest on generated tests, each in a subprocess that may fail or hang."""

import os
import re
import subprocess
import sys
from pathlib import Path

from trajsmith.records import InputError, RunError, install_command

LINE_LENGTH = 120
RUFF_RULES = "F401,I,UP,RUF100"
FIRST_PARTY = 'lint.isort.known-first-party=["trajsmith"]'
"""Without it the order of imports would depend on where the command is given."""
RUFF_SECONDS = 60
TEST_SECONDS = 300
_NO_SETTINGS = "no_settings.ini"
"""Settings file that keeps pytest from taking those of a folder above."""


class FormattingError(RunError):
    """Error: Ruff cannot parse a text or does not finish with it."""


def fix_and_format_code(code: str) -> str:
    """Return code without unused imports, with sorted ones, formatted.

    Raises:
        InputError: Ruff is not installed.
        FormattingError: It cannot read the code.
    """
    rules = ("--select", RUFF_RULES, "--target-version", "py311", "--config", FIRST_PARTY)
    fixed = _run_ruff(code, "check", *rules, "--fix", "--exit-zero", "--quiet")
    return format_code(fixed)


def format_code(code: str) -> str:
    """Return the code as `ruff format` lays it out.

    Raises:
        InputError: Ruff is not installed.
        FormattingError: It cannot read the code.
    """
    return _run_ruff(code, "format", "--quiet", "--line-length", str(LINE_LENGTH))


def _run_ruff(code: str, command: str, *arguments: str) -> str:
    whole = [sys.executable, "-m", "ruff", command, *arguments, "--isolated", "--stdin-filename", "environment.py", "-"]
    try:
        done = subprocess.run(whole, input=code.encode(), capture_output=True, check=False, timeout=RUFF_SECONDS)
    except subprocess.TimeoutExpired as error:
        raise FormattingError(f"ruff {command} did not end in {RUFF_SECONDS} seconds") from error
    stderr = done.stderr.decode(errors="replace")
    if "No module named ruff" in stderr:
        raise InputError(f"generated code is formatted by ruff: {install_command('envgen')}")
    if done.returncode:
        raise FormattingError(f"ruff {command}: {' '.join(stderr.split())[:400] or f'exit code {done.returncode}'}")
    return done.stdout.decode()


def run_tests(folder: Path, *files: str, log: Path | None = None) -> str:
    """Run the tests in a folder and return pytest's first failure, else its last line; see `is_passing`.

    They run in a process that sees no keys, and imports nothing from the folder by chance: an environment may be called
    as a module of Python is.

    Args:
        files: Which tests, or other arguments; all in the folder if none.
        log: Gets all that pytest says.

    Raises:
        InputError: pytest is not installed.
        RunError: It did not end.
    """
    (folder / _NO_SETTINGS).write_text("[pytest]\n", encoding="utf-8")
    options = ("-q", "-p", "no:cacheprovider", "-c", _NO_SETTINGS, "--noconftest", "--import-mode=importlib")
    command = [sys.executable, "-P", "-m", "pytest", *options, "--rootdir=.", *files]
    try:
        done = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, check=False, timeout=TEST_SECONDS,
            env=_build_test_environment(),
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


def is_passing(summary: str) -> bool:
    """Return True if an output of `run_tests` reports no failure."""
    return bool(re.fullmatch(r"\d+ passed(, \d+ (skipped|deselected|warnings?))*", summary))


def _build_test_environment() -> dict[str, str]:
    """The environment variables that generated tests see: no keys; and they need no plugins, whose start is slow.

    No bytecode is kept: Python takes it for code of the same second and size, such as that of a repair.
    """
    variables = {
        name: os.environ[name] for name in ("PATH", "PYTHONPATH", "HOME", "TMPDIR", "LANG") if name in os.environ
    }
    return {**variables, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONDONTWRITEBYTECODE": "1"}
