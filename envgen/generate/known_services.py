"""What the tables of one service share: its words, the letters of keys, how keys and tables are named."""

import random

from trajsmith.envgen.generate.blueprint import KeyStyle, SkippedItem
from trajsmith.envgen.generate.identifiers import to_identifier
from trajsmith.envgen.generate.known_records import KnownRecord, RecordLexicon, load_lexicon
from trajsmith.envgen.generate.listed_tools import list_words
from trajsmith.envgen.generate.tool_lists import ToolList
from trajsmith.envgen.generate.tool_names import find_shared_words
from trajsmith.phrasing import pluralize
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
        self._prefixes: set[str] = set()
        self.words = list_words(tool_list)
        self.source = tool_list.server
        self.shared = find_shared_words([str(raw["name"]) for raw in tool_list.tools])

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
