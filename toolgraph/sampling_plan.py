"""Plans of targeted synthesis: which tools, edges and environments chains must hold, and in which shares."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice, pairwise
from pathlib import Path
from typing import Literal

from pydantic import Field, PositiveInt

from trajsmith.records import Chain, FrozenModel, InputError, SourcePath, suggest_names


class PlanTarget(FrozenModel):
    """One group of tasks that more data is wanted of."""

    dimension: Literal["environment", "tool", "edge", "variant"]
    name: str
    """As a diagnosis names it: "bank", "bank.pay_payee", "bank.list_payees -> bank.pay_payee", "refused_call"."""
    share: float = Field(gt=0)
    """Weight among the targets; the weights need not sum to one."""


class EnvironmentWish(FrozenModel):
    """Environments that a plan wants beside one in which a model is weak as a whole."""

    like: str
    """That environment. Chains of `files` count for the target of this name."""
    wish: str = ""
    """What tasks of new ones are to practise; `trajsmith env gen --from-plan` tells it the models."""
    files: tuple[SourcePath, ...] = ()
    """Python files of environments that were made for it; a run with the plan opens them, too."""


class SamplingPlan(FrozenModel):
    """Shares of the groups that a run makes more of."""

    name: str = "plan"
    targets: tuple[PlanTarget, ...]
    """Without one, chains are drawn as without a plan, and only `avoid` counts."""
    share: float = Field(0.7, gt=0, le=1)
    """Share of the chains that hold a target; the others are drawn as without a plan."""
    pool: PositiveInt = 12
    """Chains drawn for each chain of the run, to choose from."""
    environments: tuple[EnvironmentWish, ...] = ()
    """Environments to make beside those of the run, for targets that are whole environments."""
    unserved: tuple[str, ...] = ()
    """Weak groups of the diagnosis that a choice of chains cannot serve, such as skills."""
    avoid: tuple[SourcePath, ...] = ()
    """Files of tasks of evaluations; rows that are near-duplicates of one are refused."""

    @property
    def variants(self) -> tuple[str, ...]:
        """Return the variants that are targets."""
        return tuple(target.name for target in self.targets if target.dimension == "variant")

    def check(self, tools: Mapping[str, Iterable[str]], variants: Iterable[str]) -> None:
        """Check that every target can be served.

        Args:
            tools: Environment to its plain tool names.
            variants: Known variants.

        Raises:
            InputError: One cannot; the text names it and what there is.
        """
        names = {f"{environment}.{tool}" for environment, own in tools.items() for tool in own}
        wished = {wish.like for wish in self.environments if wish.files}
        known = {"environment": {*tools, *wished}, "tool": names, "edge": names, "variant": {*variants} - {"base"}}
        for target in self.targets:
            parts = target.name.split(" -> ") if target.dimension == "edge" else [target.name]
            wrong = next((part for part in parts if part not in known[target.dimension]), None)
            if wrong is None and target.dimension == "edge" and len(parts) != 2:
                raise InputError(f"plan: edge {target.name!r}: write two tools as 'bank.list_payees -> bank.pay_payee'")
            if wrong is not None:
                noun = "variant" if target.dimension == "variant" else "environment of this run has"
                hint = suggest_names(wrong, sorted(known[target.dimension]))
                raise InputError(
                    f"plan: no {noun} {wrong!r}{f' ({hint})' if hint else ''}: add its environment to the run, or take "
                    "the target out of the plan"
                )

    def list_open_wishes(self) -> tuple[str, ...]:
        """Return the wishes for environments that nothing was made for, each as a group that is not served."""
        return tuple(f"environments like {wish.like}" for wish in self.environments if not wish.files)

    def find_similar(self, files: Mapping[str, Path]) -> dict[str, set[str]]:
        """Return the environments that each environment of the run is like, by the files of the wishes.

        Args:
            files: Environment to the Python file that it was opened from.
        """
        similar: dict[str, set[str]] = {}
        for wish in self.environments:
            own = {file.resolve() for file in wish.files}
            for name in (name for name, file in files.items() if file.resolve() in own):
                similar.setdefault(name, set()).add(wish.like)
        return similar


def list_chain_groups(chain: Chain) -> set[tuple[str, str]]:
    """Return the groups that a chain belongs to, by dimension and name."""
    tools = [f"{chain.environment}.{tool}" for tool in chain.tools]
    groups = {("environment", chain.environment), *(("tool", tool) for tool in tools)}
    return groups | {("edge", f"{first} -> {second}") for first, second in pairwise(tools)}


def choose_chains(
    drawn: Iterable[Chain], plan: SamplingPlan, count: int, files: Mapping[str, Path] | None = None
) -> Iterator[Chain]:
    """Choose `count` chains, `plan.share` of them by the targets, in the order of drawing.

    A chain counts for the target that it serves and that lacks most of its share. What no drawn chain serves is filled
    with others, so that the number of chains is the same as without a plan.

    Args:
        drawn: Chains to choose from.
        plan: Targets and their shares.
        count: Chains to choose.
        files: Environment to the Python file that it was opened from, by which wishes of the plan are served.

    Raises:
        InputError: No chain of the pool serves any target.
    """
    targets = [target for target in plan.targets if target.dimension != "variant"]
    pool = list(drawn if targets else islice(drawn, count))
    wanted = _share_out(round(count * plan.share), targets) if targets else {}
    left, chosen, similar = dict(wanted), set[int](), plan.find_similar(files or {})
    for number, chain in enumerate(pool):
        likes = similar.get(chain.environment, ())
        groups = list_chain_groups(chain) | {("environment", like) for like in likes}
        open_targets = [label for label in groups & left.keys() if left[label]]
        if open_targets:
            best = max(open_targets, key=lambda label: (left[label] / wanted[label], label))
            left[best] -= 1
            chosen.add(number)
    if targets and not chosen:
        names = ", ".join(f"{target.dimension} {target.name}" for target in targets[:4])
        raise InputError(f"plan: none of {len(pool)} drawn chains holds {names}: raise plan.pool or sample.length")
    rest = (number for number in range(len(pool)) if number not in chosen)
    for number in rest:
        if len(chosen) >= count:
            break
        chosen.add(number)
    return (pool[number] for number in sorted(chosen))


def _share_out(count: int, targets: Iterable[PlanTarget]) -> dict[tuple[str, str], int]:
    """Return whole numbers by the shares of the targets, by the largest remainder, at least one each."""
    weights = Counter[tuple[str, str]]()
    for target in targets:
        weights[target.dimension, target.name] += target.share  # type: ignore[assignment]
    total = sum(weights.values())
    exact = {label: count * weight / total for label, weight in weights.items()}
    whole = {label: int(value) for label, value in exact.items()}
    rest = sorted(exact, key=lambda label: (whole[label] - exact[label], label))
    for label in rest[: count - sum(whole.values())]:
        whole[label] += 1
    return {label: max(1, number) for label, number in whole.items()}
