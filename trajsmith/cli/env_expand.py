"""`trajsmith env expand`: a list of domains that models extend."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from trajsmith.cli.console import err, out, print_line, run_async
from trajsmith.cli.env_gen_models import explain_stop
from trajsmith.records import InputError, RunError, ensure_writable, escape_controls

if TYPE_CHECKING:
    from trajsmith.envgen.sources import ThemeSource
    from trajsmith.envgen.synthesis.expansion import ExpansionPlan

SHOWN = 12
SEED_CATEGORY = "seeds"
"""Category of seeds that name none."""


def expand_list(
    seeds: Path | None,
    plan: "ExpansionPlan",
    target: Path,
    config: Path | None,
    run: Path | None,
    overrides: Sequence[str],
    embedding: str | None,
) -> None:
    """Extend a list of domains, and print what came of it.

    Raises:
        InputError: Seeds or configuration cannot be used.
        RunError: Fewer domains than wanted were found, or a model was out.
    """
    from trajsmith.pipeline.domain_expansion import expand_domains
    from trajsmith.pipeline.environment_collections import load_encoder
    from trajsmith.pipeline.environment_generation import load_gen_config

    if config is None:
        raise InputError("models extend the list: give --config, such as configs/envgen_openai.yaml")
    settings = load_gen_config(config, overrides)
    settings = settings if run is None else settings.model_copy(update={"run": run})
    known = _read_seeds(seeds)
    if len(known) >= plan.count:
        raise InputError(f"there are {len(known)} seeds, and --count is {plan.count}: ask for more than there are")
    again = "the same trajsmith env expand"
    with explain_stop(again):
        result, usage = run_async(
            expand_domains(settings, known, plan, load_encoder(embedding), ensure_writable(target), again, _tell)
        )
    new = len(result.domains) - result.seeds
    out.print(
        f"{len(result.domains)} domains in {target}: {result.seeds} seeds, {new} new in {result.rounds} rounds",
        markup=False,
    )
    for reason, number in result.refused.items():
        print_line(f"refused: {reason}: {number}")
    most = ", ".join(f"{name} {number}" for name, number in result.categories.most_common(SHOWN))
    print_line(f"{len(result.categories)} categories: {most}")
    each = f", {usage.tokens / new:,.0f} for a new domain" if new else ""
    print_line(f"{usage.requests} requests, {usage.tokens:,} tokens{each}, cost {usage.cost:.4f}")
    if len(result.domains) < plan.count:
        raise RunError(f"{len(result.domains)} of {plan.count} domains: {result.stopped}")
    print_line(f"make them: trajsmith env gen --from-domain {target} --config {config}")


def _read_seeds(seeds: Path | None) -> "list[tuple[str, ThemeSource]]":
    from trajsmith.envgen.growth.gaps import load_catalogue
    from trajsmith.envgen.sources.domains import read_domain_categories, read_domains

    if seeds is None:
        return list(load_catalogue())
    categories = read_domain_categories(seeds)
    return [(categories.get(one.name.lower(), SEED_CATEGORY), one) for one in read_domains(seeds).sources]


def _tell(line: str) -> None:
    err.print(escape_controls(line), markup=False, highlight=False, soft_wrap=True)
