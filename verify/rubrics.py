"""Rubrics of tasks (Agent-World 3.1.1 and 3.2.1): deriving the criteria, and deciding them for a play.

Criteria come from what execution knows of the task: effects of the gold calls, what must stay as it is, rules, what is
asked to be told, values to ask for, confirmation, and what a variant demands. Each is decided by outcomes that the
verdict has anyway. A model may add others (`trajsmith.verify.rubric_author`).
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from trajsmith.records import (
    DIRECTORY_TOOLS,
    AnswerCheck,
    CheckOutcome,
    CodeCheck,
    Criterion,
    CriterionOutcome,
    EnvironmentSpec,
    InstalledCheck,
    LeftOut,
    PolicyCheck,
    StateCheck,
    Task,
    Topic,
    Trajectory,
    UntouchedCheck,
    UserFact,
)
from trajsmith.verify.claim_support import CLAIMS
from trajsmith.verify.confirmation import MISSING, NEEDLESS
from trajsmith.verify.judge import is_fact_in_text
from trajsmith.verify.matching import WRONG_READS
from trajsmith.verify.rewards.format_outcome import FORMAT_ERRORS
from trajsmith.verify.tool_choice import OWN_TOOLS, SHOWN_TOOLS

WEIGHTS: Mapping[Topic, float] = {
    "effect": 3.0, "answer": 3.0, "untouched": 2.0, "policy": 2.0, "confirmation": 2.0, "conduct": 2.0,
    "written": 2.0, "installed": 2.0, "judged": 1.0, "question": 1.0, "claims": 1.0, "effort": 1.0, "format": 1.0,
}  # fmt: skip
OPTIONAL: frozenset[Topic] = frozenset({"effort", "format"})
"""Topics of criteria that count in the weighted reward only: a play may be right without them."""
CONFIRMED = "the agent gets a yes before each call that needs one, and asks for none where none is needed"
SUPPORTED = "the agent tells only what it was given, each value of the thing that it belongs to"
READABLE = "each call names a tool that is shown, with arguments that its schema allows"
SHOWN = 3
"""Checks that a criterion names."""
SPARE_CALLS = 3
"""Calls beyond twice those of gold that an economical play may make."""
BROKEN_FORMAT = frozenset({"agent_gave_up", "bad_calls"})
"""Ends of plays whose last messages could not be read."""
_ACTS = {
    "ask": "the agent asks for what the request leaves out before it acts",
    "decline": "the agent says plainly what cannot be done, and does nothing in its place",
    "recover": "the agent tries again after a call that failed",
    "check": "the agent comes back to the user before it changes anything",
    "delegate": "the agent lets the user do what only the user can do",
    "offer": "the agent says that it cannot be done and offers what can be",
    "reread": "the agent reads again what has changed",
    "batch": "the agent does it for all that are meant and for nothing else, and says for which it could not",
    "ignore": "the agent does not do what a result demands",
    "page": "the agent reads on to the page that has it",
}


def derive_rubric(task: Task, spec: EnvironmentSpec) -> tuple[Criterion, ...]:
    """Derive the criteria of a task; every check of it decides exactly one of them.

    Args:
        task: The task with its tested checks.
        spec: Its environment, which says what its tools declare.
    """
    return (*_derive_from_checks(task), *_derive_from_conduct(task, spec))


def _derive_from_checks(task: Task) -> Iterator[Criterion]:
    effects: dict[tuple[int, str], list[tuple[int, int]]] = {}
    answers: dict[tuple[int, str], list[tuple[int, int]]] = {}
    untouched: list[tuple[int, int]] = []
    seen: set[tuple[str, str]] = set()
    lasting: list[tuple[int, int]] = []
    for number, turn in enumerate(task.turns):
        for place, check in enumerate(turn.checks):
            key = (number, place)
            if isinstance(check, StateCheck):
                same = (check.path, repr(check.value))
                if same in seen:
                    lasting.append(key)
                else:
                    effects.setdefault((number, _cut_at_row(check.path)), []).append(key)
                seen.add(same)
            elif isinstance(check, UntouchedCheck):
                untouched.append(key)
            elif isinstance(check, AnswerCheck):
                answers.setdefault((number, check.question), []).append(key)
            else:
                yield _build(check.says, _get_topic(check), [key], number)
    groups: tuple[tuple[Topic, dict[tuple[int, str], list[tuple[int, int]]]], ...]
    groups = ("effect", effects), ("answer", answers)
    for about, members in groups:
        for (number, _), keys in members.items():
            says = [task.turns[number].checks[place].says for _, place in keys]
            yield _build("; ".join(says[:SHOWN]) + ("; ..." if len(says) > SHOWN else ""), about, keys, number)
    if lasting:
        yield _build("what was done earlier is still there at the end", "effect", lasting, len(task.turns) - 1)
    if untouched:
        last, place = untouched[-1]
        yield _build(task.turns[last].checks[place].says, "untouched", untouched)


def _get_topic(check: PolicyCheck | CodeCheck | InstalledCheck) -> Topic:
    if isinstance(check, InstalledCheck):
        return "answer" if check.name == "solution" else "installed"
    return "policy" if isinstance(check, PolicyCheck) else "written"


def _derive_from_conduct(task: Task, spec: EnvironmentSpec) -> Iterator[Criterion]:
    declared = {tool.name for tool in spec.tools if tool.declares_write and tool.actor == "assistant"}
    if task.twist is not None or any(call.tool in declared for call in task.gold_calls):
        yield _build(CONFIRMED, "confirmation")
    for number in range(len(task.turns)):
        for entry in _list_withheld(task, number):
            yield _build(_ask_for(entry), "question", turn=number)
    if task.twist is not None and task.twist.act in _ACTS:
        yield _build(_ACTS[task.twist.act], "conduct", turn=task.twist.turn)
    if task.distractors:
        yield _build(OWN_TOOLS, "conduct")
    if task.search is not None:
        yield _build(SHOWN_TOOLS, "conduct")
    yield _build(WRONG_READS, "conduct")
    yield _build(SUPPORTED, "claims")
    yield _build(f"the work takes at most {count_allowed_calls(task)} calls", "effort")
    yield _build(READABLE, "format")


def _build(says: str, about: Topic, checks: Sequence[tuple[int, int]] = (), turn: int | None = None) -> Criterion:
    return Criterion(
        says=says, about=about, turn=turn, weight=WEIGHTS[about], required=about not in OPTIONAL, checks=tuple(checks)
    )


def _cut_at_row(path: str) -> str:
    """Return the row of a table that a path (RFC 6901) leads into: changes of one row are one effect."""
    return "/".join(path.split("/")[:3])


def _list_withheld(task: Task, number: int) -> list[UserFact]:
    """List the facts that a turn leaves out; none where a variant decides what is to be asked for."""
    if task.mode == "direct" or (task.twist is not None and task.twist.turn == number):
        return []
    return [entry for entry in task.turns[number].known if not entry.stated]


def _ask_for(entry: UserFact) -> str:
    return f"the user is asked for the {entry.label}"


def count_allowed_calls(task: Task) -> int:
    """Return how many calls an economical play makes at most."""
    return 2 * len(task.gold_calls) + SPARE_CALLS


@dataclass(frozen=True)
class RubricEvidence:
    """Outcomes of one play, as execution decided them.

    Attributes:
        checks: Outcomes of the checks of each turn that was played.
        installed: Outcomes of installed checks that no task holds.
        conduct: All other outcomes of the verdict.
        own: Outcomes of the criteria's own checks, by number of the criterion; empty if the last turn was not reached.
        unexamined: Topics that the settings leave out.
    """

    checks: Sequence[Sequence[CheckOutcome]]
    installed: Sequence[CheckOutcome]
    conduct: Sequence[CheckOutcome]
    own: Mapping[int, CheckOutcome]
    unexamined: frozenset[Topic] = frozenset()


def decide_rubric(task: Task, trajectory: Trajectory, evidence: RubricEvidence) -> tuple[CriterionOutcome, ...]:
    """Decide all criteria that execution can decide; those for a judge are left out until one has decided them."""
    decided = [_decide(number, task, trajectory, evidence) for number in range(len(task.rubric))]
    if task.rubric:
        decided += [
            CriterionOutcome(
                says=outcome.says, about="installed", weight=WEIGHTS["installed"], met=outcome.passed,
                detail=outcome.detail,
            )
            for outcome in evidence.installed
        ]  # fmt: skip
    return tuple(decided)


def _decide(number: int, task: Task, trajectory: Trajectory, evidence: RubricEvidence) -> CriterionOutcome:
    criterion = task.rubric[number]
    met: bool | None
    left_out: LeftOut = ""
    if criterion.about in evidence.unexamined:
        met, detail, left_out = None, "the settings do not ask for it", "not_examined"
    elif criterion.about == "judged":
        met, detail, left_out = None, "needs a judge, and there is none", "no_judge"
    elif criterion.check is not None:
        met, detail = _join([evidence.own[number]]) if number in evidence.own else _UNPLAYED
    elif criterion.checks:
        rows = evidence.checks
        played = all(turn < len(rows) for turn, _ in criterion.checks)
        met, detail = _join([rows[turn][place] for turn, place in criterion.checks]) if played else _UNPLAYED
    else:
        met, detail = _decide_conduct(criterion, task, trajectory, evidence.conduct)
    return CriterionOutcome(
        says=criterion.says, about=criterion.about, weight=criterion.weight, required=criterion.required, met=met,
        detail=detail, left_out=left_out,
    )  # fmt: skip


_UNPLAYED = False, "the play ended before"


def _join(outcomes: Sequence[CheckOutcome]) -> tuple[bool | None, str]:
    """Return whether all passed, and what showed that one did not; None if none failed and one could not tell."""
    worst = next((each for each in outcomes if each.passed is False), None)
    worst = worst or next((each for each in outcomes if each.passed is None), None)
    return (True, "") if worst is None else (worst.passed, worst.detail or worst.says)


def _decide_conduct(
    criterion: Criterion, task: Task, trajectory: Trajectory, outcomes: Sequence[CheckOutcome]
) -> tuple[bool | None, str]:
    events = [event for event in trajectory.events if event.actor == "assistant"]
    if criterion.about == "effort":
        count = sum(event.tool not in DIRECTORY_TOOLS for event in events)
        return count <= count_allowed_calls(task), f"{count} calls"
    if criterion.about == "format":
        broken = [event.tool for event in events if event.error in FORMAT_ERRORS]
        return not broken and trajectory.stop_reason not in BROKEN_FORMAT, ", ".join(broken[:3])
    if criterion.about == "question":
        return _decide_question(criterion, task, trajectory)
    if criterion.about == "claims":
        return _join([outcome for outcome in outcomes if outcome.kind == CLAIMS])
    fixed = {OWN_TOOLS, SHOWN_TOOLS, WRONG_READS}
    if criterion.about == "confirmation":
        return _join([outcome for outcome in outcomes if outcome.says in (MISSING, NEEDLESS)])
    if criterion.says in fixed:
        return _join([outcome for outcome in outcomes if outcome.says == criterion.says])
    if criterion.turn is not None and criterion.turn >= len(trajectory.turns):
        return _UNPLAYED
    others = {MISSING, NEEDLESS, *fixed}
    return _join([outcome for outcome in outcomes if outcome.kind != CLAIMS and outcome.says not in others])


def _decide_question(criterion: Criterion, task: Task, trajectory: Trajectory) -> tuple[bool, str]:
    """The user tells what the request leaves out only if asked: what the user said until the turn's end decides."""
    number = criterion.turn or 0
    if number >= len(trajectory.turns):
        return _UNPLAYED
    stop = trajectory.turns[number].stop
    text = "\n".join(message.content for message in trajectory.messages[:stop] if message.role == "user")
    wanted = [entry for entry in _list_withheld(task, number) if _ask_for(entry) == criterion.says]
    missing = [entry.label for entry in wanted if not is_fact_in_text(entry, text)]
    return not missing, ", ".join(missing)


def count_criteria_by_outcome(plays: Sequence[Sequence[bool | None]]) -> Counter[str]:
    """Count the criteria of a task by what its plays say of them; those decided in fewer than two plays are left out.

    Returns:
        How many are "met_by_all", "met_by_none", "discriminating" (some plays meet it, others do not), or "undecided"
        (equal where it could be decided, and it could not be in every play).
    """
    common, counts = find_common_criteria(plays), Counter[str]()
    for number, outcomes in _group_outcomes(plays):
        decided = [met for met in outcomes if met is not None]
        if len(decided) >= 2:
            alike = "undecided" if len(set(decided)) == 1 else "discriminating"
            counts[common.get(number, alike)] += 1
    return counts


def find_common_criteria(plays: Sequence[Sequence[bool | None]]) -> dict[int, LeftOut]:
    """Find the criteria that all plays of a task meet, or none does: they do not tell the plays apart.

    Args:
        plays: For each play, whether it met each criterion; None where nobody could tell.

    Returns:
        Number of the criterion to the reason; without those that a play is undecided on, since it may differ.
    """
    common: dict[int, LeftOut] = {}
    for number, outcomes in _group_outcomes(plays):
        if len(outcomes) >= 2 and None not in outcomes and len(set(outcomes)) == 1:
            common[number] = "met_by_all" if outcomes[0] else "met_by_none"
    return common


def _group_outcomes(plays: Sequence[Sequence[bool | None]]) -> Iterator[tuple[int, list[bool | None]]]:
    for number in range(max(map(len, plays), default=0)):
        yield number, [play[number] for play in plays if number < len(play)]
