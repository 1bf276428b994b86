"""Counts for the summary of a run, collected while its records stream by."""

from collections import Counter

from trajsmith.models import SCRIPTED, Role
from trajsmith.models.registry import USAGE
from trajsmith.models.usage import summarize_usage
from trajsmith.pipeline.config import RunConfig
from trajsmith.pipeline.dataset_selection import DatasetSelector
from trajsmith.pipeline.engine import summarize_stage
from trajsmith.pipeline.run_context import RunContext
from trajsmith.pipeline.run_directory import CHAINS, GROUNDED, TASKS, TRAJECTORIES, VARIED, VERDICTS, RunDirectory
from trajsmith.pipeline.stages import list_stages
from trajsmith.pipeline.trace_import import IMPORT_ORDER, OUTSIDE, load_imported_files
from trajsmith.records import (
    FaultSummary,
    JudgeOpinion,
    JudgeSummary,
    StageSummary,
    Summary,
    Trajectory,
    UsageSummary,
    Verdict,
    content_hash,
    count_records,
)
from trajsmith.verify.selection import NOT_THE_BEST

SPEAKERS: tuple[Role, ...] = ("writer", "user", "agent")
"""Roles whose words stand in the dataset."""
NO_FAULT = "none"
IMPORT_FILES = {"read": OUTSIDE, "written": TASKS, "played": TRAJECTORIES, "verified": VERDICTS}
FILES = {
    "sampled": CHAINS,
    "grounded": GROUNDED,
    "written": TASKS,
    "varied": VARIED,
    "played": TRAJECTORIES,
    "verified": VERDICTS,
}


def find_main_reason(summary: Summary) -> str:
    """Why most records were lost, for a run that came to nothing, with an example."""
    reasons = Counter({f"rejected: {reason}": number for reason, number in summary.rejected.items()})
    for stage in summary.stages:
        reasons.update({f"{stage.name}: {reason}": number for reason, number in stage.dropped.items()})
    main = reasons.most_common(2)
    text = ", ".join(f"{reason}: {number}" for reason, number in main) or "no chains"
    examples = {
        f"{stage.name}: {reason}": detail for stage in summary.stages for reason, detail in stage.examples.items()
    }
    example = next((examples[reason] for reason, _ in main if reason in examples), "")
    return f"{text}; first: {example}" if example else text


class RunTally:
    """Counts for the summary, filled while the records stream by."""

    def __init__(self, run: RunDirectory, config: RunConfig, context: RunContext) -> None:
        self.run = run
        self.config = config
        self.home = context.home
        self.isolation = {name: place.source.isolation for name, place in sorted(context.places.items())}
        self.exported = 0
        self.refused: Counter[str] = Counter()
        self.rejected: Counter[str] = Counter()
        self.environments: Counter[str] = Counter(dict.fromkeys(context.places, 0))
        self.coverage = {
            name: Counter({tool.name: 0 for tool in place.spec.tools}) for name, place in context.places.items()
        }
        self.accepted = self.turns = self.calls = 0
        self.judge: Counter[str] = Counter()
        self.faults: dict[str, Counter[str]] = {}
        self.content = ""

    def add(self, trajectory: Trajectory, verdict: Verdict) -> None:
        if verdict.judge is not None:
            self._add_opinion(verdict, verdict.judge)
        if self.config.play.faulty:
            self._add_fault(trajectory, verdict)
        if not verdict.accepted:
            self.rejected.update(verdict.reasons)
            return
        self.accepted += 1
        self.content = content_hash([self.content, trajectory.id, verdict.id], 16)
        self.environments[trajectory.environment] += 1
        self.turns += len(trajectory.turns)
        for event in trajectory.events:
            self.calls += 1
            environment, tool = self.home(trajectory.environment, event.tool)
            if tool in self.coverage[environment]:
                self.coverage[environment][tool] += 1

    def _add_fault(self, trajectory: Trajectory, verdict: Verdict) -> None:
        """Count what became of a play: a task's second right play is accepted and not chosen, which is no rejection."""
        injected = trajectory.injected or ()
        counts = self.faults.setdefault(injected[0].kind if injected else NO_FAULT, Counter())
        counts["plays"] += 1
        rejected = not verdict.accepted and NOT_THE_BEST not in verdict.reasons
        counts["rejected"] += rejected
        messages = {trajectory.events[cut.event].message for cut in verdict.pruned}
        counts["removed"] += not rejected and bool(injected) and {fault.message for fault in injected} <= messages

    def _add_opinion(self, verdict: Verdict, opinion: JudgeOpinion) -> None:
        silent = opinion.outcome == "undecided"
        self.judge["asked"] += 1
        self.judge["abstained"] += silent
        self.judge["decided"] += opinion.decisive and not silent
        self.judge["compared"] += not opinion.decisive
        self.judge["agreed"] += not opinion.decisive and opinion.outcome == verdict.outcome

    def summary(self, export_seconds: float | None = None, selector: DatasetSelector | None = None) -> Summary:
        """Return the counts; with an export stage only if there was an export."""
        imported = bool(load_imported_files(self.run))
        files = IMPORT_FILES if imported else FILES
        funnel = {
            name: count_records(self.run.file(file)) if self.run.file(file).is_file() else 0
            for name, file in files.items()
            if file != VARIED or self.config.vary.on
        }
        funnel |= {"accepted": self.accepted, "exported": self.exported}
        names = (*IMPORT_ORDER, "verify") if imported else list_stages(self.config)
        stages = [summarize_stage(self.run, name) for name in names]
        if selector is not None and selector.active:
            stages.append(selector.stage())
        if export_seconds is not None:
            stages.append(
                StageSummary(
                    name="export",
                    read=self.accepted,
                    written=self.exported,
                    dropped=dict(self.refused),
                    seconds=round(export_seconds, 3),
                )
            )
        by_role = summarize_usage(self.run.file(USAGE))
        usage = sum(by_role.values(), UsageSummary())
        return Summary(
            name=self.config.name,
            seed=self.config.seed,
            language="imported" if imported else describe_language(self.config),
            spoken=self.config.language,
            stages=tuple(stages),
            funnel=funnel,
            rejected=dict(self.rejected.most_common()),
            environments=dict(sorted(self.environments.items())),
            isolation=self.isolation,
            coverage={name: dict(counts) for name, counts in sorted(self.coverage.items())},
            mean_turns=round(self.turns / self.accepted, 3) if self.accepted else 0.0,
            mean_calls_per_turn=round(self.calls / self.turns, 3) if self.turns else 0.0,
            usage=usage,
            usage_by_role=by_role,
            tokens_per_accepted=round(usage.tokens / self.accepted, 1) if self.accepted else 0.0,
            cost_per_accepted=round(usage.cost / self.accepted, 6) if self.accepted else 0.0,
            judge=JudgeSummary(**self.judge),
            faults={kind: FaultSummary(**counts) for kind, counts in sorted(self.faults.items())},
            content=self.content,
            wall_seconds=round(sum(stage.seconds for stage in stages), 3),
        )


def describe_language(config: RunConfig) -> str:
    """Whose words a run holds: "scripted", the names of the models that speak, or both."""
    names = {config.roles.of(role).model for role in SPEAKERS}
    models = sorted({config.models[name].model for name in names if name != SCRIPTED})
    return ", ".join([SCRIPTED, *models] if SCRIPTED in names else models)
