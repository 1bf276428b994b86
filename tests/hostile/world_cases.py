"""Bad linked worlds: mutated files, and files made to do harm, in every command that takes one."""

import random
from pathlib import Path

import yaml
from config_cases import VALUES
from input_campaign import Case
from mutation import mutate_bytes, mutate_document

WORLDS = Path(__file__).parents[2] / "environments" / "worlds"
PLAIN = "name: w\ndescription: d\nenvironments: [bank, calendar]\nscenarios:\n"
STORY = "  - {id: a, text: t, steps: [{tool: bank.list_accounts}, {tool: calendar.list_events}]}\n"
LIST = "tool: bank.list_accounts"
TEXTS = {
    "scenarios a number": "scenarios: 5\n",
    "scenarios true": "scenarios: true\n",
    "scenarios text": "scenarios: abc\n",
    "steps a number": "scenarios: [{id: a, steps: 5}]\n",
    "steps a mapping": "scenarios: [{id: a, steps: {a: 1}}]\n",
    "step a number": "scenarios: [{id: a, steps: [5]}]\n",
    "tool a list": "scenarios: [{id: a, steps: [{tool: []}]}]\n",
    "tool of nobody": "scenarios: [{id: a, steps: [{tool: a.b}]}]\n",
    "no dot": "scenarios: [{id: a, steps: [{tool: a}]}]\n",
    "dots": "scenarios: [{id: a, steps: [{tool: '...'}]}]\n",
    "itself": "environments: [w.yaml, w.yaml]\n",
    "a world": "environments: [office, moving]\n",
    "linked": "environments: [{linked: w.yaml}, bank]\n",
    "all": "environments: ['*', '*']\n",
    "one": "environments: [bank]\n",
    "twice": "environments: [bank, bank]\n",
    "nobody": "environments: [bank, nobody]\n",
    "a number": "environments: [bank, 5]\n",
    "a list": "environments: [bank, []]\n",
    "a path": "environments: [bank, ../bank]\n",
    "NUL": 'environments: [bank, "a\\0b"]\n',
    "two kinds": "environments: [bank, {library: bank, python: x.py}]\n",
    "no file": "environments: [bank, {python: x.py}]\n",
    "many": f"environments: [{', '.join(['bank'] * 500)}]\n",
    "clock of nobody": "clock: nobody\n",
    "clock": "clock: 5\n",
    "link": "links: [{from: bank, to: calendar}]\n",
    "link dots": "links: [{from: ..., to: bank.accounts, names: {a: b}}]\n",
    "link nobody": "links: [{from: x.y, to: bank.accounts, names: {a: b}}]\n",
    "rows": "links: [{from: bank.x, to: calendar.y, rows: 1000000000000000000000}]\n",
    "skip": "links: [{from: bank.x, to: calendar.y, skip_from: -1}]\n",
    "words": "words: {a: nobody}\n",
    "words list": "words: [a]\n",
    "roles": "roles: 5\n",
    "name slash": "name: a/b\n",
    "name escape": 'name: "\\e[31m"\n',
    "name long": f"name: {'x' * 5000}\n",
    "same as itself": f"scenarios: [{{id: a, steps: [{{{LIST}, same_as: {{a: list_accounts.a}}}}]}}]\n",
    "same as nobody": f"scenarios: [{{id: a, steps: [{{{LIST}, same_as: {{customer_id: x.y}}}}]}}]\n",
    "template": "scenarios: [{id: a, text: '{% for x in range(10**9) %}{% endfor %}', steps: [{tool: bank.a}]}]\n",
    "unsafe": "environments: [bank, {mcp: {command: [touch, hacked]}}]\n",
}  # fmt: skip
COMMANDS = {
    "show": ("env", "show", "w.yaml"),
    "check": ("env", "check", "w.yaml", "--budget", "1", "--threshold", "0"),
    "run": ("run", "c.yaml", "--dry-run"),
    "named": ("env", "show", "c.yaml"),
}


def make_cases(full: bool, seed: int = 0):
    """Return cases of linked worlds, and of the key of configurations that names them."""
    dice = random.Random(seed)
    files = {"c.yaml": "name: c\nrun: here\nenvironments: [{linked: w.yaml}]\nsample: {count: 1}\n"}
    base = yaml.safe_load(PLAIN + STORY)
    for name, text in TEXTS.items():
        world = yaml.safe_dump({**base, **yaml.safe_load(text)}, allow_unicode=True)
        for label in ("show", "run") if name != "unsafe" else ("run",):
            yield Case(f"world {name}: {label}", COMMANDS[label], {**files, "w.yaml": world})
    for kind, value in VALUES.items():
        for key in ("name", "description", "environments", "clock", "links", "words", "roles", "scenarios"):
            world = yaml.safe_dump({**base, key: value}, allow_unicode=True)
            yield Case(f"world {key} {kind}", COMMANDS["show"], {**files, "w.yaml": world})
        entry = {"name": "c", "run": "here", "environments": [{"linked": value}]}
        yield Case(f"linked {kind}", COMMANDS["run"], {"c.yaml": yaml.safe_dump(entry, allow_unicode=True)})
    worlds = sorted(WORLDS.glob("*.yaml"))
    for number in range(120 if full else 20):
        text = dice.choice(worlds).read_bytes()
        data = (
            mutate_bytes(text, dice)
            if number % 4 == 0
            else yaml.safe_dump(mutate_document(yaml.safe_load(text), dice), allow_unicode=True)
        )
        label = "check" if number % 10 == 9 else ("show", "run", "named")[number % 3]
        yield Case(f"world {number}: {label}", COMMANDS[label], {**files, "w.yaml": data})
    for reference in ("nobody.yaml", "a\0b.yaml", "../../etc/passwd", "x" * 300 + ".yaml", "office", "*", ".", "w.yml"):
        yield Case(f"show {reference[:30]!a}", ("env", "show", reference), {"w.yml": "a: 1\n"})
