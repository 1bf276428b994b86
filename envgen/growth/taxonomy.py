"""A taxonomy of environments: Ward's tree over what they are about, cut twice, groups named by their telling words.

Agent-World (3.1) clusters themes, has a model name 50 second-tier groups and people merge those into 20 of a first
tier. Here both tiers are cuts of the same tree, so that every group of the second lies in one of the first, and names
are words that the group's own texts share and the others do not.
"""

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from trajsmith.envgen.growth.duplicates import rename_repeated
from trajsmith.envgen.growth.environment_shape import Encoder, EnvironmentShape
from trajsmith.envgen.sources.clustering import require_sklearn
from trajsmith.envgen.sources.statefulness import COMMAND_VERBS, FILLER_WORDS
from trajsmith.grounding import split_name
from trajsmith.phrasing import word_set
from trajsmith.records import EnvironmentSpec, FrozenModel, InputError, derive_seed

FIRST, SECOND = 20, 50
"""Groups of the two tiers at most, as Agent-World has them."""
PER_FIRST, PER_SECOND = 8, 3
"""Environments of a group on average, where there are few."""
MIN_GROUP_SIZE = 3
"""Groups of the first tier at least, where there are as many environments."""
NAMING_WORDS = 6
_STOP_WORDS = word_set(
    "mcp server service services api platform tool environment provide providing including include access management "
    "manage comprehensive various support supports enabling allow allows data information system integration "
    "interface back office retrieve retrieving based specific fetch detail list perform within through across "
    "operation operations functionality feature capability real seamless interact handle online assistant return "
    "returns id given optional filter whose after status query result identify identifier written trajsmith providing "
    "searching exposing managing creating reading sending writing detailed deletion creation retrieval exposes "
    "provides everything knows"
)
"""Words that descriptions of environments are full of, and that tell nothing of what they are about."""


class TaxonomyGroup(FrozenModel):
    """Environments on similar topics."""

    name: str
    words: tuple[str, ...]
    """Most telling first."""
    members: tuple[str, ...]
    """The most typical first."""
    groups: "tuple[TaxonomyGroup, ...]" = ()
    """Those of the second tier; empty in it."""


class Taxonomy(FrozenModel):
    """All groups of the first tier, the largest first."""

    groups: tuple[TaxonomyGroup, ...]

    @property
    def size(self) -> int:
        return sum(len(group.members) for group in self.groups)

    def leaves(self) -> Iterator[TaxonomyGroup]:
        """Return the groups of the second tier."""
        for group in self.groups:
            yield from group.groups or (group,)

    def lines(self) -> Iterator[str]:
        """Return a text tree."""
        for group in self.groups:
            yield f"{group.name} ({len(group.members)}): {', '.join(group.words)}"
            if not group.groups:
                yield f"  {', '.join(group.members)}"
            for inner in group.groups:
                yield f"  {inner.name} ({len(inner.members)}): {', '.join(inner.members)}"


def build_taxonomy(
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
    shapes = [EnvironmentShape(spec) for spec in rename_repeated(specs)]
    first = first or _default_group_count(len(shapes), PER_FIRST, FIRST)
    second = max(first, second or _default_group_count(len(shapes), PER_SECOND, SECOND))
    if second > len(shapes):
        raise InputError(f"{second} groups of {len(shapes)} environments: ask for fewer")
    vectors = encode([shape.text for shape in shapes])
    wide, narrow = _cut_tree(vectors, first, second)
    rows = [_find_own_words(shape) for shape in shapes]
    groups = [
        _build_group(
            places, shapes, vectors, rows, [places_of for places_of in narrow if set(places_of) <= set(places)]
        )
        for places in wide
    ]
    return Taxonomy(groups=tuple(sorted(groups, key=lambda group: (-len(group.members), group.name))))


def _default_group_count(count: int, per: int, most: int) -> int:
    return max(min(MIN_GROUP_SIZE, count), min(most, round(count / per)))


def _cut_tree(vectors: Any, first: int, second: int) -> tuple[list[list[int]], list[list[int]]]:
    """Places of the members of each group, for both cuts of one tree."""
    if len(vectors) == 1:
        return [[0]], [[0]]
    require_sklearn()
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


def _find_own_words(shape: EnvironmentShape) -> set[str]:
    """Return the topic words of an environment: from its description and the nouns of its tools."""
    about_words = {word for word in split_name(shape.about) if len(word) > 2}
    about_words |= {word for tool in shape.tools for word in tool.noun if len(word) > 2}
    return {word for word in about_words if word not in FILLER_WORDS and word not in _STOP_WORDS and not word.isdigit()}


def _build_group(
    places: list[int],
    shapes: Sequence[EnvironmentShape],
    vectors: Any,
    rows: Sequence[set[str]],
    inner: list[list[int]],
) -> TaxonomyGroup:
    telling = _find_telling_words(places, rows)
    groups = [_build_group(part, shapes, vectors, rows, []) for part in inner] if len(inner) > 1 else []
    centre = vectors[places].mean(0)
    typical = sorted(places, key=lambda place: (-float(vectors[place] @ centre), shapes[place].name))
    return TaxonomyGroup(
        name=" ".join(telling[:2]) or shapes[typical[0]].name, words=telling,
        members=tuple(shapes[place].name for place in typical),
        groups=tuple(sorted(groups, key=lambda group: (-len(group.members), group.name))),
    )  # fmt: skip


def _find_telling_words(places: Sequence[int], rows: Sequence[set[str]]) -> tuple[str, ...]:
    """Return words that many members use and few others, nouns before verbs."""
    inside = Counter(word for place in places for word in rows[place])
    total = Counter(word for row in rows for word in row)
    wanted = max(2, round(len(places) / 3)) if len(places) > 1 else 1
    candidates = [word for word, count in inside.items() if count >= wanted] or list(inside)

    def weight(word: str) -> tuple[float, str]:
        share, elsewhere = inside[word] / len(places), (total[word] - inside[word]) / max(1, len(rows) - len(places))
        return -(share * (1 - elsewhere) ** 2 * (0.5 if word in COMMAND_VERBS else 1.0)), word

    return tuple(sorted(candidates, key=weight)[:NAMING_WORDS])


def sample_stratified(taxonomy: Taxonomy, count: int, seed: int = 0) -> tuple[str, ...]:
    """Return a sample of environments, spread over the groups of both tiers as evenly as their sizes allow.

    Raises:
        InputError: More are asked for than there are.
    """
    if not 0 < count <= taxonomy.size:
        raise InputError(f"a sample has 1 to {taxonomy.size} environments, not {count}")
    rng = random.Random(derive_seed(seed, "taxonomy"))
    queues = [_queue_members(group, rng) for group in taxonomy.groups]
    rng.shuffle(queues)
    chosen: list[str] = []
    while len(chosen) < count:
        for queue in queues:
            if queue and len(chosen) < count:
                chosen.append(queue.pop(0))
    return tuple(chosen)


def _queue_members(group: TaxonomyGroup, rng: random.Random) -> list[str]:
    """The members of a group, in turn from each of its own groups."""
    parts = [rng.sample(part.members, len(part.members)) for part in (group.groups or (group,))]
    rng.shuffle(parts)
    members: list[str] = []
    while any(parts):
        members += [part.pop() for part in parts if part]
    return members
