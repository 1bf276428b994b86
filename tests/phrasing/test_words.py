"""Words of names: splitting, singular and plural, articles, stems."""

import pytest

from trajsmith.phrasing.near_duplicates import NearDuplicateIndex, find_repeats, hash_shingles
from trajsmith.phrasing.words import (
    normalize_name,
    pluralize,
    singularize,
    split_identifier,
    stem,
    to_snake_case,
    with_article,
)


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        pytest.param("customerID", ("customer", "id"), id="camel"),
        pytest.param("HTTPServerName", ("http", "server", "name"), id="acronym"),
        pytest.param("order-items_v2", ("order", "items", "v2"), id="separators"),
        pytest.param("$.a", ("a",), id="path"),
    ],
)
def test_names_split_at_humps_and_separators(name, parts):
    assert split_identifier(name) == parts
    assert to_snake_case(name) == "_".join(parts)
    assert normalize_name(name) == "".join(parts)


@pytest.mark.parametrize(
    ("singular", "plural"),
    [
        ("order_item", "order_items"), ("city", "cities"), ("box", "boxes"), ("status", "statuses"),
        ("movie", "movies"), ("person", "people"), ("address", "addresses"), ("day", "days"),
        ("news", "news"), ("cache", "caches"),
    ],
)  # fmt: skip
def test_singular_and_plural_are_inverse(singular, plural):
    assert singularize(plural) == singular
    assert pluralize(singular) == plural
    assert singularize(singular) == singular


@pytest.mark.parametrize("word", ["radius", "analysis", "previous", "sms", "its", "glass", "data"])
def test_words_that_only_look_like_plurals_stay(word):
    assert singularize(word) == word


@pytest.mark.parametrize(
    ("noun", "words"),
    [
        ("order_item", "an order item"), ("user", "a user"), ("hour", "an hour"), ("unit", "a unit"), ("url", "a url"),
        ("unidentified_object", "an unidentified object"), ("house", "a house"), ("sms", "an sms"),
    ],
)  # fmt: skip
def test_articles_follow_the_sound(noun, words):
    assert with_article(noun) == words


@pytest.mark.parametrize(
    ("word", "root"), [("Searches", "search"), ("planned", "plan"), ("creating", "create"), ("movies", "movie")]
)
def test_stems_are_words(word, root):
    assert stem(word) == root


def test_index_returns_the_earliest_similar_entry():
    index = NearDuplicateIndex(0.6)
    text = "please cancel the second order of last week because it came too late for us"
    assert index.add("a", hash_shingles(text)) is None
    assert index.add("b", hash_shingles(f"{text} again")) == "a"
    assert index.find(hash_shingles("a text about something else entirely")) is None
    assert find_repeats([text, "another text of a few words", f"{text} again"]) == {2: 0}
