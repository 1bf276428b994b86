"""Material that the seed generators of the library share: people, addresses, dates. All of it is invented."""

import functools
import random
from datetime import date, datetime, timedelta
from typing import NamedTuple

FIRST_NAMES = (
    "Amara",
    "Bruno",
    "Chen",
    "Dilan",
    "Elena",
    "Farid",
    "Greta",
    "Hiro",
    "Ingrid",
    "Jamal",
    "Keiko",
    "Lars",
    "Marisol",
    "Nadia",
    "Oskar",
    "Priya",
    "Quentin",
    "Rosa",
    "Samir",
    "Tessa",
    "Umar",
    "Vera",
    "Wanda",
    "Xavier",
    "Yara",
    "Zoran",
    "Anton",
    "Beatriz",
    "Carlos",
    "Daphne",
    "Emre",
    "Fiona",
    "Gustav",
    "Hannah",
    "Ivo",
    "Jasmin",
    "Kofi",
    "Leila",
    "Mateo",
    "Nora",
    "Olivia",
    "Pavel",
    "Ruth",
    "Stefan",
    "Talia",
    "Ursula",
    "Viktor",
    "Wei",
    "Yusuf",
    "Zita",
)
LAST_NAMES = (
    "Abbott",
    "Bergstrom",
    "Castillo",
    "Dubois",
    "Eriksen",
    "Fischer",
    "Garcia",
    "Haddad",
    "Ito",
    "Jansen",
    "Kowalski",
    "Lindqvist",
    "Moreau",
    "Novak",
    "Okafor",
    "Petrov",
    "Quinn",
    "Rossi",
    "Schmidt",
    "Tanaka",
    "Ueda",
    "Vargas",
    "Weber",
    "Xu",
    "Yilmaz",
    "Zhang",
    "Andersen",
    "Barros",
    "Conti",
    "Delgado",
    "Egan",
    "Farouk",
    "Greenwood",
    "Hoffmann",
    "Iqbal",
    "Jovanovic",
    "Klein",
    "Larsen",
    "Mbeki",
    "Nakamura",
    "Olsen",
    "Pereira",
    "Reyes",
    "Santos",
    "Takahashi",
    "Urban",
    "Virtanen",
    "Walsh",
    "Yamada",
    "Zimmer",
)
STREETS = (
    "Alder Lane",
    "Birch Street",
    "Canal Road",
    "Dover Avenue",
    "Elm Court",
    "Foundry Street",
    "Garden Row",
    "Harbour Road",
    "Ivy Close",
    "Juniper Way",
    "Kiln Street",
    "Lime Grove",
    "Mill Lane",
    "North Parade",
    "Orchard Road",
    "Park View",
    "Quarry Hill",
    "River Street",
    "Station Road",
    "Tower Street",
    "Union Square",
    "Valley Road",
    "Water Lane",
    "Yew Tree Drive",
)
CITIES = (
    ("Ashford", "AS1"),
    ("Brightwater", "BW2"),
    ("Carrick", "CK4"),
    ("Dunmore", "DM3"),
    ("Eastleigh", "EL5"),
    ("Fairhaven", "FH1"),
    ("Glenrock", "GR7"),
    ("Hartwell", "HW2"),
    ("Kingsport", "KP9"),
    ("Larkhill", "LH6"),
    ("Millbrook", "MB8"),
    ("Northgate", "NG3"),
)


class Person(NamedTuple):
    """A made-up person; `email` is unique within one call of `people`."""

    first: str
    last: str
    email: str
    phone: str

    @property
    def name(self) -> str:
        return f"{self.first} {self.last}"


@functools.cache
def _list_names() -> list[tuple[str, str]]:
    return [(first, last) for first in FIRST_NAMES for last in LAST_NAMES]


def people(rng: random.Random, count: int) -> list[Person]:
    """`count` different people with different names as long as names last, and always different emails."""
    pairs = _list_names()
    chosen = rng.sample(pairs, count) if count <= len(pairs) else rng.choices(pairs, k=count)
    persons = []
    for number, (first, last) in enumerate(chosen):
        suffix = "" if count <= len(pairs) else str(number)
        phone = f"+44 7{rng.randrange(100, 999)} {rng.randrange(100000, 999999)}"
        persons.append(Person(first, last, f"{first}.{last}{suffix}@example.com".lower(), phone))
    return persons


def street_address(rng: random.Random) -> tuple[str, str, str]:
    """Street with number, city, postal code."""
    city, prefix = rng.choice(CITIES)
    return (
        f"{rng.randrange(1, 180)} {rng.choice(STREETS)}",
        city,
        f"{prefix} {rng.randrange(1, 9)}{rng.choice('ABDEFGH')}{rng.choice('JLNPQR')}",
    )


def moment_before(rng: random.Random, now: datetime, days: int) -> datetime:
    """A moment up to `days` before `now`, on a full minute."""
    return now - timedelta(minutes=rng.randrange(30, days * 24 * 60))


def day_after(rng: random.Random, now: datetime, days: int) -> date:
    """A date from tomorrow to `days` after `now`."""
    return now.date() + timedelta(days=rng.randrange(1, days + 1))
