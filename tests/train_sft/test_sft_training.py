"""Fine-tuning a model made here: what is trained, saved and refused."""

import asyncio
import json
import shutil
import sys

import pytest

from trajsmith.pipeline.config import load_config
from trajsmith.pipeline.run_directory import RunDirectory
from trajsmith.pipeline.runner import run_pipeline
from trajsmith.pipeline.yaml_settings import dump_settings
from trajsmith.records import InputError, RunError

pytestmark = pytest.mark.train
for _needed in ("torch", "transformers", "trl", "peft"):
    pytest.importorskip(_needed, reason=f"{_needed} is missing: pip install -e '.[train]'")

CONFIG = """
name: sft
seed: 5
run: {run}
environments: [{{library: smart_home, states: {{small: 2}}}}]
sample: {{count: 12, length: [1, 2], method: random_walk}}
ground: {{min_calls: 1}}
write: {{mean_calls: 3, direct: 1.0, shown_tools: 2, policy: false}}
export: {{split: {{test: 0.3}}}}
"""
TRAINER = {
    "max_steps": 3, "per_device_train_batch_size": 2, "logging_steps": 1, "save_steps": 2, "disable_tqdm": True,
    "dataloader_pin_memory": False,
}  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("sft")
    (made / "line.yaml").write_text(CONFIG.format(run=made / "run"))
    settings = load_config(made / "line.yaml")
    asyncio.run(run_pipeline(RunDirectory.create(settings.run, dump_settings(settings))))
    return made


def config(folder, **changes):
    from trajsmith.train_sft import ScratchSettings, SftConfig

    small = ScratchSettings(hidden=32, layers=1, heads=2, vocabulary=600)
    values = {
        "scratch": small,
        "dataset": folder / "run",
        "out": folder / "model",
        "max_length": 4000,
        "trainer": TRAINER,
    }
    return SftConfig(**(values | changes))


@pytest.fixture(scope="module")
def trained(folder):
    from trajsmith.train_sft.training import train

    train(config(folder))
    return folder / "model"


def test_only_what_the_assistant_says_is_in_the_loss(folder):
    from trajsmith.train_sft.training import prepare_training

    _, plan, _ = prepare_training(config(folder))
    learnt = "".join(piece.text for piece in plan.example.pieces if piece.loss)
    context = "".join(piece.text for piece in plan.example.pieces if not piece.loss)
    assert "<tool_call>" in learnt and "<tool_response>" not in learnt
    assert "<tool_response>" in context and 0 < plan.trained < plan.tokens


def test_training_and_inference_render_alike(trained):
    from trajsmith.train_sft.checkpoint import open_training_tokenizer
    from trajsmith.train_sft.training import read_rows

    row = read_rows(trained.parent / "run")[0]
    tokenizer = open_training_tokenizer(str(trained))
    whole = tokenizer.apply_chat_template(row["messages"], tools=row["tools"], tokenize=False)
    assert "{% generation %}" in tokenizer.chat_template and tokenizer.response_template is not None
    for index, message in enumerate(row["messages"]):
        if message["role"] == "assistant":
            shown = tokenizer.apply_chat_template(
                row["messages"][:index], tools=row["tools"], tokenize=False, add_generation_prompt=True
            )
            assert whole.startswith(shown)


def test_metrics_and_the_model_are_whole(trained):
    from trajsmith.models.transformers_engine import open_model

    assert open_model(str(trained)).config.model_type == "qwen3"
    *steps, last = map(json.loads, (trained / "metrics.jsonl").read_text().splitlines())
    assert len(steps) >= 2 and last["train_cpu_seconds"] > 0
    assert not any("train_cpu_seconds" in step for step in steps)


def test_the_checkpoint_can_be_evaluated(folder, trained):
    from trajsmith.evals import EvalSettings
    from trajsmith.pipeline.evaluation import EvalConfig, run_eval

    asked = EvalConfig(
        model=str(trained), run=folder / "run", split="test", limit=2, out=folder / "eval", max_new_tokens=24,
        settings=EvalSettings(max_steps=2),
    )  # fmt: skip
    scores = asyncio.run(run_eval(asked))
    assert scores[0].tasks == 2 and scores[0].unscored == 0 and scores[0].tokens > 0
    assert asyncio.run(run_eval(asked)) == scores
    with pytest.raises(InputError, match="another model, run or sampling"):
        asyncio.run(run_eval(asked.model_copy(update={"temperature": 0.5})))


@pytest.mark.parametrize(
    ("unit", "window", "rows"), [("per_turn", None, "turns"), ("per_step", 3, "steps")], ids=["per turn", "per step"]
)
def test_history_units_give_their_rows(folder, unit, window, rows):
    from trajsmith.train_sft import HistorySettings
    from trajsmith.train_sft.training import read_rows
    from trajsmith.train_sft.training_units import split_training_units

    whole = read_rows(folder / "run")
    wanted = {"turns": "user", "steps": "assistant"}[rows]
    made = list(split_training_units(whole, HistorySettings(unit=unit, window=window)))
    assert len(made) == sum(message["role"] == wanted for row in whole for message in row["messages"])


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"trainer": {"learning_rat": 1e-3}}, 'did you mean "learning_rate"'),
        ({"trainer": {"learning_rate": "fast"}}, r"learning_rate: input should be a valid number.* \(got 'fast'\)"),
        ({"trainer": {"max_steps": "3"}}, "trainer.max_steps: input should be a valid integer"),
        ({"lora": {"lora_dropout": "a bit"}}, "lora.lora_dropout: input should be a valid number"),
        ({"trainer": {"max_length": 5}}, "trajsmith sets this itself"),
        ({"lora": {"rank": 5}}, "LoraConfig has no such setting"),
        ({"scratch": None, "model": "no/such/folder"}, "no tokenizer there"),
        ({"max_length": 20}, "truncated_to_nothing"),
    ],
    ids=["unknown key", "no number", "text", "type in lora", "our key", "lora", "no model", "too short"],
)
def test_wrong_input_is_one_line(folder, tmp_path, changes, text):
    from trajsmith.train_sft.training import train

    with pytest.raises(InputError, match=text):
        train(config(folder, out=tmp_path / "model", **changes))


def test_a_start_that_failed_does_not_bind_the_corrected_configuration(folder, trained, tmp_path):
    from trajsmith.evals import EvalSettings
    from trajsmith.pipeline.evaluation import EvalConfig, run_eval
    from trajsmith.train_sft.training import train

    with pytest.raises(InputError, match="no tokenizer there"):
        train(config(folder, out=tmp_path / "model", scratch=None, model="no/such/folder"))
    train(config(folder, out=tmp_path / "model", trainer=TRAINER | {"max_steps": 1}))
    asked = EvalConfig(
        model=str(tmp_path / "none"), run=folder / "run", limit=1, out=tmp_path / "eval", max_new_tokens=4,
        settings=EvalSettings(max_steps=1),
    )  # fmt: skip
    with pytest.raises(InputError, match="no tokenizer there"):
        asyncio.run(run_eval(asked))
    assert asyncio.run(run_eval(asked.model_copy(update={"model": str(trained)})))[0].tasks == 1
    with pytest.raises(InputError, match="another model, run or sampling"):
        asyncio.run(run_eval(asked))


def test_a_model_of_which_the_save_was_interrupted_is_refused(trained, tmp_path):
    from trajsmith.models.transformers_engine import open_model

    broken = tmp_path / "broken"
    shutil.copytree(trained, broken, ignore=shutil.ignore_patterns("checkpoints"))
    weights = broken / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:1000])
    with pytest.raises(InputError, match="no whole model there"):
        open_model(str(broken))


@pytest.mark.parametrize("room", [3_000, 40_000], ids=["a small file", "the weights"])
def test_a_full_disk_is_one_line_and_what_was_whole_is_kept(folder, tmp_path, room):
    import resource

    from trajsmith.train_sft.training import train

    out = tmp_path / "model"
    train(config(folder, out=out))
    kept = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (room, hard))
    try:
        with pytest.raises(
            RunError, match=r"could not be written \(.*File too large.*\); free some space, then continue"
        ):
            train(config(folder, out=out, trainer=TRAINER | {"max_steps": 6}), resume=True)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert {path: path.read_bytes() for path in kept} == kept
    train(config(folder, out=out, trainer=TRAINER | {"max_steps": 6}), resume=True)


def test_what_torch_says_of_a_full_disk_is_told_and_other_faults_go_on_up(tmp_path):
    from trajsmith.train_sft.checkpoint import translate_write_errors

    said = "[enforce fail at inline_container.cc:603] . unexpected pos 64 vs 0"
    with pytest.raises(RunError, match="free some space, then start again"), translate_write_errors(tmp_path):
        raise RuntimeError(said)
    with pytest.raises(RuntimeError, match="shapes"), translate_write_errors(tmp_path):
        raise RuntimeError("shapes do not fit")


def test_an_interrupted_training_goes_on(folder, tmp_path):
    from trajsmith.train_sft.training import train

    out = tmp_path / "model"
    train(config(folder, out=out))
    with pytest.raises(InputError, match="continue with --resume"):
        train(config(folder, out=out))
    train(config(folder, out=out, trainer=TRAINER | {"max_steps": 5}), resume=True)
    assert (out / "checkpoints/checkpoint-4").is_dir()


def test_lora_gives_a_whole_model_of_other_weights(trained, folder, tmp_path):
    import torch

    from trajsmith.models.transformers_engine import open_model
    from trajsmith.train_sft.training import train

    tuned = {"r": 2, "target_modules": "all-linear"}
    hot = TRAINER | {"learning_rate": 0.05, "save_strategy": "no"}
    train(config(folder, scratch=None, model=str(trained), out=tmp_path / "lora", lora=tuned, trainer=hot))
    before, after = open_model(str(trained)).state_dict(), open_model(str(tmp_path / "lora")).state_dict()
    assert before.keys() == after.keys()
    changed = {name for name in before if not torch.equal(before[name], after[name])}
    assert changed and all("proj" in name for name in changed)


def test_compact_tools_are_trained_noted_and_shown_in_evaluation(folder, tmp_path, monkeypatch):
    from transformers import PreTrainedTokenizerFast

    from trajsmith.models.checkpoint_info import read_checkpoint_info
    from trajsmith.pipeline.evaluation import EvalConfig, run_eval
    from trajsmith.records.tool_rendering import render_tools
    from trajsmith.train_sft.training import prepare_training, read_rows, train

    out = tmp_path / "compact"
    plan = train(config(folder, out=out, tools="compact"))
    _, full, _ = prepare_training(config(folder))
    assert plan.tokens < full.tokens and '"examples"' not in str(plan.rows)
    rows = read_rows(folder / "run")
    assert [row["tools"] for row in plan.rows] == [render_tools(row["tools"], "compact") for row in rows]
    info = read_checkpoint_info(str(out))
    assert info.tools == "compact" and [one["kind"] for one in info.training] == ["sft"]
    assert info.training[0]["tokens"] == plan.tokens

    _, later, _ = prepare_training(config(folder, scratch=None, model=str(out)))
    assert later.tokens == plan.tokens, "a later training shows tools as the model knows them"

    shown, apply = [], PreTrainedTokenizerFast.apply_chat_template

    def record(tokenizer, messages, tools=None, **options):
        shown.append(tools)
        return apply(tokenizer, messages, tools=tools, **options)

    monkeypatch.setattr(PreTrainedTokenizerFast, "apply_chat_template", record)
    settings = EvalConfig(model=str(out), run=folder / "run", out=tmp_path / "scores", max_new_tokens=2, limit=2)
    asyncio.run(run_eval(settings))
    asked = [tools for tools in shown if tools]
    assert asked and all(tools == render_tools(tools, "compact") for tools in asked)


def test_notes_that_cannot_be_read_are_said(tmp_path):
    from trajsmith.models.checkpoint_info import read_checkpoint_info

    (tmp_path / "trajsmith.json").write_text('{"tools": "tiny"}')
    with pytest.raises(InputError, match=r"trajsmith\.json: cannot be read .*restore it from the training"):
        read_checkpoint_info(str(tmp_path))
    assert read_checkpoint_info("owner/name-on-the-hub").tools == "full"


@pytest.mark.parametrize(
    ("flags", "stored", "played"),
    [
        ("fpu avx512f avx512_bf16", "bfloat16", "bfloat16"),
        ("fpu avx2", "bfloat16", "float32"),
        ("fpu avx512_bf16", "float32", "float32"),
    ],
    ids=["both", "slow here", "stored in float32"],
)
def test_a_model_is_played_in_the_format_that_it_is_stored_in_where_that_is_fast(
    trained, tmp_path, monkeypatch, flags, stored, played
):
    from trajsmith.models import precision
    from trajsmith.models.transformers_engine import open_model
    from trajsmith.train_sft.libraries import build_cpu_defaults

    (tmp_path / "cpuinfo").write_text(f"processor : 0\nflags\t\t: {flags}\n")
    fast = bool(precision.read_cpu_flags(tmp_path / "cpuinfo") & precision.BF16_FLAGS)
    monkeypatch.setattr(precision, "has_fast_bf16", lambda: fast)
    model = tmp_path / "model"
    shutil.copytree(trained, model, ignore=shutil.ignore_patterns("checkpoints"))
    settings = json.loads((model / "config.json").read_text())
    (model / "config.json").write_text(json.dumps(settings | {"dtype": stored}))
    assert str(open_model(str(model)).dtype) == f"torch.{played}"
    assert str(precision.choose_training_dtype(str(model))) == "torch.float32"
    assert build_cpu_defaults(str(model))["bf16"] is (played == "bfloat16")


@pytest.mark.parametrize(
    ("memory", "adapters", "type_name"),
    [(80e9, False, "float32"), (1e6, False, "bfloat16"), (80e9, True, "bfloat16")],
    ids=["room for float32", "no room for it", "adapters only"],
)
def test_on_a_gpu_weights_are_trained_in_float32_where_it_fits(
    trained, tmp_path, monkeypatch, memory, adapters, type_name
):
    from types import SimpleNamespace

    import torch

    from trajsmith.models import precision

    model = tmp_path / "model"
    shutil.copytree(trained, model, ignore=shutil.ignore_patterns("checkpoints"))
    settings = json.loads((model / "config.json").read_text())
    (model / "config.json").write_text(json.dumps(settings | {"dtype": "bfloat16"}))
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda number: SimpleNamespace(total_memory=memory))
    assert str(precision.choose_training_dtype(str(model), adapters)) == f"torch.{type_name}"


def test_a_model_is_played_on_the_accelerator_of_the_machine(trained, monkeypatch):
    import torch

    from trajsmith.models.transformers_engine import TransformersModel, open_model, open_tokenizer

    monkeypatch.setattr(torch.accelerator, "current_accelerator", lambda check_available: torch.device("meta"))
    played = TransformersModel("m", open_model(str(trained)), open_tokenizer(str(trained)), max_new_tokens=8)
    assert played.model.device.type == "meta"


def test_a_model_stored_in_bfloat16_is_trained_in_float32_and_stored_as_it_was(trained, folder, tmp_path):
    import torch
    from safetensors.torch import load_file

    from trajsmith.models.transformers_engine import open_model
    from trajsmith.train_sft.training import train

    start = tmp_path / "start"
    shutil.copytree(trained, start, ignore=shutil.ignore_patterns("checkpoints"))
    open_model(str(trained)).to(torch.bfloat16).save_pretrained(start)
    train(config(folder, scratch=None, model=str(start), out=tmp_path / "more"))
    assert {one.dtype for one in load_file(tmp_path / "more/model.safetensors").values()} == {torch.bfloat16}
    checkpoint = next((tmp_path / "more/checkpoints").glob("checkpoint-*"))
    assert {one.dtype for one in load_file(checkpoint / "model.safetensors").values()} == {torch.float32}


def test_training_ends_when_the_loss_on_other_rows_no_longer_falls(folder, tmp_path):
    from trajsmith.train_sft import ValidationSettings
    from trajsmith.train_sft.training import train

    out = tmp_path / "validated"
    trainer = TRAINER | {"max_steps": 30, "learning_rate": 200.0}
    trainer.pop("save_steps")
    settings = ValidationSettings(split="test", every=2, patience=2, rows=3)
    plan = train(config(folder, out=out, trainer=trainer, validation=settings))
    assert 0 < len(plan.validation) <= 3
    log = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    losses = [entry["eval_loss"] for entry in log if "eval_loss" in entry]
    best = losses.index(min(losses))
    assert len(losses) == best + 3 and log[-1]["step"] < 30
    info = json.loads((out / "trajsmith.json").read_text())
    assert info["training"][0]["steps"] == log[-1]["step"]


def test_a_split_that_is_not_there_is_said_before_training(folder, tmp_path):
    from trajsmith.train_sft import ValidationSettings
    from trajsmith.train_sft.training import train

    with pytest.raises(InputError, match="no split 'validation'; there are train, test"):
        train(config(folder, out=tmp_path / "none", validation=ValidationSettings(every=2)))


def test_datasets_are_mixed_by_weight_and_the_card_tells_where_they_come_from(folder, tmp_path):
    from trajsmith.train_sft import DatasetShare
    from trajsmith.train_sft.mixing import weigh_rows
    from trajsmith.train_sft.training import read_rows, train

    rows = read_rows(folder / "run")
    shares = (
        DatasetShare(dataset=folder / "run", weight=0.5),
        DatasetShare(dataset=folder / "run/dataset", weight=2.0),
    )
    out = tmp_path / "mixed"
    plan = train(config(folder, dataset=None, datasets=shares, out=out))
    half = round(len(rows) / 2)
    assert [source["rows"] for source in plan.sources] == [half, 2 * len(rows)]
    assert len(plan.rows) == half + 2 * len(rows)
    drawn = [[row["id"] for row in weigh_rows(rows, 0.5, seed)] for seed in range(8)]
    assert weigh_rows(rows, 0.5, 1) == weigh_rows(rows, 0.5, 1) and any(one != drawn[0] for one in drawn)
    card = (out / "README.md").read_text()
    digest = plan.sources[0]["config_sha256"][:16]
    assert f"| sft | {half} | 5 | smart_home | apache-2.0 | `{digest}` |" in card
    assert card.startswith("---\nlibrary_name: transformers\nlicense: apache-2.0\n") and str(tmp_path) not in card
    with pytest.raises(InputError, match=r"a weight of 0\.001 leaves none of its"):
        few = (DatasetShare(dataset=folder / "run", weight=0.001),)
        train(config(folder, dataset=None, datasets=few, out=tmp_path / "few"))


def test_a_share_can_take_the_rows_of_some_variants_only(folder):
    from trajsmith.train_sft import DatasetShare
    from trajsmith.train_sft.mixing import mix_rows, select_rows

    rows = [{"id": str(number), "variant": ("base", "follow_up")[number % 2]} for number in range(10)]
    path = folder / "run"
    shares = (
        DatasetShare(dataset=path, variants=("follow_up",)),
        DatasetShare(dataset=path, variants=("base",), weight=0.4),
    )
    mixed, sources = mix_rows(shares, lambda *_: rows, 0)
    assert [row["variant"] for row in mixed] == ["follow_up"] * 5 + ["base"] * 2
    assert [source["variants"] for source in sources] == [["follow_up"], ["base"]]
    assert [row["id"] for row in select_rows(rows, shares[0])] == ["1", "3", "5", "7", "9"], "validation rows, too"
    with pytest.raises(InputError, match="no row is of the variant batch_request; there are: base, follow_up"):
        mix_rows((DatasetShare(dataset=path, variants=("batch_request",)),), lambda *_: rows, 0)


def test_rows_that_call_a_tool_can_be_left_out(folder):
    from trajsmith.train_sft import DatasetShare
    from trajsmith.train_sft.mixing import mix_rows
    from trajsmith.train_sft.training import read_rows

    def called(row):
        return {call["function"]["name"] for message in row["messages"] for call in message.get("tool_calls") or ()}

    rows = read_rows(folder / "run")
    tool = sorted(set.union(*map(called, rows)))[0]
    share = DatasetShare(dataset=folder / "run", without_tools=(tool,))
    kept, sources = mix_rows((share,), read_rows, 0)
    assert kept == [row for row in rows if tool not in called(row)] and 0 < len(kept) < len(rows)
    assert sources[0]["rows"] == len(kept) and sources[0]["without_tools"] == [tool]
    with pytest.raises(InputError, match="no row calls dance of without_tools"):
        mix_rows((DatasetShare(dataset=folder / "run", without_tools=("dance",)),), read_rows, 0)
    with pytest.raises(InputError, match="leaves none of its"):
        everything = tuple(sorted(set.union(*map(called, rows))))
        mix_rows((DatasetShare(dataset=folder / "run", without_tools=everything),), read_rows, 0)


def test_frozen_parameters_keep_their_values(trained, folder, tmp_path):
    import torch

    from trajsmith.models.transformers_engine import open_model
    from trajsmith.train_sft import FreezeSettings
    from trajsmith.train_sft.freezing import freeze_parameters
    from trajsmith.train_sft.training import train

    frozen = FreezeSettings(embeddings=True)
    train(config(folder, scratch=None, model=str(trained), out=tmp_path / "frozen", freeze=frozen))
    before, after = open_model(str(trained)).state_dict(), open_model(str(tmp_path / "frozen")).state_dict()
    same = {name for name in before if torch.equal(before[name], after[name])}
    assert same == {name for name in before if "embed" in name or "lm_head" in name}
    with pytest.raises(InputError, match="1 of the model's 1 layers; leave one to train"):
        freeze_parameters(open_model(str(trained)), FreezeSettings(layers=1))


@pytest.mark.parametrize("share", [False, True], ids=["layers", "between products"])
def test_what_is_compiled_gives_the_same_loss_and_names(trained, folder, tmp_path, monkeypatch, share):
    import torch
    from transformers.models.qwen3 import modeling_qwen3

    from trajsmith.models.transformers_engine import open_model
    from trajsmith.train_sft.compiled_parts import is_gated
    from trajsmith.train_sft.training import train

    chunked_logprob = pytest.importorskip("trl.kernels.chunked_logprob", reason="TRL before 1.15 has no such kernels")
    assert is_gated(open_model(str(trained)).get_decoder().layers[0].mlp)
    compiled, called, plain_compile = set(), set(), torch.compile

    def compile_eagerly(function, **options):
        """Traces and guards as always; no C++ compiler is needed for what they lead to."""
        assert options == {"dynamic": True}
        module = getattr(function, "__self__", None)
        name = function.__name__ if module is None else type(module).__name__
        compiled.add(name)
        traced = plain_compile(function, backend="eager", **options)

        def call(*args, **kwargs):
            called.add(name)
            return traced(*args, **kwargs)

        return call

    def compile_module(module, **options):
        module._compiled_call_impl = torch.compile(module._call_impl, **options)

    monkeypatch.setenv("CXX", sys.executable)  # something that is there
    monkeypatch.setattr(torch, "compile", compile_eagerly)
    monkeypatch.setattr(torch.nn.Module, "compile", compile_module)
    kernels = {"_forward_tile", "_backward_tile"} & set(vars(chunked_logprob))  # not in TRL before 1.16
    for module, names in ((modeling_qwen3, {"apply_rotary_pos_emb"}), (chunked_logprob, kernels)):
        for name in names:
            monkeypatch.setattr(module, name, getattr(module, name))  # put back after the test
    names, losses = [], []
    for name, given in (("plain", False), ("compiled", True)):
        trainer = TRAINER | {"max_steps": 2, "optim": "sgd", "bf16": False}
        changes = {"share_prefix": share, "compile_layers": given, "trainer": trainer}
        train(config(folder, scratch=None, model=str(trained), out=tmp_path / name, **changes))
        lines = [json.loads(line) for line in (tmp_path / name / "metrics.jsonl").read_text().splitlines()]
        losses.append([(line["loss"], line["grad_norm"]) for line in lines if "loss" in line])
        names.append(set(open_model(str(tmp_path / name)).state_dict()))
    between = {"Qwen3RMSNorm", "compute_gate", "apply_rotary_pos_emb", *kernels}
    assert compiled == called == (between if share else {"Qwen3DecoderLayer"})
    assert names[0] == names[1]
    for plain, other in zip(*losses, strict=True):
        assert other == pytest.approx(plain, rel=1e-4)


def test_compiled_parts_need_a_compiler(folder, monkeypatch):
    from trajsmith.train_sft.training import check_settings

    monkeypatch.setenv("CXX", "no-such-compiler")
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    with pytest.raises(InputError, match=r"no C\+\+ compiler no-such-compiler; install it, or leave"):
        check_settings(config(folder, compile_layers=True))
    monkeypatch.setenv("CXX", sys.executable)
    monkeypatch.setattr("sysconfig.get_path", lambda name: "/no/headers")
    with pytest.raises(InputError, match=r"there is no /no/headers/Python\.h; install python3-dev"):
        check_settings(config(folder, compile_layers=True))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"datasets": ({"dataset": "elsewhere"},)}, "name a dataset or give datasets"),
        ({"dataset": None}, "name a dataset or give datasets"),
        ({"lora": {"r": 2}, "freeze": {"embeddings": True}}, "leave freeze out"),
        ({"lora": {"r": 2}, "compile_layers": True}, "compile_layers is for all weights: leave lora out"),
    ],
    ids=["two", "none", "lora", "compiled lora"],
)
def test_settings_that_do_not_go_together(folder, changes, said):
    with pytest.raises(ValueError, match=said):
        config(folder, **changes)


def test_shared_prefixes_give_the_loss_and_gradient_of_separate_rows(folder):
    from trajsmith.train_sft.training import train

    logged = []
    for name, share in (("apart", {}), ("together", {"share_prefix": True})):
        trainer = TRAINER | {"max_steps": 2, "per_device_train_batch_size": 64, "optim": "sgd", "bf16": False}
        train(config(folder, out=folder / name, trainer=trainer, **share))
        lines = [json.loads(line) for line in (folder / name / "metrics.jsonl").read_text().splitlines()]
        logged.append([(line["loss"], line["grad_norm"], line["num_tokens"]) for line in lines if "grad_norm" in line])
    assert len(logged[0]) == 2
    for apart, together in zip(*logged, strict=True):
        assert together[:2] == pytest.approx(apart[:2], rel=1e-4)
        assert together[2] < apart[2], "what rows share counts once"
    assert "trajsmith_tree" not in (folder / "together" / "config.json").read_text()


def test_rows_with_shared_tools_are_trained_and_measured(folder):
    from trajsmith.train_sft import ValidationSettings
    from trajsmith.train_sft.training import prepare_training, train

    settings = config(
        folder,
        out=folder / "same-tools",
        share_prefix=True,
        shared_tools=3,
        validation=ValidationSettings(split="test", rows=4, every=2),
        trainer={**TRAINER, "max_steps": 2},
    )
    _, plan, _ = prepare_training(settings)
    assert all(len(row["tools"]) <= 3 for row in plan.rows)
    train(settings)
    assert "eval_loss" in (folder / "same-tools" / "metrics.jsonl").read_text()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"shared_tools": 4}, "shared_tools is for share_prefix"),
        ({"share_prefix": True, "history": {"unit": "per_turn"}}, "whole conversations"),
    ],
)
def test_settings_of_shared_prefixes_that_mean_nothing_are_refused(folder, changes, message):
    with pytest.raises(ValueError, match=message):
        config(folder, **changes)


def test_a_trainer_that_makes_batches_otherwise_is_refused_with_shared_prefixes(folder):
    from trajsmith.train_sft.training import check_settings

    for key, value in {"packing": True, "per_device_eval_batch_size": 4}.items():
        with pytest.raises(InputError, match=rf"trainer\.{key}: share_prefix makes the batches itself"):
            check_settings(config(folder, share_prefix=True, trainer={**TRAINER, key: value}))


def test_shared_prefixes_are_for_one_gpu_a_process(folder, monkeypatch):
    import trl

    from trajsmith.train_sft.training import check_settings

    monkeypatch.setattr(trl.SFTConfig, "n_gpu", 2)
    check_settings(config(folder))
    with pytest.raises(InputError, match="share_prefix: this process sees 2 GPUs"):
        check_settings(config(folder, share_prefix=True))


def test_tokens_are_kept_only_for_shared_prefixes(folder):
    from trajsmith.train_sft.training import prepare_training

    _, plan, _ = prepare_training(config(folder))
    assert plan.rows and not plan.labelled
    _, shared, _ = prepare_training(config(folder, share_prefix=True))
    assert len(shared.labelled) == len(shared.rows)


def label_rows(rows):
    """Label all calls of rows as needed, but the first of a row as harmful and the second as redundant."""
    labels = ["harmful", "redundant"]
    return [
        row
        | {
            "step_labels": [
                {"tool": "", "label": (labels + ["recovering"] * row["tool_calls"])[place], "why": ""}
                for place in range(row["tool_calls"])
            ]
        }
        for row in rows
    ]


@pytest.fixture
def labelled_rows(folder, monkeypatch):
    from trajsmith.train_sft import training

    rows = label_rows(row for row in training.read_rows(folder / "run") if row["tool_calls"])
    assert rows
    monkeypatch.setattr(training, "read_rows", lambda *_: rows)
    return rows


def find_first_calls(messages):
    return [index for index, message in enumerate(messages) for _ in message.get("tool_calls") or ()][:2]


def test_messages_with_needless_or_harmful_calls_are_context(folder, labelled_rows):
    from trajsmith.train_sft.training import prepare_training

    _, full, _ = prepare_training(config(folder, share_prefix=True))
    _, plan, _ = prepare_training(config(folder, share_prefix=True, mask_steps=True))
    assert plan.tokens == full.tokens and 0 < plan.trained < full.trained
    bad = 0
    for row, masked, whole in zip(labelled_rows, plan.labelled, full.labelled, strict=True):
        assert masked.ids == whole.ids
        dropped = sum(a != b for a, b in zip(masked.labels, whole.labels, strict=True))
        kept = sum(label != -100 for label in masked.labels)
        bad += len(set(find_first_calls(row["messages"])))
        assert dropped and kept
    assert plan.masked_messages == bad


def test_masked_calls_are_those_of_the_labels(folder, labelled_rows):
    from trajsmith.train_sft.training import prepare_training

    _, plan, _ = prepare_training(config(folder, mask_steps=True))
    learnt = "".join(piece.text for piece in plan.example.pieces if piece.loss)
    messages = labelled_rows[0]["messages"]
    calls = [index for index, message in enumerate(messages) for _ in message.get("tool_calls") or ()]
    allowed = sum(len(messages[index]["tool_calls"]) for index in set(calls) - set(calls[:2]))
    assert learnt.count("<tool_call>") == allowed < len(calls)
    assert str(messages[-1]["content"]).strip() in learnt


@pytest.mark.parametrize("shared", [False, True])
def test_longer_rows_are_left_out_whole_and_counted(folder, capsys, shared):
    from trajsmith.cli.train import show_plan
    from trajsmith.train_sft.training import prepare_training

    _, full, _ = prepare_training(config(folder, share_prefix=True))
    lengths = sorted(len(row.ids) for row in full.labelled)
    middle = lengths[len(lengths) // 2]
    _, plan, _ = prepare_training(config(folder, max_length=middle, longer_rows="leave_out", share_prefix=shared))
    longer = sum(length > middle for length in lengths)
    assert plan.longer_rows == longer > 0 and len(plan.rows) == len(lengths) - longer
    assert plan.longest == middle and not plan.refused
    show_plan(plan)
    assert f"longer than max_length: {longer} rows" in capsys.readouterr().out
    with pytest.raises(InputError, match=f"all {len(lengths)} rows are longer than 20 tokens"):
        prepare_training(config(folder, max_length=20, longer_rows="leave_out"))


def test_rows_that_are_left_out_take_no_place_among_those_that_share_tools(folder, monkeypatch):
    from trajsmith.export.loss_mask import MaskPreview
    from trajsmith.train_sft import training

    _, full, _ = training.prepare_training(config(folder, share_prefix=True))
    lengths = sorted(len(row.ids) for row in full.labelled)
    middle, shared = lengths[len(lengths) // 2], []
    monkeypatch.setattr(training, "share_tools", lambda rows, *_: shared.extend(rows) or rows)
    settings = config(folder, max_length=middle, longer_rows="leave_out", share_prefix=True, shared_tools=3)
    tokenizer, plan, _ = training.prepare_training(settings)
    preview = MaskPreview(tokenizer, None)
    assert 0 < len(shared) < len(lengths) and all(preview.inspect_row(row, "").tokens <= middle for row in shared)
    assert plan.longer_rows == len(lengths) - len(shared)
    with pytest.raises(InputError, match=f"all {len(lengths)} rows are longer than 20 tokens"):
        training.prepare_training(settings.model_copy(update={"max_length": 20}))


@pytest.mark.parametrize("unit", ["per_turn", "per_step"])
def test_units_of_nothing_but_masked_messages_are_left_out(folder, labelled_rows, unit, capsys):
    from trajsmith.cli.train import show_plan
    from trajsmith.train_sft import HistorySettings
    from trajsmith.train_sft.training import prepare_training

    _, full, _ = prepare_training(config(folder, history=HistorySettings(unit=unit)))
    _, plan, _ = prepare_training(config(folder, history=HistorySettings(unit=unit), mask_steps=True))
    bad = sum(len(set(find_first_calls(row["messages"]))) for row in labelled_rows)
    assert full.trained > plan.trained > 0 and not plan.refused
    if unit == "per_step":
        assert len(plan.rows) == len(full.rows) - bad and plan.masked_messages == 0
        assert plan.masked_rows == bad
        show_plan(plan)
        assert f"all their messages are masked: {bad} rows" in capsys.readouterr().out
    else:
        assert len(plan.rows) == len(full.rows) and plan.masked_messages == bad and plan.masked_rows == 0


def test_masked_tokens_are_what_the_trainer_gets(folder, labelled_rows, monkeypatch):
    from trl import SFTTrainer

    from trajsmith.models import read_checkpoint_info
    from trajsmith.train_sft.training import train

    collated = []

    def note_batches(trainer, *_, **__):
        for batch in trainer.get_train_dataloader():
            whole = batch["attention_mask"].bool()
            pairs = zip(batch["input_ids"], batch["labels"], whole, strict=True)
            collated.extend((ids[real].tolist(), labels[real].tolist()) for ids, labels, real in pairs)
            assert (batch["labels"][~whole] == -100).all()
        return learn(trainer)

    learn = SFTTrainer.train
    monkeypatch.setattr(SFTTrainer, "train", note_batches)
    plan = train(config(folder, out=folder / "masked", mask_steps=True, trainer={**TRAINER, "max_steps": 1}))
    assert sorted(collated) == sorted((list(row.ids), list(row.labels)) for row in plan.labelled)
    learnt = [sum(label != -100 for label in labels) for _, labels in collated]
    info = read_checkpoint_info(str(folder / "masked")).training[-1]
    assert info["masked_messages"] == plan.masked_messages > 0
    assert info["tokens_in_loss"] == plan.trained == sum(learnt) < sum(len(ids) for ids, _ in collated)


def test_rows_without_labels_cannot_be_masked(folder):
    from trajsmith.train_sft.training import prepare_training

    with pytest.raises(InputError, match="step labels: make the run with verify"):
        prepare_training(config(folder, mask_steps=True))
