"""Chains inside scenarios: order and share of steps, look-ups, turns of all scenarios, the share of chains."""

from collections import Counter

import pytest

from trajsmith.environments.library import ENVIRONMENTS
from trajsmith.phrasing import Scenario, ScenarioBook
from trajsmith.records import Chain
from trajsmith.toolgraph import GraphIndex, Sampler, SampleSettings, build_graph, sample_chains

SPEC = ENVIRONMENTS.get("bank").describe()
FREEZE, LOOK, PAY = {"tool": "freeze_card"}, {"tool": "list_transactions"}, {"tool": "pay_payee"}


def scenario(name: str, *steps: dict) -> Scenario:
    return Scenario.model_validate({"id": name, "motives": ["It is urgent."], "steps": steps})


def draw(*scenarios: Scenario, count: int = 40, share: float = 1.0, length: tuple[int, int] = (2, 11)) -> list[Chain]:
    settings = SampleSettings(count=count, scenarios=share, length=length)
    sampler = Sampler(GraphIndex(build_graph(SPEC.tools), "bank"), settings, ScenarioBook(scenarios=scenarios))
    return list(sample_chains({"bank": sampler}, {"bank": ["s1", "s2"]}, settings, 5))


def list_orders(chains: list[Chain]) -> set[tuple[str, ...]]:
    return {tuple(step for step in chain.steps if step) for chain in chains}


def test_steps_stand_in_their_partial_order() -> None:
    free = {"follows": []}
    assert list_orders(draw(scenario("all", FREEZE, LOOK, PAY))) == {("freeze_card", "list_transactions", "pay_payee")}
    orders = list_orders(draw(scenario("some", FREEZE, LOOK, PAY | free)))
    assert len(orders) == 3
    assert all(order.index("freeze_card") < order.index("list_transactions") for order in orders)


def test_a_step_is_left_out_with_the_one_that_it_refers_to() -> None:
    same = PAY | {"id": "again", "same_as": {"payee_id": "pay_payee.payee_id"}}
    orders = list_orders(draw(scenario("pay", FREEZE, PAY | {"share": 0.5}, same)))
    assert orders == {("freeze_card",), ("freeze_card", "pay_payee", "again")}


def test_every_parameter_has_a_look_up_or_is_bound() -> None:
    bound = LOOK | {"same_as": {"account_id": "pay_payee.account_id"}}
    for chain in draw(scenario("pay", PAY, bound)):
        assert chain.tools[-1] == "list_transactions"
        assert chain.steps[-2:] == ("pay_payee", "list_transactions")
        fed = {(one.consumer, one.parameter) for one in chain.dependencies}
        step = chain.steps.index("pay_payee")
        assert {(step, "account_id"), (step, "payee_id")} <= fed


def test_what_only_the_scenario_ties_to_an_earlier_step_is_a_dependency() -> None:
    spec = ENVIRONMENTS.get("file_store").describe()
    restored = {"tool": "restore_from_trash", "id": "back"}
    shared = {"tool": "share_file", "same_as": {"file_id": "back.file_id"}}
    settings = SampleSettings(count=10, scenarios=1.0, length=(2, 6))
    graph = build_graph(spec.tools)
    assert not [one for one in graph.edges if one.source.endswith("from_trash") and one.target.endswith("share_file")]
    book = ScenarioBook(scenarios=(scenario("oops", restored, shared),))
    for chain in sample_chains(
        {"f": Sampler(GraphIndex(graph, "file_store"), settings, book)}, {"f": ["s"]}, settings, 5
    ):
        places = chain.steps.index("share_file"), chain.steps.index("back")
        tied = [one for one in chain.dependencies if one.consumer == places[0] and one.parameter == "file_id"]
        assert [(one.producer, one.output) for one in tied] == [(places[1], "$.file_id")]


def test_the_longest_chain_is_the_limit_and_optional_steps_fill_a_short_one() -> None:
    optional = [FREEZE | {"id": f"step_{number}", "share": 0.01} for number in range(9)]
    lengths = {len(chain.tools) for chain in draw(scenario("long", LOOK, *optional), length=(6, 7))}
    assert lengths <= {6, 7}
    assert max(len(chain.tools) for chain in draw(scenario("all", *([PAY | {"id": f"p{n}"} for n in range(20)])))) <= 11


def test_all_scenarios_get_their_turn() -> None:
    chains = draw(*(scenario(f"s{number}", FREEZE, LOOK) for number in range(7)), count=70)
    assert set(Counter(chain.scenario for chain in chains).values()) == {10}
    assert chains == draw(*(scenario(f"s{number}", FREEZE, LOOK) for number in range(7)), count=70)


@pytest.mark.parametrize("share", [0.0, 0.5, 0.85])
def test_the_share_of_scenarios_is_the_setting(share: float) -> None:
    inside = sum(bool(chain.scenario) for chain in draw(scenario("one", FREEZE, LOOK), count=400, share=share))
    assert abs(inside / 400 - share) < 0.07


def test_the_rest_covers_the_tools_that_no_scenario_has() -> None:
    chains = draw(scenario("one", FREEZE, LOOK), count=60, share=0.7)
    assert {tool for chain in chains for tool in chain.tools} == {tool.name for tool in SPEC.tools}


def test_later_tools_take_things_of_earlier_ones_more_often_with_focus() -> None:
    def count_pairs(focus: float) -> int:
        settings = SampleSettings(count=200, focus=focus, length=(5, 6))
        sampler = Sampler(GraphIndex(build_graph(SPEC.tools), "bank"), settings)
        takes = {tool.name: set(tool.parameters) - {"customer_id"} for tool in SPEC.tools}
        chains = [chain.tools for chain in sample_chains({"bank": sampler}, {"bank": ["s"]}, settings, 5)]
        ids = {"account_id", "card_id", "payee_id", "goal_id"}
        return sum(
            bool(takes[tool] & ids & set().union(*(takes[other] for other in tools[:place])))
            for tools in chains
            for place, tool in enumerate(tools)
        )

    assert count_pairs(0.9) > 1.1 * count_pairs(0.0)


@pytest.mark.parametrize(
    ("environment", "tool", "finder", "others"),
    [
        ("file_store", "move_file", "find_file", {"search_files", "list_files"}),
        ("calendar", "cancel_event", "find_events", {"list_events"}),
        ("calendar", "invite_contact", "find_contact", {"list_group_members"}),
    ],
)
def test_a_thing_is_looked_up_by_its_name_where_a_tool_does_that(
    environment: str, tool: str, finder: str, others: set[str]
) -> None:
    spec = ENVIRONMENTS.get(environment).describe()
    settings = SampleSettings(count=100, scenarios=1.0, length=(1, 11))
    book = ScenarioBook(scenarios=(scenario("one", {"tool": tool}),))
    sampler = Sampler(GraphIndex(build_graph(spec.tools), environment), settings, book)
    chains = list(sample_chains({environment: sampler}, {environment: ["s1"]}, settings, 5))
    assert sum(finder in chain.tools for chain in chains) >= 95
    assert sum(not others.isdisjoint(chain.tools) for chain in chains) <= 5


def test_a_scenario_is_told_on_every_state_before_one_comes_again() -> None:
    scenarios = tuple(scenario(f"s{number}", FREEZE, LOOK) for number in range(4))
    settings = SampleSettings(count=12, scenarios=1.0, length=(2, 11))
    sampler = Sampler(GraphIndex(build_graph(SPEC.tools), "bank"), settings, ScenarioBook(scenarios=scenarios))
    chains = list(sample_chains({"bank": sampler}, {"bank": ["a", "b", "c", "d"]}, settings, 5))
    assert len({(chain.scenario, chain.state) for chain in chains}) == 12
    assert min(Counter(chain.state for chain in chains).values()) >= 2


def test_another_story_depends_on_the_chain_alone() -> None:
    book = ScenarioBook(scenarios=[scenario(f"s{number}", FREEZE, LOOK | {"share": 0.5}) for number in range(4)])
    settings = SampleSettings(count=8, scenarios=1.0, length=(1, 11))
    samplers = [Sampler(GraphIndex(build_graph(SPEC.tools), "bank"), settings, book) for _ in range(2)]
    chains = list(sample_chains({"bank": samplers[0]}, {"bank": ["s1"]}, settings, 5))
    for chain in chains:
        other = samplers[1].draw_other_story(chain, {chain.scenario})
        assert other == samplers[0].draw_other_story(chain, {chain.scenario}), (
            "what was drawn before counts for nothing"
        )
        assert (other.id, other.state) == (chain.id, chain.state)
        assert other.scenario != chain.scenario
        assert len(other.tools) == len(other.steps)
        assert samplers[1].draw_other_story(chain, {f"s{number}" for number in range(4)}) is None
