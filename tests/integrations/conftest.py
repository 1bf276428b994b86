"""Integrations are judged by the other side's program; `make test-integrations` installs these and prints the table.

A test reports what was checked with the fixture `checked`; the table is made of what the tests reported.
"""

import asyncio
import subprocess
import sys
from collections import defaultdict

import pytest
from other_side import ROOT, find_python, start, stop
from transcripts import build_transcripts

KEY = "integration"
CONFIG = """
name: integrations
seed: 9
run: {run}
environments:
  - {{library: bank, states: {{small: 1}}}}
  - {{library: calendar, states: {{small: 1}}}}
  - {{library: retail, states: {{small: 1}}}}
  - {{library: smart_home, states: {{small: 1}}}}
sample: {{count: {count}, length: [2, 4]}}
ground: {{min_calls: 1}}
write: {{direct: 0.4}}
play: {{candidates: 2, faulty: 1, reasoning: grounded, reasoning_share: 0.5}}
"""


@pytest.fixture
def checked(record_property):
    """Report a row of the table: package, its version, the client that drove it, and how many checks passed."""

    def report(package, version, client, passed, of):
        record_property(KEY, [package, version, client, passed, of])
        assert passed == of

    return report


@pytest.fixture(scope="session")
def run(tmp_path_factory, full):
    """A small run of two environments, with right plays and plays with mistakes."""
    from trajsmith.pipeline.config import load_config
    from trajsmith.pipeline.run_directory import RunDirectory
    from trajsmith.pipeline.runner import run_pipeline
    from trajsmith.pipeline.yaml_settings import dump_settings

    folder = tmp_path_factory.mktemp("integrations")
    (folder / "run.yaml").write_text(CONFIG.format(run=folder / "run", count=80 if full else 16))
    settings = load_config(folder / "run.yaml")
    made = RunDirectory.create(settings.run, dump_settings(settings))
    asyncio.run(run_pipeline(made))
    return made


@pytest.fixture(scope="session")
def transcripts(run, full):
    """The conformance kit: five transcripts of each of 5 tasks; with --full of 40 tasks."""
    return build_transcripts(run, 40 if full else 5)


@pytest.fixture(scope="session")
def openenv_url(run):
    """An OpenEnv server of the run, in the environment of OpenEnv."""
    command = [find_python("openenv"), "-m", "trajsmith", "task", "serve", str(run.path), "--openenv", "127.0.0.1:0"]
    server, line = start(command, ROOT, "serving OpenEnv at")
    yield line.split(" at ")[1].split(";")[0]
    stop(server)


@pytest.fixture(scope="session")
def verifiers_site(run, tmp_path_factory):
    """The package, built and installed by pip into a folder."""
    folder = tmp_path_factory.mktemp("verifiers")
    from trajsmith.pipeline.task_packages import write_task_package

    write_task_package(run, "verifiers", folder / "package")
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", folder / "site"]
    subprocess.run([*map(str, pip), str(folder / "package")], check=True, timeout=600)
    return folder / "site"


def pytest_terminal_summary(terminalreporter):
    rows = defaultdict(lambda: [0, 0])
    for outcome in ("passed", "failed"):
        for report in terminalreporter.stats.get(outcome, ()):
            for key, value in report.user_properties if report.when == "call" else ():
                if key == KEY:
                    package, version, client, passed, of = value
                    count = rows[package, version, client]
                    count[0], count[1] = count[0] + passed, count[1] + of
    if not rows:
        return
    table = [("integration", "version", "client", "checks passed")]
    table += [(*key, f"{passed} of {of}") for key, (passed, of) in sorted(rows.items())]
    widths = [max(len(row[column]) for row in table) for column in range(4)]
    terminalreporter.write_line("")
    for row in table:
        terminalreporter.write_line(
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        )
