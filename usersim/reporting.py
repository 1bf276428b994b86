"""Answers and reports of the scripted agent: exactly what was asked, or a result as a whole in the agent's style."""

import random
import re
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from typing import Any, Literal

from trajsmith.grounding import (
    find_rows,
    is_end_out_of_reach,
    is_identifier,
    is_list_cut,
    iterate_leaves,
    update_outdated_fields,
)
from trajsmith.phrasing import (
    Wording,
    capitalize_first,
    format_quoted,
    format_value,
    get_language,
    has_slot,
    humanize,
    is_fact_answered,
    is_value_mentioned,
    join_paragraphs,
    join_words,
    lay_out_items,
    list_value_forms,
    pick_text,
    pluralize,
)
from trajsmith.phrasing.plain_sentences import is_noun
from trajsmith.records import AnswerFact, FromOutput, GoldCall, RequestedInfo, Turn

AgentStyle = Literal["short", "plain", "explanatory"]
"""How an agent reports a result: `ToolPhrases.brief`, `done` or `detailed`."""
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z£\"])")
_NAME_WORD = re.compile(r"\b(?:[A-Z]|\d)[\w.]*\w|\b[A-Z\d]\b")
"""What tells a name: words with a capital letter, and numbers."""
_FIELD = re.compile(r"\bout\.(\w+)")
"""A field of a result in a template."""
_NUMBER = re.compile(r"\d[\d,.]*\d")
_DONE = re.compile(
    r"^(?:(?:That's |All )?[Dd]one[,:.]|(?:OK|Okay|All right|Right|Sure|Of course),) "
    r"(?=(?:your|you|the|it|there)\b|[A-Z\"£])"
)
"""Words that a report begins with where it stands alone, not in a list."""
_THAT_IS = re.compile(r"^(?:It's|That's) (?=the\b)")
"""The same before what is named in its line."""
DETAILED = 0.5
"""Share of reports in which an agent that explains tells more than was asked."""


class ReportWriter:
    """Writes what an agent tells of results: an answer to each question, and a report of what was asked as a whole."""

    def __init__(self, wording: Wording, style: AgentStyle, rng: random.Random) -> None:
        self.wording = wording
        self.style = style
        self.rng = rng
        self.varies = True
        """No template is used a second time in a dialogue while there are others that fit."""
        self.steady = False
        """The first phrase that fits is taken, always the same."""
        self.later: Sequence[AnswerFact] = ()
        """What the user is going to ask for next: not told before, where other words do."""
        self.outdated: Set[str] = frozenset()
        """Fields of the result that a later call of the same message has changed: left to the report of that call."""
        self.question = ""
        """The sentence that asks for what is told next; empty if none does."""
        self.reason = ""
        """Why something else of the same message was refused, which is told after the report: not told twice."""
        self.user_name = ""
        """The user's full name; templates compare people with it (`user_name`)."""
        self.now = ""
        """The clock's day (ISO); templates compare due dates with it. Empty if it is not known."""
        self.before: Callable[[GoldCall], Any] = lambda call: None
        """Returns what was last shown, before a call, of what it shows; None where nothing was."""
        self.others: Callable[[GoldCall], list[Any]] = lambda call: []
        """Returns the other rows of the list that a call's thing was chosen from, as they are now."""
        self.used: set[str] = set()
        """Templates of what was told."""
        self._templates: dict[str, str] = {}
        """Texts that were rendered last, with their templates."""

    def expect(self, turns: Sequence[Turn]) -> None:
        """Record what the user is going to ask for in these turns."""
        self.later = [fact for turn in turns for info in turn.asked for fact in info.facts]

    def answer(
        self, info: RequestedInfo, call: GoldCall, content: Any, first: bool = True, row: str = ""
    ) -> str | None:
        """Return an answer to a narrow question, or None if no answer fits the result.

        Args:
            first: Nothing else is reported before it in the message: "it" can only mean what was asked about.
            row: How the user calls the row that the question is about.
        """
        self.question = info.question
        text = self._answer(info, call, content, first, row)
        return lay_out_items(fit_to_question(text, info.question), self.varies) if text else None

    def _answer(self, info: RequestedInfo, call: GoldCall, content: Any, first: bool, row: str) -> str | None:
        values = self._collect_values(call, content)
        if info.row is not None:
            values["row"] = next(find_rows(content, info.row), None)
            if values["row"] is None:
                return None
        if first:
            text = self._pick(info.answer, values, info.facts)
            return self._note_used(text) if text else None
        clear = [template for template in info.answer if not get_language().reports.pronoun.match(template)]
        text = self._pick(clear, values, info.facts)
        if (
            text
            and all(is_fact_answered(text, fact) for fact in info.facts)
            and not get_language().reports.pronoun.match(text)
        ):
            return self._note_used(text)
        text = self._pick(info.answer, values, info.facts)
        if text is None:
            return None
        self._note_used(text)
        return self._name_topic(info, call, text, row) if get_language().reports.pronoun.match(text) else text

    def _collect_values(self, call: GoldCall, content: Any) -> dict[str, Any]:
        rows = self.wording.rows if self.steady else self.wording.shuffle_rows(self.rng)
        values = {"out": content, "arg": dict(call.arguments), "row_templates": rows, "now": self.now}
        values |= {"others": self.others(call), "user_name": self.user_name}
        before = self.before(call)
        return values if before is None else {**values, "before": before}

    def _name_topic(self, info: RequestedInfo, call: GoldCall, text: str, row: str) -> str:
        """Return an answer that says first what it is about: "As for the add-on, it lasts 30 days."."""
        topic = get_language().reports.own.sub(get_language().reports.second_person, row) or self._find_topic(
            info, call, text
        )
        if not topic:
            return text
        if get_language().reports.starts_with_pronoun.match(text):
            return get_language().reports.as_for.format(topic=topic, text=f"{text[:1].lower()}{text[1:]}")
        topic = get_language().grammar.to_dative(topic)
        return f"{self._choose(get_language().reports.topics).format(topic)} {text}"

    def _find_topic(self, info: RequestedInfo, call: GoldCall, text: str) -> str:
        """Return what "it" means in an answer: the field that is told right after it, else the entity of the call."""
        fact = next(iter(info.facts), None)
        following = get_language().reports.following.match(text)
        forms = tuple(list_value_forms(fact.value)) if fact and is_noun(fact.label) else ()
        if fact and following and forms and following.group(1).lower().startswith(forms):
            return get_language().reports.label_topic.format(fact.label)
        names = [name for name in call.arguments if name in self.wording.phrasebook.entities]
        if names and any("[*]" in path for path in info.fields):
            return ""  # what a customer has ordered is not about the customer
        if names:
            return get_language().grammar.the(self.wording.entity(names[0]))
        if fact is None or isinstance(fact.value, bool) or not is_noun(fact.label):
            return ""
        return get_language().reports.label_topic.format(fact.label)

    def choose_content(self, calls: Sequence[GoldCall], shown: Sequence[Any], index: int, at_end: bool) -> Any:
        """Return what a report of a call tells: its own result, with what later calls have changed left to them.

        Args:
            calls: The calls up to the end of the message.
            shown: Their results.
            index: The call.
            at_end: Values that later calls have changed are told as they are at the end.
        """
        content, last = shown[index], update_outdated_fields(calls, shown, index)
        self.outdated = frozenset()
        if not at_end and isinstance(last, dict) and isinstance(content, dict):
            self.outdated = {name for name, value in last.items() if value != content.get(name)}
        return last if at_end else content

    def report(
        self,
        call: GoldCall,
        content: Any,
        facts: Sequence[AnswerFact] = (),
        alone: bool = True,
        question: str = "",
    ) -> str:
        """Return a report of a whole result in the agent's style, if possible one with all facts.

        Args:
            alone: Nothing else is reported in the message; else a report that names what it is about comes first.
            question: The sentence that asks for it.
        """
        self.question = question
        return lay_out_items(fit_to_question(self._report(call, content, facts, alone), question), self.varies)

    def _report(self, call: GoldCall, content: Any, facts: Sequence[AnswerFact], alone: bool) -> str:
        phrases = self.wording.tool(call.tool)
        if self.style == "short":
            first = phrases.brief
        elif self.style == "explanatory" and (self.steady or self.rng.random() < DETAILED):
            first = phrases.detailed
        else:
            first = (*phrases.done, *phrases.brief) if self.style == "plain" else phrases.done
        values = self._collect_values(call, content)
        ways = self._leave_to_later((first, phrases.done, phrases.detailed, phrases.brief), values)
        compared = [text for options in ways for text in options if has_slot(text, "before")]
        texts: Iterable[str | None] = (self._pick(options, values, facts) for options in (compared, *ways))
        if not alone:
            every = [self._render(text, values) for options in ways for text in options]
            texts = sorted([*texts, *every], key=lambda text: self._is_open(text or "", call, content))
        chosen = self._choose_text(texts, facts)
        return self._note_used(chosen) if chosen else render_plain_report(call, content)

    def _choose_text(self, texts: Iterable[str | None], facts: Sequence[AnswerFact]) -> str | None:
        """Return the first text that states all facts, if possible one that tells nothing too early; else the first."""
        first, whole = None, None
        for text in filter(None, texts):
            if all(is_fact_answered(text, fact) for fact in facts):
                if not self._tells_later(text, facts):
                    return text
                whole = whole or text
            first = first or text
        return whole or first

    def _leave_to_later(self, ways: Sequence[Sequence[str]], values: dict[str, Any]) -> Sequence[Sequence[str]]:
        """Return the templates that tell no field which a later call has changed; all where none of these fits."""
        if not self.outdated:
            return ways
        lasting = [[text for text in way if not self.outdated & set(_FIELD.findall(text))] for way in ways]
        return lasting if any(self._render(text, values) for way in lasting for text in way) else ways

    def _is_open(self, text: str, call: GoldCall, content: Any) -> int:
        """Return 0 for a report that names the kind of its things ("Your payees are ..."), 2 for one that begins with
        a pronoun, and 1 for others."""
        if get_language().reports.pronoun.match(text):
            return 2
        kinds = self.wording.phrasebook.entities
        nouns = {
            noun
            for name in list_field_names(content) & kinds.keys()
            if name not in call.arguments
            for noun in (kinds[name].noun, kinds[name].plural or pluralize(kinds[name].noun))
        }
        return 0 if any(is_value_mentioned(text.lower(), noun.lower()) for noun in nouns) else 1

    def add_limit_note(self, call: GoldCall, content: Any, text: str) -> str:
        """Return a text with a sentence that there may be more, where it tells all rows of a cut list."""
        tool = self.wording.tools.get(call.tool)
        if tool is None or not is_list_cut(tool, call.arguments, content, "$.result"):
            return text
        rows = [row for row in content["result"] if isinstance(row, dict)]
        if not rows or not all(_is_told(row, text) for row in rows):
            return text
        words = get_language().reports
        notes = words.cut_list if is_end_out_of_reach(tool, call.arguments, content) else words.more_pages
        return join_paragraphs([text, self._choose(notes).format(count=len(content["result"]))])

    def _choose(self, options: Sequence[str]) -> str:
        return options[0] if self.steady else self.rng.choice(options)

    def _pick(self, templates: Sequence[str], values: dict[str, Any], facts: Sequence[AnswerFact]) -> str | None:
        """Return a rendered template, if possible one that states all facts; None if none fits the values."""
        drawn = list(templates) if self.steady else self.rng.sample(list(templates), len(templates))
        says = get_language().reports.yes_or_no if takes_yes_or_no(self.question) else None
        drawn.sort(key=lambda one: (not has_slot(one, "before"), not (says and says.search(one)), one in self.used))
        return self._choose_text((self._render_noted(template, values) for template in drawn), facts)

    def _render_noted(self, template: str, values: dict[str, Any]) -> str | None:
        """Return a rendered template, or None; it is noted of which template the text is."""
        text = self._render(template, values)
        if text:
            self._templates[text] = template
        return text

    def _render(self, template: str, values: dict[str, Any]) -> str | None:
        """Return a template with its values, or None if they do not fit it; things of one state share their verb."""
        text = pick_text([template], values, self.rng)
        return get_language().grammar.merge_states(text) if text else None

    def _tells_later(self, text: str, facts: Sequence[AnswerFact]) -> bool:
        """Return True if a text tells a number that is asked for next, and not now, or that a refusal will tell."""
        now = [fact.value for fact in facts]
        asked_for = {number for value in now for number in _list_numbers(str(value))}
        if (_list_numbers(self.reason) - asked_for) & _list_numbers(text):
            return True
        later = [fact for fact in self.later if isinstance(fact.value, float) and fact.value not in now]
        return any(is_fact_answered(text, fact) for fact in later)

    def _note_used(self, text: str) -> str:
        """Record the template of a text that is told, and return the text."""
        if self.varies and not self.steady and text in self._templates:
            self.used.add(self._templates[text])
        self._templates.clear()
        return text


def fit_to_question(text: str, question: str) -> str:
    """Return an answer without its "Yes," or "No," where the question is no such question.

    "No, they're shut." would answer "Is it possible to find out whether a window is open?" by a no to the wish.
    """
    yes_or_no = get_language().reports.yes_or_no.match(text)
    return text if yes_or_no is None or takes_yes_or_no(question) else capitalize_first(text[yes_or_no.end() :])


def takes_yes_or_no(question: str) -> bool:
    """Return True for a question that a yes or no answers."""
    words = get_language().reports
    return words.asks_yes_or_no.search(question) is not None and not words.asks_for_possibility.search(question)


def _list_numbers(text: str) -> set[str]:
    """The numbers of a text with two digits and more: £200 and £200.00 are one."""
    return {number.replace(",", "").removesuffix(".00") for number in _NUMBER.findall(text)}


def _is_told(row: dict[str, Any], text: str) -> bool:
    """Return whether a text names a row: by a text or a moment of it that is no identifier."""
    return any(
        is_value_mentioned(text, value)
        for name, value in row.items()
        if isinstance(value, str) and not is_identifier(name)
    )


def drop_repeated_openings(reports: Sequence[str]) -> list[str]:
    """Return the reports of one message, of which only the first begins with "Done," or "All right,"."""
    return [_DONE.sub("", report) if number else report for number, report in enumerate(reports)]


def summarize_reports(reports: Sequence[str], names: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return a line for each report, with the name of its thing, and the sentences that all of them share.

    Args:
        reports: Reports of the same call on many things.
        names: What each thing is called; empty where that is not known.
    """
    split = [_SENTENCE_END.split(report) for report in reports]
    shared = [part for part in split[0] if len(reports) > 1 and all(part in parts for parts in split)]
    lines = []
    for parts, name in zip(split, names, strict=True):
        line = " ".join(part for part in parts if part not in shared)
        line = capitalize_first(_THAT_IS.sub("", _DONE.sub("", line)))
        if not line:
            line = f"{capitalize_first(name)}." if name else ""
        elif not set(_NAME_WORD.findall(name)) <= set(_NAME_WORD.findall(line)):
            line = f"{capitalize_first(name)}: {get_language().grammar.lower_first(line)}"
        lines += [line] if line else []
    return lines, shared


def render_missing_facts(text: str, facts: Sequence[AnswerFact], results: Sequence[Any]) -> list[str]:
    """Return sentences for the facts that a text leaves out, each with the name of its field.

    Args:
        text: What is said already.
        facts: What must be said.
        results: Where the names of fields stand that the facts do not tell.
    """
    fields = [(name, value) for result in results for name, value in _iter_fields(result)]
    missing = [fact for fact in facts if not is_fact_answered(text, fact)]
    named = [
        (fact.label or next((humanize(name) for name, value in fields if value == fact.value), ""), fact)
        for fact in missing
    ]
    sentences = [_render_named(label, fact) for label, fact in named if label]
    bare = [format_quoted(fact.value) for label, fact in named if not label]
    return [*sentences, *([get_language().reports.also_shows.format(join_words(bare))] if bare else [])]


def _render_named(label: str, fact: AnswerFact) -> str:
    if fact.value == []:
        return get_language().reports.none.format(label)
    if isinstance(fact.value, bool) and fact.words.get(str(fact.value).lower()):
        return f"{capitalize_first(fact.words[str(fact.value).lower()][0])}."
    return f"{capitalize_first(label)}: {format_quoted(fact.value)}."


def find_used_calls(calls: Sequence[GoldCall]) -> set[int]:
    """Return the calls from whose results these take arguments."""
    leaves = (source for call in calls for _, source, _ in iterate_leaves(call))
    return {source.call for source in leaves if isinstance(source, FromOutput)}


def list_reported_calls(turn: Turn, start: int) -> list[int]:
    """Return the calls of which an answer tells: earlier ones that the turn asks about, and its own goals.

    Args:
        turn: The turn.
        start: Number of its first gold call, counted over the whole task.
    """
    used = find_used_calls(turn.gold_calls)
    seen_before = sorted({info.call for info in turn.asked if info.call < start})
    own = enumerate(turn.gold_calls, start)
    return [*seen_before, *(index for index, call in own if index not in used or call.effect == "write")]


def list_field_names(result: Any) -> set[str]:
    """Return the names of the fields of a result; of a list, those of its first row."""
    if isinstance(result, list):
        return list_field_names(result[0]) if result else set()
    if not isinstance(result, dict):
        return set()
    return {name for key, value in result.items() for name in (key, *list_field_names(value))} - {"result"}


def _iter_fields(result: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Every plain value of a result with the name of its field."""
    if isinstance(result, dict):
        for key, value in result.items():
            yield from _iter_fields(value, key)
    elif isinstance(result, list):
        for value in result:
            yield from _iter_fields(value, name)
    else:
        yield name, result


def render_plain_report(call: GoldCall, content: Any) -> str:
    """A report for tools that nobody wrote phrases for: the text itself, or the fields with their names."""
    while isinstance(content, dict) and len(content) == 1:
        content = next(iter(content.values()))
    if isinstance(content, str):
        return (
            get_language().reports.found_text.format(f"\n{content.strip()}").replace(": \n", ":\n")
            if "\n" in content.strip()
            else get_language().reports.found_text.format(content.strip())
        )
    if isinstance(content, list):
        rows = "; ".join(format_value(row) for row in content[:8])
        return get_language().reports.found_rows.format(count=len(content), rows=rows)
    if isinstance(content, dict):
        opening = get_language().reports.found_fields if call.effect == "read" else get_language().reports.done
        return opening.format(
            format_value({key: value for key, value in content.items() if value not in (None, [], {})})
        )
    words = get_language().reports
    return words.answer.format(format_value(content)) if call.effect == "read" else words.is_done
