"""Changed settings on resume: finds the stale stages and deletes their outputs."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from trajsmith.models import ROLES, SCRIPTED, Role
from trajsmith.pipeline.config import RunConfig, load_config
from trajsmith.pipeline.dataset_selection import SELECTION
from trajsmith.pipeline.repairs import REPAIR_ORDER, load_repair_settings
from trajsmith.pipeline.run_context import GRAPH
from trajsmith.pipeline.run_directory import (
    CHAINS,
    CONFIG,
    FIXED,
    GROUNDED,
    LEDGER,
    TASKS,
    TRAJECTORIES,
    VARIED,
    VERDICTS,
    RunDirectory,
)
from trajsmith.pipeline.stage_times import time_file
from trajsmith.pipeline.stages import ORDER
from trajsmith.pipeline.top_up_rounds import ROUNDS
from trajsmith.pipeline.trace_import import load_imported_files
from trajsmith.pipeline.yaml_settings import dump_settings
from trajsmith.records import InputError, JsonObject, has_records, remove_records, storage_boundary

OUTPUTS = {
    "sample": CHAINS,
    "ground": GROUNDED,
    "write": TASKS,
    "vary": VARIED,
    "play": TRAJECTORIES,
    "repair": TRAJECTORIES,
    "verify": VERDICTS,
}
FIRST: dict[str, str | None] = {
    "graph": "graph",
    "sample": "sample",
    "sources": "sample",
    "programs": "ground",
    "state_first": "ground",
    "plan": "sample",
    "ground": "ground",
    "write": "write",
    "language": "write",
    "vary": "vary",
    "play": "play",
    "verify": "verify",
    "judge": "verify",
    "duplicates": None,
    "decontaminate": None,
    "accept": None,
    "export": None,
    "engine": None,
    "shard": "sample",
    "budget": None,
}
"""Setting to the first stage that it touches, or None where no record depends on it."""
FIRST_OF_ROLE: dict[Role, str] = {
    "classify": "graph",
    "refine": "graph",
    "proposer": "ground",
    "writer": "write",
    "checker": "write",
    "user": "play",
    "agent": "play",
    "judge": "verify",
}
OF_ROLES = ("models", "roles", "prompts")
"""Settings that touch the stages of the roles which they concern."""
SPEAKING = frozenset({
    "provider", "model", "temperature", "top_p", "max_tokens", "seed", "extra_body", "wire_names", "reasoning_key",
    "tools", "api",
})  # fmt: skip
"""Settings of a model that can change what it says; address, limits and prices do not."""
STAGES = ("graph", *ORDER)


class ConfigChange(NamedTuple):
    """A change of settings and what it makes stale."""

    after: RunConfig
    stale: tuple[str, ...]
    """Stages that have made something which the change makes stale."""

    def __str__(self) -> str:
        return f"this change does these stages again: {', '.join(self.stale)}"


def plan_change(run: RunDirectory, overrides: Sequence[str]) -> ConfigChange:
    """Return the effect of `--set` on an existing run without applying it.

    Raises:
        InputError: An override is wrong, or makes it another run, or is of a stage that repairs or imports do not have.
    """
    after = load_config(run.config_path, overrides)
    stale = find_stale_stages(load_config(run.config_path), after, run.file(ROUNDS).is_file())
    if stale and stale[0] != "verify" and load_imported_files(run):
        raise InputError(f"{run.path} holds recorded dialogues: settings of {stale[0]} cannot change here")
    if stale and load_repair_settings(run) is not None:
        if stale[0] not in ("play", "verify"):
            raise InputError(
                f"{run.path} holds repairs of plays whose tasks were copied: settings of {stale[0]} cannot change here"
            )
        stale = REPAIR_ORDER
    finished = tuple(stage for stage in stale if any(has_records(run.file(name)) for name in _outputs(stage)))
    return ConfigChange(after, finished)


def apply_change(run: RunDirectory, change: ConfigChange) -> None:
    """Throw away what is stale and store the settings, in this order: killed in between, the old settings make it
    again. Answers of models and what they cost are kept."""
    with run.lock():
        delete_outputs(run, change.stale)
        run.file(SELECTION).unlink(missing_ok=True)  # it is decided anew by the next export
        run.write_text(CONFIG, dump_settings(change.after))


def find_stale_stages(before: RunConfig, after: RunConfig, rounds: bool = False) -> tuple[str, ...]:
    """Return the stages whose records the change makes stale, in pipeline order; all stages from the first one on.

    Args:
        rounds: The run has topped up: what each round draws was decided by the old settings.

    Raises:
        InputError: The change makes it another run.
    """
    touched = [stage for stage in _touched(before, after, rounds) if stage is not None]
    if not touched:
        return ()
    return STAGES[min(map(STAGES.index, touched)) :]


def _touched(before: RunConfig, after: RunConfig, rounds: bool) -> Iterator[str | None]:
    old, new = before.model_dump(mode="json"), after.model_dump(mode="json")
    for name in FIXED:
        if old[name] != new[name]:
            raise InputError(f"{name} cannot change when a run is resumed: start anew with trajsmith run ... --fresh")
    for name, value in new.items():
        if value != old[name] and name not in OF_ROLES:
            yield "sample" if name == "vary" and (rounds or after.accept) else FIRST[name]
    for role in ROLES:
        spoken = after.roles.of(role).model != SCRIPTED
        if _voice(before, role) != _voice(after, role) or (spoken and before.prompts != after.prompts):
            yield FIRST_OF_ROLE[role]


def _voice(config: RunConfig, role: Role) -> JsonObject:
    """Everything that decides what the player of a role says."""
    settings = config.roles.of(role)
    if settings.model == SCRIPTED:
        return {"model": SCRIPTED, "played_by": settings.played_by}
    model = config.models[settings.model].model_dump(mode="json", include=set(SPEAKING))
    return model | settings.model_dump(mode="json", exclude_none=True, exclude={"model"}) | {"entry": settings.model}


def delete_outputs(run: RunDirectory, stages: Sequence[str]) -> None:
    """Remove what stages made, the last one first: killed in between, the run is one that stopped earlier.

    Needs the run's lock.
    """
    for stage in reversed(stages):
        with storage_boundary(run.path):
            for name in _outputs(stage):
                remove_records(run.file(name))


def _outputs(stage: str) -> tuple[str, ...]:
    """Files of a stage, the ledger first: records without a ledger count for nothing."""
    if stage == "graph":
        return (GRAPH,)
    rounds = (ROUNDS,) if stage == "sample" else ()
    return (f"{LEDGER}/{stage}.jsonl", OUTPUTS[stage], time_file(stage), *rounds)
