"""Scripted roles for variants: an agent that handles the perturbation correctly, and a user who acts it out.

`naive_agent` holds their counterpart, which does not notice. A variant is worth something only if it is turned down.
"""

import re
from collections.abc import Sequence
from datetime import date

from trajsmith.environments import ToolResult
from trajsmith.grounding import ReferenceNotResolved, list_needed_keys
from trajsmith.phrasing import (
    Wording,
    capitalize_first,
    draw_pattern,
    format_value,
    get_language,
    is_fact_answered,
    is_reason_shown,
    is_refusal_told,
    is_value_mentioned,
    join_paragraphs,
    load_refusals,
    parse_datetime,
    pick_text,
    render_refusal,
    shorten_values,
)
from trajsmith.phrasing.question_detection import find_questions, has_yes_or_no_question
from trajsmith.records import (
    FromOutput,
    FunctionCall,
    GoldCall,
    JsonValue,
    Message,
    Perturbation,
    Task,
    ToolCall,
    UserFact,
)
from trajsmith.usersim.announcements import render_argument, render_call_phrase
from trajsmith.usersim.batch_texts import join_names, render_list
from trajsmith.usersim.reporting import ReportWriter, find_used_calls, render_missing_facts, summarize_reports
from trajsmith.usersim.roles import AgentAct, UserAct
from trajsmith.usersim.scripted_agent import ScriptedAgent
from trajsmith.usersim.scripted_user import ScriptedUser
from trajsmith.usersim.variant_texts import (
    AGAIN,
    ALL_DONE,
    ALL_READ,
    CHANGED,
    FURTHER,
    GO_THROUGH,
    NEXT_PAGE,
    NO_IDEA,
    NOT_FROM_YOU,
    cut_instruction,
    describe_place,
    rephrase_plainly,
)

_CLOCK = re.compile(r"\b\d{1,2}:\d\d\b")
_DAYS = re.compile(r"\b(?:days?|nights?|[A-Z][a-z]+day|early|ahead|late)\b")
"""Words by which a reason is about a day."""
_DAY = re.compile(r"\d{4}-\d\d-\d\d")
_POINTS = re.compile(r"\b(?:that|it|them|there|this)\b")


class VariantAgent(ScriptedAgent):
    """Plays the agent of one variant as it should be played."""

    openings: Sequence[str] = ()
    """What comes before the report of a batch where not all of it could be done."""

    def __init__(self, task: Task, wording: Wording, candidate: int, listens: bool = False) -> None:
        super().__init__(task, wording, candidate, listens)
        self.twist = get_perturbation(task)
        self.asked = self.agreed = self.attempted = self.stumbled = False
        self.asked_again = False
        """It has asked for a yes to the value to which the user has changed."""
        self.told_no = ""
        self.paged = False
        """It has said that it reads on."""
        self.warns = self.twist.act == "ignore" and self.rng.random() < 0.6
        """It tells the user of an instruction in a result."""
        self.offered = self.settled = False
        self.reported: list[JsonValue] = []
        """Facts told before the user answered an offer."""

    async def act(self, messages: list[Message]) -> AgentAct:
        act = self.polish(await self._take_step(messages))
        if self.twist.act != "ignore":
            return act
        text = act.message.content  # what it reads out is the entry, without the instruction in it
        for demand in self.twist.told:
            text = cut_instruction(text, str(demand))
        return act if text == act.message.content else act.with_text(text)

    async def _take_step(self, messages: list[Message]) -> AgentAct:
        turn = len(self._openings(messages)) - 1
        if turn != self.turn:
            self.open_turn(turn)
        if self.stumbled:
            self.stumbled = False
            act = await super().act(messages)
            return act if not act.message.tool_calls else act.with_text(self.rng.choice(AGAIN))
        if self.twist.act not in ("decline", "offer") or turn != self.twist.turn or self.settled:
            return await super().act(messages)
        if len(self.results) < self.stop - self.twist.accepted:
            return await super().act(messages)
        return await self._settle(messages) if self.offered else self._declining(messages)

    def observe(self, tools: Sequence[str], results: Sequence[ToolResult], by_user: bool) -> None:
        """Retry an injected failure; record the answer to a forbidden call that was tried."""
        refused = next((number for number, result in enumerate(results) if not result.ok), None)
        if refused is not None and self.attempted:
            self.told_no = _extract_reason(results[refused])
        elif refused is not None and self.twist.refusal and self.twist.refusal in results[refused].text:
            members, self.pending = self.pending, []
            for index, result in zip(members, results, strict=True):
                if result.ok:
                    self._take(index, result)
            self.stumbled = True
        else:
            super().observe(tools, results, by_user)

    def _declining(self, messages: list[Message]) -> AgentAct:
        if self.twist.ignorant and not self.asked:
            self.asked = True
            missing = list(self.twist.keys)
            call = next(each for each in self.twist.tempting if each.tool == self.twist.tool)
            return AgentAct(Message(role="assistant", content=self._questions(call, missing)), asks=tuple(missing))
        forbidden = self.twist.tempting[-1] if self.twist.tempting else None
        may_try = not (self.twist.hidden or self.twist.ignorant or self.twist.visible or self.attempted)
        if forbidden and may_try:
            return self._try(forbidden)
        because = rephrase_plainly(self.told_no or self.twist.because)
        self.reports.reason = because
        reports = self._report_others() if self.twist.act == "offer" else ()
        self.reports.reason = ""
        act = self._name_act(forbidden) if reports and forbidden else ""
        by_tools = self.twist.hidden or not self.twist.tool
        refusal = render_refusal(because, self.style, self.twist.visible, self.rng, act, by_tools)
        text = join_paragraphs((*reports, get_language().grammar.say_place_once(refusal)))
        if self.twist.act == "offer":
            if self.twist.offer is not None:
                return self._offer(text, self.twist.offer)
            text += self._ask_for_another(forbidden, because)
        if self.twist.hidden and forbidden:
            remains = self._say_what_remains(forbidden)
            if remains:
                return AgentAct(Message(role="assistant", content=f"{text} {remains}"))
        last = self.turn == len(self.task.turns) - 1 and self.task.mode != "direct"
        return AgentAct(Message(role="assistant", content=text + (self.rng.choice(FURTHER) if last else "")))

    def _name_act(self, call: GoldCall) -> str:
        """Return the plainest verb phrase for a call: the first that its values fit; where that points to something and
        another thing of the kind was spoken of, the one in which the agent would ask for a yes, which says what is
        meant."""
        values = {name: render_argument(call, name, self.wording, self.rng) for name in call.arguments}
        texts = (pick_text([text], values, self.rng) for text in self.wording.tool(call.tool).narrate)
        plain = next(filter(None, texts), "") or render_call_phrase(call, "narrate", self.wording, self.rng)
        names = [name for name, source in call.provenance.items() if isinstance(source, FromOutput)]
        done = [self.calls[index] for index in range(len(self.results)) if self.calls[index].effect == "write"]
        if any(each.tool == call.tool for each in done) or (
            _POINTS.search(plain) and any(each.arguments.get(name) for each in done for name in names)
        ):
            writer = self.open_writer()
            return writer.describe(call, self._identified_rows(call))
        return plain

    def _say_what_remains(self, call: GoldCall) -> str:
        """Return what can be done without the tool of a call, or how long there is time; empty where no result shows
        any."""
        writer = self.open_writer()
        return writer.fill_slots(self.wording.tool(call.tool).unavailable, call, self._identified_rows(call))

    def _ask_for_another(self, call: GoldCall | None, because: str) -> str:
        """Return a sentence that invites the user to name another day or time, where the reason is about that."""
        wanted = [value for value in call.arguments.values() if isinstance(value, str)] if call else []
        if any(map(_CLOCK.fullmatch, wanted)) and _CLOCK.search(because):
            kind = "time"
        else:
            days = [value for value in wanted if parse_datetime(value)]
            about = _DAYS.search(because) or any(is_value_mentioned(because.lower(), day) for day in days)
            kind = "day" if days and about else ""
        return f" {draw_pattern(load_refusals().another, self.rng).format(kind)}" if kind else ""

    def _try(self, call: GoldCall) -> AgentAct:
        """Make the call that will be refused, after the yes that it needs."""
        if not self.agreed and self.task.mode == "conversation" and self._needs_yes(call):
            self.agreed = True
            return AgentAct(Message(role="assistant", content=self._ask_for_yes(call)), confirms=True)
        self.attempted = True
        try:
            arguments = self._arguments(call)
        except ReferenceNotResolved as fault:
            return AgentAct(Message(role="assistant", content=f"I'm sorry: {fault}."), gave_up=True)
        self.made += 1
        call_made = ToolCall(id=f"call_{self.made}", function=FunctionCall(name=call.tool, arguments=arguments))
        text = render_call_phrase(call, "narrate", self.wording, self.rng)
        return AgentAct(Message(role="assistant", content=f"Let me {text}.", tool_calls=(call_made,)))

    def _report_others(self) -> list[str]:
        """Return what was done of the same message, as sentences."""
        turn = self.task.turns[self.turn]
        start = self.stop - len(turn.gold_calls)
        indices = range(start, self.stop - self.twist.accepted)
        used = find_used_calls([self.calls[index] for index in indices])
        goals = [index for index in indices if self.calls[index].effect == "write" or self._is_reported(index, used)]
        reports = [capitalize_first(self._report(index, len(goals) == 1)) for index in goals]
        if not reports:
            return []
        between = [self.results[index].content for index in indices if index not in goals]
        text = " ".join(reports)
        self.reported = [fact for fact in turn.answer_facts if is_value_mentioned(text, fact)]
        missing = [] if self.twist.accepted else render_missing_facts(text, turn.facts, between)
        return [*reports, *missing]

    def _is_reported(self, index: int, used: set[int]) -> bool:
        """Return True for a look-up that leads to nothing else: the user asked for it."""
        return index not in used | find_used_calls(self.twist.tempting) and self.task.variant == "partial_success"

    def _answer(self) -> str:
        """The answer; of a request of which some parts were reported before, only the rest."""
        if self.twist.act == "page" and self.turn == self.twist.turn:
            return capitalize_first(self._report(self.stop - 1, True))
        if self.twist.act in ("batch", "ignore"):
            return self._answer_batch() if self.twist.act == "batch" else self._answer_with_warning()
        if not self.settled or self.turn != self.twist.turn or self.task.variant != "partial_success":
            return super()._answer()
        text = capitalize_first(self._report(self.stop - 1, True))
        facts = [fact for fact in self.task.turns[self.turn].facts if fact.value not in self.reported]
        return join_paragraphs([text, " ".join(render_missing_facts(text, facts, []))])

    def _answer_with_warning(self) -> str:
        """The answer, in most cases with a word on the instruction that a result held."""
        if self.turn != self.twist.turn or not self.warns:
            return super()._answer()
        closing, self.courtesies.closing = self.courtesies.closing, ""
        answer = super()._answer()
        place = describe_place([result.content for result in self.results], str(self.twist.told[0]), self.wording)
        warning = capitalize_first(self.rng.choice(NOT_FROM_YOU).format(place=place))
        return join_paragraphs([answer, " ".join(filter(None, (warning, closing)))])

    def _answer_batch(self) -> str:
        """One sentence for all things of a batch where it tells every fact, else a line for each by its name."""
        if self.turn != self.twist.turn:
            return super()._answer()
        turn = self.task.turns[self.turn]
        places = range(self.stop - len(turn.gold_calls), self.stop)
        members = [index for index in places if self.calls[index].tool == self.twist.tool]
        writes = any(self.calls[index].effect == "write" for index in members)
        pairs = [(self.calls[index], self._identified_rows(self.calls[index])) for index in members]
        writer = self.open_writer()
        names = writer.name_all(pairs) or [""] * len(members)
        entity = self.wording.entity(writer.find_differing(pairs))
        batches = [batch for batch in self.wording.scenarios.batches if batch.tool == self.twist.tool]
        call = self.calls[members[0]]
        values = {key: self.wording.mention(call.tool, key, value, self.rng) for key, value in call.arguments.items()}
        values |= {"count": len(members), "outs": [self.results[index].content for index in members]}
        if all(names):
            values["names"] = join_names(names, entity)
        at_once = pick_text([text for batch in batches for text in batch.done], values, self.rng)
        if at_once and all(is_fact_answered(at_once, fact) for fact in turn.facts):
            return capitalize_first(at_once)
        closing = pick_text([text for batch in batches for text in batch.closing], values, self.rng)
        listed = render_list(batches, names, values, closing or "", self.rng)
        if listed and all(is_fact_answered(listed, fact) for fact in turn.facts):
            return listed
        reports = self._report_each(members)
        for place, (report, index) in enumerate(zip(reports, members, strict=True)):
            if any(str(value) in report for value in self.calls[index].arguments.values() if str(value)[-1:].isdigit()):
                names[place] = ""  # the report has its number
        lines, after = summarize_reports(reports, names)
        opening = self.rng.choice(self.openings or (ALL_DONE if writes else ALL_READ))
        if all(names) and lines == [f"{capitalize_first(name)}." for name in names]:
            return " ".join([opening, f"{join_names(names, entity)}.", *after])
        after += [closing] if closing else []
        return "\n".join([opening, *(f"- {line}" for line in lines), *([" ".join(after)] if after else [])])

    def _report_each(self, members: Sequence[int]) -> list[str]:
        """Return short reports of calls, all in the same words."""
        words, reports, usual = self.rng.random(), [], self.reports
        self.reports = ReportWriter(self.wording, "short", self.rng)
        self.reports.varies, self.reports.steady = False, usual.steady
        for index in members:
            self.rng.seed(words)
            reports.append(capitalize_first(self._report(index, alone=True, at_end=True)))
        self.reports = usual
        return reports

    def _offer(self, text: str, call: GoldCall) -> AgentAct:
        """Ask whether to do what can be done instead, by a question that names the other value."""
        self.offered = True
        refused = self.twist.tempting[-1].arguments
        changed = [name for name, value in call.arguments.items() if value != refused.get(name)]
        if brief := self._offer_value(call, changed):
            return AgentAct(Message(role="assistant", content=f"{text} {brief}"), confirms=True)
        writer = self.open_writer()
        because = rephrase_plainly(self.told_no or self.twist.because)
        works = self.twist.visible or (is_value_mentioned(because, self.twist.told[0]) and not _CLOCK.search(because))
        frames = load_refusals().offers if works else load_refusals().tries
        question = writer.write([(call, self._identified_rows(call))], changed, frames)
        question = self._point_back(question, text, call)
        content = f"{text} {question}"
        if not any(is_value_mentioned(question, value) for value in self.twist.told):
            label = self.wording.parameter(call.tool, changed[0]).label if changed else ""
            content = f"{text} The {label} would be {format_value(self.twist.told[0])}. {question}"
        return AgentAct(Message(role="assistant", content=content), confirms=True)

    def _offer_value(self, call: GoldCall, changed: Sequence[str]) -> str:
        """Return a question that names nothing but the other day or time, as people ask; empty where the call needs a
        yes that says what it does, or something else is other than the user wanted."""
        if len(changed) != 1 or self._needs_yes(call) or not isinstance(value := call.arguments[changed[0]], str):
            return ""
        if not _CLOCK.fullmatch(value) and not _DAY.fullmatch(value):
            return ""
        question = draw_pattern(load_refusals().values, self.rng).replace("{}", format_value(value))
        return question if is_value_mentioned(question, self.twist.told[0]) else ""

    def _point_back(self, question: str, text: str, call: GoldCall) -> str:
        """Return a question in which "it" stands for the thing that the text before it has named."""
        writer, identified = self.open_writer(), self._identified_rows(call)
        parameters, refused = [name for name in identified if self.wording.entity(name).by], self.twist.tempting[-1]
        if len(parameters) != 1 or call.arguments[parameters[0]] != refused.arguments.get(parameters[0]):
            return question
        name = writer.name_thing(parameters[0], identified[parameters[0]])
        pronoun = get_language().grammar.pronoun(entity := self.wording.entity(parameters[0]))
        phrase = rf"(?:\b(?:the |your )?{re.escape(entity.noun)} )?{re.escape(name)}"  # "order W10092" as a whole
        return re.sub(phrase, pronoun, question, count=1) if pronoun and name and name in text else question

    async def _settle(self, messages: list[Message]) -> AgentAct:
        """Do what was offered if the user wants it; else leave it."""
        self.settled = True
        index = len(self.results)
        if not self.twist.accepted or index >= self.stop:  # the call that should be refused went through
            return AgentAct(Message(role="assistant", content=draw_pattern(load_refusals().left, self.rng)))
        self.said |= set(list_needed_keys(self.calls[index]))
        self.confirmed.add(index)
        self.asking = (index,)
        return await super().act(messages)

    def _asks_first(self, index: int) -> bool:
        """A user who asked to be told before is told before, and told again what will be done with the new value."""
        if self.twist.act == "check" and self._is_perturbed(index) and not self.asked_again:
            self.asked_again = index in self.confirmed
            self.confirmed.add(index)
            self.asking = (index,)
            return True
        return super()._asks_first(index)

    def _confirmation(self, index: int) -> str:
        if self.twist.act == "batch" and self._is_perturbed(index):
            return self._confirm_all()
        if self.twist.act != "check" or not self._is_perturbed(index) or not self.twist.tempting:
            return super()._confirmation(index)
        return self._ask_for_yes(self.calls[index] if self.asked_again else self.twist.tempting[-1])

    def _confirm_all(self) -> str:
        """Ask once for all calls of a batch, with each thing by name."""
        return self._write_for_all([self.calls[index] for index in self.asking])

    def _write_for_all(self, calls: Sequence[GoldCall]) -> str:
        pairs = [(call, self._identified_rows(call)) for call in calls]
        return self.open_writer(self.frames).write_for_all(pairs)

    def _narration(self, group: list[int], answered: bool) -> str:
        """A word on what comes now; in a batch one before the first calls for all of it, and none before the others."""
        if self.twist.act == "page" and self._is_perturbed(group[0]):
            if self.paged or "page" not in self.calls[group[0]].arguments:
                return ""
            self.paged = True
            return self.rng.choice(NEXT_PAGE)
        if self.twist.act != "batch" or not self._is_perturbed(group[0]):
            return super()._narration(group, answered)
        again = group[0] > 0 and self.calls[group[0] - 1].tool == self.twist.tool
        return "" if again else self.rng.choice(GO_THROUGH[self.calls[group[0]].effect])

    def _ask_for_yes(self, call: GoldCall) -> str:
        writer = self.open_writer(self.frames)
        return writer.write([(call, self._identified_rows(call))])

    def _is_perturbed(self, index: int) -> bool:
        """Return True for the call that the perturbation concerns."""
        return self.turn == self.twist.turn and self.calls[index].tool == self.twist.tool


class VariantUser(ScriptedUser):
    """Plays the user of one variant."""

    def __init__(self, task: Task, wording: Wording, candidate: int, now: date = date.min) -> None:
        super().__init__(task, wording, candidate, now)
        self.twist = get_perturbation(task)
        self.changed = False

    async def reply(self, messages: list[Message], act: AgentAct) -> UserAct:
        if self.turn == self.twist.turn:
            keys = self._asked(act)
            if self.twist.ignorant and set(self.twist.keys) & set(keys):
                return UserAct(self._type(self.rng.choice(NO_IDEA).format(self.known[self.twist.keys[0]].label)))
            if self.twist.act == "offer" and self._comes_back(act) and self._is_offer(messages):
                refusals = load_refusals()
                patterns = refusals.accepts if self.twist.accepted else refusals.leaves
                return UserAct(self._type(draw_pattern(patterns, self.rng)))
            if self.twist.first is not None and not self.changed and (keys or self._comes_back(act)):
                self.changed = True
                correction = self._correction(self.known[self.twist.first.key])
                return UserAct(self._type(shorten_values(self.rng.choice(CHANGED).format(correction), self.now)))
        return await super().reply(messages, act)

    def _asked(self, act: AgentAct) -> Sequence[str]:
        """Keys of the entries that the agent asks for; read from the words where it gives no hints."""
        if act.hinted:
            return act.asks
        return [entry.key for entry in self._asked_for(find_questions(act.message.content))]

    def _comes_back(self, act: AgentAct) -> bool:
        """Return True if the agent asks for a confirmation."""
        return act.confirms if act.hinted else has_yes_or_no_question(find_questions(act.message.content))

    def _is_offer(self, messages: Sequence[Message]) -> bool:
        """Return True if the last message tells why the request cannot be fulfilled, and what else could be done."""
        opened = max(
            index for index, message in enumerate(messages) if message.content == self.task.turns[self.turn].query
        )
        shown = [message.content for message in messages[opened:] if message.role == "tool"]
        known = self.twist.visible or is_reason_shown(self.twist.because, shown)
        return known and is_refusal_told(self.twist.because, messages[-1].content)

    def _correction(self, known: UserFact) -> str:
        return capitalize_first(self.wording.tell(self.twist.tool, known, self.rng))


def get_perturbation(task: Task) -> Perturbation:
    """Return what is different about a variant."""
    if task.twist is None:
        raise ValueError(f"{task.id} is no variant")
    return task.twist


def _extract_reason(result: ToolResult) -> str:
    """The words of a refusal."""
    content = result.content
    return str(content["error"]) if isinstance(content, dict) and "error" in content else result.text
