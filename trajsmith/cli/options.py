"""Options that several commands share. Modules of commands import what works only inside their commands."""

from pathlib import Path
from typing import Annotated

import typer

WHAT = (
    "Name of a bundled environment (`trajsmith env list`); RUN.yaml or RUN.yaml:NAME; a Python file of any known form; "
    "an OpenAPI document; the mcp.json of a client; a directory in Agent-World's form; a checkout of EnvFactory or a "
    "metadata file of EnvScaler, with :NAME for one of its environments; hub:OWNER/NAME:ENVIRONMENT of `trajsmith env "
    "pull`; BUNDLE.ENVIRONMENT of an installed bundle."
)
"""Help of an argument that names an environment."""
MOST_SEED = 2**63 - 1
Set = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Override a setting: --set sample.count=50. May be repeated."),
]
RunPath = Annotated[Path | None, typer.Argument(metavar="RUN", help="Run directory, for example runs/quickstart.")]
RunOption = Annotated[Path | None, typer.Option("--run", help="The same as an option.")]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Show what would be done, and check that it can be done; do nothing.")
]
Sandbox = Annotated[str | None, typer.Option("--sandbox", help="Mode for foreign code: default or strict.")]
ConfigFile = Annotated[
    Path,
    typer.Argument(help="YAML file, mcp.json of a client, or name of a packaged configuration (`trajsmith configs`)."),
]
ModelConfig = Annotated[
    Path | None, typer.Option("--config", help="With models: YAML such as configs/envgen_openai.yaml.")
]
