"""Labels from the Schema-Guided Dialogue dataset: who first said each argument, the user or an earlier result.

    python benchmarks/sgd_sets.py --path CHECKOUT --out FOLDER    # a checkout of dstc8-schema-guided-dialogue
    TRAJSMITH_SETS=FOLDER python benchmarks/train_toolgraph.py    # these sets are learned from as well

Writes `sgd` and, with the renamed schemas of SGD-X, `sgd_v1` to `sgd_v5`, in the form of the open sets. A service is a
server, an intent a tool, its result slots the output. An argument of a service call is the user's if the user informed
of that value before any result showed it; it is internal if a result showed it first. Counted over all dialogues that
are there; "mixed" from 30 to 70 % of each. An edge is a value that a result showed first, in two dialogues or more.
nestful_sgd is made of the same dialogues, so both are one source.
"""

import argparse
import json
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

SPLITS = ("train", "dev", "test")
VERSIONS = ("", "v1", "v2", "v3", "v4", "v5")
LEAST = 3
"""Calls from which a parameter gets a label."""
MIXED = (0.3, 0.7)

Key = tuple[str, str]
"""Service and intent."""


class Counts:
    """Counts of calls by who gave the value, under the names of the original schema."""

    def __init__(self) -> None:
        self.kinds: dict[tuple[Key, str], Counter[str]] = defaultdict(Counter)
        self.edges: dict[tuple[Key, Key], Counter[tuple[str, str]]] = defaultdict(Counter)
        self.called: set[Key] = set()

    def add(self, dialogue: dict[str, Any]) -> None:
        """Count one dialogue."""
        stated_values: set[str] = set()
        shown: dict[str, tuple[Key, str]] = {}
        for turn in dialogue["turns"]:
            for frame in turn["frames"]:
                for action in frame["actions"] if turn["speaker"] == "USER" else ():
                    if action["act"] == "INFORM":
                        stated_values.update(
                            value
                            for value in (*action["canonical_values"], *action["values"])
                            if value not in shown
                        )  # fmt: skip
                if "service_call" in frame:
                    self._call(frame, stated_values, shown)

    def _call(self, frame: dict[str, Any], stated_values: set[str], shown: dict[str, tuple[Key, str]]) -> None:
        here = frame["service"], frame["service_call"]["method"]
        self.called.add(here)
        for slot, value in frame["service_call"]["parameters"].items():
            source = shown.get(value) if value not in stated_values and is_specific(value) else None
            self.kinds[here, slot]["user" if value in stated_values else "internal" if source else "other"] += 1
            if source is not None and source[0] != here:
                self.edges[source[0], here][source[1], slot] += 1
        for row in frame.get("service_results", ()):
            for slot, value in row.items():
                shown.setdefault(value, (here, slot))


def is_specific(value: str) -> bool:
    """Return False for switches and small numbers: two of them are equal by chance."""
    return value not in ("True", "False", "dontcare") and not (value.isdigit() and len(value) < 3)


def read_dialogues(path: Path) -> Iterator[dict[str, Any]]:
    for split in SPLITS:
        for file in sorted((path / split).glob("dialogues_*.json")):
            yield from json.loads(file.read_bytes())


def read_schemas(path: Path, version: str) -> dict[str, dict[str, Any]]:
    """Return the services by the names of the original, under the names of a version."""
    services: dict[str, dict[str, Any]] = {}
    for split in SPLITS:
        original = json.loads((path / split / "schema.json").read_bytes())
        folder = path / "sgd_x" / "data" / version if version else path
        renamed = json.loads((folder / split / "schema.json").read_bytes())
        for old, new in zip(original, renamed, strict=True):
            services.setdefault(old["service_name"], {"old": old, "new": new})
    return services


def write_set(folder: Path, name: str, services: dict[str, dict[str, Any]], counts: Counts) -> None:
    """Write tools and gold under the names of one version."""
    tools, full, slots = [], {}, {}
    for service, both in services.items():
        slots[service] = {
            old["name"]: new["name"] for old, new in zip(both["old"]["slots"], both["new"]["slots"], strict=True)
        }
        fields = {slot["name"]: _field(slot) for slot in both["new"]["slots"]}
        for old, new in zip(both["old"]["intents"], both["new"]["intents"], strict=True):
            if (service, old["name"]) not in counts.called:
                continue
            tools.append(_tool(both["new"]["service_name"], new, fields))
            full[service, old["name"]] = tools[-1]["name"]
    edges = [
        {
            "set": name,
            "source": full[source],
            "target": full[target],
            "tier": "core" if sum(ways.values()) >= 2 else "extra",
            "links": [
                {"source_path": slots[source[0]][left], "param": slots[target[0]][right], "n": number}
                for (left, right), number in ways.most_common(8)
            ],
        }
        for (source, target), ways in sorted(counts.edges.items())
    ]
    parameters = [
        {"set": name, "tool": full[key], "param": slots[key[0]][slot], "label": _label(seen), "evidence": dict(seen)}
        for (key, slot), seen in sorted(counts.kinds.items())
        if seen.total() >= LEAST
    ]
    folder.mkdir(parents=True, exist_ok=True)
    for file, rows in (("tools", tools), ("gold_edges", edges), ("gold_params", parameters)):
        (folder / f"{file}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    (folder / "universe.json").write_text(json.dumps({"tools": [tool["name"] for tool in tools]}), "utf-8")


def _tool(service: str, intent: dict[str, Any], fields: dict[str, dict[str, Any]]) -> dict[str, Any]:
    defaults = intent["optional_slots"]
    taken = {slot: fields[slot] for slot in intent["required_slots"]}
    taken |= {slot: fields[slot] | ({"default": value} if value else {}) for slot, value in defaults.items()}
    results = {slot: fields[slot] for slot in intent["result_slots"]}
    return {
        "server": service,
        "name": f"{service}.{intent['name']}",
        "description": intent["description"],
        "input_schema": {"type": "object", "properties": taken, "required": intent["required_slots"]},
        "output_schema": {"type": "object", "properties": results},
    }


def _field(slot: dict[str, Any]) -> dict[str, Any]:
    choices = {"enum": slot["possible_values"]} if slot["is_categorical"] and slot["possible_values"] else {}
    return {"type": "string", "description": slot["description"], **choices}


def _label(seen: Counter[str]) -> str:
    known = seen["user"] + seen["internal"]
    if seen["other"] > known:
        return "other"
    share = seen["internal"] / known
    return "mixed" if MIXED[0] <= share <= MIXED[1] else "internal" if share > MIXED[1] else "user"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--path", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    counts, number = Counts(), 0
    for number, dialogue in enumerate(read_dialogues(arguments.path), 1):  # noqa: B007
        counts.add(dialogue)
    for version in VERSIONS:
        name = f"sgd_{version}" if version else "sgd"
        write_set(arguments.out / name, name, read_schemas(arguments.path, version), counts)
    labels = Counter(_label(seen) for seen in counts.kinds.values() if seen.total() >= LEAST)
    print(f"{number} dialogues, {len(counts.called)} tools, {len(counts.edges)} edges, parameters {dict(labels)}")


if __name__ == "__main__":
    main()
