"""The Arrow schema that is built without `datasets` is the one that `datasets` builds."""

import subprocess
import sys

import pytest

from trajsmith.export import FORMATS
from trajsmith.export.columns import Columns, RowEncoder, build_features, build_schema

FORMAT_COLUMNS = {name: FORMATS.get(name).columns for name in FORMATS.names()}
WITH_COLUMNS = {name: columns for name, columns in FORMAT_COLUMNS.items() if columns is not None}
NESTED: Columns = {"chat": "list of chat", "inner": {"a": "json", "b": "int64", "c": {"d": "list of json"}}}


@pytest.mark.parametrize("columns", [*WITH_COLUMNS.values(), NESTED], ids=[*WITH_COLUMNS, "nested"])
def test_the_schema_is_that_of_datasets(columns: Columns) -> None:
    expected = build_features(columns).arrow_schema
    assert build_schema(columns).equals(expected, check_metadata=True)


def test_rows_are_encoded_without_datasets() -> None:
    code = (
        "import sys\nfrom trajsmith.export.columns import RowEncoder\n"
        "RowEncoder({'a': 'json', 'b': 'list of json'}).table([{'a': '1', 'b': ['2']}])\n"
        "print('datasets' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n", "the import of datasets costs 0.5 s and 100 MB"


def test_the_decoder_is_that_of_datasets() -> None:
    from datasets import Json
    from pandas.io.json import ujson_loads

    texts = ["1.84", "[1e-7, 0.1, 12345678901234567890]", '{"a\\u0000": "\\ud83d\\ude00"}', "-0.0"]
    assert [ujson_loads(text) for text in texts] == [Json().decode_example(text) for text in texts]


def test_a_list_is_one_text_or_a_text_for_each_item():
    """Equal lists of both kinds in one row are not taken for each other."""
    row = {"one": [], "each": [], "again": []}
    encoder = RowEncoder({"one": "json", "each": "list of json", "again": "json"})
    cells = encoder.cells(row)
    assert cells == {"one": "[]", "each": [], "again": "[]"}
    assert encoder.table([cells]).num_rows == 1
