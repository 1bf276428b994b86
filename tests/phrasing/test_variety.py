"""Variety of language: what counts as the same sentence once values are masked."""

import pytest

from trajsmith.phrasing.variety import (
    collect_values,
    compute_distinct,
    compute_shared_skeletons,
    mask_values,
    split_skeletons,
)


def test_values_are_masked():
    values = collect_values([{"result": [{"name": "Riverside Gym", "amount": 29.0, "next_on": "2026-08-10"}]}])
    text = 'Riverside Gym gets £29.00 on 10 August, booked as "gym fee" under TRK500104 (mail to a@b.example).'
    assert mask_values(text, values) == "<v> gets <v> on <v>, booked as <v> under <v> (mail to <v>)."
    assert mask_values("Oakley, Riverside Gym and 3 more", values) == "oakley, <v> more"


def test_one_template_with_other_values_is_one_skeleton():
    texts = [mask_values(f"I've sent £{amount}.00 to you. Thanks!") for amount in range(10)]
    assert compute_shared_skeletons(texts) == 1.0
    assert compute_distinct(texts) == pytest.approx(3 / 30, abs=0.2)
    assert split_skeletons(texts[0]) == ["i've sent <v> to you", "thanks"]


def test_rows_of_a_list_count_once_however_they_are_joined():
    """A list is data: its length says nothing of the variety of language."""
    rooms = {"kitchen", "living room", "attic"}
    one = mask_values("It's the kitchen at 19 degrees.", rooms)
    assert (
        mask_values("It's the kitchen at 19 degrees, the living room at 20 degrees and the attic at 21 degrees.", rooms)
        == one
    )
    assert (
        mask_values("It's the kitchen (19 degrees) and the attic (17 degrees).", rooms) == "it's the <v> (<v> degrees)."
    )


def test_different_sentences_share_nothing():
    texts = ["the card is stopped.", "nobody can pay with it any more.", "your balance stays as it was."]
    assert compute_shared_skeletons(texts) == 0.0
    assert compute_distinct(texts) == 1.0


def test_only_the_first_tokens_count():
    texts = ["one two three four"] * 100
    assert compute_distinct(texts, tokens=4) == 1.0
    assert compute_distinct(texts, tokens=400) == pytest.approx(0.01)
    assert compute_distinct([]) == 0.0
