"""Plausible values by the name of a property: people, places, things. All of it is invented."""

import random
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import NamedTuple

from trajsmith.environments.adapters.openapi.naming import normalize_name, normalize_words, to_singular, to_snake_case

FIRST = (
    *("Amara", "Bruno", "Chiara", "Dilan", "Elena", "Farid", "Greta", "Hiro", "Ingrid", "Jamal", "Keiko", "Lars"),
    *("Marisol", "Nadia", "Oskar", "Priya", "Quentin", "Rosa", "Samir", "Tessa", "Umar", "Vera", "Wanda", "Yara"),
)
LAST = (
    *("Abbott", "Berger", "Castillo", "Dufour", "Eriksen", "Fontana", "Grant", "Haddad", "Ivanov", "Jensen", "Kim"),
    *("Lindqvist", "Moreau", "Novak", "Okafor", "Petrov", "Quinn", "Rossi", "Sato", "Torres", "Ueda", "Vogel"),
)
PLACES = (
    ("Lisbon", "Portugal", "PT", "1100-148"),
    ("Graz", "Austria", "AT", "8010"),
    ("Ghent", "Belgium", "BE", "9000"),
    ("Porto Alegre", "Brazil", "BR", "90010-150"),
    ("Halifax", "Canada", "CA", "B3H 1T3"),
    ("Turku", "Finland", "FI", "20100"),
    ("Lyon", "France", "FR", "69002"),
    ("Leipzig", "Germany", "DE", "04109"),
    ("Galway", "Ireland", "IE", "H91 E9C1"),
    ("Nagoya", "Japan", "JP", "460-0008"),
    ("Utrecht", "Netherlands", "NL", "3511"),
    ("Bergen", "Norway", "NO", "5003"),
    ("Madison", "United States", "US", "53703"),
)
STREETS = ("Mill Lane", "Harbour Street", "Station Road", "Linden Avenue", "Castle Row", "Garden Walk", "River Street")
COMPANIES = (
    "Northwind Tools",
    "Bluepeak Labs",
    "Harvest & Co",
    "Lumen Works",
    "Oakline",
    "Kestrel Systems",
    "Tidewater",
)
COLORS = ("black", "white", "green", "blue", "red", "yellow", "grey")
LANGUAGES = ("en", "de", "fr", "es", "pt", "ja")
CURRENCIES = ("USD", "EUR", "GBP", "JPY", "CHF", "CAD")
ZONES = ("Europe/Berlin", "America/New_York", "Asia/Tokyo", "Europe/Lisbon", "America/Sao_Paulo")
THINGS = (
    *("Walnut Desk", "Canvas Backpack", "Ceramic Mug", "Wool Blanket", "Desk Lamp", "Steel Bottle", "Oak Shelf"),
    *("Linen Shirt", "Travel Kettle", "Rain Jacket", "Notebook Set", "Cork Board", "Copper Pan", "Garden Chair"),
)
TOPICS = (
    *("Login page fails", "Invoice is missing", "Quarterly plan", "Team offsite", "Broken link on home page"),
    *("Slow search results", "Welcome guide", "Release checklist", "Budget review", "Customer interviews"),
)
SENTENCES = (
    *("Checked twice and ready to use.", "Please look at this before Friday.", "A short note for the whole team."),
    *("It worked yesterday, today it does not.", "Needs a second opinion.", "The first of a small series."),
    *("Agreed with everybody involved.", "Asked for in the last meeting.", "Replaces the one from last year."),
)
GOODS = ("Made of recycled material.", "Popular with returning customers.", "Comes with a two year warranty.")
"""What is only said of things that are sold."""
TAGS = ("new", "urgent", "sale", "outdoor", "office", "gift", "seasonal", "bestseller")
EVENTS = (
    *("Autumn Concert", "Harbour Walk", "Open Studio Day", "Lantern Evening", "Spring Lecture", "Film Night"),
    *("Founders' Dinner", "Night of Science", "Family Workshop", "Poetry Reading", "Winter Market", "Guided Tour"),
)
SITES = (
    *("Castle Hill", "North Pier", "Old Mill", "Market Hall", "River House", "Garden Court", "East Gate"),
    *("Lakeside", "Tower Square", "Mill Street", "Orchard House", "South Quay"),
)
DOCUMENTS = (
    *("Travel Policy", "Meeting Minutes", "Budget Overview", "Supplier Contract", "Floor Plan", "Welcome Guide"),
    *("Release Notes", "Risk Register", "Annual Report", "Style Guide", "Price List", "Training Plan"),
)
WORKS = (
    *("The Long Harbour", "Paper Boats", "Northern Light", "A Quiet Winter", "Seven Bridges", "The Glass Orchard"),
    *("Salt and Stone", "Morning Tide", "The Last Ferry", "Under Blue Roofs", "Small Hours", "The Clockmaker"),
)
PETS = ("Bella", "Bramble", "Cosmo", "Ginger", "Hazel", "Juno", "Maple", "Nero", "Otto", "Pepper", "Rusty", "Willow")
NEUTRAL = (
    *("Amber", "Birch", "Cedar", "Dover", "Ember", "Fjord", "Granite", "Harbour", "Indigo", "Juniper", "Kestrel"),
    *("Lagoon", "Meadow", "Nimbus"),
)
"""Names that any thing can have."""
GENRES = ("jazz", "folk", "rock", "classical", "electronic", "ambient")


class InventedPerson(NamedTuple):
    """Invented person whose names, address and accounts belong together."""

    first: str
    last: str
    number: int
    place: tuple[str, str, str, str]

    @property
    def user(self) -> str:
        return f"{self.first}.{self.last}{self.number}".lower()


def invent_person(rng: random.Random, number: int) -> InventedPerson:
    return InventedPerson(rng.choice(FIRST), rng.choice(LAST), number, rng.choice(PLACES))


Text = Callable[[random.Random, InventedPerson], str]
_DOMAIN = "example.com"


def _pick(values: tuple[str, ...]) -> Text:
    return lambda rng, _: rng.choice(values)


def _build_full_name(_: random.Random, who: InventedPerson) -> str:
    return f"{who.first} {who.last}"


def _build_street(rng: random.Random, _: InventedPerson) -> str:
    return f"{rng.randint(1, 120)} {rng.choice(STREETS)}"


def _build_sku(rng: random.Random, _: InventedPerson) -> str:
    return f"{rng.choice(('BAG', 'LMP', 'MUG', 'CHR'))}-{rng.randint(1000, 9999)}"


_TEXTS: tuple[tuple[frozenset[str], Text], ...] = (
    (normalize_words("firstname givenname forename"), lambda _, who: who.first),
    (normalize_words("lastname surname familyname"), lambda _, who: who.last),
    (normalize_words("fullname displayname contactname customername authorname ownername"), _build_full_name),
    (normalize_words("username login handle nickname screenname"), lambda _, who: who.user),
    (normalize_words("email emailaddress mail"), lambda _, who: f"{who.user}@{_DOMAIN}"),
    (
        normalize_words("phone phonenumber telephone mobile tel fax"),
        lambda rng, _: f"+1-555-{rng.randint(0, 9999):04d}",
    ),
    (normalize_words("city town locality location"), lambda _, who: who.place[0]),
    (normalize_words("country countryname nation"), lambda _, who: who.place[1]),
    (normalize_words("countrycode isocountry"), lambda _, who: who.place[2]),
    (normalize_words("zip zipcode postcode postalcode"), lambda _, who: who.place[3]),
    (normalize_words("street address streetaddress addressline1 line1 address1"), _build_street),
    (normalize_words("state region province county"), _pick(("North", "South", "East", "West"))),
    (normalize_words("company companyname organization employer brand vendor manufacturer supplier"), _pick(COMPANIES)),
    (normalize_words("currency currencycode"), _pick(CURRENCIES)),
    (normalize_words("language locale lang"), _pick(LANGUAGES)),
    (normalize_words("timezone tz"), _pick(ZONES)),
    (normalize_words("color colour"), _pick(COLORS)),
    (normalize_words("tag tags label labels keyword keywords"), _pick(TAGS)),
    (normalize_words("genre genres"), _pick(GENRES)),
    (normalize_words("product productname item itemname"), _pick(THINGS)),
    (normalize_words("sku productcode"), _build_sku),
    (normalize_words("version"), lambda rng, _: f"{rng.randint(1, 4)}.{rng.randint(0, 9)}.{rng.randint(0, 9)}"),
    (normalize_words("role jobtitle position"), _pick(("engineer", "manager", "analyst", "designer"))),
    (normalize_words("department team"), _pick(("sales", "support", "finance", "engineering"))),
    (normalize_words("gender"), _pick(("female", "male", "other"))),
    (normalize_words("unit"), _pick(("piece", "kg", "box"))),
)  # fmt: skip
_NAMES: tuple[tuple[frozenset[str], tuple[str, ...]], ...] = (
    (normalize_words("product item article good merchandise sku variant accessory gift"), THINGS),
    (
        normalize_words("event exhibition exhibit concert festival show conference meeting session workshop tour"),
        EVENTS,
    ),
    (
        normalize_words("company organization vendor supplier brand employer merchant shop store seller"),
        COMPANIES,
    ),
    (
        normalize_words("place venue location station stop site museum park hotel restaurant room hall branch airport"),
        SITES,
    ),
    (normalize_words("document file folder page report note attachment contract form template wiki paper"), DOCUMENTS),
    (normalize_words("film movie book album song track episode playlist game audiobook chapter podcast series"), WORKS),
    (normalize_words("pet dog cat animal horse bird"), PETS),
    (normalize_words("city town"), tuple(place[0] for place in PLACES)),
    (normalize_words("country"), tuple(place[1] for place in PLACES)),
)
_PEOPLE = normalize_words(
    "user users customer customers person people author authors owner owners employee employees contact contacts "
    "member members patient patients student students driver drivers guest guests client clients passenger actor "
    "agent agents teacher teachers doctor doctors staff host hosts assignee reporter friend friends account accounts"
)


_TITLES = normalize_words("title subject headline summary topic")
_SENTENCE_NAMES = normalize_words("description body text content message comment notes note details bio about reason")


def invent_text(name: str, noun: str, rng: random.Random, who: InventedPerson) -> str | None:
    """Return a text by the property's name, or None where the name says nothing.

    Args:
        noun: What the record is, in the singular: the "name" of a customer is not that of a product.
    """
    key = normalize_name(name)
    for names, make in _TEXTS:
        if _is_one_of(key, names):
            return make(rng, who)
    if _is_one_of(key, _TITLES):
        return rng.choice(find_names(noun) or TOPICS)
    if _is_one_of(key, _SENTENCE_NAMES):
        return rng.choice((*SENTENCES, *GOODS) if find_names(noun) == THINGS else SENTENCES)
    if key.endswith("name"):
        if normalize_name(noun) in _PEOPLE or key.removesuffix("name") in _PEOPLE:
            return f"{who.first} {who.last}"
        return rng.choice(find_names(key.removesuffix("name")) or find_names(noun) or NEUTRAL)
    return None


def _is_one_of(key: str, names: frozenset[str]) -> bool:
    return key in names or (len(key) > 5 and any(len(word) > 4 and key.endswith(word) for word in names))


def find_names(noun: str) -> tuple[str, ...]:
    """Return names for a kind of record, by the last known word of its noun; empty where none is known."""
    for name in (
        normalize_name(noun),
        *(to_singular(part) for part in reversed(to_snake_case(noun.replace(" ", "_")).split("_"))),
    ):
        for kinds, names in _NAMES:
            if name in kinds:
                return names
    return ()


_NUMBERS: tuple[tuple[frozenset[str], float, float, int], ...] = (
    (
        normalize_words("price amount total cost subtotal fee balance salary revenue budget tax shipping value"),
        5,
        400,
        2,
    ),
    (normalize_words("quantity qty count seats guests nights people"), 1, 5, 0),
    (normalize_words("stock inventory available capacity"), 0, 80, 0),
    (normalize_words("rating stars score"), 1, 5, 1),
    (normalize_words("age"), 18, 80, 0),
    (normalize_words("year"), 1995, 2026, 0),
    (normalize_words("month"), 1, 12, 0),
    (normalize_words("day"), 1, 28, 0),
    (normalize_words("hour"), 0, 23, 0),
    (normalize_words("minute minutes duration runtime"), 0, 59, 0),
    (normalize_words("percent percentage discount rate"), 0, 50, 1),
    (normalize_words("lat latitude"), -60, 60, 4),
    (normalize_words("lon lng long longitude"), -170, 170, 4),
    (normalize_words("weight height width length depth size"), 1, 100, 1),
    (normalize_words("temperature"), -10, 35, 1),
    (normalize_words("priority level rank position order"), 1, 5, 0),
)


def find_range(name: str) -> tuple[float, float, int]:
    """Return least, greatest and digits of a number, by the property's name."""
    key = normalize_name(name)
    for names, low, high, digits in _NUMBERS:
        if key in names or any(len(word) > 3 and key.endswith(word) for word in names):
            return low, high, digits
    return 1, 500, 0


_FUTURE = normalize_words(
    "due dueat duedate deadline end enddate endsat expires expiresat expiry scheduled delivery checkout"
)
_PAST = normalize_words("birthday birthdate dateofbirth dob")


def invent_datetime(name: str, rng: random.Random, now: datetime) -> datetime:
    """Return a time by the property's name: mostly in the last half year, deadlines ahead, birthdays long ago."""
    key = normalize_name(name)
    if key in _PAST:
        return now - timedelta(days=rng.randint(20 * 365, 60 * 365))
    shift = timedelta(days=rng.randint(1, 180), minutes=rng.randint(0, 1440))
    return now + shift / 2 if key in _FUTURE or key.startswith("end") else now - shift
