"""What things are called goes by what they are: an event is no steel bottle."""

import random

import pytest

from trajsmith.environments.adapters.openapi import vocabulary
from trajsmith.environments.adapters.openapi.vocabulary import invent_person, invent_text


def made(name, noun):
    """Everything that the name may be."""
    found = set()
    for seed in range(60):
        rng = random.Random(seed)
        found.add(invent_text(name, noun, rng, invent_person(rng, 1)))
    return found


@pytest.mark.parametrize(
    ("name", "noun", "pool"),
    [
        ("name", "product", vocabulary.THINGS),
        ("name", "special_event", vocabulary.EVENTS),
        ("eventName", "ticket", vocabulary.EVENTS),
        ("name", "train stations", vocabulary.SITES),
        ("name", "file", vocabulary.DOCUMENTS),
        ("name", "organization", vocabulary.COMPANIES),
        ("title", "movie", vocabulary.WORKS),
        ("title", "issue", vocabulary.TOPICS),
        ("name", "pipeline", vocabulary.NEUTRAL),
    ],
)
def test_names_go_by_the_entity(name, noun, pool):
    assert made(name, noun) <= set(pool)


def test_only_goods_are_described_as_goods():
    assert made("description", "special_event").isdisjoint(vocabulary.GOODS)
    assert made("description", "product") & set(vocabulary.GOODS)
    assert all(" " in name for name in made("name", "customer"))
