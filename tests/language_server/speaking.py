"""What the server says when it plays the roles of a run: the scripted language, from the request alone.

Nothing is remembered between requests. The role is seen from the prompt, the task is found by its first request in
`tasks.jsonl` of the run whose folder stands in TRAJSMITH_SPOKEN_RUN, and where a conversation stands is read off its
messages. Some first drafts of the writer are bad on purpose.
"""

import json
import os
import random
import re
from functools import cache, lru_cache
from pathlib import Path

from trajsmith.environments import ToolResult
from trajsmith.phrasing import Phrasebook, Wording
from trajsmith.phrasing.fact_detection import is_fact_stated
from trajsmith.phrasing.languages import get_language
from trajsmith.phrasing.question_detection import find_questions, find_requests, has_yes_or_no_question
from trajsmith.records import EnvironmentSpec, FunctionCall, Message, Task, ToolCall
from trajsmith.usersim import AgentAct, ScriptedAgent, ScriptedUser
from trajsmith.usersim.model_user import STOP
from trajsmith.usersim.request_matching import is_device_request
from trajsmith.usersim.scripted_user import PATIENCE

RUN = "TRAJSMITH_SPOKEN_RUN"
BAD_DRAFTS = 0.2
SCHEMAS = ("EdgeReply", "KindReply", "PersonaReply", "DraftReply", "RefineReply", "JudgeReply")


def answer(request):
    """The message for a request, as the server wants it."""
    if request["messages"][0]["role"] != "system":
        return "Ready."  # somebody tries out whether there is an answer
    schema = schema_of(request)
    if schema:
        return json.dumps(WRITERS[schema](request))
    system = request["messages"][0]["content"]
    return as_user(request) if system.startswith("You play a person") else as_agent(request)


def schema_of(request):
    named = request.get("response_format", {}).get("json_schema", {}).get("name", "")
    if named:
        return named
    text = json.dumps([message["content"] for message in request["messages"]])
    return next((name for name in SCHEMAS if f'\\"title\\":\\"{name}\\"' in text.replace(" ", "")), "")


# The tool graph


def edges(_request):
    return {"edges": []}  # all is right as it stands


def kinds(request):
    listed = re.findall(r"^- tool (\S+), parameter (\S+) \(", request["messages"][1]["content"], re.M)
    return {"parameters": [{"tool": tool, "parameter": name, **kind(name)} for tool, name in listed]}


def kind(name):
    if name.endswith(("_id", "_ids")):
        return {"kind": "internal", "reason": "Systems give out identifiers."}
    return {"kind": "external", "reason": "It is what the person wishes."}


# The writer


def persona(request):
    said = request["messages"][1]["content"]
    role = re.search(r"Usual role: (.*)\.$", said, re.M).group(1)
    style = random.Random(said).choice(("briskly", "warmly", "in half sentences", "a little formally"))
    return {"role": role, "style": style, "scenario": "There are a few things to get done, and today there is time."}


def draft(request):
    turns = [
        {"subgoals": [part["steps"]], "query": capital(part["meaning"])} for part in parts(request, "meaning", "steps")
    ]
    if len(request["messages"]) == 2:  # not after a rejection
        spoil(turns, random.Random(request["messages"][1]["content"]))
    return {"turns": turns}


def spoil(turns, rng):
    if rng.random() < BAD_DRAFTS:
        turn = rng.choice(turns)
        turn["query"] = rng.choice(
            (turn["query"] + " It is case ZX-90417.", "Hello?", "Please run get_everything_now.")
        )


def refine(request):
    rng = random.Random(request["messages"][1]["content"])
    turns = []
    for part in parts(request, "query", "edits"):
        query, opened = part["query"], part.get("leave open", "")
        if opened:
            said = opened[opened.index("(") + 1 : -1].lower()
            value = said.split()[-1]
            kept = [sentence for sentence in re.split(r"(?<=[.?!]) ", query) if value not in sentence.lower()]
            query = " ".join(kept) or "There is one more thing, and you know which one I mean."
            query += "".join(f" The {fact.replace(' = ', ' is ', 1)}." for fact in part["keep"])
        if part.get("also ask"):
            query += f" Could you also {part['also ask']}?"
        turns.append({"query": query})
    if len(request["messages"]) == 2 and rng.random() < BAD_DRAFTS:
        turns[0]["query"] += " My number is 555019."
    return {"turns": turns}


def parts(request, first, second):
    """The turns of a writer's prompt: their lines by the word before the colon, facts in lists."""
    found = []
    for line in request["messages"][1]["content"].split("\n"):
        if re.fullmatch(r"Turn \d+", line):
            found.append({"say": [], "keep": [], "hold back": []})
        elif found and ": " in line:
            name, _, text = line.partition(": ")
            if name in ("say", "keep", "hold back"):
                found[-1][name].append(text)
            elif name in (first, second, "leave open", "also ask"):
                found[-1][name] = text
    return found


def capital(text):
    return text[:1].upper() + text[1:]


def ruling(request):
    said = request["messages"][1]["content"]
    asked = len(re.findall(r"^\d+\. ", said.partition("\nQuestions:\n")[2], re.M))
    whole = asked > 0 or "\n- failed:" not in said
    outcome = "completed" if whole else "partially_completed"
    return {"reasoning": "As the program found.", "answers": [True] * asked, "outcome": outcome}


WRITERS = {
    "EdgeReply": edges, "KindReply": kinds,
    "PersonaReply": persona, "DraftReply": draft, "RefineReply": refine, "JudgeReply": ruling,
}  # fmt: skip


# The run


class Tasks:
    """Tasks of the run by their first request; read as the file grows."""

    def __init__(self, folder):
        self.folder = Path(folder)
        self.read = 0
        self.lines = {}

    def find(self, query):
        if query not in self.lines:
            self._read_on()
        return parse(self.lines[query])

    def _read_on(self):
        with (self.folder / "tasks.jsonl").open("rb") as file:
            file.seek(self.read)
            for line in file:
                if line.endswith(b"\n"):
                    self.lines[json.loads(line)["turns"][0]["query"]] = line
                    self.read += len(line)


@lru_cache(maxsize=4096)
def parse(line):
    return Task.from_line(line)


@cache
def tasks(folder):
    return Tasks(folder)


@cache
def place(folder, name):
    environments = Path(folder) / "environments"
    spec = EnvironmentSpec.model_validate_json((environments / f"{name}.json").read_bytes())
    phrases = environments / f"{name}.phrases.json"
    return Wording(Phrasebook.model_validate_json(phrases.read_bytes()), spec.tools)


def folder():
    return os.environ[RUN]


# The dialogue


def as_agent(request):
    messages = [read(message) for message in request["messages"]]
    first = next(message.content for message in messages if message.role == "user")
    task = tasks(folder()).find(first)
    wording = place(folder(), task.environments[0])
    names = [tool["function"]["name"] for tool in request.get("tools", [])]
    two = names in (["list_tools", "call_tool"], ["search_tools", "call_tool"])
    if names[:1] == ["list_tools"] and not any(message.tool_calls for message in messages):
        return {"content": "", "tool_calls": [wire_call("call_0", "list_tools", {})]}
    made = now(standing(task, wording, messages).act(messages)).message
    if names[:1] == ["search_tools"]:
        queries = next_queries(task, made, messages)
        calls = [
            wire_call(f"search_{len(messages)}_{number}", "search_tools", {"query": query})
            for number, query in enumerate(queries)
        ]
        if calls:
            return {"content": "", "tool_calls": calls}
    calls = []
    for number, call in enumerate(made.tool_calls or ()):
        name, arguments = call.function.name, call.function.arguments
        if two:
            name, arguments = "call_tool", {"tool_name": name, "arguments": json.dumps(arguments)}
        calls.append(wire_call(f"call_{len(messages)}_{number}", name, arguments))
    said = {"content": made.content, "reasoning_content": "What was asked, what is known, what comes next."}
    return {**said, "tool_calls": calls} if calls else said


def next_queries(task, made, messages):
    """The next query for each tool that is to be called and that no search has shown."""
    calls = [call.function for message in messages for call in message.tool_calls or ()]
    asked = [call.arguments.get("query") for call in calls if call.name == "search_tools"]
    shown = "".join(message.content for message in messages if message.role == "tool")
    missing = dict.fromkeys(call.function.name for call in made.tool_calls or ())
    for tool in missing:
        if f'{{"name":"{tool}","description"' not in shown:
            queries = task.search.queries[tool]
            yield next((query for query in queries if query not in asked), queries[-1])


def standing(task, wording, messages):
    """A scripted agent as it would stand after these messages."""
    agent = ScriptedAgent(task, wording, 0)
    openings = [turn.query for turn in task.turns]
    turn = -1
    called = {}
    known = {entry.key: entry for one in task.turns for entry in one.known}
    for index, message in enumerate(messages):
        agent_said = messages[index - 1].content if messages[index - 1].role == "assistant" else ""
        if message.role == "user" and turn + 1 < len(openings) and message.content == openings[turn + 1]:
            turn += 1
            agent.open_turn(turn)
        elif message.role == "user":
            agent.said |= {key for key, entry in known.items() if is_fact_stated(message.content, entry, wording)}
            hear(agent, agent_said, message.content, wording)
        for call in message.tool_calls or ():
            called[call.id] = inner(call.function)
        if message.role == "tool":
            take(agent, called.get(message.tool_call_id), message.content)
    return agent


def hear(agent, asked, said, wording):
    """What an answer settles: a yes to the next call, or that the user did something on their own device."""
    at = len(agent.results)
    if at >= agent.stop:
        return
    if agent.calls[at].actor == "user" and is_device_request(find_requests(asked), agent.calls[at], wording):
        if said not in get_language().user.shrugs:
            agent.results.append(ToolResult(agent.calls[at].result))
    elif has_yes_or_no_question(find_questions(asked)):
        agent.confirmed.add(at)


def inner(function):
    if function.name == "call_tool":
        return function.arguments.get("tool_name")
    return function.name


def take(agent, tool, text):
    """A result counts if it is that of the call that comes next and no refusal."""
    at = len(agent.results)
    try:
        content = json.loads(text)
    except ValueError:
        content = text
    refused = isinstance(content, dict) and set(content) == {"error"}
    if at < len(agent.calls) and agent.calls[at].tool == tool and not refused:
        agent.results.append(ToolResult(content))


def as_user(request):
    messages = [read(message) for message in request["messages"]]
    own = [message for message in messages if message.role == "assistant"]
    task = tasks(folder()).find(own[0].content)
    wording = place(folder(), task.environments[0])
    user = ScriptedUser(task, wording, 0)
    openings = [turn.query for turn in task.turns]
    for message in own:
        if (
            user.turn + (message is not own[0]) < len(openings)
            and message.content == openings[user.turn + (message is not own[0])]
        ):
            now(user.open(user.turn + (message is not own[0])))
        elif message.tool_calls:
            user.last_calls = user._pending()[:1]
            user.calls_made += 1
        elif message.content in get_language().user.shrugs or message.content in get_language().user.waiting:
            user.patience = max(0, min(user.patience, PATIENCE) - 1)
    entries = [entry for one in task.turns for entry in one.known]
    user.told = {entry.key for entry in entries for message in own if is_fact_stated(message.content, entry, wording)}
    if messages[-1].role == "tool":
        content = json.loads(messages[-1].content)
        kind = "refused" if isinstance(content, dict) and set(content) == {"error"} else None
        return now(user.report([], [ToolResult(content, kind)]))
    heard = [Message(role="assistant", content=message.content) for message in messages if message.role == "user"]
    act = now(user.reply(heard, AgentAct(messages[-1], hinted=False)))
    if act.done:
        return STOP
    if act.calls:
        calls = [wire_call(f"own_{len(messages)}", call.tool, call.arguments) for call in act.calls]
        return {"content": "", "tool_calls": calls}
    return act.text


def now(coroutine):
    """The result of a coroutine that waits for nothing."""
    try:
        coroutine.send(None)
    except StopIteration as done:
        return done.value
    raise AssertionError("a scripted role waits for something")


def wire_call(name, tool, arguments):
    return {"id": name, "type": "function", "function": {"name": tool, "arguments": json.dumps(arguments)}}


def read(wire):
    calls = tuple(
        ToolCall(
            id=call["id"],
            function=FunctionCall(name=call["function"]["name"], arguments=json.loads(call["function"]["arguments"])),
        )
        for call in wire.get("tool_calls", ())
    )
    return Message(
        role=wire["role"],
        content=wire["content"] or "",
        tool_calls=calls or None,
        tool_call_id=wire.get("tool_call_id"),
    )
