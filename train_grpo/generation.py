"""Generation of the next messages of a batch of episodes, by vLLM or by the trained model itself."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from typing import Any, Protocol

from trajsmith.models import TokenGenerator

Drawn = tuple[list[list[int]], list[list[float]] | None]
"""Tokens of each message, with their log-probabilities where the engine gives them."""


class Generator(Protocol):
    """Draws one continuation of each context."""

    def __call__(self, contexts: Sequence[list[int]]) -> Drawn: ...


@contextmanager
def open_generator(trainer: Any, copies: "GenerationCopies", message_tokens: int | None) -> Iterator[Generator]:
    """Open a generator for one batch of episodes; the weights do not change while it is open.

    Args:
        trainer: TRL's trainer.
        copies: Keeps what a CPU generates with between batches.
        message_tokens: Limit of one message; None is that of the whole episode.
    """
    limit = min(message_tokens or trainer.args.max_completion_length, trainer.args.max_completion_length)
    if trainer.use_vllm:

        def draw(contexts: Sequence[list[int]]) -> Drawn:
            _, ids, logprobs, _ = trainer.vllm_generation.generate(
                prompts=list(contexts), images=None, num_generations=1
            )
            drawn = [[values[0] for values in sequence] for sequence in logprobs]
            return [one[:limit] for one in ids], [one[:limit] for one in drawn]

        yield draw
        return
    with copies.open_model(trainer) as model:
        tokenizer = trainer.processing_class
        generator = TokenGenerator(model, [tokenizer.eos_token_id], tokenizer.pad_token_id)
        settings = copy(trainer.generation_config)
        settings.update(max_new_tokens=limit, return_dict_in_generate=True)
        yield lambda contexts: (generator.generate(contexts, {"generation_config": settings}), None)


class GenerationCopies:
    """The model that a CPU generates with: a copy in bfloat16, with adapters merged, where the training computes so.

    Autocast converts all weights again for every token, and adapters double the number of layers. A copy costs half the
    memory of the trained weights and is written once a batch. On an accelerator the trained model itself is used.
    """

    def __init__(self) -> None:
        self._copy: Any = None

    @contextmanager
    def open_model(self, trainer: Any) -> Iterator[Any]:
        """Open the model with the weights of now, in evaluation mode."""
        from trl.models import unwrap_model_for_generation

        with unwrap_model_for_generation(trainer.model_wrapped, trainer.accelerator) as model:
            if trainer.accelerator.device.type == "cpu" and trainer.args.bf16:
                self._update_copy(model)
                yield self._copy
                return
            training = model.training
            model.eval()
            try:
                yield model
            finally:
                model.train(training)

    def _update_copy(self, model: Any) -> None:
        import torch
        from transformers import AutoModelForCausalLM

        source = model.get_base_model() if hasattr(model, "peft_config") else model
        if self._copy is None:
            self._copy = AutoModelForCausalLM.from_config(source.config, dtype=torch.bfloat16).eval()
        weights = collect_merged_weights(source)
        with torch.no_grad():
            for name, target in self._copy.named_parameters():
                target.copy_(weights[name])


def collect_merged_weights(model: Any) -> dict[str, Any]:
    """Return the weights by name as the model had them without adapters, with LoRA's changes added."""
    weights = {
        name.replace(".base_layer.", "."): weight for name, weight in model.named_parameters() if ".lora_" not in name
    }
    for name, module in model.named_modules():
        if hasattr(module, "get_delta_weight"):
            for adapter in module.active_adapters:
                weights[f"{name}.weight"] = weights[f"{name}.weight"] + module.get_delta_weight(adapter).detach()
    return weights
