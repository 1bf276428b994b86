"""Repair a draft: the model decides for each complaint whether code or test is wrong, and mends it.

EnvFactory 3.2 asks the same of its scenarios. A test may be mended only where a complaint is about it, and stays a test
of its tool and rule: nothing is made to pass by taking away what it is measured by.
"""

import asyncio
from collections.abc import Mapping, Sequence

from trajsmith.envgen.generate.formatting import fix_and_format_code
from trajsmith.envgen.synthesis.answer_schemas import Repair, UnitTest
from trajsmith.envgen.synthesis.complaints import find_gravest
from trajsmith.envgen.synthesis.prompt_specs import describe_native_form
from trajsmith.envgen.synthesis.prompted_generation import PromptedGenerator
from trajsmith.envgen.synthesis.records import Complaint, Design, EnvironmentDraft
from trajsmith.envgen.synthesis.settings import SynthesisSettings
from trajsmith.envgen.synthesis.static_checks import find_process_only


async def repair_draft(
    generator: PromptedGenerator,
    design: Design,
    draft: EnvironmentDraft,
    complaints: Sequence[Complaint],
    number: int,
    settings: SynthesisSettings,
    worse: str = "",
) -> EnvironmentDraft:
    """Return the next draft.

    Args:
        number: Of this repair, from 1.
        worse: What an earlier attempt on this draft led to, if it made it worse.

    Raises:
        ModelFault: No usable answer.
    """
    shown = find_gravest(complaints, settings.complaints)
    named = {complaint.test for complaint in shown}
    tests = [test for test in draft.tests if test.name in named or test.rule in named - {""}]
    fixed = frozenset(test.name for test in design.earlier)
    answer, code, provenance = await generator.generate_with_code(
        "repair", draft.theme, Repair, lambda one, text: find_repair_fault(one, text, shown, draft.tests, fixed),
        number=number, form=describe_native_form(), code=draft.code, worse=worse,
        complaints=[complaint.model_dump(mode="json") for complaint in shown],
        tests=[test.model_dump(mode="json", exclude_defaults=True) for test in tests],
        requirements=design.requirements.model_dump(mode="json"), more=len(complaints) - len(shown),
        slow=find_process_only(draft.code), fixed=sorted(fixed & {test.name for test in tests}),
    )  # fmt: skip
    whole = draft.code if code is None else await asyncio.to_thread(fix_and_format_code, code)
    return EnvironmentDraft(
        theme=draft.theme,
        design=draft.design,
        number=number,
        parent=draft.id,
        code=whole,
        tests=merge_tests(draft.tests, answer.tests),
        decisions=answer.decisions,
        dropped=draft.dropped,
        provenance=draft.provenance | {f"repair {number}": provenance},
    )


def merge_tests(tests: Sequence[UnitTest], mended: Sequence[UnitTest]) -> tuple[UnitTest, ...]:
    """Return the tests with mended ones in place of the old and new ones behind them."""
    new = {test.name: test for test in mended}
    unchanged = tuple(new.pop(test.name, test) for test in tests)
    return (*unchanged, *new.values())


def find_repair_fault(
    answer: Repair, code: str | None, shown: Sequence[Complaint], tests: Sequence[UnitTest],
    fixed: frozenset[str] = frozenset(),
) -> str:  # fmt: skip
    """Return the fault of a repair; empty if there is none.

    Args:
        fixed: Names of tests that no repair may change.
    """
    complaints = {complaint.id: complaint for complaint in shown}
    decided = {decision.complaint: decision.wrong for decision in answer.decisions}
    unknown = decided.keys() - complaints.keys()
    if unknown:
        return f"there is no complaint {sorted(unknown)[0]}."
    undecided = complaints.keys() - decided.keys()
    if undecided:
        return f"decide on every complaint; missing are {', '.join(sorted(undecided))}."
    if "code" in decided.values() and code is None:
        return "you say that the code is wrong: give the whole corrected file in a block fenced by ```python and ```."
    blamed = {complaints[name].test for name, wrong in decided.items() if wrong == "test"}
    held = sorted(fixed & (blamed | {test.name for test in answer.tests}))
    if held:
        return f"test {held[0]} is an earlier one and holds as it stands: the code is wrong, so mend that."
    return _find_tests_fault(answer, complaints, decided, tests)


def _asserts(test: UnitTest) -> bool:
    """Return whether a test can fail on a call that is answered."""
    return test.expect == "refused" or bool(test.result or test.changes)


def _find_tests_fault(
    answer: Repair, complaints: dict[str, Complaint], decided: Mapping[str, str], tests: Sequence[UnitTest]
) -> str:
    old = {test.name: test for test in tests}
    blamed = {complaints[name].test for name, wrong in decided.items() if wrong == "test"}
    rules = {complaint.test for complaint in complaints.values() if complaint.kind == "rule"}
    for test in answer.tests:
        known = old.get(test.name)
        if known is None and test.rule not in rules:
            return f"test {test.name} is new: only a rule that is not shown to bind gets new tests."
        if known is not None and not {test.name, known.rule} & (blamed - {""}):
            return f"test {test.name} may not be changed: you did not find it wrong."
        if known is not None and (test.tool, test.rule) != (known.tool, known.rule):
            return f"test {test.name} must stay one of {known.tool}" + (f" and {known.rule}." if known.rule else ".")
        if known is not None and _asserts(known) and not _asserts(test):
            return f"test {test.name} must assert something: a refusal, a part of the result, or what changes."
    unmended = blamed - {test.name for test in answer.tests} - {test.rule for test in answer.tests} - {""}
    return f"you found {', '.join(sorted(unmended))} wrong: give it corrected." if unmended else ""
