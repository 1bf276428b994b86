"""Expansion of a list of domains with models: configuration, models, run directory."""

from collections.abc import Callable, Sequence
from pathlib import Path

from trajsmith.envgen.sources import ThemeSource
from trajsmith.envgen.synthesis.expansion import DomainExpander, Encoder, ExpansionPlan, ExpansionResult
from trajsmith.envgen.synthesis.funnel import UsageByStage, count_usage
from trajsmith.envgen.synthesis.prompt_specs import SOURCE_SPECS, SPECS
from trajsmith.envgen.synthesis.prompted_generation import PromptedGenerator
from trajsmith.models.registry import USAGE, ModelRegistry
from trajsmith.pipeline.environment_generation import (
    GenConfig,
    build_role_settings,
    check_ready,
    open_run,
    open_stage_models,
)
from trajsmith.pipeline.yaml_settings import dump_yaml
from trajsmith.records import RunError, StepJournal, write_whole_file

SUMMARY = "expansion.json"


async def expand_domains(
    config: GenConfig,
    seeds: Sequence[tuple[str, ThemeSource]],
    plan: ExpansionPlan,
    encode: Encoder,
    out: Path,
    command: str,
    tell: Callable[[str], None],
) -> tuple[ExpansionResult, UsageByStage]:
    """Expand a list of domains and write it; the same call goes on where a killed one was.

    Args:
        seeds: Category and domain.
        encode: Meaning of texts as vectors.
        out: File of the list, as `env gen --from-domain` takes it.
        command: Goes on after a stop, for errors.
        tell: Called with a line for each round.

    Raises:
        InputError: A setting, a key or an address is wrong, or the run directory is something else.
        RunError: A model is out or the budget is spent; finished rounds stay.
    """
    prompts = await check_ready(config.model_copy(update={"search": None}))
    run = open_run(config)
    with run.lock():
        roles = build_role_settings(config.roles)
        registry = ModelRegistry(config.models, roles, config.budget, run.path, command)
        try:
            generator = PromptedGenerator(open_stage_models(registry), prompts, SPECS | SOURCE_SPECS)
            expander = DomainExpander(generator, StepJournal(run.path), encode, plan, config.makers(prompts))
            result = await expander.expand(seeds, tell)
        finally:
            await registry.close()
        usage = count_usage(run.file(USAGE), ("expand", "screen"))
        run.write_json(SUMMARY, result.model_dump(mode="json", exclude={"domains"}) | usage.model_dump(mode="json"))
    if len(result.domains) <= result.seeds and plan.count > result.seeds:
        raise RunError(f"no new domain: {result.stopped}")
    write_whole_file(out, dump_yaml({"domains": [one.model_dump() for one in result.domains]}).encode())
    return result, usage
