"""Play transcripts by verl's own agent loop worker, with a stub for the server of the model, and print the rewards.

The worker loads agent loop and tools from the exported files and the tokenizer from a folder, as in training; verl's
reward manager loads the reward function. Rows come from verl's dataset class.

python loop_verl.py ROWS TRANSCRIPTS RUN (text | tool)
"""

import asyncio
import importlib.metadata
import json
import os
import sys
import tempfile
from pathlib import Path

OUT, sys.stdout = sys.stdout, sys.stderr  # verl prints the schemas of tools

import numpy as np  # noqa: E402
import verl  # noqa: E402
from byte_tokenizer import build_tokenizer  # noqa: E402
from omegaconf import OmegaConf  # noqa: E402
from transformers import Qwen3Config  # noqa: E402
from verl import DataProto  # noqa: E402
from verl.experimental.agent_loop.agent_loop import AgentLoopWorker  # noqa: E402
from verl.experimental.reward_loop.reward_manager import get_reward_manager_cls  # noqa: E402
from verl.trainer.ppo.reward import get_custom_reward_fn  # noqa: E402
from verl.utils.dataset.rl_dataset import RLHFDataset, collate_fn  # noqa: E402
from verl.workers.rollout.replica import TokenOutput  # noqa: E402

LENGTH = 60_000


class Server:
    """Says what the transcript says next."""

    def __init__(self, tokenizer, by_tool):
        self.tokenizer, self.by_tool, self.lines = tokenizer, by_tool, []

    async def generate(self, request_id, prompt_ids, sampling_params, **_):
        line = self.lines.pop(0) if self.lines else {"tool": "message_user", "arguments": {"text": ""}}
        call = json.dumps({"name": line["tool"], "arguments": line["arguments"]})
        said = line["tool"] == "message_user" and not self.by_tool
        text = line["arguments"]["text"] if said else f"<tool_call>\n{call}\n</tool_call>"
        ids = self.tokenizer.encode(text + "<|im_end|>", add_special_tokens=False)
        return TokenOutput(token_ids=ids, log_probs=[-0.5] * len(ids))


def build_config(rows, run, model, by_tool):
    config = OmegaConf.load(Path(verl.__file__).parent / "trainer" / "config" / "_generated_ppo_trainer.yaml")
    OmegaConf.set_struct(config, False)
    config.data.train_files = sorted(map(str, (rows / "data").glob("*.parquet")))
    config.data.max_prompt_length = LENGTH
    config.actor_rollout_ref.model.path = str(model)
    rollout = config.actor_rollout_ref.rollout
    rollout.name, rollout.prompt_length, rollout.response_length = "vllm", LENGTH, LENGTH
    rollout.calculate_log_probs = True
    rollout.agent.agent_loop_config_path = str(rows / "agent_loop.yaml")
    rollout.multi_turn.format = "hermes"
    rollout.multi_turn.max_parallel_calls = 4
    if by_tool:
        rollout.multi_turn.tool_config_path = str(rows / "tools.yaml")
    function = {"path": "pkg://trajsmith.pipeline.verl_agent", "name": "compute_score", "reward_kwargs": {"run": run}}
    config.reward.custom_reward_function = function
    return config


async def main(rows, transcripts, run, by_tool):
    os.environ["TRAJSMITH_RUN"] = run
    with tempfile.TemporaryDirectory() as model:
        tokenizer = build_tokenizer()
        tokenizer.save_pretrained(model)
        Qwen3Config(
            vocab_size=300, hidden_size=8, num_hidden_layers=1, architectures=["Qwen3ForCausalLM"]
        ).save_pretrained(model)
        config = build_config(Path(rows), run, model, by_tool)
        server = Server(tokenizer, by_tool)
        worker = AgentLoopWorker(config, server)
        dataset = RLHFDataset(config.data.train_files, tokenizer=worker.tokenizer, config=config.data, processor=None)
        tasks = {row["extra_info"]["task_id"]: row for row in (dataset[number] for number in range(len(dataset)))}
        judge = get_custom_reward_fn(config)
        manager = get_reward_manager_cls("naive")(config, worker.tokenizer, judge)
        for number, transcript in enumerate(transcripts):
            server.lines = list(transcript["lines"])
            batch = DataProto.from_single_dict(collate_fn([tasks[transcript["task_id"]]]))
            output = await worker.generate_sequences(batch)
            mask = output.batch["response_mask"][0].bool()
            learnt = worker.tokenizer.decode(output.batch["responses"][0][mask])
            extra = output.non_tensor_batch
            scored = output.union(DataProto.from_single_dict(collate_fn([tasks[transcript["task_id"]]])))
            fields = {name: extra[name][0] for name in ("transcript", "verdict")}
            scored.non_tensor_batch["tool_extra_fields"] = np.array([fields], dtype=object)
            again = await manager.run_single(scored)
            OUT.write(json.dumps({
                "number": number, "reward": output.batch["rm_scores"][0].sum().item(), "again": again["reward_score"],
                "learnt": learnt, "transcript": json.loads(fields["transcript"]),
            }) + "\n")  # fmt: skip
    OUT.write(json.dumps({"version": importlib.metadata.version("verl")}) + "\n")


rows, file, run, way = sys.argv[1:]
transcripts = [json.loads(line) for line in Path(file).read_text("utf-8").splitlines()]
asyncio.run(main(rows, transcripts, run, way == "tool"))
