"""Run every suite of attacks and print one table: what was tried, what held.

    python benchmarks/attacks.py [--short]

Each suite is a set of test files; `make attack` runs them with --full. A case that is not held fails its test, and the
test says which. Exit code 1 if anything is not held.
"""

import os
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
SUITES = {
    "sandbox: code against the machine, other plays, the parent": ["tests/environments/sandbox"],
    "bad input to every command": ["tests/hostile/test_bad_input_campaign.py", "tests/hostile/test_surroundings.py"],
    "failing disks": ["tests/hostile/test_disk_faults.py"],
    "two writers without locks": ["tests/hostile/test_foreign_locks.py"],
    "keys in the environment": ["tests/hostile/test_secret_canary.py"],
    "changed, cut and linked runs": ["tests/pipeline/test_bad_input.py", "tests/pipeline/test_rundir.py"],
    "kills and resumes": ["tests/pipeline/test_kill.py"],
    "text against judge and tokenizer": ["tests/verify/test_judge_injection.py", "tests/export/test_rows.py"],
    "orders in texts that models read": [
        "tests/models/test_prompt_data.py",
        "tests/querygen/test_gullible_writer.py",
        "tests/verify/test_gullible_check_writer.py",
        "tests/verify/test_gullible_traces.py",
        "tests/envgen/test_gullible_repair.py",
        "tests/envgen/test_gullible_proposal.py",
    ],
    "text against terminal and pages": [
        "tests/pipeline/test_cli_console.py",
        "tests/records/test_text.py",
        "tests/export/test_report.py",
        "tests/export/test_hostile_pages.py",
    ],
    "schemas, patterns and YAML without end": [
        "tests/environments/test_schemas.py",
        "tests/environments/test_schema_patterns.py",
        "tests/environments/test_schema_steps.py",
        "tests/records/test_yaml_text.py",
        "tests/records/test_pattern_cost.py",
    ],
    "parsers, with a corpus and mutations of it": ["tests/hostile/test_fuzz_targets.py"],
    "servers of models and of MCP that lie": [
        "tests/models/test_hostile_servers.py",
        "tests/models/test_endless_replies.py",
        "tests/environments/mcp/test_mcp_hostile.py",
    ],
    "clients of a served environment": ["tests/environments/serving"],
}


@dataclass(frozen=True)
class SuiteResult:
    """Counts of one suite. A test that tries many cases counts as that many."""

    cases: int
    not_held: int
    skipped: int
    cpu_seconds: float


def run_suite(paths: list[str], options: list[str]) -> SuiteResult:
    """Run test files and count the cases."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report.xml")
        command = [sys.executable, "-m", "pytest", "-q", f"--junitxml={report}", *options, *paths]
        before = os.times()
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        after = os.times()
        cpu = after.children_user + after.children_system - before.children_user - before.children_system
        if not report.is_file():
            raise SystemExit(f"{' '.join(paths)}: {done.stdout[-2000:]}{done.stderr[-2000:]}")
        tests = list(ElementTree.parse(report).iter("testcase"))
        if done.returncode:
            print(done.stdout[-4000:])
    cases = not_held = skipped = 0
    for test in tests:
        properties = {one.get("name"): one.get("value") for one in test.iter("property")}
        failed = test.find("failure") is not None or test.find("error") is not None
        if test.find("skipped") is not None:
            skipped += 1
            continue
        cases += int(properties.get("cases") or 1)
        not_held += int(properties.get("not_held") or 0) or failed
    return SuiteResult(cases, not_held, skipped, cpu)


def main() -> None:
    """Run the suites and print the table."""
    options = [] if "--short" in sys.argv else ["--full"]
    rows = []
    for name, paths in SUITES.items():
        began = time.monotonic()
        result = run_suite(paths, options)
        rows.append((name, result))
        print(f"{name}: {result.cases} cases, {result.not_held} not held, {time.monotonic() - began:.0f} s", flush=True)
    print("\n| suite | cases | held | not held | tests skipped | CPU s |\n|---|---:|---:|---:|---:|---:|")
    for name, one in [*rows, ("all", _add([result for _, result in rows]))]:
        counts = (one.cases, one.cases - one.not_held, one.not_held, one.skipped, round(one.cpu_seconds))
        print(f"| {name} | {' | '.join(map(str, counts))} |")
    sys.exit(any(result.not_held for _, result in rows))


def _add(results: list[SuiteResult]) -> SuiteResult:
    return SuiteResult(
        sum(one.cases for one in results),
        sum(one.not_held for one in results),
        sum(one.skipped for one in results),
        sum(one.cpu_seconds for one in results),
    )


if __name__ == "__main__":
    main()
