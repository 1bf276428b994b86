"""Audit of suites of tasks that others made: one table for all of them."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

from trajsmith.pipeline.harbor_audit import audit_harbor
from trajsmith.pipeline.progress import RunProgress
from trajsmith.pipeline.suite_counts import SuiteAudit
from trajsmith.pipeline.tau2_audit import audit_tau2

__all__ = ["SuiteAudit", "audit_suites"]


def audit_suites(
    tau2: Path | None,
    domains: Sequence[str],
    harbor: Path | None,
    mutants: int,
    limit: int | None,
    seed: int,
    progress: RunProgress | None = None,
) -> list[SuiteAudit]:
    """Audit suites by their own checks.

    Args:
        tau2: A checkout of tau2-bench.
        domains: Its domains, each with ":FILE" where the tasks are not in `tasks.json`; all if empty.
        harbor: A folder of Harbor tasks.
        mutants: Wrong plays of each task at most.
        limit: Tasks of each suite at most.
        seed: Of the choice of mutants.
        progress: Told about each task.

    Raises:
        InputError: A suite cannot be read.
    """
    audits: list[SuiteAudit] = []
    if tau2 is not None:
        audits += asyncio.run(audit_tau2(tau2, domains, mutants, limit, seed, progress))
    if harbor is not None:
        audits.append(audit_harbor(harbor, mutants, limit, seed, progress))
    return audits
