"""`trajsmith env grow` of an environment that models made, and `trajsmith resume` of runs of env gen and env grow."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from trajsmith.cli.console import err, out, print_line, run_async
from trajsmith.cli.env_gen_models import (
    explain_resume,
    gen_by_models,
    load_run_settings,
    preview,
    require_decisions,
    show,
)
from trajsmith.envgen.synthesis.settings import GROWTH_STAGES
from trajsmith.records import InputError, RunError

if TYPE_CHECKING:
    from trajsmith.envgen.growth.model_growth import GrowthResult
    from trajsmith.envgen.growth.model_parent import ModelParent
    from trajsmith.envgen.sources import ThemeSource
    from trajsmith.pipeline.environment_generation import GenConfig, GrowthRequest, RunGenerationResult

EXAMPLE = "configs/envgen_openai.yaml"


def grow_by_models(
    wanted: "GrowthRequest", config: Path | None, run: Path | None, overrides: Sequence[str], dry_run: bool
) -> None:
    """Make a child, or go on with it.

    Raises:
        InputError: Parent or configuration cannot be used.
        RunError: The child is rejected, or a model was out; the reasons have been shown.
    """
    outcome = grow_once(wanted, config, run, overrides, dry_run)
    if outcome is not None and outcome[1] is None:
        _, _, name, folder = outcome
        raise RunError(f"{name} stays as it is; the reasons stand in {folder / 'outcomes.jsonl'}")


def grow_once(
    wanted: "GrowthRequest", config: Path | None, run: Path | None, overrides: Sequence[str], dry_run: bool = False
) -> "tuple[RunGenerationResult, GrowthResult | None, str, Path] | None":
    """Make a child and print what came of it; return the run, the child, the parent's name and the folder of records.

    Returns:
        None if nothing was to be done; None as the child if it was rejected.

    Raises:
        InputError: Parent or configuration cannot be used.
        RunError: A model was out.
    """
    from trajsmith.envgen.growth.model_growth import require_free_folder
    from trajsmith.envgen.growth.model_parent import ModelParent
    from trajsmith.envgen.synthesis.records import Theme

    parent = ModelParent(wanted.directory)
    source = _source(parent, wanted, config, run)
    folder = run or wanted.out / "work" / source.name
    if config is None and not (folder / "config.yaml").is_file():
        raise InputError(f"{parent.name} was made by models, and grows by them: give --config, such as {EXAMPLE}")
    settings = load_run_settings(config, folder, overrides, has_sources=False)
    require_free_folder(wanted.out, source.name, parent, Theme(source=source))
    _must_have_room(parent, settings)
    if dry_run:
        preview(settings, [source], GROWTH_STAGES)
        return None
    with explain_resume(folder):
        generated, grown = run_async(_grown(parent, source, settings, wanted))
    show(None, generated.outcomes, generated.funnel)
    require_decisions(generated.undecided, folder)
    if grown is not None:
        _print_growth(grown)
    return generated, grown, parent.name, folder


def resume_generation(run: Path, overrides: Sequence[str]) -> None:
    """Go on with a run that makes environments, or grows one; its directory is all that is needed.

    Raises:
        InputError: The run kept nothing yet, or a setting is wrong.
        RunError: Nothing was accepted, or a model was out; the reasons have been shown.
    """
    from trajsmith.pipeline.environment_generation import load_growth_request

    growth = load_growth_request(run)
    if growth is None:
        gen_by_models(None, None, None, None, run, overrides, dry_run=False)
    else:
        grow_by_models(growth, None, run, overrides, dry_run=False)


def _source(parent: "ModelParent", wanted: "GrowthRequest", config: Path | None, run: Path | None) -> "ThemeSource":
    """Return the source to grow from; a resumed run without a configuration uses its own."""
    from trajsmith.envgen.generate.identifiers import to_identifier

    name = wanted.name or parent.child
    if to_identifier(name, "environment") != name:
        raise InputError(f"--name {name!r}: give a name in snake case, for example {parent.child}")
    fresh = parent.source(name, wanted.wish or "")
    if config is not None or wanted.wish:
        return fresh
    from trajsmith.pipeline.environment_generation import load_run_inputs

    folder = run or wanted.out / "work" / name
    before = load_run_inputs(folder).sources if (folder / "themes.jsonl").is_file() else ()
    mine = [one for one in before if one.origin == fresh.origin and wanted.name in (None, one.name)]
    return mine[-1] if mine else fresh


def _must_have_room(parent: "ModelParent", settings: "GenConfig") -> None:
    most = settings.synthesis.most_tools
    if len(parent.plan) >= most:
        raise InputError(
            f"{parent.name} has {len(parent.plan)} tools and {most} is the most: --set synthesis.most_tools={most + 8}"
        )


async def _grown(
    parent: "ModelParent", source: "ThemeSource", settings: "GenConfig", wanted: "GrowthRequest"
) -> "tuple[RunGenerationResult, GrowthResult | None]":
    from trajsmith.envgen.growth.model_growth import build_growth_loop, place_child
    from trajsmith.envgen.growth.regression import GrowthDraftRunner
    from trajsmith.envgen.synthesis.examination import DraftRunner
    from trajsmith.pipeline.environment_generation import generate
    from trajsmith.records import StepJournal

    paths = {"directory": wanted.directory.resolve(), "out": wanted.out.resolve()}
    growth = wanted.model_copy(update={**paths, "name": source.name})
    generated = await generate(settings, [source], None, err, partial(build_growth_loop, parent), growth)
    accepted = next((one for one in generated.outcomes if one.accepted), None)
    if accepted is None:
        return generated, None
    bench = GrowthDraftRunner(DraftRunner(settings.run / "drafts", settings.synthesis, settings.sandbox), parent)
    return generated, await place_child(StepJournal(settings.run), bench, accepted, wanted.out)


def _print_growth(grown: "GrowthResult") -> None:
    before, after = grown.before, grown.after
    score = "no score" if grown.score is None else f"{grown.score:.2f}"
    out.print(
        f"{grown.name}: grown from {grown.parent}, environment checker {score}, earlier tests: {grown.earlier_tests}",
        markup=False,
    )
    out.print(
        f"tables {before.entities} -> {after.entities}, references {before.references} -> {after.references}, "
        f"tools {before.tools} -> {after.tools}, rules {before.rules} -> {after.rules}",
        markup=False,
    )
    for one in grown.added:
        print_line(f"added: {one}")
    for left in grown.refused:
        print_line(f"undone: {left.what}: {left.reason}")
    print_line(f"use it: - python: {grown.directory / (grown.name + '.py')}")
