"""What evidence adds to the edges of the open sets: recorded calls of other tasks, and execution.

    python benchmarks/evidence.py                # recorded calls: five folds of tasks, sets left out of the rule
    python benchmarks/evidence.py --tau2 CHECKOUT --bfcl FOLDER    # and with look-ups probed on the recorded tasks
    python benchmarks/evidence.py --train        # also writes the rule that ships, toolgraph/data/evidence.json
    python benchmarks/evidence.py --execution    # bundled environments: the edges of schemas against execution
    python benchmarks/evidence.py --envfactory CHECKOUT --count 4    # the same on published environments

Recorded: the tasks of a set are split into five folds (seeded). For each fold, the recorded calls of the *other* folds
are the evidence; conversations of one task are always in one fold. Predicted is what `graph edges` would print with
weight 2 or 3. An edge whose only witness is the held-out fold is not seen. "left out F1" scores with every core edge of
the set; "fold's gold" only with the core edges that the held-out fold itself shows (all other edges of the gold are
neither right nor wrong). The weights of the rule come from the other sets. With an environment at hand (tau2-bench's
airline in the sandbox; BFCL's classes, where
`pip install --no-deps --target FOLDER bfcl-eval` put them), look-ups are probed on the tasks of the
evidence folds; links are tried too, from the recorded calls of those tasks. Needs scipy.
"""

import argparse
import asyncio
import json
import math
import random
import shutil
import statistics
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, get_args

import msgspec
import numpy as np
from _bfcl import BfclSource, classes
from _toolgraph_sets import GoldSet, data_folder, gold_set, read_rows
from scipy.optimize import minimize

from trajsmith.environments import EnvironmentSource
from trajsmith.environments.adapters.tau2.settings import PRELOAD, Tau2Settings, build_payload, get_environment_name
from trajsmith.environments.library import ENVIRONMENTS
from trajsmith.environments.native_source import build_library_source
from trajsmith.environments.sandbox.settings import Mode, SandboxSettings
from trajsmith.environments.sandbox.source import SandboxSource
from trajsmith.environments.sources import EnvironmentSettings, expand_settings, open_source
from trajsmith.toolgraph.evidence.execution import ExecutionEvidence, execute_links
from trajsmith.toolgraph.evidence.graph_evidence import GraphEvidence, compute_schema_scores
from trajsmith.toolgraph.evidence.missing_lookups import add_lookups
from trajsmith.toolgraph.evidence.recorded_flows import RecordedEvidence, mine_recordings
from trajsmith.toolgraph.evidence.recordings import RecordedCall, Recording, parse_recording, read_recordings
from trajsmith.toolgraph.evidence.score_rule import (
    PRIOR,
    UNMATCHED,
    compute_contrast_share,
    compute_recorded_terms,
    is_proved,
    logit,
)
from trajsmith.toolgraph.graph import LinkKey
from trajsmith.toolgraph.link_model import load_link_model
from trajsmith.toolgraph.settings import ExecutionSettings

_SCRATCH = Path(tempfile.mkdtemp(prefix="trajsmith-evidence-"))
FOLDS = 5
CONTRAST = 0.75
"""Share of the values from elsewhere that must fail before a link counts as decided."""
PULL = 0.5
"""Weight of the distance to the prior."""
SIMULATIONS = (
    "tau2_button_airline",
    "tau2_claude-sonnet-4-5_airline",
    "tau2_ft-gpt-4.1_airline",
    "tau2_gpt-4.1_airline",
)
CASES = ("tau2_airline", "tau2_airline + simulations", "bfcl_public", "apibank")
RECIPE = (
    "a pair of tools is a true one if gold has it as core; its best link is the example; pairs that gold does not "
    "judge are left out. Every case (set, kind of recording) has the same weight, each of its five folds a fifth. "
    "The loss is that of logistic regression plus PULL / 2 times the squared distance to the prior weights, whose "
    "signs are kept. The bias is then moved to the best mean F1, smoothed over neighbouring values."
)


@dataclass(frozen=True)
class Case:
    """One set with one kind of recordings."""

    name: str
    gold: GoldSet
    recordings: tuple[Recording, ...]
    source: EnvironmentSource | None = None
    """Where links are tried, besides."""

    @property
    def family(self) -> str:
        """Return the name of the sets that are left out together."""
        return self.gold.name


@lru_cache(maxsize=8)
def case(name: str) -> Case:
    gold = gold_set(name.split(" ")[0])
    if gold.name == "apibank":
        return Case(name, gold, tuple(_dialogues(data_folder() / "sets" / "apibank" / "dialogues.jsonl")))
    recordings = read_recordings(data_folder() / "sets" / gold.name / "replay.jsonl")
    return Case(name, gold, tuple(recordings + (list(_simulations()) if "+" in name else [])))


def probed(one: Case, tau2: Path | None, bfcl: Path | None, mode: Mode) -> Case:
    """The case with look-ups probed on its tasks, where their environment is at hand."""
    if one.gold.name == "tau2_airline" and tau2 is not None:
        return asyncio.run(_in_tau2(one, tau2, mode))
    if one.gold.name == "bfcl_public" and bfcl is not None:
        return asyncio.run(_in_bfcl(one, bfcl))
    return one


async def _in_tau2(one: Case, checkout: Path, mode: Mode) -> Case:
    """Played with the database that lies beside the gold; checkouts do not always have it."""
    domain = _SCRATCH / "tau2" / "domains" / "airline"
    domain.mkdir(parents=True, exist_ok=True)
    for name in ("db.json", "policy.md", "tasks.json"):
        shutil.copyfile(data_folder() / "sets" / "tau2_airline" / name, domain / name)
    chosen = Tau2Settings(domain="airline", path=checkout, data=_SCRATCH, max_states=1)
    sandbox = SandboxSettings(mode=mode, imports=PRELOAD, load_seconds=60)
    source = SandboxSource(get_environment_name(chosen), "tau2", build_payload(chosen), sandbox)
    state = (await source.states(0))[0]
    session = await source.open()
    try:
        played = [await add_lookups(recording, state, session) for recording in one.recordings]
    finally:
        await session.close()
    return replace(one, recordings=tuple(played), source=source)


async def _in_bfcl(one: Case, folder: Path) -> Case:
    rows = read_rows(data_folder() / "sets" / one.gold.name / "replay.jsonl")
    states = {row["task_id"]: row["initial_config"] for row in rows}
    source = BfclSource(classes(folder), one.gold.tools, next(iter(states.values())))
    session = await source.open()
    played = [await add_lookups(recording, states[recording.task], session) for recording in one.recordings]
    return replace(one, recordings=tuple(played), source=source)


def _simulations() -> Iterator[Recording]:
    folder = data_folder() / "trajectories"
    for name in SIMULATIONS:
        yield from read_recordings(folder / f"{name}.json")
    for number, row in enumerate(json.loads((folder / "tau_bench_gpt-4o_airline.json").read_bytes())):
        simulation = {
            "task_id": row["task_id"],
            "user_text": row["info"]["task"]["instruction"],
            "messages": row["traj"],
        }
        yield parse_recording(simulation, number, "tau-bench")


def _dialogues(path: Path) -> Iterator[Recording]:
    for row in read_rows(path):
        steps: list[str | RecordedCall] = []
        for message in row["messages"]:
            if message["role"] == "User":
                steps.append(message["text"])
            elif message["role"] == "API":
                result = message["result"]
                fine = result.get("exception") is None
                steps.append(RecordedCall(message["api_name"], "", message["param_dict"], result.get("output"), fine))
        yield Recording(row["id"], tuple(steps))


def folds(recordings: Sequence[Recording], seed: int = 0) -> Iterator[tuple[list[Recording], list[Recording]]]:
    """(evidence, held out) for each fold."""
    tasks = sorted({one.task for one in recordings})
    random.Random(seed).shuffle(tasks)
    for number in range(FOLDS):
        held = set(tasks[number::FOLDS])
        yield [one for one in recordings if one.task not in held], [one for one in recordings if one.task in held]


async def _execute(one: Case, scores: Mapping[LinkKey, float], known: Sequence[Recording]) -> ExecutionEvidence:
    """Try the links in the environment, which names its server and wraps its lists otherwise than the set does."""
    source = one.source
    assert source is not None
    full = {tool.name: tool.full_name for tool in one.gold.tools}
    there = {full[tool.name]: tool.full_name for tool in (await source.spec()).tools if tool.name in full}
    here = {name: mine for mine, name in there.items()}
    bare = {tool.full_name for tool in one.gold.tools if (tool.output_schema or {}).get("type") == "array"}
    likely = {
        (there[s], there[t], output.replace("$", "$.result", 1) if s in bare else output, parameter): score
        for (s, t, output, parameter), score in scores.items()
        if s in there and t in there
    }
    executed = await execute_links(source, likely, ExecutionSettings(), 0, known)
    changes = {row.key: {"source": here[row.source], "target": here[row.target]} for row in executed.links}
    for key, change in changes.items():
        if change["source"] in bare:
            change["output"] = key[2].replace("$.result", "$", 1)
    return replace(
        executed,
        links=tuple(msgspec.structs.replace(row, **changes[row.key]) for row in executed.links),
        parameters={(here[tool], parameter): tried for (tool, parameter), tried in executed.parameters.items()},
        absent=frozenset(
            (here[tool], path.replace("$.result", "$", 1) if here[tool] in bare else path)
            for tool, path in executed.absent
        ),
    )


@dataclass(frozen=True)
class Fold:
    """One fold, read."""

    gold: GoldSet
    held: GoldSet
    """The same with only the core edges that the held-out tasks show."""
    keys: list[LinkKey]
    terms: Any
    """float64 [links, terms]; rows of links that recordings say nothing of hold the schema score alone."""
    spoken: Any
    """bool [links]: recordings say something."""
    evidence: GraphEvidence

    def edges(self, weights: Any) -> dict[tuple[str, str], tuple[float, int]]:
        """Pair of tools to the margin over the threshold of its best link, and that link's row."""
        margin = np.where(self.spoken, self.terms @ weights, self.terms[:, 1])
        for row, key in enumerate(self.keys if self.evidence.executed else ()):
            margin[row] = self._execute(margin[row], key)
        best: dict[tuple[str, str], tuple[float, int]] = {}
        for row, key in enumerate(self.keys):
            if margin[row] > best.get(key[:2], (-math.inf, 0))[0]:
                best[key[:2]] = float(margin[row]), row
        return best

    def _execute(self, margin: float, key: LinkKey) -> float:
        cut = logit(load_link_model().threshold)
        return logit(self.evidence.score_by_execution(key, 1 / (1 + math.exp(-margin - cut)))) - cut

    def figures(self, weights: Any, held: bool = False) -> dict[str, Any]:
        edges = self.edges(weights).items()
        rows = [{"source": s, "target": t, "score": margin} for (s, t), (margin, _) in edges if margin >= 0]
        return (self.held if held else self.gold).edge_figures(rows)


@lru_cache(maxsize=16)
def read_folds(name: str) -> tuple[Fold, ...]:
    return folds_of(case(name))


def folds_of(one: Case) -> tuple[Fold, ...]:
    tools = one.gold.tools
    return tuple(
        _fold(one, mine_recordings(known, tools), mine_recordings(held, tools), known)
        for known, held in folds(one.recordings)
    )


def _fold(one: Case, mined: RecordedEvidence, held: RecordedEvidence, known: Sequence[Recording]) -> Fold:
    gold, schemas = one.gold, compute_schema_scores(one.gold.tools)
    executed = [] if one.source is None else [asyncio.run(_execute(one, schemas, known))]
    evidence = GraphEvidence(mined, executed)
    keys = sorted(schemas.keys() | mined.flows.keys() | evidence.links.keys())
    cut = load_link_model().threshold
    terms, spoken = [], []
    for key in keys:
        schema = schemas.get(key, UNMATCHED)
        recorded_terms = compute_recorded_terms(key, schema, mined, cut)
        spoken.append(recorded_terms is not None)
        terms.append(recorded_terms or [1.0, logit(schema) - logit(cut)] + [0.0] * (len(PRIOR) - 2))
    plain = {tool.full_name: tool.name for tool in gold.tools}
    shown = {(plain[s], plain[t]) for (s, t, _, _), flow in held.flows.items() if flow.tasks}
    rows = [
        {**row, "tier": row.get("tier", "core") if (row["source"], row["target"]) in shown else "extra"}
        for row in gold.edges
    ]
    return Fold(gold, replace(gold, edges=rows), keys, np.array(terms), np.array(spoken), evidence)


def fit(names: Sequence[str]) -> Any:
    """Weights from these cases."""
    prior = np.array(list(PRIOR.values()))
    bounds = [(None, None)] + [(0, None) if value > 0 else (None, 0) for value in prior[1:]]
    weights = prior
    for _ in range(3):
        x, y, share = _examples(names, weights)

        def loss(w: Any, x: Any = x, y: Any = y, share: Any = share) -> float:
            z = x @ w
            return float((share * (np.logaddexp(0, z) - y * z)).sum() + PULL / 2 * ((w - prior) ** 2).sum())

        weights = minimize(loss, weights, bounds=bounds).x
    shifts = np.linspace(-1.5, 2.5, 41)
    moved = [weights + np.eye(len(prior))[0] * shift for shift in shifts]
    means = [statistics.mean(mean_figure(read_folds(name), w)["f1"] for name in names) for w in moved]
    smooth = np.convolve(np.pad(means, 3, "edge"), np.ones(7) / 7, "valid")
    return moved[int(np.argmax(smooth))]


def _examples(names: Sequence[str], weights: Any) -> tuple[Any, Any, Any]:
    x, y, share = [], [], []
    for name in names:
        for fold in read_folds(name):
            plain = {tool.full_name: tool.name for tool in fold.gold.tools}
            own = []
            for (source, target), (_, row) in fold.edges(weights).items():
                pair = plain[source], plain[target]
                if fold.spoken[row] and fold.gold.universe.judged(pair) and pair not in fold.gold.spared:
                    own.append((fold.terms[row], pair in fold.gold.core))
            x += [terms for terms, _ in own]
            y += [label for _, label in own]
            share += [100 / FOLDS / len(own) / len(names)] * len(own)
    return np.array(x), np.array(y, float), np.array(share)


def mean_figure(folds: Sequence[Fold], weights: Any, held: bool = False) -> dict[str, float]:
    """Mean of the folds."""
    figures = [fold.figures(weights, held) for fold in folds]
    return {key: statistics.mean(one[key] for one in figures) for key in ("f1", "precision", "recall")}


def recorded(train: bool, tau2: Path | None, bfcl: Path | None, mode: Mode) -> None:
    """Print the table of recorded calls."""
    rows: list[list[Any]] = []
    left_out: dict[str, Any] = {}
    schema = np.array([0.0, 1.0] + [0.0] * (len(PRIOR) - 2))
    everything = fit(CASES)
    for name in CASES:
        one = case(name)
        weights = fit([other for other in CASES if case(other).family != one.family])
        with_probes = probed(one, tau2, bfcl, mode)
        steps = [(name, read_folds(name)), (f"{name}, look-ups probed", folds_of(replace(with_probes, source=None)))]
        if with_probes.source is not None:
            steps.append((f"{name}, and links tried", folds_of(with_probes)))
        for label, folds in steps:
            if label != name and with_probes is one:
                continue
            all_gold, own_gold = mean_figure(folds, weights), mean_figure(folds, weights, held=True)
            left_out[label] = {"all_gold": _rounded(all_gold), "fold_gold": _rounded(own_gold)}
            before, shipped = mean_figure(folds, schema)["f1"], mean_figure(folds, everything)["f1"]
            rows.append([label, len(one.recordings), before, *all_gold.values(), own_gold["f1"], shipped])
    head = ["recorded calls", "conversations", "schemas F1", "left out F1", "precision", "recall", "fold's gold F1"]
    _table([*head, "shipped F1"], rows)
    weights = {name: round(float(value), 3) for name, value in zip(PRIOR, everything, strict=True)}
    if train:
        path = Path(__file__).parents[1] / "toolgraph" / "data" / "evidence.json"
        stored = {"recipe": RECIPE, "trained_on": list(CASES), "weights": weights, "left_out": left_out}
        path.write_text(json.dumps(stored, indent=1) + "\n", "utf-8")


def executed(sources: Sequence[EnvironmentSource], calls: int) -> None:
    """Print how the edges of schemas agree with execution.

    A link is decided if values from elsewhere fail and some value of the output was tried: true if execution proves it,
    false if none worked. Precision and recall are those of "the schema score reaches the threshold"; "open" are links
    that schemas say and execution could not decide.
    """
    rows: list[list[Any]] = []
    total = np.zeros(4)
    for source in sources:
        row, counts = asyncio.run(_agreement(source, calls))
        rows.append(row)
        total += counts
    rows.append(["all", *[""] * 4, *_agreed(total), sum(row[-1] for row in rows)])
    head = ["environment", "tools", "called", "calls", "CPU s", "proved", "false", "schema precision", "schema recall"]
    _table([*head, "open"], rows)


async def _agreement(source: EnvironmentSource, calls: int) -> tuple[list[Any], Any]:
    tools = (await source.spec()).tools
    scores, cut = compute_schema_scores(tools), load_link_model().threshold
    began = time.process_time()
    executed = await execute_links(source, scores, ExecutionSettings(calls=calls), seed=0)
    spent = time.process_time() - began
    decided = [row for row in executed.links if compute_contrast_share(row) >= CONTRAST and row.worked + row.failed > 0]
    counts = np.zeros(4)
    for row in decided:
        if is_proved(row) or row.worked == 0:
            counts[2 * (scores.get(row.key, 0.0) >= cut) + is_proved(row)] += 1
    open_links = sum(score >= cut for score in scores.values()) - int(counts[2] + counts[3])
    row = [source.name, len(tools), len(executed.worked), executed.calls, spent, *_agreed(counts), open_links]
    return row, counts


def _agreed(counts: Any) -> list[Any]:
    """(proved, false, precision, recall) of counts by 2 * (schemas say so) + (execution says so)."""
    missed, false, true = counts[1], counts[2], counts[3]
    shares = [float(true / whole) if whole else None for whole in (true + false, true + missed)]
    return [int(true + missed), int(counts[0] + false), *shares]


def _rounded(figures: dict[str, float]) -> dict[str, float]:
    return {key: round(value, 4) for key, value in figures.items()}


def _table(head: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    print("| " + " | ".join(head) + " |\n|" + "---|" * len(head))
    for row in rows:
        print("| " + " | ".join(_cell(cell) for cell in row) + " |")
    print()


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.3f}" if isinstance(value, float) else str(value)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--train", action="store_true")
    parser.add_argument("--tau2", type=Path, help="a checkout of tau2-bench")
    parser.add_argument("--mode", default="default", choices=get_args(Mode), help="how tau2-bench is run")
    parser.add_argument("--bfcl", type=Path, help="the folder where bfcl-eval was installed with pip --target")
    parser.add_argument("--execution", action="store_true")
    parser.add_argument("--calls", type=int, default=ExecutionSettings().calls)
    parser.add_argument("--envfactory", type=Path, help="a checkout of EnvFactory")
    parser.add_argument("--count", type=int, default=4, help="environments of it")
    arguments = parser.parse_args()
    if arguments.execution:
        sizes = {"small": 3, "medium": 1}
        executed([build_library_source(name, sizes) for name in ENVIRONMENTS.names()], arguments.calls)
    if arguments.envfactory:
        environments = expand_settings(EnvironmentSettings.model_validate({"envfactory": str(arguments.envfactory)}))
        step = max(1, len(environments) // arguments.count)
        executed([open_source(one) for one in environments[::step][: arguments.count]], arguments.calls)
    if arguments.execution or arguments.envfactory:
        return
    try:
        recorded(arguments.train, arguments.tau2, arguments.bfcl, arguments.mode)
    finally:
        shutil.rmtree(_SCRATCH)


if __name__ == "__main__":
    main()
