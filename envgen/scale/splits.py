"""Split generated environments for training and evaluation: no group in both, and hardly any tools in common."""

import json
import random
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from trajsmith.envgen.generate.blueprint import Blueprint
from trajsmith.envgen.generate.known_records import load_lexicon
from trajsmith.envgen.scale.catalogue import CatalogueEntry
from trajsmith.phrasing import split_identifier
from trajsmith.records import InputError, derive_seed, write_whole_file

MOST_OVERLAP = 0.3
"""Largest overlap of tools between an environment of training and one that is held out."""


@dataclass(frozen=True)
class SplitEnvironment:
    """Environment with its tools and records, as far as a split compares them."""

    name: str
    group: str
    family: str
    tools: frozenset[str]
    """Words of each tool's name, in order of the alphabet: "create_task" and "task-create" are the same."""
    features: frozenset[str]
    """Kinds of records with what is done to them: "task create"."""

    def overlap(self, other: "SplitEnvironment") -> float:
        """Return the larger overlap (intersection over union) of tool names and of records with actions."""
        return max(_share(self.tools, other.tools), _share(self.features, other.features))


@dataclass(frozen=True)
class Split:
    """Environments of training and those that are held out; `left_out` are in neither."""

    train: tuple[SplitEnvironment, ...]
    held_out: tuple[SplitEnvironment, ...]
    left_out: tuple[SplitEnvironment, ...]

    @property
    def most_overlap(self) -> float:
        """Return the largest overlap of an environment of training with one that is held out."""
        return max((one.overlap(other) for one in self.train for other in self.held_out), default=0.0)

    def count_families(self) -> list[tuple[str, int, int, int]]:
        """Return each family with its numbers in training, held out and left out."""
        counts = [Counter(one.family for one in part) for part in (self.train, self.held_out, self.left_out)]
        return [(family, *(count[family] for count in counts)) for family in sorted(set().union(*counts))]  # type: ignore[misc]


def _share(one: frozenset[str], other: frozenset[str]) -> float:
    return len(one & other) / len(one | other) if one | other else 0.0


def read_environments(catalogue: Path) -> list[SplitEnvironment]:
    """Read the accepted environments of a catalogue, and the blueprint of each.

    Args:
        catalogue: `catalogue.json`, or the directory with it.

    Raises:
        InputError: It cannot be read, or no environment is accepted.
    """
    file = catalogue / "catalogue.json" if catalogue.is_dir() else catalogue
    try:
        entries = [CatalogueEntry.model_validate(one) for one in json.loads(file.read_bytes())["entries"]]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(f"{file} is no catalogue of trajsmith env gen --count: {type(error).__name__}") from error
    environments = [_read_environment(file.parent, entry) for entry in entries if entry.accepted]
    if not environments:
        raise InputError(f"{file}: no environment is accepted")
    return environments


def _read_environment(directory: Path, entry: CatalogueEntry) -> SplitEnvironment:
    file = directory / entry.name / "blueprint.json"
    try:
        blueprint = Blueprint.model_validate_json(file.read_bytes())
    except (OSError, ValueError) as error:
        raise InputError(f"{file} cannot be read: {type(error).__name__}: generate {entry.name} again") from error
    lexicon = load_lexicon()
    kinds = {one.table: known.name if (known := lexicon.find(one.noun)) else one.noun for one in blueprint.entities}
    return SplitEnvironment(
        name=entry.name, group=entry.group, family=entry.family,
        tools=frozenset(" ".join(sorted(split_identifier(one.name))) for one in blueprint.operations),
        features=frozenset(f"{kinds[one.table]} {one.action}" for one in blueprint.operations),
    )  # fmt: skip


def split_environments(
    environments: Sequence[SplitEnvironment], share: float, most_overlap: float = MOST_OVERLAP, seed: int = 0
) -> Split:
    """Hold out whole groups, about the same share of every family, and leave out what is too similar to them.

    Of the groups of a family those are held out first that cost least: the number of environments of other groups
    with a larger overlap, for each environment that is held out.

    Args:
        share: Share of the environments to hold out, at least.
        most_overlap: Largest overlap of tools between training and what is held out.

    Raises:
        InputError: There are fewer than two groups.
    """
    groups = _group(environments)
    if len(groups) < 2:
        raise InputError("a split needs environments of two groups at least")
    chosen = set[str]()
    for family, names in sorted(_sort_by_family(groups).items()):
        rng = random.Random(derive_seed(seed, "split", family))
        order = sorted(rng.sample(names, len(names)), key=lambda name: _cost(groups, name, most_overlap))
        wanted, held = share * sum(len(groups[name]) for name in names), 0
        for name in order:
            if held >= wanted or len(chosen) + 1 == len(groups):
                break
            chosen.add(name)
            held += len(groups[name])
    held_out = [one for one in environments if one.group in chosen]
    rest = [one for one in environments if one.group not in chosen]
    similar = {one.name for one in rest if any(one.overlap(other) > most_overlap for other in held_out)}
    return Split(
        train=tuple(one for one in rest if one.name not in similar), held_out=tuple(held_out),
        left_out=tuple(one for one in rest if one.name in similar),
    )  # fmt: skip


def _group(environments: Iterable[SplitEnvironment]) -> dict[str, list[SplitEnvironment]]:
    groups = defaultdict[str, list[SplitEnvironment]](list)
    for one in environments:
        groups[one.group].append(one)
    return dict(groups)


def _sort_by_family(groups: dict[str, list[SplitEnvironment]]) -> dict[str, list[str]]:
    """Return the groups by the family that most of their environments are of."""
    families = defaultdict[str, list[str]](list)
    for name, members in groups.items():
        families[Counter(one.family for one in members).most_common(1)[0][0]].append(name)
    return dict(families)


def _cost(groups: dict[str, list[SplitEnvironment]], name: str, most_overlap: float) -> tuple[float, int]:
    """Return how many environments of other groups are too similar to a group, for each of its own; and its size."""
    others = [one for group, members in groups.items() if group != name for one in members]
    similar = sum(any(one.overlap(own) > most_overlap for own in groups[name]) for one in others)
    return similar / len(groups[name]), len(groups[name])


def write_split(out: Path, split: Split, catalogue: Path) -> tuple[Path, Path]:
    """Write `train.yaml` and `held_out.yaml`: lists for `environments` of a run's configuration."""
    import yaml

    root = catalogue if catalogue.is_dir() else catalogue.parent
    files = out / "train.yaml", out / "held_out.yaml"
    for file, part in zip(files, (split.train, split.held_out), strict=True):
        entries = [{"python": str(root / one.name / f"{one.name}.py")} for one in part]
        write_whole_file(file, yaml.safe_dump(entries, sort_keys=False).encode())
    return files
