"""Good plays of a library environment, and the same plays with something wrong put into them."""

from trajsmith.environments import NativeSession
from trajsmith.environments.library import ENVIRONMENTS, get_phrases_path
from trajsmith.grounding import Grounder, GroundSettings
from trajsmith.grounding.names import is_identifier
from trajsmith.phrasing import Wording, load_phrasebook
from trajsmith.querygen import TaskWriter, WriteSettings
from trajsmith.records import FromOutput, Message, RecordDropped, content_hash
from trajsmith.toolgraph import GraphIndex, Sampler, SampleSettings, build_graph, sample_chains
from trajsmith.usersim import Dialogue, PlaySettings, ScriptedAgent, ScriptedUser
from trajsmith.verify import verify_trajectory


class Doctored:
    """Tasks in conversation mode with their scripted plays."""

    def __init__(self, name):
        self.cls = ENVIRONMENTS.get(name)
        self.spec, self.state = self.cls.describe(), self.cls.seed_state("small", 1).model_dump(mode="json")
        self.wording = Wording(load_phrasebook(get_phrases_path(self.cls)), self.spec.tools)
        self.first = None
        self.played = {}

    def session(self):
        return NativeSession(self.cls, self.spec)

    async def play(self):
        """One play that was accepted."""
        if self.first is None:
            for task, trajectory in await self.plays(10):
                if len(task.turns) > 1 and any(self.internal_values(task)):
                    self.first = task, trajectory
                    break
        return self.first

    async def plays(self, count):
        if count not in self.played:
            self.played[count] = await self._plays(count)
        return self.played[count]

    async def _plays(self, count):
        settings = SampleSettings(count=60, length=(6, 8))
        name = self.spec.name
        sampler = Sampler(GraphIndex(build_graph(self.spec.tools), name), settings)
        grounder = Grounder(self.spec, self.state, self.wording.phrasebook, GroundSettings())
        writer = TaskWriter(self.spec, self.wording, WriteSettings(direct=0.0))
        found = []
        for chain in sample_chains({name: sampler}, {name: [content_hash(self.state)]}, settings, 4):
            try:
                grounded = await grounder.ground(chain, self.session())
                task = await writer.write(grounded, self.state, self.session())
            except RecordDropped:
                continue
            agent, user = ScriptedAgent(task, self.wording, 0), ScriptedUser(task, self.wording, 0)
            dialogue = Dialogue(self.spec, task, self.state, self.session(), agent, user, PlaySettings(), 0)
            found.append((task, await dialogue.play()))
            if len(found) == count:
                return found
        raise AssertionError("too few plays")

    async def verdict(self, task, trajectory):
        return await verify_trajectory(task, trajectory, self.state, self.session(), wording=self.wording)

    def internal_values(self, task):
        for call in task.gold_calls:
            for name, source in call.provenance.items():
                if isinstance(source, FromOutput) and is_identifier(name):
                    yield str(call.arguments[name])

    def internal_value(self, task):
        return next(self.internal_values(task))

    def with_exchange(self, trajectory, agent_says, user_says, at_end=False):
        """The play with two messages more before the first answer of the last turn; or at its end, with a good bye."""
        added = [Message(role="assistant", content=agent_says), Message(role="user", content=user_says)]
        last = trajectory.turns[-1]
        where = last.stop if at_end else last.start + 1
        if at_end:
            added.append(Message(role="assistant", content="That's all there is to say."))
        messages = (*trajectory.messages[:where], *added, *trajectory.messages[where:])
        events = tuple(
            event.model_copy(update={"message": event.message + len(added)}) if event.message >= where else event
            for event in trajectory.events
        )
        span = last.model_copy(update={"stop": last.stop + len(added)})
        changes = {"messages": messages, "events": events, "turns": (*trajectory.turns[:-1], span)}
        return trajectory.model_copy(update=changes)

    def cut_short(self, trajectory, *words):
        """The play until its first request, then these words by turns, the agent's first; the user ends it."""
        first = trajectory.turns[0]
        roles = ("assistant", "user")
        said = [Message(role=roles[number % 2], content=text) for number, text in enumerate(words)]
        messages = (*trajectory.messages[: first.start + 1], *said)
        span = first.model_copy(update={"stop": len(messages), "state_hash": trajectory.initial_state})
        return trajectory.model_copy(update={"messages": messages, "events": (), "turns": (span,)})
