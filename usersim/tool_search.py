"""A scripted agent that is shown no tool: it searches for each one before its first call, and calls what it found."""

import json
import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from trajsmith.environments import ToolResult
from trajsmith.phrasing import ToolIndex
from trajsmith.records import (
    CALL_TOOL,
    SEARCH_TOOLS,
    EnvironmentSpec,
    FunctionCall,
    Message,
    Task,
    ToolCall,
    ToolSearch,
    derive_seed,
)
from trajsmith.usersim.call_resolution import read_found_tools
from trajsmith.usersim.roles import AgentAct, AgentRole

UNSEARCHED_CALL, WRONG_SEARCH = "unsearched_call", "wrong_search"
SEARCH_FAULTS = (UNSEARCHED_CALL, WRONG_SEARCH)
"""Mistakes that only this agent can make: a call of a tool that no search has shown, at once or after a search for
something else."""
FIRST = (
    'I have no tool for this yet. I search for "{}".',
    'No tool that I know does this, so I look for one: "{}".',
    'First I need the right tool; "{}" should find it.',
    'Which tool does this? I search for "{}".',
)
AGAIN = (
    'None of these does it. I try other words: "{}".',
    'That search missed what I need. Next: "{}".',
    'The right tool is not among them, so I search for "{}" instead.',
)
TWO = ("I have no tools for this yet, so I search for each of them.", "Two tools are missing; I look for both.")


class SearchingAgent:
    """Agent that searches for the tools which another agent calls.

    Args:
        agent: Decides what is said and called; it knows nothing of the search.
        fault: Mistake among `SEARCH_FAULTS` to make once, or "".
    """

    def __init__(
        self,
        agent: AgentRole,
        task: Task,
        search: ToolSearch,
        spec: EnvironmentSpec,
        candidate: int,
        fault: str = "",
    ) -> None:
        self.agent = agent
        self.name = agent.name
        self.prompts = agent.prompts
        self.search = search
        self.rng = random.Random(derive_seed(task.seed, "tool search", candidate))
        self.fault = fault
        self.tools = task.find_searched_specs(spec.tools)
        self.found: set[str] = set()
        self.tried: dict[str, int] = {}
        """Tool to the number of queries that were made for it."""
        self.waiting: AgentAct | None = None
        """Step of the agent whose tools are not found yet."""
        self.made: Literal["call", "search", "unsearched"] = "call"
        """What the last message did."""
        self.searches = 0

    async def act(self, messages: list[Message]) -> AgentAct:
        """Return a search if a tool of the agent's next step is not found yet, else the step itself."""
        act = self.waiting or await self.agent.act(messages)
        missing = [call for call in act.message.tool_calls or () if call.function.name not in self.found]
        if not missing:
            self.waiting, self.made = None, "call"
            return self._call_found(act)
        self.waiting = act
        names = list(dict.fromkeys(call.function.name for call in missing))
        if self.fault == WRONG_SEARCH and self.made != "search":
            query = self._find_wrong_query(names[0])
            if query:
                return replace(self._search([query], ""), fault=WRONG_SEARCH)
            self.fault = UNSEARCHED_CALL
        if self.fault:
            fault = "" if self.fault == WRONG_SEARCH else self.fault
            self.fault, self.made = "", "unsearched"
            call = self._wrap(missing[0].model_copy(update={"id": f"{missing[0].id}_0"}))
            return AgentAct(Message(role="assistant", tool_calls=(call,)), fault=fault)
        return self._search_for(names, bool(act.message.reasoning_content))

    def observe(self, tools: Sequence[str], results: Sequence[ToolResult], by_user: bool) -> None:
        """Take what a search has shown; all other results are the agent's."""
        if by_user or self.made == "call":
            self.agent.observe(tools, results, by_user)
            return
        for result in results if self.made == "search" else ():
            self.found |= read_found_tools(result.content)

    def _search_for(self, names: Sequence[str], thinks: bool) -> AgentAct:
        """Make the next query for each tool."""
        queries = []
        for name in names:
            number = self.tried.get(name, 0)
            self.tried[name] = number + 1
            queries.append(self.search.queries[name][number])
        again = any(self.tried[name] > 1 for name in names)
        thought = self.rng.choice(TWO if len(names) > 1 and not again else AGAIN if again else FIRST)
        return self._search(list(dict.fromkeys(queries)), thought.format(queries[-1]) if thinks else "")

    def _search(self, queries: Sequence[str], thought: str) -> AgentAct:
        self.made = "search"
        calls = []
        for query in queries:
            self.searches += 1
            function = FunctionCall(name=SEARCH_TOOLS, arguments={"query": query})
            calls.append(ToolCall(id=f"search_{self.searches}", function=function))
        return AgentAct(Message(role="assistant", tool_calls=tuple(calls), reasoning_content=thought or None))

    def _find_wrong_query(self, name: str) -> str:
        """Return words that find other tools and not this one; empty if there are none."""
        index = ToolIndex(self.tools)
        queries = [options[-1] for tool, options in sorted(self.search.queries.items()) if tool != name]
        for query in self.rng.sample(queries, len(queries)):
            if name not in {tool.name for tool in index.search(query, self.search.results)}:
                return query
        return ""

    def _call_found(self, act: AgentAct) -> AgentAct:
        if not act.message.tool_calls:
            return act
        calls = tuple(self._wrap(call) for call in act.message.tool_calls)
        return replace(act, message=act.message.model_copy(update={"tool_calls": calls}))

    def _wrap(self, call: ToolCall) -> ToolCall:
        """Return the call as call_tool makes it."""
        arguments = json.dumps(call.function.arguments, ensure_ascii=False)
        function = FunctionCall(name=CALL_TOOL, arguments={"tool_name": call.function.name, "arguments": arguments})
        return ToolCall(id=call.id, function=function)


def add_tool_search(
    agent: AgentRole, task: Task, spec: EnvironmentSpec, candidate: int, scripted: bool, fault: str = ""
) -> AgentRole:
    """Return an agent that searches for its tools, where the task wants that and the agent is scripted.

    A model is shown search_tools itself.
    """
    if task.search is None or not scripted:
        return agent
    return SearchingAgent(agent, task, task.search, spec, candidate, fault if fault in SEARCH_FAULTS else "")
