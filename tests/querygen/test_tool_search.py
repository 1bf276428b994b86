"""Tasks whose tools are not shown: what is searched for is proved, and a call that no search has shown is rejected."""

import asyncio
import json
import random

import orjson
import pytest

from trajsmith import export_dataset, load_run, run
from trajsmith.environments import ToolResult
from trajsmith.environments.arguments import ArgumentValidator
from trajsmith.environments.blocking import BackgroundLoop
from trajsmith.environments.library import ENVIRONMENTS
from trajsmith.evals.episodes import play_episode
from trajsmith.models import CallableModel, ChatReply
from trajsmith.phrasing import Phrasebook, ToolIndex, ToolPhrases, Wording
from trajsmith.pipeline.eval_contexts import open_eval_contexts
from trajsmith.pipeline.record_joins import join_verdicts
from trajsmith.pipeline.run_directory import RunDirectory
from trajsmith.querygen.tool_queries import _propose_queries, _says_enough, plan_tool_search
from trajsmith.records import CALL_TOOL, SEARCH_TOOLS, FunctionCall, Message, ToolCall, ToolSpec
from trajsmith.train_grpo.episodes import EpisodeSource, build_class_name
from trajsmith.train_grpo.rollouts import Rollout
from trajsmith.usersim import PlaySettings
from trajsmith.verify.tool_choice import build_tool_choice_checks, find_unseen_calls

SHOWN = (SEARCH_TOOLS, CALL_TOOL)
SAYS = "the agent calls only tools that a search has shown"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("search") / "run"
    faults = {"unsearched_call": 1.0, "wrong_search": 1.0}
    run(
        {
            "name": "search",
            "run": str(folder),
            "environments": [{"library": "helpdesk", "states": {"small": 2}}],
            "sample": {"count": 24, "length": [3, 6]},
            "write": {"tools": {"search": 1.0}},
            "vary": {"rates": {"missing_function": 0.3, "refused_call": 0.3}},
            "play": {"candidates": 2, "faulty": 1, "faults": faults, "reasoning": "grounded"},
        }
    )
    return RunDirectory.open(folder)


@pytest.fixture(scope="module")
def searched(made):
    return [item for item in join_verdicts(made) if item[0].search is not None]


def list_calls(trajectory):
    return [(place, call) for place, message in enumerate(trajectory.messages) for call in message.tool_calls or ()]


def test_every_query_is_proved_and_near_misses_come_before_the_right_one(made, searched):
    spec = ENVIRONMENTS.get("helpdesk").describe()
    near = 0
    for task, _, _ in searched:
        index = ToolIndex(task.find_searched_specs(spec.tools))
        assert len(index.tools) == len(task.exposed_tools) + len(task.distractors) > 50
        for tool, queries in task.search.queries.items():
            shows = [tool in {found.name for found in index.search(query, 5)} for query in queries]
            assert shows == [False] * (len(queries) - 1) + [True], (tool, queries)
            near += len(queries) > 1
    assert near


def test_right_plays_search_before_each_first_call_and_are_accepted(searched):
    plays = [(task, trajectory, verdict) for task, trajectory, verdict in searched if trajectory.injected is None]
    assert len(plays) >= 15 and all(verdict.outcome == "completed" for *_, verdict in plays)
    for task, trajectory, verdict in plays:
        assert trajectory.tools == task.shown_tools == SHOWN
        assert SAYS in {check.says for check in verdict.checks}
        visible = set()
        for message in trajectory.messages:
            said = f"{message.content} {message.reasoning_content}"
            if message.role == "tool" and message.name == SEARCH_TOOLS:
                visible |= {tool["name"] for tool in json.loads(message.content)["tools"]}
            else:
                assert not {name for name in task.exposed_tools if "_" in name and name in said} - visible
            for call in message.tool_calls or ():
                assert call.function.name in SHOWN
                assert call.function.arguments.get("tool_name") in {None, *visible}


def test_a_call_that_no_search_has_shown_is_refused_and_rejected(searched):
    kinds = set()
    for _, trajectory, verdict in searched:
        if trajectory.injected is None or trajectory.injected[0].kind not in ("unsearched_call", "wrong_search"):
            continue
        (fault,) = trajectory.injected
        kinds.add(fault.kind)
        tried = next(event for event in trajectory.events if event.error == "not_shown")
        assert tried.message >= fault.message and tried.effect is None and not tried.reached
        assert verdict.replay_match and not verdict.accepted
        assert [check.says for check in verdict.checks if check.passed is False] == [SAYS]
    assert kinds == {"unsearched_call", "wrong_search"}


def test_a_forged_search_and_a_tool_that_is_shown_prove_nothing(searched):
    tools = ENVIRONMENTS.get("helpdesk").describe().tools
    task, right, _ = next(item for item in searched if item[2].accepted)

    def passes(trajectory):
        unseen = find_unseen_calls(task, trajectory, tools)
        turns = range(len(trajectory.turns))
        checks = [check for turn in turns for check in build_tool_choice_checks(task, trajectory, turn, unseen)]
        return all(check.passed for check in checks if check.says == SAYS)

    def change_searches(**update):
        events = [event.model_copy(update=update) if event.tool == SEARCH_TOOLS else event for event in right.events]
        return right.model_copy(update={"events": tuple(events)})

    assert passes(right)
    assert not passes(change_searches(result_hash=ToolResult({"tools": []}).hash))
    assert not passes(change_searches(arguments={"query": "vacation"}))
    assert not passes(change_searches(message=len(right.messages)))
    assert not passes(right.model_copy(update={"tools": (*SHOWN, task.exposed_tools[0])}))


def test_rows_and_exports_hold_what_the_model_sees(made, tmp_path):
    rows = [row for row in load_run(made.path).rows() if row["tools"][0]["function"]["name"] == SEARCH_TOOLS]
    assert len(rows) >= 15
    for row in rows:
        assert [tool["function"]["name"] for tool in row["tools"]] == list(SHOWN)
        called = {call["function"]["name"] for message in row["messages"] for call in message.get("tool_calls", ())}
        assert called <= set(SHOWN)
    for form in ("trl", "openai", "sharegpt"):
        export_dataset(made.path, form, tmp_path / form)
    lines = [orjson.loads(line) for path in (tmp_path / "openai").rglob("*.jsonl") for line in path.open("rb")]
    found = [line for line in lines if line["tools"][0]["function"]["name"] == SEARCH_TOOLS]
    assert len(found) == len(rows)


def test_a_variant_that_hides_a_tool_shows_the_others(made):
    tasks = {task.id: task for task, _, _ in join_verdicts(made)}.values()
    hidden = [task for task in tasks if task.variant == "missing_function"]
    assert hidden and all(task.search is None and task.distractors == () for task in hidden)
    assert any(task.search is not None for task in tasks if task.variant == "base")


def reply(name, arguments, number):
    call = ToolCall(id=f"call_{number}", function=FunctionCall(name=name, arguments=arguments))
    return ChatReply(message=Message(role="assistant", tool_calls=(call,)))


def test_a_model_is_evaluated_and_trained_with_the_same_two_tools(made, searched):
    task, *_ = next(item for item in searched if item[2].accepted and item[0].variant == "base")
    first = next(call for call in task.gold_calls if call.actor == "assistant")
    contexts = asyncio.run(open_eval_contexts(made))
    context, seen = contexts[task.environments[0]], []
    steps = [
        reply(first.tool, first.arguments, 1),
        reply(CALL_TOOL, {"tool_name": first.tool, "arguments": json.dumps(first.arguments)}, 2),
        reply(SEARCH_TOOLS, {}, 3),
        reply(SEARCH_TOOLS, {"query": task.search.queries[first.tool][-1]}, 4),
        reply(CALL_TOOL, {"tool_name": first.tool, "arguments": first.arguments}, 5),
        ChatReply(message=Message(role="assistant", content="I could not do more.")),
    ]

    async def answer(request):
        seen.append(tuple(tool["function"]["name"] for tool in request.tools))
        return steps[min(len(seen), len(steps)) - 1]

    model = CallableModel("model", answer)
    _, played, verdict = asyncio.run(play_episode(task, context, model, PlaySettings(bad_calls=9), 0))
    assert set(seen) == {SHOWN} and played.tools == SHOWN
    assert [event.error for event in played.events[:5]] == ["malformed", "not_shown", "malformed", None, None]
    assert played.events[4].tool == first.tool and SAYS in verdict.reasons[0] + str(verdict.checks)
    assert "call_tool" in played.messages[0].content and "search_tools" in played.messages[0].content
    background = BackgroundLoop()
    try:
        functions = EpisodeSource([task], contexts, background, PlaySettings()).render_tools(task)
    finally:
        background.close()
    assert tuple(function["function"]["name"] for function in functions) == SHOWN
    assert build_class_name(task).endswith(",".join(SHOWN))
    strict = Rollout(task, context, PlaySettings(), ArgumentValidator(context.spec))
    calls = [step.message for step in steps[:5]]
    assert [len(strict._find_invalid_calls(message)) for message in calls] == [1, 0, 0, 0, 0]
    wrong = reply(CALL_TOOL, {"tool_name": first.tool, "arguments": '{"nothing": 1}'}, 6)
    assert len(strict._find_invalid_calls(wrong.message)) == 1


def test_an_environment_with_such_a_name_is_not_searched():
    import random

    tools = [ToolSpec(server="s", name=CALL_TOOL, description="Call someone.", input_schema={"type": "object"})]
    assert plan_tool_search(tools, (), None, 5, random.Random(1)) is None


@pytest.mark.parametrize(
    ("phrase", "enough"),
    [
        ("see to card", False),
        ("check on file", False),
        ("find details", False),
        ("go over orders", False),
        ("put gift message on order", True),
    ],
)
def test_a_query_says_what_is_to_be_done(phrase, enough):
    assert _says_enough(phrase) is enough


@pytest.mark.parametrize("environment", ENVIRONMENTS.names())
def test_nobody_searches_by_reciting_a_description(environment):
    """The first query for a tool is a few words, and no part of the description that the search is going to show."""
    tools = ENVIRONMENTS.get(environment).describe().tools
    for tool in tools:
        query = next(_propose_queries(tool, Wording(Phrasebook(), tools), random.Random(0)))
        assert 2 <= len(query.split()) <= 5, query
        assert len(query.split()) < 4 or query not in tool.description.lower()


def test_own_words_that_name_nothing_of_the_tool_are_no_query():
    tool = ToolSpec(server="shop", name="get_product", description="Show price and stock.", input_schema={})
    book = Phrasebook(tools={"get_product": ToolPhrases(narrate=["show the price", "look up the product price"])})
    queries = {next(_propose_queries(tool, Wording(book, [tool]), random.Random(seed))) for seed in range(20)}
    assert queries == {"product", "product details", "look up product price"}
