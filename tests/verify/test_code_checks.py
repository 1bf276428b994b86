"""Check functions that somebody wrote: each way to go wrong has its reason, and none is a failure of the agent."""

from collections.abc import Iterator

import pytest

from trajsmith.environments.sandbox.settings import SandboxSettings
from trajsmith.records import CodeCheck
from trajsmith.verify.code_checks import CodeCheckRunner

QUICK = SandboxSettings(call_seconds=0.3, wall_seconds=3, memory_mb=512)


@pytest.fixture(scope="module")
def code() -> Iterator[CodeCheckRunner]:
    made = CodeCheckRunner(QUICK)
    yield made
    made.close()


def written(body: str) -> CodeCheck:
    return CodeCheck(says="x", source=f"def check(initial_state, final_state, answer):\n    {body}\n")


@pytest.mark.parametrize(
    ("check", "passed", "detail"),
    [
        pytest.param(written("return final_state['x'] > initial_state['x'] and 'one' in answer"), True, "", id="yes"),
        pytest.param(written("return final_state['x'] == 2"), False, "", id="no"),
        pytest.param(written("return final_state['y']"), None, "crash: KeyError: 'y'", id="raises"),
        pytest.param(written("while True: pass"), None, "timeout: more than 0.3 s of CPU time", id="loops"),
        pytest.param(written("return 'yes'"), None, "output_schema: a check must return True or False", id="no-bool"),
        pytest.param(written("pass"), None, "output_schema: a check must return True or False", id="nothing"),
        pytest.param(
            written("final_state['x'] = 2; return True"), None, "state: the check changed its arguments",
            id="mutates",
        ),
        pytest.param(
            written("initial_state['x'] = {1}; return True"), None, "state: the check changed its arguments",
            id="leaves-no-json",
        ),
        pytest.param(written("return len(bytearray(1 << 30)) > 0"), None, "crash: MemoryError", id="gigabyte"),
        pytest.param(written("import os; os._exit(0)"), None, "crash: its worker was lost", id="ends-its-process"),
        pytest.param(CodeCheck(says="x", source="def check(a) return"), None, "source: ", id="syntax"),
        pytest.param(CodeCheck(says="x", source="def other(): pass"), None, "source: check check_", id="no-function"),
    ],
)  # fmt: skip
async def test_outcomes(code: CodeCheckRunner, check: CodeCheck, passed: bool | None, detail: str) -> None:
    outcome = await code.run(check, {"x": 0}, {"x": 1}, "it is one")
    assert outcome.passed is passed
    assert outcome.detail.startswith(detail)
    assert bool(outcome.detail) is (passed is None)
