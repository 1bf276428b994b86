"""Find domains, kinds of rules and relations that a collection of environments lacks; propose what to add.

Kinds of rules are found by words of policies, relations by names and types of the state's schema: a rule in other words
is not seen, so a count is a lower bound.
"""

import re
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import Any

import yaml

from trajsmith.envgen.growth.duplicates import rename_repeated
from trajsmith.envgen.growth.environment_shape import Encoder, EnvironmentShape, find_table_schemas, resolve_schema
from trajsmith.envgen.sources import ThemeSource
from trajsmith.grounding import split_name
from trajsmith.phrasing import singularize
from trajsmith.records import EnvironmentSpec, FrozenModel, InputError, JsonObject

COVERED_LIKENESS = 0.38
"""Likeness from which an environment counts as one of a domain."""
THIN_SHARE = 0.2
"""Share of the environments below which a kind of rule or relation is thin."""
ASKED_PER_PROPOSAL = 3
"""Thin kinds that one proposal is asked to have; the next one is asked for the next."""
CATALOGUE_FILE = "domains.yaml"
_RULES: dict[str, str] = {
    "deadlines": r"\bwithin \d|\bat least \d+ (hour|day|minute)|\bno later than|\bin advance|\bdeadline"
    r"|\bhours? (of|before|after)|\bdays? (of|before|after)",
    "limits": r"\bat most\b|\bmaximum\b|\bno more than\b|\bup to \d|\bnot exceed|\blimit\b",
    "approval": r"\bapprov|\bconsent\b|\bexplicit(ly)? confirm|\bconfirmation\b|\bsay yes\b|\bask .{0,40}confirm",
    "identity": r"\bverify .{0,30}identit|\bidentity\b|\bauthenticat|\bpasscode\b|\bsecurity (code|question)",
    "ownership": r"\bbelongs? to\b|\bown(s|er|ed)?\b|\bon behalf of\b|\bsomebody else",
    "final states": r"\bstays? so\b|\bcannot be (changed|undone|reopened)|\bonly while\b"
    r"|\bonly (pending|open|active|draft|confirmed)\b",
    "uniqueness": r"\bno two\b|\bonly one\b|\bonce only\b|\balready (has|have|exists)\b|\bat most one\b",
    "money": r"\brefund|\bfees?\b|\bcharge|\bbalance\b|\bcredit limit|\boverdraft|\bpenalt",
    "capacity": r"\bcapacity\b|\bin stock\b|\bavailable (seat|place|room)|\bsold out\b|\bfully booked|\boverlap",
    "escalation": r"\bescalat|\bhand(ed)? over to\b|\btransfer .{0,30}(human|agent|person)|\bsupervisor\b",
    "order of steps": r"\bfirst\b.{0,60}\bthen\b|\bbefore (it|they|a|an|the)\b.{0,60}\bmust\b|\bmust .{0,40}\bbefore\b",
    "order of times": r"\bnot end before|\bafter it starts|\bnot before\b",
}
"""Kind of rule to what policies say of it."""


class FeatureCoverage(FrozenModel):
    """Kind of rule or relation, with the environments that have it."""

    name: str
    environments: tuple[str, ...]
    share: float


class DomainCoverage(FrozenModel):
    """Domain of the catalogue, with the nearest environment."""

    sector: str
    name: str
    nearest: str
    likeness: float
    """Of the nearest environment."""

    @property
    def covered(self) -> bool:
        return self.likeness >= COVERED_LIKENESS


class CollectionCoverage(FrozenModel):
    """Covered and missing domains, rules and relations of a collection, with proposals."""

    domains: tuple[DomainCoverage, ...]
    rules: tuple[FeatureCoverage, ...]
    relations: tuple[FeatureCoverage, ...]
    elsewhere: tuple[str, ...]
    """Environments that are near no domain of the catalogue."""
    proposals: tuple[ThemeSource, ...]

    @property
    def thin(self) -> tuple[str, ...]:
        """Kinds of rules and relations that few environments have."""
        return tuple(kind.name for kind in (*self.rules, *self.relations) if kind.share < THIN_SHARE)

    @property
    def sectors(self) -> dict[str, tuple[int, int]]:
        """Sector to how many of its domains are covered, and how many it has."""
        counts: dict[str, tuple[int, int]] = {}
        for domain in self.domains:
            covered, total = counts.get(domain.sector, (0, 0))
            counts[domain.sector] = (covered + domain.covered, total + 1)
        return counts


def find_gaps(
    specs: Sequence[EnvironmentSpec], encode: Encoder, count: int = 10, candidates: Sequence[ThemeSource] = ()
) -> CollectionCoverage:
    """Compare environments with the catalogue of domains, and propose what is farthest from all of them.

    Args:
        specs: The environments.
        encode: For the likeness of texts.
        count: Proposals.
        candidates: Sources to choose from, in place of the catalogue's domains, for example themes of a task set.

    Raises:
        InputError: There is no environment, or the number is none.
    """
    if not specs:
        raise InputError("no environment to compare with the catalogue of domains")
    if count < 1:
        raise InputError(f"--count is at least 1, not {count}")
    shapes = [EnvironmentShape(spec) for spec in rename_repeated(specs)]
    listed = load_catalogue()
    mine, theirs = _encode_all(encode, shapes, [source for _, source in listed])
    alike = theirs @ mine.T
    domains = tuple(
        DomainCoverage(
            sector=sector, name=source.name, nearest=shapes[int(row.argmax())].name,
            likeness=round(float(row.max()), 3),
        )
        for (sector, source), row in zip(listed, alike, strict=True)
    )  # fmt: skip
    elsewhere = tuple(shape.name for shape, near in zip(shapes, alike.max(0), strict=True) if near < COVERED_LIKENESS)
    rules, relations = (
        _measure_features(shapes, _RULES, _has_rule),
        _measure_features(shapes, _RELATIONS, _has_relation),
    )
    coverage = CollectionCoverage(domains=domains, rules=rules, relations=relations, elsewhere=elsewhere, proposals=())
    if candidates:
        mine, theirs = _encode_all(encode, shapes, candidates)
        chosen, sources = _choose_farthest(mine, theirs, min(count, len(candidates))), list(candidates)
    else:
        open_share = [coverage.sectors[sector][0] / coverage.sectors[sector][1] for sector, _ in listed]
        chosen = _choose_farthest(mine, theirs, min(count, len(listed)), [sector for sector, _ in listed], open_share)
        sources = [source for _, source in listed]
    proposals = tuple(_build_proposal(sources[place], coverage.thin, number) for number, place in enumerate(chosen))
    return coverage.model_copy(update={"proposals": proposals})


@cache
def load_catalogue() -> tuple[tuple[str, ThemeSource], ...]:
    """Return sector and domain of every entry of the catalogue."""
    document = yaml.safe_load((files("trajsmith.envgen.growth") / CATALOGUE_FILE).read_text(encoding="utf-8"))
    return tuple(
        (sector, ThemeSource(kind="domain", name=name, summary=summary, origin=CATALOGUE_FILE, licence="Apache-2.0"))
        for sector, domains in document.items()
        for name, summary in domains.items()
    )


def _build_text(source: ThemeSource) -> str:
    return " ".join([source.name, source.summary, *source.requests[:20]])


def _encode_all(encode: Encoder, shapes: Sequence[EnvironmentShape], sources: Sequence[ThemeSource]) -> tuple[Any, Any]:
    """Vectors of environments and of sources; encoders may number words by what they are given, so all go together."""
    vectors = encode([*(shape.text for shape in shapes), *map(_build_text, sources)])
    return vectors[: len(shapes)], vectors[len(shapes) :]


def _choose_farthest(
    mine: Any, among: Any, count: int, sectors: Sequence[str] = (), covered: Sequence[float] = ()
) -> list[int]:
    """Places of candidates, each as unlike the environments and those chosen before as possible.

    Args:
        mine: float [environments, d].
        among: float [candidates, d].
        count: How many.
        sectors: Of each candidate; one that was chosen from waits until all others were.
        covered: Share of each candidate's sector that is covered: little covered ones come first.
    """
    import numpy as np

    nearest = (among @ mine.T).max(1)
    used = dict.fromkeys(sectors, 0)
    chosen: list[int] = []
    while len(chosen) < count:
        rest = [place for place in range(len(among)) if place not in chosen]
        ranks = {
            place: float(nearest[place]) + (covered[place] + used[sectors[place]] if sectors else 0.0) for place in rest
        }
        chosen.append(min(rest, key=lambda place: (ranks[place], place)))
        if sectors:
            used[sectors[chosen[-1]]] += 1
        nearest = np.maximum(nearest, among @ among[chosen[-1]])
    return chosen


def _build_proposal(source: ThemeSource, thin: Sequence[str], number: int) -> ThemeSource:
    """A candidate that is asked to have some of what is thin; all of it comes up in turn."""
    asked = (
        [thin[(number * ASKED_PER_PROPOSAL + place) % len(thin)] for place in range(min(ASKED_PER_PROPOSAL, len(thin)))]
        if thin
        else []
    )
    if not asked:
        return source
    return source.model_copy(
        update={"summary": f"{source.summary} Wanted, as few environments have it: {', '.join(asked)}."}
    )


def _measure_features(shapes: Sequence[EnvironmentShape], kinds: Any, has: Any) -> tuple[FeatureCoverage, ...]:
    kinds_with_share = []
    for name, pattern in kinds.items():
        having = tuple(shape.name for shape in shapes if has(shape, pattern))
        kinds_with_share.append(
            FeatureCoverage(name=name, environments=having, share=round(len(having) / len(shapes), 3))
        )
    return tuple(sorted(kinds_with_share, key=lambda kind: (-kind.share, kind.name)))


def _has_rule(shape: EnvironmentShape, pattern: str) -> bool:
    rule_text = " ".join([shape.spec.policy, *(rule.says for rule in shape.spec.rules)])
    return re.search(pattern, " ".join(rule_text.lower().split())) is not None


def _find_references(spec: EnvironmentSpec) -> dict[str, list[str]]:
    """Table to the tables that its records refer to, by the names of fields; its own among them where it does."""
    references: dict[str, list[str]] = {}
    records = find_table_schemas(spec)
    nouns = {singularize(split_name(name)[-1]): name for name in records if split_name(name)}
    for name, record in records.items():
        meant = []
        for field in record.get("properties", {}):
            field_words = split_name(field)
            if len(field_words) > 1 and field_words[-1] in ("id", "number", "code"):
                if field_words[-2] in nouns and not (nouns[field_words[-2]] == name and len(field_words) == 2):
                    meant.append(nouns[field_words[-2]])
                elif field_words[0] in ("parent", "previous", "next", "reply"):
                    meant.append(name)
        references[name] = meant
    return references


def _find_fields(spec: EnvironmentSpec) -> list[tuple[str, JsonObject]]:
    records = find_table_schemas(spec).values()
    root = spec.state_schema
    return [
        (name, resolve_schema(part, root)) for record in records for name, part in record.get("properties", {}).items()
    ]


def _load_reference_names(*wanted: str) -> Any:
    return lambda shape: any(set(split_name(name)) & set(wanted) for name, _ in _find_fields(shape.spec))


_RELATIONS: dict[str, Any] = {
    "one to many": lambda shape: any(_find_references(shape.spec).values()),
    "many to many": lambda shape: any(len(set(meant)) > 1 for meant in _find_references(shape.spec).values()),
    "records that refer to their own kind": lambda shape: any(
        name in meant for name, meant in _find_references(shape.spec).items()
    ),
    "lists inside records": lambda shape: any(
        resolve_schema(part.get("items"), shape.spec.state_schema).get("properties")
        for _, part in _find_fields(shape.spec)
    ),
    "statuses": _load_reference_names("status", "state", "stage", "phase"),
    "periods": lambda shape: (
        _load_reference_names("start", "starts", "begin", "from")(shape)
        and _load_reference_names("end", "ends", "until", "to")(shape)
    ),
    "amounts of money": _load_reference_names("price", "amount", "balance", "fee", "total", "cost", "salary", "rent"),
    "quantities in stock": _load_reference_names("quantity", "stock", "capacity", "seats", "remaining", "available"),
    "history of changes": lambda shape: any(
        {"history", "log", "event", "audit", "revision", "activity"} & set(split_name(name))
        for name in find_table_schemas(shape.spec)
    ),
}


def _has_relation(shape: EnvironmentShape, test: Any) -> bool:
    return bool(test(shape))
