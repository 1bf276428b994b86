"""What the matcher thought of two tools: every output against every parameter, with what speaks for and against."""

from collections.abc import Iterable
from dataclasses import dataclass

from toolgraph.build import GraphSettings
from toolgraph.match import Similarity, judge
from trajectory import ToolSpec


@dataclass(frozen=True)
class Considered:
    """One output of a tool against one parameter of another."""

    output: str
    input: str
    score: float
    needed: float
    """Score from which it makes an edge."""
    reasons: tuple[str, ...]
    """Plain words, half sentences."""


def explain(
    source: ToolSpec,
    target: ToolSpec,
    settings: GraphSettings,
    similarity: Similarity | None = None,
    tools: Iterable[ToolSpec] = (),
) -> list[Considered]:
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
    judged = judge(list(near.values()), source.full_name, target.full_name, model, similarity)
    return [Considered(pair.output, pair.input, pair.score, model.threshold, pair.reasons) for pair in judged]
