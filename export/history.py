"""Cutting a conversation into rows: what a row's prompt keeps of the history."""

from collections.abc import Sequence

from trajsmith.records import JsonObject, RecordDropped

Messages = list[JsonObject]
UNLEARNT_LABELS = frozenset({"redundant", "harmful"})
"""Labels of calls that a model must not imitate."""

META: dict[str, str] = {
    "id": "string", "task_id": "string", "trajectory_id": "string", "environment": "string", "variant": "string",
    "language": "string",
}  # fmt: skip
PROMPT_COMPLETION: dict[str, str] = {
    **META, "prompt": "list of json", "completion": "list of json", "tools": "list of json",
}  # fmt: skip
CUT: dict[str, str] = {**PROMPT_COMPLETION, "number": "int64", "of": "int64", "left_out": "int64"}


def find_assistant_messages(messages: Sequence[JsonObject]) -> list[int]:
    """Positions of the assistant's messages."""
    return [index for index, message in enumerate(messages) if message["role"] == "assistant"]


def split_rounds(messages: Sequence[JsonObject], learnt_from: int = 0) -> list[tuple[int, int]]:
    """Start and stop of what the assistant does after each user message, up to the next one.

    Rounds before the message `learnt_from` are left out, and the one in which it stands begins with it.
    """
    users = [index for index, message in enumerate(messages) if message["role"] == "user"]
    spans = zip(users, [*users[1:], len(messages)], strict=True)
    learnt = [(max(start + 1, learnt_from), stop) for start, stop in spans]
    return [(start, stop) for start, stop in learnt if start < stop]


def refuse_context(row: JsonObject) -> None:
    """Refuse a row of which only a part is learnt, for formats that cannot say so.

    Raises:
        RecordDropped: It is one.
    """
    if row.get("learnt_from"):
        raise RecordDropped("learnt_in_part", f"the first {row['learnt_from']} messages are context")


def apply_window(messages: Messages, start: int, window: int | None) -> Messages:
    """The history before message `start` through a sliding window (AWM, Appendix A, sample splitting).

    Kept: everything before the first assistant message (system prompt, first user message), the first exchange (that
    assistant message with its results), and the `window` most recent assistant turns with what answered them. AWM's
    tasks have one user message; in a conversation, the latest one before `start` is kept too, since a model must not
    learn to act on a request that it cannot see.

    Args:
        messages: The whole conversation.
        start: Position of the first message that is learnt.
        window: Assistant turns to keep; None keeps everything.
    """
    turns = [index for index in find_assistant_messages(messages) if index < start]
    if window is None or len(turns) <= window + 1:
        return messages[:start]
    recent = turns[-window]
    first, second = turns[0], turns[1]
    request = max((index for index in range(start) if messages[index]["role"] == "user"), default=-1)
    middle = [messages[request]] if second <= request < recent else []
    return [*messages[:first], *messages[first:second], *middle, *messages[recent:start]]


def cut_row(row: JsonObject, number: int, of: int, span: tuple[int, int], window: int | None) -> JsonObject:
    """The row that teaches the messages of `span`, with its history through the window."""
    start, stop = span
    prompt = apply_window(row["messages"], start, window)
    return {
        **build_row_metadata(row, f"{row['id']}-{number}"),
        "prompt": prompt,
        "completion": row["messages"][start:stop],
        "tools": row["tools"],
        "number": number,
        "of": of,
        "left_out": start - len(prompt),
    }


def find_context_messages(row: JsonObject) -> list[int]:
    """Find the messages of the assistant before the first one that the row teaches."""
    return [index for index in find_assistant_messages(row["messages"]) if index < (row.get("learnt_from") or 0)]


def find_unlearnt_messages(row: JsonObject, mask_steps: bool) -> list[int]:
    """Find the messages of the assistant that stay context: those before a correction.

    Args:
        row: A row of the main dataset.
        mask_steps: Those that make a call labelled redundant or harmful, too.

    Raises:
        RecordDropped: Its calls have no labels, which `mask_steps` needs.
    """
    context = find_context_messages(row)
    if not mask_steps:
        return context
    calls = [index for index, message in enumerate(row["messages"]) for _ in message.get("tool_calls") or ()]
    labels = [step["label"] for step in row.get("step_labels") or ()]
    if len(labels) != len(calls):
        raise RecordDropped("no_step_labels", f"{len(calls)} calls, {len(labels)} labels")
    labelled = {index for index, label in zip(calls, labels, strict=True) if label in UNLEARNT_LABELS}
    return sorted(labelled.union(context))


def build_row_metadata(row: JsonObject, id: str) -> JsonObject:
    """The columns that say where a row comes from."""
    return {
        "id": id, "task_id": row["task_id"], "trajectory_id": row["id"], "environment": row["environment"],
        "variant": row["variant"], "language": row["language"],
    }  # fmt: skip
