"""Checks that models write are tested on right and wrong runs: right ones stay, bad ones go with a reason."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import desk
import orjson
import pytest

from trajsmith.models import CallableModel, ChatReply, ChatRequest
from trajsmith.models.prompts import load_builtin_prompts
from trajsmith.records import CodeCheck, Message
from trajsmith.verify import CheckAuthor, add_written_checks
from trajsmith.verify.check_cases import list_gold_changes, replace_at
from trajsmith.verify.checks import MISSING
from trajsmith.verify.code_checks import CHECK_SANDBOX, CodeCheckRunner
from trajsmith.verify.written_checks import (
    CheckDraft,
    WrittenCheckSettings,
    WrittenCheckTester,
    find_forbidden_code,
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


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        pytest.param(ARCHIVED, None, id="right-value"),
        pytest.param(NEW_NOTE, None, id="right-new-object"),
        pytest.param("return final['notes']['N2']['color'] == 'white'", None, id="right-after-two-writes"),
        pytest.param("return '6' in answer", None, id="right-answer"),
        pytest.param("return True", "catches_nothing", id="always"),
        pytest.param("return initial != final", "catches_nothing", id="anything-changed"),
        pytest.param("return len(answer) > 0", "catches_nothing", id="any-answer"),
        pytest.param("return final['notes']['N2']['color'] != 'blue'", "passes_wrong_value", id="changed-at-all"),
        pytest.param("return len(final['notes']) > 5", "passes_wrong_value", id="only-counts"),
        pytest.param("return False", "fails_gold", id="never"),
        pytest.param("return 'N41' not in final['notes']", "fails_equivalent", id="generated-id"),
        pytest.param("return final['now'].startswith('2026-03-02T09:00')", "fails_equivalent", id="clock"),
        pytest.param(
            "return [n for n in final['notes'].values() if n['archived']][0] != 1", "could_not_tell", id="raises"
        ),
        pytest.param("return final['notes']['N1'].pop('archived')", "could_not_tell", id="changes-its-arguments"),
        pytest.param("return 1", "could_not_tell", id="no-truth-value"),
        pytest.param("while True: pass", "could_not_tell", id="never-ends"),
        pytest.param("return bool(open('gold.json').read())", "reaches_outside", id="reads-a-file"),
        pytest.param("import random; return random.random() < 2", "reaches_outside", id="draws-lots"),
        pytest.param("return bool(().__class__.__mro__)", "reaches_outside", id="attributes"),
    ],
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


class Script:
    """Writes what stands in a list for each item, one attempt after the other."""

    def __init__(self, texts: dict[str, list[str]]) -> None:
        self.texts = texts
        self.evidence: list[str] = []

    async def list_items(self, most: int) -> Sequence[str]:
        return list(self.texts)

    async def write(self, item: str, earlier: Sequence[CheckDraft]) -> str:
        self.evidence += [draft.fault.detail for draft in earlier[-1:]]
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
