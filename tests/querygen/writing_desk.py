"""A grounded chain and a model that answers as it is told, for tests of the writer."""

import json

from trajsmith.environments import NativeSession
from trajsmith.environments.library import ENVIRONMENTS, get_phrases_path
from trajsmith.grounding import Grounder, GroundSettings
from trajsmith.models.prompts import load_builtin_prompts
from trajsmith.models.serialization import parse_reply
from trajsmith.phrasing import Wording, load_phrasebook
from trajsmith.querygen import AuthorSettings, EarlierRequests, ModelTaskAuthor, QueryGates, TaskWriter, WriteSettings
from trajsmith.querygen.plan import QueryRefineSettings
from trajsmith.records import RecordDropped, content_hash
from trajsmith.toolgraph import GraphIndex, Sampler, SampleSettings, build_graph, sample_chains

PLAIN = QueryRefineSettings(implicit_reference=0, action_compression=0, ambiguity=0, goal_expansion=0)


class Place:
    """One environment of the library, grounded chains on its first state, and their tasks."""

    def __init__(self, name, **settings):
        self.cls = ENVIRONMENTS.get(name)
        self.spec, self.state = self.cls.describe(), self.cls.seed_state("small", 1).model_dump(mode="json")
        self.wording = Wording(load_phrasebook(get_phrases_path(self.cls)), self.spec.tools)
        self.settings = WriteSettings(direct=0.0, **settings)

    def session(self):
        return NativeSession(self.cls, self.spec)

    async def grounded(self, count=1, seed=4):
        settings = SampleSettings(count=60, length=(6, 8))
        sampler = Sampler(GraphIndex(build_graph(self.spec.tools), self.spec.name), settings)
        chains = sample_chains({self.spec.name: sampler}, {self.spec.name: [content_hash(self.state)]}, settings, seed)
        grounder = Grounder(self.spec, self.state, self.wording.phrasebook, GroundSettings())
        found = []
        for chain in chains:
            try:
                found.append(await grounder.ground(chain, self.session()))
            except RecordDropped:
                continue
            if len(found) == count:
                return found
        raise AssertionError("too few chains")

    async def task(self, grounded, author=None):
        writer = TaskWriter(self.spec, self.wording, self.settings)
        return await writer.write(grounded, self.state, self.session(), author)

    def author(self, model, earlier=None, ticket=0, **settings):
        gates = QueryGates(self.spec, self.wording)
        given = AuthorSettings(**{"persona": False, "refine": PLAIN, **settings})
        return ModelTaskAuthor(
            model, self.spec, gates, load_builtin_prompts(), given, earlier or EarlierRequests(0.8), ticket
        )


class Told:
    """Answers the requests in order; a function gets the request."""

    name = "told"

    def __init__(self, *answers):
        self.answers = list(answers)
        self.requests = []

    async def complete(self, request):
        self.requests.append(request)
        given = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        given = given(request) if callable(given) else given
        text = given if isinstance(given, str) else json.dumps(given)
        return parse_reply(json.dumps({"choices": [{"message": {"role": "assistant", "content": text}}]}).encode())

    async def close(self):
        """Nothing to close."""
