"""Kinds of records that services keep, with the values, states and words that people know of them."""

import random
import re
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from trajsmith.envgen.generate.blueprint import ColumnKind, Scalar, TableColumn
from trajsmith.environments.adapters.openapi.vocabulary import FIRST, LAST
from trajsmith.phrasing import singularize, word_set
from trajsmith.records import InputError, derive_seed

_FILES = Path(__file__).with_name("lexicon")
_SPEC = re.compile(r"(?P<kind>[a-z]+)(?P<way>[+-]?)( (?P<low>[\d.]+)-(?P<high>[\d.]+))?(?P<needed>!?)$")
_DOUBLED = re.compile(r"\b(\w+)\W+\1\b")
"""A word that stands twice in a row: "contract-signed-signed.pdf"."""
_POOL_SPEC = re.compile(r"(?P<mark>[=~#])(?P<pool>\w+)(?P<needed>!?)$")
POOL_SIZE = 12
"""Values of a column that an environment knows."""
UNKNOWN = "unknown"
"""Sense of a noun that means nothing known beside some words: the position of a chess game is no stock."""
PEOPLE = 90
"""Names of people that an environment knows."""


@dataclass(frozen=True)
class KnownColumn:
    """A column that records of a kind usually have."""

    name: str
    kind: ColumnKind
    pool: str = ""
    """Name of a list of values, "person" for names of people; empty where values are made or follow from others."""
    choices: tuple[str, ...] = ()
    low: float = 0
    high: float = 0
    required: bool = False
    when: str = ""
    """"past" or "future" for dates that lie before or after the present."""
    automatic: bool = False
    outside: bool = False
    """True for names of people who do not work with the service themselves."""
    is_text: bool = False
    """True for what a record says of itself, which goes with its name."""


@dataclass(frozen=True)
class KnownRecord:
    """A kind of record."""

    name: str
    label: KnownColumn
    """The column by which people tell records apart."""
    unique: str
    """"owner" if no two records of one owner have the same name, "everywhere" if no two have it; else empty."""
    columns: tuple[KnownColumn, ...]
    status: tuple[str, ...] = ()
    """States from the first to the last."""
    moves: dict[str, str] = field(default_factory=dict)
    """Verbs to the states that they lead to."""
    parents: tuple[str, ...] = ()
    """Kinds of records that it may belong to, nearest first."""
    family: str = ""
    """Part of the lexicon that it is from: "commerce"."""


@dataclass(frozen=True)
class RecordLexicon:
    """All known kinds of records, by every noun that they go by."""

    records: dict[str, KnownRecord]
    nouns: dict[str, str]
    """Nouns in snake case to names of records."""
    pools: dict[str, tuple[str, ...]]
    variants: dict[str, str] = field(default_factory=dict)
    """Pools to the pattern of further values: "{value} {city}"."""
    senses: dict[str, dict[str, frozenset[str]]] = field(default_factory=dict)
    """Nouns of several meanings to records and the words beside which they are meant; "*" stands for any."""
    about: dict[str, dict[str, dict[str, str]]] = field(default_factory=dict)
    """Pools of names to columns, and of each the value that goes with a name; "text" stands for texts of any column."""
    names_of: dict[str, dict[str, tuple[str, ...]]] = field(default_factory=dict)
    """Kinds of records to names of what they belong to, with the names that records have there."""

    def find(self, noun: str, beside: frozenset[str] = frozenset()) -> KnownRecord | None:
        """Return the kind of record that a noun in snake case means, by its last words if need be.

        Args:
            beside: Words of the service, which decide between several meanings.
        """
        words = noun.split("_")
        for start in range(len(words)):
            if start and (
                _VAGUE & set(words[:start]) or words[-1] in _LOOSE or len(words) > 3 or any(map(str.isdigit, noun))
            ):
                return None
            if start and any(singularize(one) != one and one not in _NO_PLURALS for one in words[:start]):
                return None  # the results of an exam are no part of what a user is
            rest = "_".join(words[start:])
            name = self._find_sense(rest, beside) or self.nouns.get(rest) or self.nouns.get(singularize(rest))
            if name == UNKNOWN:
                return None
            if name is not None:
                return self.records[name]
        return None

    def _find_sense(self, noun: str, beside: frozenset[str]) -> str:
        """Return the kind of record that a noun of several meanings has beside these words; empty for the usual one."""
        senses = self.senses.get(noun) or self.senses.get(singularize(noun)) or {}
        other = beside - set(noun.split("_"))
        return next((name for name, words in senses.items() if beside and (words & other or "*" in words)), "")

    def draw(self, pool: str, *place: str, size: int = POOL_SIZE) -> tuple[str, ...]:
        """Return values of a pool in an order that depends on the place."""
        values, rng = list(self.pools[pool]), random.Random(derive_seed(0, "pool", pool, *place))
        rng.shuffle(values)
        pattern, known = self.variants.get(pool, ""), dict.fromkeys(values)
        if "{city}" in pattern:  # no "Trade fair Lyon Leipzig"
            values = [value for value in values if not any(city in str(value) for city in self.pools["city"])]
        for _ in range(4 * size if pattern else 0):
            if len(known) >= size:
                break
            value = self._vary(pattern, values, rng)
            if not _DOUBLED.search(value):
                known.setdefault(value)
        return tuple(known)[:size]

    def find_base(self, pool: str, value: str) -> str:
        """Return the value of a pool that a further value was made of; empty if it was made of other words."""
        return max((one for one in map(str, self.pools[pool]) if one in value), key=len, default="")

    def describe(self, pool: str, column: str, value: str) -> str:
        """Return what a column holds beside a name of a pool; empty if nothing is known of it."""
        known = self.about.get(pool, {}).get(column, {})
        base = self.find_base(pool, value)
        endings = (one for one in known if one.startswith("*") and value.endswith(one.removeprefix("*").lstrip()))
        ending = max(endings, key=len, default="") if value not in known else ""
        return known.get(value) or known.get(ending, "").replace("{base}", base) or known.get(base, "")

    def _vary(self, pattern: str, values: list[str], rng: random.Random) -> str:
        """Return one more value in the manner of those of a pool."""

        def fill(match: re.Match[str]) -> str:
            name = match.group(1)
            numbers = {"digit": (1, 9), "number2": (2, 98), "number": (80000, 99999)}
            if name in numbers:
                return str(rng.randint(*numbers[name]))
            return rng.choice(values if name == "value" else self.pools[name])

        return re.sub(r"\{(\w+)\}", fill, pattern)

    def build(self, known: KnownColumn, name: str, *place: str, size: int = POOL_SIZE) -> TableColumn:
        """Return a column of an environment with values that depend on the place."""
        pool: tuple[Scalar, ...] = ()
        if known.pool == "person":
            pool = invent_people(size, place[0], _find_group(known, place[-1]))
        elif known.pool == "phone":
            rng = random.Random(derive_seed(0, "phones", *place))
            pool = tuple(f"+44 20 7946 0{number}" for number in rng.sample(range(100, 1000), POOL_SIZE))
        elif known.pool:
            pool = self.draw(known.pool, *place, size=size)
        elif known.kind in ("whole", "number"):
            pool = _draw_numbers(known, random.Random(derive_seed(0, "numbers", *place, known.name)))
        number = known.kind in ("whole", "number")
        return TableColumn(
            name=name, kind=known.kind, label=name, required=known.required, choices=known.choices, pool=pool,
            low=known.low if number else None, automatic=known.automatic, when=known.when,
        )  # fmt: skip


def invent_people(count: int, place: str, group: int = 0) -> tuple[str, ...]:
    """Return different full names, the first of them the same for every count.

    Args:
        group: 0 for the people of a service; customers, patients and the like are others.
    """
    names = [f"{first} {last}" for first in FIRST for last in LAST]
    random.Random(derive_seed(0, "people", place)).shuffle(names)
    start = group * PEOPLE % (len(names) - PEOPLE) if group else 0
    return tuple(names[start : start + count])


def _find_group(known: KnownColumn, noun: str) -> int:
    """Return whose names stand in a column: 0 for the people of the service."""
    if known.outside:
        return 2 + derive_seed(0, "group", noun) % 6
    return 1 if known.name in _GUESTS else 0


_OUTSIDE = frozenset({
    "customer", "contact", "lead", "candidate", "patient", "student", "attendee", "subscriber", "recipient",
    "license_key",
})  # fmt: skip
"""Kinds of people who are not those that work with a service."""
_GUESTS = frozenset({
    "payer", "respondent", "patient_name", "guest_name", "customer_name", "owner_name", "recipient", "contact",
    "player",
})  # fmt: skip
"""Columns with the names of such people."""


_VAGUE = word_set(
    "active current frontmost local by raw default import value class next all full to or my selected self own inner "
    "visible global last first latest previous clean typed game function decompiler string native token gas random "
    "multi each any some creation instant search deletion download manual login trending health thread"
)
"""Words before a noun that make something else of it."""
_NO_PLURALS = word_set(
    "sales news sms dns aws ads business access process address status class express ops tls series gas"
)
"""Words that end like a plural."""
_LOOSE = word_set(
    "content item object value list record entry field reference version source index image doc document type url "
    "tracking block history setting settings status key rule text row node parameter metric token move round resource "
    "attribute property discussion activity offer card link mode"
)
"""Nouns that mean something else with every word before them."""


@cache
def load_lexicon() -> RecordLexicon:
    """Read the known kinds of records that are part of this package."""
    import yaml

    pools, raw = dict[str, tuple[str, ...]](), dict[str, dict[str, Any]]()
    variants, senses = dict[str, str](), dict[str, dict[str, frozenset[str]]]()
    about, names_of = dict[str, dict[str, dict[str, str]]](), dict[str, dict[str, tuple[str, ...]]]()
    for path in sorted(_FILES.glob("*.yaml")):
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
        pools |= {name: tuple(values) for name, values in document.get("pools", {}).items()}
        variants |= document.get("variants", {})
        about |= document.get("about", {})
        for kind, lists in document.get("names_of", {}).items():
            names_of[kind] = {owner: tuple(names) for owner, names in lists.items()}
        for noun, kinds in document.get("senses", {}).items():
            senses[noun] = {kind: frozenset(words) for kind, words in kinds.items()}
        raw |= {name: {"family": path.stem, **entry} for name, entry in document.get("records", {}).items()}
    records, nouns = dict[str, KnownRecord](), dict[str, str]()
    for name, entry in raw.items():
        records[name] = _read_record(name, entry, pools)
        for noun in (name, *entry.get("as", ())):
            nouns.setdefault(noun, name)
    nouns |= {name: name for name in records}
    return RecordLexicon(records, nouns, pools, variants, senses, about, names_of)


_UNIQUE = {False: "", True: "owner", "everywhere": "everywhere"}
_KEYS = frozenset({"as", "cols", "status", "moves", "in", "unique", "family"})


def _read_record(name: str, entry: dict[str, Any], pools: dict[str, tuple[str, ...]]) -> KnownRecord:
    [label] = [key for key in entry if key not in _KEYS]
    values = entry[label]
    if isinstance(values, list):
        pools[f"{name}_{label}"] = tuple(values)
        values = f"{name}_{label}"
    known = KnownColumn(label, "text", pool=values, required=True, outside=name in _OUTSIDE)
    columns = tuple(_read_column(key, spec) for key, spec in entry.get("cols", {}).items())
    return KnownRecord(
        name, known, _UNIQUE[entry.get("unique", False)], columns, tuple(entry.get("status", ())),
        dict(entry.get("moves", {})), tuple(entry.get("in", ())), entry["family"],
    )  # fmt: skip


_KINDS: dict[str, ColumnKind] = {
    "money": "number", "num": "number", "int": "whole", "flag": "flag", "date": "date", "moment": "moment",
    "auto": "moment", "person": "text", "email": "text", "phone": "text",
}  # fmt: skip

_POOLED = ("person", "email", "phone")


def _read_column(key: str, spec: Any) -> KnownColumn:
    name, required = key.rstrip("!"), key.endswith("!")
    if isinstance(spec, list):
        return KnownColumn(name, "choice", choices=tuple(spec), required=required)
    if match := _POOL_SPEC.match(spec):
        kind: ColumnKind = "texts" if match["mark"] == "#" else "text"
        return KnownColumn(name, kind, pool=match["pool"], required=bool(match["needed"]), is_text=match["mark"] == "~")
    match = _SPEC.match(spec)
    if match is None or match["kind"] not in _KINDS:
        raise InputError(f"lexicon: {spec!r} of {key} is no kind of column")
    when = {"+": "future", "-": "past", "": ""}[match["way"]]
    return KnownColumn(
        name, _KINDS[match["kind"]], pool=match["kind"] if match["kind"] in _POOLED else "",
        low=float(match["low"] or 0), high=float(match["high"] or 0), required=bool(match["needed"]), when=when,
        automatic=match["kind"] == "auto",
    )  # fmt: skip


def _draw_numbers(known: KnownColumn, rng: random.Random) -> tuple[Scalar, ...]:
    """Return numbers between the bounds: small ones are more frequent, amounts end as prices do."""
    low, high = known.low, known.high
    values = dict[Scalar, None]()
    for _ in range(4 * POOL_SIZE):
        drawn = low + (high - low) * rng.random() ** 2
        if known.kind == "whole":
            coarse = 10 ** max(0, len(str(int(drawn))) - 2)
            values[max(int(low), int(drawn // coarse * coarse))] = None
        elif high <= 40:
            values[round(drawn * 2) / 2] = None
        else:
            values[round(drawn) - rng.choice((0, 0, 0.01, 0.5))] = None
    return tuple(value for value in values if low <= float(value) <= high)[:POOL_SIZE]


def is_person(text: str) -> bool:
    """Return True for an invented person's name."""
    first, _, last = text.partition(" ")
    return first in FIRST and last.split(" ")[0] in LAST
