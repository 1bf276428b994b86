"""`trajsmith bench`: a model on a public benchmark, judged by the benchmark's own package."""

import asyncio
from pathlib import Path
from typing import Annotated

import typer

from trajsmith.cli.console import out, print_line
from trajsmith.records import RunError


def bench(
    suite: Annotated[str, typer.Argument(metavar="NAME", help="Benchmark: bfcl.")],
    model: Annotated[
        str, typer.Option("--model", help="gold, refuse or random; a model's folder; or its name at --base-url.")
    ],
    target: Annotated[Path, typer.Option("--out", help="Folder of the results; the same folder goes on.")],
    base_url: Annotated[str, typer.Option("--base-url", help="OpenAI-compatible endpoint of the model.")] = "",
    categories: Annotated[
        list[str] | None, typer.Option("--category", help="Only these; may be repeated, or separated by commas.")
    ] = None,
    limit: Annotated[int | None, typer.Option("--limit", min=1, help="Tasks of each category, at most.")] = None,
    environment: Annotated[
        Path | None, typer.Option("--environment", help="Virtual environment that has the benchmark's package.")
    ] = None,
    concurrency: Annotated[int, typer.Option("--concurrency", min=1, help="Tasks at a time.")] = 8,
) -> None:
    """Play a public benchmark with a model; stopped, the same command goes on.

    The benchmark's package is installed into an environment of its own. For example:
    trajsmith bench bfcl --model gold --category multi_turn_base --out runs/bfcl-gold
    """
    from rich.table import Table

    from trajsmith.pipeline.bench import BenchConfig, join_categories, run_bench
    from trajsmith.pipeline.progress import open_progress

    config = BenchConfig(
        suite=suite, model=model, base_url=base_url, categories=join_categories(categories or []), limit=limit,
        out=target, environment=environment, concurrency=concurrency,
    )  # fmt: skip
    try:
        with open_progress() as progress:
            scores = asyncio.run(run_bench(config, progress))
    except KeyboardInterrupt as stop:
        raise RunError("stopped; finished tasks are stored, the same command continues") from stop
    table = Table("category", "tasks", "passed", "pass@1", "95 %", "tokens", "errors")
    for score in scores:
        errors = ", ".join(f"{name} {number}" for name, number in list(score.errors.items())[:3])
        interval = f"{100 * score.low:.1f} to {100 * score.high:.1f}"
        share, passed = f"{100 * score.pass1:.1f}", str(score.passed)
        table.add_row(score.category, str(score.tasks), passed, share, interval, f"{score.tokens:.0f}", errors)
    out.print(table)
    print_line(f"results: {target / 'results.json'}; what went wrong: trajsmith diagnose {target} --out DIR")
