"""Audit of suites of tasks that others made: one table for all of them."""

import asyncio
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from trajsmith.pipeline.harbor_audit import audit_harbor
from trajsmith.pipeline.progress import RunProgress
from trajsmith.pipeline.suite_counts import SuiteAudit
from trajsmith.pipeline.tau2_audit import audit_tau2
from trajsmith.records import InputError

__all__ = ["SuiteAudit", "audit_live_suites", "audit_suites"]


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


def audit_live_suites(
    environments: Sequence[str],
    urls: Sequence[str],
    gold: Path | None,
    mutants: int,
    limit: int | None,
    seed: int,
    passes: float,
    progress: RunProgress | None = None,
) -> list[SuiteAudit]:
    """Audit suites that their own libraries run: environments of verifiers, and running OpenEnv servers.

    Args:
        environments: Tasksets of installed packages, as `vf-eval` takes them.
        urls: Addresses of OpenEnv servers.
        gold: Gold plays: a run directory, or a file of plays; None where the suites have their own.
        mutants: Wrong plays of each task at most.
        limit: Tasks of each suite at most.
        seed: Of the choice of mutants.
        passes: Reward from which a play passes.
        progress: Told about each task.

    Raises:
        InputError: A suite or the gold plays cannot be read, or a library is not installed.
    """
    audits: list[SuiteAudit] = []
    for library, names in (("verifiers", environments), ("openenv", urls)):
        if names and find_spec(library) is None:
            raise InputError(f"{library} is not installed here: run this where it is (pip install {library} trajsmith)")
    for name in environments:
        from trajsmith.pipeline.verifiers_audit import audit_verifiers

        audits.append(asyncio.run(audit_verifiers(name, gold, mutants, limit, seed, passes, progress)))
    for url in urls:
        from trajsmith.pipeline.openenv_audit import audit_openenv

        audits.append(asyncio.run(audit_openenv(url, gold, mutants, limit, seed, passes, progress)))
    return audits
