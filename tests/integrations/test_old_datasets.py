"""The dataset with its JSON as text is read by the `datasets` of trainers that know no JSON columns."""

import orjson
import pytest
from other_side import run_script

from trajsmith.api.datasets import export_dataset
from trajsmith.api.runs import load_run
from trajsmith.export.formats.json_text import TEXT

pytestmark = pytest.mark.servers


def test_every_row_comes_back_equal(run, tmp_path, checked):
    import datasets

    export_dataset(load_run(run.path), out=tmp_path / "rows", format="trl")
    export_dataset(load_run(run.path), out=tmp_path / "text", format="json_text")
    loaded = datasets.load_dataset(str(tmp_path / "rows"), cache_dir=str(tmp_path / "cache"))
    rows = {row["id"]: row for split in loaded.values() for row in split}
    *results, about = run_script("datasets", "read_datasets.py", tmp_path / "text")
    assert len(results) == len(rows) > 5
    same = 0
    for result in results:
        decoded = {name: orjson.loads(value) if name in TEXT else value for name, value in result.items()}
        same += decoded == rows[result["id"]]
    checked("datasets", about["version"], "load_dataset of json_text", same, len(rows))
