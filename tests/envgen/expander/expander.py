"""A scripted model that extends a list of domains, mistakes included: the script of a server, or of a test.

Of each answer some domains are repeated, named otherwise or without a state; each seventh answer is prose.
"""

import json
import re

THINGS = (
    "bicycle", "piano", "orchid", "boat", "tent", "camera", "violin", "kayak", "drone", "loom", "telescope",
    "horse", "beehive", "vineyard", "greenhouse", "kiln", "organ", "sailplane", "caravan", "aquarium", "pottery",
    "chess", "fencing", "archery", "ballet", "puppet", "mosaic", "quilt", "forge", "sauna", "lighthouse", "canal",
    "orchard", "meadow", "quarry", "glacier", "harbour", "tram", "ferry", "balloon",
)  # fmt: skip
PLACES = {
    "rental": "rents out {0} units: bookings, deposits, returns and late fees",
    "repair": "mends {0} parts: work orders, estimates, spares and pickups",
    "club": "runs a {0} club: memberships, duties, sessions and dues",
    "auction": "sells {0} lots: bids, reserves, invoices and consignments",
    "school": "teaches {0} pupils: courses, teachers, grades and tuition",
    "registry": "registers {0} owners: titles, transfers, plates and inspections",
    "insurance": "insures {0} holders: policies, claims, premiums and payouts",
    "museum": "shows {0} exhibits: tickets, tours, loans and donors",
    "festival": "stages {0} events: stalls, volunteers, permits and schedules",
    "laboratory": "tests {0} samples: requests, results, batches and certificates",
    "shop": "sells {0} goods: orders, baskets, refunds and vouchers",
    "transport": "moves {0} freight: shipments, routes, drivers and customs",
    "storage": "keeps {0} items: units, keys, contracts and inventories",
    "breeding": "breeds {0} lines: pedigrees, matings, litters and reservations",
    "tournament": "holds {0} matches: brackets, referees, scores and protests",
    "cooperative": "shares {0} equity: shares, ballots, dividends and meetings",
    "charity": "funds {0} projects: donations, grants, pledges and reports",
    "forum": "hosts {0} threads: posts, moderators, bans and badges",
    "survey": "surveys {0} sites: visits, readings, instruments and maps",
    "archive": "archives {0} records: boxes, readers, requests and scans",
    "clinic": "treats {0} injuries: patients, appointments, referrals and prescriptions",
    "factory": "builds {0} models: production lines, shifts, defects and suppliers",
    "studio": "records {0} works: takes, rooms, artists and royalties",
    "safety": "inspects {0} hazards: incidents, audits, fines and trainings",
    "tourism": "guides {0} visitors: itineraries, guides, vouchers and cancellations",
    "library": "lends {0} copies: holds, renewals, reminders and shelves",
}
ALL = [
    {"name": f"{thing} {place}", "summary": f"A service that {text.format(thing)}.", "category": place}
    for place, text in PLACES.items()
    for thing in THINGS
]
STATELESS = {"name": "{0} trivia", "summary": "Answers questions about {0} and writes poems.", "category": "talk"}
_round = {"number": 0}


def answer(request):
    """Return what the model says to a request as it stands on the wire."""
    system, asked = request["messages"][0]["content"], request["messages"][1]["content"]
    if system.startswith("You extend a list"):
        _round["number"] += 1
        return propose(_round["number"], asked)
    if system.startswith("You judge whether services"):
        numbered = re.findall(r"^(\d+)\. (.*)$", asked, re.MULTILINE)
        judged = [{"number": int(n), "stateful": "trivia" not in text, "reason": "it talks"} for n, text in numbered]
        return json.dumps({"domains": judged})
    return "ready"


def propose(number, asked):
    """Return the answer of one round; a stride through all combinations mixes the categories."""
    if number % 7 == 0:
        return "Here are some ideas for services that you may like."
    count = int(re.findall(r"^Propose (\d+) new", asked, re.MULTILINE)[-1])
    start = (number - 1) * count
    domains = [ALL[(start + offset) * 271 % len(ALL)] for offset in range(count)]
    again = {**domains[0], "name": f"the {domains[0]['name']} desk"}
    talk = {key: text.format(THINGS[number % len(THINGS)]) for key, text in STATELESS.items()}
    return json.dumps({"domains": [*domains, domains[1], again, talk]})
