"""Plausible values by the name of a property: people, places, things. All of it is invented."""

import random
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import NamedTuple

from environments.openapi.words import kinds_of, plain, singular, snake

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


class Person(NamedTuple):
    """Somebody whose names, address and accounts belong together."""

    first: str
    last: str
    number: int
    place: tuple[str, str, str, str]

    @property
    def user(self) -> str:
        return f"{self.first}.{self.last}{self.number}".lower()


def person(rng: random.Random, number: int) -> Person:
    return Person(rng.choice(FIRST), rng.choice(LAST), number, rng.choice(PLACES))


Text = Callable[[random.Random, Person], str]
_DOMAIN = "example.com"


def _pick(values: tuple[str, ...]) -> Text:
    return lambda rng, _: rng.choice(values)


def _full_name(_: random.Random, who: Person) -> str:
    return f"{who.first} {who.last}"


def _street(rng: random.Random, _: Person) -> str:
    return f"{rng.randint(1, 120)} {rng.choice(STREETS)}"


def _sku(rng: random.Random, _: Person) -> str:
    return f"{rng.choice(('BAG', 'LMP', 'MUG', 'CHR'))}-{rng.randint(1000, 9999)}"


_TEXTS: tuple[tuple[frozenset[str], Text], ...] = (
    (kinds_of("firstname givenname forename"), lambda _, who: who.first),
    (kinds_of("lastname surname familyname"), lambda _, who: who.last),
    (kinds_of("fullname displayname contactname customername authorname ownername"), _full_name),
    (kinds_of("username login handle nickname screenname"), lambda _, who: who.user),
    (kinds_of("email emailaddress mail"), lambda _, who: f"{who.user}@{_DOMAIN}"),
    (kinds_of("phone phonenumber telephone mobile tel fax"), lambda rng, _: f"+1-555-{rng.randint(0, 9999):04d}"),
    (kinds_of("city town locality location"), lambda _, who: who.place[0]),
    (kinds_of("country countryname nation"), lambda _, who: who.place[1]),
    (kinds_of("countrycode isocountry"), lambda _, who: who.place[2]),
    (kinds_of("zip zipcode postcode postalcode"), lambda _, who: who.place[3]),
    (kinds_of("street address streetaddress addressline1 line1 address1"), _street),
    (kinds_of("state region province county"), _pick(("North", "South", "East", "West"))),
    (kinds_of("company companyname organization employer brand vendor manufacturer supplier"), _pick(COMPANIES)),
    (kinds_of("currency currencycode"), _pick(CURRENCIES)),
    (kinds_of("language locale lang"), _pick(LANGUAGES)),
    (kinds_of("timezone tz"), _pick(ZONES)),
    (kinds_of("color colour"), _pick(COLORS)),
    (kinds_of("tag tags label labels keyword keywords"), _pick(TAGS)),
    (kinds_of("genre genres"), _pick(GENRES)),
    (kinds_of("product productname item itemname"), _pick(THINGS)),
    (kinds_of("sku productcode"), _sku),
    (kinds_of("version"), lambda rng, _: f"{rng.randint(1, 4)}.{rng.randint(0, 9)}.{rng.randint(0, 9)}"),
    (kinds_of("role jobtitle position"), _pick(("engineer", "manager", "analyst", "designer"))),
    (kinds_of("department team"), _pick(("sales", "support", "finance", "engineering"))),
    (kinds_of("gender"), _pick(("female", "male", "other"))),
    (kinds_of("unit"), _pick(("piece", "kg", "box"))),
)  # fmt: skip
_NAMES: tuple[tuple[frozenset[str], tuple[str, ...]], ...] = (
    (kinds_of("product item article good merchandise sku variant accessory gift"), THINGS),
    (
        kinds_of("event exhibition exhibit concert festival show conference meeting session workshop tour"),
        EVENTS,
    ),
    (
        kinds_of("company organization vendor supplier brand employer merchant shop store seller"),
        COMPANIES,
    ),
    (
        kinds_of("place venue location station stop site museum park hotel restaurant room hall branch airport"),
        SITES,
    ),
    (kinds_of("document file folder page report note attachment contract form template wiki paper"), DOCUMENTS),
    (kinds_of("film movie book album song track episode playlist game audiobook chapter podcast series"), WORKS),
    (kinds_of("pet dog cat animal horse bird"), PETS),
    (kinds_of("city town"), tuple(place[0] for place in PLACES)),
    (kinds_of("country"), tuple(place[1] for place in PLACES)),
)
_PEOPLE = kinds_of(
    "user users customer customers person people author authors owner owners employee employees contact contacts "
    "member members patient patients student students driver drivers guest guests client clients passenger actor "
    "agent agents teacher teachers doctor doctors staff host hosts assignee reporter friend friends account accounts"
)


_TITLES = kinds_of("title subject headline summary topic")
_SENTENCE_NAMES = kinds_of("description body text content message comment notes note details bio about reason")


def text_for(name: str, noun: str, rng: random.Random, who: Person) -> str | None:
    """A text by the property's name, or None where the name says nothing.

    Args:
        noun: What the record is, in the singular: the "name" of a customer is not that of a product.
    """
    key = plain(name)
    for names, make in _TEXTS:
        if _is_one_of(key, names):
            return make(rng, who)
    if _is_one_of(key, _TITLES):
        return rng.choice(names_of(noun) or TOPICS)
    if _is_one_of(key, _SENTENCE_NAMES):
        return rng.choice((*SENTENCES, *GOODS) if names_of(noun) == THINGS else SENTENCES)
    if key.endswith("name"):
        if plain(noun) in _PEOPLE or key.removesuffix("name") in _PEOPLE:
            return f"{who.first} {who.last}"
        return rng.choice(names_of(key.removesuffix("name")) or names_of(noun) or NEUTRAL)
    return None


def _is_one_of(key: str, names: frozenset[str]) -> bool:
    return key in names or (len(key) > 5 and any(len(word) > 4 and key.endswith(word) for word in names))


def names_of(noun: str) -> tuple[str, ...]:
    """What things of a kind are called, by the last of the noun's words that tells; empty where none does."""
    for name in (plain(noun), *(singular(part) for part in reversed(snake(noun.replace(" ", "_")).split("_")))):
        for kinds, names in _NAMES:
            if name in kinds:
                return names
    return ()


_NUMBERS: tuple[tuple[frozenset[str], float, float, int], ...] = (
    (kinds_of("price amount total cost subtotal fee balance salary revenue budget tax shipping value"), 5, 400, 2),
    (kinds_of("quantity qty count seats guests nights people"), 1, 5, 0),
    (kinds_of("stock inventory available capacity"), 0, 80, 0),
    (kinds_of("rating stars score"), 1, 5, 1),
    (kinds_of("age"), 18, 80, 0),
    (kinds_of("year"), 1995, 2026, 0),
    (kinds_of("month"), 1, 12, 0),
    (kinds_of("day"), 1, 28, 0),
    (kinds_of("hour"), 0, 23, 0),
    (kinds_of("minute minutes duration runtime"), 0, 59, 0),
    (kinds_of("percent percentage discount rate"), 0, 50, 1),
    (kinds_of("lat latitude"), -60, 60, 4),
    (kinds_of("lon lng long longitude"), -170, 170, 4),
    (kinds_of("weight height width length depth size"), 1, 100, 1),
    (kinds_of("temperature"), -10, 35, 1),
    (kinds_of("priority level rank position order"), 1, 5, 0),
)


def range_for(name: str) -> tuple[float, float, int]:
    """Least, greatest and digits of a number, by the property's name."""
    key = plain(name)
    for names, low, high, digits in _NUMBERS:
        if key in names or any(len(word) > 3 and key.endswith(word) for word in names):
            return low, high, digits
    return 1, 500, 0


_FUTURE = kinds_of("due dueat duedate deadline end enddate endsat expires expiresat expiry scheduled delivery checkout")
_PAST = kinds_of("birthday birthdate dateofbirth dob")


def moment(name: str, rng: random.Random, now: datetime) -> datetime:
    """A time by the property's name: mostly within the last half year, deadlines ahead, birthdays long ago."""
    key = plain(name)
    if key in _PAST:
        return now - timedelta(days=rng.randint(20 * 365, 60 * 365))
    shift = timedelta(days=rng.randint(1, 180), minutes=rng.randint(0, 1440))
    return now + shift / 2 if key in _FUTURE or key.startswith("end") else now - shift
