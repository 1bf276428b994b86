"""`trajsmith env grow` of an environment that models made: what is shown before, meanwhile and after."""

import asyncio
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from trajsmith.cli.console import err
from trajsmith.cli.env_gen_models import explain_resume, load_run_settings, preview, require_decisions, show
from trajsmith.cli.env_growth import print_growth
from trajsmith.envgen.synthesis.settings import GROWTH_STAGES
from trajsmith.records import InputError, RunError

if TYPE_CHECKING:
    from trajsmith.envgen.growth.blueprint_growth import GrowthResult
    from trajsmith.envgen.growth.model_parent import ModelParent
    from trajsmith.envgen.sources import ThemeSource
    from trajsmith.pipeline.environment_generation import GenConfig, RunGenerationResult


EXAMPLE = "configs/envgen_openai.yaml"


class GrowthRequest(NamedTuple):
    """Request to grow an environment, as given on the command line."""

    directory: Path
    out: Path
    name: str | None
    wish: str | None


def grow_by_models(
    wanted: GrowthRequest, config: Path | None, run: Path | None, overrides: Sequence[str], dry_run: bool
) -> None:
    """Make a child, or go on with it.

    Raises:
        InputError: Parent or configuration cannot be used.
        RunError: The child is rejected, or a model was out; the reasons have been shown.
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
        return
    again = f"trajsmith env grow {wanted.directory} --out {wanted.out} --run {folder}"
    with explain_resume(folder, again):
        generated, grown = asyncio.run(_grown(parent, source, settings, wanted.out))
    show(None, generated.outcomes, generated.funnel)
    require_decisions(generated.undecided, again)
    if grown is None:
        raise RunError(f"{parent.name} stays as it is; the reasons stand in {folder / 'outcomes.jsonl'}")
    print_growth(grown)


def _source(parent: "ModelParent", wanted: GrowthRequest, config: Path | None, run: Path | None) -> "ThemeSource":
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
    parent: "ModelParent", source: "ThemeSource", settings: "GenConfig", out: Path
) -> "tuple[RunGenerationResult, GrowthResult | None]":
    from trajsmith.envgen.growth.model_growth import build_growth_loop, place_child
    from trajsmith.envgen.growth.regression import GrowthDraftRunner
    from trajsmith.envgen.synthesis.examination import DraftRunner
    from trajsmith.envgen.synthesis.store import RecordStore
    from trajsmith.pipeline.environment_generation import generate

    generated = await generate(settings, [source], None, err, partial(build_growth_loop, parent))
    accepted = next((one for one in generated.outcomes if one.accepted), None)
    if accepted is None:
        return generated, None
    bench = GrowthDraftRunner(DraftRunner(settings.run / "drafts", settings.synthesis, settings.sandbox), parent)
    return generated, await place_child(RecordStore(settings.run), bench, accepted, out)
