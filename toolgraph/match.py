"""How well what one tool gives fits what another takes: the interface of matching.

EnvFactory (3.3.1, step 1) compares embeddings of all pairs against one threshold. Here every pair that could be is
measured (`trajsmith.toolgraph.fit_features`, `trajsmith.toolgraph.flow_features`) and scored by a small model
(`trajsmith.toolgraph.link_model`); embeddings, where a model is configured, are one more voice in the likeness of
texts.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from trajsmith.records import ToolSpec
from trajsmith.toolgraph.candidate_pairs import CandidatePairs
from trajsmith.toolgraph.candidates import find_home_pairs
from trajsmith.toolgraph.endpoint_table import EndpointTable, build_table
from trajsmith.toolgraph.fit_features import compute_fit_features
from trajsmith.toolgraph.link_model import PRIOR, LinkModel, compute_link_terms
from trajsmith.toolgraph.link_scoring import CHUNK, compute_link_features

Similarity = Callable[[Sequence[str]], Any]
"""Encoder of texts: n texts to float32 [n, dimensions], of length one, so that a product is the likeness of meaning."""

REASONS: dict[str, tuple[str, str]] = {
    "identifier": ("it identifies the thing that is asked for", ""),
    "named": ("names and descriptions say the same", ""),
    "carried": ("the tool works on whatever it is given, and this is such a result", ""),
    "resource": ("by their descriptions the one gives what the other takes", ""),
    "pipe": ("many tools of the server pass this on", ""),
    "told": ("the description of the parameter names the source", ""),
    "circular": ("", "the source asks for the same thing itself"),
    "echo": ("", "the result only says again what the call was asked with"),
    "gap": ("", "another tool gives it better"),
    "read_gap": ("", "it can be looked up instead"),
    "home_gap": ("", "a tool of its own server gives it"),
    "abroad_named": ("", "the tools are of different servers"),
    "abroad_identifier": ("", "the tools are of different servers"),
    "source_searches": ("the source is a search", ""),
    "source_creates_id": ("", "the source makes a new one"),
    "source_creates": ("", "the source makes something else"),
    "source_changes": ("", "the source changes something; its result is a receipt"),
    "target_authenticates": ("", "the target asks for what a person knows of themselves"),
    "target_reads": ("", "the target is itself a look-up"),
    "named_for": ("the source is named for giving it", ""),
    "oneself": ("", "it is about the person who asks"),
    "new": ("", "the parameter names something that is not there yet"),
    "optional": ("", "the parameter may be left out"),
    "choice": ("", "the parameter is a choice: everybody can see what may stand there"),
    "default": ("", "the parameter has a default"),
    "control": ("", "the parameter says how to answer, not about what"),
    "kinds_clash": ("", "the values are of different kinds"),
    "types_differ": ("", "the types exclude one another"),
    "receipt": ("", "the output only says how the call went"),
    "cover": ("the source gives much of what the target requires", ""),
    "back_cover": ("", "the target gives what the source requires"),
    "backwards": ("", "the target gives the id that the source asks for: it comes first"),
    "promise": ("", "the source declares no outputs"),
    "promise_head": ("by its name, the source reads the thing that is asked for", ""),
    "promise_noun": ("the name of the source mentions the thing that is asked for", ""),
    "promise_name": ("by its name, the source gives this value", ""),
    "promise_returned": ("its description says that the source returns it", ""),
    "promise_described": ("the description of the source mentions it", ""),
    "promise_kind": ("the source gives values of this kind", ""),
    "promise_subject": ("both tools are about the same thing", ""),
    "promise_only": ("the server has few look-ups", ""),
    "promise_select": ("the target acts on one of the things that the source shows", ""),
    "promise_select_name": ("the target names one of the things that the source shows", ""),
    "promise_names": ("the parameter names the thing that the source reads", ""),
    "promise_belongs": ("another tool keeps such a thing for what the source reads", ""),
    "promise_media": ("by their names the one gives what the other takes", ""),
    "promise_media_text": ("the source gives a text, and the target takes one", ""),
    "promise_media_number": ("the source gives a number, and the target takes one", ""),
    "promise_media_clash": ("", "the source gives something else than the target takes"),
    "promise_worker": ("the tool works on whatever it is given", ""),
    "promise_creates": ("the source makes such a thing", ""),
    "promise_same_name": ("the name of the source has words of the parameter", ""),
    "promise_meaning": ("the texts of both are alike", ""),
    "promise_token": ("the source is named for giving out a token", ""),
    "promise_open": ("some look-up must give this identifier", ""),
    "promise_other": ("", "the source is about other things"),
    "promise_id": ("it is an identifier", ""),
    "promise_told": ("the description of the parameter names the source", ""),
    "promise_circular": ("", "the source asks for the same thing itself"),
    "promise_gap": ("", "another tool gives it better"),
    "promise_read_gap": ("", "it can be looked up instead"),
    "promise_abroad": ("", "no schema says that the source gives it, and it is of another server"),
    "promise_searches": ("the source is a search", ""),
    "promise_changes": ("", "the source changes something; its result is a receipt"),
    "promise_authenticates": ("", "the target asks for what a person knows of themselves"),
    "promise_reads": ("", "the target is itself a look-up"),
    "promise_oneself": ("", "it is about the person who asks"),
    "promise_new": ("", "the parameter names something that is not there yet"),
    "promise_optional": ("", "the parameter may be left out"),
    "promise_choice": ("", "the parameter is a choice: everybody can see what may stand there"),
    "promise_default": ("", "the parameter has a default"),
    "promise_control": ("", "the parameter says how to answer, not about what"),
    "promise_backwards": ("", "the target gives the id that the source asks for: it comes first"),
}
"""Term to the half sentence that is said if it speaks for, or against, a link."""
TOLD = 0.25
"""Logarithm of odds that a term must bring to be told."""


@dataclass(frozen=True)
class ScoredPair:
    """One output of a tool against one parameter of another."""

    output: str
    input: str
    score: float
    reasons: tuple[str, ...]
    """Plain words, half sentences, the weightiest first."""


def score_pairs(
    tools: Sequence[ToolSpec], source: str, target: str, model: LinkModel, similarity: Similarity | None = None
) -> list[ScoredPair]:
    """Every output of a tool against every parameter of another, best first.

    Args:
        tools: The tools of both servers: a link is also judged by what else there is.
        source: Full name of the giving tool.
        target: Full name of the taking tool.
        model: The score.
        similarity: As in the build.
    """
    ordered = sort_by_server(tools)
    table = build_table(ordered, similarity)
    names = [tool.full_name for tool in ordered]
    giver, taker = names.index(source), names.index(target)
    o, p, features = compute_link_features(table, *_with_context(table, giver, taker))
    chosen = (table.outputs.tool[o] == giver) & (table.parameters.tool[p] == taker)
    o, p, features = o[chosen], p[chosen], {name: values[chosen] for name, values in features.items()}
    scores, parts = (
        model.score(features),
        compute_link_terms(features) * np.array([model.weights[name] for name in PRIOR]),
    )
    pairs = [
        ScoredPair(
            table.outputs.endpoints[o[row]].field.path,
            table.parameters.endpoints[p[row]].field.path,
            float(scores[row]),
            _reasons(parts[row]),
        )
        for row in range(len(o))
    ]
    return sorted(
        [*pairs, *_hopeless(table, giver, taker, pairs)], key=lambda pair: (-pair.score, pair.input, pair.output)
    )


def sort_by_server(tools: Sequence[ToolSpec]) -> list[ToolSpec]:
    """The same tools, those of a server together, by name: the order in which they are given decides nothing."""
    return sorted(tools, key=lambda tool: (tool.server, tool.name))


def _with_context(table: EndpointTable, giver: int, taker: int) -> tuple[Any, Any]:
    """All pairs of the two tools, among all candidates."""
    o, p = find_home_pairs(table)
    outputs, taken = np.flatnonzero(table.outputs.tool == giver), np.flatnonzero(table.parameters.tool == taker)
    all_o = np.concatenate([o, np.repeat(outputs, len(taken))])
    all_p = np.concatenate([p, np.tile(taken, len(outputs))])
    both = np.unique(np.stack([all_p, all_o], 1), axis=0)
    return both[:, 1], both[:, 0]


def _reasons(parts: Any) -> tuple[str, ...]:
    order = np.argsort(-np.abs(parts))
    names = list(PRIOR)
    reasons = [
        REASONS[names[row]][int(parts[row] < 0)] for row in order if names[row] in REASONS and abs(parts[row]) >= TOLD
    ]
    return tuple(reason for reason in reasons if reason)


def _hopeless(table: EndpointTable, giver: int, taker: int, scored: Sequence[ScoredPair]) -> list[ScoredPair]:
    """Pairs that were dropped before they were scored."""
    known = {(pair.output, pair.input) for pair in scored}
    outputs, taken = np.flatnonzero(table.outputs.tool == giver), np.flatnonzero(table.parameters.tool == taker)
    o, p = np.repeat(outputs, len(taken))[:CHUNK], np.tile(taken, len(outputs))[:CHUNK]
    differ = compute_fit_features(CandidatePairs(table, o, p))["types_differ"]
    return [
        ScoredPair(
            output, parameter, 0.0, ("the types exclude one another" if differ[row] else "nothing about them fits",)
        )
        for row in range(len(o))
        if (
            (output := table.outputs.endpoints[o[row]].field.path),
            (parameter := table.parameters.endpoints[p[row]].field.path),
        )
        not in known
    ]
