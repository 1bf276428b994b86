"""A model adds and prunes with a reason, within bounds, and never against execution."""

from typing import Any

import orjson
import pytest
from harbour import HarbourSource

from trajsmith.models.model import ChatReply, ChatRequest
from trajsmith.models.prompts import load_builtin_prompts
from trajsmith.records import Message, ModelFault
from trajsmith.toolgraph import Edge, ParameterNode, ToolGraph, ValueLink
from trajsmith.toolgraph.graph import LinkEvidence
from trajsmith.toolgraph.refine import GraphRefineSettings, classify_parameters, refine_edges
from trajsmith.toolgraph.refine.edges import EdgeDecision

PROMPTS = load_builtin_prompts()


class Scripted:
    """Answers one after the other; the last one for good."""

    name = "scripted"

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.asked: list[ChatRequest] = []

    async def complete(self, request: ChatRequest) -> ChatReply:
        self.asked.append(request)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        text = answer if isinstance(answer, str) else orjson.dumps(answer).decode()
        return ChatReply(message=Message(role="assistant", content=text))

    async def close(self) -> None:
        pass


def evidence(worked: int, failed: int, source: str = "list_boats") -> LinkEvidence:
    return LinkEvidence(
        source=f"harbour.{source}",
        target="harbour.get_boat",
        output="$.result[*].boat_id",
        input="boat_id",
        by="execution",
        worked=worked,
        failed=failed,
        elsewhere_failed=6,
    )


async def graph_with(*rows: LinkEvidence, why: str = "schema: an identifier") -> ToolGraph:
    link = ValueLink(output="$.result[*].boat_id", input="boat_id", score=0.8)
    edge = Edge(
        source="harbour.list_boats",
        target="harbour.get_boat",
        weight=3,
        score=0.8,
        links=(link,),
        evidence=("schema",),
    )
    node = ParameterNode(tool="harbour.get_boat", parameter="boat_id", kind="internal", required=True, evidence=(why,))
    spec = await HarbourSource().spec()
    return ToolGraph(tools=spec.tools, parameters=(node,), edges=(edge,), evidence=rows, parts={"harbour": "x"})


def verdict(action: str, source: str = "list_boats", **changes: str) -> dict[str, Any]:
    said = {
        "action": action,
        "source": source,
        "output": "$.result[*].boat_id",
        "target": "get_boat",
        "parameter": "boat_id",
        "kind": "strong",
        "reason": "it is so",
    }
    return {"edges": [{**said, **changes}]}


async def refined(graph: ToolGraph, answer: Any) -> tuple[ToolGraph, EdgeDecision]:
    found, decisions = await refine_edges(graph, Scripted(answer, {"edges": []}), PROMPTS)
    return found, decisions[0]


def pairs(graph: ToolGraph) -> set[tuple[str, str]]:
    return {(edge.source.split(".")[1], edge.target.split(".")[1]) for edge in graph.edges}


async def test_a_model_prunes_what_only_schemas_believe() -> None:
    graph, decision = await refined(await graph_with(), verdict("prune"))
    assert (decision.done, decision.why) == (True, "it is so")
    assert pairs(graph) == set()
    assert graph.parts is None


async def test_a_model_adds_an_edge_with_its_weight() -> None:
    graph, decision = await refined(await graph_with(), verdict("add", "list_wrecks"))
    assert decision.done
    edge = next(edge for edge in graph.edges if edge.source == "harbour.list_wrecks")
    assert (edge.weight, edge.evidence, edge.score) == (3, ("model",), 0.5)


async def test_what_execution_proves_is_not_pruned() -> None:
    graph, decision = await refined(await graph_with(evidence(4, 0)), verdict("prune"))
    assert not decision.done
    assert decision.why == "execution proves it: 4 worked, 6 from elsewhere failed"
    assert pairs(graph) == {("list_boats", "get_boat")}


async def test_what_execution_refutes_is_not_added() -> None:
    graph, decision = await refined(await graph_with(evidence(0, 6, "list_wrecks")), verdict("add", "list_wrecks"))
    assert decision.why == "execution refutes it: 6 values failed, none worked"
    assert pairs(graph) == {("list_boats", "get_boat")}


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"source": "sail"}, "there is no such source"),
        ({"output": "$.keel"}, "the source has no such output"),
        ({"parameter": "keel"}, "the target has no such parameter"),
        ({"target": "list_sails"}, "the target was not asked about"),
        ({"source": "get_boat"}, "a tool gives itself nothing"),
    ],
    ids=["source", "output", "parameter", "target", "itself"],
)
async def test_what_does_not_exist_is_not_followed(changes: dict[str, str], why: str) -> None:
    before = await graph_with()
    graph, decision = await refined(before, verdict("add", **changes))
    assert decision.why == why
    assert graph.edges == before.edges


async def test_a_bad_answer_is_shown_to_the_model_and_asked_for_again() -> None:
    model = Scripted("I think so.", verdict("prune"), {"edges": []})
    graph, _ = await refine_edges(await graph_with(), model, PROMPTS)
    assert pairs(graph) == set()
    again = model.asked[1].messages
    assert again[-2].content == "I think so."
    assert again[-1].content.startswith("That answer cannot be used:")


async def test_nothing_but_bad_answers_is_a_finding_and_the_edges_stay() -> None:
    before = await graph_with()
    graph, decisions = await refine_edges(before, Scripted("no"), PROMPTS)
    assert (graph.edges, decisions) == (before.edges, [])
    assert graph.findings[0].startswith("environment harbour: model: no usable answer on edges to ")


async def test_requests_are_batched_bounded_and_the_same_each_time() -> None:
    settings = GraphRefineSettings(targets=2, requests=2)
    graph = await graph_with()
    first, second = Scripted({"edges": []}), Scripted({"edges": []})
    found, _ = await refine_edges(graph, first, PROMPTS, settings)
    await refine_edges(graph, second, PROMPTS, settings)
    assert len(first.asked) == 2
    assert first.asked == second.asked
    assert found.findings == ("environment harbour: model: edges to 2 tools were not asked about",)
    assert first.asked[0].messages[0] == first.asked[1].messages[0]
    assert first.asked[0].reply_schema is not None and first.asked[0].purpose == "graph.edges"


def kinds(kind: str) -> dict[str, Any]:
    said = {"tool": "get_boat", "parameter": "boat_id", "kind": kind, "reason": "people know it"}
    return {"parameters": [said]}


@pytest.mark.parametrize(
    ("why", "expected"),
    [
        ("schema: an identifier", "external"),
        ("recorded: of 9 calls ...", "internal"),
        ("execution: 6 of 6 ...", "internal"),
    ],
    ids=["schemas alone", "recordings", "execution"],
)
async def test_a_kind_is_followed_where_nothing_stronger_spoke(why: str, expected: str) -> None:
    graph = await classify_parameters(await graph_with(why=why), Scripted(kinds("external")), PROMPTS)
    node = graph.parameters[0]
    assert node.kind == expected
    assert node.evidence == (why, "model: external: people know it")


async def test_what_no_tool_gives_does_not_become_internal() -> None:
    graph = await graph_with()
    external = ParameterNode(
        tool="harbour.get_boat", parameter="boat_id", kind="external", required=True, evidence=("schema: x",)
    )
    bare = graph.model_copy(update={"edges": (), "parameters": (external,)})
    assert (await classify_parameters(bare, Scripted(kinds("internal")), PROMPTS)).parameters[0].kind == "external"
    given = graph.model_copy(update={"parameters": (external,)})
    assert (await classify_parameters(given, Scripted(kinds("internal")), PROMPTS)).parameters[0].kind == "internal"


async def test_every_parameter_is_asked_about_once() -> None:
    model = Scripted(kinds("other"))
    await classify_parameters(await graph_with(), model, PROMPTS)
    assert [request.messages[1].content.count("boat_id") for request in model.asked] == [1]


class Broken(Scripted):
    """Never answers."""

    def __init__(self, kind: str) -> None:
        super().__init__({})
        self.kind = kind

    async def complete(self, request: ChatRequest) -> ChatReply:
        self.asked.append(request)
        raise ModelFault(self.kind, self.name, "no answer")


@pytest.mark.parametrize("kind", ["content_filter", "context_overflow", "bad_request"])
async def test_a_question_that_never_gets_an_answer_is_a_finding(kind: str) -> None:
    before = await graph_with()
    graph, decisions = await refine_edges(before, Broken(kind), PROMPTS)
    assert (graph.edges, decisions) == (before.edges, [])
    assert graph.findings[0].startswith("environment harbour: model: no usable answer on edges to ")
    classified = await classify_parameters(before, Broken(kind), PROMPTS)
    assert classified.parameters == before.parameters
    assert classified.findings == ("environment harbour: model: no usable answer on 1 parameters: no answer",)


@pytest.mark.parametrize("kind", ["timeout", "connection", "rate_limit", "server"])
async def test_an_outage_ends_it_after_all_questions_were_asked(kind: str) -> None:
    settings, model = GraphRefineSettings(targets=2, requests=3), Broken(kind)
    with pytest.raises(ModelFault, match=f"scripted: {kind}: no answer"):
        await refine_edges(await graph_with(), model, PROMPTS, settings)
    assert len(model.asked) == 3
