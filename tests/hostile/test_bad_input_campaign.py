"""Bad input to every command: one line, the right exit code, no traceback, no hang, nothing lost.

A sample of the cases by default, all of them with --full and in `make attack`.
"""

import random
from collections.abc import Callable
from pathlib import Path

import command_cases
import config_cases
import environment_cases
import file_cases
import forged_cases
import option_cases
import pytest
import run_cases
import world_cases
from input_campaign import Campaign, Case, Outcome, find_faults

SAMPLE = 40
"""Cases of a family by default."""


@pytest.mark.timeout(3600)
@pytest.mark.parametrize(
    "family", ["configurations", "options", "files", "runs", "forged", "commands", "worlds", "environments"]
)
def test_bad_input_ends_in_one_line(
    family: str, finished: Path, tmp_path: Path, full: bool, record_property: Callable[[str, object], None]
) -> None:
    made = {
        "configurations": lambda: config_cases.make_cases(full),
        "options": lambda: option_cases.make_cases(full),
        "files": lambda: file_cases.make_cases(full),
        "commands": lambda: command_cases.make_cases(full),
        "forged": lambda: forged_cases.make_cases(full, run=finished),
        "environments": lambda: environment_cases.make_cases(full),
        "worlds": lambda: world_cases.make_cases(full),
        "runs": lambda: run_cases.make_cases(full, run=finished),
    }
    cases = list(made[family]())
    if not full:
        cases = random.Random(1).sample(cases, SAMPLE)
    with Campaign(tmp_path / "cases", finished) as campaign:
        bad = {case.name: faults for case in cases if (faults := campaign.judge(case))}
    record_property("cases", len(cases))
    record_property("not_held", len(bad))
    assert not bad, "\n".join(f"{name}: {'; '.join(faults)}" for name, faults in bad.items())


@pytest.mark.parametrize(
    ("outcome", "fault"),
    [
        (Outcome(None, "", "", 60), "hangs"),
        (Outcome(-11, "", "", 1), "killed by signal 11"),
        (Outcome(1, "", "Traceback (most recent call last)\n  x\nValueError: y", 1), "traceback"),
        (Outcome(3, "", "error: x", 1), "exit code 3"),
        (Outcome(1, "", "error: x: KeyError: 'a' (a bug, please report it)", 1), "a bug"),
        (Outcome(0, "", "", 1), "in place of [2]"),
        (Outcome(2, "", "error: x\nerror: y\n", 1), "2 lines"),
        (Outcome(2, "", "", 1), "without a word"),
        (Outcome(2, "", "error: \x1b[31m\n", 1), "control character"),
        (Outcome(2, "", "error: [Errno 2] no\n", 1), "Errno"),
        (Outcome(2, "", "error: y\n", 1), "does not say 'x'"),
        (Outcome(2, "", "error: x\n", 40), "took 40 s"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_the_judge_finds_faults(outcome: Outcome, fault: str) -> None:
    faults = find_faults(Case("x", (), codes=frozenset({2}), says="x"), outcome)
    assert any(fault in text for text in faults)


def test_the_judge_passes_one_clean_line() -> None:
    outcome = Outcome(2, "", "play dialogues: started, 0/3\nnote: odd\nerror: x: write it so\n", 1)
    assert list(find_faults(Case("x", ()), outcome)) == []


def test_the_judge_finds_what_is_lost(tmp_path: Path) -> None:
    case = Case("x", ("configs", "copy", "quickstart", "new.yaml"), {"kept.txt": "a"})
    with Campaign(tmp_path / "cases") as campaign:
        assert campaign.judge(case) == []
        overwritten = Case("x", ("env", "duplicates", "--library", "--json", "kept.txt"), {"kept.txt": "a"})
        assert campaign.judge(overwritten) == ["lost or changed: kept.txt"]
