"""Themes of requests: clusters by the words that tell them apart, named by the most telling ones.

EnvScaler (3.1) has a model infer an environment for each request and keeps one of each group of like ones. Without a
model the groups come first: weighted words, reduced to their main directions, clustered by Ward's method as Agent-World
(3.1) does with themes, cut into few and compact groups.
"""

import importlib.util
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from envgen.sources.stateful import COMMANDS, FILLERS, KEPT, commands, plain_words
from grounding.names import singular
from trajectory import InputError, install_command

DIRECTIONS = 48
"""Dimensions that weighted words are reduced to."""
DIRECT = 3000
"""Requests that are clustered one by one; more are brought into so many groups first."""
MOST = 60
"""Themes at most."""
ENOUGH = 0.85
"""Share of the best silhouette from which fewer themes are preferred to more."""
HARDLY = 0.25
"""Silhouette, with as many themes as the root of the requests, below which there is only one theme."""
SAMPLED = 1500
"""Requests among which a silhouette is measured."""
_PLAIN = re.compile(r"[a-z]{3,}|tv")
_TITLE = re.compile(r"\b(Dr|Mr|Mrs|Ms)\. ?")
_QUOTED = re.compile(r"(?<!\w)['\"“‘][^'\"“”]{1,200}['\"”’](?!\w)")
_NAME = re.compile(r"(?<=[a-z,;'’] )[A-Z][\w’'.-]+")
"""A capital inside a sentence: names of people, places and products tell nothing of the theme."""


@dataclass(frozen=True)
class Theme:
    """Requests of one kind."""

    name: str
    words: tuple[str, ...]
    """Most telling first."""
    verbs: tuple[str, ...]
    """What is asked for most often."""
    members: tuple[int, ...]
    """Places of its requests, the most typical first."""


def need_sklearn() -> None:
    """Say what is missing where scikit-learn is.

    Raises:
        InputError: It is not installed.
    """
    if importlib.util.find_spec("sklearn") is None:
        raise InputError(f"clustering needs scikit-learn: {install_command('envgen')}")


def find_themes(texts: Sequence[str], most: int = MOST) -> list[Theme]:
    """Group requests; the largest theme first.

    Args:
        texts: Requests without duplicates.
        most: How many themes at most.
    """
    need_sklearn()
    rows = [content_words(text) for text in texts]
    if len(texts) < 4:
        groups = [0] * len(texts)
        vectors = None
    else:
        vectors = _vectors(rows)
        groups = _grouped(vectors, most)
    members: dict[int, list[int]] = {}
    for place, group in enumerate(groups):
        members.setdefault(int(group), []).append(place)
    telling = telling_words([[word for place in places for word in rows[place]] for places in members.values()])
    found = [
        Theme(
            name=_name(words), words=words[:8], verbs=_verbs([texts[place] for place in places]),
            members=_typical(places, vectors),
        )
        for places, words in zip(members.values(), telling, strict=True)
    ]  # fmt: skip
    return sorted(_named_apart(found), key=lambda theme: (-len(theme.members), theme.name))


def content_words(text: str) -> list[str]:
    """Singular words of a request that tell what it is about: no commands, no names, nothing quoted."""
    words = plain_words(_NAME.sub(" ", _QUOTED.sub(" ", _TITLE.sub("", text))))
    said = set(commands(words))
    found = [
        singular(word)
        for place, word in enumerate(words)
        if place not in said and word not in FILLERS and _PLAIN.fullmatch(word)
    ]
    return [word for word in found if word in KEPT or word not in COMMANDS]


def telling_words(groups: Sequence[Sequence[str]]) -> list[tuple[str, ...]]:
    """For each group its words, those first that are frequent here and rare in the others (class-based tf-idf)."""
    import math

    counts = [Counter(words) for words in groups]
    total = Counter[str]()
    for count in counts:
        total.update(count)
    mean = sum(total.values()) / max(1, len(counts))
    return [
        tuple(
            sorted(
                count,
                key=lambda word: (-count[word] / max(1, sum(count.values())) * math.log(1 + mean / total[word]), word),
            )
        )
        for count in counts
    ]


def _vectors(rows: Sequence[list[str]]) -> Any:
    """float [n, d] of length one: weighted words in their main directions."""
    from sklearn.decomposition import TruncatedSVD
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.preprocessing import normalize

    vectorizer = TfidfVectorizer(analyzer=_pairs_too, min_df=2 if len(rows) > 30 else 1, max_df=0.5, sublinear_tf=False)
    weighted = vectorizer.fit_transform([row or ["nothing"] for row in rows])
    size = min(DIRECTIONS, min(weighted.shape) - 1)
    if size < 2:
        return normalize(weighted.toarray())
    return normalize(TruncatedSVD(size, random_state=0).fit_transform(weighted))


def _pairs_too(row: list[str]) -> list[str]:
    """Words and pairs of neighbours; a record's name counts three times, as themes are about records."""
    pairs = [f"{first} {second}" for first, second in pairwise(row)]
    return [*row, *pairs, *(word for word in row if word in KEPT for _ in range(2))]


def _grouped(vectors: Any, most: int) -> list[int]:
    """A number for each row: Ward's tree in as few groups as are nearly as compact as the best; one if none are."""
    import numpy as np
    from sklearn.cluster import MiniBatchKMeans

    if len(vectors) > DIRECT:
        first = MiniBatchKMeans(DIRECT // 4, random_state=0, n_init=3).fit(vectors)
        groups = np.array(_grouped(first.cluster_centers_, most))
        return [int(group) for group in groups[first.labels_]]
    tried = [(count, *_cut(vectors, count)) for count in _counts(len(vectors), most)]
    usual = min(tried, key=lambda one: abs(one[0] - len(vectors) ** 0.5))
    if usual[1] < HARDLY:
        return [0] * len(vectors)
    best = max(score for _, score, _ in tried)
    return next(labels for _, score, labels in tried if score >= ENOUGH * best)


def _cut(vectors: Any, count: int) -> tuple[float, list[int]]:
    """Mean silhouette of Ward's tree cut into so many groups, and the groups."""
    from sklearn.cluster import AgglomerativeClustering
    from sklearn.metrics import silhouette_score

    labels = AgglomerativeClustering(count, linkage="ward").fit_predict(vectors)
    size = min(SAMPLED, len(vectors))
    score = silhouette_score(vectors, labels, metric="cosine", sample_size=size, random_state=0)
    return float(score), [int(label) for label in labels]


def _counts(rows: int, most: int) -> list[int]:
    """Numbers of themes to try."""
    top = max(2, min(most, rows // 4))
    return sorted({max(2, round(top * share / 10)) for share in range(1, 11)})


def _typical(places: list[int], vectors: Any) -> tuple[int, ...]:
    if vectors is None:
        return tuple(places)
    centre = vectors[places].mean(0)
    return tuple(sorted(places, key=lambda place: (-float(vectors[place] @ centre), place)))


def _verbs(texts: Sequence[str]) -> tuple[str, ...]:
    said = (plain_words(text) for text in texts)
    counts = Counter(verb for words in said for verb in {words[place] for place in commands(words)})
    return tuple(word for word, _ in counts.most_common(4))


def _name(words: tuple[str, ...]) -> str:
    return " ".join(words[:2]) or "requests"


def _named_apart(themes: list[Theme]) -> list[Theme]:
    taken, found = set[str](), []
    for theme in sorted(themes, key=lambda theme: -len(theme.members)):
        names = [theme.name, *(" ".join(theme.words[:count]) for count in range(3, 9))]
        name = next((name for name in names if name not in taken), f"{theme.name} {len(taken)}")
        taken.add(name)
        found.append(Theme(name, theme.words, theme.verbs, theme.members))
    return found
