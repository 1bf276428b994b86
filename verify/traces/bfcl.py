"""BFCL multi-turn results: per turn the calls of each step; the users' words stand in the file of the questions."""

import ast
from collections.abc import Iterator
from typing import Any

from trajsmith.records import JsonObject, RecordDropped, TraceCall, TraceDialogue, TraceTask
from trajsmith.verify.traces.messages import Transcript, parse_arguments

NAME = "bfcl"


def fits(value: Any) -> bool:
    return isinstance(value, dict) and "id" in value and isinstance(value.get("result"), list)


def split(document: Any) -> Iterator[Any]:
    """One value per dialogue of a file."""
    yield from [document] if fits(document) else document


def read(value: Any, file: str, number: int) -> TraceDialogue:
    """One result, with the question (`question`, `ground_truth`) that the tasks file has for its id.

    Raises:
        RecordDropped: It is none, or there is no question for it; the reason says why.
    """
    if not fits(value):
        raise RecordDropped("no_messages", "")
    question = value.get("question")
    if not isinstance(question, list):
        raise RecordDropped("no_question", f"{value['id']}: give the file of the questions with --tasks")
    transcript = Transcript()
    for turn, asked in enumerate(question):
        for message in asked:
            transcript.say(str(message.get("role")), message.get("content"))
        for step in value["result"][turn] if turn < len(value["result"]) else ():
            _add_step(step, transcript)
    gold = value.get("ground_truth")
    calls = None if gold is None else tuple(_parse_call(text) for turn in gold for text in turn)
    return TraceDialogue(
        file=file,
        format=NAME,
        dialogue=str(value["id"]),
        messages=tuple(transcript.messages),
        calls=tuple(transcript.calls),
        task=TraceTask(name=str(value["id"]), gold=calls),
    )


def _add_step(step: Any, transcript: Transcript) -> None:
    """One answer of the model: calls as objects, calls as Python text, or words."""
    if isinstance(step, str):
        calls = _parse_calls(step)
        transcript.say("assistant", "" if calls else step, calls)
        return
    entries = step if isinstance(step, list) else [step]
    texts = [entry for entry in entries if isinstance(entry, str)]
    if texts and len(texts) == len(entries):
        transcript.say("assistant", "", [_parse_call(text) for text in texts])
        return
    transcript.say("assistant", "", [_parse_named_call(entry) for entry in entries])


def _parse_named_call(entry: Any) -> TraceCall:
    if not isinstance(entry, dict) or len(entry) != 1:
        raise RecordDropped("call_without_name", str(entry)[:80])
    name, arguments = next(iter(entry.items()))
    return TraceCall(tool=name, arguments=parse_arguments(arguments, name))


def _parse_calls(text: str) -> list[TraceCall]:
    """Calls of `[cd(folder='a'), ls()]`; nothing where the text is no such list."""
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError):
        return []
    nodes = tree.elts if isinstance(tree, ast.List) else [tree]
    return [_build_call(node, text) for node in nodes] if all(isinstance(node, ast.Call) for node in nodes) else []


def _parse_call(text: str) -> TraceCall:
    calls = _parse_calls(text)
    if len(calls) != 1:
        raise RecordDropped("call_not_readable", text[:80])
    return calls[0]


def _build_call(node: Any, text: str) -> TraceCall:
    if node.args or not isinstance(node.func, ast.Name | ast.Attribute):
        raise RecordDropped("call_not_readable", f"arguments without names: {text[:80]}")
    name = node.func.id if isinstance(node.func, ast.Name) else node.func.attr
    try:
        arguments: JsonObject = {str(keyword.arg): ast.literal_eval(keyword.value) for keyword in node.keywords}
    except ValueError as error:
        raise RecordDropped("call_not_readable", text[:80]) from error
    return TraceCall(tool=name, arguments=arguments)
