"""Rows of several datasets in one training: how often each is seen, which validate, and where they come from."""

import random
from collections import Counter
from collections.abc import Callable, Sequence
from hashlib import sha256
from pathlib import Path

import yaml

from trajsmith.records import InputError, JsonObject, compose_yaml, derive_seed
from trajsmith.train_sft.settings import DatasetShare

ReadRows = Callable[[Path, str], list[JsonObject]]


def mix_rows(shares: Sequence[DatasetShare], read: ReadRows, seed: int) -> tuple[list[JsonObject], list[JsonObject]]:
    """Return the rows to train on, and where those of each dataset come from.

    Args:
        shares: Datasets with their weights.
        read: Reads one split of a dataset.
        seed: Draws the rows of weights that are no whole number.

    Raises:
        InputError: A dataset cannot be read, it has no row of a variant, or its weight or `without_tools` leaves none
            of its rows.
    """
    mixed, sources = [], []
    for share in shares:
        rows = read(share.dataset, "train")
        if share.variants:
            _check_variants(rows, share)
        if share.without_tools:
            _check_tools(rows, share)
        chosen = select_rows(rows, share)
        if not chosen:
            raise InputError(
                f"{share.dataset}: the choice by variants and without_tools leaves none of its {len(rows)} rows"
            )
        drawn = weigh_rows(
            chosen, share.weight, derive_seed("mix", str(seed), *sorted(str(row.get("id")) for row in chosen))
        )
        if not drawn:
            raise InputError(f"{share.dataset}: a weight of {share.weight:g} leaves none of its {len(chosen)} rows")
        mixed += drawn
        sources.append(describe_source(share, chosen, len(drawn)))
    return mixed, sources


def _check_variants(rows: Sequence[JsonObject], share: DatasetShare) -> None:
    """Raise an InputError if no row is of one of a share's `variants`."""
    present = {str(row.get("variant", "base")) for row in rows}
    missing = sorted(set(share.variants) - present)
    if missing:
        raise InputError(
            f"{share.dataset}: no row is of the variant {', '.join(missing)}; there are: {', '.join(sorted(present))}"
        )


def _check_tools(rows: Sequence[JsonObject], share: DatasetShare) -> None:
    """Raise an InputError if no row calls one of a share's `without_tools`."""
    uncalled = set(share.without_tools)
    for row in rows:
        uncalled -= list_called_tools(row)
    if uncalled:
        raise InputError(f"{share.dataset}: no row calls {', '.join(sorted(uncalled))} of without_tools")


def select_rows(rows: Sequence[JsonObject], share: DatasetShare) -> list[JsonObject]:
    """Return the rows of a share's `variants` that call none of its `without_tools`."""
    return [
        row
        for row in rows
        if (not share.variants or row.get("variant", "base") in share.variants)
        and (not share.without_tools or list_called_tools(row).isdisjoint(share.without_tools))
    ]


def list_called_tools(row: JsonObject) -> set[str]:
    """Return the plain names of the tools that a row calls; pairs call them in prompt, chosen and rejected."""
    messages = [one for column in ("messages", "prompt", "chosen", "rejected") for one in row.get(column) or ()]
    return {call["function"]["name"] for message in messages for call in message.get("tool_calls") or ()}


def weigh_rows(rows: Sequence[JsonObject], weight: float, seed: int) -> list[JsonObject]:
    """Return every row as often as the whole part of the weight says, and a share of them once more."""
    often = int(weight)
    once_more = random.Random(seed).sample(range(len(rows)), round((weight - often) * len(rows)))
    return [*(row for row in rows for _ in range(often)), *(rows[place] for place in sorted(once_more))]


def describe_source(share: DatasetShare, rows: Sequence[JsonObject], drawn: int) -> JsonObject:
    """Describe where rows come from: run, hash of its configuration, seed, licence, environments; no path."""
    environments = Counter(str(row["environment"]) for row in rows if "environment" in row)
    source: JsonObject = {
        "name": share.dataset.name,
        "rows": drawn,
        "weight": share.weight,
        "environments": dict(sorted(environments.items())),
    }
    if share.variants:
        source["variants"] = list(share.variants)
    if share.without_tools:
        source["without_tools"] = list(share.without_tools)
    config = share.dataset / "config.yaml"
    if config.is_file():
        settings = compose_yaml(config.read_text("utf-8"), yaml.SafeLoader)[1]
        if not isinstance(settings, dict):
            raise InputError(f"{config}: no settings of a run")
        source |= {
            "name": settings.get("name", share.dataset.name),
            "seed": settings.get("seed", 0),
            "license": (settings.get("export") or {}).get("license", "apache-2.0"),
            "config_sha256": sha256(config.read_bytes()).hexdigest(),
        }
    return source
