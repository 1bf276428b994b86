"""Play transcripts by `inspect_ai.eval` over an exported task with Inspect's mock model, and print the scores.

python drive_inspect.py FOLDER TRANSCRIPTS LOGS

The usage of each reply is set, since Inspect would fetch a tokenizer from the network to count it.
"""

import json
import sys
from importlib.metadata import version
from pathlib import Path

from inspect_ai import eval as evaluate
from inspect_ai.dataset import MemoryDataset
from inspect_ai.model import ChatMessageAssistant, ModelOutput, ModelUsage, get_model
from inspect_ai.scorer import Score
from inspect_ai.solver._task_state import sample_state
from inspect_ai.tool import ToolCall

folder, file, logs = sys.argv[1:]
transcripts = [json.loads(line) for line in Path(file).read_text("utf-8").splitlines()]
sys.path.insert(0, folder)


def reply(messages, tools, tool_choice, config):
    """Say what the transcript of this sample says next."""
    lines = transcripts[sample_state().metadata["number"]]["lines"]
    said = sum(message.role == "assistant" for message in messages)
    line = lines[said] if said < len(lines) else {"tool": "message_user", "arguments": {"text": ""}}
    if line["tool"] == "message_user":
        output = ModelOutput.from_content("mock", line["arguments"]["text"])
    else:
        call = ToolCall(id=f"call_{said}", function=line["tool"], arguments=line["arguments"])
        message = ChatMessageAssistant(content="", tool_calls=[call], model="mock")
        output = ModelOutput.from_message(message, "tool_calls")
    output.usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)
    return output


def build_task():
    """Return the exported task with a sample per transcript."""
    import task as module

    (build,) = [value for name, value in vars(module).items() if name.startswith("trajsmith_")]
    task = build()
    samples = {sample.id: sample for sample in task.dataset}
    task.dataset = MemoryDataset([])
    for number, one in enumerate(transcripts):
        sample = samples[one["task_id"]]
        update = {"id": number + 1, "metadata": {**sample.metadata, "number": number}}
        task.dataset.samples.append(sample.model_copy(update=update))
    return task


model = get_model("mockllm/model", custom_outputs=reply)
(log,) = evaluate(build_task(), model=model, log_dir=logs, display="none", log_level="warning")
assert log.status == "success", log.error
for sample in sorted(log.samples, key=lambda one: one.metadata["number"]):
    (score,) = sample.scores.values()
    assert isinstance(score, Score)
    found = {"number": sample.metadata["number"], "score": score.value, "about": score.explanation}
    sys.stdout.write(json.dumps(found) + "\n")
sys.stdout.write(json.dumps({"version": version("inspect-ai")}) + "\n")
