"""A local language model as judge of uncertain edges: its odds of "yes" beside the score, for the ablation."""

from typing import Any

import numpy as np
from _toolgraph_sets import BARE, FLOW, family
from scipy.optimize import minimize
from train_toolgraph import LinkSet, best_of_pair

from trajsmith.toolgraph.link_model import logistic

UNSURE = (0.08, 0.6)
"""Scores between which the model is asked."""
WORDS = 200
"""Characters of a description that it reads."""
MOST = 60
"""Links of one set that it is asked about, drawn where there are more."""
BATCH = 16


def find_unsure_pairs(data: LinkSet, score: Any) -> Any:
    """Return the rows of the best links of judged pairs about which the score is unsure."""
    low, high = UNSURE
    rows = np.flatnonzero(best_of_pair(data.pair, score) & (data.truth >= 0) & (score >= low) & (score < high))
    return rows if len(rows) <= MOST else np.sort(np.random.default_rng(0).choice(rows, MOST, replace=False))


def write_question(data: LinkSet, row: int) -> str:
    """Return what the model is asked about a link."""
    output = data.table.outputs.endpoints[data.output[row]]
    parameter = data.table.parameters.endpoints[data.parameter[row]]
    source, target = data.table.tools[output.tool], data.table.tools[parameter.tool]
    field = "its result" if output.virtual else f"the field {output.field.path} of its result"
    return (
        f"First tool: {source.name}. {source.description[:WORDS]}\n"
        f"Second tool: {target.name}. {target.description[:WORDS]}\n"
        f"The second tool needs the argument {parameter.field.path}. {parameter.field.description[:WORDS]}\n"
        f"Can that argument be taken from {field}, after the first tool was called? Answer yes or no."
    )


def ask_odds(folder: str, questions: list[str]) -> Any:
    """Return float [n]: logarithm of the odds of "yes" against "no" as the first word of the answer."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder, padding_side="left")
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.bfloat16).eval()
    yes, no = (tokenizer.encode(word, add_special_tokens=False)[0] for word in ("Yes", "No"))
    texts = [f"<|im_start|>user\n{text}<|im_end|>\n<|im_start|>assistant\n" for text in questions]
    order, odds = np.argsort([len(text) for text in texts]), np.zeros(len(texts))
    for begin in range(0, len(texts), BATCH):
        rows = order[begin : begin + BATCH]
        batch = tokenizer([texts[row] for row in rows], return_tensors="pt", padding=True)
        with torch.inference_mode():
            last = model(**batch, logits_to_keep=1).logits[:, -1].float()
        odds[rows] = (last[:, yes] - last[:, no]).numpy()
    return odds


def refine_scores(
    sets: dict[str, LinkSet], scores: dict[str, Any], folder: str
) -> tuple[dict[str, Any], dict[str, float]]:
    """Scores with the model's odds beside them, weighed by what the other sources say; and its AUC by set."""
    names = [name + end for name in FLOW for end in ("", BARE)]
    rows = {name: find_unsure_pairs(sets[name], scores[name]) for name in names}
    questions = [write_question(sets[name], row) for name in names for row in rows[name].tolist()]
    odds = dict(
        zip(names, np.split(ask_odds(folder, questions), np.cumsum([len(rows[n]) for n in names])[:-1]), strict=True)
    )
    refined, areas = dict(scores), {}
    for name in names:
        y, x = sets[name].truth[rows[name]] == 1, odds[name]
        if y.any() and not y.all():
            areas[name] = float((x[y][:, None] > x[~y]).mean() + 0.5 * (x[y][:, None] == x[~y]).mean())
        others = [other for other in names if family(other) != family(name)]
        weight, shift, scale = weigh_odds([(sets[o], scores[o], rows[o], odds[o]) for o in others])
        prior = np.log(scores[name] / (1 - scores[name]))
        moved = prior.copy()
        moved[rows[name]] += weight * (odds[name] - shift) / scale
        refined[name] = logistic(moved)
    return refined, areas


def weigh_odds(parts: list[tuple[LinkSet, Any, Any, Any]]) -> tuple[float, float, float]:
    """Return the weight of the model's odds, and their mean and spread."""
    odds = np.concatenate([part[3] for part in parts])
    score = np.concatenate([score[rows] for _, score, rows, _ in parts])
    y = np.concatenate([data.truth[rows] == 1 for data, _, rows, _ in parts])
    shift, scale = float(odds.mean()), float(odds.std() or 1.0)
    prior, x = np.log(score / (1 - score)), (odds - shift) / scale

    def loss(w: Any) -> float:
        z = prior + w[0] * x + w[1]
        return float((np.logaddexp(0, z) - y * z).sum())

    return float(max(0.0, minimize(loss, [0.0, 0.0], method="Nelder-Mead").x[0])), shift, scale
