"""The smallest case: steps are dropped and arguments made simpler as long as the check still sees the fault."""

from collections.abc import Awaitable, Callable, Iterator
from typing import Any

from trajsmith.envcheck.findings import CaseEvidence, CaseStep, CheckCase
from trajsmith.records import JsonObject, ToolSpec

TRIES = 60
"""Cases that are played to make one smaller."""

CaseJudge = Callable[[CheckCase], Awaitable[CaseEvidence | None]]


async def shrink_case(
    case: CheckCase, evidence: CaseEvidence, judge: CaseJudge, tools: dict[str, ToolSpec], tries: int = TRIES
) -> tuple[CheckCase, CaseEvidence]:
    """A case with as little in it as still shows the fault, and what it shows."""
    best = _SmallestCase(case, evidence, judge, tries)
    await _fewer_steps(best)
    await _simpler_arguments(best, tools)
    return best.case, best.evidence


class _SmallestCase:
    """The smallest case so far."""

    def __init__(self, case: CheckCase, evidence: CaseEvidence, judge: CaseJudge, tries: int) -> None:
        self.case = case
        self.evidence = evidence
        self.left = tries
        self._judge = judge

    async def takes(self, steps: tuple[CaseStep, ...]) -> bool:
        """Try other steps; they become the best if they show the fault."""
        if self.left <= 0 or not steps:
            return False
        self.left -= 1
        candidate = self.case.model_copy(update={"steps": steps})
        seen = await self._judge(candidate)
        if seen is not None:
            self.case, self.evidence = candidate, seen
        return seen is not None


async def _fewer_steps(best: _SmallestCase) -> None:
    """Drop steps: all but the last first, then halves and smaller parts, then one by one."""
    await best.takes(best.case.steps[-1:]) if len(best.case.steps) > 1 else None
    size = len(best.case.steps) // 2
    while size >= 1:
        index = 0
        while index < len(best.case.steps) and len(best.case.steps) > 1:
            steps = best.case.steps
            if not await best.takes(steps[:index] + steps[index + size :]):
                index += size
        size //= 2


async def _simpler_arguments(best: _SmallestCase, tools: dict[str, ToolSpec]) -> None:
    for index in range(len(best.case.steps)):
        smaller = True
        while smaller and best.left > 0:
            smaller = False
            step = best.case.steps[index]
            for arguments in _simpler(step.arguments, tools.get(step.tool)):
                simpler = step.model_copy(update={"arguments": arguments})
                steps = best.case.steps
                if await best.takes((*steps[:index], simpler, *steps[index + 1 :])):
                    smaller = True
                    break


def _simpler(arguments: JsonObject, tool: ToolSpec | None) -> Iterator[JsonObject]:
    required = tool.required if tool is not None else ()
    for name in arguments:
        if name not in required:
            yield {key: value for key, value in arguments.items() if key != name}
    for name, value in arguments.items():
        for simple in _simpler_value(value):
            yield {**arguments, name: simple}


def _simpler_value(value: Any) -> Iterator[Any]:
    if isinstance(value, list) and len(value) > 1:
        yield value[:1]
        yield value[1:]
    elif isinstance(value, str) and len(value) > 40:
        yield value[: len(value) // 2]
    elif isinstance(value, float) and value != int(min(max(value, -1e15), 1e15)):
        yield float(round(value))
