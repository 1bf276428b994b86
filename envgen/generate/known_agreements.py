"""What agrees in the records of a service: texts and values with names, names with owners, and who belongs to whom."""

import re
from collections.abc import Iterable, Mapping, Sequence

from trajsmith.envgen.generate.blueprint import Entity, Scalar, TableColumn
from trajsmith.envgen.generate.known_records import KnownColumn, KnownRecord, RecordLexicon, is_person

_HOSTS = ("", "www.", "shop.", "api.", "docs.", "status.", "blog.", "help.")
_RECORDS = ("www.", "mail.", "api.", "cdn.", "status.", "ftp.", "dev.", "auth.")
"""What names of hosts begin with in front of a domain."""
_NEW_DOMAINS = ("spring-fair.example", "open-days.example", "trail-day.example", "gift-guide.example")
"""Domains that anybody may want to have next."""
_PARTS = ("Europe", "North", "Online", "Retail", "Partners", "Services", "West", "Labs")
"""What companies that belong to a company are called after its name."""
_LESSONS = {
    "quiz": ("warm-up", "chapter 1", "chapter 2", "mid-term test", "final test", "retake", "practice round"),
    "assignment": ("worksheet 1", "worksheet 2", "essay", "project", "presentation", "portfolio", "group task"),
}
"""What tests and tasks of a course are called after its name."""
_ONE_OWNER = frozenset({
    "comment", "file", "activity", "note", "review", "time_entry", "memory", "form_response", "message", "notification",
    "bookmark", "image", "invitation", "attendee", "case_note", "dev_comment", "label", "reminder", "api_key",
    "webhook",
})  # fmt: skip
"""Kinds that belong to one record of several kinds, not to one of each."""
_SHARED = frozenset({"label", "issue_label", "user", "company", "team", "company_account"})
"""Kinds that many records refer to: a key in a parameter does not say that they belong there."""
_FREE = frozenset({
    "volume", "device", "image", "bookmark", "contact", "company", "room", "network", "calendar", "team", "label",
    "assistant", "model", "prompt", "vehicle", "location", "template", "knowledge_base", "list",
})  # fmt: skip
"""Kinds whose records may stand alone."""


def find_owners(
    noun: str, kind: KnownRecord, known: Mapping[str, KnownRecord], named: Sequence[str], whose: str | None = None
) -> list[tuple[str, bool]]:
    """Return the nouns of what records belong to, nearest first, and whether each record has such an owner.

    Args:
        whose: Kind of record that the noun itself names: a ticket reply is one to a ticket and to nothing else.
        known: Nouns of the service.
        named: Nouns of which parameters of its tools hold the key.
    """
    before = [other for other in known if noun != other and noun.startswith(f"{other}_")]
    before = [one for one in before if kind.name in _ONE_OWNER or {one, known[one].name} & set(kind.parents)]
    if kind.name in _SHARED:
        named = [one for one in named if {one, known[one].name} & set(kind.parents)]
    parents = list[str]()
    for parent in kind.parents:
        parents += [other for other in known if other == parent or other.endswith(f"_{parent}")]
    for parent in kind.parents:
        parents += [other for other, one in known.items() if one.name == parent]
    order = [*before, *parents, *named] if kind.name in _ONE_OWNER else [*before, *named, *parents]
    nouns = [one for one in dict.fromkeys(order) if one != noun]
    if kind.name in _ONE_OWNER and whose is not None:
        nouns = [one for one in nouns if one in before or known[one].name == whose]
    people = [one for one in nouns if known[one].label.pool == "person"]
    nouns = [one for one in nouns if one not in people[1:]]
    most = 1 if kind.name in _ONE_OWNER else 2
    return [(one, not place and kind.name not in _FREE) for place, one in enumerate(nouns[:most])]


def drop_circles(owners: Mapping[str, Sequence[tuple[str, bool]]]) -> dict[str, list[tuple[str, bool]]]:
    """Return what belongs to what without circles: of a folder in a project in a folder the nearer owner stays."""
    links = [(place, noun, owner) for noun, them in owners.items() for place, (owner, _) in enumerate(them)]
    nearest = dict[str, list[tuple[str, bool]]]({noun: [] for noun in owners})
    for place, noun, owner in sorted(links, key=lambda one: one[0]):
        if noun not in _find_reached(owner, nearest):
            needed = owners[noun][place][1] or bool(owners[noun][0][1] and not nearest[noun])
            nearest[noun].append((owner, needed))
    return nearest


def _find_reached(noun: str, owners: Mapping[str, Sequence[tuple[str, bool]]]) -> set[str]:
    """Return a noun and all that its records belong to."""
    reached, waiting = {noun}, [noun]
    while waiting:
        for owner, _ in owners.get(waiting.pop(), ()):
            if owner not in reached:
                reached.add(owner)
                waiting.append(owner)
    return reached


def is_told_by_noun(known: KnownColumn, noun: str) -> bool:
    """Return True for a choice that the noun makes: the kind of a call is not chosen."""
    return noun.rpartition("_")[2] in known.choices


def is_told_by_owner(known: KnownColumn, owners: Iterable[KnownRecord]) -> bool:
    """Return True for a column that repeats what a record's owner tells: its name, or the region that it is in."""
    for owner in owners:
        own = {column.name for column in owner.columns}
        if known.pool and known.pool == owner.label.pool and known.pool != "person":
            return True
        if known.pool == owner.label.pool == "person" and known.name.endswith("_name"):
            return True
        if known.name == "region" and "region" in own and not known.required:
            return True
    return False


def agree_with_name(
    lexicon: RecordLexicon, kind: KnownRecord, label: TableColumn, known: KnownColumn, column: TableColumn
) -> TableColumn:
    """Return a column with the values that stand in seed states beside each name.

    A text stands beside one name only: what further names would repeat is left to the pool, or left out.
    """
    if column == label or kind.label.pool == "person" or column.kind not in ("text", "choice", "whole", "number"):
        return column
    values, seen = dict[str, Scalar](), set[Scalar]()
    for name in map(str, label.pool):
        value: Scalar = _find_value(lexicon, kind, known, name)
        if value and column.kind in ("whole", "number"):
            value = float(value) if column.kind == "number" else int(value)
        if not value or (known.is_text and value in seen) or (column.choices and value not in column.choices):
            continue
        seen.add(value)
        values[name] = value
    return column.model_copy(update={"beside": label.name, "values": tuple(values.items())}) if values else column


def _find_value(lexicon: RecordLexicon, kind: KnownRecord, known: KnownColumn, name: str) -> str:
    pool = kind.label.pool
    if known.is_text:
        return lexicon.describe(pool, "text", name)
    if known.pool in ("url", "website") and pool != "url":
        return f"https://www.{_make_slug(name)}.example"
    if known.pool == "email" and pool == "company":
        return f"office@{_make_slug(name)}.example"
    if known.pool == "city":
        return next((city for city in map(str, lexicon.pools["city"]) if city in name), "")
    if known.name == "percent_off":
        return "".join(re.findall(r"\d+$", name))
    return lexicon.describe(pool, known.name, name)


def fit_names(entities: Sequence[Entity], kinds: Mapping[str, KnownRecord], lexicon: RecordLexicon) -> list[Entity]:
    """Return tables whose records have names that fit the record that they belong to.

    Args:
        kinds: Kinds of records by table.
    """
    tables, done = {one.table: one for one in entities}, dict[str, Entity]()

    def fit(entity: Entity) -> Entity:
        if entity.table in done:
            return done[entity.table]
        done[entity.table] = entity
        owner = next((c for c in entity.columns if c.references and c.required and c.kind != "texts"), None)
        if owner is None or owner.references not in tables or not entity.label or entity.is_named:
            return entity
        above = fit(tables[owner.references])
        names = _find_names(entity, kinds[entity.table], above, kinds[above.table], lexicon)
        label = entity.column(entity.label)
        update: dict[str, object] = {"owner": owner.name, "names": names} if names else {}
        if names and kinds[entity.table].label.pool == "domain_name":
            update["examples"] = _NEW_DOMAINS
        if label.unique and kinds[entity.table].unique != "everywhere":
            update["within"] = owner.name
        columns = [c.model_copy(update=update) if c == label else c for c in entity.columns]
        done[entity.table] = entity.model_copy(update={"columns": tuple(columns)})
        return done[entity.table]

    return [fit(entity) for entity in entities]


def _find_names(
    entity: Entity, kind: KnownRecord, above: Entity, kind_above: KnownRecord, lexicon: RecordLexicon
) -> tuple[tuple[str, tuple[str, ...]], ...]:
    if not above.label:
        return ()
    label = above.column(above.label)
    owners = [name for _, names in label.names for name in names] or [str(one) for one in label.pool]
    names_by_owner = dict[str, tuple[str, ...]]()
    for owner in owners:
        known = lexicon.names_of.get(kind.name, {})
        base = lexicon.find_base(kind_above.label.pool, owner) if kind_above.label.pool in lexicon.pools else ""
        if known.get(base):
            names_by_owner[owner] = known[base]
        elif kind.name in _LESSONS and kind_above.name == "course":
            names_by_owner[owner] = tuple(f"{owner}: {part}" for part in _LESSONS[kind.name])
        elif kind.label.pool == kind_above.label.pool == "company":
            names_by_owner[owner] = tuple(f"{owner} {part}" for part in _PARTS)
        elif kind.label.pool == "domain_name" and not is_person(owner) and _make_slug(owner):
            hosts = _RECORDS if "." in owner else _HOSTS
            names_by_owner[owner] = tuple(f"{host}{_make_host(owner)}" for host in hosts)
    return tuple(names_by_owner.items())


def _make_host(name: str) -> str:
    """Return the domain of a name; of a host in a domain only the domain."""
    return ".".join(name.split(".")[-2:]) if "." in name else f"{_make_slug(name)}.example"


def _make_slug(name: str) -> str:
    return re.sub(r"[^a-z0-9-]+", "", name.lower()).strip("-")
