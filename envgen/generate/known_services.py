"""What the tables of one service share: its words, the letters of keys, how keys and tables are named."""

import random
import re
from collections.abc import Iterable, Sequence

from trajsmith.envgen.generate.blueprint import ColumnKind, KeyStyle, SkippedItem
from trajsmith.envgen.generate.identifiers import to_identifier
from trajsmith.envgen.generate.known_records import KnownRecord, RecordLexicon, load_lexicon
from trajsmith.envgen.generate.listed_tools import ListedTool, list_words
from trajsmith.envgen.generate.tool_lists import ToolList
from trajsmith.envgen.generate.tool_names import find_shared_words
from trajsmith.phrasing import normalize_name, pluralize
from trajsmith.records import derive_seed

_KEY_WORDS = {"page": "document", "field": "attribute", "format": "layout", "count": "tally", "filter": "view"}
"""Words of nouns that in a parameter speak of the answer, and what keys have in their place."""
_STYLES: tuple[KeyStyle, ...] = ("digits", "hex", "letters", "digits")


class ServiceContext:
    """A tool list that is read as a service of known records."""

    def __init__(self, tool_list: ToolList, name: str) -> None:
        self.tool_list = tool_list
        self.name = name
        self.lexicon: RecordLexicon = load_lexicon()
        self.left_out: list[SkippedItem] = []
        self.notes: list[str] = []
        self.kinds: dict[str, KnownRecord] = {}
        self.name_keys: dict[str, str] = {}
        """Nouns of records that are identified by a name or a path, and the column that holds it."""
        self._prefixes: set[str] = set()
        self.words = list_words(tool_list)
        self.source = tool_list.server
        self.shared = find_shared_words([str(raw["name"]) for raw in tool_list.tools])

    def find_key(self, noun: str) -> tuple[str, ColumnKind]:
        """Return the column that identifies a record, and what it holds."""
        if noun in self.name_keys:
            return self.name_keys[noun], "text"
        return name_key(noun), "whole" if has_whole_keys(self.name) else "text"

    def take_prefix(self, noun: str) -> str:
        """Return three letters for the keys of a record that no other record of the service has."""
        words = [noun.rpartition("_")[2], noun, noun[::-1]]
        wished = dict.fromkeys(shorten_noun(word) for word in words)
        letters = (f"{shorten_noun(noun)[:2]}{letter}" for letter in "ABCDEFGHJKLMNPQRSTUVWXYZ")
        prefix = next(one for one in (*wished, *letters) if one not in self._prefixes)
        self._prefixes.add(prefix)
        return prefix

    def rng(self, *place: str) -> random.Random:
        return random.Random(derive_seed(0, "service", self.tool_list.server, *place))


def name_key(noun: str) -> str:
    """Return the column that identifies a record; of a long noun only the last word."""
    plain = noun.rpartition("_")[2] if len(noun) > 18 else noun
    plain = "_".join(_KEY_WORDS.get(word, word) for word in plain.split("_"))
    return f"{to_identifier(plain, 'item')}_id"


_FILE = re.compile(r"^[^:]*\.[a-z]\w{1,3}$")
_KEY_ENDS = ("ids", "id", "uuid", "guid", "key", "number", "token", "sha", "hash")
_LEAST_NAMES = 8
"""Names of a kind of record, least, that can tell its records apart."""


def find_name_key(
    noun: str, kind: KnownRecord, tools: Iterable[ListedTool], names: Sequence[str], rng: random.Random
) -> str:
    """Return the parameter by which tools mean one record where it is a name or a path; empty where it is an ID.

    Where no parameter tells, records with names of their own and files have such keys in half of the services.

    Args:
        noun: What the tools call a record.
        kind: What it is.
        tools: Tools about such records.
        names: Known names of such records.
        rng: Draws what the tools leave open.
    """
    labels, all_labels = dict[str, str](), set[str]()
    for tool in tools:
        if tool.means.action in ("get", "update", "delete", "move"):
            all_labels |= {normalize_name(label) for label in tool.parameters}
            texts = [label for label, schema in tool.parameters.items() if schema.get("type", "string") == "string"]
            labels |= {normalize_name(label): to_identifier(label) for label in texts}
    whole, last = normalize_name(noun), normalize_name(noun.rpartition("_")[2])
    own = {label.removesuffix(end) for label in all_labels for end in _KEY_ENDS if label.endswith(end)}
    if own & {"", whole, last}:
        return ""
    if len(names) < _LEAST_NAMES or any("@" in name or name.endswith((".", "?", "!")) for name in names):
        return ""
    are_paths = sum(_FILE.search(name) is not None for name in names) * 2 > len(names)
    if not (kind.unique or are_paths) or kind.label.pool == "person":
        return ""
    paths = (f"{whole}path", f"{last}path", "path", "filepath", "filename")
    wanted = (f"{whole}name", f"{last}name", whole, last, "name", *(paths if are_paths else ()))
    label = next((labels[name] for name in wanted if name in labels), "")
    if not label and (are_paths or kind.unique == "everywhere") and rng.random() < 0.5:
        label = "path" if are_paths else "name"
    return f"{to_identifier(noun.rpartition('_')[2], 'item')}_name" if label == "name" else label


def shorten_noun(noun: str) -> str:
    """Return three letters that keys of a record begin with: "project" gives PRJ."""
    letters = noun.replace("_", "").upper()
    consonants = [letter for letter in letters[1:] if letter not in "AEIOU"]
    return (letters[:1] + "".join(dict.fromkeys(consonants)) + "XX")[:3]


def name_table(noun: str) -> str:
    name = to_identifier(noun, "item")
    return to_identifier(f"{name}_list" if name.endswith("s") else pluralize(name), "items")


def choose_key_style(service: str) -> KeyStyle:
    return _STYLES[derive_seed(0, "keys", service) % len(_STYLES)]


def has_whole_keys(service: str) -> bool:
    return choose_key_style(service) == "digits" and derive_seed(0, "whole", service) % 3 == 0
