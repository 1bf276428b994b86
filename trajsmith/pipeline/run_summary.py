"""Counts for the summary of a run, collected while its records stream by."""

from collections import Counter

from trajsmith.models import SCRIPTED, Role
from trajsmith.models.registry import USAGE
from trajsmith.models.usage import summarize_usage
from trajsmith.pipeline.config import RunConfig
from trajsmith.pipeline.dataset_selection import DatasetSelector
from trajsmith.pipeline.engine import summarize_stage
from trajsmith.pipeline.export_plan import chain_content
from trajsmith.pipeline.repairs import FAILED, REPAIR_ORDER, load_repair_settings
from trajsmith.pipeline.run_context import RunContext
from trajsmith.pipeline.run_counts import RunCounts
from trajsmith.pipeline.run_directory import CHAINS, GROUNDED, TASKS, TRAJECTORIES, VARIED, VERDICTS, RunDirectory
from trajsmith.pipeline.stage_times import StageTimes
from trajsmith.pipeline.stages import list_stages
from trajsmith.pipeline.trace_import import IMPORT_ORDER, OUTSIDE, load_imported_files
from trajsmith.records import (
    FaultSummary,
    JudgeSummary,
    StageSummary,
    Summary,
    Trajectory,
    UsageSummary,
    Verdict,
    count_records,
)

SPEAKERS: tuple[Role, ...] = ("writer", "user", "agent")
"""Roles whose words stand in the dataset."""
REPAIR_FILES = {"failed": FAILED, "played": TRAJECTORIES, "verified": VERDICTS}
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
        self.tools = {name: [tool.name for tool in place.spec.tools] for name, place in context.places.items()}
        self.counts = RunCounts(bool(config.play.faulty))
        self.content = ""

    def add(self, trajectory: Trajectory, verdict: Verdict) -> None:
        """Count one judged trajectory."""
        self.counts.add(trajectory, verdict)
        if verdict.accepted:
            self.content = chain_content(self.content, trajectory.id, verdict.id)

    def _count_tools(self) -> dict[str, dict[str, int]]:
        """Return the calls of each tool of each environment in accepted trajectories."""
        coverage = {name: dict.fromkeys(tools, 0) for name, tools in sorted(self.tools.items())}
        for (place, tool), calls in self.counts.used.items():
            environment, name = self.home(place, tool)
            if name in coverage.get(environment, ()):
                coverage[environment][name] += calls
        return coverage

    def summary(self, export: StageTimes | None = None, selector: DatasetSelector | None = None) -> Summary:
        """Return the counts; with an export stage only if there was an export."""
        counts, environments = self.counts, dict.fromkeys(self.tools, 0)
        imported, repaired = bool(load_imported_files(self.run)), load_repair_settings(self.run) is not None
        files = IMPORT_FILES if imported else REPAIR_FILES if repaired else FILES
        funnel = {
            name: count_records(self.run.file(file))
            for name, file in files.items()
            if file != VARIED or self.config.vary.on
        }
        funnel |= {"accepted": counts.accepted, "exported": self.exported}
        names = (*IMPORT_ORDER, "verify") if imported else REPAIR_ORDER if repaired else list_stages(self.config)
        stages = [summarize_stage(self.run, name) for name in names]
        if selector is not None and selector.active:
            stages.append(selector.stage())
        if export is not None:
            stages.append(
                StageSummary(
                    name="export",
                    read=counts.accepted,
                    written=self.exported,
                    dropped=dict(self.refused),
                    **{name: round(value or 0.0, 3) for name, value in export._asdict().items()},
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
            rejected=dict(sorted(counts.rejected.items(), key=lambda item: (-item[1], item[0]))),
            environments=dict(sorted((environments | counts.environments).items())),
            isolation=self.isolation,
            coverage=self._count_tools(),
            mean_turns=round(counts.turns / counts.accepted, 3) if counts.accepted else 0.0,
            mean_calls_per_turn=round(counts.calls / counts.turns, 3) if counts.turns else 0.0,
            usage=usage,
            usage_by_role=by_role,
            tokens_per_accepted=round(usage.tokens / counts.accepted, 1) if counts.accepted else 0.0,
            cost_per_accepted=round(usage.cost / counts.accepted, 6) if counts.accepted else 0.0,
            judge=JudgeSummary(**counts.judge),
            repairs={mistake: dict(sorted(kinds.items())) for mistake, kinds in sorted(counts.repairs.items())},
            faults={kind: FaultSummary(**numbers) for kind, numbers in sorted(counts.faults.items())},
            content=self.content,
            wall_seconds=round(sum(stage.seconds for stage in stages), 3),
        )


def describe_language(config: RunConfig) -> str:
    """Whose words a run holds: "scripted", the names of the models that speak, or both."""
    names = {config.roles.of(role).model for role in SPEAKERS}
    models = sorted({config.models[name].model for name in names if name != SCRIPTED})
    return ", ".join([SCRIPTED, *models] if SCRIPTED in names else models)
