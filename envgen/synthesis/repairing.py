"""Mending a draft with evidence: the model says of each complaint whether code or test is wrong, and mends that.

EnvFactory 3.2 asks the same of its scenarios. A test may be mended only where a complaint is about it, and stays a test
of its tool and rule: nothing is made to pass by taking away what it is measured by.
"""

import asyncio
from collections.abc import Mapping, Sequence

from envgen.generate.tidying import tidied
from envgen.synthesis.desk import Desk
from envgen.synthesis.evidence import gravest
from envgen.synthesis.parts import Repair, UnitTest
from envgen.synthesis.prompting import native_form
from envgen.synthesis.reach import slows
from envgen.synthesis.records import Complaint, Design, Draft
from envgen.synthesis.settings import SynthesisSettings


async def repair(
    desk: Desk, design: Design, draft: Draft, complaints: Sequence[Complaint], number: int, settings: SynthesisSettings,
    worse: str = "",
) -> Draft:  # fmt: skip
    """The next draft.

    Args:
        number: Of this repair, from 1.
        worse: What an earlier attempt on this draft led to, if it made it worse.

    Raises:
        ModelFault: No usable answer.
    """
    shown = gravest(complaints, settings.complaints)
    named = {complaint.test for complaint in shown}
    tests = [test for test in draft.tests if test.name in named or test.rule in named - {""}]
    fixed = frozenset(test.name for test in design.earlier)
    found, code, told = await desk.both(
        "repair", draft.theme, Repair, lambda one, text: wrong_repair(one, text, shown, draft.tests, fixed),
        number=number, form=native_form(), code=draft.code, worse=worse,
        complaints=[complaint.model_dump(mode="json") for complaint in shown],
        tests=[test.model_dump(mode="json", exclude_defaults=True) for test in tests],
        requirements=design.requirements.model_dump(mode="json"), more=len(complaints) - len(shown),
        slow=slows(draft.code), fixed=sorted(fixed & {test.name for test in tests}),
    )  # fmt: skip
    whole = draft.code if code is None else await asyncio.to_thread(tidied, code)
    return Draft(
        theme=draft.theme, design=draft.design, number=number, parent=draft.id, code=whole,
        tests=merged(draft.tests, found.tests),
        decisions=found.decisions, dropped=draft.dropped, provenance=draft.provenance | {f"repair {number}": told},
    )  # fmt: skip


def merged(tests: Sequence[UnitTest], mended: Sequence[UnitTest]) -> tuple[UnitTest, ...]:
    """The tests with the mended ones in place of the old, and new ones behind them."""
    new = {test.name: test for test in mended}
    kept = tuple(new.pop(test.name, test) for test in tests)
    return (*kept, *new.values())


def wrong_repair(
    found: Repair, code: str | None, shown: Sequence[Complaint], tests: Sequence[UnitTest],
    fixed: frozenset[str] = frozenset(),
) -> str:  # fmt: skip
    """What is wrong with a repair; empty if nothing is.

    Args:
        fixed: Names of tests that no repair may change.
    """
    complaints = {complaint.id: complaint for complaint in shown}
    decided = {decision.complaint: decision.wrong for decision in found.decisions}
    unknown = decided.keys() - complaints.keys()
    if unknown:
        return f"there is no complaint {sorted(unknown)[0]}."
    undecided = complaints.keys() - decided.keys()
    if undecided:
        return f"decide on every complaint; missing are {', '.join(sorted(undecided))}."
    if "code" in decided.values() and code is None:
        return "you found the code wrong: give the whole mended file in a block fenced by ```python and ```."
    blamed = {complaints[name].test for name, wrong in decided.items() if wrong == "test"}
    held = sorted(fixed & (blamed | {test.name for test in found.tests}))
    if held:
        return f"test {held[0]} is an earlier one and holds as it stands: the code is wrong, so mend that."
    return _wrong_tests(found, complaints, decided, tests)


def _wrong_tests(
    found: Repair, complaints: dict[str, Complaint], decided: Mapping[str, str], tests: Sequence[UnitTest]
) -> str:
    old = {test.name: test for test in tests}
    blamed = {complaints[name].test for name, wrong in decided.items() if wrong == "test"}
    rules = {complaint.test for complaint in complaints.values() if complaint.kind == "rule"}
    for test in found.tests:
        known = old.get(test.name)
        if known is None and test.rule not in rules:
            return f"test {test.name} is new: only a rule that is not shown to bind gets new tests."
        if known is not None and not {test.name, known.rule} & (blamed - {""}):
            return f"test {test.name} may not be changed: you did not find it wrong."
        if known is not None and (test.tool, test.rule) != (known.tool, known.rule):
            return f"test {test.name} must stay one of {known.tool}" + (f" and {known.rule}." if known.rule else ".")
    unmended = blamed - {test.name for test in found.tests} - {test.rule for test in found.tests} - {""}
    return f"you found {', '.join(sorted(unmended))} wrong: give it mended." if unmended else ""
