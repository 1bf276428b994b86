import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from samples import ENVIRONMENTS, make_item, make_items, make_spec, make_summary

from trajsmith.export import DatasetWriter, Statistics, build_card, build_row
from trajsmith.export.lossless_json import LosslessEncoder, encode_lossless
from trajsmith.records import InputError, RecordDropped, RunError

SPECS = {name: make_spec(name) for name in ENVIRONMENTS}
ROOT = Path(__file__).parents[2]


def rows_of(count: int) -> list[dict]:
    return [build_row(*item, SPECS[item[1].environment]) for item in make_items(count)]


def write(directory: Path, rows, **settings) -> None:
    with DatasetWriter(directory, **settings) as writer:
        for row in rows:
            writer.write(row)


def load(directory: Path, cache: Path):
    from datasets import load_dataset

    return load_dataset(str(directory), cache_dir=str(cache))


def files(directory: Path) -> dict[str, bytes]:
    return {str(path.relative_to(directory)): path.read_bytes() for path in directory.rglob("*") if path.is_file()}


def test_round_trip_is_exact(tmp_path):
    rows = rows_of(23)
    rows[0] = {**rows[0], "tools": []}  # no tool at all
    rows[1]["verdict"]["rewards"]["odd"] = 0.9291547660501438  # comes back changed unless it is respelled
    write(tmp_path / "dataset", rows, rows_per_shard=10)
    loaded = load(tmp_path / "dataset", tmp_path / "cache")
    assert list(loaded) == ["train"]
    assert list(loaded["train"]) == rows
    names = sorted(path.name for path in (tmp_path / "dataset" / "data").iterdir())
    assert names == [f"train-{number:05d}-of-00003.parquet" for number in range(3)]


def test_attached_card_does_not_disturb_loading(tmp_path):
    rows = rows_of(2)
    with DatasetWriter(tmp_path / "dataset") as writer:
        for row in rows:
            writer.write(row)
        writer.attach("README.md", build_card(make_summary(), list(SPECS.values()), Statistics()))
    assert list(load(tmp_path / "dataset", tmp_path / "cache")["train"]) == rows


def test_export_without_rows_is_an_error_and_changes_nothing(tmp_path):
    write(tmp_path / "dataset", rows_of(1))
    before = files(tmp_path)
    with pytest.raises(RunError, match="no row to export"):
        write(tmp_path / "dataset", [])
    assert files(tmp_path) == before


def test_equal_rows_give_equal_bytes(tmp_path):
    write(tmp_path / "one", rows_of(12), rows_per_shard=5)
    write(tmp_path / "two", rows_of(12), rows_per_shard=5)
    assert files(tmp_path / "one") == files(tmp_path / "two")


def test_exception_keeps_the_old_dataset(tmp_path):
    write(tmp_path / "dataset", rows_of(2))
    before = files(tmp_path)
    with pytest.raises(ZeroDivisionError), DatasetWriter(tmp_path / "dataset", rows_per_shard=1) as writer:
        writer.write(rows_of(1)[0])
        raise ZeroDivisionError
    assert files(tmp_path) == before


def test_killed_export_leaves_no_dataset(tmp_path):
    code = (
        "import os, signal, sys\n"
        "from test_dataset import rows_of\nfrom trajsmith.export import DatasetWriter\n"
        f"writer = DatasetWriter({str(tmp_path / 'dataset')!r}, rows_per_shard=2).__enter__()\n"
        "for row in rows_of(5): writer.write(row)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    path = os.pathsep.join((str(ROOT), str(Path(__file__).parent)))
    died = subprocess.run([sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": path}, check=False)
    assert died.returncode == -signal.SIGKILL
    assert not (tmp_path / "dataset").exists()
    write(tmp_path / "dataset", rows_of(3))
    assert [path.name for path in tmp_path.iterdir()] == ["dataset"]


def test_new_export_replaces_the_old_one(tmp_path):
    write(tmp_path / "dataset", rows_of(5), rows_per_shard=1)
    write(tmp_path / "dataset", rows_of(1))
    assert list(files(tmp_path)) == ["dataset/data/train-00000-of-00001.parquet"]


def test_export_killed_between_the_renames_is_undone(tmp_path):
    write(tmp_path / ".dataset.old", rows_of(1))
    with pytest.raises(KeyError), DatasetWriter(tmp_path / "dataset"):
        raise KeyError
    assert [path.name for path in tmp_path.iterdir()] == ["dataset"]


@pytest.mark.parametrize("foreign", ["thesis.txt", "data/notes.csv", "run.py", ".git/HEAD", "plots/raw.csv"])
def test_foreign_folder_is_not_replaced(tmp_path, foreign):
    write(tmp_path / "dataset", rows_of(1))
    path = tmp_path / "dataset" / foreign
    path.parent.mkdir(exist_ok=True)
    path.write_text("years of work")
    with (
        pytest.raises(RunError, match=f"holds {foreign}, which no export writes"),
        DatasetWriter(tmp_path / "dataset"),
    ):
        pass
    assert path.read_text() == "years of work"


def test_row_groups_stay_small(tmp_path):
    import pyarrow.parquet

    row = rows_of(1)[0]
    write(tmp_path / "dataset", (row for _ in range(250)))
    (path,) = (tmp_path / "dataset" / "data").iterdir()
    assert pyarrow.parquet.ParquetFile(path).metadata.num_row_groups == 3


def test_other_columns_are_refused(tmp_path):
    with pytest.raises(InputError, match="extra"), DatasetWriter(tmp_path / "dataset") as writer:
        writer.write({**rows_of(1)[0], "extra": 1})


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        pytest.param(float("nan"), "number_not_exact", id="nan"),
        pytest.param(float("inf"), "number_not_exact", id="infinite"),
        pytest.param(2**70, "not_json", id="integer-too-large"),
        pytest.param({1, 2}, "not_json", id="set"),
    ],
)
def test_values_that_would_change_are_refused(tmp_path, value, reason):
    row = build_row(*make_item(), SPECS["shop"])
    row["messages"][2]["tool_calls"][0]["function"]["arguments"]["x"] = value
    with DatasetWriter(tmp_path / "dataset") as writer:
        with pytest.raises(RecordDropped) as dropped:
            writer.write(row)
        writer.write(rows_of(1)[0])
    assert dropped.value.reason == reason
    assert writer.rows == 1


def test_a_value_that_is_remembered_does_not_hide_a_bad_one():
    from datasets import Json

    exact = LosslessEncoder(Json().decode_example)
    assert exact.items([{"x": None}]) == exact.items([{"x": None}]) == ['{"x":null}']
    with pytest.raises(RecordDropped, match="number_not_exact"):
        exact.items([{"x": float("nan")}])  # its bytes are those of null
    assert exact.value([1.84]) == exact.value([1.84]) != "[1.84]"


def test_memory_of_the_encoder_is_bounded():
    from datasets import Json

    exact = LosslessEncoder(Json().decode_example)
    tools = [{"name": "pay"}]
    texts = exact.items(tools)
    for number in range(5000):
        assert exact.items([{"n": number}]) == [f'{{"n":{number}}}']
        assert exact.items(tools) is texts, "what comes again stays"
    assert len(exact._lists) <= 256


def test_texts_and_small_integers_come_back_without_a_look():
    from datasets import Json

    text = "".join(chr(point) for point in range(0x30000) if not 0xD800 <= point < 0xE000)
    value = {text: [text, "\\", '"', "a\\", None, True, 2**53 - 1, -(2**53) + 1, []]}
    decoded = []

    def decode(text: str) -> object:
        decoded.append(text)
        return Json().decode_example(text)

    assert Json().decode_example(LosslessEncoder(decode).value(value)) == value
    assert decoded == []


def test_each_number_is_tried_once():
    from datasets import Json

    decoded = []

    def decode(text: str) -> object:
        decoded.append(text)
        return Json().decode_example(text)

    exact = LosslessEncoder(decode)
    assert [exact.value({"price": 0.5}) for _ in range(9)] == ['{"price":0.5}'] * 9
    assert decoded == ["0.5"]
    for number in (0.0, -0.0, 1.84, 1e300, 2**53, 2**64 - 1, -(2**63)):
        read = Json().decode_example(exact.value([number]))[0]
        assert (read, type(read)) == (number, type(number))


def test_numbers_are_respelled_until_they_are_exact():
    from datasets import Json

    decode, rng = Json().decode_example, random.Random(0)
    numbers = [rng.random() for _ in range(5000)]
    numbers += [rng.uniform(-180, 180) for _ in range(5000)] + [cents / 100 for cents in range(2000)]
    assert decode("1.84") != 1.84, "datasets reads exactly now: encode() can go"
    assert decode(encode_lossless({"numbers": numbers}, decode))["numbers"] == numbers
