"""Top-up rounds of a run with a target number of rows: each draws more chains for the missing strata.

What a round does is decided by the verdicts of the rounds before it and kept in the run directory before it starts, so
that a run that was stopped goes on with the same.
"""

from math import ceil
from typing import TYPE_CHECKING

from pydantic import TypeAdapter

from trajsmith.pipeline.config import RunConfig
from trajsmith.pipeline.engine import summarize_stage
from trajsmith.pipeline.run_directory import LEDGER, TASKS, RunDirectory
from trajsmith.records import FrozenModel, RunError, StageSummary, count_records

if TYPE_CHECKING:
    from trajsmith.pipeline.dataset_selection import DatasetSelector

ROUNDS = f"{LEDGER}/rounds.json"
SURPLUS = 1.3
"""More chains than the yield so far asks for: a round too many costs more than a few rows too many."""
LEAST_YIELD = 0.02


class TopUpRound(FrozenModel):
    """Inputs of one round."""

    chains: int
    environments: tuple[str, ...] = ()
    """Empty for all."""
    rates: dict[str, float] = {}
    """Variant rates."""
    tasks: int = 0
    """Written tasks before this round."""


_LIST = TypeAdapter(tuple[TopUpRound, ...])


def build_first_round(config: RunConfig) -> TopUpRound:
    return TopUpRound(chains=config.sample.count, rates=config.vary.rates)


def load_rounds(run: RunDirectory, config: RunConfig) -> tuple[TopUpRound, ...]:
    """The rounds that a run has begun; the first one if it has not."""
    if not run.file(ROUNDS).is_file():
        return (build_first_round(config),)
    return _LIST.validate_python(run.read_json(ROUNDS))


def save_rounds(run: RunDirectory, rounds: tuple[TopUpRound, ...]) -> None:
    run.write_json(ROUNDS, _LIST.dump_python(rounds, mode="json"))


def next_round(
    run: RunDirectory, config: RunConfig, rounds: tuple[TopUpRound, ...], selector: "DatasetSelector"
) -> TopUpRound:
    """A round for what is missing.

    Raises:
        RunError: The budget is spent; the text names what starves and where most was lost.
    """
    if config.accept is None or selector.quotas is None:
        raise ValueError("nothing is asked for")
    missing, spent = selector.quotas.missing(), sum(each.chains for each in rounds)
    if "difficulty" in missing:
        raise RunError(
            f"accept: {'; '.join(_list_short(missing)[:4])}. Difficulty is measured by playing, so that no "
            f"round can add to it: ask for fewer with trajsmith resume {run.path} --set accept.count=..., or play more"
        )
    most = config.accept.budget.chains or 20 * config.accept.count
    if spent >= most or len(rounds) >= config.accept.budget.rounds:
        raise RunError(_explain_shortfall(run, selector, missing, spent, len(rounds)))
    yields = {
        label: max(_count_rows(selector, name, label) / spent, LEAST_YIELD)
        for name in missing
        for label in missing[name]
    }
    wanted = max(number / yields[label] for labels in missing.values() for label, number in labels.items())
    chains = min(max(8, ceil(SURPLUS * wanted)), 4 * max(config.sample.count, 8), most - spent)
    variants = set(missing.get("variant", ())) - {"base"}
    rates = {name: 1.0 if name in variants else rate for name, rate in config.vary.rates.items() if rate}
    return TopUpRound(
        chains=chains,
        environments=_environments(selector, missing),
        rates=rates,
        tasks=count_records(run.file(TASKS)),
    )


def _environments(selector: "DatasetSelector", missing: dict[str, dict[str, int]]) -> tuple[str, ...]:
    """Those that are missing, and those that gave what is missing; all where nothing is known."""
    groups = missing.get("taxonomy", ())
    names = {*missing.get("environment", ()), *(name for name, group in selector.groups.items() if group in groups)}
    for name in missing.get("variant", ()):
        if not selector.places[name]:
            return ()
        names |= selector.places[name]
    return () if missing.get("turns") and not names else tuple(sorted(names))


def _count_rows(selector: "DatasetSelector", name: str, label: str) -> int:
    """Rows of a stratum so far."""
    if selector.quotas is None or name == "all":
        return selector.offered
    place = list(selector.quotas.wanted).index(name)
    return sum(number for cell, number in selector.quotas.available.items() if cell[place] == label)


def _list_short(missing: dict[str, dict[str, int]]) -> list[str]:
    """List the strata that lack rows, as text."""
    return [
        f"{name} {label}: {number} short"
        for name, labels in missing.items()
        if name != "all" or len(missing) == 1
        for label, number in labels.items()
    ]


def _explain_shortfall(
    run: RunDirectory, selector: "DatasetSelector", missing: dict[str, dict[str, int]], spent: int, rounds: int
) -> str:
    """Return a message with the missing strata and the main reasons for lost records."""
    short = _list_short(missing)
    names = {label for labels in missing.values() for label in labels}
    stages: list[StageSummary] = [summarize_stage(run, name) for name in ("ground", "write", "vary")]
    lost = [(number, f"{stage.name}: {reason}") for stage in stages for reason, number in stage.dropped.items()]
    lost += [(number, f"not chosen: {reason}") for reason, number in selector.reasons.items()]
    own = [each for each in lost if any(f" {name}:" in each[1] for name in names)]
    why = (
        ", ".join(f"{reason} {number}" for number, reason in sorted(own or lost, reverse=True)[:3])
        or "too few were drawn"
    )
    return (
        f"accept: {'; '.join(short[:4])} after {rounds} rounds and {spent} chains; mostly lost to {why}. "
        "Ask for fewer, raise accept.budget with `trajsmith resume RUN --set`, or raise the rate of what starves"
    )
