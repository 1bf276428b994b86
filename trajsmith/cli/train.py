"""`trajsmith sft`, `trajsmith dpo`, `trajsmith grpo` and `trajsmith eval`."""

import os
from typing import TYPE_CHECKING, Annotated

import typer
from rich.box import SIMPLE_HEAD
from rich.table import Column, Table

from trajsmith.cli.console import out, print_line, run_async
from trajsmith.cli.options import ConfigFile, DryRun, Set
from trajsmith.records import InputError, RunError

if TYPE_CHECKING:
    from trajsmith.evals import Score
    from trajsmith.train_sft.preference import PreferencePlan
    from trajsmith.train_sft.training import TrainingPlan


Resume = Annotated[bool, typer.Option("--resume", help="Continue from the newest checkpoint.")]


def silence_others() -> None:
    """Let only the first of the processes that `torchrun` or `accelerate launch` started print its lines."""
    out.quiet = os.environ.get("RANK", "0") != "0"


def sft(config: ConfigFile, overrides: Set = None, dry_run: DryRun = False, resume: Resume = False) -> None:
    """Fine-tune a model on the rows of a run (needs the train extra)."""
    from trajsmith.pipeline.yaml_settings import load_settings
    from trajsmith.train_sft import SftConfig
    from trajsmith.train_sft.training import prepare_training, train

    silence_others()
    settings = load_settings(config, SftConfig, overrides or [])
    if dry_run:
        _, plan, _ = prepare_training(settings)
        if plan.example is not None:
            from trajsmith.pipeline.mask_preview import render_masked_row

            out.print(render_masked_row(plan.example))
        show_plan(plan)
        return
    show_plan(train(settings, resume))
    print_line(f"model: {settings.out}")


def show_plan(plan: "TrainingPlan") -> None:
    """Print the trained rows in one line, and what was refused."""
    rows = len(plan.rows)
    out.print(
        f"{rows} rows, {plan.tokens} tokens (longest row {plan.longest}), {plan.trained} of them in the loss "
        f"({100 * plan.trained / max(1, plan.tokens):.1f} %)"
    )
    if plan.masked_messages:
        out.print(f"messages masked for redundant or harmful calls: {plan.masked_messages}", markup=False)
    if plan.masked_rows:
        out.print(f"left out, since all their messages are masked: {plan.masked_rows} rows", markup=False)
    if plan.longer_rows:
        out.print(f"left out, since they are longer than max_length: {plan.longer_rows} rows", markup=False)
    if plan.empty_think_blocks:
        out.print(f"empty <think></think> in the loss: {plan.empty_think_blocks}", markup=False)
    for reason, number in plan.refused.items():
        out.print(f"refused: {reason}: {number} rows", markup=False)


def dpo(config: ConfigFile, overrides: Set = None, dry_run: DryRun = False, resume: Resume = False) -> None:
    """Train a model to prefer accepted messages over rejected ones in the same situation (needs the train extra)."""
    from trajsmith.pipeline.yaml_settings import load_settings
    from trajsmith.train_sft import DpoConfig
    from trajsmith.train_sft.preference import prepare_preference, train

    silence_others()
    settings = load_settings(config, DpoConfig, overrides or [])
    if dry_run:
        _, plan = prepare_preference(settings)
        show_pair(plan)
        show_preference_plan(plan)
        return
    show_preference_plan(train(settings, resume))
    print_line(f"model: {settings.out}")


def show_pair(plan: "PreferencePlan") -> None:
    """Print one pair: what was said before, the message that is preferred, and the one that is not."""
    from trajsmith.pipeline.mask_preview import render_compared_rows

    if plan.example is not None:
        chosen, rejected, row = plan.example
        out.print(render_compared_rows(chosen, rejected))
        out.print(f"mistake: {row.get('kind', 'not stated')}", markup=False)
        for side in ("chosen", "rejected"):
            out.print(f"{side}: {row.get('consequence', {}).get(side, 'consequence not stated')}", markup=False)


def show_preference_plan(plan: "PreferencePlan") -> None:
    """Print the pairs in one line, what they show, and what was refused."""
    out.print(
        f"{len(plan.rows)} pairs, {plan.tokens} tokens (longest side {plan.longest}), {plan.compared} of them compared "
        f"({100 * plan.compared / max(1, plan.tokens):.1f} %)"
    )
    kinds = ", ".join(f"{kind} {number}" for kind, number in plan.kinds.most_common())
    out.print(f"mistakes: {kinds}", markup=False)
    for reason, number in plan.refused.items():
        out.print(f"refused: {reason}: {number} pairs", markup=False)


def grpo(config: ConfigFile, overrides: Set = None, resume: Resume = False) -> None:
    """Train a model by playing the training tasks of a run on live environments (needs the train extra)."""
    from trajsmith.pipeline.eval_contexts import list_training_tasks, open_eval_contexts, open_simulated_users
    from trajsmith.pipeline.hub_runs import open_run
    from trajsmith.pipeline.yaml_settings import load_settings
    from trajsmith.train_grpo import GrpoConfig
    from trajsmith.train_grpo.training import check_settings, train
    from trajsmith.train_sft.training import check_resume

    silence_others()
    settings = load_settings(config, GrpoConfig, overrides or [])
    if (
        settings.pass_rates is not None
        and settings.pass_rates.solver is not None
        and str(settings.run).startswith("hub:")
    ):
        raise InputError(
            f"{settings.run}: a run of the Hub has no plays of solvers: measure the model by `trajsmith eval` on its "
            "split train, and name that folder as pass_rates.evaluation in place of pass_rates.solver"
        )
    check_settings(settings)
    check_resume(settings.out, resume)
    run = open_run(settings.run)
    tasks = list_training_tasks(run, "train", settings.limit)
    with open_simulated_users(settings) as (users, background):
        train(settings, tasks, run_async(open_eval_contexts(run)), resume, users, background)
    print_line(f"model: {settings.out}")


def evaluate(config: ConfigFile, overrides: Set = None) -> None:
    """Evaluate a model on held-out tasks; stopped, the same command goes on."""
    from trajsmith.pipeline.evaluation import RESULTS, EvalConfig, run_eval
    from trajsmith.pipeline.progress import open_progress
    from trajsmith.pipeline.yaml_settings import load_settings

    settings = load_settings(config, EvalConfig, overrides or [])
    try:
        with open_progress() as progress:
            scores = run_async(run_eval(settings, progress))
    except KeyboardInterrupt as stop:
        raise RunError("stopped; finished episodes are stored, the same command continues") from stop
    show_scores(scores)
    print_line(f"results: {settings.out / RESULTS}")


def show_scores(scores: "list[Score]") -> None:
    """One row per group, which fits into 80 columns; below, what went wrong and the chance that k episodes all pass."""
    group = Column("tasks of", overflow="fold")
    others = ("tasks", "pass@1", "95 %", "checks", "turns", "calls", "tokens")
    table = Table(group, *others, box=SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    for score in scores:
        table.add_row(
            score.group,
            str(score.tasks),
            f"{100 * score.pass1:.1f}",
            f"{100 * score.low:.1f}-{100 * score.high:.1f}",
            f"{100 * score.checks:.1f}",
            f"{score.turns:.1f}",
            f"{score.calls:.1f}",
            f"{score.tokens:.0f}",
        )
    out.print(table)
    for score in scores:
        by_k = [f"pass^{k} {100 * chance:.1f}" for k, chance in score.pass_k.items() if k > 1]
        errors = [f"{name} {number}" for name, number in score.errors.items()]
        if by_k or errors:
            print_line(f"{score.group}: {', '.join([*by_k, *errors])}")
