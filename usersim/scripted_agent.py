"""A teacher without a model: it knows the gold calls, but takes every argument from what was said and returned.

It asks for what the user has not said yet, resolves references in the results that it really got, and answers from
them. A reference that does not resolve, or a refused call, is told to the user and ends the turn's work.
"""

import random
from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any

from trajsmith.environments import ToolResult
from trajsmith.grounding import (
    ReferenceNotResolved,
    build_selector_key,
    find_values,
    get_value_at,
    iterate_leaves,
    list_needed_keys,
    resolve_reference,
)
from trajsmith.phrasing import (
    Wording,
    capitalize_first,
    draw_agent_voice,
    drop_near_years,
    fill_pattern,
    get_agent_voice,
    get_language,
    iterate_rows,
    join_paragraphs,
    needs_confirmation,
)
from trajsmith.records import (
    Composite,
    FromOutput,
    FromUser,
    FunctionCall,
    GoldCall,
    JsonObject,
    Message,
    Selector,
    Task,
    ToolCall,
    UserFact,
    derive_seed,
)
from trajsmith.usersim.announcements import announce_call, choose_frames, is_loop, render_call_phrase
from trajsmith.usersim.choice_questions import ChoiceWriter, list_current_rows, select_meant_rows
from trajsmith.usersim.confirmation_questions import ConfirmationWriter, IdentifiedRow, collect_shown, keep_lasting
from trajsmith.usersim.courtesies import Courtesies, draw_courtesies
from trajsmith.usersim.reporting import ReportWriter, drop_repeated_openings, list_reported_calls, render_missing_facts
from trajsmith.usersim.roles import AgentAct
from trajsmith.usersim.shown_rows import find_shown_before, list_other_rows
from trajsmith.usersim.utterance_tracking import UtteranceTracker

LARGEST_GROUP = 10
"""Calls in one message at most."""
PURPOSE = "{purpose}"
"""Slot of frames in which the agent says what a request is good for."""
QUIET = 0.3
"""Factor of the probability of a word before a call that is not the first of its turn."""


class ScriptedAgent:
    """Plays the agent of one task."""

    name = "scripted"
    parallel = 0.9
    """Probability that calls that commute go in one message."""
    fault_kind = ""
    """Mistake that it makes on purpose."""
    now = date.min
    """The clock's day; dates near it are told without a year."""
    courtesies = Courtesies()
    """What it says out of courtesy."""

    def open_writer(self, used: set[str] | None = None) -> ConfirmationWriter:
        """Return a writer of questions in the agent's voice and at its time; `used` are frames of the dialogue."""
        return ConfirmationWriter(self.wording, self.rng, self.voice, used, self.now)

    def __init__(self, task: Task, wording: Wording, candidate: int, listens: bool = False) -> None:
        """`listens` says that the user is a model: nothing counts as said that its words do not tell."""
        self.hearing = UtteranceTracker(wording) if listens else None
        self.prompts: dict[str, str] = {}
        self.task = task
        self.wording = wording
        self.rng = random.Random(derive_seed(task.seed, "agent", candidate))
        self.pace = random.Random(derive_seed(task.seed, "parallel", candidate))
        self.style = draw_agent_voice(random.Random(derive_seed(task.seed, "agent style", candidate)))
        self.voice = get_agent_voice(self.style)
        self.reports = ReportWriter(wording, self.voice.reports, self.rng)
        self.calls = task.gold_calls
        self.known = {entry.key: entry for turn in task.turns for entry in turn.known}
        self.results: list[ToolResult] = []
        """Results of the gold calls made so far, by their index, up to the first that was not made."""
        self.early: dict[int, ToolResult] = {}
        """Results of gold calls after that one."""
        self.pending: list[int] = []
        """Gold calls of the last message whose results are not there yet."""
        self.group: list[int] = []
        """Gold calls of the last message with calls."""
        self.turn, self.stop = -1, 0
        self.said: set[str] = set()
        self.confirmed: set[int] = set()
        self.asking: tuple[int, ...] = ()
        """Calls for which a yes was asked last."""
        self.made = 0
        self.frames: set[str] = set()
        """Frames in which it said what comes next."""
        self.announced = False
        """It has said in this turn what it does."""
        self.failure = ""
        self.told = ""
        """What it has said so far."""
        self.courtesies = draw_courtesies(task, wording, self.voice, candidate)

    def open_turn(self, turn: int) -> None:
        """The user has made the request of this turn."""
        self.turn = turn
        self.stop = sum(len(item.gold_calls) for item in self.task.turns[: turn + 1])
        self.said |= {entry.key for entry in self.task.turns[turn].known if entry.stated}
        self.failure, self.announced = "", False

    def observe(self, tools: Sequence[str], results: Sequence[ToolResult], by_user: bool) -> None:
        for tool, result in zip(tools, results, strict=True):
            if by_user and not self._awaits(tool, result):
                continue
            self._take(len(self.results) if by_user or not self.pending else self.pending.pop(0), result)
            if not result.ok and not self.failure:
                self.failure = get_language().agent.refused.format(result.text)

    def _take(self, index: int, result: ToolResult) -> None:
        """Record the result of a gold call; calls may be made before those that stand earlier in gold."""
        self.early[index] = result
        while len(self.results) in self.early:
            self.results.append(self.early.pop(len(self.results)))

    def _has_result(self, index: int) -> bool:
        return index < len(self.results) or index in self.early

    def _get_result(self, index: int) -> ToolResult:
        return self.results[index] if index < len(self.results) else self.early[index]

    def _awaits(self, tool: str, result: ToolResult) -> bool:
        """True for what the user was asked to do; a model may do other things on its device, or do it wrong first."""
        index = len(self.results)
        expected = index < self.stop and (self.calls[index].actor, self.calls[index].tool) == ("user", tool)
        return expected and (result.ok or self.hearing is None)

    async def act(self, messages: list[Message]) -> AgentAct:
        return self.polish(await self._choose_act(messages))

    def polish(self, act: AgentAct) -> AgentAct:
        """Return an act with dates near the clock without their year, as people say them, and words of courtesy."""
        return act.with_text(self.courtesies.add_to(drop_near_years(act.message.content, self.now)))

    async def _choose_act(self, messages: list[Message]) -> AgentAct:
        turn = len(self._openings(messages)) - 1
        if turn != self.turn:
            self.open_turn(turn)
        self.told = "\n".join(message.content for message in messages if message.role == "assistant")
        if self.hearing:
            self.said |= self.hearing.find_stated_facts(messages, self.known)
        if self.failure:
            return AgentAct(Message(role="assistant", content=self.failure), gave_up=True)
        index = len(self.results)
        if index >= self.stop:
            return AgentAct(Message(role="assistant", content=self._answer()))
        call = self.calls[index]
        missing = [key for key in list_needed_keys(call) if key not in self.said]
        blocked = self.hearing and self._blocked(index, missing, messages)
        if blocked:
            return blocked
        if missing:
            self.said |= set() if self.hearing else set(missing)
            return AgentAct(Message(role="assistant", content=self._questions(call, missing)), asks=tuple(missing))
        if call.actor == "user":
            return AgentAct(Message(role="assistant", content=self._request(call)), wants_user_call=True)
        if self._asks_first(index):
            return AgentAct(Message(role="assistant", content=self._confirmation(index)), confirms=True)
        last = messages[-1]
        return self._call(index, last.role == "user" and last.content != self.task.turns[self.turn].query)

    def _blocked(self, index: int, missing: list[str], messages: list[Message]) -> AgentAct | None:
        """Why the next call cannot be made with a user who is a model: no answer, a no, something not read out."""
        hearing, call = self.hearing, self.calls[index]
        if hearing is None:
            return None
        if self.asking[:1] == (index,) and not hearing.agreed(messages, call):
            if hearing.refused(messages):
                return self._give_up("All right, I'll leave that as it is.")
            if hearing.is_repeated_too_often([f"{index}.yes"]):
                return self._give_up("I'm sorry, I cannot go on without your yes.")
            return AgentAct(Message(role="assistant", content=self._confirmation(index)), confirms=True)
        if hearing.is_repeated_too_often([*missing, *([f"device.{index}"] if call.actor == "user" else [])]):
            return self._give_up("I'm sorry, I cannot go on without that.")
        untold = hearing.find_unreported_values(call, self.calls, [result.content for result in self.results])
        if untold and hearing.is_repeated_too_often([f"{index}.{label}" for label in untold]):
            return self._give_up("I'm sorry, I cannot go on without that.")
        if untold:
            text = " ".join(f"What does it show as the {label}?" for label in untold)
            return AgentAct(Message(role="assistant", content=text))
        return None

    def _give_up(self, text: str) -> AgentAct:
        return AgentAct(Message(role="assistant", content=text), gave_up=True)

    def _openings(self, messages: list[Message]) -> set[int]:
        """Indices of the messages that open a turn: queries, word for word, in their order."""
        indices: set[int] = set()
        queries = [turn.query for turn in self.task.turns]
        for index, message in enumerate(messages):
            if message.role == "user" and len(indices) < len(queries) and message.content == queries[len(indices)]:
                indices.add(index)
        return indices

    # Tool calls

    def _call(self, index: int, answered: bool) -> AgentAct:
        group = self._list_group(index)
        if 1 < len(group) < LARGEST_GROUP and self.pace.random() >= self.parallel:
            group = [index]
        self.group, self.pending = group, list(group)
        try:
            arguments = [self._arguments(self.calls[member]) for member in group]
        except ReferenceNotResolved as fault:
            return self._give_up(get_language().agent.unclear.format(fault))
        calls = []
        for member, filled in zip(group, arguments, strict=True):
            self.made += 1
            function = FunctionCall(name=self.calls[member].tool, arguments=filled)
            calls.append(ToolCall(id=f"call_{self.made}", function=function))
        return AgentAct(Message(role="assistant", content=self._narration(group, answered), tool_calls=tuple(calls)))

    def _list_group(self, index: int) -> list[int]:
        """Return a call and those that commute with it and can be made now, in gold order.

        Nothing that belongs before the group may be left open, and nothing is made for which a yes is still needed.
        """
        start = self.stop - len(self.task.turns[self.turn].gold_calls)
        groups = self.task.turns[self.turn].groups
        if not groups or index < start:
            return [index]
        own = groups[index - start]
        group: list[int] = []
        for number in range(index, self.stop):
            if self._has_result(number):
                continue
            if groups[number - start] < own or (groups[number - start] == own and not self._can_make(number)):
                break
            if groups[number - start] == own:
                group.append(number)
        return group[:LARGEST_GROUP] or [index]

    def _can_make(self, index: int) -> bool:
        """Return True if the user has said what a call needs, and agreed where that is needed."""
        call = self.calls[index]
        return (
            call.actor == "assistant"
            and all(key in self.said for key in list_needed_keys(call))
            and self._has_sources(call)
            and (self.task.mode == "direct" or index in self.confirmed or not self._needs_yes(call))
        )

    def _has_sources(self, call: GoldCall) -> bool:
        return all(
            self._has_result(source.call) for _, source, _ in iterate_leaves(call) if isinstance(source, FromOutput)
        )

    def _arguments(self, call: GoldCall) -> JsonObject:
        filled: JsonObject = {}
        for name, source in call.provenance.items():
            if isinstance(source, Composite):
                filled[name] = call.arguments[name]
                for path, leaf in source.leaves.items():
                    if isinstance(leaf, FromOutput) and self._resolve(leaf) != get_value_at(call.arguments, path):
                        raise ReferenceNotResolved(f"another {path} than expected")
            elif isinstance(source, FromOutput):
                filled[name] = self._resolve(source)
            elif isinstance(source, FromUser):
                filled[name] = self.known[source.known].value
            else:
                filled[name] = call.arguments[name]
        return filled

    def _resolve(self, source: FromOutput) -> Any:
        return resolve_reference(source, self._get_result(source.call).content)

    def _narration(self, group: list[int], answered: bool) -> str:
        """A word on what comes now, or nothing; `answered` says that the user has just told something."""
        agreed = answered and self.asking[:1] == (group[0],)
        first = group[0] == self.stop - len(self.task.turns[self.turn].gold_calls)
        speaks = self.rng.random() < (1 - self.voice.silent) * (1 if first else QUIET)
        speaks = speaks and not is_loop(self.task, self.turn, [self.calls[member].tool for member in group])
        phrases = [self._announce(self.calls[member]) for member in group] if speaks else [""]
        if agreed or not all(phrases):  # after a yes, the question has said what comes
            return ""
        goes_on = self.announced and not (first or answered)
        frames = choose_frames(self.voice, answered, goes_on, self.calls[group[0]].effect, group[-1] + 1 >= self.stop)
        self.announced = True
        joined = f" {get_language().grammar.conjunction} ".join(dict.fromkeys(phrases))
        return fill_pattern(frames, joined, self.rng, self.frames)

    def _announce(self, call: GoldCall) -> str:
        return announce_call(call, self.task.turns[self.turn], self.wording, self.rng)

    def _asks_first(self, index: int) -> bool:
        """Return True where a rule wants a yes: for this call, and for those after it that want one and are ready.

        Never twice, and never in direct mode, in which the user has agreed already.
        """
        if self.task.mode == "direct" or index in self.confirmed or not self._needs_yes(self.calls[index]):
            return False
        later = range(index + 1, self.stop)
        self.asking = (index, *(number for number in later if number not in self.confirmed and self._is_ready(number)))
        self.confirmed.update(self.asking)
        return True

    def _needs_yes(self, call: GoldCall) -> bool:
        shown = [
            self._get_result(index).content
            for index, call_made in enumerate(self.calls[: self.stop])
            if call_made.actor == "assistant" and self._has_result(index)
        ]
        return needs_confirmation(self.wording.tools[call.tool], call.arguments, shown)

    def _is_ready(self, index: int) -> bool:
        """Return True for a call that needs a yes, and nothing else that the agent does not have yet."""
        call = self.calls[index]
        return (
            call.actor == "assistant"
            and self._needs_yes(call)
            and all(key in self.said for key in list_needed_keys(call))
            and self._has_sources(call)
        )

    def _confirmation(self, index: int) -> str:
        calls, writer = self.asking or (index,), self.open_writer(self.frames)
        return writer.write([(self.calls[number], self._identified_rows(self.calls[number])) for number in calls])

    def _identified_rows(self, call: GoldCall) -> dict[str, IdentifiedRow]:
        """Parameter to the row that it identifies, and to the rows among which that was chosen."""
        identified: dict[str, IdentifiedRow] = {}
        for path, source, value in iterate_leaves(call):
            name = path.split(".")[-1]
            if isinstance(source, FromOutput) and source.call >= len(self.results):
                continue  # a look-up that was not made: the tool of the call is not there
            shown = self._find_shown(name, value)
            if isinstance(source, FromOutput) and self.calls[source.call].actor == "assistant":
                try:
                    row, rows = self._row(source)
                except ReferenceNotResolved:
                    continue  # the call will say so
                if row:
                    identified[name] = IdentifiedRow(row, rows, self._stale(source.call), shown)
            elif shown and isinstance(value, str):
                identified[name] = IdentifiedRow(shown, (shown,), False, shown)
        return identified

    def _find_shown(self, name: str, value: Any) -> dict[str, Any]:
        """Return what results show of the thing with this identifier; what was changed since only if it lasts."""
        rows, lasting = list[Mapping[str, Any]](), self.wording.entity(name).lasting
        for index in (number for number in range(len(self.results)) if self.calls[number].actor == "assistant"):
            shown = iterate_rows(self.results[index].content)
            rows += keep_lasting(shown, lasting) if self._stale(index, name, value) else shown
        return collect_shown(rows, name, value)

    def _stale(self, call: int, name: str = "", value: Any = None) -> bool:
        """Return True if a write came after a result, other than to another thing of its kind: it may be outdated."""
        writes = [later for later in self.calls[call + 1 : len(self.results)] if later.effect == "write"]
        return any(later.arguments.get(name, value) == value for later in writes)

    def _row(self, source: FromOutput) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        """The row that a reference resolves to, and all rows that it was chosen from."""
        wanted, rows, shown = self._resolve(source), [], self._get_result(source.call).content
        chosen: dict[str, Any] = {}
        for match in find_values(shown, source.path):
            row = match.levels[-1].row if match.levels else shown
            if isinstance(row, dict):
                rows.append(row)
                chosen = chosen or (rows[-1] if match.value == wanted else {})
        return chosen, rows

    def _request(self, call: GoldCall) -> str:
        purpose = self.wording.tool(call.tool).purpose
        frames = [frame for frame in self.voice.asks_user if purpose or PURPOSE not in frame]
        request = render_call_phrase(call, "request", self.wording, self.rng)
        return fill_pattern(frames, request, self.rng, self.frames).replace(PURPOSE, purpose)

    def _questions(self, call: GoldCall, missing: list[str]) -> str:
        return " ".join(self._question(call, self.known[key]) for key in missing)

    def _question(self, call: GoldCall, known: UserFact) -> str:
        if known.how == "value":
            return self.wording.ask_for(call.tool, known, self.rng)
        for path, source, _ in iterate_leaves(call):
            if isinstance(source, FromOutput):
                for selector in source.selectors:
                    if build_selector_key(source.call, selector) == known.key:
                        return self._which(path.split(".")[-1], source, selector)
        return get_language().agent.which_value.format(known.label)

    def _which(self, parameter: str, source: FromOutput, selector: Selector) -> str:
        """A question for one of the things that a result shows, unless they may have changed."""
        shown = self._get_result(source.call).content
        rows = list_current_rows(shown, selector, parameter, lambda *row: self._stale(source.call, *row))
        if len(rows) < 2:
            return get_language().grammar.which(self.wording.entity(parameter))
        meant = select_meant_rows(rows, selector, self.task.turns[self.turn].query, self.wording, parameter)
        whole = len(meant) == len(list_current_rows(shown, selector, parameter, lambda *_: False))
        return ChoiceWriter(self.wording, self.rng, self.voice).write(parameter, meant, selector, self.told, whole)

    def _answer(self) -> str:
        """Answer what was asked in this turn, with every fact that the task asks for."""
        if self.task.solution is not None:
            return self.rng.choice(self.task.solution.sentences)
        turn = self.task.turns[self.turn]
        start = self.stop - len(turn.gold_calls)
        goals = list_reported_calls(turn, start)
        reports = [self._report(index, len(goals) == 1) for index in goals]
        text = join_paragraphs([capitalize_first(each) for each in drop_repeated_openings(reports)])
        between = [self.results[index].content for index in range(start, self.stop) if index not in goals]
        text = join_paragraphs([text, " ".join(render_missing_facts(text, turn.facts, between))])
        return text if self.turn < len(self.task.turns) - 1 else join_paragraphs([text, self.courtesies.closing])

    def _report(self, index: int, alone: bool, at_end: bool = False) -> str:
        """Answer the questions about a call, or report its result as a whole.

        Args:
            alone: Nothing else is reported in the message, so that "it" can only mean what was asked about.
            at_end: Values that later calls have changed are told as they are at the end of the message.
        """
        self.reports.user_name = self.task.persona.name
        self.reports.now = "" if self.now == date.min else self.now.isoformat()
        shown = [result.content for result in self.results]
        call = self.calls[index]
        content = self.reports.choose_content(self.calls[: self.stop], shown, index, at_end)
        asked, answers = [info for info in self.task.turns[self.turn].asked if info.call == index], list[str]()
        for info in asked:
            row = self.known[info.known].said if info.known in self.known else ""
            answer = self.reports.answer(info, call, content, alone and not answers, row) if info.narrow else None
            answers += [answer] if answer else []
        facts = [fact for info in asked for fact in info.facts]
        self.reports.expect(self.task.turns[self.turn + 1 : self.turn + 2])
        self.reports.before = lambda changed: find_shown_before(self.calls[:index], shown, changed)
        self.reports.others = lambda changed: list_other_rows(shown, changed)
        whole, question = len(answers) < max(1, len(asked)), asked[-1].question if asked else ""
        text = self.reports.report(call, content, facts, alone, question) if whole else join_paragraphs(answers)
        return self.reports.add_limit_note(call, content, text)
