"""Figures of docs/growth.md: which requests are kept, which copies are found.

    .venv/bin/python -m benchmarks.growth requests ../shared/data/sets
    .venv/bin/python -m benchmarks.growth copies ../EnvFactory [--library]

`stateful_labels.json` holds the hashes of 204 requests of the sets, labelled by reading them: of a state or not.
`copies` disguises every environment and looks for the disguise among all the others.
"""

import argparse
import json
import random
from pathlib import Path

from rich.console import Console
from rich.table import Table

from trajsmith.envgen.growth.duplicates import find_duplicates
from trajsmith.envgen.sources.requests import read_requests
from trajsmith.envgen.sources.statefulness import estimate_statefulness
from trajsmith.envgen.sources.task_sets import read_task_set
from trajsmith.pipeline.environment_collections import encode_words, load_specs
from trajsmith.records import EnvironmentSpec, TrajsmithError, content_hash, derive_seed

LABELS = Path(__file__).with_name("stateful_labels.json")
SETS = ("apibank/dialogues", "nestful_sgd/chains", "nestful_glaive/chains", "restbench_tmdb/chains",
        "taskbench_multimedia/requests")  # fmt: skip
RENAMES = {"get": "show", "list": "search", "create": "add", "update": "edit", "delete": "remove", "search": "find"}
console = Console(width=160)


def requests(folder: Path) -> None:
    """Kept requests and themes of each set, and the filter against the labels."""
    table = Table("set", "requests", "need a state", "themes", "the largest", title="task sets")
    predictions: dict[str, bool] = {}
    for name in SETS:
        file = folder / f"{name}.jsonl"
        texts = list(dict.fromkeys(read_requests(file)[0]))
        senses = {text: estimate_statefulness(text).stateful for text in texts}
        predictions |= senses
        stateful = sum(senses.values())
        try:
            themes = read_task_set(file).sources
        except TrajsmithError as error:
            console.print(str(error), markup=False)
            themes = ()
        largest = ", ".join(f"{theme.name} {len(theme.requests)}" for theme in themes[:6])
        table.add_row(name.split("/")[0], str(len(texts)), str(stateful), str(len(themes)), largest)
    predictions |= {text: estimate_statefulness(text).stateful for text in _others(folder)}
    console.print(table)
    labels = {one: kind == "stateful" for kind, ones in json.loads(LABELS.read_text()).items() for one in ones}
    judged = [
        (labels[key], stateful) for text, stateful in predictions.items() if (key := content_hash(text, 12)) in labels
    ]
    hits = sum(wanted and stateful for wanted, stateful in judged)
    precision, recall = hits / sum(stateful for _, stateful in judged), hits / sum(wanted for wanted, _ in judged)
    console.print(f"{len(judged)} labelled requests: precision {precision:.2f}, recall {recall:.2f}")


def _others(folder: Path) -> list[str]:
    """Requests of sets that are no task sets by their form."""
    tasks = json.loads((folder / "tau2_airline" / "tasks.json").read_text())
    reasons = [task["user_scenario"]["instructions"]["reason_for_call"] for task in tasks]
    for line in (folder / "bfcl_public" / "replay.jsonl").read_text().splitlines():
        for turn in json.loads(line)["user_turns"]:
            for request in turn if isinstance(turn, list) else [turn]:
                text = request if isinstance(request, str) else request.get("content", "")
                reasons.append(json.loads(text)[0] if text.startswith('["') else text)
    return [" ".join(text.split()) for text in reasons]


def copies(where: list[str], library: bool) -> None:
    """Every environment disguised: renamed, without description and state, a fifth of its tools gone, verbs changed."""
    specs, _ = load_specs(where, library)
    alike = find_duplicates(specs, encode_words)
    console.print(f"{len(specs)} environments, {len(alike)} pairs from the usual threshold on")
    for pair in find_duplicates(specs, encode_words, 0.25)[:8]:
        console.print(f"{pair.score:.2f} {pair.keep} and {pair.drop}", markup=False)
    detected = wrong = 0
    for spec in specs:
        pairs = find_duplicates([*specs, disguised(spec)], encode_words)
        mine = [pair for pair in pairs if "copy" in (pair.keep, pair.drop)]
        detected += any(spec.name in (pair.keep, pair.drop) for pair in mine)
        wrong += sum(spec.name not in (pair.keep, pair.drop) for pair in mine)
    console.print(f"disguised copies: {detected} of {len(specs)} found, {wrong} taken for copies of others")


def disguised(spec: EnvironmentSpec) -> EnvironmentSpec:
    rng = random.Random(derive_seed(0, spec.name))
    tools = [tool for tool in spec.tools if rng.random() < 0.8] or list(spec.tools)
    renamed = []
    for tool in tools:
        verb, mark, rest = tool.name.partition("_")
        name = f"{RENAMES.get(verb, verb)}{mark}{rest}" if rng.random() < 0.5 else tool.name
        renamed.append(tool.model_copy(update={"name": name, "server": "copy"}))
    return spec.model_copy(update={"name": "copy", "description": "", "state_schema": {}, "tools": tuple(renamed)})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("requests")
    one.add_argument("folder", type=Path)
    two = commands.add_parser("copies")
    two.add_argument("where", nargs="*")
    two.add_argument("--library", action="store_true")
    arguments = parser.parse_args()
    if arguments.command == "requests":
        requests(arguments.folder)
    else:
        copies(arguments.where, arguments.library)


if __name__ == "__main__":
    main()
