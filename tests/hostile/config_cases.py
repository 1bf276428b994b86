"""Bad configurations: every setting with values that somebody types by mistake, or to do harm."""

import random
import re

import yaml
from input_campaign import Case

TINY = """\
name: tiny
seed: 1
run: run
environments:
  - {library: bank, states: {small: 1}}
sample: {count: 2, length: [3, 4]}
"""
VALUES = {
    "huge": 10**30,
    "64 bits": 2**63,
    "negative": -1,
    "true": True,
    "empty": "",
    "none": None,
    "list": [],
    "mapping": {},
    "not a number": float("nan"),
    "infinite": float("inf"),
    "NUL": "a\0b",
    "slash": "../a/b",
    "newline": "a\nb",
    "escape": "\x1b[31mred",
    "bidi": "a\u202eb",
    "long": "x" * 5000,
    "list of list": [[[]]],
    "half": 0.5,
}
TEXTS = {
    "empty": "",
    "a list": "- a\n- b\n",
    "a number": "5\n",
    "open bracket": "name: [oh",
    "tab": "name: a\n\tseed: 1\n",
    "NUL": TINY.replace("tiny", "ti\0ny"),
    "not UTF-8": TINY.encode().replace(b"tiny", b"t\xff\xfe"),
    "UTF-16": TINY.encode("utf-16"),
    "byte order mark": b"\xef\xbb\xbf" + TINY.encode(),
    "Windows line ends": TINY.replace("\n", "\r\n"),
    "old Mac line ends": TINY.replace("\n", "\r"),
    "binary": bytes(range(256)) * 20,
    "deep lists": "name: " + "[" * 5000 + "]" * 5000 + "\n",
    "deep mappings": "name: " + "{a: " * 3000 + "1" + "}" * 3000 + "\n",
    "deep block": "".join(f"{' ' * depth}a:\n" for depth in range(2000)),
    "laughs": "a: &a [x, x, x, x, x, x, x, x, x, x]\n"
    + "".join(f"{chr(98 + n)}: &{chr(98 + n)} [{', '.join([f'*{chr(97 + n)}'] * 10)}]\n" for n in range(8))
    + TINY,
    "laughs in a setting": "x: &a [b, b, b, b, b, b, b, b, b, b]\n" + TINY.replace("[3, 4]", "*a"),
    "alias of itself": "name: &a [*a]\n",
    "mapping of itself": TINY + "play: &p {x: *p}\n",
    "alias unknown": "name: *nobody\n",
    "python object": 'name: !!python/object/apply:os.system ["touch hacked"]\n' + TINY.partition("\n")[2],
    "binary tag": "name: !!binary aGVsbG8=\n" + TINY.partition("\n")[2],
    "a set": TINY.replace("[3, 4]", "!!set {3, 4}"),
    "a pair list": TINY.replace("[3, 4]", "!!pairs [a: 3]"),
    "own tag": TINY.replace("tiny", "!mine tiny"),
    "key twice": TINY + "seed: 2\n",
    "number as key": TINY + "5: 2\n",
    "null as key": TINY + "~: 2\n",
    "list as key": TINY + "? [a, b]\n: 2\n",
    "mapping as key": TINY + "? {a: b}\n: 2\n",
    "merge of nothing": TINY + "<<: 5\n",
    "two documents": TINY + "---\n" + TINY,
    "date": TINY.replace("tiny", "2024-01-01"),
    "sexagesimal": TINY.replace("seed: 1", "seed: 1:30:00"),
    "octal": TINY.replace("seed: 1", "seed: 0777777777777777777777777"),
    "hex": TINY.replace("seed: 1", "seed: 0xZZ"),
    "number of 5000 digits": TINY.replace("seed: 1", "seed: " + "9" * 5000),
    "exponent": TINY.replace("count: 2", "count: 1e400"),
    "long key": TINY + "k" * 20000 + ": 1\n",
    "unknown key with escape": TINY + '"\\e[31mred": 1\n',
    "unknown key with newline": TINY + '"a\\nb": 1\n',
    "unknown key with NUL": TINY + '"a\\0b": 1\n',
    "lone surrogate": TINY.replace("tiny", '"\\ud800"'),
    "name with slash": TINY.replace("tiny", "a/b"),
    "name with newline": TINY.replace("tiny", '"a\\nb"'),
    "name with NUL": TINY.replace("tiny", '"a\\0b"'),
    "name empty": TINY.replace("tiny", '""'),
    "name of spaces": TINY.replace("tiny", '"   "'),
    "name a truth": TINY.replace("tiny", "true"),
    "run with NUL": TINY.replace("run: run", 'run: "a\\0b"'),
    "run with newline": TINY.replace("run: run", 'run: "a\\nb"'),
    "run too long": TINY.replace("run: run", f"run: {'r' * 300}"),
    "run empty": TINY.replace("run: run", 'run: ""'),
    "run a device": TINY.replace("run: run", "run: /dev/null"),
    "run in proc": TINY.replace("run: run", "run: /proc/self/run"),
    "run is the configuration": TINY.replace("run: run", "run: line.yaml"),
    "count 10**30": TINY.replace("count: 2", f"count: {10**30}"),
    "count true": TINY.replace("count: 2", "count: true"),
    "count 2.5": TINY.replace("count: 2", "count: 2.5"),
    "length true": TINY.replace("[3, 4]", "[true, 4]"),
    "length a number": TINY.replace("[3, 4]", "40"),
    "length of three": TINY.replace("[3, 4]", "[1, 2, 3]"),
    "length huge": TINY.replace("[3, 4]", f"[3, {10**30}]"),
    "negative seed": TINY.replace("seed: 1", "seed: -1"),
    "huge seed": TINY.replace("seed: 1", f"seed: {10**30}"),
    "seed true": TINY.replace("seed: 1", "seed: true"),
    "no environments": TINY.replace("  - {library: bank, states: {small: 1}}", "  []"),
    "environments a text": re.sub(r"environments:\n.*\n", "environments: [x]\n", TINY),
    "environments a number": re.sub(r"environments:\n.*\n", "environments: [5]\n", TINY),
    "environments a mapping": re.sub(r"environments:\n.*\n", "environments: {library: bank}\n", TINY),
    "library with slash": TINY.replace("library: bank", "library: ../bank"),
    "library with NUL": TINY.replace("library: bank", 'library: "a\\0b"'),
    "python with NUL": TINY.replace("library: bank", 'python: "a\\0b.py"'),
    "python a folder": TINY.replace("library: bank", "python: ."),
    "python with newline": TINY.replace("library: bank", 'python: "a\\nb.py"'),
    "states huge": TINY.replace("small: 1", f"small: {10**30}"),
    "states many": TINY.replace("small: 1", "small: 100000000"),
    "states negative": TINY.replace("small: 1", "small: -1"),
    "states true": TINY.replace("small: 1", "small: true"),
    "twice the same": TINY.replace("sample:", "  - {library: bank}\nsample:"),
    "decontaminate a folder": TINY + "decontaminate: [.]\n",
    "decontaminate NUL": TINY + 'decontaminate: ["a\\0b"]\n',
    "decontaminate a device": TINY + "decontaminate: [/dev/zero]\n",
    "prompts NUL": TINY + 'prompts: "a\\0b"\n',
    "phrases NUL": TINY.replace("{library: bank,", '{library: bank, phrases: "a\\0b",'),
    "concurrency huge": TINY + f"engine: {{concurrency: {10**30}}}\n",
    "rate nan": TINY + "vary: {rates: {missing: .nan}}\n",
    "rate infinite": TINY + "vary: {rates: {missing: .inf}}\n",
    "rates negative": TINY + "vary: {rates: {missing: -0.5}}\n",
    "budget nan": TINY + "budget: {max_cost: .nan}\n",
    "budget negative": TINY + "budget: {max_cost: -1}\n",
    "threshold nan": TINY + "duplicates: {threshold: .nan}\n",
    "split over one": TINY + "export: {split: {test: 2}}\n",
    "shards huge": TINY + f"export: {{rows_per_shard: {10**30}}}\n",
    "call_seconds nan": TINY.replace("library: bank", "python: x.py, sandbox: {call_seconds: .nan}"),
    "call_seconds huge": TINY.replace("library: bank", f"python: x.py, sandbox: {{call_seconds: {10**30}}}"),
    "model url": TINY + 'models: {m: {model: x, base_url: "http://["}}\nroles: {agent: m}\n',
    "model url a file": TINY + 'models: {m: {model: x, base_url: "file:///etc/passwd"}}\nroles: {agent: m}\n',
    "model url with escape": TINY + 'models: {m: {model: x, base_url: "http://a\\e[31m/"}}\nroles: {agent: m}\n',
    "model name NUL": TINY + 'models: {"a\\0b": {model: x}}\nroles: {agent: "a\\0b"}\n',
    "role unknown": TINY + "roles: {agnet: scripted}\n",
    "role of no model": TINY + "roles: {agent: nobody}\n",
}
OVERRIDES = (
    "count=3",
    "=",
    "=5",
    "sample.count",
    "sample.count=",
    "sample.count=x",
    f"sample.count={10**30}",
    "sample.count=true",
    "sample.count=-1",
    "sample.count=[",
    "sample.count={",
    "sample.count=!!python/name:os.system",
    "sample..count=1",
    ".=1",
    "sample.count.deep.deeper=1",
    "environments.5.library=bank",
    "environments.-1.library=bank",
    "environments.x.library=bank",
    "environments=[x]",
    "environments=",
    "environments.0=5",
    "sample=5",
    "sample=[]",
    "sample.length=40",
    "sample.length=[4,3]",
    "sample.length=[true,4]",
    "seed=-1",
    f"seed={10**30}",
    "seed=true",
    "seed=0.5",
    "name=a/b",
    'name="a\\nb"',
    'name="a\\0b"',
    'run="a\\0b"',
    "run=",
    "run=/dev/null",
    "run=/proc/x",
    "\x1b[31m=1",
    "name=\x1b[31m",
    "a" * 3000 + "=1",
    "name=" + "[" * 3000,
    "name=" + "{a: " * 2000,
    "name=*a",
    "name=&a [*a]",
    "write.direct=.nan",
    "play.candidates=1e400",
    "vary.rates=5",
    "vary.rates.nothing=1",
    "models=5",
    "models.m=5",
    "models.m={model: x, api: x}",
    "models.m={model: x, api: responses, provider: vllm}",
    "roles=5",
    "roles.agent=nobody",
    "export.formats=x",
    "export.formats=[x]",
    "language=xx",
    "engine.kind=x",
    "sample.method=x",
    "verify.checks=[x]",
    "verify.rewards.names=[x]",
    "accept=5",
    "accept={count: 0}",
    f"accept={{count: {10**30}}}",
    "accept={by: {variant: {x: 1}}}",
    "__class__=1",
    "sample.__class__=1",
    "sample.model_fields=1",
    "prompts=/dev/zero",
    "prompts=nowhere",
    "decontaminate=x",
)


def list_leaves(value, path=()):
    """Yield the dotted paths of all settings, with their values."""
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            yield from list_leaves(inner, (*path, key))
    else:
        yield ".".join(map(str, path)), value


def make_cases(full: bool, seed: int = 0):
    """Return the cases: texts, overrides, and settings with wrong values (a larger sample with `full`)."""
    for name, text in TEXTS.items():
        yield Case(f"config: {name}", ("run", "line.yaml", "--dry-run"), {"line.yaml": text})
    for text in OVERRIDES:
        yield Case(f"--set {text[:60]!a}", ("run", "line.yaml", "--dry-run", "--set", text), {"line.yaml": TINY})
    from trajsmith.pipeline.config import RunConfig

    defaults = RunConfig(name="x", environments=[{"library": "bank", "states": {"small": 1}}]).model_dump(mode="json")
    defaults["environments"] = [{"library": "bank", "states": {"small": 1}}]
    pairs = [(path, kind) for path, _ in list_leaves({**defaults, "environments": 0}) for kind in VALUES]
    dice = random.Random(seed)
    for path, kind in dice.sample(pairs, 400 if full else 60):
        data = yaml.safe_load(TINY)
        inside = data
        *parts, last = path.split(".")
        for part in parts:
            inside = inside.setdefault(part, {})
        inside[last] = VALUES[kind]
        text = yaml.safe_dump(data, allow_unicode=True)
        yield Case(f"{path}: {kind}", ("run", "line.yaml", "--dry-run"), {"line.yaml": text})
