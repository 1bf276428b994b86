"""The card of a trained model: README.md with front matter that the Hub reads, from the notes beside the weights."""

from collections.abc import Iterable

import orjson
import yaml

from trajsmith.models import CheckpointInfo
from trajsmith.records import JsonObject


def build_model_card(info: CheckpointInfo, name: str) -> str:
    """Return the text of README.md.

    Args:
        info: Origin of the weights, and the trainings since.
        name: Of the model's folder.
    """
    front: JsonObject = {"library_name": "transformers", "tags": ["trajsmith", "tool-use"]}
    if license_name := info.origin.get("license"):
        front["license"] = str(license_name).lower()
    lines = ["---", yaml.safe_dump(front, sort_keys=True).strip(), "---", "", f"# {name}", ""]
    lines += ["A model that calls tools, trained with trajsmith on dialogues that were verified by execution.", ""]
    lines += ["## Origin of the weights", "", *_list_facts(info.origin), ""]
    shown = "in full" if info.tools == "full" else "in compact form (`trajsmith.records.render_tools`)"
    lines += [f"Tools were shown {shown}; show them so wherever the model is played.", ""]
    for number, training in enumerate(info.training, 1):
        lines += _describe_training(training, number)
    return "\n".join(lines).rstrip() + "\n"


def _describe_training(training: JsonObject, number: int) -> Iterable[str]:
    facts = {key: value for key, value in training.items() if key not in ("kind", "data", "settings")}
    yield from (f"## Training {number}: {training.get('kind', 'unknown')}", "", *_list_facts(facts), "")
    if data := training.get("data"):
        yield "| data | rows | seed | environments | licence | SHA-256 of its configuration |"
        yield "|---|---|---|---|---|---|"
        for source in data:
            cells = [source["name"], source["rows"], source.get("seed", "")]
            cells += [", ".join(source["environments"]), source.get("license", "not stated")]
            cells.append(f"`{source['config_sha256'][:16]}`" if "config_sha256" in source else "")
            yield f"| {' | '.join(map(str, cells))} |"
        yield ""
    settings = orjson.dumps(training.get("settings", {}), option=orjson.OPT_INDENT_2).decode()
    yield from ("```json", settings, "```", "")


def _list_facts(facts: JsonObject) -> list[str]:
    return [f"* {key.replace('_', ' ')}: {value}" for key, value in facts.items()] or ["* not recorded"]
