"""Writing what the user asks for in one turn: goals as a person would put them, and what they say of themselves."""

import itertools
import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from trajsmith.grounding import (
    build_selector_key,
    find_rows,
    get_argument_name,
    is_identifier,
    iterate_leaves,
    list_needed_keys,
)
from trajsmith.phrasing import (
    ScenarioStep,
    UserVoice,
    Wording,
    capitalize_first,
    draw_pattern,
    fill_pattern,
    get_language,
    get_user_voice,
    is_value_mentioned,
    join_opening,
    list_slots,
    parse_datetime,
)
from trajsmith.querygen.entity_references import ReferenceTracker
from trajsmith.querygen.fact_sentences import FactSentences
from trajsmith.querygen.goal_wordings import GoalWordings
from trajsmith.querygen.partition import find_producers
from trajsmith.querygen.possible_choices import list_possible_rows
from trajsmith.querygen.questions import AskableQuestion, pick_question_text
from trajsmith.querygen.reference_drafts import DRAFTS, ReadDrafts
from trajsmith.querygen.requested_info import build_general_info, fill_facts
from trajsmith.records import FromOutput, FromUser, GoldCall, RequestedInfo, UserFact
from trajsmith.verify import ReferenceCheck

_LINKED = re.compile(
    r"(?:And|Also|Then|Next|Oh|After|Afterwards|Once|While|Now|Besides|Another|One more|In addition)\b"
)
"""Beginnings of sentences that go on from the one before."""
_TAIL = re.compile(r"\{\}.*\w")
"""A frame that goes on after the wish: "could you {}, please?"."""
_CLAUSE = re.compile(r"[,:]|\b(?:because|since|as|that|which|who|if|so)\b")
"""Parts of a wish after which nobody adds a word."""
_REASON = re.compile(r"(?:,? because|, since) (?=\w)")
"""What joins a reason to a wish."""
SHORT = 8
"""Words of a wish after which people may add "please"."""
_ADDED = re.compile(r"\b(?:too|as well|also)\b", re.IGNORECASE)
"""Words that link a wish to the one before: one such word is enough."""


@dataclass(frozen=True)
class TurnRequest:
    """Text of one turn, and the facts that it states."""

    text: str
    intent: str
    stated: frozenset[str]
    asked: tuple[RequestedInfo, ...] = ()
    """What each goal asks for."""


class _NothingFits(Exception):
    """No sentence leaves out what is to be left out."""


class RequestWriter:
    """Writes the queries of one task, turn by turn."""

    def __init__(
        self,
        wording: Wording,
        calls: Sequence[GoldCall],
        known: Mapping[str, UserFact],
        initial: str,
        rng: random.Random,
        now: date | None = None,
        voice: UserVoice | None = None,
        questions: float = 0.6,
    ) -> None:
        """Prepare the requests of a task.

        Args:
            initial: Text of the initial state: an id that does not stand in it was made on the way.
            now: Its clock, if it has one.
            voice: How the user speaks; plainly if left out.
            questions: Share of reads, among those of which narrow questions are known, that are asked by one.
        """
        self.goal_wordings = GoalWordings(wording, calls, rng, questions, initial)
        self.row_facts: dict[str, UserFact] = {}
        """What the user knows of the rows that questions are about."""
        self.check = ReferenceCheck(wording, initial, now)
        self.references = ReferenceTracker(wording, calls, known, initial, rng, self.check.model)
        self.asked: set[str] = set()
        """Keys that an agent had to ask for."""
        self.stated: set[str] = set()
        """Keys of known entries that the user has said."""
        self.wording = wording
        self.calls = calls
        self.known = known
        self.rng = rng
        self.goals: Sequence[int] = ()
        """Goals of the turn that is being written."""
        self.voice = voice or get_user_voice("plain")
        self.frames: set[str] = set()
        """Frames that the user has spoken in."""

    def write(
        self,
        start: int,
        stop: int,
        goals: Sequence[int],
        withhold: bool,
        steps: Sequence[ScenarioStep | None] = (),
        motive: str = "",
    ) -> TurnRequest:
        """The request for one turn, in words that a reader takes to mean what the calls do.

        Args:
            withhold: Leave something out that the agent must ask for.
            steps: Of each goal: the scenario's step, whose words come before those of the tool.
            motive: Sentences that stand before the request.

        Raises:
            RecordDropped: No words were found that do.
        """
        drafts = ReadDrafts(self.check, self.calls, start, stop)
        used = set(self.frames)
        for _ in range(DRAFTS):
            self.frames.clear()
            self.frames |= used
            try:
                request, held = self._draft(start, stop, goals, withhold, steps, motive)
            except _NothingFits:
                self.check.model.restore_focus(drafts.focus)  # the draft that was given up has named nothing
                request, held = self._draft(start, stop, goals, False, steps, motive)
            settled = self.stated | self.asked | request.stated
            open_keys = [key for key in self._list_keys(start, stop) if key not in settled]
            replies = ". ".join(self.known[key].said for key in open_keys)
            if drafts.accept(request.text, open_keys, replies, request.asked):
                self.asked |= held
                self.stated |= request.stated
                self.references.remember(start, stop)
                return request
        raise drafts.build_drop()

    def _list_keys(self, start: int, stop: int) -> list[str]:
        return list(dict.fromkeys(key for index in range(start, stop) for key in list_needed_keys(self.calls[index])))

    def _draft(
        self,
        start: int,
        stop: int,
        goals: Sequence[int],
        withhold: bool,
        steps: Sequence[ScenarioStep | None],
        motive: str,
    ) -> tuple[TurnRequest, set[str]]:
        """One way to ask, and the keys that it leaves to be asked for."""
        self.goals = goals
        answered = self.stated | self.asked  # what was asked for in an earlier turn has been answered there
        open_keys = [key for key in self._list_keys(start, stop) if key not in answered]
        step_of = dict(zip(goals, steps, strict=True)) if steps else {}
        heard = [fact.value for key, fact in self.known.items() if key in answered and isinstance(fact.value, str)]
        required = self._required(start, stop, step_of)
        askable = [key for key in open_keys if key in required and self.known[key].value not in heard]
        held = {self.rng.choice(askable)} if withhold and askable else set()
        stated: set[str] = set()
        sentences: list[str] = [motive] if motive else []
        asked: list[RequestedInfo] = []
        for number, goal in enumerate(goals):
            step = steps[number] if steps else None
            if step is not None and step.reasons:
                sentences.append(self.rng.choice(step.reasons))
            want, info = self._goal(goal, number, held, stated, step)
            asked.append(info)
            mentioned = self._find_mentioned(open_keys, " ".join([*sentences, want]))
            stated |= mentioned
            held -= mentioned
            newly_stated = [key for key in open_keys if key not in held and key not in stated]
            tells = [
                self._tells(index, newly_stated, stated)
                for index in _find_supporting_calls(self.calls, start, goal, goals[:number])
            ]
            self.references.notice_goal(goal)
            self._notice_row(info)
            first = (
                start == 0 and number == 0 and goal != start and self._is_identity(start) and self.rng.random() < 0.6
            )
            about_user = tells[0] if first else []
            rest = tells[1:] if about_user else tells
            sentences += [*about_user, want, *(sentence for group in rest for sentence in group)]
        intent = capitalize_first("; ".join(map(self._intent, goals)))
        return TurnRequest(_join_sentences(sentences), intent, frozenset(stated), tuple(asked)), held

    def tell_facts(self, calls: Sequence[int], keys: Sequence[str]) -> list[str]:
        """Return sentences that state facts of some calls, each once."""
        stated: set[str] = set()
        groups = [self._tells(index, keys, stated) for index in calls]
        self.stated |= stated
        return [sentence for group in groups for sentence in group]

    def _tells(self, index: int, keys: Sequence[str], stated: set[str]) -> list[str]:
        """Sentences for what one call needs and no goal has said."""
        sentences = FactSentences(self.references, self.voice, self.frames)
        return sentences.list_for(self.calls[index], index, keys, stated)

    def _is_identity(self, index: int) -> bool:
        """Return True if a call takes what a person states about themselves: required, and not chosen from a list."""
        return is_identity(self.calls[index], self.wording)

    def _find_mentioned(self, keys: Sequence[str], text: str) -> set[str]:
        """Return the keys of rows whose name a text holds already, as "the living room lamp" names the room, and of
        other texts that it quotes."""
        names = {
            key: fact.value
            for key, fact in ((key, self.known[key]) for key in keys)
            if fact.how == "equals" and isinstance(fact.value, str) and len(fact.value) > 3
        }
        texts = {key: str(self.known[key].value) for key in keys}
        values = list(texts.values())
        quoted = {key for key, value in texts.items() if values.count(value) == 1 and f'"{value}"' in text}
        return quoted | {key for key, name in names.items() if is_value_mentioned(text.lower(), name.lower())}

    def _required(self, start: int, stop: int, steps: Mapping[int, ScenarioStep | None]) -> set[str]:
        """Keys that an agent would have to ask for: nobody asks for an optional filter, nor which row to read.

        Of what a person asks for, they may leave out an amount, a date or which thing, but not what it is about: who
        has just seen a list says which of its things they mean.
        Look-ups on the way are the agent's business, but for who the user is; of two wishes for one tool nothing is
        left out, since nobody could tell what a question is about.
        """
        keys: set[str] = set()
        tools = [self.calls[goal].tool for goal in self.goals]
        if len(set(tools)) < len(tools):
            return keys
        for index in range(start, stop):
            if index not in self.goals and not self._is_identity(index):
                continue
            call, step = self.calls[index], steps.get(index)
            required = set(self.wording.tools[call.tool].required)
            for path, source, value in iterate_leaves(call):
                if isinstance(source, FromUser) and get_argument_name(path) in required:
                    if index not in self.goals or _is_decided(value):
                        keys.add(source.known)
                elif isinstance(source, FromOutput) and call.effect == "write" and source.call >= start:
                    keys |= {
                        build_selector_key(source.call, selector)
                        for selector in source.selectors
                        if len(list_possible_rows(call, value, source, selector.rows, self.calls, step)) > 1
                    }
        return keys

    def _goal(
        self, goal: int, number: int, held: set[str], stated: set[str], step: ScenarioStep | None = None
    ) -> tuple[str, RequestedInfo]:
        """One goal as a sentence, and what it asks for; marks the known entries that it says."""
        call = self.calls[goal]
        self.references.model.horizon = goal
        values, sources = self._slots(goal, held)
        again = {
            slot: get_language().grammar.again(self.wording.entity(slot))[0]
            for slot, value in values.items()
            if isinstance(call.provenance[slot], FromOutput)
            and value == get_language().grammar.pronoun(self.wording.entity(slot))
        }
        left_open = {
            name
            for name, source in call.provenance.items()
            if isinstance(source, FromOutput) and held & {*_list_naming_keys(source, self.calls)}
        }
        extra = self._list_optional(call)
        open_slots = extra | {slot for slot, keys in sources.items() if any(key not in self.stated for key in keys)}
        wanted = [
            extra,
            *(frozenset({name}) for name in sorted(extra) if len(extra) > 1),
            *([frozenset()] if extra else []),
        ]
        own = list(self.goal_wordings.list_own(goal, held, step)) if step is not None else []
        other = [] if own and held else self.goal_wordings.list_general(goal, held)
        ways = itertools.chain(itertools.product(wanted, own), itertools.product(wanted, other))
        for named, phrases in ways:
            row = phrases.question.row if phrases.question else None
            for kind, texts in self.goal_wordings.rank_texts(phrases, named, open_slots, left_open):
                picked = pick_question_text(texts, values, row, self.rng, again)
                if picked is None:
                    continue
                template, text = picked
                for slot in list_slots(template):
                    stated.update(sources.get(slot, ()))
                if row:
                    stated.add(row.fact.key)
                    self.row_facts[row.fact.key] = row.fact
                self.references.spoke_of(call, list_slots(template))
                sentence = self._say(text, number) if kind == "say" else self._want(text, number)
                return sentence, self._info(goal, sentence, template, phrases.question)
        if held:
            raise _NothingFits
        sentence = self._want(self.wording.phrase_request(call.tool), number)
        return sentence, self._info(goal, sentence, "", None)

    def _list_optional(self, call: GoldCall) -> frozenset[str]:
        """Return the optional arguments that are best said in the sentence that asks for the goal, also those that were
        said before, since they narrow it down anew: what the user says, and the thing to which a list is narrowed."""
        required = self.wording.tools[call.tool].required
        optional = [(name, source) for name, source in call.provenance.items() if name not in required]
        names = {name for name, source in optional if isinstance(source, FromUser)}
        if call.effect == "read":
            names |= {name for name, source in optional if isinstance(source, FromOutput) and not self._is_own(name)}
        return frozenset(names)

    def _is_own(self, name: str) -> bool:
        return get_language().grammar.is_own(self.wording.entity(name).own)

    def _info(self, goal: int, sentence: str, template: str, question: AskableQuestion | None) -> RequestedInfo:
        call = self.calls[goal]
        if question is not None:
            info = question.build_info(goal, sentence)
        else:
            info = build_general_info(goal, call, sentence, template, self.wording)
        return fill_facts(info, call, self.wording)

    def _notice_row(self, info: RequestedInfo) -> None:
        """Record the row that a question is about: "that order" means it from then on."""
        if info.row is not None:
            name = self.row_facts[info.known].slot.split("|")[0]
            row = next(row for row in find_rows(self.calls[info.call].result, info.row))
            self.references.point_at(name, str(row[name]))

    def _say(self, text: str, number: int) -> str:
        """A wish that is a sentence of its own; a further one in a message is linked to the one before."""
        sentence = capitalize_first(text)
        if not number or _LINKED.match(sentence) or _ADDED.search(sentence):
            return sentence
        names = tuple(str(fact.value) for fact in self.known.values() if isinstance(fact.value, str) and fact.value)
        links = [link for link in self.voice.links if ":" not in sentence or ":" not in link]
        link = draw_pattern(links or self.voice.links, self.rng, self.frames)
        return capitalize_first(join_opening(link.removesuffix("{}").strip(), sentence, names, small=True))

    def _want(self, phrase: str, number: int) -> str:
        frames: Sequence[str] = self.voice.wants if number == 0 or _ADDED.search(phrase) else self.voice.further
        if not self.frames and number == 0:
            frames = (*self.voice.openers, *frames)
        if len(phrase.split()) > SHORT or _CLAUSE.search(phrase):
            frames = [frame for frame in frames if not _TAIL.search(frame)] or frames
        wish = get_language().grammar.ask_for_oneself(fill_pattern(frames, phrase, self.rng, self.frames))
        return capitalize_first(_part_reason(wish))

    def _slots(self, goal: int, held: set[str]) -> tuple[dict[str, Any], dict[str, list[str]]]:
        """Template values of a call's arguments, and the known keys that each of them says."""
        call = self.calls[goal]
        values: dict[str, Any] = {}
        sources: dict[str, list[str]] = {}
        names = [name for name, source in call.provenance.items() if isinstance(source, FromOutput)]
        entities = [self.wording.entity(name) for name in names]
        self.references.untold = _list_contents(call)
        alone = sum(bool(entity.by and get_language().grammar.pronoun(entity)) for entity in entities) == 1
        for name, source in call.provenance.items():
            if isinstance(source, FromUser) and source.known not in held:
                values[name] = self.wording.mention(call.tool, name, call.arguments[name], self.rng)
                sources[name] = [source.known]
            elif isinstance(source, FromOutput):
                values[name], sources[name] = self.references.refer(name, call.arguments[name], source, held, alone)
        return values, sources

    def _intent(self, goal: int) -> str:
        phrases = self.wording.tool(self.calls[goal].tool)
        return (phrases.narrate or phrases.ask)[0]


def _part_reason(wish: str) -> str:
    """Return a question with its reason as a sentence of its own: "Could you cancel it? I don't need it"."""
    parts = _REASON.split(wish.removesuffix("?"))
    if not wish.endswith("?") or len(parts) != 2:
        return wish
    return f"{parts[0]}? {capitalize_first(parts[1])}."


def is_identity(call: GoldCall, wording: Wording) -> bool:
    """Return True if a call looks up who the user is: by one required value, and not one of the things that people
    choose among, such as a contact or a file, nor a list of such things."""
    tool, result = wording.tools[call.tool], call.result if isinstance(call.result, dict) else {}
    listed = [row for rows in result.values() if isinstance(rows, list) for row in rows if isinstance(row, dict)]
    fields = {name for row in (result, *listed) for name in row}
    if any(wording.entity(name).by for name in fields & wording.phrasebook.entities.keys()):
        return False
    return len(call.arguments) == 1 and all(
        name in tool.required and "enum" not in tool.parameters[name] for name in call.arguments
    )


def _join_sentences(sentences: Sequence[str]) -> str:
    """Join sentences; one without a full stop, as some people type, does not run into the next one."""
    closed = [f"{sentence}." if sentence[-1:].isalnum() else sentence for sentence in sentences[:-1]]
    return " ".join((*closed, *sentences[-1:]))


def _list_naming_keys(source: FromOutput, calls: Sequence[GoldCall]) -> list[str]:
    """Return the keys by which a thing is called: those that pick it out, and what it is looked up by."""
    picks = [build_selector_key(source.call, pick) for pick in source.selectors if pick.how != "only"]
    return [*picks, *(one.known for one in calls[source.call].provenance.values() if isinstance(one, FromUser))]


def _list_contents(call: GoldCall) -> list[str]:
    """Return the names of what is in the thing that a look-up shows: the products of an order."""
    result = call.result if call.effect == "read" and isinstance(call.result, dict) else {}
    rows = [row for inner in result.values() if isinstance(inner, list) for row in inner if isinstance(row, dict)]
    texts = (value for row in rows for name, value in row.items() if not is_identifier(name))
    return [text for text in texts if isinstance(text, str) and " " in text]


def _is_decided(value: Any) -> bool:
    """Return whether a value is an amount, a date or a time: what people decide, and may forget to say."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    clock = isinstance(value, str) and re.fullmatch(r"\d{1,2}:\d{2}", value) is not None
    return number or clock or parse_datetime(value) is not None


def _find_supporting_calls(calls: Sequence[GoldCall], start: int, goal: int, earlier: Sequence[int]) -> list[int]:
    """The calls of the turn that lead to a goal, in order, without those that an earlier goal already needed."""
    taken = {index for other in earlier for index in _find_dependencies(calls, start, other)}
    return [index for index in sorted(_find_dependencies(calls, start, goal)) if index not in taken]


def _find_dependencies(calls: Sequence[GoldCall], start: int, goal: int) -> set[int]:
    indices = {goal}
    for index in range(goal, start - 1, -1):
        if index in indices:
            indices |= {producer for producer in find_producers(calls[index]) if producer >= start}
    return indices
