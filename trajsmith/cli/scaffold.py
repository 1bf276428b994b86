"""What a new user starts from: `trajsmith init`, `trajsmith configs` and `trajsmith --version`."""

import shutil
from pathlib import Path
from typing import Annotated

import typer

from trajsmith.cli.console import print_line
from trajsmith.cli.log_output import configure_logging
from trajsmith.records import InputError, ensure_writable

PROJECT = Path(__file__).parent / "garden"
"""The project that `trajsmith init` copies: examples/garden of the source tree."""

configs_app = typer.Typer(help="The configurations that are installed with trajsmith.", invoke_without_command=True)


def _print_version(wanted: bool) -> None:
    if wanted:
        from trajsmith import __version__

        typer.echo(f"trajsmith {__version__}")
        raise typer.Exit


def set_global_options(
    version: Annotated[
        bool, typer.Option("--version", help="Show the version and exit.", callback=_print_version, is_eager=True)
    ] = False,
    verbose: Annotated[
        int, typer.Option("--verbose", "-v", count=True, help="Log what happens on standard error; -vv logs each drop.")
    ] = 0,
) -> None:
    """Turns executable tool environments into verified multi-turn tool-use datasets."""
    configure_logging(verbose)


def init(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="Folder of the project; made if it is missing.")],
) -> None:
    """Write a small project: an environment as a Python class, its test, a configuration that runs, a README."""
    files = [file for file in sorted(PROJECT.iterdir()) if file.is_file()]
    for file in files:
        if (directory / file.name).exists():
            raise InputError(f"{directory / file.name} is there already: name another folder")
        ensure_writable(directory / file.name, make=True)
    for file in files:
        shutil.copyfile(file, directory / file.name)
        print_line(f"wrote {directory / file.name}")
    print_line(f"next: cd {directory} && trajsmith run garden.yaml")


@configs_app.callback()
def list_configs(context: typer.Context) -> None:
    """List the configurations that are installed with trajsmith; `trajsmith run NAME` runs one."""
    from trajsmith.pipeline.yaml_settings import PACKAGED_CONFIGS

    if context.invoked_subcommand:
        return
    files = sorted(PACKAGED_CONFIGS.glob("*.yaml"))
    width = max(len(file.stem) for file in files)
    for file in files:
        first = file.read_text("utf-8").partition("\n")[0]
        print_line(f"{file.stem:{width}}  {first.removeprefix('# ')}")


@configs_app.command("copy")
def copy_config(
    name: Annotated[str, typer.Argument(help="Name of a packaged configuration, such as quickstart.")],
    target: Annotated[
        Path | None, typer.Argument(metavar="DEST", help="File or existing folder; NAME.yaml in this folder if unset.")
    ] = None,
) -> None:
    """Copy a packaged configuration, and its phrasebook where it has one, to change it."""
    from trajsmith.pipeline.yaml_settings import PACKAGED_CONFIGS, find_config

    source = find_config(Path(name).name)
    if source.parent != PACKAGED_CONFIGS:
        raise InputError(f"{name} is a file: name a packaged configuration, `trajsmith configs` lists them")
    target = target or Path(source.name)
    target = target / source.name if target.is_dir() else target
    copies = {target: source}
    phrases = Path("phrases", source.name)  # configurations name it relative to themselves
    if (PACKAGED_CONFIGS / phrases).is_file():
        copies[target.parent / phrases] = PACKAGED_CONFIGS / phrases
    for copy in copies:
        if copy.exists():
            raise InputError(f"{copy} is there already: name another file")
        ensure_writable(copy, make=True)
    for copy, original in copies.items():
        shutil.copyfile(original, copy)
        print_line(f"wrote {copy}")
