"""A taxonomy of environments: Ward's tree over what they are about, cut twice, groups named by their telling words.

Agent-World (3.1) clusters themes, has a model name 50 second-tier groups and people merge those into 20 of a first
tier. Here both tiers are cuts of the same tree, so that every group of the second lies in one of the first, and names
are words that the group's own texts share and the others do not.
"""

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from envgen.growth.duplicates import named_apart
from envgen.growth.shape import Encoder, Shape
from envgen.sources.stateful import COMMANDS, FILLERS
from envgen.sources.themes import need_sklearn
from environments.openapi.words import kinds_of
from grounding.names import words
from trajectory import EnvironmentSpec, Frozen, InputError, derive_seed

FIRST, SECOND = 20, 50
"""Groups of the two tiers at most, as Agent-World has them."""
PER_FIRST, PER_SECOND = 8, 3
"""Environments of a group on average, where there are few."""
FEWEST = 3
"""Groups of the first tier at least, where there are as many environments."""
WORDS = 6
_SAID = kinds_of(
    "mcp server service services api platform tool environment provide providing including include access management "
    "manage comprehensive various support supports enabling allow allows data information system integration "
    "interface back office retrieve retrieving based specific fetch detail list perform within through across "
    "operation operations functionality feature capability real seamless interact handle online assistant return "
    "returns id given optional filter whose after status query result identify identifier written trajsmith providing "
    "searching exposing managing creating reading sending writing detailed deletion creation retrieval exposes "
    "provides everything knows"
)
"""Words that descriptions of environments are full of, and that tell nothing of what they are about."""


class Group(Frozen):
    """Environments that are about like things."""

    name: str
    words: tuple[str, ...]
    """Most telling first."""
    members: tuple[str, ...]
    """The most typical first."""
    groups: "tuple[Group, ...]" = ()
    """Those of the second tier; empty in it."""


class Taxonomy(Frozen):
    """All groups of the first tier, the largest first."""

    groups: tuple[Group, ...]

    @property
    def size(self) -> int:
        return sum(len(group.members) for group in self.groups)

    def leaves(self) -> Iterator[Group]:
        """The groups of the second tier."""
        for group in self.groups:
            yield from group.groups or (group,)

    def lines(self) -> Iterator[str]:
        """As a tree of text."""
        for group in self.groups:
            yield f"{group.name} ({len(group.members)}): {', '.join(group.words)}"
            if not group.groups:
                yield f"  {', '.join(group.members)}"
            for inner in group.groups:
                yield f"  {inner.name} ({len(inner.members)}): {', '.join(inner.members)}"


def make_taxonomy(
    specs: Sequence[EnvironmentSpec], encode: Encoder, first: int | None = None, second: int | None = None
) -> Taxonomy:
    """Group environments.

    Args:
        specs: Names may repeat; those that do are told by their place.
        first: Groups of the first tier; None for one in eight environments, 20 at most.
        second: Groups of the second tier; None for one in three, 50 at most.

    Raises:
        InputError: There is none, or more groups are asked for than there are environments.
    """
    if not specs:
        raise InputError("no environment to group")
    shapes = [Shape(spec) for spec in named_apart(specs)]
    first = first or _usual(len(shapes), PER_FIRST, FIRST)
    second = max(first, second or _usual(len(shapes), PER_SECOND, SECOND))
    if second > len(shapes):
        raise InputError(f"{second} groups of {len(shapes)} environments: ask for fewer")
    vectors = encode([shape.text for shape in shapes])
    wide, narrow = _cuts(vectors, first, second)
    rows = [_said(shape) for shape in shapes]
    groups = [
        _group(places, shapes, vectors, rows, [places_of for places_of in narrow if set(places_of) <= set(places)])
        for places in wide
    ]
    return Taxonomy(groups=tuple(sorted(groups, key=lambda group: (-len(group.members), group.name))))


def _usual(count: int, per: int, most: int) -> int:
    return max(min(FEWEST, count), min(most, round(count / per)))


def _cuts(vectors: Any, first: int, second: int) -> tuple[list[list[int]], list[list[int]]]:
    """Places of the members of each group, for both cuts of one tree."""
    if len(vectors) == 1:
        return [[0]], [[0]]
    need_sklearn()
    from scipy.cluster.hierarchy import fcluster, linkage

    tree = linkage(vectors, "ward")
    cuts = []
    for count in (first, second):
        labels = fcluster(tree, count, "maxclust")
        groups: dict[int, list[int]] = {}
        for place, label in enumerate(labels):
            groups.setdefault(int(label), []).append(place)
        cuts.append(list(groups.values()))
    return cuts[0], cuts[1]


def _said(shape: Shape) -> set[str]:
    """The words that an environment uses of itself: of its description, and of what its tools are about."""
    told = {word for word in words(shape.about) if len(word) > 2}
    told |= {word for tool in shape.tools for word in tool.noun if len(word) > 2}
    return {word for word in told if word not in FILLERS and word not in _SAID and not word.isdigit()}


def _group(
    places: list[int], shapes: Sequence[Shape], vectors: Any, rows: Sequence[set[str]], inner: list[list[int]]
) -> Group:
    telling = _telling(places, rows)
    groups = [_group(part, shapes, vectors, rows, []) for part in inner] if len(inner) > 1 else []
    centre = vectors[places].mean(0)
    typical = sorted(places, key=lambda place: (-float(vectors[place] @ centre), shapes[place].name))
    return Group(
        name=" ".join(telling[:2]) or shapes[typical[0]].name, words=telling,
        members=tuple(shapes[place].name for place in typical),
        groups=tuple(sorted(groups, key=lambda group: (-len(group.members), group.name))),
    )  # fmt: skip


def _telling(places: Sequence[int], rows: Sequence[set[str]]) -> tuple[str, ...]:
    """Words that many members say and few others, nouns before commands."""
    inside = Counter(word for place in places for word in rows[place])
    total = Counter(word for row in rows for word in row)
    wanted = max(2, round(len(places) / 3)) if len(places) > 1 else 1
    found = [word for word, count in inside.items() if count >= wanted] or list(inside)

    def weight(word: str) -> tuple[float, str]:
        share, elsewhere = inside[word] / len(places), (total[word] - inside[word]) / max(1, len(rows) - len(places))
        return -(share * (1 - elsewhere) ** 2 * (0.5 if word in COMMANDS else 1.0)), word

    return tuple(sorted(found, key=weight)[:WORDS])


def stratified(taxonomy: Taxonomy, count: int, seed: int = 0) -> tuple[str, ...]:
    """So many environments, as evenly over the groups of both tiers as their sizes allow.

    Raises:
        InputError: More are asked for than there are.
    """
    if not 0 < count <= taxonomy.size:
        raise InputError(f"a sample has 1 to {taxonomy.size} environments, not {count}")
    rng = random.Random(derive_seed(seed, "taxonomy"))
    queues = [_queue(group, rng) for group in taxonomy.groups]
    rng.shuffle(queues)
    chosen: list[str] = []
    while len(chosen) < count:
        for queue in queues:
            if queue and len(chosen) < count:
                chosen.append(queue.pop(0))
    return tuple(chosen)


def _queue(group: Group, rng: random.Random) -> list[str]:
    """The members of a group, in turn from each of its own groups."""
    parts = [rng.sample(part.members, len(part.members)) for part in (group.groups or (group,))]
    rng.shuffle(parts)
    found: list[str] = []
    while any(parts):
        found += [part.pop() for part in parts if part]
    return found
