"""Rows that begin alike in one sequence: the loss, gradients and batches of separate rows."""

import random
from array import array

import pytest

pytestmark = pytest.mark.train
for _needed in ("torch", "transformers", "trl"):
    pytest.importorskip(_needed, reason=f"{_needed} is missing: pip install -e '.[train]'")

PREFIX = tuple(range(10, 50))
"""Longer than what is worth sharing."""


def build_row(prefix, rest, silent=3):
    """Row of which the tokens after the prefix and some more are in the loss."""
    from trajsmith.train_sft.shared_prefix import build_label

    ids = [*prefix, *rest]
    mask = [index >= len(prefix) + silent for index in range(len(ids))]
    return build_label(ids, mask, 10_000)


ROWS = {
    "one_prefix": lambda: [build_row(PREFIX, [60 + i, 5, 6, 7 + i, 8, 9][: 4 + i]) for i in range(3)],
    "nested": lambda: [
        build_row((*PREFIX, *range(50, 90)), [1, 2, 3, 4, 5]),
        build_row((*PREFIX, *range(50, 90)), [2, 3, 4, 5, 6, 7]),
        build_row(PREFIX, [3, 4, 5, 6, 7]),
    ],
    "nothing_shared": lambda: [build_row([1, 2, 3], [4, 5, 6, 7]), build_row([9, 8], [4, 5, 6, 7])],
    "longer_than_a_block": lambda: [build_row(tuple(range(1, 91)) * 2, range(40 + i, 95)) for i in range(2)],
}


def build_model(kind="llama", **changes):
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    torch.manual_seed(0)
    values = {
        "vocab_size": 96, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 3, "num_attention_heads": 4,
        "num_key_value_heads": 2, "max_position_embeddings": 512, "pad_token_id": 0, "bos_token_id": 1,
        "eos_token_id": 2,
    }  # fmt: skip
    return AutoModelForCausalLM.from_config(AutoConfig.for_model(kind, **(values | changes)))


def compute_loss(model, ids, labels, **more):
    """Sum over the tokens in the loss."""
    import torch

    logits = model(torch.tensor([ids]), use_cache=False, **more).logits[0, :-1]
    return torch.nn.functional.cross_entropy(logits, torch.tensor(labels[1:]), ignore_index=-100, reduction="sum")


def collect_gradients(model):
    gradients = {name: weight.grad.clone() for name, weight in model.named_parameters()}
    model.zero_grad()
    return gradients


@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("kind", ["llama", "qwen3"])
def test_loss_and_gradients_are_those_of_separate_rows(kind, rows):
    import torch

    from trajsmith.train_sft.shared_prefix import collate_tree, lay_out_rows
    from trajsmith.train_sft.tree_attention import use_tree_attention

    model, listed = build_model(kind), ROWS[rows]()
    apart = sum(compute_loss(model, row.ids, row.labels) for row in listed)
    apart.backward()
    expected = collect_gradients(model)
    use_tree_attention(model, kind)
    batch = collate_tree([vars(lay_out_rows(listed))])
    assert batch["input_ids"].shape[1] % 64 == 0
    together = compute_loss(
        model, batch["input_ids"][0].tolist(), batch["labels"][0].tolist(), position_ids=batch["position_ids"]
    )
    together.backward()
    assert together.item() == pytest.approx(apart.item(), rel=1e-5)
    for name, gradient in collect_gradients(model).items():
        assert torch.allclose(gradient, expected[name], atol=1e-5, rtol=1e-4), name


def test_batches_of_many_lengths_have_products_of_few_shapes(monkeypatch):
    """Libraries of processors keep what they compiled for each shape, so that a long training would grow."""
    import torch

    from trajsmith.train_sft.shared_prefix import collate_tree, lay_out_rows
    from trajsmith.train_sft.tree_attention import use_tree_attention

    model, shapes, lengths, real = build_model(), set(), set(), torch.bmm
    use_tree_attention(model, "llama")

    def record(one, other):
        shapes.add((one.shape, other.shape, other.stride()))
        return real(one, other)

    monkeypatch.setattr(torch, "bmm", record)
    for shared in range(40, 80, 3):
        rows = [build_row(range(1, shared), range(shared - tail, shared)) for tail in (6, 11 + shared % 17)]
        batch = collate_tree([vars(lay_out_rows(rows))])
        lengths.add(batch["input_ids"].shape[1])
        compute_loss(
            model, batch["input_ids"][0].tolist(), batch["labels"][0].tolist(), position_ids=batch["position_ids"]
        ).backward()
    assert lengths == {64, 128}
    assert len(shapes) <= 3 * 8, "three kinds of product, each with few lengths of queries and keys"


def test_what_is_shared_is_laid_out_once_at_every_depth():
    from trajsmith.train_sft.shared_prefix import lay_out_rows

    batch = lay_out_rows(ROWS["nested"]())
    assert len(batch.input_ids) == 40 + 40 + 5 + 6 + 5
    assert batch.position_ids == [*range(45), *range(40, 85), *range(80, 86)]


def test_tokens_before_the_loss_are_never_shared_into_it():
    """The last shared token predicts the first of each branch, which must not be in the loss."""
    from trajsmith.train_sft.shared_prefix import lay_out_rows

    rows = [build_row(PREFIX, [60 + i, 70], silent=0) for i in range(2)]
    batch = lay_out_rows(rows)
    assert len(batch.input_ids) == 39 + 3 + 3
    assert sum(label != -100 for label in batch.labels) == 4
    starts = [i for i in range(1, len(batch.input_ids)) if batch.position_ids[i] != batch.position_ids[i - 1] + 1]
    assert all(batch.labels[start] == -100 for start in starts)


def test_rows_that_begin_alike_come_into_one_batch():
    from trajsmith.train_sft.shared_prefix import group_rows

    other = tuple(range(50, 90))
    rows = [build_row(prefix, [60 + i, 5, 6, 7]) for i in range(4) for prefix in (PREFIX, other)]
    rows += [build_row(PREFIX, [70, 5, 6, 7])]
    batches = group_rows(rows, 4)
    assert sorted(len(batch) for batch in batches) == [1, 4, 4]
    for batch in batches:
        assert len({tuple(row.ids[:40]) for row in batch}) == 1
    assert sorted(row.ids for batch in batches for row in batch) == sorted(row.ids for row in rows)


def test_batches_of_like_length_are_computed_at_the_same_time():
    from trajsmith.train_sft.shared_prefix import TreeBatch, order_batches

    batches = [TreeBatch([0] * length, [], []) for length in random.Random(0).sample(range(1000, 3000), 101)]
    ordered = [len(batch.input_ids) for batch in order_batches(batches, 2, 0)]
    assert sorted(ordered) == sorted(len(batch.input_ids) for batch in batches)
    ranks = {length: rank for rank, length in enumerate(sorted(ordered))}
    steps = [ordered[start : start + 2] for start in range(0, 100, 2)]
    assert all(abs(ranks[one] - ranks[other]) == 1 for one, other in steps)
    firsts = [step[0] for step in steps]
    assert firsts != sorted(firsts) and firsts != sorted(firsts, reverse=True)
    assert ordered != [len(batch.input_ids) for batch in order_batches(batches, 2, 1)], "the seed draws the order"


def test_only_several_processes_keep_the_order_of_batches(monkeypatch):
    from trajsmith.train_sft.shared_prefix import LabelledRow, build_tree_arguments, build_tree_dataset

    rows = [LabelledRow(array("i", range(length)), array("i", [-100] * length)) for length in range(10, 30)]
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    assert build_tree_arguments({})["train_sampling_strategy"] == "random"
    monkeypatch.setenv("WORLD_SIZE", "2")
    assert build_tree_arguments({})["train_sampling_strategy"] == "sequential"
    lengths = [len(batch) for batch in build_tree_dataset(rows, 1, 0)["input_ids"]]
    steps = [sorted(lengths[start : start + 2]) for start in range(0, 20, 2)]
    assert sorted(steps) == [[length, length + 1] for length in range(10, 30, 2)] != steps


def test_rows_of_one_system_message_show_the_tools_that_one_of_them_calls():
    from trajsmith.train_sft.shared_prefix import list_called_tools, share_tools

    def build(called, shown, **more):
        calls = [{"function": {"name": name, "arguments": {}}} for name in called]
        messages = [{"role": "system", "content": "You work."}, {"role": "assistant", "tool_calls": calls}]
        tools = [{"function": {"name": name}} for name in shown]
        return {"environment": "shop", "variant": "base", "messages": messages, "tools": tools, **more}

    rows = [
        build("a", "abc"), build("b", "bcd"), build("c", "cde"), build("f", "fgh"),
        build("a", "ax", variant="missing_function"), build("b", "by", environment="bank"),
    ]  # fmt: skip
    changed = share_tools(rows, 4, 3, 7)
    assert changed == share_tools(rows, 4, 3, 7)
    assert changed[4] is rows[4], "a row of which a tool is missing on purpose"
    lists = ["".join(tool["function"]["name"] for tool in row["tools"]) for row in changed]
    assert len(set(lists[:4])) == 2 and max(map(len, lists)) == 4
    for row, names in zip(changed, lists, strict=True):
        assert list_called_tools(row) <= set(names)
    assert max(lists[:4].count(names) for names in lists[:4]) == 3


def test_a_row_that_calls_a_tool_that_it_does_not_show_stays_as_it_is():
    from trajsmith.train_sft.shared_prefix import share_tools

    def build(called):
        calls = [{"function": {"name": called, "arguments": {}}}]
        messages = [{"role": "system", "content": "You work."}, {"role": "assistant", "tool_calls": calls}]
        tools = [{"function": {"name": name}} for name in "ab"]
        return {"environment": "shop", "variant": "base", "messages": messages, "tools": tools}

    rows = [build("a"), build("guessed")]
    assert share_tools(rows, 4, 8, 0)[1] is rows[1]


def test_a_row_keeps_four_bytes_a_token_and_label():
    import tracemalloc

    tracemalloc.start()
    rows = [build_row(range(1000 * number, 1000 * number + 900), range(5000, 5100)) for number in range(1, 21)]
    kept = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert kept < 10 * sum(len(row.ids) for row in rows)


@pytest.mark.parametrize(
    ("kind", "changes", "reason"),
    [
        ("mistral", {"sliding_window": 8}, "attend to all earlier tokens"),
        ("llama", {"attention_dropout": 0.1}, "attention_dropout"),
        ("gpt2", {"n_embd": 32, "n_layer": 1, "n_head": 2}, "attend to all earlier tokens"),
    ],
    ids=["sliding_window", "dropout", "learned_positions"],
)
def test_a_model_that_cannot_do_it_is_refused(kind, changes, reason):
    from trajsmith.records import InputError
    from trajsmith.train_sft.tree_attention import use_tree_attention

    with pytest.raises(InputError, match=reason):
        use_tree_attention(build_model(kind, **changes), "small")


def test_a_model_that_computes_something_else_is_refused(monkeypatch):
    from trajsmith.records import InputError
    from trajsmith.train_sft import tree_attention
    from trajsmith.train_sft.tree_segments import Segment

    monkeypatch.setattr(tree_attention, "find_segments", lambda positions: [Segment(0, len(positions), ())])
    with pytest.raises(InputError, match="changes what the model computes"):
        tree_attention.use_tree_attention(build_model(), "small")


def test_a_skipped_position_is_an_error():
    from trajsmith.train_sft.tree_segments import find_segments

    with pytest.raises(ValueError, match="skip 3 tokens"):
        find_segments([0, 1, 5])
