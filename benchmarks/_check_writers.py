"""Scripted writers of check functions: an expert whose functions are right, and weak, wrong and cheating ones."""

from collections.abc import Iterator

from trajsmith.phrasing.value_formatting import list_value_forms
from trajsmith.verify.check_cases import GoldChange, alter_value, list_gold_changes
from trajsmith.verify.check_panel import CheckPanel
from trajsmith.verify.checks import MISSING

HEAD = "def check(initial_state, final_state, answer):\n"
LOOK = """
def look(state, *parts):
    for part in parts:
        if not isinstance(state, dict) or part not in state:
            return None
        state = state[part]
    return state

"""


def write_function(body: str) -> str:
    """Return a check function with this body, one statement a line."""
    return LOOK + HEAD + "".join(f"    {line}\n" for line in body.splitlines())


def _split(path: str) -> list[str]:
    return [part.replace("~1", "/").replace("~0", "~") for part in path.split("/")[1:]]


def _look(state: str, path: str) -> str:
    return f"look({state}, {', '.join(map(repr, _split(path)))})"


def list_right_bodies(panel: CheckPanel) -> Iterator[tuple[str, str]]:
    """Yield conditions that a right run of a task meets, each with the body of a function that is right."""
    form = panel.forms[-1]
    generated = {repr(value) for value in form.generated_values.values()} | {repr(name) for name in form.names}
    for change in list_gold_changes(panel):
        body = _write_right_body(change, generated, set(form.names))
        if body is not None:
            yield f"{change.path} is as it should be", body
    for fact in panel.says[-1]:
        if isinstance(fact.value, bool | list | dict) or repr(fact.value) in generated:
            continue
        forms = sorted({str(each).lower() for each in list_value_forms(fact.value)})
        yield f"the answer tells {fact.value}", f"return any(form in answer.lower() for form in {forms!r})"


def _write_right_body(change: GoldChange, generated: set[str], names: set[str]) -> str | None:
    final, parts = _look("final_state", change.path), _split(change.path)
    if change.after is MISSING:
        return f"return {final} is None"
    if change.generated:
        return f"return {final} is not None and {final} != {_look('initial_state', change.path)}"
    if not isinstance(change.after, dict | list):
        if isinstance(change.after, str) and any(name in change.after for name in names):
            return None  # holds an id that the environment gave out
        return f"return {final} == {change.after!r}"
    if isinstance(change.after, list):
        if any(name in repr(change.after) for name in names) or any(value in repr(change.after) for value in generated):
            return None
        return f"return {final} == {change.after!r}"
    if len(parts) != 2:
        return None
    fields = {
        name: value for name, value in change.after.items()
        if isinstance(value, str | int | float) and repr(value) not in generated and value not in ("", 0)
        and not any(each in str(value) for each in names)
    }  # fmt: skip
    if not fields:
        return None
    table = repr(parts[0])
    return (
        f"old = initial_state.get({table}, {{}})\n"
        f"new = [row for key, row in final_state.get({table}, {{}}).items() if key not in old]\n"
        f"return any(all(row.get(name) == value for name, value in {fields!r}.items()) for row in new)"
    )


def list_planted_sources(panel: CheckPanel, change: GoldChange, right: str) -> Iterator[tuple[str, str, str]]:
    """Yield weak, wrong and cheating functions about one change of a task.

    Args:
        panel: The task.
        change: A value that the gold run changed.
        right: Body of a right function about it.

    Yields:
        Group, kind and source.
    """
    final, before = _look("final_state", change.path), _look("initial_state", change.path)
    table, gold, state = repr(_split(change.path)[0]), change.after, panel.gold.ran.states[-1]
    opening, lines = right.rpartition("return ")[0], right.rpartition("return ")[2]
    other = next(iter(alter_value(gold, change.before)), "another value")
    ignored = [name for name in (panel.masks.counters, panel.masks.clock) if name]
    bodies: dict[str, dict[str, str]] = {
        "weak": {
            "always_true": "return True",
            "something_changed": "return initial_state != final_state",
            "part_is_there": f"return {table} in final_state",
            "part_not_empty": f"return bool(final_state[{table}])",
            "right_type": f"return isinstance({final}, {type(gold).__name__})",
            "changed_at_all": f"return {final} != {before}",
            "old_or_new_value": f"return {final} == {before} or ({lines.strip()})",
            "any_answer": "return len(answer) > 0",
            "text_anywhere": f"return {str(gold)[:1]!r} in str(final_state)",
            "looks_at_the_start_only": f"return {table} in initial_state",
            "answer_or_change": "return bool(answer) or initial_state != final_state",
        },
        "wrong": {
            "never": "return False",
            "inverted": f"{opening}return not ({lines.strip()})",
            "another_value": f"return {final} == {other!r}",
            "raises": "return final_state['no such part']",
            "raises_if_not_done": f"{opening}assert {lines.strip()}\nreturn True",
            "never_ends": "while True:\n    pass",
            "no_truth_value": f"{opening}return 1 if {lines.strip()} else 0",
            "returns_nothing": f"{opening}{lines.strip()}",
            "changes_the_state": f"{opening}final_state['seen'] = True\nreturn {lines.strip()}",
            "ids_and_clock": opening + "return " + " and ".join(
                [*(f"final_state[{name!r}] == {state[name]!r}" for name in ignored), f"({lines.strip()})"]
            ),
        },
        "cheating": {
            "whole_gold_state": f"return final_state == {state!r}",
            "reads_a_file": "return bool(open('/etc/passwd').read())",
            "looks_at_the_caller": "import sys\nreturn sys._getframe(1) is not None",
            "draws_lots": "import random\nreturn random.random() < 0.9",
            "hash_of_a_text": "return hash(str(final_state)) % 7 != 0",
            "remembers_calls": "SEEN.append(1)\nreturn len(SEEN) < 3",
            "believes_the_answer": "return 'done' in answer.lower()",
            "swallows_errors": "try:\n    return final_state['no such part'] == 1\nexcept Exception:\n    return True",
            "escapes_by_attributes": "return len(().__class__.__base__.__subclasses__()) > 0",
        },
    }  # fmt: skip
    for group, kinds in bodies.items():
        for kind, body in kinds.items():
            source = write_function(body)
            yield group, kind, f"SEEN = []\n{source}" if kind == "remembers_calls" else source
    yield "wrong", "no_python", "def check(initial_state, final_state answer) return True"
    yield "wrong", "no_function", "def verify(initial_state, final_state, answer):\n    return True\n"
