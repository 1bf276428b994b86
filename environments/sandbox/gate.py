"""A look at source text before it runs: may sessions of this code share a worker process?

Code that keeps what it knows in its state object may: thousands of sessions then live in one process. Code that keeps
anything elsewhere (a cache in the module, a counter in a class), or reaches for things by which it could meet other
sessions, gets a process for every session: slower, and just as correct. So the gate may be wrong to refuse, which costs
speed, and should rarely be wrong to accept, which the digest of the modules notices
(`trajsmith.environments.sandbox.digest`).

It protects results of sessions from one another. It does not protect the host; the layers around the process do.
"""

import ast
import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from trajsmith.environments.sandbox._gate_capabilities import CapabilityChecker
from trajsmith.environments.sandbox._gate_sharing import SharedStateChecker
from trajsmith.records.text import to_one_line

LARGEST = 300_000
"""Bytes of source; more is not read."""
NOTES = frozenset({"clock", "entropy", "random", "real-clock", "uuid"})
"""Rules that only note something; all others mean a process per session."""


@dataclass(frozen=True, slots=True, order=True)
class GateFinding:
    """One reason, or one thing worth knowing."""

    line: int
    """Where; 1 if it concerns the whole file."""
    rule: str
    """Short name of the rule."""
    message: str
    """What the code does, in one line."""
    file: str
    """The file's name, as it was given."""

    @property
    def severity(self) -> Literal["process", "note"]:
        """`process`: every session needs its own process. `note`: chance or clock, which workers make virtual."""
        return "note" if self.rule in NOTES else "process"

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.message}"


def examine_source(source: str, file: str, own_variables: bool = False) -> list[GateFinding]:
    """Examine source text. It is parsed, never run; whatever it is, there are findings and no exception.

    Args:
        source: Python source.
        file: File name for the findings.
        own_variables: Whether an adapter gives every session its own copies of what the module and its classes keep,
            as `trajsmith.environments.module_state` does.
    """
    return list(_examine(source, file, own_variables))


@lru_cache(maxsize=16)
def _examine(source: str, file: str, own_variables: bool) -> tuple[GateFinding, ...]:
    """Examine a source once; one file is opened many times while it is examined, and by every stage of a run."""
    findings: set[GateFinding] = set()

    def report(line: int, rule: str, message: str) -> None:
        findings.add(GateFinding(line, rule, message, file))

    try:
        tree = _parsed(source)
        if tree is None:
            report(1, "unreadable", f"has more than {LARGEST} bytes")
        else:
            CapabilityChecker(tree, report).run()
            SharedStateChecker(tree, report, own_variables).run()
    except SyntaxError as error:
        report(error.lineno or 1, "unreadable", f"does not parse: {error.msg}")
    except (RecursionError, MemoryError):
        report(1, "unreadable", "nests too deeply to be examined")
    except ValueError as error:
        report(1, "unreadable", f"cannot be read: {to_one_line(error)}")
    return tuple(sorted(findings))


def can_share_worker(findings: Iterable[GateFinding]) -> bool:
    """Return whether sessions may share a worker."""
    return all(finding.severity == "note" for finding in findings)


def _parsed(source: str) -> ast.Module | None:
    if len(source) > LARGEST or len(source.encode("utf-8", "surrogatepass")) > LARGEST:
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(source)
