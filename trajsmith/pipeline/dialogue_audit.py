"""`trajsmith audit`: faults of language and variety of the dialogues of a run, counted from its records."""

from collections import Counter
from dataclasses import dataclass, field

from trajsmith.environments.composite import CompositeLookup, compose_phrasebook, compose_spec
from trajsmith.phrasing import DialogueVariety, Phrasebook, ScenarioBook, Wording, use_language
from trajsmith.pipeline.config import load_config
from trajsmith.pipeline.dataset_selection import load_unselected
from trajsmith.pipeline.progress import RunProgress
from trajsmith.pipeline.record_joins import join_verdicts
from trajsmith.pipeline.run_directory import VERDICTS, RunDirectory
from trajsmith.pipeline.stored_specs import load_stored_specs
from trajsmith.records import EnvironmentSpec, InputError, JsonObject, count_records, has_records, read_stored
from trajsmith.verify.dialogue_audit import FAULT_KINDS, AuditContext, DialogueFault, find_dialogue_faults

EXAMPLES = 5


@dataclass
class AuditReport:
    """Counts of one audit."""

    rows: int = 0
    faults: Counter[str] = field(default_factory=lambda: Counter(dict.fromkeys(FAULT_KINDS, 0)))
    faulty_rows: Counter[str] = field(default_factory=Counter)
    """Kind to the number of dialogues with at least one such fault."""
    examples: dict[str, list[tuple[str, DialogueFault, str]]] = field(default_factory=dict)
    """Kind to (trajectory id, fault, text of the message)."""
    variety: DialogueVariety = field(default_factory=DialogueVariety)

    def add_dialogue(self, context: AuditContext) -> None:
        """Find and count the faults of one dialogue."""
        trajectory, faults = context.trajectory, find_dialogue_faults(context)
        self.rows += 1
        self.faults.update(fault.kind for fault in faults)
        self.faulty_rows.update({fault.kind for fault in faults})
        for fault in faults:
            shown = self.examples.setdefault(fault.kind, [])
            if len(shown) < EXAMPLES:
                shown.append((trajectory.id, fault, trajectory.messages[fault.message].content))

    def as_json(self) -> JsonObject:
        """Return the counts, examples and figures for a file."""
        return {
            "rows": self.rows,
            "faults": {kind: {"faults": self.faults[kind], "rows": self.faulty_rows[kind]} for kind in self.faults},
            "examples": {
                kind: [
                    {"trajectory_id": name, "message": fault.message, "detail": fault.detail, "text": text}
                    for name, fault, text in shown
                ]
                for kind, shown in sorted(self.examples.items())
            },
            "variety": {
                f"{name}.{speaker}": {key: round(value, 4) for key, value in figures.items()}
                for name, speakers in self.variety.measure().items()
                for speaker, figures in speakers.items()
            },
            "skeletons": {
                speaker: [list(pair) for pair in pairs] for speaker, pairs in self.variety.list_skeletons().items()
            },
        }


def audit_dialogues(run: RunDirectory, everything: bool, progress: RunProgress) -> AuditReport:
    """Audit the dialogues that are in the dataset of a run.

    Args:
        run: The run.
        everything: Audit the rejected ones, too.
        progress: Where progress is shown.

    Raises:
        InputError: The run has no dialogues to audit.
    """
    if not has_records(run.file(VERDICTS)):
        raise InputError(f"{run.path}: no dialogue is verified yet: trajsmith resume {run.path}")
    unselected = {} if everything else load_unselected(run)
    environments = _load_environments(run)
    wordings: dict[str, Wording] = {}
    states: dict[str, JsonObject | None] = {}
    report = AuditReport()
    language = load_config(run.config_path).language
    with (
        use_language(language),
        progress.stage("audit dialogues", count_records(run.file(VERDICTS)), 0, 0) as bar,
    ):
        for task, trajectory, verdict in join_verdicts(run):
            wanted = everything or (verdict.accepted and trajectory.id not in unselected)
            if wanted:
                name = trajectory.environment
                spec, book = environments[name]
                wording = wordings.get(name) or wordings.setdefault(name, _load_wording(run, spec, book))
                state = states.get(task.initial_state) or states.setdefault(
                    task.initial_state, _load_state(run, task.initial_state)
                )
                report.add_dialogue(AuditContext(task, trajectory, spec, wording, state))
                report.variety.add(trajectory)
            bar.advance(dropped=not wanted)
    if not report.rows:
        raise InputError(f"{run.path}: no dialogue was accepted; --all audits the rejected ones, too")
    return report


def _load_environments(run: RunDirectory) -> CompositeLookup[tuple[EnvironmentSpec, Phrasebook]]:
    """Spec and words of each environment of the run; those of chains across environments are composed on demand."""
    stored = {
        name: (spec, read_stored(path, Phrasebook) if path.is_file() else Phrasebook())
        for name, spec in load_stored_specs(run).items()
        for path in [run.file(f"environments/{name}.phrases.json")]
    }
    return CompositeLookup(stored, lambda parts: (compose_spec([spec for spec, _ in parts]), compose_phrasebook(parts)))


def _load_wording(run: RunDirectory, spec: EnvironmentSpec, book: Phrasebook) -> Wording:
    stories = run.file(f"environments/{spec.name}.scenarios.json")
    return Wording(book, spec.tools, read_stored(stories, ScenarioBook) if stories.is_file() else None)


def _load_state(run: RunDirectory, name: str) -> JsonObject | None:
    """Return an initial state; None for a run that was made without it."""
    return run.get_state(name) if run.file(f"states/{name}.json").is_file() else None
