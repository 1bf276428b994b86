"""Options that several commands share. Modules of commands import what works only inside their commands."""

from pathlib import Path
from typing import Annotated

import typer

WHAT = (
    "Name of a bundled environment (`trajsmith env list`); RUN.yaml or RUN.yaml:NAME; a Python file of any known form; "
    "an OpenAPI document; a directory in Agent-World's form; a checkout of EnvFactory or a metadata file of EnvScaler, "
    "with :NAME for one of its environments."
)
"""Help of an argument that names an environment."""
Config = Annotated[Path | None, typer.Option("--config", help="With models: YAML such as configs/envgen_openai.yaml.")]
Set = Annotated[
    list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Change a setting of the configuration.")
]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="With models: show stages, roles and estimated tokens; ask nothing.")
]
