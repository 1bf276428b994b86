"""Diagnosis of an evaluation: weak groups, kinds of wrong steps, and examples, each tested against chance."""

from collections import Counter
from collections.abc import Sequence
from typing import Any, Literal

from trajsmith.evals.causes import CauseFinding
from trajsmith.evals.observations import EpisodeObservation
from trajsmith.evals.scores import compute_wilson_interval
from trajsmith.evals.weak_groups import FALSE_DISCOVERIES, GroupSelection, WeakGroup, select_weak_groups
from trajsmith.evals.wrong_steps import KINDS
from trajsmith.records import FrozenModel, content_hash

DIMENSIONS = ("environment", "category", "variant", "skill", "tool", "edge", "length", "turns")
"""Dimensions of groups, the simpler first: of two groups with the same episodes the first is named."""
LEAST_EPISODES, LEAST_FAILED = 20, 5
"""Fewer scored episodes, or failures, say nothing of groups."""
NOISE = 0.005
"""Share of the episodes in which a kind of wrong step may stand by chance."""
EXAMPLES = 3


class Example(FrozenModel):
    """A failed episode, with the step that went wrong first."""

    episode: str
    request: str
    error: str
    kind: str = ""
    tool: str = ""
    message: int | None = None
    detail: str = ""


class GroupFinding(FrozenModel):
    """One group of tasks."""

    dimension: str
    name: str
    episodes: int
    failures: int
    rate: float
    """Share of its episodes that failed."""
    low: float
    high: float
    """95 % interval of `rate` (Wilson)."""
    elsewhere: float
    """Share of the other episodes that failed."""
    p: float
    """Fisher's exact test, one-sided, against the other episodes."""
    q: float
    """p after control of false discoveries over all tested groups."""
    named: bool
    """It fails more often than the other named groups explain: a weakness of its own."""
    added: float = 0.0
    """Chance of failure that the group adds by itself, of named groups."""
    kinds: dict[str, int] = {}
    """Kinds of the first wrong step among its failures."""
    telling: tuple[str, ...] = ()
    """Kinds that are more frequent among its failures than among others."""
    examples: tuple[Example, ...] = ()


class StepFinding(FrozenModel):
    """One kind of first wrong step, or one class of errors where no step is known."""

    kind: str
    says: str
    failed: int
    """Failed episodes in which it came first."""
    passed: int
    """Episodes that passed all the same."""
    share: float
    """Of all scored episodes."""
    low: float
    high: float
    q: float
    """Chance that it stands in so many episodes by noise, after control of false discoveries."""
    named: bool
    examples: tuple[Example, ...] = ()


class Coverage(FrozenModel):
    """Named group in the order in which the failures are covered."""

    dimension: str
    name: str
    covered: float
    """Share of all failures in this group or one before it."""


class Comparison(FrozenModel):
    """A group in this evaluation and in an earlier one."""

    dimension: str
    name: str
    before: float
    after: float
    """Shares of the episodes that passed."""
    p: float
    q: float
    verdict: Literal["better", "worse", "no difference shown"]


class Diagnosis(FrozenModel):
    """Weaknesses that an evaluation shows of a model."""

    name: str
    against: str = ""
    episodes: int
    """Scored episodes; of a task that was played several times, the first."""
    unscored: int
    repeated: int = 0
    """Further episodes of the same tasks, which the tests leave out."""
    failures: int
    rate: float
    low: float
    high: float
    base: float
    """Failure rate that no named group explains."""
    says: str
    """The outcome in a sentence."""
    groups: tuple[GroupFinding, ...] = ()
    """All groups with q of at most 0.05: the named ones first."""
    tested: int = 0
    cover: tuple[Coverage, ...] = ()
    steps: tuple[StepFinding, ...] = ()
    errors: dict[str, int] = {}
    comparisons: tuple[Comparison, ...] = ()
    reader: str = ""
    """Model that read failed conversations."""
    causes: tuple[CauseFinding, ...] = ()
    """What it named, each confirmed or refuted by execution."""
    unread: dict[str, int] = {}
    """Conversations that it gave no usable answer on, by kind of fault."""

    @property
    def named(self) -> tuple[GroupFinding, ...]:
        """Return the named groups."""
        return tuple(group for group in self.groups if group.named)


def diagnose(
    observations: Sequence[EpisodeObservation],
    name: str,
    against: Sequence[EpisodeObservation] = (),
    against_name: str = "",
) -> Diagnosis:
    """Find the weak groups of an evaluation.

    Args:
        observations: Episodes, in any order; the same episodes give the same diagnosis.
        name: What the evaluation is called.
        against: Episodes of an earlier evaluation to compare with.
        against_name: What that is called.
    """
    import numpy as np

    scored, repeated = _take_one_per_task(observations)
    failed = np.array([one.passed is False for one in scored], dtype=bool)
    failures, low, high = int(failed.sum()), *compute_wilson_interval(int(failed.sum()), len(scored))
    base: dict[str, Any] = {
        "name": name,
        "against": against_name,
        "episodes": len(scored),
        "unscored": sum(one.passed is None for one in observations),
        "repeated": repeated,
        "failures": failures,
        "rate": round(failures / max(1, len(scored)), 4),
        "low": round(low, 4),
        "high": round(high, 4),
        "errors": dict(Counter(one.error or "unknown" for one in scored if one.passed is False).most_common()),
        "comparisons": _compare(scored, _take_one_per_task(against)[0]) if against else (),
    }
    steps = _find_steps(scored)
    if len(scored) < LEAST_EPISODES or failures < LEAST_FAILED:
        says = (
            f"{failures} failures in {len(scored)} episodes are too few to tell a weak group from chance; evaluate at "
            f"least {LEAST_EPISODES} tasks of which {LEAST_FAILED} fail, better some hundred"
        )
        return Diagnosis(**base, base=base["rate"], says=says, steps=steps)
    labels, members = _build_members(scored)
    selection = select_weak_groups(members, failed)
    groups = [_describe(group, labels, members, scored) for group in selection.groups]
    listed = tuple(group for group in groups if group.named or group.q <= FALSE_DISCOVERIES)
    return Diagnosis(
        **base,
        base=round(selection.base, 4),
        says=_say(failures, len(scored), selection),
        groups=listed,
        tested=len(groups),
        cover=_list_cover(selection, labels),
        steps=steps,
    )


def _take_one_per_task(observations: Sequence[EpisodeObservation]) -> tuple[list[EpisodeObservation], int]:
    """Return the first scored episode of each task, by id: episodes of one task are not independent."""
    first: dict[str, EpisodeObservation] = {}
    scored = [one for one in observations if one.passed is not None]
    for one in scored:
        first.setdefault(one.task, one)
    return [first[task] for task in sorted(first)], len(scored) - len(first)


def _build_members(scored: Sequence[EpisodeObservation]) -> tuple[list[tuple[str, str]], Any]:
    """Return all groups, and which episode belongs to which."""
    import numpy as np

    seen = {(dimension, name) for one in scored for dimension, names in one.groups.items() for name in names}
    order = {dimension: place for place, dimension in enumerate(DIMENSIONS)}
    labels = sorted(seen, key=lambda label: (order.get(label[0], len(order)), label))
    place = {label: number for number, label in enumerate(labels)}
    members = np.zeros((len(scored), len(labels)), dtype=bool)
    for row, one in enumerate(scored):
        for dimension, names in one.groups.items():
            for name in names:
                members[row, place[dimension, name]] = True
    return labels, members


def _describe(
    group: WeakGroup, labels: Sequence[tuple[str, str]], members: Any, scored: Sequence[EpisodeObservation]
) -> GroupFinding:
    dimension, name = labels[group.index]
    inside = [one for row, one in enumerate(scored) if members[row, group.index] and one.passed is False]
    failures = sum(one.passed is False for one in scored)
    low, high = compute_wilson_interval(group.failures, group.episodes)
    kinds = Counter(_get_kind(one) for one in inside)
    others = Counter(_get_kind(one) for one in scored if one.passed is False) - kinds
    return GroupFinding(
        dimension=dimension,
        name=name,
        episodes=group.episodes,
        failures=group.failures,
        rate=round(group.failures / group.episodes, 4),
        low=round(low, 4),
        high=round(high, 4),
        elsewhere=round((failures - group.failures) / max(1, len(scored) - group.episodes), 4),
        p=group.p,
        q=group.q,
        named=group.named,
        added=round(group.rate, 4),
        kinds=dict(kinds.most_common()),
        telling=_find_telling_kinds(kinds, others) if group.named else (),
        examples=tuple(build_example(one) for one in _choose(inside)) if group.named else (),
    )


def _get_kind(one: EpisodeObservation) -> str:
    return one.step.kind if one.step is not None else one.error or "unknown"


def _find_telling_kinds(inside: Counter[str], outside: Counter[str]) -> tuple[str, ...]:
    """Return the kinds that stand more often among the failures of a group than among others."""
    from scipy.stats import false_discovery_control, fisher_exact

    n, m = inside.total(), outside.total()
    kinds = sorted(inside)
    p = [
        float(fisher_exact([[inside[k], n - inside[k]], [outside[k], m - outside[k]]], alternative="greater").pvalue)
        for k in kinds
    ]
    q = false_discovery_control(p) if p else []
    clear = [(value, kind) for value, kind in zip(q, kinds, strict=True) if value <= FALSE_DISCOVERIES]
    return tuple(kind for _, kind in sorted(clear))


def _choose(members: Sequence[EpisodeObservation]) -> list[EpisodeObservation]:
    """Return a few examples, of different kinds first, and the same whatever the order."""
    ordered = sorted(members, key=lambda one: content_hash(one.episode, 8))
    first: dict[str, EpisodeObservation] = {}
    for one in ordered:
        first.setdefault(_get_kind(one), one)
    common = Counter(_get_kind(one) for one in ordered)
    heads = sorted(first.values(), key=lambda one: -common[_get_kind(one)])
    return [*heads, *(one for one in ordered if one not in heads)][:EXAMPLES]


def build_example(one: EpisodeObservation) -> Example:
    """Return a failed episode as an example."""
    where = one.step.model_dump(exclude={"kind"}) if one.step else {}
    return Example(episode=one.episode, request=one.request, error=one.error, kind=_get_kind(one), **where)


def _find_steps(scored: Sequence[EpisodeObservation]) -> tuple[StepFinding, ...]:
    """Return the kinds of wrong steps, tested against a share of noise."""
    from scipy.stats import binom, false_discovery_control

    seen = [one for one in scored if one.step is not None or one.passed is False]
    kinds = Counter(_get_kind(one) for one in seen)
    if not kinds:
        return ()
    order = [kind for kind, _ in sorted(kinds.items(), key=lambda pair: (-pair[1], pair[0]))]
    q = false_discovery_control([float(binom.sf(kinds[kind] - 1, len(scored), NOISE)) for kind in order])
    findings = []
    for kind, value in zip(order, q, strict=True):
        those = [one for one in seen if _get_kind(one) == kind]
        failed = [one for one in those if one.passed is False]
        low, high = compute_wilson_interval(len(those), len(scored))
        findings.append(
            StepFinding(
                kind=kind,
                says=KINDS.get(kind, ""),
                failed=len(failed),
                passed=len(those) - len(failed),
                share=round(len(those) / len(scored), 4),
                low=round(low, 4),
                high=round(high, 4),
                q=float(value),
                named=bool(value <= FALSE_DISCOVERIES) and len(those) >= EXAMPLES,
                examples=tuple(build_example(one) for one in _choose(failed or those)),
            )
        )
    return tuple(findings)


def _list_cover(selection: GroupSelection, labels: Sequence[tuple[str, str]]) -> tuple[Coverage, ...]:
    pairs = zip(selection.order, selection.covered, strict=True)
    return tuple(Coverage(dimension=labels[i][0], name=labels[i][1], covered=share) for i, share in pairs)


def _say(failures: int, episodes: int, selection: GroupSelection) -> str:
    if not selection.order:
        return f"{failures} of {episodes} episodes failed, and no group fails more often than chance explains"
    groups = "1 group explains" if len(selection.order) == 1 else f"{len(selection.order)} groups explain"
    return f"{failures} of {episodes} episodes failed; {groups} {100 * selection.covered[-1]:.0f} % of the failures"


def _compare(after: Sequence[EpisodeObservation], before: Sequence[EpisodeObservation]) -> tuple[Comparison, ...]:
    """Compare the groups that both evaluations have; the tests are two-sided, the tasks need not be the same."""
    from scipy.stats import false_discovery_control, fisher_exact

    tables = [_count_groups(before), _count_groups(after)]
    labels = [label for label in tables[1] if label in tables[0]]
    shared = [label for label in labels if min(sum(table[label]) for table in tables) >= EXAMPLES]
    if not shared:
        return ()
    p = [float(fisher_exact([list(tables[0][label]), list(tables[1][label])]).pvalue) for label in shared]
    q = [float(p[0]), *map(float, false_discovery_control(p[1:]))] if len(p) > 1 else p
    rows = []
    for label, one, adjusted in zip(shared, p, q, strict=True):
        old, new = (table[label][0] / sum(table[label]) for table in tables)
        shown = adjusted <= FALSE_DISCOVERIES
        rows.append(
            Comparison(
                dimension=label[0],
                name=label[1],
                before=round(old, 4),
                after=round(new, 4),
                p=one,
                q=adjusted,
                verdict="no difference shown" if not shown else "better" if new > old else "worse",
            )
        )
    return (rows[0], *sorted(rows[1:], key=lambda row: (row.p, row.dimension, row.name)))


def _count_groups(observations: Sequence[EpisodeObservation]) -> dict[tuple[str, str], tuple[int, int]]:
    """Return (passed, failed) of all episodes together, then of every group."""
    passed, failed = Counter[tuple[str, str]](), Counter[tuple[str, str]]()
    for one in observations:
        for label in (("all", "all"), *((name, group) for name, groups in one.groups.items() for group in groups)):
            (passed if one.passed else failed)[label] += 1
    names = sorted(passed.keys() | failed.keys(), key=lambda label: (label[0] != "all", label))
    return {label: (passed[label], failed[label]) for label in names}
