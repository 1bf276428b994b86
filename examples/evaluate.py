"""A model of your own as the agent of a run's tasks: pass rate with a 95 % interval, and what went wrong.

    python examples/evaluate.py

`answer` stands for any asynchronous call of a model. For a model behind an OpenAI-compatible endpoint pass its name and
`endpoint=ModelSettings(...)`; for one that runs here, its folder.
"""

import trajsmith as ts
from trajsmith.models import ChatReply, ChatRequest
from trajsmith.records import Message

CONFIG = {
    "name": "exam",
    "seed": 7,
    "environments": [{"library": "smart_home"}],
    "sample": {"count": 10, "length": [2, 4]},
    "export": {"split": {"test": 0.5}},
}


async def answer(request: ChatRequest) -> ChatReply:
    """Return the next message of the assistant; this one only talks."""
    text = f"I have {len(request.tools)} tools, but I would rather talk."
    return ChatReply(message=Message(role="assistant", content=text))


def main() -> None:
    run = ts.run(CONFIG, run="runs/exam", fresh=True)
    score = ts.evaluate(answer, run, split="test")[0]
    print(f"pass@1 {100 * score.pass1:.1f} % ({100 * score.low:.1f} to {100 * score.high:.1f}) of {score.tasks} tasks")
    print("errors:", score.errors)


if __name__ == "__main__":
    main()
