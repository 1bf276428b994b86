"""Many things in one noun phrase: what their names share is said once."""

import pytest

from trajsmith.phrasing.phrasebook import EntityPhrases
from trajsmith.usersim.batch_texts import join_names, put_names

ORDER = EntityPhrases(noun="order", plural="orders")


@pytest.mark.parametrize(
    ("names", "joined"),
    [
        (["the order from 3 May", "the order from 8 May"], "the orders from 3 May and 8 May"),
        (['the "Film night" order', 'the "Picnic" order'], 'the "Film night" and "Picnic" orders'),
        (["my order at Old Mill Elm", "my order at Old Mill Ash"], "my orders at Old Mill Elm and Old Mill Ash"),
        (["the order of the desk", "the order of the lamp"], "the orders of the desk and the lamp"),
        (["the kitchen", "the hall", "the bath"], "the kitchen, the hall and the bath"),
    ],
)
def test_what_names_share_is_said_once(names, joined):
    assert join_names(names, ORDER) == joined


@pytest.mark.parametrize(
    ("action", "text"),
    [
        ("cancel all of these orders", "cancel A and B"),
        ("put all of these in the trash, which ends their links", "put A and B in the trash, which ends their links"),
        ("cancel all of these and tell whoever is invited", "cancel A and B and tell whoever is invited"),
        ("clear all of these from your calendar", "clear A and B from your calendar"),
        ("cancel all of these parcels", "cancel all of these parcels (A and B)"),
    ],
)
def test_names_take_the_place_of_these_things(action, text):
    assert put_names(action, "A and B", ORDER) == text
