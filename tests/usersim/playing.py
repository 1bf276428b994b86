"""A task of the library with everything that a dialogue on it needs, and a model whose replies are given."""

import json
import os

import speaking
from standin import StandIn

from trajsmith.environments import NativeSession
from trajsmith.environments.library import ENVIRONMENTS, get_phrases_path
from trajsmith.grounding import Grounder, GroundSettings
from trajsmith.models.prompts import load_builtin_prompts
from trajsmith.models.serialization import parse_reply
from trajsmith.phrasing import Wording, load_phrasebook
from trajsmith.querygen import TaskWriter, WriteSettings
from trajsmith.records import RecordDropped, content_hash
from trajsmith.toolgraph import GraphIndex, Sampler, SampleSettings, build_graph, sample_chains
from trajsmith.usersim import Dialogue, ModelAgent, ModelUser, PlaySettings, ScriptedAgent, ScriptedUser
from trajsmith.verify import verify_trajectory


class Stage:
    """Tasks of one environment, and plays of them by any mix of roles."""

    def __init__(self, name, folder):
        self.cls = ENVIRONMENTS.get(name)
        self.spec, self.state = self.cls.describe(), self.cls.seed_state("small", 1).model_dump(mode="json")
        self.wording = Wording(load_phrasebook(get_phrases_path(self.cls)), self.spec.tools)
        self.folder = folder
        self.made = {}
        (folder / "environments").mkdir(parents=True)
        (folder / "environments" / f"{name}.json").write_bytes(self.spec.to_line())
        phrases = self.wording.phrasebook.model_dump_json()
        (folder / "environments" / f"{name}.phrases.json").write_text(phrases)

    def session(self):
        return NativeSession(self.cls, self.spec)

    async def tasks(self, count, seed=4, **settings):
        key = (count, seed, *sorted(settings.items()))
        if key not in self.made:
            self.made[key] = await self._tasks(count, seed, settings)
        return self.made[key]

    async def _tasks(self, count, seed, settings):
        sampling = SampleSettings(count=80, length=(6, 8))
        name = self.spec.name
        sampler = Sampler(GraphIndex(build_graph(self.spec.tools), name), sampling)
        grounder = Grounder(self.spec, self.state, self.wording.phrasebook, GroundSettings())
        writer = TaskWriter(self.spec, self.wording, WriteSettings(**settings))
        found = []
        for chain in sample_chains({name: sampler}, {name: [content_hash(self.state)]}, sampling, seed):
            try:
                grounded = await grounder.ground(chain, self.session())
                found.append(await writer.write(grounded, self.state, self.session()))
            except RecordDropped:
                continue
            if len(found) == count:
                break
        with (self.folder / "tasks.jsonl").open("ab") as file:
            file.writelines(task.to_line() for task in found)
        return found

    async def play(self, task, agent=None, user=None, candidate=0, **settings):
        """Play a task; a role without a model is scripted."""
        os.environ[speaking.RUN] = str(self.folder)
        given = PlaySettings(**settings)
        acting = (
            ScriptedAgent(task, self.wording, candidate, listens=user is not None)
            if agent is None
            else ModelAgent(agent, self.spec, task, given, candidate)
        )
        asking = (
            ScriptedUser(task, self.wording, candidate)
            if user is None
            else ModelUser(user, self.spec, self.wording, task, self.state, candidate, load_builtin_prompts())
        )
        dialogue = Dialogue(self.spec, task, self.state, self.session(), acting, asking, given, candidate)
        return await dialogue.play()

    async def verdict(self, task, trajectory):
        return await verify_trajectory(task, trajectory, self.state, self.session(), wording=self.wording)


class Replies:
    """A model that gives replies in order, the last one for ever; an exception among them is raised."""

    name = "replies"

    def __init__(self, *replies):
        self.replies = list(replies)
        self.requests = []

    async def complete(self, request):
        self.requests.append(request)
        reply = self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]
        if isinstance(reply, Exception):
            raise reply
        message = {"role": "assistant", **({"content": reply} if isinstance(reply, str) else reply)}
        return parse_reply(json.dumps({"choices": [{"message": message}]}).encode())

    async def close(self):
        """Nothing to close."""


def call(name, arguments="{}", number=1):
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return {"id": f"c{number}", "type": "function", "function": {"name": name, "arguments": text}}


__all__ = ["Replies", "Stage", "StandIn", "call"]
