"""Damaged runs: every file of a finished run cut, flipped, emptied, exchanged or gone, and every command on it."""

import random
from dataclasses import replace
from pathlib import Path

import orjson
from campaign import Case
from mutation import HOSTILE, dump, mutate_bytes, mutate_document

COMMANDS = {
    "resume": ("resume", "done"),
    "export": ("export", "done"),
    "export trl": ("export", "done", "--format", "trl"),
    "rejected": ("export", "done", "--include", "rejected"),
    "report": ("report", "done", "--all"),
    "replay": ("replay", "done"),
    "verify": ("verify", "done"),
    "play": ("play", "done"),
    "tasks": ("tasks", "done", "--audit", "--mutants", "2"),
    "audit": ("audit", "done"),
    "filter": ("filter", "done", "--out", "filtered"),
    "card": ("card", "done"),
    "push": ("push", "done", "me/data", "--dry-run"),
    "graph": ("graph", "show", "done/graph.json"),
    "edges": ("graph", "edges", "done/graph.json"),
    "sample": ("graph", "sample", "done/graph.json", "--count", "2", "--length", "2", "3"),
    "grpo": ("grpo", "grpo.yaml"),
    "eval": ("eval", "eval.yaml"),
    "prompts": ("prompts", "render", "judge", "--id", "x", "--run", "done"),
    "env": ("env", "show", "done/config.yaml"),
}
GROWS = {"resume", "verify", "play"}
CONFIGS = {
    "grpo.yaml": "model: nowhere\nrun: done\nout: grpo\n",
    "eval.yaml": "model: nowhere\nrun: done\nout: eval\n",
}
FILES = (
    "config.yaml", "chains.jsonl", "grounded.jsonl", "tasks.jsonl", "trajectories.jsonl", "verdicts.jsonl",
    "summary.json", "graph.json", "ledger/play.jsonl", "ledger/verify.jsonl", "ledger/ground.jsonl", "states/*",
    "environments/*", "dataset/README.md", "dataset/*/*.parquet", "usage.jsonl", "dataset/config.yaml",
)  # fmt: skip


def mutate_lines(data: bytes, dice: random.Random) -> bytes:
    """Return JSON Lines with one line mutated as a document, doubled, moved or gone."""
    lines = data.splitlines(keepends=True)
    if not lines:
        return data
    at = dice.randrange(len(lines))
    kind = dice.choice(("mutate", "mutate", "mutate", "double", "gone", "swap", "hostile"))
    if kind == "double":
        lines.insert(at, lines[at])
    elif kind == "gone":
        del lines[at]
    elif kind == "swap":
        other = dice.randrange(len(lines))
        lines[at], lines[other] = lines[other], lines[at]
    elif kind == "hostile":
        lines[at] = dump(dice.choice(HOSTILE)) + b"\n"
    else:
        lines[at] = dump(mutate_document(orjson.loads(lines[at]), dice)) + b"\n"
    return b"".join(lines)


def damage(path: Path, dice: random.Random) -> bytes:
    """Return damaged content of a file."""
    data = path.read_bytes()
    if dice.random() < 0.1:
        return b""
    if path.suffix in (".jsonl", ".json") and dice.random() < 0.7:
        return mutate_lines(data, dice) if path.suffix == ".jsonl" else dump(mutate_document(orjson.loads(data), dice))
    return mutate_bytes(data, dice)


def make_cases(full: bool, seed: int = 0, run: Path | None = None):
    """Return cases of one damaged file and one command each.

    Args:
        run: A finished run.
    """
    assert run is not None
    dice = random.Random(seed)
    for number in range(400 if full else 60):
        name = dice.choice(FILES)
        paths = sorted(run.glob(name))
        if not paths:
            continue
        path = dice.choice(paths)
        label = dice.choice(list(COMMANDS))
        inner = str(path.relative_to(run))
        files = {**CONFIGS, f"done/{inner}": damage(path, dice)}
        writes = frozenset({path.name} if label in GROWS else ())  # made again from what is whole
        case = Case(f"run {number}: {label} with {inner}", COMMANDS[label], files, run="done", writes=writes)
        yield replace(case, grows=label in GROWS)
    for label, command in COMMANDS.items():
        yield Case(f"run: {label} of nothing", command, CONFIGS, frozenset({2}))
