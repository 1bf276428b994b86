"""Every option and argument of every command with values of the wrong kind, read from the commands themselves."""

import random
import typing

from input_campaign import Case

TEXTS = (
    "",
    "a/b",
    "../../etc/passwd",
    "a\nb",
    "\x1b[31mred",
    "a\u202eb",
    "x" * 4000,
    "-1",
    "none",
    "{",
    "*",
    "é\udc80",
)
NUMBERS = ("-1", "0", "1" + "0" * 30, "x", "", "1.5", "nan", "inf", "1e400", "true", "-0")
# No device is among them: as root, a command that replaces its output would replace the machine's.
PATHS = (
    "missing",
    "missing/deeper/file",
    ".",
    "empty",
    "binary",
    "line.yaml",
    "tools.jsonl",
    "/proc/self/mem",
    "r" * 300,
    "a\nb",
    "closed",
    "",
)
FILES = {
    "empty": b"",
    "binary": bytes(range(256)) * 40,
    "line.yaml": "name: tiny\nenvironments: [{library: bank, states: {small: 1}}]\nsample: {count: 2}\n",
    "mcp.json": '{"mcpServers": {"away": {"command": "no-such-server"}}}',
    "tools.jsonl": '{"server": "s", "name": "a", "inputSchema": {"type": "object", "properties": {}}}\n',
}
GOOD = {
    "run": ["line.yaml", "--run", "other", "--dry-run"],
    "resume": ["done"],
    "export": ["done"],
    "report": ["done"],
    "replay": ["done"],
    "sample": ["done"],
    "ground": ["done"],
    "tasks": ["done"],
    "vary": ["done"],
    "play": ["done"],
    "verify": ["done"],
    "filter": ["done", "--out", "filtered"],
    "repair": ["done", "--out", "repaired"],
    "audit": ["done"],
    "card": ["done"],
    "show": ["done", "x"],
    "compress": ["done"],
    "find": ["done", "--limit", "3"],
    "copy": ["done", "memory://copies/done"],
    "push": ["done", "me/data", "--dry-run"],
    "plugins": [],
    "sft": ["line.yaml"],
    "grpo": ["line.yaml"],
    "dpo": ["line.yaml"],
    "eval": ["line.yaml"],
    "arena": ["line.yaml"],
    "diagnose": ["done", "--out", "diagnosis"],
    "leaderboard": ["missing", "--out", "scores.md"],
    "merge": ["done", "--out", "merged"],
    "plan": ["done", "--count", "1000"],
    "calibrate": ["done", "--solver", "scripted:0.1", "--runs", "2"],
    "task tools": [],
    "task call": ["tool", "{}"],
    "task judge": ["done", "--transcript", "empty"],
    "models export-gguf": ["missing"],
    "init": ["project"],
    "import": ["tools.jsonl", "--run", "imported", "--config", "line.yaml"],
    "env list": [],
    "env show": ["bank"],
    "env check": ["bank", "--budget", "1", "--threshold", "0"],
    "env gen": ["--from-tables", "missing", "--out", "made", "--dry-run"],
    "env push": ["missing", "me/shops", "--dry-run"],
    "env bundle": ["missing", "--out", "bundle", "--name", "acme-shops"],
    "env export": ["missing", "--out", "awm"],
    "env expand": ["missing", "--count", "9", "--config", "line.yaml"],
    "env sources": ["--from-domains", "missing"],
    "env duplicates": ["--library"],
    "env taxonomy": ["--library"],
    "env gaps": ["--library"],
    "env grow": ["missing", "--config", "line.yaml"],
    "env split": ["missing"],
    "env explore": ["mcp.json", "--dry-run"],
    "graph build": ["--tools", "tools.jsonl", "--out", "graph.json"],
    "graph edges": ["done/graph.json"],
    "graph params": ["done/graph.json"],
    "graph show": ["done/graph.json"],
    "graph export": ["done/graph.json", "--out", "graph.graphml"],
    "graph sample": ["done/graph.json", "--count", "1", "--length", "2", "3"],
    "prompts list": [],
    "prompts render": ["judge", "--id", "x", "--run", "done"],
    "configs copy": ["quickstart", "copied.yaml"],
    "configs": [],
}
"""A sensible call of each command; one value of it is replaced at a time."""
MORE = {
    "audit": (["--tau2", "missing", "--domain", "airline"], ["--harbor", "."]),
    "export": (["done", "--format", "hub_traces"],),
    "push": (["done", "me/data", "--dry-run", "--traces"],),
}
"""Other calls of a command whose options exclude each other."""
MOST = 700
"""Cases with --full, of more than twice as many."""
LEFT_OUT = {"env serve", "env pull", "task serve", "env probe", "models fetch-demo", "bench"}
"""Commands that wait for clients, look only at the machine, or fetch from the Hub or a package index."""
OUTPUTS = {"--bfcl", "--html", "--json", "--out", "target"}
GROWS = {"resume", "sample", "ground", "tasks", "vary", "play", "verify", "export", "report"}


def walk(group, path=()):
    """Yield (words, command) of all commands below a group."""
    for name, command in sorted(group.commands.items()):
        if getattr(command, "commands", None):
            yield from walk(command, (*path, name))
        else:
            yield (*path, name), command


def list_values(command, parameter):
    """Return values of the wrong kind for a parameter; none for a flag."""
    hint = str(typing.get_type_hints(command.callback).get(parameter.name, bool))
    if "bool" in hint:
        return ()
    if "Path" in hint:
        return PATHS
    return NUMBERS if "int" in hint or "float" in hint else TEXTS


def replace_argument(words, good, parameter, value, position):
    """Return the call with one value replaced, or an option added; as many values as the option takes."""
    values = [value] * max(parameter.nargs, 1)
    if parameter.param_type_name == "argument":
        rest = good[position + 1 :] if position < len(good) and not good[position].startswith("--") else good[position:]
        return [*words, *good[:position], *values, *rest]
    name = max(parameter.opts, key=len)
    if name in good:
        at = good.index(name)
        return [*words, *good[: at + 1], *values, *good[at + 1 + len(values) :]]
    return [*words, *good, name, *values]


def replace_each(name, words, good, command):
    """Return a case for each parameter of a command and each wrong value of it."""
    cases, position = [], 0
    for parameter in command.params:
        for value in list_values(command, parameter):
            argv = replace_argument(words, good, parameter, value, position)
            run = "done" if any(word.startswith("done") for word in argv) else ""
            label = max(parameter.opts or [parameter.name], key=len)
            cases.append(
                Case(
                    f"{name} {label}={value[:40]!a}",
                    tuple(argv),
                    FILES,
                    run=run,
                    writes=frozenset({value} if label in OUTPUTS else ()),
                    grows=name in GROWS,
                )
            )
        position += parameter.param_type_name == "argument"
    return cases


def make_cases(full: bool, seed: int = 0):
    """Return a case for each parameter and wrong value; a sample of those without `full`."""
    import typer.main

    from trajsmith.cli.app import app

    cases, missing = [], []
    for words, command in walk(typer.main.get_command(app)):
        name = " ".join(words)
        if name in LEFT_OUT:
            continue
        if name not in GOOD:
            missing.append(name)
            continue
        for good in (GOOD[name], *MORE.get(name, ())):
            cases += replace_each(name, words, good, command)
        good = GOOD[name]
        cases.append(
            Case(f"{name}: unknown option", (*words, *good, "--no-such-option"), FILES, frozenset({2}), run="done")
        )
        cases.append(Case(f"{name}: no arguments", tuple(words), FILES))
    assert not missing, f"no sensible call is listed for {missing}"
    return random.Random(seed).sample(cases, MOST if full else 120)
