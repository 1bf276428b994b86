"""A model reads failed conversations and names causes; execution, which it is not shown, confirms or refutes them.

Agent-World (3.2.2) lets an agent name failure patterns in a fixed report. Here a report is one reading per
conversation, and no reading counts by itself: its quote must stand where it says, its tool must exist, and the first
wrong step that calls and gold show must be of the same kind, at the same tool.
"""

import asyncio
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Annotated, Literal

from pydantic import BaseModel, Field, field_validator

from trajsmith.evals.wrong_steps import KINDS, WrongStep
from trajsmith.models import ChatModel, ChatRequest
from trajsmith.models.prompts import Prompts, PromptSpec
from trajsmith.models.structured import complete_structured
from trajsmith.records import (
    FrozenModel,
    JsonValue,
    Message,
    ModelFault,
    RunError,
    dump_json_line,
    to_one_line,
    truncate_text,
)

LONGEST_TEXT = 600
"""Characters shown of one message or result."""
LONGEST_CONVERSATION = 30_000
"""Characters shown of a conversation; what is beyond is left out at its end."""
LEAST_DECIDED = 3
"""Readings that execution must have decided before a cause is confirmed or refuted."""
EXAMPLES = 3
ARGUMENTS = frozenset({"wrong_entity", "invented_value", "wrong_value", "wrong_argument"})
"""Kinds that are all wrong arguments; the last one is said where no closer one is known."""

ReadingVerdict = Literal["confirmed", "refuted", "undecided"]

CAUSE = PromptSpec(
    "evals/cause",
    {
        "kinds": [{"name": "missing_call", "says": KINDS["missing_call"]}],
        "tools": ["shop.find_order"],
        "conversation": '{"message": 1, "person": "Where is my order?"}',
    },
)


class FailedTrace(FrozenModel):
    """A failed conversation with what execution shows of it."""

    episode: str
    tools: tuple[str, ...]
    messages: tuple[Message, ...]
    step: WrongStep | None


class CauseReply(BaseModel):
    """Reply schema of the prompt."""

    cause: str
    kind: Annotated[str, Field(json_schema_extra={"enum": list(KINDS)})]
    tool: str
    message: int
    quote: str
    advice: str

    @field_validator("kind")
    @classmethod
    def _is_known(cls, kind: str) -> str:
        if kind not in KINDS:
            raise ValueError(f"no kind {kind!r}; choose one of: {', '.join(KINDS)}")
        return kind


class TraceReading(FrozenModel):
    """Report of the model on one conversation, with the verdict of execution."""

    episode: str
    cause: str
    kind: str
    tool: str
    message: int
    """Number of the message, from 1."""
    quote: str
    advice: str
    verdict: ReadingVerdict
    reason: str
    """Why it is confirmed, refuted or undecided."""


class CauseFinding(FrozenModel):
    """Readings of one kind at one tool."""

    kind: str
    tool: str
    says: str
    readings: int
    confirmed: int
    refuted: int
    undecided: int
    verdict: ReadingVerdict
    weak_groups: tuple[str, ...]
    """Groups of this tool that fail more often than chance explains."""
    examples: tuple[TraceReading, ...]


async def read_traces(
    traces: Sequence[FailedTrace],
    model: ChatModel,
    prompts: Prompts,
    concurrency: int = 8,
    over: Callable[[], None] = lambda: None,
) -> tuple[list[TraceReading], dict[str, int]]:
    """Return the readings of all traces, and how many could not be read, by kind of fault.

    Raises:
        RunError: The model read none of them.
    """
    gate, unread = asyncio.Semaphore(concurrency), Counter[str]()
    last = ""

    async def read(trace: FailedTrace) -> TraceReading | None:
        nonlocal last
        async with gate:
            try:
                reply = await complete_structured(model, build_request(trace, prompts), CauseReply)
            except ModelFault as fault:
                unread[fault.kind] += 1
                last = str(fault)
                return None
            finally:
                over()
        return judge_reply(trace, reply)

    readings = [one for one in await asyncio.gather(*map(read, traces)) if one is not None]
    if traces and not readings:
        raise RunError(
            f"the model read none of {len(traces)} failed conversations: {last}; give the same command again"
        )
    return readings, dict(unread)


def build_request(trace: FailedTrace, prompts: Prompts) -> ChatRequest:
    """Return the request for one conversation; its first wrong step is not told."""
    kinds = [{"name": name, "says": says} for name, says in KINDS.items()]
    messages = prompts.get(CAUSE).messages(
        kinds=kinds, tools=[to_one_line(tool) for tool in trace.tools], conversation=_render(trace.messages)
    )
    return ChatRequest(messages=messages, temperature=0.0, purpose="judge.cause", record=trace.episode)


def _render(messages: Sequence[Message]) -> str:
    lines, size = [], 0
    for line in _iter_lines(messages):
        size += len(line)
        if size > LONGEST_CONVERSATION:
            lines.append(dump_json_line({"left_out": "the rest of the conversation"}))
            break
        lines.append(line)
    return "\n".join(lines)


def _iter_lines(messages: Sequence[Message]) -> Iterator[str]:
    """Yield the conversation as JSON, an object a line, so that no text can pose as another speaker."""
    for number, message in enumerate(messages, start=1):
        text = truncate_text(message.content, LONGEST_TEXT)
        head: dict[str, JsonValue] = {"message": number}
        speaker = "person" if message.role == "user" else "assistant"
        if message.role == "tool":
            yield dump_json_line({**head, "result_of": message.name or "", "is": text})
        elif message.role in ("user", "assistant"):
            if text:
                yield dump_json_line({**head, speaker: text})
            for call in message.tool_calls or ():
                arguments = truncate_text(dump_json_line(call.function.arguments), LONGEST_TEXT)
                yield dump_json_line({**head, f"{speaker}_calls": call.function.name, "arguments": arguments})


def judge_reply(trace: FailedTrace, reply: CauseReply) -> TraceReading:
    """Return the reading with the verdict of execution on it."""
    verdict, reason = _compare_with_step(trace, reply)
    fault = _find_unfounded(trace, reply)
    if fault:
        verdict, reason = "refuted", fault
    values = reply.model_dump() | {"cause": reply.cause[:500], "quote": reply.quote[:300], "advice": reply.advice[:500]}
    return TraceReading(episode=trace.episode, **values, verdict=verdict, reason=reason)


def _find_unfounded(trace: FailedTrace, reply: CauseReply) -> str:
    """Return what a reply says that the conversation does not hold, or ""."""
    if not 1 <= reply.message <= len(trace.messages):
        return f"the conversation has no message {reply.message}"
    names = {_get_base_name(name) for name in trace.tools}
    if trace.step is not None and trace.step.tool:
        names.add(_get_base_name(trace.step.tool))
    if reply.tool and _get_base_name(reply.tool) not in names:
        return f"the assistant has no tool {reply.tool[:80]}"
    message = trace.messages[reply.message - 1]
    texts = [message.content, *(call.function.name for call in message.tool_calls or ())]
    texts += [dump_json_line(call.function.arguments) for call in message.tool_calls or ()]
    if reply.quote.strip() and _squeeze(reply.quote) not in _squeeze(" ".join(texts)):
        return f"the quote does not stand in message {reply.message}"
    return ""


def _compare_with_step(trace: FailedTrace, reply: CauseReply) -> tuple[ReadingVerdict, str]:
    step = trace.step
    if step is None:
        return "undecided", "execution shows no first wrong step"
    shown = f"execution shows {step.kind}" + (f" at {step.tool}" if step.tool else "")
    kinds = {step.kind, reply.kind}
    same_kind = len(kinds) == 1 or ("wrong_argument" in kinds and kinds <= ARGUMENTS)
    other_tool = bool(step.tool and reply.tool) and _get_base_name(step.tool) != _get_base_name(reply.tool)
    return ("confirmed" if same_kind and not other_tool else "refuted"), shown


def _get_base_name(tool: str) -> str:
    """Return a tool's name without its server, however the two are joined."""
    return tool.rpartition(".")[2].rpartition("__")[2]


def _squeeze(text: str) -> str:
    return "".join(text.replace("\\", "").replace('"', "").split()).casefold()


def summarize_causes(readings: Sequence[TraceReading], weak_tools: Mapping[str, str]) -> tuple[CauseFinding, ...]:
    """Return the causes, the confirmed ones first, then by number of readings.

    Args:
        readings: Judged readings.
        weak_tools: Tools of the weak groups of a diagnosis, to the group.
    """
    groups: dict[tuple[str, str], list[TraceReading]] = defaultdict(list)
    for one in readings:
        groups[one.kind, _get_base_name(one.tool)].append(one)
    findings = []
    for (kind, tool), members in groups.items():
        counts = Counter[ReadingVerdict](one.verdict for one in members)
        ordered = sorted(members, key=lambda one: (one.verdict != "confirmed", one.episode))
        weak = sorted({group for name, group in weak_tools.items() if tool and _get_base_name(name) == tool})
        findings.append(
            CauseFinding(
                kind=kind,
                tool=tool,
                says=KINDS[kind],
                readings=len(members),
                confirmed=counts["confirmed"],
                refuted=counts["refuted"],
                undecided=counts["undecided"],
                verdict=_judge_cause(counts),
                weak_groups=tuple(weak),
                examples=tuple(ordered[:EXAMPLES]),
            )
        )
    order = {"confirmed": 0, "undecided": 1, "refuted": 2}
    return tuple(sorted(findings, key=lambda one: (order[one.verdict], -one.readings, one.kind, one.tool)))


def _judge_cause(counts: Counter[ReadingVerdict]) -> ReadingVerdict:
    decided = counts["confirmed"] + counts["refuted"]
    if decided < LEAST_DECIDED:
        return "undecided"
    return "confirmed" if counts["confirmed"] > counts["refuted"] else "refuted"
