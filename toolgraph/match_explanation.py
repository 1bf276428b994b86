"""Scores of every output of one tool against every parameter of another, with reasons."""

from collections.abc import Iterable
from dataclasses import dataclass

from trajsmith.records import ToolSpec
from trajsmith.toolgraph.build import GraphSettings
from trajsmith.toolgraph.match import Similarity, score_pairs


@dataclass(frozen=True)
class ExplainedPair:
    """One output of a tool against one parameter of another."""

    output: str
    input: str
    score: float
    needed: float
    """Score from which it makes an edge."""
    reasons: tuple[str, ...]
    """Plain words, half sentences."""


def explain_match(
    source: ToolSpec,
    target: ToolSpec,
    settings: GraphSettings,
    similarity: Similarity | None = None,
    tools: Iterable[ToolSpec] = (),
) -> list[ExplainedPair]:
    """All pairs that were looked at, best first.

    Args:
        source: The giving tool.
        target: The taking tool.
        settings: How the graph was built.
        similarity: As in the build.
        tools: All tools of the graph: a link is also judged by what else the two servers have.
    """
    servers = {source.server, target.server}
    near = {tool.full_name: tool for tool in (*tools, source, target) if tool.server in servers}
    model = settings.model
    judged = score_pairs(list(near.values()), source.full_name, target.full_name, model, similarity)
    return [ExplainedPair(pair.output, pair.input, pair.score, model.threshold, pair.reasons) for pair in judged]
