"""Options of the commands that make or grow environments with models."""

from pathlib import Path
from typing import Annotated

import typer

Config = Annotated[Path | None, typer.Option("--config", help="With models: YAML such as configs/envgen_openai.yaml.")]
Set = Annotated[
    list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Change a setting of the configuration.")
]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="With models: show stages, roles and estimated tokens; ask nothing.")
]
