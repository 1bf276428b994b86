"""Near-duplicates and rows of benchmarks: what is found, what is not, and what is named."""

from types import SimpleNamespace

import orjson
import pytest

from trajsmith.records import CallEvent, InputError, Message, ToolSpec
from trajsmith.verify.decontaminate import Decontaminator
from trajsmith.verify.duplicates import DuplicateFilter, DuplicateSettings, compute_features, split_words

TEXT = "Please move the delivery of my walnut desk to the second week of March because we are away until then"
TOOLS = [
    ToolSpec(server="shop", name=name, inputSchema={"type": "object", "properties": {"order_id": {"type": "string"}}})
    for name in ("find_order", "move_delivery", "cancel_order", "track_order")
]
CALLS = [
    ("find_order", {"order_id": "W10032"}),
    ("move_delivery", {"order_id": "W10032"}),
    ("track_order", {"order_id": "W10032"}),
]


def play(name, text, calls=CALLS, variant="base", environment="shop"):
    """A task and a trajectory, as far as anybody here looks at them."""
    events = [
        CallEvent(actor="assistant", tool=tool, arguments=arguments, ok=True, result_hash="0", message=2)
        for tool, arguments in calls
    ]
    messages = [Message(role="system", content="s"), Message(role="user", content=text)]
    task = SimpleNamespace(variant=variant, exposed_tools=tuple(tool.name for tool in TOOLS))
    return task, SimpleNamespace(id=name, environment=environment, messages=messages, events=events)


def test_a_repeated_row_is_dropped_with_its_pair_named():
    index = DuplicateFilter(DuplicateSettings(threshold=0.8))
    assert index.add(*play("first", TEXT)) is None
    assert index.add(*play("second", TEXT)) == "first"
    assert index.add(*play("third", TEXT.replace("Please move", "Please do move"))) == "first"


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(
            play("b", "I would like to know who sold me this chair, and when it comes back into stock"), id="text"
        ),
        pytest.param(play("b", TEXT, [("cancel_order", {"order_id": f"W2{n}"}) for n in range(9)]), id="calls"),
        pytest.param(play("b", TEXT, variant="tool_failure"), id="variant"),
        pytest.param(play("b", TEXT, environment="store"), id="environment"),
    ],
)
def test_what_differs_is_kept(other):
    index = DuplicateFilter(DuplicateSettings(threshold=0.8))
    assert index.add(*play("a", TEXT)) is None and index.add(*other) is None


def test_the_same_rows_in_the_same_order_give_the_same_drops():
    rows = [play(f"t{n}", TEXT if n % 3 else f"{TEXT} and number {n}, {n * 7} of {n * 13} in all") for n in range(40)]
    runs = [[index.add(*row) for row in rows] for index in (DuplicateFilter(DuplicateSettings()) for _ in range(2))]
    assert runs[0] == runs[1] and any(runs[0])


def test_features_hold_words_calls_and_entities():
    _, trajectory = play("a", "Cancel order W10032, please")
    assert {b"cancel order w10032", b"\x01find_order>move_delivery", b"\x02W10032"} <= compute_features(trajectory)
    assert split_words("Write to a.b@example.com, it's 7.50") == ["write", "to", "a.b@example.com", "it's", "7.50"]


def bench(tmp_path, *rows):
    path = tmp_path / "bench.jsonl"
    path.write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in rows))
    return Decontaminator([path])


OTHER = "Something else altogether, nobody has ever asked for that here"


@pytest.mark.parametrize(
    ("row", "kind"),
    [
        pytest.param({"text": f"Hello. {TEXT}. Thanks!"}, "text", id="text"),
        pytest.param(
            {"text": OTHER, "calls": [{"name": tool, "arguments": arguments} for tool, arguments in CALLS]},
            "calls",
            id="calls",
        ),
        pytest.param({"text": OTHER, "tools": [tool.name for tool in TOOLS]}, "tools", id="tool names"),
        pytest.param({"text": OTHER, "tools": [tool.as_function() for tool in TOOLS]}, "tools", id="tool schemas"),
    ],
)
def test_a_row_that_stands_in_a_benchmark_is_matched_and_named(tmp_path, row, kind):
    found = bench(tmp_path, row)
    match = found.match(*play("a", TEXT), TOOLS)
    assert match is not None and match[0] == f"{kind} of bench.jsonl"
    assert f"dropped {kind} 1" in found.report()


def test_the_people_of_a_benchmark_are_recognised(tmp_path):
    values = ["W10032", "anna.berg@example.com", "Anna Berg", "TRK500234"]
    calls = [{"name": f"other_{n}", "arguments": {"value": value}} for n, value in enumerate(values)]
    ours = [(f"mine_{n}", {"key": value}) for n, value in enumerate(values)]
    match = bench(tmp_path, {"text": OTHER, "calls": calls}).match(*play("a", TEXT, ours), ())
    assert match is not None and match[0] == "entities of bench.jsonl"


def test_a_row_of_our_own_is_not_matched(tmp_path):
    found = bench(tmp_path, {"text": OTHER, "tools": ["find_order", "pay", "ship", "refund", "greet"]})
    assert found.match(*play("a", TEXT), TOOLS) is None
    assert "dropped nothing" in found.report()


def test_a_file_with_nothing_to_compare_is_an_error(tmp_path):
    path = tmp_path / "empty.jsonl"
    path.write_text("")
    with pytest.raises(InputError):
        Decontaminator([path])
    with pytest.raises(InputError, match=r"missing\.jsonl cannot be read"):
        Decontaminator([tmp_path / "missing.jsonl"])
