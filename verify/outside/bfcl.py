"""BFCL multi-turn results: per turn the calls of each step; the users' words stand in the file of the questions."""

import ast
from collections.abc import Iterator
from typing import Any

from trajectory import Dropped, JsonObject
from trajectory.outside import Outside, OutsideCall, OutsideTask
from verify.outside.messages import Transcript, arguments_of

NAME = "bfcl"


def fits(value: Any) -> bool:
    return isinstance(value, dict) and "id" in value and isinstance(value.get("result"), list)


def split(document: Any) -> Iterator[Any]:
    """One value per dialogue of a file."""
    yield from [document] if fits(document) else document


def read(value: Any, file: str, number: int) -> Outside:
    """One result, with the question (`question`, `ground_truth`) that the tasks file has for its id.

    Raises:
        Dropped: It is none, or there is no question for it; the reason says why.
    """
    if not fits(value):
        raise Dropped("no_messages", "")
    question = value.get("question")
    if not isinstance(question, list):
        raise Dropped("no_question", f"{value['id']}: give the file of the questions with --tasks")
    found = Transcript()
    for turn, asked in enumerate(question):
        for message in asked:
            found.say(str(message.get("role")), message.get("content"))
        for step in value["result"][turn] if turn < len(value["result"]) else ():
            _step(step, found)
    gold = value.get("ground_truth")
    calls = None if gold is None else tuple(_spoken(text) for turn in gold for text in turn)
    return Outside(
        file=file,
        format=NAME,
        dialogue=str(value["id"]),
        messages=tuple(found.messages),
        calls=tuple(found.calls),
        task=OutsideTask(name=str(value["id"]), gold=calls),
    )


def _step(step: Any, found: Transcript) -> None:
    """One answer of the model: calls as objects, calls as Python text, or words."""
    if isinstance(step, str):
        calls = _all_spoken(step)
        found.say("assistant", "" if calls else step, calls)
        return
    entries = step if isinstance(step, list) else [step]
    texts = [entry for entry in entries if isinstance(entry, str)]
    if texts and len(texts) == len(entries):
        found.say("assistant", "", [_spoken(text) for text in texts])
        return
    found.say("assistant", "", [_named(entry) for entry in entries])


def _named(entry: Any) -> OutsideCall:
    if not isinstance(entry, dict) or len(entry) != 1:
        raise Dropped("call_without_name", str(entry)[:80])
    name, given = next(iter(entry.items()))
    return OutsideCall(tool=name, arguments=arguments_of(given, name))


def _all_spoken(text: str) -> list[OutsideCall]:
    """Calls of `[cd(folder='a'), ls()]`; nothing where the text is no such list."""
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError):
        return []
    nodes = tree.elts if isinstance(tree, ast.List) else [tree]
    return [_from_node(node, text) for node in nodes] if all(isinstance(node, ast.Call) for node in nodes) else []


def _spoken(text: str) -> OutsideCall:
    calls = _all_spoken(text)
    if len(calls) != 1:
        raise Dropped("call_not_readable", text[:80])
    return calls[0]


def _from_node(node: Any, text: str) -> OutsideCall:
    if node.args or not isinstance(node.func, ast.Name | ast.Attribute):
        raise Dropped("call_not_readable", f"arguments without names: {text[:80]}")
    name = node.func.id if isinstance(node.func, ast.Name) else node.func.attr
    try:
        given: JsonObject = {str(keyword.arg): ast.literal_eval(keyword.value) for keyword in node.keywords}
    except ValueError as error:
        raise Dropped("call_not_readable", text[:80]) from error
    return OutsideCall(tool=name, arguments=given)
