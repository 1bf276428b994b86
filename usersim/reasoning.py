"""Grounded reasoning: short thoughts of the scripted agent that are true because provenance says why.

Each thought is made of what is known at that point: what the user said, what results show, which call needs which
value. It never uses the gold answer: a value that no message before has shown is not written, and the thought is left
out if it would tell one.
"""

import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from trajsmith.environments import ToolResult
from trajsmith.grounding import build_selector_key, find_values, iterate_leaves
from trajsmith.phrasing import Wording, humanize, join_words, pick_text, pluralize
from trajsmith.records import FromOutput, FromUser, GoldCall, Message, Selector, Task, UserFact, derive_seed
from trajsmith.usersim.dialogue import PlaySettings
from trajsmith.usersim.roles import AgentAct, AgentRole
from trajsmith.usersim.scripted_agent import ScriptedAgent
from trajsmith.verify.claim_support import SupportTracker

GOALS = (
    "The user wants me to {}.",
    "The request is to {}.",
    "I'm asked to {}.",
    "What is needed: {}.",
    "So the task here is to {}.",
)
LOOKUPS = (
    "To do that I need the {noun}, and {tool} shows it.",
    "I don't have the {noun} yet; {tool} will give it to me.",
    "First I have to find the {noun}: {tool} is the way to it.",
    "The {noun} isn't known yet, so {tool} comes first.",
)
VALUES = (
    'For the {label} the user said "{said}".',
    'The {label} comes from the user: "{said}".',
    'The user gave the {label}: "{said}".',
    '"{said}" is the {label}.',
)
PLAIN_MATCHES = (
    "Of the {count} {plural} that {tool} lists, what the user said fits exactly one.",
    "What the user said picks out one {noun} from the result of {tool}.",
    "The description fits one of the {count} {plural} from {tool}.",
)
MATCHES = (
    'In what {tool} returned, one {noun} fits "{said}".',
    '"{said}" picks out one {noun} from the result of {tool}.',
    'Of the {count} {plural} that {tool} lists, "{said}" fits exactly one.',
    'The {noun} meant by "{said}" is in the result of {tool}.',
)
SINGLE = (
    "{tool} returned just one {noun}, so there is nothing to choose.",
    "There is a single {noun} in the result of {tool}, so it is that one.",
    "Only one {noun} came back from {tool}.",
)
EARLIER = (
    "The {noun} is already known from the result of {tool}.",
    "I can take the {noun} from what {tool} returned earlier.",
    "No new look-up is needed for the {noun}: {tool} has shown it.",
)
MISSING = (
    "The {labels} has not been said, and guessing would be wrong, so I ask.",
    "I can't go on without the {labels}. Better to ask than to assume.",
    "Nothing so far tells me the {labels}, so I have to ask the user.",
    "The {labels} is still open; only the user can tell me.",
)
CHOICES = (
    "There are {count} {plural} here and the request fits more than one, so I ask which.",
    "{count} {plural} are listed and I can't tell which one is meant. I'll ask.",
    "I shouldn't pick one of {count} {plural} on my own: the user has to say which.",
)
CONFIRMS = (
    "This step needs the user's agreement, so I say what will happen and wait.",
    "Before this call the rules want a clear yes. I'll ask for it.",
    "I have all I need, but the user must confirm this first.",
)
AGREED = (
    "The user has agreed, so I can go ahead.",
    "I have the yes that I needed.",
    "That was a clear yes: I make the call now.",
)
READY = (
    "I have everything that this call needs.",
    "All its arguments are known, so the call can be made.",
    "Nothing is missing for this step.",
)
DEVICE = (
    "Only the user can do this on their own device, so I ask them to.",
    "I can't reach the user's device; they have to try it and tell me what it shows.",
)
TOGETHER = (
    "These calls don't depend on each other, so I make them at once.",
    "None of these calls needs the result of another, so they can go out together.",
)
TWO_TOGETHER = (
    *TOGETHER,
    "Neither result is needed for the other call, so both can go out together.",
)
FAILED = (
    "The last call came back with an error, so it has not been done yet.",
    "That attempt failed; nothing was changed by it.",
)
ANSWERS = (
    "Everything the user asked for in this message is done, so I report it.",
    "All the results are in. I tell the user what they asked for.",
    "Nothing is left to do for this request; now the answer.",
    "That completes the request. I report only what the results show.",
)
SEEN_BEFORE = (
    "What this asks for stands in a result that I have already. I answer from it.",
    "No call is needed: a result from before shows it, and nothing has changed it since.",
    "I have seen this in an earlier result, so I tell it from there.",
)
_CLAUSE = re.compile(r"(what|which|who|whose|when|where|how|why|whether|if)\b", re.IGNORECASE)
"""Labels that are clauses and take no article."""
_SECOND_PERSON = (
    (re.compile(r"\byou have\b"), "they have"),
    (re.compile(r"\byou are\b"), "they are"),
    (re.compile(r"\byour\b"), "their"),
    (re.compile(r"\b(for|to|with|of) you\b"), r"\1 them"),
)


class ReasoningAgent:
    """A scripted agent that also writes down why it does what it does."""

    name = ScriptedAgent.name

    def __init__(self, agent: ScriptedAgent, task: Task, wording: Wording, candidate: int) -> None:
        self.agent = agent
        self.task = task
        self.wording = wording
        self.rng = random.Random(derive_seed(task.seed, "reasoning", candidate))
        self.prompts = agent.prompts
        self.opened = -1
        self.support = SupportTracker()
        self.heard: list[str] = []
        self.read = self.start = 0

    async def act(self, messages: list[Message]) -> AgentAct:
        """Return the step of the agent, with its reasoning."""
        for message in messages[self.read :]:
            self.support.read(message)
            self.heard += [message.content.lower()] if message.role == "user" else []
        self.read = len(messages)
        index = len(self.agent.results)
        act = await self.agent.act(messages)
        if act.fault or act.gave_up:
            return act
        thought = " ".join(self._think(act, index, messages))
        if not thought or self.support.find_unsupported(thought):
            return act
        return replace(act, message=act.message.model_copy(update={"reasoning_content": thought}))

    def observe(self, tools: Sequence[str], results: Sequence[ToolResult], by_user: bool) -> None:
        """Pass the results on to the agent."""
        self.agent.observe(tools, results, by_user)

    def _think(self, act: AgentAct, index: int, messages: Sequence[Message]) -> list[str]:
        agent = self.agent
        first = agent.turn != self.opened
        if first:
            self.opened = agent.turn
            self.start = agent.stop - len(self.task.turns[agent.turn].gold_calls)
        failed = messages[-1].role == "tool" and bool(agent.results) and not _is_last_result(agent, messages[-1])
        thoughts = [self.rng.choice(FAILED)] if failed else self._describe_goals() if first else []
        if act.asks:
            return [*thoughts, *self._describe_missing(act.asks, index)]
        if act.confirms:
            return [*thoughts, self.rng.choice(CONFIRMS)]
        if act.wants_user_call:
            return [*thoughts, self.rng.choice(DEVICE)]
        if act.message.tool_calls:
            names = [call.function.name for call in act.message.tool_calls]
            group = agent.group
            if [agent.calls[member].tool for member in group] != names:
                return thoughts
            return [*thoughts, *self._describe_calls(group, index)]
        turn = self.task.turns[agent.turn]
        seen_before = bool(turn.asked) and not turn.gold_calls
        return [self.rng.choice(SEEN_BEFORE if seen_before else ANSWERS)] if index >= agent.stop else []

    # Sentences

    def _describe_goals(self) -> list[str]:
        """Return what the turn is about, once at its beginning."""
        agent = self.agent
        used = {producer for index in range(self.start, agent.stop) for producer in _list_producers(agent.calls[index])}
        goals = [
            agent.calls[index]
            for index in range(self.start, agent.stop)
            if agent.calls[index].effect == "write" or index not in used
        ]
        phrases = [phrase for goal in goals[:2] if (phrase := self._describe_call(goal))]
        return [self._draw(GOALS).format(" and ".join(dict.fromkeys(phrases)))] if phrases else []

    def _describe_call(self, call: GoldCall) -> str:
        """Return a verb phrase for a call without slots, about the user in the third person; "" if there is none."""
        for template in self.rng.sample(
            self.wording.tool(call.tool).narrate, len(self.wording.tool(call.tool).narrate)
        ):
            text = pick_text([template], {}, self.rng)
            if text is not None:
                for pattern, words in _SECOND_PERSON:
                    text = pattern.sub(words, text)
                if not re.search(r"\byou\b", text):
                    return text
        return ""

    def _describe_calls(self, group: Sequence[int], index: int) -> list[str]:
        calls = self.agent.calls
        agreed = self.agent.asking
        thoughts = [self._draw(AGREED)] if agreed[:1] == (index,) else []
        if len(group) > 1:
            thoughts.append(self._draw(TWO_TOGETHER if len(group) == 2 else TOGETHER))
        for member in group:
            thoughts += list(self._describe_need(member))[:1]
            if member not in agreed:
                thoughts += list(self._describe_sources(calls[member]))[: 2 if len(group) == 1 else 1]
        return list(dict.fromkeys(thoughts)) or [self._draw(READY)]

    def _describe_need(self, index: int) -> Iterator[str]:
        """Yield why a look-up is made: a later call of the turn takes something from its result."""
        calls, call = self.agent.calls, self.agent.calls[index]
        for later in calls[index + 1 : self.agent.stop] if call.effect == "read" else ():
            for path, source, _ in iterate_leaves(later):
                if isinstance(source, FromOutput) and source.call == index:
                    yield self._draw(LOOKUPS).format(noun=self._name(path), tool=call.tool)

    def _describe_sources(self, call: GoldCall) -> Iterator[str]:
        """Yield where the arguments come from."""
        for path, source, _ in iterate_leaves(call):
            if isinstance(source, FromUser):
                known = self.agent.known[source.known]
                if known.key in self.agent.said and self._is_quotable(known) and not _CLAUSE.match(known.label):
                    yield self._draw(VALUES).format(label=known.label, said=known.said)
            elif isinstance(source, FromOutput):
                yield from self._describe_choice(path, source)

    def _describe_choice(self, path: str, source: FromOutput) -> Iterator[str]:
        producer, noun = self.agent.calls[source.call], self._name(path)
        picks = [pick for pick in source.selectors if pick.how not in ("only", "each")]
        if producer.actor == "user":
            return
        if not source.selectors or source.call < self.start:
            if source.call < self.start and self.rng.random() < 0.5:
                yield self._draw(EARLIER).format(noun=noun, tool=producer.tool)
            return
        if not picks:
            if self._count_rows(source, source.selectors[-1]) == 1:  # a batch takes one row after the other
                yield self._draw(SINGLE).format(noun=noun, tool=producer.tool)
            return
        known = self.agent.known.get(build_selector_key(source.call, picks[-1]))
        rows = self._count_rows(source, picks[-1])
        if known is not None and known.said and rows > 1:
            plural = self._name_many(path)
            yield self._draw(MATCHES).format(tool=producer.tool, noun=noun, plural=plural, count=rows, said=known.said)

    def _is_quotable(self, known: UserFact) -> bool:
        """Return True if the user used these very words."""
        return bool(known.said) and any(known.said.lower() in text for text in self.heard)

    def _describe_missing(self, keys: Sequence[str], index: int) -> list[str]:
        facts = [self.agent.known[key] for key in keys if key in self.agent.known]
        values = [known for known in facts if known.how == "value"]
        thoughts = []
        if values:
            labels = [known.label for known in values if not _CLAUSE.match(known.label)]
            thoughts.append(self._draw(MISSING).format(labels=join_words(labels or ["rest"])))
        for known in facts:
            if known.how != "value":
                thoughts += self._describe_open_choice(known, index)
        return thoughts

    def _describe_open_choice(self, known: UserFact, index: int) -> list[str]:
        for path, source, _ in iterate_leaves(self.agent.calls[index]):
            for selector in source.selectors if isinstance(source, FromOutput) else ():
                if isinstance(source, FromOutput) and build_selector_key(source.call, selector) == known.key:
                    rows = self._count_rows(source, selector)
                    return [self._draw(CHOICES).format(count=rows, plural=self._name_many(path))] if rows > 1 else []
        return []

    def _count_rows(self, source: FromOutput, selector: Selector) -> int:
        """Return the number of rows in the result that was really received."""
        if source.call >= len(self.agent.results):
            return 0
        rows: Any = next(
            (match.value for match in find_values(self.agent.results[source.call].content, selector.rows)), []
        )
        return len(rows) if isinstance(rows, list) else 0

    def _name(self, path: str) -> str:
        """Return what an argument identifies, or what it is called."""
        name = path.split(".")[-1].split("[")[0]
        if name in self.wording.phrasebook.entities or name.endswith("_id"):
            return self.wording.entity(name).noun
        return humanize(name)

    def _name_many(self, path: str) -> str:
        """Return what an argument identifies, in the plural."""
        name = path.split(".")[-1].split("[")[0]
        return self.wording.entity(name).plural or pluralize(self._name(path))

    def _draw(self, options: Sequence[str]) -> str:
        return self.rng.choice(options)


def add_reasoning(agent: AgentRole, task: Task, wording: Wording, candidate: int, settings: PlaySettings) -> AgentRole:
    """Return the agent with grounded reasoning, if it is scripted and the settings want it for this task."""
    if settings.reasoning == "off" or not isinstance(agent, ScriptedAgent):
        return agent
    drawn = random.Random(derive_seed(task.seed, "reasoning share")).random() < settings.reasoning_share
    return ReasoningAgent(agent, task, wording, candidate) if drawn else agent


def _list_producers(call: GoldCall) -> set[int]:
    return {source.call for _, source, _ in iterate_leaves(call) if isinstance(source, FromOutput)}


def _is_last_result(agent: ScriptedAgent, message: Message) -> bool:
    """Return True if a tool message is the result that the agent took last, so that the call did not fail."""
    return any(result.text == message.content for result in (agent.results[-1], *agent.early.values()))
