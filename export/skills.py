"""Skills that accepted dialogues show, counted from their records: questions, parallel calls, refusals, and others."""

from collections import Counter
from collections.abc import Set
from dataclasses import dataclass, field

from trajsmith.phrasing import has_yes_or_no_question
from trajsmith.records import CALL_TOOL, DIRECTORY_TOOLS, SEARCH_TOOLS, Task, TaskHeader, Trajectory, TurnSpan

MANY_CALLS = 10
FEWER = 3
"""Tools that are left out, at least, where an agent is shown few; a variant hides one."""
BASE_VARIANT = "base"


@dataclass(frozen=True)
class Skill:
    """One skill with the number of accepted dialogues that show it."""

    name: str
    dialogues: int
    share: float
    """Share of all accepted dialogues."""
    detail: str
    """Finer counts, in words."""


@dataclass
class SkillTally:
    """Running counts; memory does not grow with the number of dialogues."""

    total: int = 0
    dialogues: Counter[str] = field(default_factory=Counter)
    """Skill to dialogues that show it."""
    events: Counter[str] = field(default_factory=Counter)
    """Turns, messages, calls, and how many of them show a skill."""

    def add(self, task: Task | TaskHeader, trajectory: Trajectory, own_tools: Set[str] = frozenset()) -> None:
        """Count one accepted dialogue.

        Args:
            task: What was played.
            trajectory: The dialogue.
            own_tools: Tools for the agent of the task's environments; others that are shown are distractors. Empty if
                unknown.
        """
        shown = _count_messages(trajectory)
        asked = [_list_asked(trajectory, span) for span in trajectory.turns]
        shown["turns"] = len(asked)
        shown["asked_turns"] = sum(map(bool, asked))
        shown["questions"] = sum(map(len, asked))
        shown["confirmations"] = sum(
            has_yes_or_no_question([_get_last_question(text)]) for texts in asked for text in texts
        )
        shown["calls"] = len(trajectory.events)
        shown["refused"] = sum(not event.ok for event in trajectory.events)
        shown["user_calls"] = sum(event.actor == "user" for event in trajectory.events)
        shown["distractors"] = bool(own_tools and {*trajectory.tools} - {*DIRECTORY_TOOLS, CALL_TOOL} - own_tools)
        shown["few"] = bool(own_tools and CALL_TOOL not in trajectory.tools) and (
            len(own_tools & {*trajectory.tools}) <= len(own_tools) - FEWER
        )
        shown["partial"] = task.variant == "partial_batch"
        shown["paging"] = task.variant == "later_page"
        shown["search"] = SEARCH_TOOLS in trajectory.tools and sum(
            event.tool == SEARCH_TOOLS for event in trajectory.events
        )
        shown["two_level"] = CALL_TOOL in trajectory.tools and SEARCH_TOOLS not in trajectory.tools
        shown["composite"] = len(task.environments) > 1
        shown["variants"] = task.variant != BASE_VARIANT
        self.total += 1
        for name, count in shown.items():
            if count:
                self.dialogues[name] += 1
                self.events[name] += count

    def merge(self, other: "SkillTally") -> None:
        """Add what was counted of other dialogues."""
        self.total += other.total
        self.dialogues.update(other.dialogues)
        self.events.update(other.events)

    def list_skills(self) -> list[Skill]:
        """Return every skill, also those that no dialogue shows."""
        counts = self.events
        rows = [
            ("task variants", "variants", "something is missing, ambiguous, forbidden or failing"),
            ("questions to the user", "questions", f"in {_tell(counts, 'asked_turns', 'turns')} turns"),
            ("confirmations", "confirmations", f"{counts['confirmations']} times a yes was asked for"),
            ("parallel calls", "parallel", f"{_tell(counts, 'parallel', 'with_calls')} messages with calls"),
            ("refused calls", "refused", f"{_tell(counts, 'refused', 'calls')} calls, and what the agent did next"),
            (f"{MANY_CALLS} or more calls in one turn", "many", f"{_tell(counts, 'many', 'turns')} turns"),
            ("calls by the user", "user_calls", f"{counts['user_calls']} on a device of the user"),
            ("distractor tools", "distractors", "tools of other environments are shown, too"),
            ("few tools", "few", f"{FEWER} or more tools of the environment are not shown"),
            ("batches refused in part", "partial", "the rest is done, and the answer says both"),
            ("later pages of a list", "paging", "read on until it is found"),
            ("tool search", "search", f"{counts['search']} searches for tools that are not shown"),
            ("tools behind a list", "two_level", "tools are listed and called through two others"),
            ("several environments", "composite", "one task over two or more"),
            ("reasoning", "reasoning", f"{_tell(counts, 'reasoning', 'messages')} messages of the agent"),
        ]
        return [
            Skill(name, self.dialogues[key], self.dialogues[key] / self.total if self.total else 0.0, detail)
            for name, key, detail in rows
        ]


def _tell(counts: Counter[str], part: str, whole: str) -> str:
    return f"{counts[part]:,} of {counts[whole]:,}".replace(",", "\u202f")


def _count_messages(trajectory: Trajectory) -> dict[str, int]:
    """Count messages of the agent, those with calls and with several, and turns with many calls."""
    messages = [message for message in trajectory.messages if message.role == "assistant"]
    calls = [len(message.tool_calls) for message in messages if message.tool_calls]
    spans = trajectory.turns if sum(calls) >= MANY_CALLS else ()
    return {
        "messages": len(messages),
        "reasoning": sum(bool(message.reasoning_content) for message in messages),
        "with_calls": len(calls),
        "parallel": sum(count > 1 for count in calls),
        "many": sum(_count_calls(trajectory, span) >= MANY_CALLS for span in spans),
    }


def _count_calls(trajectory: Trajectory, span: TurnSpan) -> int:
    return sum(len(message.tool_calls or ()) for message in trajectory.messages[span.start : span.stop])


def _get_last_question(text: str) -> str:
    """Return the last sentence of a text that ends in a question mark; the whole text if there is none."""
    end = text.rfind("?")
    start = max(text.rfind(mark, 0, end) for mark in (". ", "! ", "? ", "\n")) if end >= 0 else -1
    return text[start + 1 : end + 1 if end >= 0 else None].strip()


def _list_asked(trajectory: Trajectory, span: TurnSpan) -> list[str]:
    """Return the texts of the agent to which the user answers within one turn."""
    messages = trajectory.messages
    return [
        messages[place - 1].content
        for place in range(span.start + 1, span.stop)
        if messages[place].role == "user"
        and messages[place - 1].role == "assistant"
        and not messages[place - 1].tool_calls
    ]
