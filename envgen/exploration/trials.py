"""Trials of the tools of a live MCP server: what their calls do, and which values they take."""

import os
from collections.abc import Callable
from typing import Any, Self

from trajsmith.envgen.exploration.findings import (
    MEDIA,
    ExploredTool,
    Findings,
    is_offered,
    list_scalars,
    list_search_words,
    strip_times,
)
from trajsmith.envgen.exploration.harvest import Harvest
from trajsmith.envgen.exploration.prober import Prober, TrialCall
from trajsmith.envgen.exploration.tool_kinds import ToolKind, classify_tool, find_open_world
from trajsmith.envgen.exploration.values import SEARCHES, propose_values, takes_sql
from trajsmith.environments.adapters.mcp.tools import describe
from trajsmith.environments.arguments import ArgumentValidator
from trajsmith.grounding import (
    Lessons,
    build_arguments,
    get_array_item,
    list_input_fields,
    split_name,
)
from trajsmith.records import InputError, canonical_json

MOST_TOOLS = 60
"""Tools that are tried; the others of a longer list are left out."""
TRIES = 8
"""Calls of one tool until it succeeds, in one round."""
SUCCESSES = 3
"""Successful calls of one tool that are made with different values."""
WATCHED = 6
"""Reads without arguments whose results are compared before and after a call."""


class ToolTrials:
    """Calls of the tools of one server, and what they show."""

    def __init__(self, prober: Prober, findings: Findings, seed: int, report: Callable[[str], None]) -> None:
        self.prober = prober
        self.findings = findings
        self.report = report
        self.seed = seed
        self.lessons = Lessons()
        self.harvest = Harvest()
        self.validator = ArgumentValidator(findings.spec)
        self._seen = ""

    @classmethod
    async def open(cls, prober: Prober, seed: int, report: Callable[[str], None], open_world: bool) -> Self:
        """Start the server and read its tools."""
        live = await prober.start()
        spec = describe(prober.settings, live.server_info)
        if not spec.tools:
            raise InputError(f"MCP server {spec.name}: it has no tools")
        tools = {tool.name: ExploredTool(tool, classify_tool(tool), list_input_fields(tool)) for tool in spec.tools}
        for tool in tools.values():
            if any(takes_sql(tool.spec, leaf) in ("write", "any") for leaf in tool.fields):
                tool.kind = "change"
        for number, tool in enumerate(tools.values()):
            tool.without = "" if open_world else find_open_world(tool.spec)
            if number >= MOST_TOOLS:
                tool.without = f"only the first {MOST_TOOLS} tools are explored"
        info = live.server_info
        findings = Findings(spec, f"{info.name} {info.version}".strip(), info.instructions, tools, [])
        findings.databases = prober.databases
        return cls(prober, findings, seed, report)

    def usable(self, *kinds: ToolKind) -> list[ExploredTool]:
        """Return the tools of these kinds that are not left out."""
        for name, fault in self.prober.faults.items():
            tool = self.findings.tools[name]
            tool.without = tool.without or fault
        return [one for kind in kinds for one in self.findings.tools.values() if one.kind == kind and not one.without]

    # Refusals

    async def try_wrong_calls(self) -> None:
        """Call tools with what cannot be right, to see how the server refuses."""
        for tool in self.usable("read", "change", "destroy"):
            texts = [leaf for leaf in tool.fields if leaf.required and not leaf.choices]
            if not texts or len(texts) > 3:
                continue
            leaves: dict[str, Any] = {}
            for leaf in texts:
                item = get_array_item(leaf, tool.spec.input_schema) or leaf
                number = bool(item.types & {"integer", "number"}) and "string" not in item.types
                leaves[leaf.path] = 987654 if number else "zzqx-nothing-here"
            for leaf in tool.fields:
                if leaf.required and leaf.choices:
                    leaves[leaf.path] = leaf.choices[0]
            await self.call(tool, leaves, {}, keep=False)

    def note(self, outcome: TrialCall) -> None:
        """Remember how a call was answered."""
        if outcome.plain_refusal:
            leaves = tuple(str(value) for value in list_scalars(outcome.arguments))
            self.findings.refused.append((outcome.text, leaves))
        elif outcome.ok:
            self.findings.accepted_texts.append(outcome.text[:1000])

    # Calls

    async def call(
        self, tool: ExploredTool, leaves: dict[str, Any], origins: dict[str, str], keep: bool = True
    ) -> TrialCall | None:
        """Make a call with these leaves; None where they break the schema."""
        arguments = build_arguments(leaves)
        if self.validator.fault(tool.spec.name, arguments) is not None:
            return None
        outcome = await self.prober.call(tool.spec.name, arguments)
        self.note(outcome)
        if not outcome.ok:
            tool.last_refusal = outcome.text
            if keep:
                self.lessons.record_refusal(tool.spec.name, outcome.text, tool.fields, leaves)
        elif keep:
            tool.good.append((arguments, leaves, origins))
            tool.samples.append(outcome.content)
            self.harvest.add(tool.spec.name, outcome.content)
            if tool.kind != "destroy":
                self.harvest.add(tool.spec.name, arguments)
        return outcome

    async def try_tool(self, tool: ExploredTool, round_number: int) -> None:
        """Call a tool with different values until it has succeeded a few times."""
        wanted = 1 if not tool.fields or tool.kind == "destroy" else SUCCESSES
        done = {canonical_json(arguments) for arguments, _, _ in tool.good}
        for attempt in range(TRIES):
            if len(tool.good) >= wanted or tool.without:
                break
            with_optional = bool(tool.good) and attempt % 2 == 1
            number = self.seed + len(tool.good) + attempt + 3 * round_number
            proposed = self.propose(tool, number, attempt, with_optional)
            if proposed is None:
                break
            leaves, origins = proposed
            key = canonical_json(build_arguments(leaves))
            if key in done:
                continue
            done.add(key)
            tool.tried += 1
            outcome = await self.call(tool, leaves, origins)
            if tool.spec.name in self.prober.faults:
                tool.without = self.prober.faults[tool.spec.name]
                break
            if outcome is not None and outcome.ok:
                self.examine(tool, outcome)
                if tool.kind != "read" or len(tool.good) == 1:
                    await self.look(tool)

    def examine(self, tool: ExploredTool, outcome: TrialCall) -> None:
        """Leave a tool out whose results are of no use in a dialogue."""
        machine = [value for name in ("PATH", "VIRTUAL_ENV", "HOSTNAME") if len(value := os.environ.get(name, "")) > 8]
        if any(value in outcome.text for value in machine):
            tool.without = "its result tells about this machine"
        elif MEDIA.search(outcome.text):
            tool.without = "its result is no text"

    def propose(
        self, tool: ExploredTool, number: int, attempt: int, with_optional: bool
    ) -> tuple[dict[str, Any], dict[str, str]] | None:
        """Return leaves of a call and their origins; None if a required one has no value."""
        leaves: dict[str, Any] = {}
        origins: dict[str, str] = {}
        wanted = self.lessons.wanted.get(tool.spec.name, set())
        for place, leaf in enumerate(tool.fields):
            if not leaf.required and not (with_optional and is_offered(leaf)) and leaf.path not in wanted:
                continue
            item = get_array_item(leaf, tool.spec.input_schema)
            target = item or leaf
            if "object" in target.types and not target.types & {"string", "integer", "number"}:
                if leaf.required:
                    leaves[leaf.path], origins[leaf.path] = {}, "plain"
                continue
            references = self.harvest.find(tool.spec, target)
            if tool.kind == "read" and set(split_name(leaf.name)) & SEARCHES and not takes_sql(tool.spec, leaf):
                references = [*list_search_words(self.harvest.list_texts()), *references]
            hints = self.lessons.hints(tool.spec.name, leaf.path)
            proposals = propose_values(tool.spec, target, number, references, hints, tool.kind == "create")
            if not proposals:
                if leaf.required:
                    return None
                continue
            chosen = proposals[min(max(0, (attempt - 1) // 2), len(proposals) - 1)]
            turn = attempt + (3 * place if chosen.origin in ("schema", "plain") else 0)
            value = chosen.values[turn % len(chosen.values)]
            leaves[leaf.path] = [value] if item is not None else value
            origins[leaf.path] = chosen.origin
        return leaves, origins

    # Observation

    async def choose_watched(self) -> None:
        """Choose the reads that need no arguments; what they show is the state that calls may change."""
        for tool in self.usable("read"):
            if len(self.findings.watched) >= WATCHED or any(leaf.required for leaf in tool.fields):
                continue
            outcome = await self.call(tool, {}, {})
            if outcome is not None and outcome.ok:
                self.examine(tool, outcome)
                again = await self.call(tool, {}, {})
                same = again is not None and strip_times(again.text) == strip_times(outcome.text)
                if not tool.without and same:
                    self.findings.watched.append(tool.spec.name)
        self._seen = await self.observe()

    async def observe(self) -> str:
        """Return all that is watched as one text."""
        shown = [(await self.prober.call(name, {})).text for name in self.findings.watched]
        return strip_times(canonical_json([shown, await self.prober.files()]).decode())

    async def look(self, tool: ExploredTool) -> None:
        """Find out whether a call of the tool changed what is watched."""
        now = await self.observe()
        if now != self._seen:
            tool.changed = True
            if tool.spec.annotations.read_only_hint is True:
                tool.without = "it says that it only reads, and changes the state"
        self._seen = now
