"""How well a value of an output fits a parameter, by its own side: identifiers, named values, whatever a tool works on.

The ways in which values flow, each with a measure from 0 to 1:

* an identifier goes where that thing is asked for: by its name, by the entity around a bare `id`, from a list that is
  named after the thing (`reservations: [..]`), or because the parameter's description names the thing;
* a named value (departure_time) goes where the same value is asked for, by words and by description;
* a tool that works on whatever it is given (`text`, `amount`, `image`) takes results that are of such a kind;
* the parameter's description names the tool that gives it.
"""

from typing import Any

import numpy as np

from trajsmith.toolgraph.candidate_pairs import NUMERIC, SPECIFIC, CandidatePairs, select_last_word
from trajsmith.toolgraph.endpoint_table import TYPES
from trajsmith.toolgraph.lexicon import VERB_CLASSES
from trajsmith.toolgraph.promised_outputs import PROMISES, compute_promised_fit, compute_promises, get_promise_name

_VERB = {name: row for row, name in enumerate(VERB_CLASSES)}
OTHER_HEAD = 0.7
"""What is left of a fit where both identify the same thing, but one is its id and the other its number."""
WORKERS = (_VERB["compute"], _VERB["send"])


MEASURES = ("identifier", "named", "carried", "resource")


def compute_fit_features(pairs: CandidatePairs) -> dict[str, Any]:
    """The measures, what weakens them, and the promises of tools that declare no outputs."""
    virtual = pairs.out("virtual")
    types = _types(pairs)
    mentioned = np.isin(pairs.p * np.int64(len(pairs.table.tools)) + pairs.source, pairs.table.mentioned)
    columns = {name: np.zeros(len(pairs), np.float32) for name in (*MEASURES, *map(get_promise_name, PROMISES))}
    for rows, compute in ((np.flatnonzero(~virtual), _declared_measures), (np.flatnonzero(virtual), _virtual_measures)):
        if len(rows):
            for name, values in compute(CandidatePairs(pairs.table, pairs.o[rows], pairs.p[rows])).items():
                columns[name][rows] = values
    return {**columns, "told": mentioned, **types}


def _declared_measures(pairs: CandidatePairs) -> dict[str, Any]:
    types = _types(pairs)
    return {
        "identifier": _identifier(pairs) * types["possible"],
        "named": _named(pairs) * types["possible"],
        "carried": _carried(pairs, types),
        "resource": _resource(pairs),
    }


def _virtual_measures(pairs: CandidatePairs) -> dict[str, Any]:
    promises = compute_promises(pairs)
    fit = compute_promised_fit(promises)
    identifies = pairs.into("identifies") | pairs.kind("in", "token")
    measures = {"identifier": fit * identifies, "named": fit * ~identifies}
    return {**measures, **{get_promise_name(name): values for name, values in promises.items()}}


def _types(pairs: CandidatePairs) -> dict[str, Any]:
    left, right = pairs.outs.types[pairs.o], pairs.ins.types[pairs.p]
    known = (left > 0) & (right > 0)
    numeric = ((left & NUMERIC) > 0) & ((right & NUMERIC) > 0)
    listed = ((left | right) & TYPES["array"]) > 0
    equal = known & (((left & right) > 0) | numeric)
    boolean = (left & TYPES["boolean"]) > 0
    differ = known & ~equal & ~listed
    return {
        "types_equal": equal,
        "types_differ": differ,
        "number_to_text": known & ((left & NUMERIC) > 0) & ((right & TYPES["string"]) > 0),
        "possible": np.where(boolean, 0.05, np.where(differ, 0.5, 1.0)),
    }


def _identifier(pairs: CandidatePairs) -> Any:
    """0 where the parameter identifies nothing."""
    outs, ins = pairs.outs, pairs.ins
    both = pairs.out("identifies") & pairs.into("identifies")
    secret = pairs.kind("out", "token", "secret") != pairs.kind("in", "token", "secret")
    entity, own_thing = ins.entity[pairs.p], outs.entity[pairs.o]
    same = (outs.name_key[pairs.o] == ins.name_key[pairs.p]) & ~(pairs.out("bare") & pairs.into("bare"))
    bare = pairs.out("bare")
    other = select_last_word(outs.own[pairs.o]) != select_last_word(ins.own[pairs.p])
    heads = np.where(other & pairs.out("headed") & pairs.into("headed"), OTHER_HEAD, 1.0)
    of_output = pairs.cover(own_thing, entity) * heads
    of_source = pairs.cover(pairs.table.nouns[pairs.source], entity) * bare * heads
    meant = pairs.cover(ins.meant[pairs.p], own_thing) * heads
    named = np.maximum.reduce([same * 1.0, of_output * np.where(bare, 0.95, 0.85), of_source * 0.65])
    ids = np.where(both & ~secret, np.maximum(named, np.maximum(meant * 0.8, 0.15)), 0.0)
    words = np.maximum(pairs.cover(own_thing, entity), pairs.cover(outs.described[pairs.o], entity))
    lists = (
        pairs.into("identifies")
        & ~pairs.out("identifies")
        & pairs.out("primitives")
        & ~pairs.kind("out", "text", "status")
    )
    list_fit = np.where(lists, 0.82 * words, 0.0)
    token = np.where((outs.name_key[pairs.o] == ins.name_key[pairs.p]) & pairs.kind("in", "token"), 1.0, 0.0)
    return np.maximum.reduce([ids, list_fit, token])


def _named(pairs: CandidatePairs) -> Any:
    """0 where either side is an identifier, or the parameter takes anything."""
    outs, ins = pairs.outs, pairs.ins
    plain = ~pairs.out("identifies") & ~pairs.into("identifies") & ~pairs.kind("in", "token")
    own, wanted = outs.own[pairs.o], ins.own[pairs.p]
    both_bare = pairs.out("bare") & pairs.into("bare")
    near = pairs.cover(outs.entity[pairs.o], ins.entity[pairs.p])
    same = outs.name_key[pairs.o] == ins.name_key[pairs.p]
    exact = np.where(same, np.where(both_bare, 0.5 + 0.3 * near, 0.95), 0.0)
    partly = 0.8 * pairs.cover(own, wanted) * pairs.cover(wanted, own)
    text = pairs.cosine(outs.text_vector[pairs.o], ins.text_vector[pairs.p])
    shared = (outs.kinds[pairs.o] & ins.kinds[pairs.p] & SPECIFIC) > 0
    list_of_values = pairs.out("primitives")
    meaning = np.where(shared & list_of_values, 0.5 + 0.4 * text, text * np.where(shared, 0.8, 0.55))
    output_described = (
        pairs.cover(outs.described[pairs.o], wanted) * np.where(list_of_values, 0.85, 0.45) * (text > 0.3)
    )
    parameter_described = pairs.cover(ins.described[pairs.p], own) * ~pairs.out("bare") * shared * (text > 0.3) * 0.85
    value = np.maximum.reduce([exact, partly, meaning, output_described, parameter_described]) * np.where(
        pairs.into("carrier"), 0.6, 1.0
    )
    mixed = pairs.out("identifies") != pairs.into("identifies")
    return np.where(plain, value, np.where(mixed, 0.4 * text, 0.0))


def _carried(pairs: CandidatePairs, types: dict[str, Any]) -> Any:
    """1 for what a computing or sending tool can work on: the type fits, it is no receipt, it is new."""
    words = pairs.kind("in", "text", "data")
    worker = pairs.target_verb(_VERB["compute"]) | (pairs.target_verb(_VERB["send"]) & words)
    amount = pairs.kind("in", "money") & pairs.kind("out", "money") & ((pairs.ins.types[pairs.p] & NUMERIC) > 0)
    worker |= pairs.target_verb(_VERB["create"]) & pairs.source_verb(_VERB["compute"]) & amount
    takes = worker & pairs.into("carrier") & pairs.into("required") & ~pairs.into("choice")
    fit = types["types_equal"] | types["number_to_text"]
    money = pairs.kind("in", "money") & ~pairs.kind("out", "money", "measure")
    boolean = (pairs.outs.types[pairs.o] & TYPES["boolean"]) > 0
    media_given, taken = pairs.table.gives[pairs.source], pairs.table.takes[pairs.target]
    other = pairs.out("bare") & (media_given > 0) & (taken > 0) & ((media_given & taken) == 0)
    medium = pairs.kind("out", "image", "audio", "video") & pairs.kind("in", "text", "measure", "money")
    useless = pairs.out("receipt") | boolean | money | other | medium | pairs.out("echo")
    return takes & fit & ~useless & pairs.same_server


def _resource(pairs: CandidatePairs) -> Any:
    """1 where no field says what it is, and what the source gives is what the target takes, by descriptions."""
    vague = (pairs.outs.kinds[pairs.o] & SPECIFIC) == 0
    media_given, taken = pairs.table.gives[pairs.source], pairs.table.takes[pairs.target]
    anonymous = ~pairs.out("identifies") & pairs.out("bare") & pairs.into("carrier") & vague & ~pairs.out("receipt")
    return anonymous & ((media_given & taken) > 0) & pairs.same_server


def has_kind_clash(pairs: CandidatePairs) -> Any:
    """Both sides say what kind of value they are, and not the same."""
    left, right = pairs.outs.kinds[pairs.o], pairs.ins.kinds[pairs.p]
    other = pairs.outs.name_key[pairs.o] != pairs.ins.name_key[pairs.p]
    return other & ((left & SPECIFIC) > 0) & ((right & SPECIFIC) > 0) & ((left & right) == 0)
