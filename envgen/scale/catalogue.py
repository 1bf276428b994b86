"""The catalogue of many generated environments: one entry each, with verdict and reasons, as JSON and Markdown."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from trajsmith.envgen.generate.blueprint import Blueprint
from trajsmith.envgen.generate.rules import render_rules
from trajsmith.envgen.scale.services import Feature, Service
from trajsmith.records import FrozenModel, canonical_json, write_whole_file

GENERAL_RULES = ("Lists show at most", "A change that changes nothing")
"""Beginnings of the rules that every environment has."""
GROUP_DISTANCE = 0.9
"""Mean distance (1 - overlap of records and actions) from which on two groups of services stay apart."""


class CatalogueEntry(FrozenModel):
    """One service: what it is about, what it was made of, and the verdict."""

    name: str
    group: str
    """Services with similar records, named after the most frequent ones."""
    family: str
    records: tuple[str, ...]
    tools: int
    added_tools: int
    """Tools that no source has: lists without which nothing is found, and changes of state that such records have."""
    rules: int
    """Rules that the code enforces beyond those of every environment."""
    source: str
    licence: str
    accepted: bool | None
    """None if nothing is decided yet."""
    score: float | None = None
    tests: str = ""
    seconds: float = 0.0
    reasons: tuple[str, ...] = ()


def count_rules(blueprint: Blueprint) -> int:
    """Return the number of rules of an environment beyond those that all of them have."""
    return sum(not rule.startswith(GENERAL_RULES) for rule in render_rules(blueprint))


def group_services(services: Sequence[Service]) -> dict[str, str]:
    """Return the group of each service by name: average linkage over the overlap of records and actions."""
    if len(services) < 3:
        return {one.blueprint.name: one.family for one in services}
    from trajsmith.envgen.sources.clustering import require_sklearn

    require_sklearn()
    import numpy as np
    from scipy.cluster.hierarchy import fcluster, linkage

    distances = np.array([
        1 - len(one.features & other.features) / len(one.features | other.features)
        for place, one in enumerate(services) for other in services[place + 1 :]
    ])  # fmt: skip
    labels = fcluster(linkage(distances, "average"), GROUP_DISTANCE, "distance")
    members: dict[int, list[Service]] = {}
    for service, label in zip(services, labels, strict=True):
        members.setdefault(int(label), []).append(service)
    names = {label: _name_group(group) for label, group in members.items()}
    return {one.blueprint.name: names[int(label)] for one, label in zip(services, labels, strict=True)}


def _name_group(group: Sequence[Service]) -> str:
    counts = Counter(kind for one in group for kind in {kind for kind, _ in one.features})
    top = sorted(counts, key=lambda kind: (-counts[kind], kind))[:3]
    return ", ".join(kind.replace("_", " ") for kind in top)


def measure_coverage(services: Sequence[Service]) -> Counter[Feature]:
    """Return in how many services each action on each kind of record occurs."""
    return Counter(feature for one in services for feature in one.features)


def write_catalogue(
    out: Path, entries: Sequence[CatalogueEntry], rejected: dict[str, int], coverage: Counter[Feature]
) -> None:
    """Write `catalogue.json` and `catalogue.md`.

    Args:
        rejected: Reasons why servers of the source are no service, with their number.
        coverage: Services by kind of record and action.
    """
    document = {
        "entries": [entry.model_dump(mode="json") for entry in entries],
        "rejected_servers": rejected,
        "coverage": {f"{kind} {action}": count for (kind, action), count in sorted(coverage.items())},
    }
    write_whole_file(out / "catalogue.json", canonical_json(document))
    write_whole_file(out / "catalogue.md", render_catalogue(entries, rejected, coverage).encode())


def render_catalogue(entries: Sequence[CatalogueEntry], rejected: dict[str, int], coverage: Counter[Feature]) -> str:
    """Return the catalogue as Markdown: counts, accepted environments by group, what was rejected and why."""
    accepted = [entry for entry in entries if entry.accepted]
    refused = [entry for entry in entries if entry.accepted is False]
    large = sum(entry.tools >= 12 and entry.rules >= 4 for entry in accepted)
    kinds = Counter(kind for kind, _ in coverage.elements())
    lines = [
        "# Catalogue of generated environments", "",
        f"{len(accepted)} accepted, {len(refused)} rejected, {len(entries) - len(accepted) - len(refused)} undecided. "
        f"{large} of the accepted have at least 12 tools and 4 rules of their own. "
        f"{len(kinds)} kinds of records, {len(coverage)} pairs of record and action.", "",
    ]  # fmt: skip
    groups = Counter(entry.group for entry in accepted)
    for group, count in sorted(groups.items(), key=lambda one: (-one[1], one[0])):
        lines += [
            f"## {group} ({count})",
            "",
            "| environment | records | tools | rules | checker | source |",
            "|---|---|---|---|---|---|",
        ]
        for entry in sorted((one for one in accepted if one.group == group), key=lambda one: one.name):
            score = "-" if entry.score is None else f"{entry.score:.2f}"
            cells = (
                entry.name,
                ", ".join(entry.records).replace("_", " "),
                entry.tools,
                entry.rules,
                score,
                entry.source,
            )
            lines.append("| " + " | ".join(_escape_cell(str(cell)) for cell in cells) + " |")
        lines.append("")
    if refused:
        lines += ["## Rejected", "", "| environment | reasons |", "|---|---|"]
        lines += [f"| {one.name} | {_escape_cell('; '.join(one.reasons)[:300])} |" for one in refused]
        lines.append("")
    lines += ["## Servers of which nothing was made", "", "| reason | servers |", "|---|---|"]
    lines += [f"| {_escape_cell(reason)} | {count} |" for reason, count in rejected.items()]
    return "\n".join(lines) + "\n"


def _escape_cell(text: str) -> str:
    """Return a text of a source that can stand in a cell of a table."""
    plain = "".join(letter if letter.isprintable() else " " for letter in text)
    return plain.replace("|", "/").replace("<", "(").replace(">", ")").replace("`", "'")[:120]
