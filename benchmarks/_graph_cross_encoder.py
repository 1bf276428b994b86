"""A small cross-encoder as judge of edges: trained on the other sources, its odds beside the score."""

from typing import Any

import numpy as np
from _graph_model import write_question
from _toolgraph_sets import BARE, FLOW, SMALL, family
from train_toolgraph import LinkSet, best_of_pair, logit

from trajsmith.toolgraph.link_model import logistic

HARDEST = 3
"""Wrong links per right one that it learns from, those of the highest score."""
MOST = 60
"""Right links of one set that it learns from, drawn where there are more."""
LENGTH, BATCH, EPOCHS, RATE = 80, 32, 2, 1e-4


def select_rows(data: LinkSet, score: Any) -> Any:
    """Return the rows that it learns from: best links of judged pairs, right ones and the hardest wrong ones."""
    best = best_of_pair(data.pair, np.where(data.stated, 2.0, score)) & (data.truth >= 0)
    right, wrong = (np.flatnonzero(best & (data.truth == value)) for value in (1, 0))
    if len(right) > MOST:
        right = np.sort(np.random.default_rng(0).choice(right, MOST, replace=False))
    return np.concatenate([right, wrong[np.argsort(-score[wrong])][: HARDEST * len(right)]])


def split_question(data: LinkSet, row: int) -> tuple[str, str]:
    """Return the two texts that it compares: what the first tool gives, and what the second asks for."""
    first, second, *_ = write_question(data, row).split("\n")
    output = data.table.outputs.endpoints[data.output[row]]
    argument = data.table.parameters.endpoints[data.parameter[row]].field
    field_text = "" if output.virtual else f" {output.field.path}: {output.field.description}"
    return first.removeprefix("First tool: ") + field_text, (
        f"{argument.path}: {argument.description} {second.removeprefix('Second tool: ')}"
    )


class CrossEncoder:
    """A pretrained encoder with one number on top, trained by binary cross-entropy."""

    def __init__(self, folder: str) -> None:
        import torch
        from transformers import AutoModelForSequenceClassification, AutoTokenizer

        torch.manual_seed(0)
        self.tokenizer = AutoTokenizer.from_pretrained(folder)
        self.model = AutoModelForSequenceClassification.from_pretrained(folder, num_labels=1)

    def _read(self, pairs: list[tuple[str, str]]) -> Any:
        import torch

        batch = self.tokenizer(pairs, truncation=True, max_length=LENGTH, padding=True, return_tensors="pt")
        with torch.autocast("cpu", torch.bfloat16):
            return self.model(**batch).logits[:, 0].float()

    def train(self, pairs: list[tuple[str, str]], right: Any, weight: Any) -> None:
        """Fit it; `weight` is that of each pair."""
        import torch

        optimizer = torch.optim.AdamW(self.model.parameters(), lr=RATE)
        steps = EPOCHS * -(-len(pairs) // BATCH)
        schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, RATE, total_steps=steps, pct_start=0.1)
        random, loss_of = np.random.default_rng(0), torch.nn.functional.binary_cross_entropy_with_logits
        self.model.train()
        for _ in range(EPOCHS):
            for rows in np.array_split(random.permutation(len(pairs)), -(-len(pairs) // BATCH)):
                loss = loss_of(
                    self._read([pairs[row] for row in rows]),
                    torch.tensor(right[rows], dtype=torch.float32),
                    torch.tensor(weight[rows], dtype=torch.float32),
                )
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                schedule.step()

    def score(self, pairs: list[tuple[str, str]]) -> Any:
        """float [n]: logarithm of the odds."""
        import torch

        self.model.eval()
        order, odds = np.argsort([len(first) + len(second) for first, second in pairs]), np.zeros(len(pairs))
        with torch.inference_mode():
            for begin in range(0, len(pairs), 64):
                rows = order[begin : begin + 64]
                odds[rows] = self._read([pairs[row] for row in rows]).numpy()
        return odds


def refine_by_cross_encoder(
    sets: dict[str, LinkSet], scores: dict[str, Any], folder: str, least: float = 0.02
) -> tuple[dict[str, Any], dict[str, dict[str, float]]]:
    """Scores with the odds of a cross-encoder that has not seen their source, and the areas under both curves by set.

    Only links with at least `least` are read. The weight of the odds is what the other sources' left-out odds say.
    """
    from _graph_model import weigh_odds

    learned = [name for name in sets if name.removesuffix(BARE) not in SMALL]
    chosen = {name: select_rows(sets[name], scores[name]) for name in learned}
    judged = [name + end for name in FLOW for end in ("", BARE)]
    rows = {
        name: np.flatnonzero(best_of_pair(sets[name].pair, scores[name]) & (scores[name] >= least)) for name in judged
    }
    odds: dict[str, Any] = {}
    for source in dict.fromkeys(map(family, judged)):
        pairs: list[tuple[str, str]] = []
        right, weight = [], []
        for name in learned:
            if family(name) != source:
                true = sets[name].truth[chosen[name]] == 1
                pairs += [split_question(sets[name], row) for row in chosen[name].tolist()]
                right.append(true)
                weight.append(np.full(len(true), 1 / np.sqrt(max(1, len(true)))))
        share = np.concatenate(weight)
        encoder = CrossEncoder(folder)
        encoder.train(pairs, np.concatenate(right), share / share.mean())
        for name in judged:
            if family(name) == source:
                odds[name] = encoder.score([split_question(sets[name], row) for row in rows[name].tolist()])
    refined, areas = dict(scores), {}
    for name in judged:
        known = sets[name].truth[rows[name]] >= 0
        y = sets[name].truth[rows[name]][known] == 1
        if y.any() and not y.all():
            areas[name] = {
                "score": _area(y, scores[name][rows[name]][known]),
                "encoder": _area(y, odds[name][known]),
            }
        others = [other for other in judged if family(other) != family(name)]
        judged_rows = {other: sets[other].truth[rows[other]] >= 0 for other in others}
        weigh, shift, scale = weigh_odds(
            [(sets[o], scores[o], rows[o][judged_rows[o]], odds[o][judged_rows[o]]) for o in others]
        )
        moved = np.vectorize(logit)(np.clip(scores[name], 1e-9, 1 - 1e-9))
        moved[rows[name]] += weigh * (odds[name] - shift) / scale
        refined[name] = logistic(moved)
    return refined, areas


def _area(y: Any, x: Any) -> float:
    return float((x[y][:, None] > x[~y]).mean() + 0.5 * (x[y][:, None] == x[~y]).mean())
