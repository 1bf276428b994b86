"""Bad files of the newer commands: settings of training, evaluation, arena; results; references; graphs."""

import gzip
import json
import random

import yaml
from config_cases import VALUES, list_leaves
from input_campaign import Case
from mutation import dump, mutate_bytes, mutate_document

RUN = "done"
SETTINGS = {
    "sft": ("sft", {"model": "nowhere", "dataset": RUN, "out": "sft"}),
    "dpo": ("dpo", {"model": "nowhere", "dataset": RUN, "out": "dpo"}),
    "grpo": ("grpo", {"model": "nowhere", "run": RUN, "out": "grpo"}),
    "eval": ("eval", {"model": "nowhere", "run": RUN, "out": "eval"}),
    "arena": ("arena", {"model": "nowhere", "run": RUN, "out": "arena"}),
    "bench": ("bench", {"model": "nowhere", "out": "bench"}),
}
REFERENCES = (
    "hub:", "hub:a", "hub:a/b/c", "hub:../../etc", "hub:a/b@\x00", "hub:a/b@../x", "hub:a/\x1b[31m",
    "hub:" + "x" * 5000, "hub:a b/c", "hub:-a/b", "hub:a/b@" + "y" * 300, "hub:a/..", "hub:/", "hub:@",
    "file:///etc/passwd", "http://x/y",
)  # fmt: skip
FILTERS = (
    "reward >", "__import__('os').system('id')", "lambda: 1", "(" * 3000, "a" * 20_000, "1 / 0",
    "reward == reward ** 9e9", "composite=nan", "composite=1e400", "=", "composite=", "\x1b[2J", "open('x')",
    "[x for x in ().__class__.__bases__]", "not", "environment ~ '(a|a)*$'", "'" * 99,
)  # fmt: skip
EVALUATION = {
    "model": "m", "run": RUN, "settings": {"samples": 1}, "episodes": 2, "passed": 1,
    "environments": {"bank": {"episodes": 2, "passed": 1}},
}  # fmt: skip
GRAPH = {"tools": [{"server": "s", "name": "a", "input_schema": {"type": "object"}}], "parameters": [], "edges": []}
TRANSCRIPT = {
    "messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "ok"}],
    "calls": [{"name": "list_accounts", "arguments": {"customer_id": "C001"}}],
}


def make_cases(full: bool, seed: int = 0):
    """Return cases of the commands that came last."""
    dice = random.Random(seed)
    times = 10 if full else 2
    for command, settings in SETTINGS.values():
        yield from _settings_cases(command, settings, dice, times)
    for reference in REFERENCES:
        for argv in (("export", reference), ("grpo", "g.yaml")):
            files = {"g.yaml": yaml.safe_dump({"model": "nowhere", "run": reference, "out": "grpo"})}
            yield Case(f"{argv[0]} of {reference[:40]!a}", argv, files)
    for expression in FILTERS:
        for option in ("--min", "--verdict", "--format"):
            argv = ("filter", RUN, "--out", "filtered", option, expression)
            yield Case(f"filter {option} {expression[:40]!a}", argv, run=RUN)
        yield Case(f"calibrate {expression[:40]!a}", ("calibrate", RUN, "--solver", expression, "--runs", "1"), run=RUN)
    for number in range(8 * times):
        lines = [json.dumps({"task": "t", "passed": True, "calls": []}), json.dumps(EVALUATION)]
        data = dump(mutate_document(EVALUATION, dice)) if number % 2 else mutate_bytes(dump(EVALUATION), dice)
        files = {"eval/summary.json": data, "eval/episodes.jsonl": mutate_bytes("\n".join(lines).encode(), dice)}
        yield Case(f"diagnose {number}", ("diagnose", "eval", "--out", "diagnosis"), files)
        yield Case(f"plan {number}", ("plan", "eval", "--count", "10"), files)
        graph = dump(mutate_document(GRAPH, dice))
        graph = gzip.compress(graph) if number % 3 else mutate_bytes(gzip.compress(graph, mtime=0), dice)
        command = ("graph", dice.choice(("show", "edges", "params")), "graph.json.gz")
        yield Case(f"{' '.join(command[:2])} {number}", command, {"graph.json.gz": graph})
        made = dump(mutate_document({"name": "a", "accepted": True, "score": 1.0}, dice))
        for kind in ("duplicates", "taxonomy", "gaps"):
            yield Case(f"env {kind} {number}", ("env", kind, "made"), {"made/a/made.json": made})
        transcript = dump(mutate_document(TRANSCRIPT, dice)) if number % 2 else mutate_bytes(dump(TRANSCRIPT), dice)
        yield Case(
            f"task judge {number}", ("task", "judge", RUN, "--transcript", "t.json"), {"t.json": transcript}, run=RUN
        )
        config = mutate_bytes(b"name: m\nenvironments: [{library: bank, states: {small: 1}}]\n", dice)
        yield Case(
            f"merge {number}", ("merge", RUN, "other", "--out", "merged"), {"other/config.yaml": config}, run=RUN
        )
    for value in ("nan", "inf", "-1", "0", "1e400", "x"):
        yield Case(
            f"serve --idle {value}", ("env", "serve", "bank", "--http", "127.0.0.1:0", "--idle", value, "--actor", "x")
        )
        yield Case(f"serve {value}", ("env", "serve", "bank", "--http", f"127.0.0.1:{value}", "--actor", "x"))
        yield Case(f"probe --mode {value}", ("env", "probe", "--attack", "--mode", value), codes=frozenset({2}))
        yield Case(f"probe --provider {value}", ("env", "probe", "--attack", "--provider", value), codes=frozenset({2}))


def _settings_cases(command: str, settings, dice: random.Random, times: int):
    good = yaml.safe_dump(settings).encode()
    for number in range(2 * times):
        data = mutate_bytes(good, dice)
        yield Case(f"{command} bytes {number}", (command, "c.yaml"), {"c.yaml": data}, run=RUN)
    names = [*settings, "settings", "limit", "seed", "trainer", "rounds", "temperature", "split", "lora", "benchmark"]
    for number in range(4 * times):
        kind = dice.choice(list(VALUES))
        data = {**settings, dice.choice(names): VALUES[kind]}
        text = yaml.safe_dump(data, allow_unicode=True)
        yield Case(f"{command} {kind} {number}", (command, "c.yaml"), {"c.yaml": text}, run=RUN)
    for number in range(times):
        path = dice.choice([path for path, _ in list_leaves(settings)])
        argv = (command, "c.yaml", "--set", f"{path}={dice.choice(['!!python/name:os.system', '&a [*a]', '{', 'nan'])}")
        yield Case(f"{command} --set {number}", argv, {"c.yaml": good}, run=RUN)
