"""The boundary around foreign code: everything becomes a fault, but not what was raised on purpose."""

import pytest

from trajsmith.records import EnvironmentFault, InputError, RecordDropped, RunError, ToolError, environment_boundary


def test_foreign_exceptions_become_faults() -> None:
    reason = r"shop\.pay: crash: ZeroDivisionError: by zero"
    with pytest.raises(EnvironmentFault, match=reason) as caught, environment_boundary("shop", "pay"):
        raise ZeroDivisionError("by zero")
    assert (caught.value.kind, caught.value.environment, caught.value.tool) == ("crash", "shop", "pay")
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


OURS = [
    pytest.param(InputError("wrong"), id="input"),
    pytest.param(RunError("stop"), id="run"),
    pytest.param(RecordDropped("why", "detail"), id="dropped"),
]


@pytest.mark.parametrize(
    "error",
    [
        pytest.param(ToolError("no"), id="refusal"),
        pytest.param(EnvironmentFault("timeout", "shop", "slow"), id="fault"),
    ],
)
def test_refusals_and_faults_pass(error: Exception) -> None:
    with pytest.raises(type(error)) as caught, environment_boundary("shop"):
        raise error
    assert caught.value is error


@pytest.mark.parametrize("error", OURS)
def test_our_errors_raised_by_foreign_code_become_faults(error: Exception) -> None:
    reason = rf"shop\.pay: crash: {type(error).__name__}: "
    with pytest.raises(EnvironmentFault, match=reason), environment_boundary("shop", "pay"):
        raise error


@pytest.mark.parametrize("error", OURS)
def test_our_errors_raised_by_our_code_pass(error: Exception) -> None:
    with pytest.raises(type(error)) as caught, environment_boundary("shop", trusted=True):
        raise error
    assert caught.value is error


def test_exit_codes() -> None:
    assert (InputError.exit_code, RunError.exit_code, EnvironmentFault.exit_code) == (2, 1, 1)


def test_a_drop_tells_reason_and_detail() -> None:
    assert str(RecordDropped("too_few_calls", "2 of 6")) == "too_few_calls: 2 of 6"
    assert str(RecordDropped("too_few_calls")) == "too_few_calls"
