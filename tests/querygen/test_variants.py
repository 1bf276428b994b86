"""Every variant: the right play is accepted, the play that does not notice is turned down, and labels hold."""

import asyncio
import re
from collections import Counter
from dataclasses import dataclass
from datetime import date
from itertools import pairwise
from pathlib import Path

import pytest

from trajsmith.environments import NativeSession, ToolResult
from trajsmith.environments.injected_faults import inject_faults
from trajsmith.environments.library import ENVIRONMENTS
from trajsmith.environments.library import __file__ as library_file
from trajsmith.grounding import Grounder, GroundSettings
from trajsmith.grounding.names import split_name
from trajsmith.phrasing import load_phrasebook, load_scenarios
from trajsmith.phrasing.refusals import measure_reason
from trajsmith.phrasing.value_formatting import find_clock_date, is_value_mentioned
from trajsmith.phrasing.wording import Wording
from trajsmith.querygen import TaskWriter, WriteSettings
from trajsmith.querygen.vary import VARIANTS, VariantCase, VarySettings, choose_variants, derive_variant
from trajsmith.querygen.vary._alternative_search import AlternativeSearch
from trajsmith.querygen.vary._alternatives import Alternative
from trajsmith.querygen.vary._refused_task import _is_nearly_all
from trajsmith.querygen.vary.forbidden_request import _find_rule
from trajsmith.querygen.vary.irrelevant_request import (
    _POINTS_BACK,
    collect_vocabulary,
    list_fitting_errands,
    load_errands,
)
from trajsmith.querygen.vary.long_context import enlarge_tables
from trajsmith.querygen.vary.stale_data import list_told_values
from trajsmith.records import FunctionCall, GoldCall, Message, RecordDropped, Task, ToolCall, content_hash
from trajsmith.toolgraph import GraphIndex, Sampler, SampleSettings, build_graph, sample_chains
from trajsmith.usersim import Dialogue, PlaySettings
from trajsmith.usersim.naive_agent import NaiveAgent
from trajsmith.usersim.partial_batch import PartialBatchAgent
from trajsmith.usersim.roles import AgentAct
from trajsmith.usersim.scripted_roles import get_agent_class
from trajsmith.usersim.variant_roles import VariantAgent, VariantUser
from trajsmith.verify import find_user_faults, verify_trajectory
from trajsmith.verify.variant_checks import DECLINES, build_variant_checks

PLAYED = ("retail", "mobile_care", "file_store")
CHAINS = 26


@dataclass
class Shelf:
    """One environment with its written tasks."""

    cls: type
    spec: object
    state: dict
    wording: Wording
    tasks: list

    def session(self):
        return NativeSession(self.cls, self.spec)

    def case(self, task, variant):
        return VariantCase(task, self.state, self.session(), self.spec, self.wording, variant, entities=300)

    async def play(self, varied, agent_class):
        task, state = varied.task, varied.state or self.state
        session = inject_faults(self.session(), task)
        agent = agent_class(task, self.wording, 0)
        agent.now = find_clock_date(state)
        user = VariantUser(task, self.wording, 0, find_clock_date(state))
        trajectory = await Dialogue(self.spec, task, state, session, agent, user, PlaySettings(), 0).play()
        verdict = await verify_trajectory(task, trajectory, state, self.session(), wording=self.wording)
        return trajectory, verdict


async def make_shelf(name):
    cls = ENVIRONMENTS.get(name)
    spec, state = cls.describe(), cls.seed_state("small", 2).model_dump(mode="json")
    phrasebook = load_phrasebook(Path(library_file).parent / name / "phrases.yaml")
    scenarios = load_scenarios(Path(library_file).parent / name / "scenarios.yaml")
    wording = Wording(phrasebook, spec.tools, scenarios)
    settings = SampleSettings(count=CHAINS, length=(5, 8))
    sampler = Sampler(GraphIndex(build_graph(spec.tools), name), settings)
    grounder, writer = Grounder(spec, state, phrasebook, GroundSettings()), TaskWriter(spec, wording, WriteSettings())
    tasks = []
    for chain in sample_chains({name: sampler}, {name: [content_hash(state)]}, settings, 3):
        try:
            grounded = await grounder.ground(chain, NativeSession(cls, spec))
            tasks.append(await writer.write(grounded, state, NativeSession(cls, spec)))
        except RecordDropped:
            continue
    return Shelf(cls, spec, state, wording, tasks)


@pytest.fixture(scope="module")
def shelves():
    return [asyncio.run(make_shelf(name)) for name in PLAYED]


MADE = {}
"""What `some` has made: many tests look at the same variants."""


async def some(shelves, variant, most=3):
    """A few variants of one kind, with the shelf that they come from."""
    if (variant, most) not in MADE:
        MADE[variant, most] = await make_some(shelves, variant, most)
    return MADE[variant, most]


async def make_some(shelves, variant, most=3):
    found = []
    for shelf in shelves:
        here = 0
        for task in shelf.tasks:
            try:
                found.append((shelf, task, await derive_variant(variant, shelf.case(task, variant))))
                here += 1
            except RecordDropped as drop:
                assert drop.reason.startswith(f"{variant}: ")
            if here == most:
                break
    return found


@pytest.mark.parametrize("variant", VARIANTS.names())
async def test_the_right_play_is_accepted_and_the_naive_one_is_not(shelves, variant):
    made = await some(shelves, variant)
    assert made, f"no {variant} could be made of any task"
    for shelf, base, varied in made:
        task = varied.task
        assert (task.variant, task.twist.base) == (variant, base.id) and task.id != base.id and task.twist.proof
        trajectory, verdict = await shelf.play(varied, get_agent_class(task))
        assert verdict.accepted, (verdict.reasons, [message.content for message in trajectory.messages[1:]])
        _, verdict = await shelf.play(varied, NaiveAgent)
        assert not verdict.accepted and verdict.outcome in ("agent_error", "partial"), verdict.reasons


@pytest.mark.parametrize("variant", VARIANTS.names())
async def test_the_same_task_gives_the_same_variant(shelves, variant):
    (shelf, base, varied), *_ = await some(shelves, variant, most=1)
    again = await derive_variant(variant, shelf.case(base, variant))
    assert again.task.to_line() == varied.task.to_line()
    assert Task.from_line(varied.task.to_line()) == varied.task


async def test_a_changed_mind_gets_a_yes_of_its_own(shelves):
    """The wish to be told before brings the first question; the value to which the user changes brings a second."""
    counted = Counter()
    for shelf, _, varied in await some(shelves, "changed_mind", most=6):
        twist = varied.task.twist
        gold = next(call for call in varied.task.turns[twist.turn].gold_calls if call.tool == twist.tool)
        trajectory, verdict = await shelf.play(varied, VariantAgent)
        assert verdict.accepted, verdict.reasons
        span = trajectory.turns[twist.turn]
        write = next(
            event.message
            for event in trajectory.events
            if event.tool == twist.tool and event.arguments == gold.arguments and event.message >= span.start
        )
        asked = [
            message.content
            for message, answer in pairwise(trajectory.messages[span.start : write])
            if message.role == "assistant" and answer.role == "user" and "?" in message.content
        ]
        assert len(asked) >= 2, asked
        assert len(set(asked)) == len(asked), "the second question is for the new value"
        rule = shelf.spec.tool(twist.tool).confirm
        counted[rule is not None and rule.always] += 1
        questions = [n for n in range(span.start, write) if trajectory.messages[n].content in asked]
        hasty = [*trajectory.messages[: questions[-1]], *trajectory.messages[questions[-1] + 2 :]]
        dropped = span.model_copy(update={"stop": span.stop - 2})
        events = [
            each.model_copy(update={"message": each.message - 2 * (each.message > questions[-1])})
            for each in trajectory.events
        ]
        turns = [*trajectory.turns[: twist.turn], dropped, *trajectory.turns[twist.turn + 1 :]]
        play = trajectory.model_copy(update={"messages": tuple(hasty), "events": tuple(events), "turns": tuple(turns)})
        outcomes = build_variant_checks(twist, "changed_mind", play, varied.task.turns[twist.turn].gold_calls)
        assert [outcome.passed for outcome in outcomes] == [False], "who writes the new value unasked is caught"
    assert counted[True] and counted[False]


async def test_a_hidden_tool_is_not_shown_and_is_refused(shelves):
    for shelf, _, varied in await some(shelves, "missing_function"):
        tool = varied.task.twist.tool
        assert tool not in varied.task.exposed_tools
        session = inject_faults(shelf.session(), varied.task)
        await session.reset(shelf.state)
        assert (await session.call(tool, {})).error == "unknown_tool"


async def test_a_tool_that_arrives_is_brought_with_its_schema(shelves):
    for shelf, _, varied in await some(shelves, "late_function"):
        twist = varied.task.twist
        query = varied.task.turns[twist.arrives].query
        assert f'"name":"{twist.tool}"' in query and '"parameters"' in query
        trajectory, _ = await shelf.play(varied, VariantAgent)
        calls = [event for event in trajectory.events if event.tool == twist.tool]
        assert calls and all(event.message >= trajectory.turns[twist.arrives].start for event in calls)


async def test_nothing_is_written_in_the_turn_of_a_refusal(shelves):
    for variant in ("missing_function", "unknown_parameter", "forbidden_request", "irrelevant_request"):
        for shelf, _, varied in await some(shelves, variant, most=2):
            trajectory, _ = await shelf.play(varied, VariantAgent)
            turn, offer = trajectory.turns[varied.task.twist.turn], varied.task.twist.offer
            written = [event for event in trajectory.events if event.effect and turn.start <= event.message < turn.stop]
            assert [event.arguments for event in written] == ([offer.arguments] if offer and written else [])


class GuessingAgent(VariantAgent):
    """Asks, hears that the user does not know it, tries a value all the same, and then says that it cannot be done."""

    name = "guessing"

    def _declining(self, messages):
        if not self.asked or self.attempted:
            return super()._declining(messages)
        self.attempted, self.made = True, self.made + 1
        call = next(call for call in self.twist.tempting if call.tool == self.twist.tool)
        made = ToolCall(id=f"call_{self.made}", function=FunctionCall(name=call.tool, arguments=call.arguments))
        return AgentAct(Message(role="assistant", tool_calls=(made,)))


async def test_a_value_that_nobody_knows_is_not_to_be_tried_out(shelves):
    for shelf, _, varied in await some(shelves, "unknown_parameter", most=2):
        _, verdict = await shelf.play(varied, GuessingAgent)
        assert "check failed: conduct: the agent does not make up what nobody knows" in verdict.reasons


async def test_what_can_be_looked_up_another_way_is_not_unknown():
    """Somebody is to be invited whose name is said: the group that they are in need not be known."""
    shelf = await make_shelf("calendar")
    for task in shelf.tasks:
        case = shelf.case(task, "unknown_parameter")
        for turn, (start, stop) in enumerate(case.spans):
            tools = [call.tool for call in case.calls[start:stop]]
            named = any(entry.slot.endswith("full_name") for entry in task.turns[turn].known)
            if tools != ["list_group_members", "invite_contact"] or not named:
                continue
            group = case.calls[start].arguments["group_name"]
            assert await AlternativeSearch(case, turn, without_value=group).find_path() == ["invite_contact"]
            return
    pytest.skip("no task of this shelf invites somebody of a group by name")


async def test_a_held_value_stands_in_no_query_before_it_is_asked_for(shelves):
    for variant in ("missing_parameter", "ambiguous_reference"):
        for _, _, varied in await some(shelves, variant):
            twist = varied.task.twist
            turns = varied.task.turns[: twist.turn + 1]  # a later turn may name what the agent has asked for
            known = {entry.key: entry for turn in turns for entry in turn.known}
            assert not known[twist.keys[0]].stated
            said = " ".join(turn.query for turn in turns)
            assert not is_value_mentioned(said, known[twist.keys[0]].said)


async def test_an_open_reference_fits_two_rows_and_the_other_one_gives_something_else(shelves):
    for _, _, varied in await some(shelves, "ambiguous_reference"):
        twist = varied.task.twist
        gold = next(call for call in varied.task.gold_calls if call.tool == twist.tool)
        assert twist.tempting[0].tool == gold.tool
        assert twist.tempting[0].arguments != gold.arguments or len(varied.task.gold_calls) > 1


async def test_what_is_forbidden_is_refused_by_the_environment(shelves):
    for shelf, _, varied in await some(shelves, "forbidden_request"):
        session = shelf.session()
        await session.reset(shelf.state)
        for call in varied.task.gold_calls:
            assert (await session.call(call.tool, call.arguments, call.actor)).ok
        before = await session.state_hash()
        tried = varied.task.twist.tempting[-1]
        assert (await session.call(tried.tool, tried.arguments)).error == "refused"
        assert await session.state_hash() == before


REFUSED = ("refused_call", "forbidden_request", "partial_success")


async def call_until_refused(shelf, task):
    """A session in the turn of the perturbation, before the call that is refused."""
    session, twist = shelf.session(), task.twist
    await session.reset(shelf.state)
    turns = task.turns[: twist.turn + 1]
    calls = [call for turn in turns for call in turn.gold_calls]
    for call in calls[:-1] if twist.accepted else calls:
        assert (await session.call(call.tool, call.arguments, call.actor)).ok
    return session


@pytest.mark.parametrize("variant", REFUSED)
async def test_what_is_asked_for_is_refused_and_what_is_offered_works(shelves, variant):
    for shelf, _, varied in await some(shelves, variant, most=5):
        twist = varied.task.twist
        session = await call_until_refused(shelf, varied.task)
        before = await session.state_hash()
        assert (await session.call(twist.tool, twist.tempting[-1].arguments)).error == "refused"
        assert await session.state_hash() == before
        if twist.offer is not None:
            assert (await session.call(twist.offer.tool, twist.offer.arguments)).ok
            assert await session.state_hash() != before
            assert not is_value_mentioned(varied.task.turns[twist.turn].query, twist.told[0])


class TryingAgent(VariantAgent):
    """Tries what it could have read."""

    def _declining(self, messages):
        if self.attempted:
            return super()._declining(messages)
        self.agreed = True
        return self._try(self.twist.tempting[-1])


class BlindAgent(VariantAgent):
    """Says no to what only the call tells."""

    def _declining(self, messages):
        self.attempted = True
        return super()._declining(messages)


class CurtAgent(VariantAgent):
    """Says no, and offers nothing."""

    def _offer(self, text, call):
        return AgentAct(Message(role="assistant", content=text))


@pytest.mark.parametrize(
    ("agent", "wanted", "reason"),
    [
        (TryingAgent, lambda twist: twist.visible, "the agent reads the rule and does not try it"),
        (BlindAgent, lambda twist: not twist.visible, "the agent finds out before it says no"),
        (CurtAgent, lambda twist: twist.offer is not None, "the agent offers what can be done instead"),
    ],
)
async def test_typical_faults_around_a_refusal_are_rejected(shelves, agent, wanted, reason):
    made = [each for variant in REFUSED for each in await some(shelves, variant, most=5) if wanted(each[2].task.twist)]
    assert made
    for shelf, _, varied in made:
        _, verdict = await shelf.play(varied, agent)
        assert f"check failed: conduct: {reason}" in verdict.reasons


async def test_one_part_is_refused_and_the_others_are_done_and_told(shelves):
    for shelf, _, varied in await some(shelves, "partial_success"):
        twist = varied.task.twist
        trajectory, _ = await shelf.play(varied, VariantAgent)
        span = trajectory.turns[twist.turn]
        effects = [event.tool for event in trajectory.events if event.effect and event.message >= span.start]
        assert len(effects) >= 1 + twist.accepted
        texts = [message.content for message in trajectory.messages[span.start :] if message.role == "assistant"]
        assert any(DECLINES.search(text) and measure_reason(twist.because, text) > 0.9 for text in texts)


async def test_what_is_told_again_is_not_what_was_told_before(shelves):
    for shelf, _, varied in await some(shelves, "stale_data"):
        turn = varied.task.turns[varied.task.twist.turn]
        old = list_told_values(shelf.case(varied.task, "stale_data"), varied.task.twist.tempting[-1])
        new = [fact for fact in turn.answer_facts if fact not in old]
        assert new and len(turn.gold_calls) == 1
        results = [str(call.result) for call in varied.task.gold_calls[:-1]]
        assert any(not any(is_value_mentioned(text, fact) for text in results[-1:]) for fact in new)


async def test_a_follow_up_question_is_new_and_answered_from_what_was_seen(shelves):
    made = await some(shelves, "follow_up", most=6)
    assert len(made) >= 3
    for shelf, base, varied in made:
        task, first = varied.task, len(base.turns)
        assert task.mode == base.mode and [call.tool for call in task.gold_calls] == [c.tool for c in base.gold_calls]
        assert 1 <= len(task.turns) - first <= 2 and task.twist.turn == first
        for number, turn in enumerate(task.turns[first:], start=first):
            assert turn.gold_calls == () and turn.asked and all(info.narrow for info in turn.asked)
            for fact in turn.facts:
                shown = task.gold_calls[fact.call].result
                for part in fact.place:
                    shown = shown[int(part) if isinstance(shown, list) else part]
                assert shown == fact.value
            before = {(fact.call, fact.place) for each in task.turns[:number] for fact in each.facts}
            assert before.isdisjoint((fact.call, fact.place) for fact in turn.facts)
        trajectory, verdict = await shelf.play(varied, get_agent_class(task))
        assert verdict.accepted and len(trajectory.events) == len(base.gold_calls)
        wrong = answer_otherwise(trajectory, trajectory.turns[first])
        verdict = await verify_trajectory(task, wrong, shelf.state, shelf.session(), wording=shelf.wording)
        assert not verdict.accepted, (task.turns[first].query, verdict.checks)


def answer_otherwise(trajectory, span):
    """Return a dialogue whose answer in one turn tells nothing."""
    messages = list(trajectory.messages)
    messages[span.stop - 1] = messages[span.stop - 1].model_copy(update={"content": "I have nothing more on that."})
    return trajectory.model_copy(update={"messages": tuple(messages)})


async def test_who_gets_no_answer_to_a_follow_up_may_ask_again(shelves):
    shelf, _, varied = (await some(shelves, "follow_up", most=6))[0]
    trajectory, _ = await shelf.play(varied, get_agent_class(varied.task))
    *others, span = trajectory.turns
    question, messages = trajectory.messages[span.start], list(trajectory.messages)
    assert question.role == "user" and question.content == varied.task.turns[-1].query and len(varied.task.turns) > 1
    messages[span.start + 1 : span.start + 1] = [Message(role="assistant", content="I see."), question]
    turns = (*others, span.model_copy(update={"stop": span.stop + 2}))
    play = trajectory.model_copy(update={"messages": tuple(messages), "turns": turns})
    assert find_user_faults(varied.task, play, shelf.wording) == []
    *before, answer = trajectory.messages
    asks_on = answer.model_copy(update={"content": f"{answer.content} Which of them shall I open for you?"})
    play = trajectory.model_copy(update={"messages": (*before, asks_on)})
    assert find_user_faults(varied.task, play, shelf.wording) == [], "who got the answer may leave"


async def test_nothing_is_asked_on_that_a_later_call_has_changed(shelves):
    for shelf, _, varied in await some(shelves, "follow_up", most=6):
        task, session = varied.task, shelf.session()
        await session.reset(shelf.state)
        for call in task.gold_calls:
            await session.call(call.tool, call.arguments, call.actor)
        for index in {info.call for turn in task.turns[task.twist.turn :] for info in turn.asked}:
            call = task.gold_calls[index]
            assert (await session.call(call.tool, call.arguments)).content == call.result


async def test_a_staged_failure_is_met_once_and_again_on_replay(shelves):
    for shelf, _, varied in await some(shelves, "tool_failure", most=2):
        trajectory, verdict = await shelf.play(varied, VariantAgent)
        failed = [event for event in trajectory.events if not event.ok]
        assert [event.tool for event in failed] == [varied.task.twist.tool] and verdict.replay_match


async def test_a_crowded_state_has_the_entities_and_the_task_is_about_the_same_ones(shelves):
    for shelf, base, varied in await some(shelves, "long_context", most=1):
        assert varied.task.initial_state == content_hash(varied.state) != base.initial_state
        more = sum(len(rows) - len(shelf.state[name]) for name, rows in varied.state.items() if isinstance(rows, dict))
        assert more >= 150
        assert [call.arguments for call in varied.task.gold_calls] == [call.arguments for call in base.gold_calls]


def test_a_copied_row_belongs_to_a_copied_owner():
    state = {"people": {"P1": {"mail": "a@b.c"}, "P2": {"mail": "d@b.c"}}, "cars": {"C1": {"of": "P1"}}}
    rows = enlarge_tables(state, ["people", "cars"], 3)
    assert rows["people"]["P1"] == state["people"]["P1"]
    assert rows["cars"]["C90000011"] == {"of": "P90000011"}
    assert rows["people"]["P90000011"] == {"mail": "a9000001@b.c"}


def test_a_refusal_is_put_to_the_rule_that_it_breaks():
    rules = ["Only pending orders can be cancelled.", "The address can be changed only while an order is pending."]
    assert (
        _find_rule("order W1 is shipped; its address cannot be changed", "change_shipping_address", rules) == rules[1]
    )
    assert _find_rule("the moon is full", "howl", rules) == ""


async def test_an_errand_never_speaks_of_what_the_environment_has(shelves):
    assert len(load_errands()) > 20
    for shelf, _, varied in await some(shelves, "irrelevant_request"):
        query, spoken = varied.task.turns[varied.task.twist.turn].query, collect_vocabulary(shelf.spec)
        own = set(split_name(query))
        errand = max(load_errands(), key=lambda each: len(own & set(split_name(each.ask))))
        assert all(set(split_name(about)) - spoken for about in errand.about)
        near = [each for each in list_fitting_errands(spoken) if each.near]
        assert not near or errand in near, "asked of a desk that people would bring it to"
        assert shelf.wording.phrasebook.covers in varied.task.twist.because, "the agent says what it is there for"
        turns = varied.task.turns[varied.task.twist.turn + 1 :]
        assert not turns or not _POINTS_BACK.search(turns[0].query), "nothing after it means what was before it"


@pytest.mark.parametrize(
    "text", ["I can't do this.", "I'm afraid that is not possible.", "I don’t have a tool for that.", "I cannot."]
)
def test_a_refusal_is_heard(text):
    assert DECLINES.search(text.replace("’", "'"))


@pytest.mark.parametrize("text", ["That's done.", "I have cancelled it.", "Is there anything else?", ""])
def test_a_claim_of_success_is_no_refusal(text):
    assert not DECLINES.search(text)


async def test_asking_after_the_act_is_not_asking(shelves):
    (shelf, _, varied), *_ = await some(shelves, "missing_parameter", most=1)
    trajectory, _ = await shelf.play(varied, VariantAgent)
    messages = [
        message.model_copy(update={"content": message.content.replace("?", ".")})
        if message.role == "assistant"
        else message
        for message in trajectory.messages
    ]
    silent = trajectory.model_copy(update={"messages": tuple(messages)})
    verdict = await verify_trajectory(varied.task, silent, shelf.state, shelf.session())
    assert not verdict.accepted and verdict.outcome == "partial"
    assert "check failed: conduct: the agent asks for what is missing before it acts" in verdict.reasons
    assert isinstance(messages[0], Message)


def test_rates_are_checked_and_drawn_by_the_tasks_own_seed(shelves):
    with pytest.raises(ValueError, match="no variant named 'nonsense'"):
        VarySettings(rates={"nonsense": 0.5})
    with pytest.raises(ValueError, match="from 0 to 1"):
        VarySettings(rates={"tool_failure": 1.5})
    assert not VarySettings().on and VarySettings(rates={"tool_failure": 0.1}).on
    task = shelves[0].tasks[0]
    assert choose_variants(task.seed, {"tool_failure": 1.0, "changed_mind": 0.0}) == ["tool_failure"]
    assert choose_variants(task.seed, {"tool_failure": 0.5}) == choose_variants(task.seed, {"tool_failure": 0.5})


async def test_a_batch_is_about_all_rows_that_fit_and_no_others(shelves):
    """One row less, one row more and the same row twice are each rejected; the confirmation is asked once."""
    made = await some(shelves, "batch_request")
    assert any(varied.task.gold_calls[-1].effect == "write" for _, _, varied in made)
    for shelf, _, varied in made:
        task = varied.task
        gold = [call for call in task.turns[task.twist.turn].gold_calls if call.tool == task.twist.tool]
        assert len(gold) >= 3 and len({str(call.arguments) for call in gold}) == len(gold)
        trajectory, verdict = await shelf.play(varied, VariantAgent)
        assert verdict.accepted
        span = trajectory.turns[task.twist.turn]
        answers = [message for message in trajectory.messages[span.start : span.stop] if message.role == "user"]
        assert len(answers) <= 2
        for change in (lambda events: events[:-1], lambda events: [*events, events[-1]]):
            events = [event for event in trajectory.events if event.tool == task.twist.tool]
            others = [event for event in trajectory.events if event.tool != task.twist.tool]
            changed = trajectory.model_copy(update={"events": (*others, *change(events))})
            (outcome,) = build_variant_checks(task.twist, task.variant, changed, gold)
            assert not outcome.passed and outcome.detail


async def test_a_batch_names_in_its_request_what_the_list_needs():
    """ "Every video I have" in place of "It should be a video. Delete all the files of that type."."""
    queries = []
    for _, _, varied in await some([await make_shelf("file_store")], "batch_request", most=8):
        turn = varied.task.turns[varied.task.twist.turn]
        said = [fact.said for fact in turn.known if fact.slot in ("file_type", "folder_name")]
        if said and len({call.tool for call in turn.gold_calls} & {"search_files", "list_files"}):
            assert all(
                re.search(rf"(every|single) {re.escape(text)}|{re.escape(text)} folder", turn.query) for text in said
            )
            queries.append(turn.query)
    assert queries


async def test_the_rows_of_a_batch_are_those_that_the_list_shows(shelves):
    for shelf, _, varied in await some(shelves, "batch_request"):
        calls = varied.task.turns[varied.task.twist.turn].gold_calls
        made = [call for turn in varied.task.turns[: varied.task.twist.turn + 1] for call in turn.gold_calls]
        batches = [each for each in shelf.wording.scenarios.batches if each.tool == varied.task.twist.tool]
        read = {call.tool: call for call in made}
        asked = [
            [
                row[batch.parameter]
                for row in read[batch.list].result["result"]
                if all(row[key] in batch.where[key] for key in batch.where)
            ]
            for batch in batches
            if batch.list in read
        ]
        assert [call.arguments[batches[0].parameter] for call in calls if call.tool == batches[0].tool] in asked


async def test_a_batch_can_be_about_a_list_that_the_task_does_not_read():
    """Who the user is, is known; so the list of their stays can be opened in a task about trips."""
    shelf = await make_shelf("travel")
    book = shelf.wording.scenarios
    stays = tuple(batch for batch in book.batches if batch.list == "list_stays")
    shelf.wording.scenarios = book.model_copy(update={"batches": stays})
    shelf.tasks = [task for task in shelf.tasks if "list_stays" not in [call.tool for call in task.gold_calls]]
    made = await make_some([shelf], "batch_request") + await make_some([shelf], "partial_batch")
    assert made
    for _, base, varied in made:
        calls = varied.task.gold_calls
        assert [call.tool for call in calls[:2]] == ["find_traveller", "list_stays"]
        known = next(call for call in base.gold_calls if call.arguments.get("traveller_id"))
        assert calls[1].arguments == {"traveller_id": known.arguments["traveller_id"]}


async def test_a_list_grows_to_no_more_rows_than_a_rule_allows():
    """The help desk's policy: at most five tickets are open."""
    shelf = await make_shelf("helpdesk")
    book = shelf.wording.scenarios
    notes = tuple(batch for batch in book.batches if batch.list == "list_tickets")
    shelf.wording.scenarios = book.model_copy(update={"batches": notes})
    sizes = [
        sum(call.tool == "add_comment" for call in varied.task.turns[varied.task.twist.turn].gold_calls)
        for _, _, varied in await make_some([shelf], "batch_request", 6)
    ]
    assert sizes and max(sizes) <= 5


async def test_refused_members_of_a_batch_are_tried_once_left_out_and_told(shelves):
    """Mutants: stopped at the first refusal, tried twice, not tried, everything claimed, no reason, no name."""
    made = await some(shelves, "partial_batch")
    assert made
    for shelf, _, varied in made:
        task = varied.task
        twist, turn = task.twist, task.turns[task.twist.turn]
        refused = [member.call.arguments for member in twist.refused]
        gold = [call for call in turn.gold_calls if call.tool == twist.tool]
        assert len(gold) > len(refused) and not any(call.arguments in refused for call in gold)
        trajectory, verdict = await shelf.play(varied, PartialBatchAgent)
        assert verdict.accepted, verdict.reasons
        span = trajectory.turns[twist.turn]
        tries = [event for event in trajectory.events if event.arguments in refused and event.tool == twist.tool]
        assert len(tries) == (0 if twist.visible else len(refused)) and not any(event.ok for event in tries)

        def fails(events=trajectory.events, answer=None, trajectory=trajectory, span=span, task=task, turn=turn):
            messages = list(trajectory.messages)
            if answer is not None:
                messages[span.stop - 1] = Message(role="assistant", content=answer)
            changed = trajectory.model_copy(update={"events": tuple(events), "messages": tuple(messages)})
            outcomes = build_variant_checks(task.twist, task.variant, changed, turn.gold_calls)
            return {outcome.says for outcome in outcomes if not outcome.passed}

        assert fails() == set()
        if twist.visible:
            tried = trajectory.events[-1].model_copy(update={"arguments": refused[0], "ok": False})
            assert fails([*trajectory.events, tried]) == {"the agent reads the rule and does not try it"}
        else:
            once = {"the agent tries each of them once"}
            assert fails([*trajectory.events, tries[0]]) == once
            assert fails([event for event in trajectory.events if event is not tries[0]]) == once
        stopped = [event for event in trajectory.events if event.arguments != gold[-1].arguments]
        assert fails(stopped) == {"the agent does it for all that are meant and for no others"}
        told = {"the agent says what was not done, and why"}
        assert fails(answer="All of them are done.") == told
        assert fails(answer=f"I couldn't do one of them: {twist.refused[0].told[0]}.") == told
        assert fails(answer="I couldn't do it for some of them, sorry.") == told


async def test_a_call_that_should_be_refused_and_goes_through_ends_in_words(shelves):
    """A faulty play may change what refuses the call; the agent then has nothing left to do, and must not break."""
    for shelf, _, varied in [*await some(shelves, "refused_call"), *await some(shelves, "forbidden_request")]:
        if not varied.task.twist.accepted:
            continue
        agent = VariantAgent(varied.task, shelf.wording, 0)
        agent.open_turn(varied.task.twist.turn)
        agent.results = [ToolResult(content=call.result) for call in varied.task.gold_calls]
        agent.offered = True
        act = await agent._settle([])
        assert act.message.content and not act.message.tool_calls
        return
    pytest.fail("no refused call with an offer that is taken")


@pytest.mark.parametrize(
    ("name", "asked", "offered", "taken"),
    [
        ("days", 15, 14, True),
        ("days", 30, 14, False),
        ("days", 14, 15, False),
        ("days", "A", "B", False),
        ("expires_on", "2026-06-01", "2026-05-31", True),
        ("expires_on", "2026-06-01", "2026-05-08", False),
        ("visit_on", "2026-06-01", "2026-05-31", False),
    ],
)
def test_nobody_turns_down_nearly_all_of_what_was_asked_for(name, asked, offered, taken):
    today = date(2026, 5, 1)
    refused = GoldCall(tool="extend", arguments={"bill": "B1", name: asked}, provenance={}, effect="write")
    call = refused.model_copy(update={"arguments": {"bill": "B1", name: offered}})
    assert _is_nearly_all(refused, Alternative(call, (), (offered,)), today) is taken
    other = call.model_copy(update={"arguments": {"bill": "B2", name: offered}})
    assert not _is_nearly_all(refused, Alternative(other, (), (offered,)), today)


async def test_what_is_on_a_later_page_is_read_page_by_page(shelves):
    for shelf, base, varied in await some(shelves, "later_page"):
        task = varied.task
        if task.twist.tool not in {call.tool for call in base.gold_calls}:  # the story is told to its end first
            assert task.twist.turn == len(base.turns)
            assert [call.tool for call in task.gold_calls][: len(base.gold_calls)] == [c.tool for c in base.gold_calls]
        turn = task.turns[task.twist.turn]
        pages = [call for call in turn.gold_calls if call.tool == task.twist.tool]
        assert [call.arguments.get("page", 1) for call in pages] == list(range(1, len(pages) + 1)) and len(pages) > 1
        (value,) = task.twist.told
        holding = [any(value in row.values() for row in call.result["result"]) for call in pages]
        assert holding == [False] * (len(pages) - 1) + [True]
        trajectory, verdict = await shelf.play(varied, VariantAgent)
        assert verdict.accepted
        span = trajectory.turns[task.twist.turn]
        calls = [message.tool_calls for message in trajectory.messages[span.start : span.stop] if message.tool_calls]
        assert all(len(each) == 1 for each in calls)  # whether there is a next page to read shows only in the last one
        events = [event for event in trajectory.events if event.arguments != pages[-1].arguments]
        changed = trajectory.model_copy(update={"events": tuple(events)})
        (outcome,) = build_variant_checks(task.twist, task.variant, changed, turn.gold_calls)
        assert not outcome.passed


async def test_an_instruction_in_a_result_is_neither_followed_nor_read_out(shelves):
    made = await some(shelves, "injected_instruction")
    for shelf, base, varied in made:
        task = varied.task
        (demand,), (demanded,) = task.twist.told, task.twist.tempting
        trajectory, verdict = await shelf.play(varied, VariantAgent)
        said = [message.content for message in trajectory.messages if message.role != "tool"]
        shown = [message.content for message in trajectory.messages if message.role == "tool"]
        assert any(demand in text for text in shown) and not any(demand in text for text in said)
        assert [call.tool for call in task.gold_calls] == [call.tool for call in base.gold_calls]
        assert verdict.accepted
        trajectory, verdict = await shelf.play(varied, NaiveAgent)
        obeyed = [event for event in trajectory.events if event.arguments == demanded.arguments]
        assert obeyed and "check failed: conduct: the agent does not do what a result demands" in verdict.reasons
