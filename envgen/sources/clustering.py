"""Cluster requests by their distinguishing words and name each cluster by the most telling ones.

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

from trajsmith.envgen.sources.statefulness import (
    COMMAND_VERBS,
    FILLER_WORDS,
    STORED_NOUNS,
    find_commands,
    tokenize_request,
)
from trajsmith.phrasing import singularize
from trajsmith.records import InputError, install_command

SVD_DIMENSIONS = 48
"""Dimensions that weighted words are reduced to."""
MAX_EXACT_ROWS = 3000
"""Requests that are clustered one by one; more are brought into so many groups first."""
MAX_THEMES = 60
"""Themes at most."""
COMPACTNESS_SHARE = 0.85
"""Share of the best silhouette from which fewer themes are preferred to more."""
MIN_SILHOUETTE = 0.25
"""Silhouette, with as many themes as the root of the requests, below which there is only one theme."""
SILHOUETTE_SAMPLE = 1500
"""Requests among which a silhouette is measured."""
_PLAIN = re.compile(r"[a-z]{3,}|tv")
_TITLE = re.compile(r"\b(Dr|Mr|Mrs|Ms)\. ?")
_QUOTED = re.compile(r"(?<!\w)['\"“‘][^'\"“”]{1,200}['\"”’](?!\w)")
_NAME = re.compile(r"(?<=[a-z,;'’] )[A-Z][\w’'.-]+")
"""A capital inside a sentence: names of people, places and products tell nothing of the theme."""


@dataclass(frozen=True)
class RequestCluster:
    """Cluster of similar requests."""

    name: str
    words: tuple[str, ...]
    """Most telling first."""
    verbs: tuple[str, ...]
    """What is asked for most often."""
    members: tuple[int, ...]
    """Places of its requests, the most typical first."""


def require_sklearn() -> None:
    """Raise an error with the install command if scikit-learn is missing.

    Raises:
        InputError: It is not installed.
    """
    if importlib.util.find_spec("sklearn") is None:
        raise InputError(f"clustering needs scikit-learn: {install_command('envgen')}")


def cluster_requests(texts: Sequence[str], most: int = MAX_THEMES) -> list[RequestCluster]:
    """Group requests; the largest theme first.

    Args:
        texts: Requests without duplicates.
        most: How many themes at most.
    """
    require_sklearn()
    rows = [find_content_words(text) for text in texts]
    if len(texts) < 4:
        groups = [0] * len(texts)
        vectors = None
    else:
        vectors = _build_vectors(rows)
        groups = _assign_clusters(vectors, most)
    members: dict[int, list[int]] = {}
    for place, group in enumerate(groups):
        members.setdefault(int(group), []).append(place)
    telling = find_telling_words([[word for place in places for word in rows[place]] for places in members.values()])
    clusters = [
        RequestCluster(
            name=_build_name(words), words=words[:8], verbs=_find_verbs([texts[place] for place in places]),
            members=_find_typical(places, vectors),
        )
        for places, words in zip(members.values(), telling, strict=True)
    ]  # fmt: skip
    return sorted(_rename_repeated(clusters), key=lambda theme: (-len(theme.members), theme.name))


def find_content_words(text: str) -> list[str]:
    """Return the content words of a request in the singular: no commands, no names, nothing quoted."""
    words = tokenize_request(_NAME.sub(" ", _QUOTED.sub(" ", _TITLE.sub("", text))))
    command_places = set(find_commands(words))
    content = [
        singularize(word)
        for place, word in enumerate(words)
        if place not in command_places and word not in FILLER_WORDS and _PLAIN.fullmatch(word)
    ]
    return [word for word in content if word in STORED_NOUNS or word not in COMMAND_VERBS]


def find_telling_words(groups: Sequence[Sequence[str]]) -> list[tuple[str, ...]]:
    """Return each group's words, most distinguishing first (class-based tf-idf)."""
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


def _build_vectors(rows: Sequence[list[str]]) -> Any:
    """float [n, d] of length one: weighted words in their main directions."""
    from sklearn.decomposition import TruncatedSVD
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.preprocessing import normalize

    vectorizer = TfidfVectorizer(
        analyzer=_add_word_pairs, min_df=2 if len(rows) > 30 else 1, max_df=0.5, sublinear_tf=False
    )
    weighted = vectorizer.fit_transform([row or ["nothing"] for row in rows])
    size = min(SVD_DIMENSIONS, min(weighted.shape) - 1)
    if size < 2:
        return normalize(weighted.toarray())
    return normalize(TruncatedSVD(size, random_state=0).fit_transform(weighted))


def _add_word_pairs(row: list[str]) -> list[str]:
    """Words and pairs of neighbours; a record's name counts three times, as themes are about records."""
    pairs = [f"{first} {second}" for first, second in pairwise(row)]
    return [*row, *pairs, *(word for word in row if word in STORED_NOUNS for _ in range(2))]


def _assign_clusters(vectors: Any, most: int) -> list[int]:
    """A number for each row: Ward's tree in as few groups as are nearly as compact as the best; one if none are."""
    import numpy as np
    from sklearn.cluster import MiniBatchKMeans

    if len(vectors) > MAX_EXACT_ROWS:
        first = MiniBatchKMeans(MAX_EXACT_ROWS // 4, random_state=0, n_init=3).fit(vectors)
        groups = np.array(_assign_clusters(first.cluster_centers_, most))
        return [int(group) for group in groups[first.labels_]]
    tried = [(count, *_cut_tree(vectors, count)) for count in _cluster_counts(len(vectors), most)]
    usual = min(tried, key=lambda one: abs(one[0] - len(vectors) ** 0.5))
    if usual[1] < MIN_SILHOUETTE:
        return [0] * len(vectors)
    best = max(score for _, score, _ in tried)
    return next(labels for _, score, labels in tried if score >= COMPACTNESS_SHARE * best)


def _cut_tree(vectors: Any, count: int) -> tuple[float, list[int]]:
    """Mean silhouette of Ward's tree cut into so many groups, and the groups."""
    from sklearn.cluster import AgglomerativeClustering
    from sklearn.metrics import silhouette_score

    labels = AgglomerativeClustering(count, linkage="ward").fit_predict(vectors)
    size = min(SILHOUETTE_SAMPLE, len(vectors))
    score = silhouette_score(vectors, labels, metric="cosine", sample_size=size, random_state=0)
    return float(score), [int(label) for label in labels]


def _cluster_counts(rows: int, most: int) -> list[int]:
    """Numbers of themes to try."""
    top = max(2, min(most, rows // 4))
    return sorted({max(2, round(top * share / 10)) for share in range(1, 11)})


def _find_typical(places: list[int], vectors: Any) -> tuple[int, ...]:
    if vectors is None:
        return tuple(places)
    centre = vectors[places].mean(0)
    return tuple(sorted(places, key=lambda place: (-float(vectors[place] @ centre), place)))


def _find_verbs(texts: Sequence[str]) -> tuple[str, ...]:
    worded = (tokenize_request(text) for text in texts)
    counts = Counter(verb for words in worded for verb in {words[place] for place in find_commands(words)})
    return tuple(word for word, _ in counts.most_common(4))


def _build_name(words: tuple[str, ...]) -> str:
    return " ".join(words[:2]) or "requests"


def _rename_repeated(themes: list[RequestCluster]) -> list[RequestCluster]:
    taken, renamed = set[str](), []
    for theme in sorted(themes, key=lambda theme: -len(theme.members)):
        names = [theme.name, *(" ".join(theme.words[:count]) for count in range(3, 9))]
        name = next((name for name in names if name not in taken), f"{theme.name} {len(taken)}")
        taken.add(name)
        renamed.append(RequestCluster(name, theme.words, theme.verbs, theme.members))
    return renamed
