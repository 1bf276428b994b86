"""Import dialogues that you recorded: their calls are executed again on an environment, and each is judged.

    python examples/import_dialogues.py

The environment is the garden of own_environment.py. The second dialogue was recorded with another garden: its results
differ, so it is not accepted. A file without gold actions gives `undecided`; `without_gold` says what is accepted.
"""

import json
import shutil
from pathlib import Path

import trajsmith as ts

CONFIG = {
    "name": "recorded",
    "environments": [{"python": f"{Path(__file__).with_name('own_environment.py')}:Garden"}],
    "verify": {"imported": {"without_gold": "replay"}},
}


def record(request: str, plant_id: str, result: dict[str, object], answer: str) -> dict[str, object]:
    """Return a dialogue as OpenAI messages, as agents log them."""
    call = {"name": "water_plant", "arguments": json.dumps({"plant_id": plant_id})}
    return {
        "messages": [
            {"role": "user", "content": request},
            {"role": "assistant", "tool_calls": [{"id": "call_1", "type": "function", "function": call}]},
            {"role": "tool", "tool_call_id": "call_1", "content": json.dumps(result)},
            {"role": "assistant", "content": answer},
        ]
    }


def main() -> None:
    mint = {"plant_id": "P1", "name": "Mint", "watered": True}
    dialogues = [
        record("Please water the mint.", "P1", mint, "The mint is watered."),
        record("Please water the rose.", "P2", mint | {"plant_id": "P2", "name": "Rose"}, "The rose is watered."),
    ]
    file = Path("runs/dialogues.jsonl")
    file.parent.mkdir(exist_ok=True)
    file.write_text("".join(f"{json.dumps(dialogue)}\n" for dialogue in dialogues))

    shutil.rmtree("runs/recorded", ignore_errors=True)
    run = ts.import_dialogues([file], run="runs/recorded", config=CONFIG)
    for task, _, verdict in run.judged:
        print(task.turns[0].query, "->", "accepted" if verdict.accepted else verdict.reasons)
    print("rows:", ts.export_dataset(run, "openai", run.path / "openai").writers["openai"].splits)


if __name__ == "__main__":
    main()
