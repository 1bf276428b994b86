"""Selects accepted trajectories for the dataset: deduplicated, decontaminated, within quotas."""

from collections import Counter, defaultdict
from collections.abc import Iterator

import orjson

from trajsmith.evals import ATTEMPTS, UNMEASURED, measure_difficulty, read_attempts
from trajsmith.pipeline.environment_collections import group_environments
from trajsmith.pipeline.quotas import Cell, Quotas
from trajsmith.pipeline.record_joins import JudgedTrajectory, join_verdicts
from trajsmith.pipeline.run_context import RunContext
from trajsmith.pipeline.run_directory import TRAJECTORIES, RunDirectory
from trajsmith.records import InputError, JsonObject, StageSummary, Task, Trajectory, read_records
from trajsmith.verify.decontaminate import Decontaminator
from trajsmith.verify.duplicates import DuplicateFilter
from trajsmith.verify.evaluation_tasks import EvaluationTasks

SELECTION = "selection.jsonl"
CONTAMINATED = "contaminated"
"""What the reason of a trajectory begins with that stands in a benchmark's file."""

EVALUATED = "repeats_an_evaluation"
"""Reason of a trajectory whose task is one of an evaluation, or nearly."""


def load_unselected(run: RunDirectory) -> dict[str, str]:
    """Return the ids of accepted trajectories that are not in the dataset of a run, with the reason."""
    return {row["trajectory_id"]: row["reason"] for row in _selection(run)}


def iter_accepted(run: RunDirectory) -> Iterator[JudgedTrajectory]:
    """Iterate over the accepted plays of a run that its selection did not drop."""
    unselected = load_unselected(run)
    return (
        judged for judged in join_verdicts(run) if judged.verdict.accepted and judged.trajectory.id not in unselected
    )


def contaminated_tasks(run: RunDirectory) -> set[str]:
    """Return the tasks of which a trajectory was dropped because it stands in a benchmark's file."""
    dropped = {row["trajectory_id"] for row in _selection(run) if row["reason"].startswith(CONTAMINATED)}
    if not dropped:
        return set()
    return {one.task_id for one in read_records(run.file(TRAJECTORIES), Trajectory) if one.id in dropped}


def _selection(run: RunDirectory) -> list[JsonObject]:
    path = run.file(SELECTION)
    return [orjson.loads(line) for line in path.read_bytes().splitlines()] if path.is_file() else []


class DatasetSelector:
    """Selects judged trajectories of a run in order, deterministically."""

    def __init__(self, run: RunDirectory, context: RunContext) -> None:
        config = context.config
        self.run = run
        self.context = context
        self.duplicates = DuplicateFilter(config.duplicates) if config.duplicates else None
        self.decontaminator = Decontaminator(config.decontaminate) if config.decontaminate else None
        avoid = config.plan.avoid if config.plan else ()
        self.evaluated = EvaluationTasks(avoid) if avoid else None
        by_difficulty = config.accept is not None and "difficulty" in config.accept.by
        self.difficulties = measure_difficulty(read_attempts(run.file(ATTEMPTS))) if by_difficulty else {}
        if by_difficulty and not self.difficulties:
            raise InputError(
                f"accept.by.difficulty: no solver has played the tasks of {run.path}: run it without, then "
                f"trajsmith calibrate {run.path} --solver ..., then trajsmith resume --set accept..."
            )
        by_taxonomy = config.accept is not None and "taxonomy" in config.accept.by
        self.groups = group_environments([place.spec for place in context.places.values()]) if by_taxonomy else {}
        """Environment to its group in the taxonomy, where rows are wanted by it."""
        shares = config.accept.shares(context.places, self.groups.values()) if config.accept else {}
        self.quotas = Quotas(config.accept.count, shares) if config.accept else None
        self.refused: dict[str, tuple[str, str]] = {}
        """Trajectory to (reason, detail), for good."""
        self.reasons: Counter[str] = Counter()
        self.offered = 0
        self.surplus: set[str] = set()
        """Trajectories beyond what was asked for."""
        self.places: defaultdict[str, set[str]] = defaultdict(set)
        """Variant to the environments that gave rows of it."""
        self._waiting: list[tuple[str, Cell]] = []
        self._seen = 0

    @property
    def active(self) -> bool:
        """Return True if the run selects at all."""
        return bool(self.duplicates or self.decontaminator or self.evaluated or self.quotas)

    def add_new(self) -> None:
        """Look at everything that was judged since the last time."""
        for number, (task, trajectory, verdict) in enumerate(join_verdicts(self.run)):
            if number >= self._seen:
                self._seen = number + 1
                if verdict.accepted:
                    self._add(task, trajectory)
        self._fill_quotas()

    def _add(self, task: Task, trajectory: Trajectory) -> None:
        self.offered += 1
        why = self._find_rejection(task, trajectory)
        if why is not None:
            self.refused[trajectory.id] = why
            self.reasons[why[0]] += 1

    def _find_rejection(self, task: Task, trajectory: Trajectory) -> tuple[str, str] | None:
        if self.decontaminator is not None:
            match = self.decontaminator.match(task, trajectory, self.context.place(trajectory.environment).spec.tools)
            if match:
                return f"{CONTAMINATED}: {match[0]}", match[1]
        repeated = self.evaluated.find(task) if self.evaluated is not None else None
        if repeated is not None:
            return EVALUATED, repeated
        labels = {
            "variant": task.variant,
            "turns": str(len(trajectory.turns)),
            "environment": trajectory.environment,
            "difficulty": difficulty.label if (difficulty := self.difficulties.get(task.id)) else UNMEASURED,
        }
        if self.groups:
            labels["taxonomy"] = self.groups[trajectory.environment.partition("+")[0]]
        cell = self.quotas.cell(labels) if self.quotas is not None else None
        if self.quotas is not None and cell is None:
            return "no_share_wants_it", ", ".join(labels.values())
        if self.duplicates is not None:
            other = self.duplicates.add(task, trajectory)
            if other is not None:
                return "near_duplicate", other
        if self.quotas is not None and cell is not None:
            self.quotas.available[cell] += 1
            self._waiting.append((trajectory.id, cell))
            self.places[task.variant].add(trajectory.environment)
        return None

    def _fill_quotas(self) -> None:
        """Fill the strata with the first rows of each cell; the others are more than was asked for."""
        if self.quotas is None:
            return
        self.surplus.clear()
        left = Counter(self.quotas.solve())
        for name, cell in self._waiting:
            if left[cell] > 0:
                left[cell] -= 1
            else:
                self.surplus.add(name)

    def list_unselected(self) -> dict[str, str]:
        """Return the accepted trajectories that are not in the dataset, with the reason."""
        return {name: reason for name, (reason, _) in self.refused.items()} | dict.fromkeys(self.surplus, "enough")

    def card(self) -> str:
        """Return the section of the dataset card; empty if nothing was compared."""
        text = f"\n{self.decontaminator.report()}" if self.decontaminator else ""
        if self.duplicates:
            text += (
                f"\n## Near-duplicates\n\n{self.reasons['near_duplicate']} rows were dropped because an earlier one "
                "says, calls and is about the same (Jaccard similarity of at least "
                f"{self.duplicates.settings.threshold}).\n"
            )
        return text

    def rows(self) -> Iterator[JsonObject]:
        """One row for each trajectory that was accepted and not chosen."""
        for name, (reason, detail) in self.refused.items():
            text = f"{reason}: {detail}" if reason == "near_duplicate" else reason
            yield {"trajectory_id": name, "reason": text, "detail": detail}
        for name, _ in self._waiting:
            if name in self.surplus:
                yield {"trajectory_id": name, "reason": "enough", "detail": ""}

    def stage(self) -> StageSummary:
        """Return the selection as a stage of the summary."""
        dropped = dict(sorted((self.reasons + Counter(enough=len(self.surplus))).items()))
        return StageSummary(
            name="select", read=self.offered, written=self.offered - sum(dropped.values()), dropped=dropped
        )
