"""From a run to a dataset: filter its trajectories by verdict and reward, and export them."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import get_args

from trajsmith.api.runs import Run
from trajsmith.environments.blocking import run_blocking
from trajsmith.export import MultiFormatWriter
from trajsmith.pipeline.dataset_selection import load_unselected
from trajsmith.pipeline.eval_contexts import build_contamination_test
from trajsmith.pipeline.format_export import JUDGED, Include, export_formats
from trajsmith.pipeline.progress import NullProgress, RunProgress
from trajsmith.pipeline.record_joins import JudgedTrajectory
from trajsmith.records import InputError, Outcome
from trajsmith.verify.rewards import REWARDS

OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)


class TrajectoryFilter:
    """Judged trajectories that pass a filter; every iteration reads the records anew and counts what it drops."""

    def __init__(
        self, records: Run | Iterable[JudgedTrajectory], bounds: Mapping[str, float], outcomes: tuple[Outcome, ...]
    ) -> None:
        self._records = records
        self._bounds = bounds
        self._outcomes = outcomes
        self.dropped: Counter[str] = Counter()
        """Reason to trajectories that the last iteration dropped."""

    def __iter__(self) -> Iterator[JudgedTrajectory]:
        self.dropped.clear()
        for record in self._iter_selected():
            reason = self._find_reason(record)
            if reason:
                self.dropped[reason] += 1
            else:
                yield record

    def explain_empty(self) -> str:
        """Return the error text for an iteration that passed nothing."""
        wanted = [f"{name} >= {bound:g}" for name, bound in self._bounds.items()]
        wanted.append(f"verdict {' or '.join(self._outcomes)}")
        return f"no trajectory passes {' and '.join(wanted)} ({self.dropped.total()} dropped)"

    def _iter_selected(self) -> Iterator[JudgedTrajectory]:
        """Iterate over the records without those that the selection of their run left out."""
        if not isinstance(self._records, Run):
            yield from self._records
            return
        run = self._records
        unselected = load_unselected(run.directory)
        is_contaminated = build_contamination_test(run.directory, run.config)
        for record in run.judged:
            reason = unselected.get(record.trajectory.id) or (is_contaminated(record.task) and "contaminated")
            if reason:
                self.dropped[f"not chosen: {reason}"] += 1
            else:
                yield record

    def _find_reason(self, record: JudgedTrajectory) -> str:
        """Return why a trajectory does not pass, empty if it does."""
        verdict = record.verdict
        if verdict.outcome not in self._outcomes:
            return f"verdict {verdict.outcome}"
        for name, bound in self._bounds.items():
            if name not in verdict.rewards:
                return f"no reward {name}"
            if verdict.rewards[name] < bound:
                return f"{name} below {bound:g}"
        return ""


def filter_trajectories(
    records: Run | Path | str | Iterable[JudgedTrajectory],
    *,
    min: Mapping[str, float] | None = None,
    verdict: Iterable[str] = ("completed",),
) -> TrajectoryFilter:
    """Filter judged trajectories by verdict and by rewards, and return those that pass, in order, as an iterable.

    What the run's own selection left out (near-duplicates, rows of benchmarks, rows beyond its quotas) stays out.
    Beside that the filter decides alone: it also passes candidates that were not the best of their task.

    Args:
        records: Run or run directory; or `(task, trajectory, verdict)` records, for example of another filter.
        min: Reward name to its lowest value. A trajectory without that reward (it could not be scored) does not pass.
        verdict: Outcomes that pass.

    Raises:
        InputError: A reward or an outcome is unknown; the text lists those that there are.

    Example:
        >>> best = trajsmith.filter_trajectories("runs/quickstart", min={"composite": 0.8})
        >>> trajsmith.export_dataset("runs/quickstart", "trl", "data/best", records=best)
        >>> best.dropped
        Counter({'composite below 0.8': 12})
    """
    outcomes: list[Outcome] = []
    for name in [verdict] if isinstance(verdict, str) else verdict:
        match = [outcome for outcome in OUTCOMES if outcome == name]
        if not match:
            raise InputError(f"no verdict {name!r}; there are: {', '.join(OUTCOMES)}")
        outcomes += match
    for name in min or {}:
        REWARDS.get(name)
    opened = Run(records) if isinstance(records, str | Path) else records
    return TrajectoryFilter(opened, dict(min or {}), tuple(outcomes))


def export_dataset(
    run: Run | Path | str,
    format: str = "trl",
    out: Path | str | None = None,
    *,
    records: Iterable[JudgedTrajectory] | None = None,
    include: Include = "accepted",
    window: int | None = None,
    progress: RunProgress | None = None,
) -> MultiFormatWriter:
    """Write trajectories of a run as a dataset; no environment is started.

    Args:
        run: Run or run directory.
        format: One of `trajsmith export --formats`: trl, openai, sharegpt, grpo, verl_sft, ...
        out: Folder of the dataset; `exports/<format>` of the run without it. An older dataset there is replaced.
        records: Trajectories of this run to write, for example of `filter_trajectories`; without it those of `include`.
        include: `accepted`, `rejected` or `all`; the last two need the format `judged`, whose rows have `accepted` and
            `reasons`.
        window: Assistant turns of history in the rows of `per_turn` and `per_step`.
        progress: Shows how far it is; silent without.

    Returns:
        The writer: `writers[format].directory` is the folder, `writers[format].splits` the rows of each split and
        `dropped[format]` the trajectories that the format refused, by reason.

    Raises:
        InputError: The format is unknown, or the run has no verdicts.
        RunError: No row could be written, or the disk is full; an older dataset is unchanged.

    Example:
        >>> trajsmith.export_dataset("runs/quickstart", "openai", "data/openai").writers["openai"].splits
        {'train': 393}
        >>> trajsmith.export_dataset("runs/quickstart", "judged", "data/rejected", include="rejected")
    """
    opened = run if isinstance(run, Run) else Run(run)
    target = None if out is None else Path(out)
    work = export_formats(
        opened.directory, [format], target, window, progress or NullProgress(), include, records,
        records.explain_empty if isinstance(records, TrajectoryFilter) else None,
    )  # fmt: skip
    return run_blocking(work)


__all__ = ["JUDGED", "OUTCOMES", "TrajectoryFilter", "export_dataset", "filter_trajectories"]
