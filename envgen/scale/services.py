"""Services that environments can be made of, with what they cover."""

from collections import Counter
from dataclasses import dataclass

from trajsmith.envgen.generate.blueprint import Blueprint
from trajsmith.envgen.generate.from_known_records import read_known_records
from trajsmith.envgen.generate.known_records import load_lexicon
from trajsmith.envgen.generate.known_rules import share_owners
from trajsmith.envgen.generate.listed_tools import list_words
from trajsmith.envgen.generate.refinement import refine_blueprint
from trajsmith.envgen.generate.tool_lists import ToolList

Feature = tuple[str, str]
"""Kind of record and action, for example ("task", "create")."""


@dataclass(frozen=True)
class Service:
    """Service that an environment can be made of."""

    blueprint: Blueprint
    features: frozenset[Feature]
    family: str
    """Part of the lexicon that most of its records are from."""


def read_service(tool_list: ToolList, name: str, whole: bool = True) -> Service:
    """Return the service that a tool list describes.

    Args:
        whole: False for a list that is too small to be a service by itself.

    Raises:
        InputError: Its tools name no known record that can be changed.
    """
    blueprint = read_known_records(tool_list, name)
    blueprint = share_owners(refine_blueprint(blueprint)) if whole else blueprint
    return build_service(blueprint, list_words(tool_list))


def build_service(blueprint: Blueprint, words: frozenset[str] = frozenset()) -> Service:
    """Return a service with what it covers.

    Args:
        words: Of the source, which decide between several meanings of a noun.

    Raises:
        InputError: Nothing of the blueprint can be played.
    """
    lexicon = load_lexicon()
    if not words:
        blueprint = refine_blueprint(blueprint)
    kinds = {one.table: lexicon.find(one.noun, words) for one in blueprint.entities}
    names = {table: kind.name if kind else table for table, kind in kinds.items()}
    features = frozenset((names[one.table], one.action) for one in blueprint.operations)
    families = Counter(kind.family for kind in kinds.values() if kind)
    family = families.most_common(1)[0][0] if families else "other"
    return Service(blueprint, features, family)
