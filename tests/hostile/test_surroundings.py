"""Pipes in place of files, closed streams, few letters, few descriptors: a command ends in one line, and soon."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from input_campaign import Campaign, Case, Outcome, find_faults
from run_cases import COMMANDS, CONFIGS

PIPED = (
    "config.yaml", "tasks.jsonl", "trajectories.jsonl", "verdicts.jsonl", "chains.jsonl", "ledger/play.jsonl",
    "graph.json", "summary.json", ".lock", ".lock.owner", "usage.jsonl", "report.html", "grounded.jsonl",
)  # fmt: skip
GRAPHS = {"graph", "edges", "sample"}
"""Commands that are told the file: who names a pipe waits for it."""
SECONDS = 40


def pipe_cases(run: Path) -> list[Case]:
    """Return a case for each file of a run that is a pipe, each with a few commands that may read it."""
    states = [f"states/{path.name}" for path in sorted((run / "states").iterdir())[:1]]
    environments = [f"environments/{path.name}" for path in sorted((run / "environments").iterdir())[:1]]
    labels = list(COMMANDS)
    cases = []
    for number, name in enumerate([*PIPED, *states, *environments]):
        chosen = {"resume", "export", "report", "replay", *labels[number % 3 :: 3]}
        for label in sorted(chosen - (GRAPHS if name == "graph.json" else set())):
            cases.append(Case(f"{label} with a pipe as {name}", COMMANDS[label], CONFIGS, run="done", pipes=(name,)))
    return cases


@pytest.mark.timeout(3600)
def test_a_pipe_in_a_run_is_refused_and_nobody_waits_for_it(
    finished: Path, tmp_path: Path, full: bool, record_property
) -> None:
    cases = pipe_cases(finished)[:: 1 if full else 12]
    with Campaign(tmp_path / "cases", finished, seconds=15) as campaign:
        bad = {case.name: faults for case in cases if (faults := campaign.judge(case))}
    record_property("cases", len(cases))
    record_property("not_held", len(bad))
    assert not bad, "\n".join(f"{name}: {'; '.join(faults)}" for name, faults in bad.items())


def test_a_socket_and_a_device_are_no_files_of_a_run(tmp_path: Path) -> None:
    from trajsmith.pipeline.run_directory import RunDirectory
    from trajsmith.records import InputError

    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "tasks.jsonl"))
        run = RunDirectory(tmp_path)
        with pytest.raises(InputError, match="neither a file nor a folder"):
            run.file("tasks.jsonl")
        with pytest.raises(InputError, match="neither a file nor a folder"):
            run.refuse_links()


LIST, SHOW = "env list", "env show travel"
SURROUNDINGS = {
    "standard output is closed": f"{LIST} >&-",
    "standard error is closed": f"{LIST} 2>&-",
    "all streams are closed": f"{LIST} <&- >&- 2>&-",
    "an error with closed standard error": "env show nothing 2>&-",
    "the disk of the output is full": f"{LIST} > /dev/full",
    "the reader goes away": f"{SHOW} | head -c 10 > /dev/null",
    "few letters": f"{LIST} | PYTHONIOENCODING=utf-8 cat",
    "no home": f"env -u HOME {{trajsmith}} {SHOW}",
    "a home that is no folder": f"env HOME=/dev/null {{trajsmith}} {SHOW}",
    "no folder for temporary files": f"env TMPDIR=/nowhere {{trajsmith}} {SHOW}",
    "a strange language": f"env LC_ALL=xx_YY.ISO-1 LANG=C {{trajsmith}} {LIST}",
    "no environment": f"env -i {{trajsmith}} {LIST}",
    "no columns": f"env COLUMNS=0 {{trajsmith}} {LIST}",
    "one column": f"env COLUMNS=1 {{trajsmith}} {LIST}",
    "columns that are none": f"env COLUMNS=x LINES=-1 {{trajsmith}} {LIST}",
    "a strange terminal": f"env TERM='../../x' {{trajsmith}} {LIST}",
    "a strange time zone": f"env TZ=:/etc/passwd {{trajsmith}} {SHOW}",
    "a folder that is gone": f"mkdir gone && cd gone && rmdir ../gone && {{trajsmith}} {LIST}",
    "a folder that is gone, and a file in it": "mkdir gone && cd gone && rmdir ../gone && {trajsmith} run c.yaml",
    "few descriptors": f"ulimit -n 16 && {{trajsmith}} {SHOW}",
    "few descriptors for a run": "ulimit -n 20 && {trajsmith} run c.yaml",
    "no processes": "ulimit -u 1 && {trajsmith} env show mine.py",
    "a small stack": f"ulimit -s 256 && {{trajsmith}} {SHOW}",
    "little memory": f"ulimit -v 400000 && {{trajsmith}} {SHOW}",
    "small files": "ulimit -f 8 && {trajsmith} run c.yaml",
    "a configuration from a pipe": "(printf 'name: x') | {trajsmith} run /dev/stdin --dry-run",
    "a configuration that is a folder": "{trajsmith} run . --dry-run",
    "a configuration without right to read": "chmod 0 c.yaml && {trajsmith} run c.yaml --dry-run",
    "a hostile variable of Python": f"env PYTHONWARNINGS=x::y PYTHONHASHSEED=5 {{trajsmith}} {LIST}",
    "an umask that takes all rights": "umask 777 && {trajsmith} run c.yaml",
}
"""Shell lines; where `{trajsmith}` does not stand, it is put before the line."""
FEW_LETTERS = ("env list", "env show travel", "plugins", "configs", "prompts list", "--help", "env gen --help")


def shell(line: str, folder: Path, **environment: str) -> Outcome:
    """Run a shell line with `{trajsmith}` in a folder with a configuration and an environment."""
    (folder / "c.yaml").write_text(
        "name: tiny\nrun: here\nenvironments: [{library: bank, states: {small: 1}}]\n"
        "sample: {count: 2, length: [3, 4]}\n"
    )
    (folder / "mine.py").write_text("from trajsmith import Environment\n\n\nclass Mine(Environment):\n    pass\n")
    program = f"{sys.executable} -m trajsmith"
    line = line.replace("{trajsmith}", program) if "{trajsmith}" in line else f"{program} {line}"
    began = os.times()
    try:
        done = subprocess.run(
            ["bash", "-c", f"set -o pipefail; {line}"], cwd=folder, capture_output=True, timeout=SECONDS,
            env={**os.environ, **environment},
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return Outcome(None, "", "", SECONDS)
    texts = (text.decode("utf-8", "replace") for text in (done.stdout, done.stderr))
    ended = os.times()
    used = ended.children_user + ended.children_system - began.children_user - began.children_system
    return Outcome(done.returncode, *texts, used)


@pytest.mark.parametrize("name", SURROUNDINGS)
def test_a_command_in_strange_surroundings_ends_in_one_line(name: str, tmp_path: Path) -> None:
    outcome = shell(SURROUNDINGS[name], tmp_path)
    case = Case(name, (), codes=frozenset({0, 1, 2, 141}))
    faults = [
        one for one in find_faults(case, outcome) if not ("2>&-" in SURROUNDINGS[name] and "without a word" in one)
    ]
    assert not faults, outcome


@pytest.mark.parametrize("command", FEW_LETTERS)
@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp437", "utf-16"])
def test_a_terminal_of_few_letters_is_shown_what_it_can_show(command: str, encoding: str, tmp_path: Path) -> None:
    outcome = shell(command, tmp_path, PYTHONIOENCODING=encoding)
    assert outcome.code == 0, outcome
    assert "Traceback" not in outcome.err
