"""`trajsmith env grow` of an environment that models made: what is shown before, meanwhile and after."""

import asyncio
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from rich.console import Console

from envgen.synthesis.settings import GROWTH
from trajectory import InputError, RunError
from trajsmith.cli_gen_models import must_be_decided, preview, resumable, settings_of, show
from trajsmith.cli_growth import tell_grown

if TYPE_CHECKING:
    from envgen.growth.growing import Grown
    from envgen.growth.model_parent import ModelParent
    from envgen.sources import Source
    from trajsmith.generating import GenConfig, Generated


EXAMPLE = "configs/envgen_openai.yaml"


class Growing(NamedTuple):
    """What is to grow, as the command line says it."""

    directory: Path
    out: Path
    name: str | None
    wish: str | None


def grow_by_models(
    wanted: Growing, config: Path | None, run: Path | None, overrides: Sequence[str], dry_run: bool
) -> None:
    """Make a child, or go on with it.

    Raises:
        InputError: Parent or configuration cannot be used.
        RunError: The child is rejected, or a model was out; the reasons have been shown.
    """
    from envgen.growth.by_models import must_be_free
    from envgen.growth.model_parent import ModelParent
    from envgen.synthesis.records import Theme

    parent = ModelParent(wanted.directory)
    source = _source(parent, wanted, config, run)
    folder = run or wanted.out / "work" / source.name
    if config is None and not (folder / "config.yaml").is_file():
        raise InputError(f"{parent.name} was made by models, and grows by them: give --config, such as {EXAMPLE}")
    settings = settings_of(config, folder, overrides, given=False)
    must_be_free(wanted.out, source.name, parent, Theme(source=source))
    _must_have_room(parent, settings)
    if dry_run:
        preview(settings, [source], GROWTH)
        return
    again = f"trajsmith env grow {wanted.directory} --out {wanted.out} --run {folder}"
    with resumable(folder, again):
        made, grown = asyncio.run(_grown(parent, source, settings, wanted.out))
    show(None, made.outcomes, made.funnel)
    must_be_decided(made.undecided, again)
    if grown is None:
        raise RunError(f"{parent.name} stays as it is; the reasons stand in {folder / 'outcomes.jsonl'}")
    tell_grown(grown)


def _source(parent: "ModelParent", wanted: Growing, config: Path | None, run: Path | None) -> "Source":
    """What is asked for; of a run that goes on without a configuration, what it was started with."""
    from envgen.generate.spelling import identifier

    name = wanted.name or parent.child
    if identifier(name, "environment") != name:
        raise InputError(f"--name {name!r}: give a name in snake case, for example {parent.child}")
    fresh = parent.source(name, wanted.wish or "")
    if config is not None or wanted.wish:
        return fresh
    from trajsmith.generating import known

    folder = run or wanted.out / "work" / name
    before = known(folder).sources if (folder / "themes.jsonl").is_file() else ()
    mine = [one for one in before if one.origin == fresh.origin and wanted.name in (None, one.name)]
    return mine[-1] if mine else fresh


def _must_have_room(parent: "ModelParent", settings: "GenConfig") -> None:
    most = settings.synthesis.most_tools
    if len(parent.plan) >= most:
        raise InputError(
            f"{parent.name} has {len(parent.plan)} tools and {most} is the most: --set synthesis.most_tools={most + 8}"
        )


async def _grown(
    parent: "ModelParent", source: "Source", settings: "GenConfig", out: Path
) -> "tuple[Generated, Grown | None]":
    from envgen.growth.by_models import growth_loop, settle
    from envgen.growth.keeping import GrowthBench
    from envgen.synthesis.examining import Bench
    from envgen.synthesis.store import Store
    from trajsmith.generating import generate

    made = await generate(settings, [source], None, Console(stderr=True), partial(growth_loop, parent))
    accepted = next((one for one in made.outcomes if one.accepted), None)
    if accepted is None:
        return made, None
    bench = GrowthBench(Bench(settings.run / "drafts", settings.synthesis, settings.sandbox), parent)
    return made, await settle(Store(settings.run), bench, accepted, out)
