"""What the server says when a small model plays the agent: sampled text of the checkpoint in TRAJSMITH_SMALL_MODEL.

The checkpoint is one of `trajsmith sft`. Its text is read with TRL's parser of the chat template. Where that parser
finds a call that is no JSON it gives the whole as text; a call whose name can be read is then passed on as it was
written, as hosted servers do, so that what reads the answer has to cope with it.
"""

import json
import os
import re
from functools import cache

MODEL = "TRAJSMITH_SMALL_MODEL"
MOST_TOKENS = 160
BLOCK = re.compile(r"<tool_call>\s*(.*?)\s*(?:</tool_call>|\Z)", re.DOTALL)
WRITTEN = re.compile(r'"name":\s*"([^"]*)"(?:.*?"arguments":\s*(.*?)\s*\}?\s*\Z)?', re.DOTALL)
THOUGHT = re.compile(r"<think>(.*?)</think>", re.DOTALL)


def answer(request):
    """One message, sampled with the request's seed and temperature."""
    model, tokenizer = checkpoint()
    ids = tokenizer.apply_chat_template(
        [read(message) for message in request["messages"]],
        tools=request.get("tools") or None,
        add_generation_prompt=True,
        return_dict=False,
    )
    room = min(request.get("max_tokens") or MOST_TOKENS, MOST_TOKENS)
    if len(ids) + room > model.config.max_position_embeddings:
        return {"refused": [400, "context_length_exceeded", f"the prompt has {len(ids)} tokens, too many"]}
    made = generate(model, ids, room, request.get("temperature", 1.0), request.get("seed", 0))
    whole = made[-1] in (tokenizer.eos_token_id, tokenizer.pad_token_id)
    message = message_of(tokenizer, ids, made, request.get("tools"))
    return {**message, "usage": [len(ids), len(made)], **({} if whole else {"finish_reason": "length"})}


@cache
def checkpoint():
    import torch

    from trajsmith.models.transformers_engine import open_model
    from trajsmith.train_sft.checkpoint import open_training_tokenizer

    torch.set_num_threads(1)
    folder = os.environ[MODEL]
    return open_model(folder).eval(), open_training_tokenizer(folder)


def generate(model, ids, room, temperature, seed):
    import torch

    torch.manual_seed(seed)
    sampled = {"do_sample": True, "temperature": temperature, "top_k": 0} if temperature else {"do_sample": False}
    with torch.no_grad():
        made = model.generate(
            torch.tensor([ids]), attention_mask=torch.ones(1, len(ids)), max_new_tokens=room, **sampled
        )
    return made[0, len(ids) :].tolist()


def read(wire):
    """A message as the chat template wants it: arguments are objects."""
    message = {name: value for name, value in wire.items() if value is not None}
    if "tool_calls" in message:
        message["tool_calls"] = [
            {"type": "function", "function": {"name": name, "arguments": json.loads(arguments)}}
            for call in message["tool_calls"]
            for name, arguments in [(call["function"]["name"], call["function"]["arguments"])]
        ]
    return message


def message_of(tokenizer, prefix, ids, tools):
    """Generated tokens as a message of the chat completions API."""
    from trl.chat_template_utils import parse_response

    parsed = parse_response(tokenizer, ids, prefix=prefix, tools=tools)
    text = tokenizer.decode(ids, skip_special_tokens=True)
    blocks = BLOCK.findall(text)
    functions = [
        (call["function"]["name"], json.dumps(call["function"].get("arguments", {})))
        for call in parsed.get("tool_calls") or ()
    ]
    content = parsed.get("content") or ""
    if len(functions) != len(blocks):
        functions = [as_written(block) for block in blocks]
        content = BLOCK.sub("", THOUGHT.sub("", text)).strip()
    message = {"content": content, "reasoning_content": parsed.get("reasoning_content") or thought(text)}
    if functions:
        message["tool_calls"] = [
            {"id": f"call_{len(prefix)}_{number}", "type": "function", "function": {"name": name, "arguments": written}}
            for number, (name, written) in enumerate(functions)
        ]
    return message


def as_written(block):
    """Name and arguments of a call that may be no JSON; what cannot be told apart is all arguments."""
    try:
        call = json.loads(block)
        return str(call["name"]), json.dumps(call.get("arguments", {}))
    except (ValueError, TypeError, KeyError):
        found = WRITTEN.search(block)
        return (found[1], found[2] or "") if found else ("", block)


def thought(text):
    found = THOUGHT.search(text)
    return found[1].strip() if found else ""
