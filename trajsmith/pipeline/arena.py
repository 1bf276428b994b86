"""`trajsmith arena`: rounds of held-out tasks, evaluation, diagnosis, targeted rows, training, and evaluation again.

Every step has a folder and ends with a record in it; a step with a record is never done again. The tasks of all rounds
are made first, so that no training row repeats a task of any evaluation. A round is judged on tasks that the diagnosis
before it never saw: weak groups are chosen for their failures, and the same tasks would show a gain by chance alone.
"""

import asyncio
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import orjson
from pydantic import ValidationError

from trajsmith.evals.diagnosis import LEAST_EPISODES, LEAST_FAILED, Diagnosis
from trajsmith.evals.plans import build_plan
from trajsmith.evals.round_comparison import WEAK, GroupChange, compare_round
from trajsmith.pipeline.arena_attribution import attribute_rounds
from trajsmith.pipeline.arena_config import SET_BY_ARENA, ArenaConfig
from trajsmith.pipeline.arena_report import ArenaReport, RoundReport, write_report
from trajsmith.pipeline.arena_trainers import TRAINERS, TrainingJob
from trajsmith.pipeline.config import RunConfig, load_config
from trajsmith.pipeline.diagnosis import diagnose_folders, load_observations, read_diagnosis, write_diagnosis
from trajsmith.pipeline.environment_generation import (
    build_wish_sources,
    fill_plan_files,
    generate,
    load_gen_config,
    store_plan,
)
from trajsmith.pipeline.environment_generation import check_ready as check_generation
from trajsmith.pipeline.evaluation import run_eval
from trajsmith.pipeline.format_export import iter_selected
from trajsmith.pipeline.progress import NullProgress, RunProgress
from trajsmith.pipeline.run_directory import RunDirectory, find_written_tasks
from trajsmith.pipeline.runner import check_ready, run_pipeline
from trajsmith.pipeline.yaml_settings import dump_settings, dump_yaml, load_settings
from trajsmith.records import (
    InputError,
    JsonObject,
    RunError,
    Task,
    derive_seed,
    format_first_error,
    read_records,
    storage_boundary,
    write_whole_file,
)
from trajsmith.records.attempt import PASSING
from trajsmith.toolgraph import SamplingPlan

CONFIG, DATA, RECORD, TASKS, RUN = "arena.yaml", "data.yaml", "step.json", "tasks.jsonl", "run"
PLAN = "plan.yaml"


def prepare_arena(config: ArenaConfig) -> RunConfig:
    """Check everything that can be checked before any work, and return the configuration of the data.

    Raises:
        InputError: A setting of the data, of the evaluation or of the trainer is wrong, or something is missing.
    """
    data = load_config(config.data, must_exist=True)
    if config.environments is not None:
        asyncio.run(check_generation(load_gen_config(config.environments)))
    if data.plan is not None or data.shard is not None:
        raise InputError(f"{config.data}: leave plan and shard out: the arena makes them")
    wrong = next((key for key in SET_BY_ARENA if key in config.evaluation), None)
    if wrong is not None:
        raise InputError(f"evaluation.{wrong}: the arena sets this itself: leave it out")
    for section, check in (
        ("evaluation", lambda: config.build_evaluation(config.model, Path(RUN), Path("out"))),
        ("trainer.settings", lambda: TRAINERS.get(config.trainer.kind).check(config.trainer.settings)),
    ):
        try:
            check()
        except ValidationError as error:
            raise InputError(f"{section}: {format_first_error(error)}") from error
    return data


def list_steps(config: ArenaConfig) -> list[str]:
    """Return the folders of all steps, in their order."""
    steps = [f"round-{number}/held-out" for number in range(config.rounds + 1)] + ["round-0/evaluation"]
    for number in range(1, config.rounds + 1):
        names = ["diagnosis", *(["environments"] if config.environments else []), "synthesis", "training"]
        names += ["control-synthesis", "control-training"] if config.control else []
        names += ["evaluation-before", "evaluation"] + (["evaluation-control"] if config.control else [])
        steps += [f"round-{number}/{name}" for name in (*names, "comparison")]
    return steps


def run_arena(config: ArenaConfig, progress: RunProgress | None = None) -> ArenaReport:
    """Do the steps that are not done yet, and write `arena.json` and `arena.html` after each round.

    Raises:
        InputError: The configuration cannot be used, or the folder holds another arena.
        RunError: An evaluation says too little, no round gained anything, or a step failed; finished steps are kept.
    """
    return Arena(config, prepare_arena(config), progress or NullProgress()).run()


class Arena:
    """The rounds of one configuration in its folder."""

    def __init__(self, config: ArenaConfig, data: RunConfig, progress: RunProgress) -> None:
        self.config, self.data, self.progress = config, data, progress
        self.trainer = TRAINERS.get(config.trainer.kind)
        self._bind_folder()

    def run(self) -> ArenaReport:
        """Do the rounds."""
        config = self.config
        for number in range(config.rounds + 1):
            self._do(f"round-{number}/held-out", self._make_tasks)
        self._evaluate("round-0/evaluation", config.model, 0)
        report = ArenaReport(name=config.name, model=config.model, rows=config.rows)
        targeted = control = config.model
        for number in range(1, config.rounds + 1):
            stopped = self._diagnose(number)
            if stopped:
                if number == 1:
                    raise RunError(f"round 1: {stopped}")
                report = report.model_copy(update={"stopped": f"round {number}: {stopped}"})
                break
            self._make_environments(number)
            before = targeted
            targeted = self._train(number, "", targeted)
            control = self._train(number, "control-", control) if config.control else control
            self._evaluate(f"round-{number}/evaluation-before", before, number)
            self._evaluate(f"round-{number}/evaluation", targeted, number)
            if config.control:
                self._evaluate(f"round-{number}/evaluation-control", control, number)
            report = report.model_copy(update={"rounds": (*report.rounds, self._compare(number, targeted))})
            report = self._attribute(self._judge(report))
            write_report(report, config.out)
            if report.stopped:
                break
        write_report(report, config.out)
        if not any(one.gained for one in report.rounds):
            raise RunError(f"{report.stopped or 'no round gained'}; look at {config.out / 'arena.html'}")
        return report

    def _bind_folder(self) -> None:
        """Note the configuration, so that all steps belong to one.

        Raises:
            InputError: The folder holds something else.
        """
        out = self.config.out
        with storage_boundary(out):
            out.mkdir(parents=True, exist_ok=True)
        texts = {CONFIG: dump_settings(self.config), DATA: dump_settings(self.data)}
        if not (out / CONFIG).is_file() and any(out.iterdir()):
            raise InputError(f"{out} is not empty and holds no arena: name another folder as out")
        for name, text in reversed(texts.items()):  # what makes the folder an arena is written last
            file = out / name
            if file.is_file() and file.read_text("utf-8") != text and (out / CONFIG).is_file():
                keys = _list_changed_keys(file.read_text("utf-8"), text)
                raise InputError(f"{out} holds an arena with other settings ({keys}): name another folder as out")
            write_whole_file(file, text.encode())

    def _do(self, name: str, work: Callable[[str, Path], JsonObject]) -> JsonObject:
        """Do a step unless its record is there, and return the record's result."""
        folder = self.config.out / name
        file = folder / RECORD
        if file.is_file():
            result: JsonObject = orjson.loads(file.read_bytes())["result"]
            return result
        start = time.monotonic()
        with storage_boundary(folder):
            folder.mkdir(parents=True, exist_ok=True)
        with self.progress.stage(name, 1, 0, 0) as bar:
            result = work(name, folder)
            record = {"step": name, "seconds": round(time.monotonic() - start, 1), "result": result}
            write_whole_file(file, orjson.dumps(record, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))
            bar.advance()
        return result

    def _make_run(self, folder: Path, changes: JsonObject) -> RunDirectory:
        """Make a run of the data's configuration with some settings changed, or go on with it."""
        path = folder / RUN
        values = {"run": str(path), "engine.copy_to": None, **changes}
        overrides = [f"{key}={orjson.dumps(value).decode()}" for key, value in values.items()]
        settings = load_config(self.config.out / DATA, overrides)
        if (path / "config.yaml").is_file():
            directory = RunDirectory.open(path)
        else:
            asyncio.run(check_ready(settings))
            directory = RunDirectory.create(path, dump_settings(settings))
        asyncio.run(run_pipeline(directory, self.progress))
        return directory

    def _make_tasks(self, name: str, folder: Path) -> JsonObject:
        """Make the held-out tasks of a round: those that a verified play has solved, in the wanted strata."""
        wanted = self.config.held_out
        changes = {
            "name": f"{self.config.name}-held-out",
            "seed": derive_seed(self.config.seed, "arena", name),
            "sample.count": wanted.count,
            "accept": wanted.model_dump(mode="json"),
            "export.formats": [],
            "export.split": {},
        }
        run = self._make_run(folder, changes)
        solved = {task.id for task, _, verdict in iter_selected(run) if verdict.accepted}
        tasks = [task for task in read_records(find_written_tasks(run), Task) if task.id in solved]
        write_whole_file(folder / TASKS, b"".join(task.to_line() for task in tasks))
        return {"tasks": len(tasks)}

    def _evaluate(self, name: str, model: str, number: int) -> JsonObject:
        held_out = self.config.out / f"round-{number}" / "held-out"

        def evaluate(_: str, folder: Path) -> JsonObject:
            config = self.config.build_evaluation(model, held_out / RUN, folder / "episodes")
            tasks = list(read_records(held_out / TASKS, Task))
            score = asyncio.run(run_eval(config, self.progress, tasks))[0]
            lost = sum(number for error, number in score.errors.items() if error.removeprefix("model_") in PASSING)
            if lost:
                raise RunError(f"{name}: the model's server failed in {lost} episodes: give the same command again")
            return {"model": model, "tasks": score.tasks, "pass1": score.pass1, "low": score.low, "high": score.high}

        return self._do(name, evaluate)

    def _diagnose(self, number: int) -> str:
        """Diagnose the evaluation before a round and plan its rows; return why that cannot be done, or ""."""
        source = self.config.out / f"round-{number - 1}" / "evaluation" / "episodes"

        def work(_: str, folder: Path) -> JsonObject:
            title = f"{self.config.name}, before round {number}"
            diagnosis = diagnose_folders(source).model_copy(update={"name": title})
            write_diagnosis(diagnosis, folder)
            avoid = [self._held_out_file(one) for one in range(self.config.rounds + 1)]
            plan = build_plan(diagnosis, avoid)
            if plan is not None:
                write_whole_file(folder / PLAN, dump_yaml(plan.model_dump(mode="json")).encode())
            return {"stopped": explain_missing_plan(diagnosis) if plan is None else ""}

        return str(self._do(f"round-{number}/diagnosis", work)["stopped"])

    def _held_out_file(self, number: int) -> Path:
        return (self.config.out / f"round-{number}" / "held-out" / TASKS).resolve()

    def _make_environments(self, number: int) -> None:
        """Have models make the environments that the plan of a round wants, if it wants some and there are models."""
        settings, plan = self.config.environments, self._read_plan(number)
        if settings is None or not plan.list_open_wishes():
            return

        def work(_: str, folder: Path) -> JsonObject:
            config = load_gen_config(settings).model_copy(update={"run": folder / RUN})
            store_plan(config, plan)
            generated = asyncio.run(generate(config, build_wish_sources(plan)))
            if generated.undecided:
                raise RunError(f"{next(iter(generated.undecided.values()))}: give the same command again")
            fill_plan_files(config.run, generated.outcomes)
            rejected = {one.source: one.reasons[0] for one in generated.outcomes if not one.accepted}
            return {"accepted": [one.name for one in generated.outcomes if one.accepted], "rejected": rejected}

        self._do(f"round-{number}/environments", work)

    def _read_plan(self, number: int) -> SamplingPlan:
        """Read the plan of a round, with the files of the environments that were made for it."""
        folder = self.config.out / f"round-{number}"
        filled = folder / "environments" / RUN / PLAN
        return load_settings(filled if filled.is_file() else folder / "diagnosis" / PLAN, SamplingPlan)

    def _train(self, number: int, arm: str, model: str) -> str:
        """Make the rows of an arm and train on them; return the model."""
        plan = self._read_plan(number)
        if arm:
            plan = SamplingPlan(name="control", targets=(), avoid=plan.avoid)

        def synthesize(name: str, folder: Path) -> JsonObject:
            changes = {
                "name": f"{self.config.name}-{arm}rows",
                "seed": derive_seed(self.config.seed, "arena", name),
                "sample.count": self.config.rows,
                "accept": {"count": self.config.rows},
                "plan": plan.model_dump(mode="json"),
                "export.formats": list(self.trainer.list_formats(self.config.trainer.settings)),
                "export.split": {},
            }
            self._make_run(folder, changes)
            return {"rows": self.config.rows}

        def train(_: str, folder: Path) -> JsonObject:
            rows = self.config.out / f"round-{number}" / f"{arm}synthesis" / RUN
            settings = self.config.trainer.settings
            return {"model": self.trainer.train(TrainingJob(model, rows, folder / "model", settings))}

        self._do(f"round-{number}/{arm}synthesis", synthesize)
        return str(self._do(f"round-{number}/{arm}training", train)["model"])

    def _compare(self, number: int, model: str) -> RoundReport:
        folder = self.config.out / f"round-{number}"

        def load(name: str) -> Path:
            return folder / name / "episodes"

        def work(_: str, __: Path) -> JsonObject:
            control = load_observations(load("evaluation-control")) if self.config.control else None
            before, after = load_observations(load("evaluation-before")), load_observations(load("evaluation"))
            plan = self._read_plan(number)
            groups = compare_round(before, after, control, plan.targets)
            return {"groups": [group.model_dump() for group in groups]}

        groups = self._do(f"round-{number}/comparison", work)["groups"]
        changes = tuple(GroupChange.model_validate(group) for group in groups)
        weak = next(group for group in changes if group.name == WEAK)
        return RoundReport(
            number=number,
            model=model,
            says=read_diagnosis(folder / "diagnosis").says,
            unserved=(*self._read_plan(number).unserved, *self._read_plan(number).list_open_wishes()),
            groups=changes,
            gained=bool(weak.tasks) and weak.gain.mean > self.config.stop.least_gain,
        )

    def _attribute(self, report: ArenaReport) -> ArenaReport:
        """Add what the rounds say of the rows, where both arms were trained."""
        if not self.config.control:
            return report
        attribution = attribute_rounds(self.config.out, [one.number for one in report.rounds])
        return report.model_copy(update={"attribution": attribution})

    def _judge(self, report: ArenaReport) -> ArenaReport:
        """Apply the stop rule after a round."""
        last, stop = report.rounds[-1], self.config.stop
        recent = report.rounds[-stop.patience :]
        if len(recent) < stop.patience or any(one.gained for one in recent):
            return report.model_copy(update={"model": last.model if last.gained else report.model})
        weak = next(group for group in last.groups if group.name == WEAK)
        stopped = (
            f"round {last.number}: the weak groups gained {100 * weak.gain.mean:.1f} points on {weak.tasks} tasks "
            f"(95 % {100 * weak.gain.low:.1f} to {100 * weak.gain.high:.1f}), not more than stop.least_gain"
        )
        return report.model_copy(update={"stopped": stopped})


def explain_missing_plan(diagnosis: Diagnosis) -> str:
    """Return why a diagnosis gives no plan, and what to do."""
    if diagnosis.episodes < LEAST_EPISODES or diagnosis.failures < LEAST_FAILED:
        return f"{diagnosis.says}: raise held_out.count in another folder"
    if not diagnosis.named:
        return f"{diagnosis.says}: nothing to make rows for; raise held_out.count in another folder"
    names = ", ".join(f"{group.dimension} {group.name}" for group in diagnosis.named[:4])
    return f"no environment can serve the plan: chains cannot be chosen by {names}; train on other data"


def _list_changed_keys(old: str, new: str) -> str:
    """Return the top keys in which two YAML texts differ."""
    import yaml

    before, after = (yaml.safe_load(text) for text in (old, new))
    return ", ".join(sorted(key for key in {*before, *after} if before.get(key) != after.get(key)))


def count_finished(out: Path, steps: Sequence[str]) -> int:
    """Count the steps whose record is there."""
    return sum((out / step / RECORD).is_file() for step in steps)
