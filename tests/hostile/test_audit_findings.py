"""The table of findings in docs/reliability.md names tests that exist, and every finding has one."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
FINDINGS = 16


def read_rows() -> list[tuple[int, list[str]]]:
    """Return the number of each finding, and the tests that its row names."""
    section = (
        (ROOT / "docs" / "reliability.md").read_text().split("\n## Findings and their tests\n")[1].split("\n## ")[0]
    )
    rows = [line.split(" | ") for line in section.splitlines() if re.match(r"\| \d", line)]
    return [(int(re.findall(r"\d+", row[0])[0]), re.findall(r"`([^`\s]+::\w+)`", row[-1])) for row in rows]


def test_every_finding_of_the_audit_has_a_test() -> None:
    rows = read_rows()
    assert {number for number, _ in rows} == set(range(1, FINDINGS + 1))
    assert [number for number, tests in rows if not tests] == []


def test_the_tests_of_the_findings_exist() -> None:
    missing = []
    for test in {test for _, tests in read_rows() for test in tests}:
        file, _, name = test.partition("::")
        path = ROOT / "tests" / file
        tree = ast.parse(path.read_text() if path.is_file() else "")
        if name not in {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}:
            missing.append(test)
    assert missing == []
