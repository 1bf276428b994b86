"""`trajsmith env grow / taxonomy / duplicates / gaps / sources`: a collection of environments as it grows."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Column, Table

from trajsmith.cli.console import out, print_line, write_json
from trajsmith.cli.options import MOST_SEED, WHAT, DryRun, ModelConfig, Set
from trajsmith.records import InputError, ensure_writable, write_whole_file

if TYPE_CHECKING:
    from trajsmith.envgen.growth.duplicates import DuplicatePair
    from trajsmith.envgen.growth.gaps import CollectionCoverage
    from trajsmith.envgen.sources import ThemeSource
    from trajsmith.envgen.sources.read_result import SourceReadResult

SHOWN = 40

Where = Annotated[
    list[str] | None,
    typer.Argument(metavar="WHERE", help=f"A directory with environments that `env gen` made; or: {WHAT}"),
]
Library = Annotated[bool, typer.Option("--library", help="The bundled and installed environments as well.")]
Embedding = Annotated[
    str | None,
    typer.Option("--embedding", help="A sentence-transformers model, by its name or path; needs the extra `embed`."),
]
Json = Annotated[Path | None, typer.Option("--json", help="Write the whole result as JSON.")]


def register(app: typer.Typer) -> None:
    """Add the commands to `trajsmith env`."""
    for command in (grow, expand, taxonomy, duplicates, gaps, sources):
        app.command()(command)


def grow(
    directory: Annotated[Path, typer.Argument(metavar="ENV_DIR", help="Folder of an environment that models made.")],
    config: ModelConfig = None,
    target: Annotated[
        Path | None, typer.Option("--out", help="Directory of the richer environment's folder; left out, the parent's.")
    ] = None,
    name: Annotated[str | None, typer.Option("--name", help="Its name; left out, the parent's with _g2, _g3.")] = None,
    wish: Annotated[
        list[str] | None,
        typer.Option(
            "--wish", help="What there should be more of; left out, the models choose. With --rounds one for each."
        ),
    ] = None,
    rounds: Annotated[
        int, typer.Option("--rounds", min=1, max=40, help="Rounds, each on the result of the one before.")
    ] = 1,
    run: Annotated[Path | None, typer.Option("--run", help="Folder of records; left out, OUT/work/NAME.")] = None,
    overrides: Set = None,
    dry_run: DryRun = False,
) -> None:
    """Have models make a richer environment of one that models made; it passes all earlier tests and the checks.

    Exit code 1 if nothing is accepted; the parent stays as it is. A killed run goes on where it was. A round that is
    rejected, or worse than what it started from, is undone, and the next one starts there again.
    """
    from trajsmith.cli.env_grow_models import grow_by_models
    from trajsmith.pipeline.environment_generation import GrowthRequest

    out_dir = target or (directory if directory.name.strip(".") else directory.resolve()).parent
    if rounds > 1:
        from trajsmith.cli.env_grow_rounds import grow_in_rounds

        if name is not None or run is not None or dry_run:
            raise InputError("--rounds goes without --name, --run and --dry-run: rounds name their own")
        grow_in_rounds(directory, out_dir, rounds, wish or [], config, overrides or [])
        return
    if wish is not None and len(wish) > 1:
        raise InputError("several --wish go with --rounds")
    wanted = GrowthRequest(directory=directory, out=out_dir, name=name, wish=wish[0] if wish else None)
    grow_by_models(wanted, config, run, overrides or [], dry_run)


def expand(
    seeds: Annotated[
        Path | None,
        typer.Argument(metavar="SEEDS", help="Names of domains, as for `env sources`; left out, those of `env gaps`."),
    ] = None,
    count: Annotated[
        int, typer.Option("--count", min=1, max=100_000, help="Domains that are wanted, the seeds included.")
    ] = 1000,
    target: Annotated[Path, typer.Option("--out", help="File of the list (YAML).")] = Path("domains.yaml"),
    config: ModelConfig = None,
    run: Annotated[Path | None, typer.Option("--run", help="Folder of records, not the configuration's.")] = None,
    overrides: Set = None,
    batch: Annotated[int, typer.Option("--batch", min=1, max=60, help="Domains that a round asks for.")] = 20,
    share: Annotated[
        float, typer.Option("--share", min=0.001, max=1, help="Largest share of one category in --count.")
    ] = 0.08,
    alike: Annotated[
        float, typer.Option("--alike", min=0.05, max=1, help="Similarity from which two domains count as one, 0 to 1.")
    ] = 0.7,
    embedding: Embedding = None,
) -> None:
    """Have models propose further domains in rounds, for `env gen --from-domain`: none twice, each with a state.

    Exit code 1 if fewer than --count were found; those that were are in the file. A killed run goes on where it was.
    """
    from trajsmith.cli.env_expand import expand_list
    from trajsmith.envgen.synthesis.expansion import ExpansionPlan

    plan = ExpansionPlan(count=count, batch=batch, share=share, alike=alike)
    expand_list(seeds, plan, target, config, run, overrides or [], embedding)


def taxonomy(
    where: Where = None,
    library: Library = False,
    groups: Annotated[int | None, typer.Option("--groups", min=1, help="Groups of the first tier.")] = None,
    inner: Annotated[int | None, typer.Option("--inner", min=1, help="Groups of the second tier, in all.")] = None,
    sample: Annotated[
        int | None, typer.Option("--sample", help="Name so many environments, evenly over the groups.")
    ] = None,
    seed: Annotated[int, typer.Option("--seed", min=0, max=MOST_SEED, help="Seed of the sample.")] = 0,
    embedding: Embedding = None,
    json: Json = None,
) -> None:
    """Group environments by what they are about, as a tree of two tiers; or draw a stratified sample of them."""
    from trajsmith.envgen.growth.taxonomy import build_taxonomy, sample_stratified
    from trajsmith.pipeline.environment_collections import load_encoder, load_specs

    tree = build_taxonomy(load_specs(where, library)[0], load_encoder(embedding), groups, inner)
    if json is not None:
        write_json(json, tree.model_dump(mode="json"))
    for line in tree.lines() if sample is None else sample_stratified(tree, sample, seed):
        print_line(line)


def duplicates(
    where: Where = None,
    library: Library = False,
    threshold: Annotated[float, typer.Option("--threshold", help="Lowest score of a reported pair, 0 to 1.")] = 0.6,
    embedding: Embedding = None,
    json: Json = None,
) -> None:
    """Find environments that are much alike: by their tools, by the records they keep, by what they are about.

    Pairs of which one's tools are nearly all in the other are told from 0.15 below the threshold on.
    """
    from trajsmith.envgen.growth.duplicates import choose_dropped, find_duplicates
    from trajsmith.pipeline.environment_collections import load_encoder, load_specs

    specs, scores = load_specs(where, library)
    pairs = find_duplicates(specs, load_encoder(embedding), threshold, scores)
    if json is not None:
        write_json(json, [pair.model_dump(mode="json") for pair in pairs])
    gone = choose_dropped(pairs)
    out.print(f"{len(specs)} environments, {len(pairs)} pairs; {len(gone)} can go", markup=False)
    for pair in pairs[:SHOWN]:
        print_line(_pair(pair))
    if len(pairs) > SHOWN:
        out.print(f"{len(pairs) - SHOWN} pairs more; --json has all", markup=False)
    if gone:
        print_line(f"drop: {', '.join(gone)}")


def gaps(
    where: Where = None,
    library: Library = False,
    count: Annotated[int, typer.Option("--count", help="Domains to propose.")] = 10,
    candidates: Annotated[
        Path | None, typer.Option("--candidates", help="Sources to choose from, as `env sources --out` writes them.")
    ] = None,
    target: Annotated[Path | None, typer.Option("--out", help="Write the proposals as JSON Lines of sources.")] = None,
    embedding: Embedding = None,
    json: Json = None,
) -> None:
    """Say which domains, kinds of rules and relations are thin, and propose what to make next."""
    from trajsmith.envgen.growth.gaps import find_gaps
    from trajsmith.pipeline.environment_collections import load_encoder, load_specs

    proposals = _candidates(candidates) if candidates is not None else ()
    coverage_gaps = find_gaps(load_specs(where, library)[0], load_encoder(embedding), count, proposals)
    if json is not None:
        write_json(json, coverage_gaps.model_dump(mode="json"))
    _write_sources(target, coverage_gaps.proposals)
    _print_gaps(coverage_gaps)


def sources(
    from_tasks: Annotated[
        Path | None, typer.Option("--from-tasks", help="Users' requests: JSON Lines, or a JSON list.")
    ] = None,
    from_documents: Annotated[
        Path | None, typer.Option("--from-documents", help="A folder of .md, .txt, .html and .json.")
    ] = None,
    from_domains: Annotated[
        Path | None, typer.Option("--from-domains", help="Names of domains: text, YAML or JSON.")
    ] = None,
    target: Annotated[Path | None, typer.Option("--out", help="Write the sources as JSON Lines.")] = None,
) -> None:
    """Show what environments could be made from: themes of requests, documents, domains; and what is left out."""
    options = [one for one in (from_tasks, from_documents, from_domains) if one is not None]
    if len(options) != 1:
        raise InputError("give exactly one of --from-tasks, --from-documents, --from-domains")
    reading = _reading(from_tasks, from_documents, options[0])
    _write_sources(target, reading.sources)
    table = Table("source", Column("requests", justify="right"), Column("passages", justify="right"), "about")
    for one in reading.sources:
        table.add_row(one.name, str(len(one.requests) or ""), str(len(one.passages) or ""), one.summary)
    out.print(table)
    out.print(f"{reading.read} read, {len(reading.sources)} sources, {len(reading.left_out)} left out", markup=False)
    for reason, number in reading.reasons.items():
        print_line(f"left out: {number}: {reason}")


def _reading(tasks: Path | None, documents: Path | None, path: Path) -> "SourceReadResult":
    if tasks is not None:
        from trajsmith.envgen.sources.task_sets import read_task_set

        return read_task_set(path)
    if documents is not None:
        from trajsmith.envgen.sources.documents import read_documents

        return read_documents(path)
    from trajsmith.envgen.sources.domains import read_domains

    return read_domains(path)


def _candidates(path: Path) -> "list[ThemeSource]":
    from pydantic import ValidationError

    from trajsmith.envgen.sources import ThemeSource
    from trajsmith.environments.file_reading import read_json
    from trajsmith.records import format_first_error

    try:
        lines = read_json(path)
        return [ThemeSource.model_validate(line) for line in (lines if isinstance(lines, list) else [lines])]
    except ValidationError as error:
        raise InputError(
            f"{path}: no sources as `env sources --out` writes them: {format_first_error(error)}"
        ) from error


def _write_sources(path: Path | None, sources: "Sequence[ThemeSource]") -> None:
    if path is not None:
        _write(path, "".join(f"{one.model_dump_json()}\n" for one in sources))


def _write(path: Path, text: str) -> None:
    write_whole_file(ensure_writable(path, make=True), text.encode())


def _pair(pair: "DuplicatePair") -> str:
    """A pair as one line."""
    state = "-" if pair.state is None else f"{pair.state:.2f}"
    alike = ", ".join(one if one == other else f"{one} = {other}" for one, other in pair.counterparts[:3])
    parts = f"tools {pair.tools:.2f}, state {state}, text {pair.text:.2f}"
    return f"{pair.score:.2f}  keep {pair.keep}, drop {pair.drop} ({parts}): {pair.why}; alike: {alike or 'no tool'}"


def _print_gaps(coverage_gaps: "CollectionCoverage") -> None:
    for sector, (covered, total) in coverage_gaps.sectors.items():
        near = [
            f"{one.name} ({one.nearest} {one.likeness:.2f})"
            for one in coverage_gaps.domains
            if one.sector == sector and one.covered
        ]
        print_line(f"{sector}: {covered} of {total}{': ' if near else ''}{', '.join(near)}")
    for title, kinds in (("rules", coverage_gaps.rules), ("relations", coverage_gaps.relations)):
        names = ", ".join(f"{kind.name} {len(kind.environments)}" for kind in kinds)
        print_line(f"{title}, by environments that have them: {names}")
    if coverage_gaps.elsewhere:
        print_line(f"near no domain of the catalogue: {', '.join(coverage_gaps.elsewhere)}")
    for one in coverage_gaps.proposals:
        print_line(f"next: {one.name}: {one.summary}")
