"""Checks that models write are tested on right and wrong runs: right ones stay, bad ones go with a reason."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import desk
import orjson
import pytest

from trajsmith.models import CallableModel, ChatReply, ChatRequest
from trajsmith.models.prompts import load_builtin_prompts
from trajsmith.records import AnswerFact, CodeCheck, Message
from trajsmith.verify import CheckAuthor, add_written_checks
from trajsmith.verify.check_cases import alter_value, list_gold_changes, replace_at, spell_answers, tell_facts
from trajsmith.verify.check_panel import CheckPanel
from trajsmith.verify.check_source import LONGEST_SOURCE, find_forbidden_code
from trajsmith.verify.checks import MISSING
from trajsmith.verify.code_checks import CHECK_SANDBOX, CodeCheckRunner
from trajsmith.verify.task_checks import apply_written_checks
from trajsmith.verify.written_checks import (
    CheckDraft,
    WrittenChecks,
    WrittenCheckSettings,
    WrittenCheckTester,
    write_checks,
)

SETTINGS = WrittenCheckSettings(mutants=6, equivalents=2, repairs=1)
ARCHIVED = "return final['notes']['N1']['archived']"
NEW_NOTE = (
    "return any(n['title'] == 'map' and n['color'] == 'red'"
    " for key, n in final['notes'].items() if key not in initial['notes'])"
)


def write(body: str) -> str:
    return f"def check(initial, final, answer):\n    {body}\n"


@pytest.fixture(scope="module")
def code() -> Iterator[CodeCheckRunner]:
    runner = CodeCheckRunner(CHECK_SANDBOX.model_copy(update={"call_seconds": 0.3}))
    yield runner
    runner.close()


async def build_tester(code: CodeCheckRunner) -> WrittenCheckTester:
    return await WrittenCheckTester.of(await desk.jury(), desk.SPEC, SETTINGS, 3, code)


BODIES: dict[str | None, dict[str, str]] = {
    None: {
        "right-value": ARCHIVED,
        "right-new-object": NEW_NOTE,
        "right-after-two-writes": "return final['notes']['N2']['color'] == 'white'",
        "right-answer": "return '6' in answer",
    },
    "catches_nothing": {
        "always": "return True",
        "anything-changed": "return initial != final",
        "any-answer": "return len(answer) > 0",
    },
    "passes_wrong_value": {
        "changed-at-all": "return final['notes']['N2']['color'] != 'blue'",
        "only-counts": "return len(final['notes']) > 5",
    },
    "passes_wrong_answer": {"any-number": "return any(char.isdigit() for char in answer)"},
    "fails_gold": {"never": "return False", "a-bare-answer": "return answer == 'trip'"},
    "fails_equivalent": {
        "generated-id": "return 'N41' not in final['notes']",
        "clock": "return final['now'].startswith('2026-03-02T09:00')",
    },
    "could_not_tell": {
        "raises": "return [n for n in final['notes'].values() if n['archived']][0] != 1",
        "raises-if-not-done": "assert final['notes']['N1']['archived']; return True",
        "raises-on-another-value": "return {'white': True, 'blue': False}[final['notes']['N2']['color']]",
        "raises-on-another-answer": "return {'6': True}[''.join(filter(str.isdigit, answer))]",
        "changes-its-arguments": "return final['notes']['N1'].pop('archived')",
        "no-truth-value": "return 1",
        "never-ends": "while True: pass",
    },
    "reaches_outside": {
        "reads-a-file": "return bool(open('gold.json').read())",
        "draws-lots": "import random; return random.random() < 2",
        "attributes": "return bool(().__class__.__mro__)",
        "builtins": "return __builtins__['open']('gold.json') is None",
        "private-module": "import collections; return 'os' in collections._sys.modules",
        "inner-module": "import re; return 'os' in re.functools.os.modules",
    },
}
"""Reason, or None of a right one, to what functions do."""


@pytest.mark.parametrize(
    ("body", "reason"),
    [pytest.param(body, reason, id=name) for reason, bodies in BODIES.items() for name, body in bodies.items()],
)
async def test_a_written_function_is_kept_or_has_its_reason(
    code: CodeCheckRunner, body: str, reason: str | None
) -> None:
    fault = await (await build_tester(code)).test(CodeCheck(says="x", source=write(body)))
    assert (fault and fault.reason) == reason, fault


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("def check(a) return", "no_function"),
        ("def verify(a, b, c):\n    return True", "no_function"),
        ("from os import path\n" + write("return True"), "reaches_outside"),
        ("import os.path\n" + write("return True"), "reaches_outside"),
        ("from collections import _sys\n" + write("return True"), "reaches_outside"),
        ("from re import enum\n" + write("return True"), "reaches_outside"),
        (write("return 1" + "+1" * 3000), "no_function"),
        (write("return " + "(" * 300 + "1" + ")" * 300), "no_function"),
        (write("return True" + " " * LONGEST_SOURCE), "no_function"),
        ("import json, re\nfrom datetime import date\n" + write("return True"), None),
    ],
)
def test_a_text_is_looked_at_before_it_runs(source: str, reason: str | None) -> None:
    fault = find_forbidden_code(CodeCheck(says="x", source=source))
    assert (fault and fault.reason) == reason


async def test_changes_of_the_gold_run_leave_out_clock_and_counters() -> None:
    changes = {change.path: change for change in list_gold_changes(await desk.jury())}
    assert set(changes) == {"/notes/N1/archived", "/notes/N2/color", "/notes/N4", "/notes/N5", "/notes/N6"}
    assert changes["/notes/N2/color"].before == "blue" and changes["/notes/N4"].before is MISSING


def test_a_replaced_value_leaves_the_document_alone() -> None:
    document: Any = {"a/b": {"c": [1, 2]}}
    assert replace_at(document, "/a~1b/c", [3]) == {"a/b": {"c": [3]}}
    assert replace_at(document, "/a~1b/c", MISSING) == {"a/b": {}}
    assert document == {"a/b": {"c": [1, 2]}}


@pytest.mark.parametrize(
    ("value", "before", "others"),
    [
        (3, 4, [2]),
        ("open", MISSING, ["something else"]),
        ("2026-03-02", None, ["2026-03-03", "2026-03-01"]),
        (True, False, []),
        (None, "2026-03-02T09:00:00", ["2026-03-03T09:00:00", "2026-03-01T09:00:00"]),
        (None, MISSING, []),
        ("9999-12-31", MISSING, ["9999-12-30"]),
        ("0001-01-01", MISSING, ["0001-01-02"]),
    ],
)
def test_other_values_are_of_the_same_kind(value: Any, before: Any, others: list[Any]) -> None:
    assert list(alter_value(value, before)) == others


@pytest.mark.parametrize(
    ("fact", "body", "reason"),
    [
        (1500.0, "return '1500' in answer", "fails_equivalent"),
        (1500.0, "return '1500.00' in answer.replace(',', '')", "fails_gold"),
        (1500.0, "return '1500' in answer.replace(',', '')", None),
        (1500, "return '1500' in answer", "fails_equivalent"),
        ("2026-03-09", "return '9 March 2026' in answer", "fails_equivalent"),
        ("2026-03-09", "return '9 March' in answer", "fails_equivalent"),
        ("2026-03-09", "return '9 March' in answer or '2026-03-09' in answer", None),
        ("2026-03-09T14:30:00", "return '14:30' in answer and '9 March' in answer", "fails_equivalent"),
        ("Ann", "return answer.endswith('Ann')", "fails_gold"),
        ("Ann", "return 'Ann' in answer", None),
    ],
)
async def test_a_check_of_an_answer_knows_the_spellings_of_people(
    code: CodeCheckRunner, fact: Any, body: str, reason: str | None
) -> None:
    jury = await desk.jury()
    panel = CheckPanel(jury.gold, jury.masks, jury.checks, [["trip", "N4"], [fact]])
    tester = await WrittenCheckTester.of(panel, desk.SPEC, SETTINGS, 3, code)
    fault = await tester.test(CodeCheck(says="x", source=write(body)))
    assert (fault and fault.reason) == reason, fault


def test_answers_are_spelled_as_people_do() -> None:
    facts = [AnswerFact(value=value, label=label) for value, label in [
        (1500.0, "price"), (1500.5, "left gb"), (1200, "points"), ("2026-03-09", "due on"), (True, "open")
    ]]  # fmt: skip
    spoken, written = (text for _, text in spell_answers(facts, desk.STATE))
    assert "£1,500.00, 1,500.5, 1,200, 9 March and open: yes" in spoken
    assert "1500.00, 1500.50, 1200, 2026-03-09 and open: yes" in written
    assert list(spell_answers([AnswerFact(value="Ann"), AnswerFact(value=5)], desk.STATE)) == []
    plain = [(4.5, "rating"), (0.3, "tax rate"), (2019, "year"), (123456, "ticket number"), (4711, "pin code")]
    for value, label in plain:
        fact = AnswerFact(value=value, label=label)
        assert "£" not in tell_facts([fact]) and all(
            "£" not in text and "," not in text for _, text in spell_answers([fact], desk.STATE)
        ), label
    assert list(spell_answers([], desk.STATE)) == []


@pytest.mark.parametrize(
    ("body", "hint", "shown_in_audit"),
    [
        (
            "raise ValueError(str(final['notes']['N2']))",
            "of the right run it could not tell: it raises ValueError in line 2",
            "'color': 'white'",
        ),
        (
            "return any(char.isdigit() for char in answer)",
            "it passes answers that tell another value than the right one",
            "5 is told, not 6",
        ),
        (
            "return final['notes']['N2']['color'] != 'blue'",
            "it passes where /notes/N2/color has another value than it should have",
            "/notes/N2/color is 'something else'",
        ),
        (
            "return len(final['notes']) > 5",
            "it passes where /notes/* has another value than it should have",
            "/notes/N4/note_id is 'something else'",
        ),
        ("return 1", "of the right run it could not tell: a check must return True or False", "the right run"),
    ],
)
async def test_the_writer_sees_the_kind_of_fault_and_the_audit_its_values(
    code: CodeCheckRunner, body: str, hint: str, shown_in_audit: str
) -> None:
    fault = await (await build_tester(code)).test(CodeCheck(says="x", source=write(body)))
    assert fault is not None and fault.hint.split(" (check")[0] == hint
    assert shown_in_audit in fault.evidence
    task = await desk.make_task()
    changed = apply_written_checks(task, WrittenChecks(dropped=[("x", fault)]), {})
    assert changed.audit is not None and changed.audit.dropped == (f"x: {fault.reason}: {fault.evidence}",)


class Script:
    """Writes what stands in a list for each item, one attempt after the other."""

    def __init__(self, texts: dict[str, list[str]]) -> None:
        self.texts = texts
        self.evidence: list[str] = []

    async def list_items(self, most: int) -> Sequence[str]:
        return list(self.texts)

    async def write(self, item: str, earlier: Sequence[CheckDraft]) -> str:
        self.evidence += [draft.fault.hint for draft in earlier[-1:]]
        return write(self.texts[item][len(earlier)])


async def test_a_weak_function_is_written_again_and_dropped_with_a_counted_reason(code: CodeCheckRunner) -> None:
    script = Script(
        {
            "N1 is archived": ["return True", ARCHIVED],
            "N2 is painted": ["return final != initial", "return final['notes']['N2']['color'] != 'blue'"],
            "N1 is not archived": ["return not " + ARCHIVED.removeprefix("return ")] * 2,  # contradicts the first
        }
    )
    written = await write_checks(script, await build_tester(code), SETTINGS)
    assert [check.says for check in written.checks] == ["N1 is archived"] and written.repaired == 1
    assert written.reasons == Counter(passes_wrong_value=1, fails_gold=1)
    assert script.evidence == [
        "it passes every wrong run in which something was done",
        "it passes every wrong run in which something was done",
        "it fails the right run",
    ]
    assert 0 < written.caught <= written.mutants


async def test_a_model_writes_the_checks_of_a_task_without_seeing_the_gold(code: CodeCheckRunner) -> None:
    seen: list[ChatRequest] = []

    async def reply(request: ChatRequest) -> ChatReply:
        seen.append(request)
        last = request.messages[-1].content
        if request.purpose == "checklist":
            answer: dict[str, Any] = {"items": ["N1 is archived", "nothing at all"]}
        else:
            answer = {"source": write(ARCHIVED if "Condition: N1 is archived" in last else "return True")}
        return ChatReply(message=Message(role="assistant", content=orjson.dumps(answer).decode()))

    task = await desk.make_task()
    author = CheckAuthor(CallableModel("m", reply), desk.SPEC, load_builtin_prompts(), code, SETTINGS)
    changed = await add_written_checks(task, author, desk.STATE, desk.session())
    added = [check for check in changed.turns[-1].checks if isinstance(check, CodeCheck)]
    assert [check.says for check in added] == ["N1 is archived"]
    assert changed.audit is not None
    assert changed.audit.dropped[0].startswith("nothing at all: catches_nothing: it passes every wrong run")
    assert changed.id != task.id and changed.id == changed.content_id()
    assert set(changed.prompts) == {"verify/checklist", "verify/check_function"}
    assert [request.purpose for request in seen] == ["checklist", "check", "check", "check"]
    texts = " ".join(message.content for request in seen for message in request.messages)
    assert '"N1"' in texts and "white" not in texts and "tent" not in texts  # rows of the start, nothing of the end
    assert "A test showed that this cannot be used: it passes every wrong run" in seen[-1].messages[-1].content
