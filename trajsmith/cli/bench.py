"""`trajsmith bench`: a model on a public benchmark, judged by the benchmark's own package."""

from pathlib import Path
from typing import Annotated

import typer

from trajsmith.cli.console import out, print_line, run_async
from trajsmith.records import RunError


def list_suites(wanted: bool) -> None:
    """Print the benchmarks that can be played, and those that cannot with the reason, and end the command."""
    if not wanted:
        return
    from rich.table import Column, Table

    from trajsmith.evals import SUITES, UNAVAILABLE

    table = Table("benchmark", Column("categories", overflow="fold"), box=None, pad_edge=False)
    for source in SUITES.sources():
        table.add_row(source.name, ", ".join(SUITES.get(source.name).categories))
    for name, reason in UNAVAILABLE.items():
        table.add_row(name, f"cannot be played: {reason}")
    out.print(table)
    raise typer.Exit


def bench(
    suite: Annotated[str, typer.Argument(metavar="NAME", help="Benchmark, one of --list: bfcl, tau2.")],
    model: Annotated[
        str, typer.Option("--model", help="gold, refuse or random; a model's folder; or its name at --base-url.")
    ],
    target: Annotated[Path, typer.Option("--out", help="Folder of the results; the same folder goes on.")],
    base_url: Annotated[str, typer.Option("--base-url", help="OpenAI-compatible endpoint of the model.")] = "",
    categories: Annotated[
        list[str] | None, typer.Option("--category", help="Only these; may be repeated, or separated by commas.")
    ] = None,
    limit: Annotated[int | None, typer.Option("--limit", min=1, help="Tasks of each category, at most.")] = None,
    trials: Annotated[int, typer.Option("--trials", min=1, help="Plays of each task; several give pass^k.")] = 1,
    user: Annotated[
        str, typer.Option("--user", help="Model that plays the user of conversations; our scripted user if unset.")
    ] = "",
    user_base_url: Annotated[str, typer.Option("--user-base-url", help="Endpoint of the user's model.")] = "",
    judge: Annotated[
        str, typer.Option("--judge", help="Model for the benchmark's own judge; none leaves its part out.")
    ] = "",
    judge_base_url: Annotated[str, typer.Option("--judge-base-url", help="Endpoint of the judge.")] = "",
    path: Annotated[
        Path | None, typer.Option("--path", help="Checkout of the benchmark (tau2), which no package holds.")
    ] = None,
    environment: Annotated[
        Path | None, typer.Option("--environment", help="Virtual environment that has the benchmark's package.")
    ] = None,
    trained_on: Annotated[
        list[Path] | None,
        typer.Option("--trained-on", help="Run that the model was trained on: count its rows that hold the tasks."),
    ] = None,
    concurrency: Annotated[int, typer.Option("--concurrency", min=1, help="Tasks at a time.")] = 8,
    max_tokens: Annotated[
        int | None, typer.Option("--max-tokens", min=1, help="Tokens of one message of the model; 1024 if unset.")
    ] = None,
    price: Annotated[
        tuple[float, float] | None,
        typer.Option("--price", min=0, help="Money for a million tokens that the model reads, and that it writes."),
    ] = None,
    listed: Annotated[
        bool, typer.Option("--list", is_eager=True, callback=list_suites, help="List the benchmarks, and end.")
    ] = False,
) -> None:
    """Play a public benchmark with a model; stopped, the same command goes on.

    The benchmark's package is installed into an environment of its own. For example:
    trajsmith bench bfcl --model gold --category multi_turn_base --out runs/bfcl-gold;
    trajsmith bench tau2 --path ../tau2-bench --model gold --category airline --out runs/tau2-gold
    """
    from rich.table import Table

    from trajsmith.pipeline.bench import MAX_TOKENS, BenchConfig, join_categories, run_bench
    from trajsmith.pipeline.progress import open_progress

    config = BenchConfig(
        suite=suite, model=model, base_url=base_url, categories=join_categories(categories or []), limit=limit,
        trials=trials, user=user, user_base_url=user_base_url, judge=judge, judge_base_url=judge_base_url,
        out=target, environment=environment, path=path, concurrency=concurrency,
        trained_on=tuple(trained_on or ()), max_tokens=max_tokens or MAX_TOKENS,
    )  # fmt: skip
    try:
        with open_progress() as progress:
            scores = run_async(run_bench(config, progress))
    except KeyboardInterrupt as stop:
        raise RunError("stopped; finished tasks are stored, the same command continues") from stop
    powers = [f"pass^{k}" for k in scores[0].pass_k]
    costs = ["cost"] if price else []
    table = Table(
        "category", "plays" if powers else "tasks", "passed", "pass@1", "95 %", *powers, "tokens", *costs, "errors"
    )
    for score in scores:
        errors = ", ".join(f"{name} {number}" for name, number in list(score.errors.items())[:3])
        interval = f"{100 * score.low:.1f} to {100 * score.high:.1f}"
        share, passed = f"{100 * score.pass1:.1f}", str(score.passed)
        chances = [f"{100 * score.pass_k[k]:.1f}" if k in score.pass_k else "" for k in scores[0].pass_k]
        tokens = f"{score.tokens:.0f}"
        if price:
            spent = score.tasks * (score.prompt_tokens * price[0] + score.tokens * price[1]) / 1e6
            costs = [f"{spent:.2f}"]
        table.add_row(score.category, str(score.tasks), passed, share, interval, *chances, tokens, *costs, errors)
    out.print(table)
    if trained_on:
        print_contamination(target)
    print_line(f"results: {target / 'results.json'}; what went wrong: trajsmith diagnose {target} --out DIR")


def print_contamination(target: Path) -> None:
    """Print a line for each run that the model was trained on."""
    import orjson

    from trajsmith.pipeline.bench_contamination import REPORT, RunContamination

    for row in orjson.loads((target / REPORT).read_bytes()):
        report = RunContamination.model_validate(row)
        kinds = ", ".join(f"{kind} {number}" for kind, number in report.matched.items())
        number = sum(report.matched.values())
        matches = f"{number} hold tasks of the benchmark ({kinds})" if kinds else "none holds a task"
        print_line(f"contamination: {report.run}: of {report.rows} rows {matches}; {target / REPORT}")
