from xml.etree import ElementTree

import yaml
from samples import ENVIRONMENTS, make_items, make_spec, make_summary

from trajsmith.export import Statistics, build_card, build_plots, compute_tool_coverage

SPECS = [make_spec(name) for name in ENVIRONMENTS]


def gathered(count: int) -> Statistics:
    statistics = Statistics()
    for item in make_items(count):
        statistics.add(*item)
    return statistics


def texts(svg: str) -> list[str]:
    root = ElementTree.fromstring(svg)
    return ["".join(node.itertext()) for node in root.iter("{http://www.w3.org/2000/svg}text")]


def plots_of(count: int, **changes) -> dict[str, str]:
    summary, statistics = make_summary(**changes), gathered(count)
    return build_plots(summary, statistics, compute_tool_coverage(summary, SPECS, statistics))


def test_every_picture_is_svg_and_shows_its_numbers():
    plots = plots_of(40)
    assert all(ElementTree.fromstring(svg).tag.endswith("svg") for svg in plots.values())
    assert "accepted" in texts(plots["plots/funnel.svg"]) and "141 44 %" in texts(plots["plots/funnel.svg"])
    assert "4 of 6 tools" in texts(plots["plots/coverage.svg"])
    assert {"1", "2", "3"} < set(texts(plots["plots/turns.svg"]))


def test_diversity_counts_pairs_as_conversations_come():
    growth = gathered(40).growth()
    assert [seen for seen, _ in growth] == [1, 2, 4, 8, 16, 30]
    assert growth[0][1] >= 3 and [pairs for _, pairs in growth] == sorted(pairs for _, pairs in growth)


def test_a_run_without_accepted_conversations_has_pictures():
    for svg in plots_of(0, funnel={}, environments={}).values():
        assert ElementTree.fromstring(svg).tag == "{http://www.w3.org/2000/svg}svg"


def test_the_card_names_splits_pictures_and_models():
    statistics = gathered(8)
    statistics.models["agent"]["some/model-4b"] += 1
    plots = plots_of(8)
    card = build_card(
        make_summary(), SPECS, statistics, splits={"train": 5, "test": 1}, plots=list(plots)
    )  # fmt: skip
    front = yaml.safe_load(card.split("---\n")[1])
    assert front["models"] == ["some/model-4b"]
    assert [entry["path"] for entry in front["configs"][0]["data_files"]] == ["data/train-*", "data/test-*"]
    assert all(f"({name})" in card for name in plots)
    assert "| test | 1 |" in card and "| agent | some/model-4b |" in card
