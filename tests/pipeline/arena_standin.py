"""`trajsmith arena` with a stand-in for models and training: no torch, and rules in place of weights.

A model fails every task of one tool until a training has shown it enough rows of that tool. This tests the arena, and
says nothing of what training does.
"""

import json
import os
import signal
import sys
from pathlib import Path

from trajsmith.cli.app import main
from trajsmith.models import ChatReply
from trajsmith.models.settings import PROVIDERS
from trajsmith.pipeline.arena_trainers import TRAINERS
from trajsmith.pipeline.format_export import iter_selected
from trajsmith.pipeline.run_directory import RunDirectory
from trajsmith.records import Message

sys.path.insert(0, str(Path(__file__).parents[1] / "language_server"))
import speaking

WEAK, ENOUGH = "pay_payee", 10


@PROVIDERS.register("standin")
class StandInProvider:
    """Plays the gold calls, but says only "Done." where the weak tool is needed and was not learnt."""

    def __init__(self, entry, settings, folder):
        self.run = str(folder.parents[2] / "held-out" / "run")
        learnt = Path(settings.model) / "learnt.json"
        rows = json.loads(learnt.read_text()) if learnt.is_file() else 0
        self.weak = settings.model != "perfect" and rows < ENOUGH

    async def send(self, request):
        first = next(message.content for message in request.messages if message.role == "user")
        task = speaking.tasks(self.run).find(first)
        if self.weak and any(call.tool == WEAK for call in task.gold_calls):
            return ChatReply(message=Message(role="assistant", content="Done."))
        wording = speaking.place(self.run, task.environments[0])
        agent = speaking.standing(task, wording, list(request.messages))
        return ChatReply(message=speaking.now(agent.act(list(request.messages))).message)

    async def check(self):
        return True

    async def close(self):
        pass


class StandInTrainer:
    """Counts the rows of the weak tool; killed once, where a file asks for it."""

    def list_formats(self, settings):
        return ()

    def check(self, settings):
        pass

    def train(self, job):
        kill = job.out.parents[3] / "kill"
        if kill.is_file():
            kill.unlink()
            os.kill(os.getpid(), signal.SIGKILL)
        rows = [row for _, row, verdict in iter_selected(RunDirectory.open(job.run)) if verdict.accepted]
        weak = sum(any(event.tool == WEAK for event in row.events) for row in rows)
        job.out.mkdir(parents=True, exist_ok=True)
        (job.out / "learnt.json").write_text(json.dumps(weak if job.settings.get("learns", True) else 0))
        return str(job.out)


TRAINERS.register("standin")(StandInTrainer())

if __name__ == "__main__":
    main()
