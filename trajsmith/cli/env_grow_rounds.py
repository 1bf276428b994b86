"""`trajsmith env grow --rounds`: growth upon growth; a round that fails is undone."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import orjson

from trajsmith.cli.console import print_line
from trajsmith.cli.env_grow_models import EXAMPLE, grow_once
from trajsmith.envgen.growth.rounds import (
    MOST_TOOLS,
    GrowthRound,
    describe_attempt,
    find_worse,
    name_child,
    undo_round,
)
from trajsmith.records import InputError, RunError, write_whole_file

if TYPE_CHECKING:
    from trajsmith.envgen.growth.model_parent import ModelParent

ROUNDS_FILE = "rounds.json"


def grow_in_rounds(
    directory: Path, out_dir: Path, rounds: int, wishes: Sequence[str], config: Path | None, overrides: Sequence[str]
) -> None:
    """Grow an environment in rounds, each on the best so far; the same call after a stop goes on.

    Args:
        directory: Folder of the environment that the first round starts from.
        out_dir: Children get their folders in it.
        wishes: Of the first rounds, one each; the models choose in the others.

    Raises:
        InputError: Parent or configuration cannot be used.
        RunError: No round was accepted, or a model was out.
    """
    from trajsmith.envgen.growth.model_parent import ModelParent
    from trajsmith.pipeline.environment_generation import GrowthRequest, load_gen_config

    if config is None:
        raise InputError(f"rounds of growth need models: give --config, such as {EXAMPLE}")
    if len(wishes) > rounds:
        raise InputError(f"there are {len(wishes)} --wish for {rounds} rounds")
    limits = [f"synthesis.most_tools={MOST_TOOLS}", *overrides]
    most = load_gen_config(config, limits).synthesis.most_tools
    parent, attempt, tried, results = ModelParent(directory), 1, list[str](), list[GrowthRound]()
    for number in range(1, rounds + 1):
        if len(parent.plan) >= most:
            print_line(f"{parent.name} has {len(parent.plan)} tools, and {most} is the most")
            break
        name = name_child(parent, attempt)
        wish = _build_wish(wishes[number - 1] if number <= len(wishes) else "", tried)
        print_line(f"round {number} of {rounds}: {parent.name} -> {name}")
        request = GrowthRequest(directory=parent.directory, out=out_dir, name=name, wish=wish or None)
        round_result = grow_once(request, config, None, limits)
        assert round_result is not None, "only a dry run has none"
        generated, grown, _, folder = round_result
        reason = "rejected" if grown is None else find_worse(parent, grown)
        spent = {"tokens": generated.funnel.tokens, "cost": generated.funnel.cost}
        outcome = {"number": number, "parent": parent.name, "name": name, "accepted": not reason, "reason": reason}
        if grown is None or reason:
            if grown is not None:
                undo_round(grown)
            results.append(GrowthRound.model_validate(outcome | spent))
            tried += [one for one in [describe_attempt(folder, parent)] if one]
            attempt += 1
            continue
        size = grown.after.model_dump(include={"entities", "tools", "rules"})
        results.append(GrowthRound.model_validate(outcome | spent | size | {"score": grown.score}))
        parent, attempt, tried = ModelParent(grown.directory), 1, []
    _show(results, out_dir, directory, parent)


def _build_wish(wish: str, tried: Sequence[str]) -> str:
    """Return the wish of a round: another subject than what has failed on this parent."""
    failed = f"something other than {'; '.join(tried)}, which failed" if tried else ""
    return ", ".join(part for part in (wish, failed) if part)[:500]


def _show(results: Sequence[GrowthRound], out_dir: Path, directory: Path, last: "ModelParent") -> None:
    """Print the rounds and write them beside the children.

    Raises:
        RunError: None was accepted.
    """
    for one in results:
        sizes = f"{one.entities} tables, {one.tools} tools, {one.rules} rules"
        score = "" if one.score is None else f", environment checker {one.score:.2f}"
        outcome = f"{sizes}{score}" if one.accepted else f"undone: {one.reason}"
        print_line(f"round {one.number}: {one.name}: {outcome}; {one.tokens:,} tokens, cost {one.cost:.4f}")
    accepted = sum(one.accepted for one in results)
    content = [one.model_dump(mode="json") for one in results]
    file = out_dir / f"{directory.resolve().name}.{ROUNDS_FILE}"
    write_whole_file(file, orjson.dumps(content, option=orjson.OPT_INDENT_2))
    tokens, cost = sum(one.tokens for one in results), sum(one.cost for one in results)
    each = f", {tokens / accepted:,.0f} tokens and {cost / accepted:.4f} for one" if accepted else ""
    print_line(f"{accepted} of {len(results)} rounds accepted{each}")
    if results and not accepted:
        raise RunError(f"no round was accepted: {last.name} stays as it is")
    print_line(f"use it: - python: {last.directory / (last.name + '.py')}")
