"""`trajsmith env push`, `pull`, `bundle` and `export`: environments of the Hub, packages, and other forms."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from trajsmith.cli.console import err, print_line
from trajsmith.records import InputError, RunError

if TYPE_CHECKING:
    from trajsmith.export.environment_publication import RecordedEnvironment

Source = Annotated[
    Path,
    typer.Argument(metavar="FOLDER", help="An environment, a catalogue (env gen --count), or a run of env gen."),
]
Repo = Annotated[str, typer.Argument(metavar="REPO", help="Repository as owner/name, or spaces/owner/name.")]
Licence = Annotated[
    str,
    typer.Option("--licence", help="Licence as the Hub names it; that of the sources if they have one, else `other`."),
]
SHOWN = 5
FILES_PER_COMMIT = 200
"""Files of environments are small, and the Hub limits commits by the hour."""


def push(
    source: Source,
    repo: Repo,
    public: Annotated[bool, typer.Option("--public", help="Make a new repository public; it is private else.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be pushed; ask the Hub nothing.")] = False,
    licence: Licence = "",
    sign: Annotated[
        Path | None, typer.Option("--sign", metavar="KEY", help="Sign the manifest with a private Ed25519 key (PEM).")
    ] = None,
) -> None:
    """Publish accepted environments on the Hub, with card, scores, licences, hashes and recorded calls.

    Interrupted, the same command goes on with what is missing. The token is HF_TOKEN's.
    """
    from huggingface_hub import HfApi

    from trajsmith.environments import parse_hub_reference
    from trajsmith.export import write_manifest
    from trajsmith.export.environment_publication import PUBLICATION, write_publication
    from trajsmith.export.hub import execute_push, plan_push
    from trajsmith.records import HUB

    target = parse_hub_reference(repo)
    if target.revision or target.environment:
        raise InputError(
            f"{repo}: a push goes to the main branch of a repository: write owner/name or spaces/owner/name"
        )
    recorded = _record(source)
    folder = source / PUBLICATION
    index = write_publication(
        recorded,
        folder,
        target.repo.rpartition("/")[2],
        licence,
        f"python: {HUB}{target.address}",
        target.kind == "space",
    )
    print_line(f"manifest of {write_manifest(folder, target.repo, sign)} files{', signed' if sign else ''}")
    unknown = sum(not one.licence for one in index.environments)
    if unknown:
        print_line(
            f"note: of {unknown} of {len(index.environments)} environments the licence of the source is not known"
        )
    api = None if dry_run else HfApi()
    plan = plan_push(folder, target.repo, api, target.kind)
    for name in plan.upload[:SHOWN]:
        print_line(f"upload {name} ({(folder / name).stat().st_size:,} bytes)")
    if len(plan.upload) > SHOWN:
        print_line(f"upload {len(plan.upload) - SHOWN} more files")
    for name in plan.delete:
        print_line(f"delete {name}")
    kind, files = (
        f"{'public' if public else 'private'} {plan.kind} {target.repo}",
        f"{len(plan.upload)} files to upload",
    )
    summary = f"{kind}: {len(index.environments)} environments"
    if api is None:
        print_line(f"dry run: {summary}, at most {files} ({plan.size:,} bytes); no request was made to the Hub")
        return
    counts = f"{files} ({plan.size:,} bytes), {len(plan.same)} there already"
    print_line(f"{summary}, {counts}: {execute_push(plan, api, not public, per_commit=FILES_PER_COMMIT)}")
    print_line(f"use it: trajsmith env pull {target.address}; then - python: {HUB}{target.address}")


def pull(
    repo: Annotated[
        str, typer.Argument(metavar="REPO", help="Repository as owner/name, spaces/owner/name or owner/name@REVISION.")
    ],
    name: Annotated[
        list[str] | None, typer.Option("--name", help="One environment of it; may be given more than once.")
    ] = None,
    key: Annotated[
        Path | None, typer.Option("--key", metavar="PUBLIC", help="Public Ed25519 key (PEM) that must have signed it.")
    ] = None,
) -> None:
    """Get environments from the Hub, and make their recorded calls again in the sandbox.

    A configuration names what behaves as recorded: `- python: hub:owner/name`, or hub:owner/name:ENVIRONMENT for one.
    Exit code 1 if an environment does not.
    """
    from trajsmith.environments import parse_hub_reference
    from trajsmith.pipeline.hub_environments import pull_environments
    from trajsmith.records import HUB

    reference = parse_hub_reference(repo)
    names = [*(name or ()), *([reference.environment] if reference.environment else ())]
    result = pull_environments(reference, names, key, print_line)
    if result.signed_by:
        print_line(f"signed by {result.signed_by} for {reference.repo}")
    calls = sum(one.calls for one in result.same)
    print_line(
        f"{len(result.same)} environments of commit {result.commit[:12]}, {calls} recorded calls; in {result.folder}"
    )
    for environment, differences in result.different.items():
        for line in differences:
            print_line(f"{environment}: {line}")
    if result.different:
        raise RunError(
            f"{len(result.different)} of {len(result.same) + len(result.different)} environments do not behave as "
            "recorded, and cannot be used"
        )
    print_line(f"use it: - python: {HUB}{reference.address}")


def bundle(
    source: Source,
    out: Annotated[Path, typer.Option("--out", help="Folder of the package's source.")],
    name: Annotated[str, typer.Option("--name", help="Name of the package, for example my-environments.")],
    version: Annotated[str, typer.Option("--version", help="Version of the package.")] = "0.1.0",
    licence: Licence = "",
) -> None:
    """Write a package of accepted environments that pip installs: `- library: my_environments.NAME` in a configuration.

    Their code runs in the sandbox, as that of any file.
    """
    from trajsmith.export.environment_publication import write_bundle

    index = write_bundle(_record(source), out, name, version, licence)
    module = name.replace("-", "_")
    print_line(f"{len(index.environments)} environments in {out}: pip install {out}, then - library: {module}.*")


def export(
    source: Source,
    out: Annotated[Path, typer.Option("--out", help="Folder of the exported files.")],
    form: Annotated[str, typer.Option("--form", help="Form of the export: awm, FastAPI over SQLite.")] = "awm",
) -> None:
    """Write accepted environments in another form, and make their recorded calls on both.

    Exit code 1 if one behaves otherwise in the other form; it is left out.
    """
    from trajsmith.export.awm_form import FILES, export_awm

    if form != "awm":
        raise InputError(f"--form {form[:60]!a}: there is awm")
    recorded = _record(source)
    left_out = export_awm(recorded, out, print_line)
    print_line(f"{len(recorded) - len(left_out)} environments in {out}; entries for a configuration: {out / FILES[3]}")
    for name, reasons in left_out.items():
        print_line(f"left out: {name}: {reasons[0]}")
    if left_out:
        raise RunError(f"{len(left_out)} of {len(recorded)} environments are left out")


def _record(source: Path) -> "list[RecordedEnvironment]":
    from trajsmith.export.environment_publication import find_environment_folders, record_environments

    return record_environments(
        find_environment_folders(source), lambda line: err.print(line, markup=False, highlight=False, soft_wrap=True)
    )
