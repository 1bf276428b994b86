"""Which parameters a person fills by heart, and which only a list shows, whatever the names of the outputs.

A look-up of the server that requires a value of the same name had it from the user: `search_flights(origin)` says who
knows the `origin` of `book_flight`. Codes that were sent to a person, and what a login asks for, are theirs as well.
"""

from typing import Any

import numpy as np

from trajsmith.toolgraph.candidate_pairs import KIND, contains_any_word
from trajsmith.toolgraph.endpoint_table import EndpointSide, EndpointTable
from trajsmith.toolgraph.lexicon import ONESELF, VERB_CLASSES, stem_words
from trajsmith.toolgraph.promised_outputs import PERSONAL

READ = VERB_CLASSES.index("read")
LOGIN = stem_words("login logon signin authenticate")
"""What such a tool asks for is known to who logs in."""
SEEKING = stem_words("search find lookup look query browse")
"""Verbs of tools that are asked with a name to learn more."""
HELD = frozenset(stem_words("verification otp pin cvv passport license licence plate"))
"""Words of codes that a person was sent, or has on a document."""
LISTED = frozenset(stem_words("price cost fare departure depart arrival arrive"))
"""Words of facts that a timetable or a price list says."""
_SECRETS = frozenset(stem_words("encryption api private secret license"))


def is_asked_by_lookup(table: EndpointTable) -> Any:
    """Return bool [parameters]: another tool, a look-up of the same server, requires a parameter of that name."""
    side = table.parameters
    key = side.name_key * np.int64(1_000_003) + table.server[side.tool]
    looks = side.flags["required"] & (table.verb[side.tool] == READ)
    known, place = np.unique(key, return_inverse=True)
    number = np.bincount(place.reshape(-1), weights=looks, minlength=len(known))
    return number[place.reshape(-1)] - looks > 0


def is_held(side: EndpointSide) -> Any:
    """Return bool [parameters]: a code that a person was sent, or has on a document: verification_code."""
    return np.array([bool(HELD & set(end.own)) and end.own[-1] != "id" for end in side.endpoints], bool)


def is_listed(table: EndpointTable) -> Any:
    """Return bool [parameters]: a fact of one of the things that a look-up of the server shows: price, departure."""
    side, looks = table.parameters, np.zeros(int(table.server.max(initial=-1)) + 1, bool)
    looks[table.server[table.verb == READ]] = True
    fact = np.array([bool(LISTED & set(end.own)) for end in side.endpoints], bool)
    return fact & looks[table.server[side.tool]]


def is_secret_key(side: EndpointSide) -> Any:
    """Return bool [parameters]: encryption_key, api_key: who calls has it."""
    return np.array([end.own[-1:] == ("key",) and bool(_SECRETS & set(end.own)) for end in side.endpoints], bool)


def finds_persons(table: EndpointTable) -> Any:
    """Return bool [servers]: a look-up finds the person who asks by what they know: a name, an address, a number."""
    side, asks = table.parameters, np.zeros(len(table.tools), bool)
    asks[side.tool[(side.kinds & (PERSONAL | KIND["person"] | KIND["name"])) > 0]] = True
    ids = np.bincount(side.tool, side.flags["identifies"] & side.flags["required"], len(table.tools))
    person = contains_any_word(table, stem_words(" ".join(sorted(ONESELF))))
    finders = asks & (ids == 0) & person & (table.verb == READ)
    servers = np.zeros(int(table.server.max(initial=-1)) + 1, bool)
    servers[table.server[finders]] = True
    return servers
