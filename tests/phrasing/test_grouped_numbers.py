"""Numbers of sizes are written with their thousands apart."""

import pytest

from trajsmith.phrasing.languages import get_language, use_language
from trajsmith.phrasing.templates import render_phrase
from trajsmith.phrasing.value_formatting import is_value_mentioned


@pytest.mark.parametrize(
    ("size", "written"),
    [(9556.4, "9,556.4 MB"), (20000.0, "20,000 MB"), (0.3, "0.3 MB"), (353.0, "353 MB"), (None, "None MB")],
)
def test_thousands_stand_apart(size, written):
    said = render_phrase("{size|grouped} MB", {"size": size})
    assert said == written
    assert size is None or is_value_mentioned(said, size)


def test_german_marks_are_swapped():
    with use_language("de"):
        assert get_language().grammar.format_grouped(9556.4) == "9.556,4"
