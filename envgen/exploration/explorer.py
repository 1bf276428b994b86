"""Exploration of a live MCP server: what its calls do, which values they take, and initial states made of them."""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from trajsmith.envgen.exploration.findings import (
    TIMES,
    ExploredTool,
    Findings,
    is_opaque,
    strip_times,
)
from trajsmith.envgen.exploration.harvest import Harvest
from trajsmith.envgen.exploration.prober import ExplorationEnded, ExplorationLimits, Prober
from trajsmith.envgen.exploration.trials import SUCCESSES, TRIES, ToolTrials
from trajsmith.envgen.exploration.values import SHARE, STATES, load_sql, propose_values, takes_sql
from trajsmith.environments.adapters.mcp import McpSettings
from trajsmith.environments.adapters.mcp.settings import CallSettings
from trajsmith.grounding import (
    SchemaField,
    build_arguments,
    get_array_item,
)
from trajsmith.records import InputError, JsonObject, canonical_json

STATE_CALLS = 16
"""Calls that make an initial state, at most."""


async def explore_server(
    settings: McpSettings,
    base: Path,
    seed: int = 0,
    report: Callable[[str], None] = lambda line: None,
    open_world: bool = False,
    limits: ExplorationLimits | None = None,
) -> Findings:
    """Explore a server in fresh workspaces.

    Args:
        settings: How to start it.
        base: Folder that relative paths of the settings start from.
        seed: The same seed makes the same calls.
        report: Called with a line about each step.
        open_world: Also call tools that reach other systems.
        limits: Bounds, in place of the defaults.

    Raises:
        EnvironmentFault: The server does not come up.
        InputError: It cannot be used, or has no tools.
    """
    prober = Prober(settings, base, limits or ExplorationLimits())
    try:
        explorer = await _Explorer.open(prober, seed, report, open_world)
        try:
            await explorer.explore()
        except ExplorationEnded as end:
            explorer.findings.ended = str(end)
            report(f"stopped {end}")
        explorer.conclude()
        return explorer.findings
    finally:
        await prober.close()


class _Explorer(ToolTrials):
    async def explore(self) -> None:
        await self.try_wrong_calls()
        await self.prober.start()
        await self._fill_tables(0, [])
        await self.choose_watched()
        for round_number in range(2):
            for tool in self.usable("create", "read", "change"):
                if len(tool.good) < SUCCESSES:
                    await self.try_tool(tool, round_number)
        for tool in self.usable("destroy"):
            await self.try_tool(tool, 1)
        tried = [tool for tool in self.findings.tools.values() if tool.good]
        self.report(f"{len(tried)} of {len(self.findings.tools)} tools answered, {self.prober.calls} calls")
        await self._check_isolation()
        await self._make_states()
        await self._check_states()

    async def _check_isolation(self) -> None:
        """Find out whether a fresh server shows what a former one was told.

        Raises:
            InputError: It does, so that it keeps its state outside of its workspace.
        """
        own_texts = {
            text
            for tool in self.usable("create")
            for _, leaves, origins in tool.good
            for path, text in leaves.items()
            if origins.get(path) == "row" and isinstance(text, str) and " " in text and len(text) > 8
        }
        asked = [(tool.spec.name, arguments) for tool in self.usable("read") for arguments, _, _ in tool.good[:3]]
        if not own_texts or not asked:
            return
        await self.prober.start()
        for name, arguments in asked:
            outcome = await self.prober.call(name, arguments)
            leaked = next((text for text in sorted(own_texts) if outcome.ok and text in outcome.text), None)
            if leaked is not None and leaked not in canonical_json(arguments).decode():
                raise InputError(
                    f"MCP server {self.findings.spec.name}: a fresh server still shows what was told to another one "
                    f"({leaked!r} in {name}): it keeps its state outside of its workspace; name a file there by its "
                    "arguments or `env`, for example {workspace}/data.db"
                )

    # States

    async def _make_states(self) -> None:
        creators = [tool for tool in self.usable("create", "change") if tool.good and tool.changed]
        sql = self._list_sql_takers("create", "write", "any")
        if not creators and not sql:
            return
        for number in range(STATES):
            await self.prober.start()
            await self._read_again()
            calls: list[CallSettings] = []
            if sql:
                await self._fill_tables(number, calls)
            for share in range(SHARE):
                for tool in creators:
                    if any(takes_sql(tool.spec, leaf) for leaf in tool.fields):
                        continue
                    repeats = tool.kind == "create" or share == 1
                    if repeats and len(calls) < STATE_CALLS:
                        await self._add_state_call(tool, number + share, share, calls)
            if calls:
                self.findings.states[f"state_{number + 1}"] = calls
                self.report(f"state_{number + 1}: {len(calls)} calls")

    async def _read_again(self) -> None:
        """Forget what was seen, and read what there is."""
        self.harvest = Harvest()
        for tool in self.usable("read"):
            for arguments, _, _ in tool.good[:2]:
                outcome = await self.prober.call(tool.spec.name, arguments)
                if outcome.ok:
                    self.harvest.add(tool.spec.name, outcome.content)

    async def _add_state_call(self, tool: ExploredTool, row: int, share: int, calls: list[CallSettings]) -> None:
        for number in range(3 if tool.fields else 1):
            proposed = self._repeat(tool, row, share + number)
            if proposed is None:
                return
            arguments = build_arguments(proposed)
            known = any(call.tool == tool.spec.name and call.arguments == arguments for call in calls)
            if known or self.validator.fault(tool.spec.name, arguments) is not None:
                continue
            outcome = await self.prober.call(tool.spec.name, arguments)
            self.note(outcome)
            if outcome.ok:
                calls.append(CallSettings(tool=tool.spec.name, arguments=arguments))
                tool.samples.append(outcome.content)
                self.harvest.add(tool.spec.name, outcome.content)
                self.harvest.add(tool.spec.name, arguments)
                return

    def _repeat(self, tool: ExploredTool, row: int, share: int) -> dict[str, Any] | None:
        """Return the leaves of a call like one that succeeded, with the values of another row."""
        _, known, known_origins = tool.good[share % len(tool.good)]
        leaves: dict[str, Any] = {}
        for leaf in tool.fields:
            if leaf.path not in known:
                continue
            item = get_array_item(leaf, tool.spec.input_schema)
            target = item or leaf
            references = self.harvest.find(tool.spec, target)
            hints = self.lessons.hints(tool.spec.name, leaf.path)
            proposals = propose_values(tool.spec, target, row, references, hints, tool.kind == "create")
            origin = known_origins.get(leaf.path, "")
            chosen = next((one for one in proposals if one.origin == origin), None)
            if chosen is None:
                if origin == "reference":
                    return None
                leaves[leaf.path] = known[leaf.path]
                continue
            value = chosen.values[share % len(chosen.values)] if origin == "reference" else chosen.values[0]
            leaves[leaf.path] = [value] if item is not None else value
        return leaves

    def _list_sql_takers(self, *kinds: str) -> list[tuple[ExploredTool, SchemaField]]:
        tools = self.usable("create", "change", "read")
        return [(tool, leaf) for tool in tools for leaf in tool.fields if takes_sql(tool.spec, leaf) in kinds]

    async def _fill_tables(self, number: int, calls: list[CallSettings]) -> None:
        """Make the tables of the small shop, with whichever tool takes each statement."""
        takers = [
            (tool, leaf)
            for tool in self.usable("create", "change", "read")
            for leaf in tool.fields
            if takes_sql(tool.spec, leaf)
        ]
        sql = load_sql()
        for kind, statements in (("create", sql["tables"]), ("write", sql["rows"][number])):
            for statement in statements:
                for tool, leaf in takers:
                    if takes_sql(tool.spec, leaf) not in (kind, "any"):
                        continue
                    outcome = await self.prober.call(tool.spec.name, {leaf.name: statement})
                    self.note(outcome)
                    if outcome.ok:
                        calls.append(CallSettings(tool=tool.spec.name, arguments={leaf.name: statement}))
                        self.harvest.add(tool.spec.name, outcome.content)
                        break

    async def _check_states(self) -> None:
        """Replay each state twice; leave out what is refused then, and what differs."""
        for name, calls in list(self.findings.states.items()):
            outcomes = await self.prober.restart(calls)
            accepted = [call for call, outcome in zip(calls, outcomes, strict=True) if outcome.ok]
            if len(accepted) < len(calls):
                self.report(f"{name}: {len(calls) - len(accepted)} calls are refused after a fresh start and left out")
                outcomes = await self.prober.restart(accepted)
                accepted = accepted if all(outcome.ok for outcome in outcomes) else []
            self.findings.states[name] = accepted
            if not accepted:
                del self.findings.states[name]
        states = self.findings.states or {"start": []}
        shared: Counter[str] = Counter()
        for calls in states.values():
            await self._compare_replays(calls)
            await self._ask(calls)
            shared.update(set(self.harvest.list_texts()))
        self.findings.texts = sorted(shared)
        self.findings.shared = frozenset(text for text, count in shared.items() if count == len(states))
        if not self.findings.states:
            return
        for tool in self.usable("destroy", "change", "read", "create"):
            if tool.good and not self.findings.ended:
                self._check_references(tool)

    async def _compare_replays(self, calls: Sequence[CallSettings]) -> None:
        shown: list[dict[str, str]] = []
        files: list[JsonObject] = []
        for _ in range(2):
            await self.prober.restart(list(calls))
            shown.append({name: (await self.prober.call(name, {})).text for name in self.findings.watched})
            files.append(await self.prober.files())
        for name in list(self.findings.watched):
            one, other = shown[0][name], shown[1][name]
            patterns = [pattern for pattern in TIMES if re.search(pattern, one)]
            if one != other and strip_times(one) != strip_times(other):
                self.findings.watched.remove(name)
            elif patterns:
                known = self.findings.drop.setdefault(name, [])
                known += [pattern for pattern in patterns if pattern not in known]
        for path in sorted(files[0].keys() | files[1].keys()):
            one, other = (canonical_json(each.get(path)).decode() for each in files)
            if one == other or path in self.findings.ignored:
                continue
            if strip_times(one) != strip_times(other):
                self.findings.ignored.append(path)
                continue
            times = [pattern for pattern in TIMES if re.search(pattern, one)]
            self.findings.file_times += [pattern for pattern in times if pattern not in self.findings.file_times]

    async def _ask(self, calls: Sequence[CallSettings]) -> None:
        """Read a state with all tools that only read, so that their results and values are known."""
        self.harvest = Harvest()
        for outcome in await self.prober.restart(list(calls)):
            self.harvest.add(outcome.tool, outcome.content)
            self.harvest.add(outcome.tool, outcome.arguments)
        for tool in self.usable("read"):
            for attempt in range(TRIES if tool.fields else 1):
                proposed = self.propose(tool, attempt, attempt, attempt % 2 == 1)
                if proposed is None or attempt >= 3:
                    break
                await self.call(tool, *proposed)

    def _check_references(self, tool: ExploredTool) -> None:
        """Leave a tool out that needs identifiers which are others after each start."""
        for _, leaves, origins in tool.good[-2:]:
            names = [path for path, origin in origins.items() if origin == "reference" and is_opaque(leaves[path])]
            if names:
                tool.without = f"its {names[0]} is another one after each start"
                return

    # The end

    def conclude(self) -> None:
        """Leave out what no call succeeded with."""
        self.usable()
        for tool in self.findings.tools.values():
            if not tool.without and not tool.good:
                refusal = " ".join(tool.last_refusal.split())[:120]
                tool.without = f"no call succeeded{f': {refusal}' if refusal else ''}"
            for leaf in tool.fields:
                hints = self.lessons.hints(tool.spec.name, leaf.path)
                if hints is not None:
                    self.findings.hints[tool.spec.name, leaf.path] = hints
        self.findings.calls, self.findings.literals = self.prober.calls, self.prober.literals
