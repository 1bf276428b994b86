"""The scripted expert: answers the prompts of `trajsmith.envgen.synthesis` from files, a folder a theme, mistakes
included.

A theme's `script.yaml` says by which words it is known and which file answers which stage; of several files that whose
`when` stands in the last prompt, the first that fits. A changed file is written as edits of the one that is shown:
`<<<<`, old text, `====`, new text, `>>>>`; EVERY stands for a decision on each complaint, that the code is wrong.

It is the script of `tests/language_server/faulty_server.py`, and answers in this process for tests without a server.
"""

import json
import re
from functools import cache
from pathlib import Path

import yaml

HERE = Path(__file__).parent
STAGES = {
    "You propose environments": "propose",
    "You say what an environment must": "require",
    "You write the state of": "state",
    "You plan the tools": "plan",
    "You write the tools of": "tools",
    "You think of the words": "texts",
    "You write the generator": "seeds",
    "You say how people speak": "phrase",
    "You write tests for": "test",
    "You mend an environment": "repair",
    "You try out the tools": "try",
    "You judge calls": "check",
    "You enlarge an environment": "enlarge",
    "You extend the file": "extend",
    "You search for": "search",
    "You take records": "read",
}
EDIT = re.compile(r"<<<<\n(.*?)====\n(.*?)>>>>\n?", re.DOTALL)
SHOWN = re.compile(r"The file:\n```python\n(.*?)\n```\n(?:Complaints|Answer with all)", re.DOTALL)


@cache
def themes():
    """Every theme's script, with its folder."""
    return [(path.parent, yaml.safe_load(path.read_text())) for path in sorted(HERE.glob("*/script.yaml"))]


def answer(request):
    """What the expert says to a request as it stands on the wire."""
    system, asked = request["messages"][0]["content"], request["messages"][1]["content"]
    if system.startswith("You sort requests"):
        return sorted_requests(asked)
    stage = next((name for start, name in STAGES.items() if system.startswith(start)), None)
    if stage is None:
        return "ready"  # somebody tries whether anybody is there
    for folder, script in themes():
        if stage in script["replies"] and any(mark in asked for mark in script["marks"]):
            return reply(folder, script["replies"][stage], asked)
    return "I would rather talk about the weather."


def sorted_requests(asked):
    """Which of the numbered requests need a state, as `requests.jsonl` says."""
    known = [json.loads(line) for line in (HERE / "requests.jsonl").read_text().splitlines()]
    named = {one["query"]: one["environment"] for one in known}
    opinions = []
    for number, text in re.findall(r"^([0-9]+)\. (.*)$", asked, re.MULTILINE):
        name = named[text]
        about = "Keeps notices that villagers pin and take down." if name else ""
        reason = "it is about records" if name else "it needs no records"
        one = {"number": int(number), "stateful": bool(name), "environment": name, "summary": about, "reason": reason}
        opinions.append(one)
    return json.dumps({"requests": opinions})


def reply(folder, entries, asked):
    """The text of the file whose condition fits, with its edits made."""
    name = next(entry["file"] for entry in entries if entry.get("when", "") in asked)
    text = (folder / name).read_text()
    edits = EDIT.findall(text)
    if not edits:
        return text
    code = SHOWN.search(asked).group(1)
    for old, new in edits:
        assert code.count(old.rstrip("\n")) == 1, f"{name}: {old!r} stands {code.count(old)} times in the file"
        code = code.replace(old.rstrip("\n"), new.rstrip("\n"))
    ids = re.findall(r"^([A-Z][0-9]+) \(", asked, re.MULTILINE)
    decisions = [{"complaint": one, "wrong": "code", "why": "It was told so."} for one in ids]
    text = text.replace("EVERY", json.dumps(decisions))
    return EDIT.sub("", text) + f"\n```python\n{code}\n```\n"
