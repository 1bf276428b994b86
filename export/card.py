"""The dataset card: README.md with front matter that the Hub reads."""

from collections.abc import Mapping, Sequence

from trajsmith.export._templates import create_template_environment
from trajsmith.export.dataset import COLUMNS
from trajsmith.export.statistics import Distribution, Statistics, build_funnel_steps, compute_tool_coverage
from trajsmith.records import EnvironmentSpec, JsonObject, Summary, content_hash

DEFAULT_LICENSE = "apache-2.0"

SIZES = (
    (1_000, "n<1K"),
    (10_000, "1K<n<10K"),
    (100_000, "10K<n<100K"),
    (1_000_000, "100K<n<1M"),
    (10_000_000, "1M<n<10M"),
)

COLUMN_MEANING: dict[str, str] = {
    "id": "Id of the trajectory, a hash of its content.",
    "task_id": "Id of the task; several trajectories may play one task.",
    "environment": "Environment in which the calls were executed.",
    "mode": "`conversation` (a simulated user answers) or `direct` (the whole request at once).",
    "variant": "`base`, or the way in which the task was made harder.",
    "source": "Where the task started: `chain`, `program`, `long` or `state`.",
    "language": "`scripted`, or the model that wrote the task.",
    "difficulty": "0 (one call, nothing hidden) to 1.",
    "pass_rates": "Share of plays that passed, by solver (`trajsmith calibrate`); empty if none played the task.",
    "turns": "Requests of the user.",
    "tool_calls": "Calls of the agent.",
    "messages": "OpenAI messages; `arguments` are objects, keys without a value are absent.",
    "tools": "OpenAI function schemas as the agent saw them, in that order.",
    "learnt_from": "Index of the first message that is learnt: 0, but in repaired plays the first of the correction.",
    "repair": "Of a repaired play: the failed play (`of`), `kind`, the mistake, and why no more of it could be kept.",
    "step_labels": "With `verify.step_labels`: what each call of `messages` was worth, and why; `mask_steps` reads it.",
    "rubric": "Criteria of the task: what each says, its weight, whether it was met, and why it does not count if so.",
    "verdict": "Outcome, every check with its result, rewards by name.",
    "initial_state": "Hash of the state before the first call.",
    "final_state": "Hash of the state after the last call.",
    "seed": "Seed of the task.",
}


def build_card(
    summary: Summary,
    specs: Sequence[EnvironmentSpec],
    statistics: Statistics,
    *,
    license: str = DEFAULT_LICENSE,
    splits: Mapping[str, int] | None = None,
    plots: Sequence[str] = (),
    config: str = "config.yaml",
    repo: str = "path/to/dataset",
) -> str:
    """The text of README.md.

    Args:
        summary: What the run came to.
        specs: Environments of the run.
        statistics: Numbers gathered from the trajectories.
        license: SPDX name in lower case, as the Hub writes it.
        splits: Split to number of rows; all rows in train if it is not given.
        plots: Names of the pictures that lie beside the card.
        config: File that makes the run again, as the reader will find it.
        repo: Name on the Hub or folder, for the lines that show how to load.
    """
    rows = summary.funnel.get("exported", sum(summary.environments.values()))
    coverage = compute_tool_coverage(summary, specs, statistics)
    text: str = (
        create_template_environment()
        .get_template("card.md.j2")
        .render(
            front_matter=_front_matter(summary, license, rows, splits or {"train": rows}, _models(statistics)),
            splits=splits or {"train": rows},
            summary=summary,
            rows=rows,
            funnel=build_funnel_steps(summary),
            columns=[(name, kind, COLUMN_MEANING[name]) for name, kind in COLUMNS.items()],
            environments=[(spec, covered) for spec, covered in zip(specs, coverage, strict=True)],
            unsafe=[name for name, words in summary.isolation.items() if words.startswith("unsafe")],
            lengths=_lengths(statistics),
            models=_models(statistics),
            plots=plots,
            version=_version(),
            variants=statistics.variants.most_common(),
            config=config,
            repo=repo,
            license=license,
        )
    )
    return text


def find_size_category(rows: int) -> str:
    """The Hub's size category."""
    return next((name for limit, name in SIZES if rows < limit), "n>10M")


def _front_matter(
    summary: Summary, license: str, rows: int, splits: Mapping[str, int], models: Sequence[tuple[str, str]]
) -> str:
    """YAML of the card.

    `datasets` keeps what it has read under a hash of this part, in which neither a path nor a time stands: without
    a hash of the run and of its columns in it, another run's rows, or those of an older version, would be given.
    """
    import yaml

    fields: JsonObject = {
        "license": license,
        "language": [summary.spoken],
        "pretty_name": summary.name,
        "task_categories": ["text-generation"],
        "annotations_creators": ["machine-generated"],
        "source_datasets": ["original"],
        "size_categories": [find_size_category(rows)],
        "tags": ["tool-use", "function-calling", "agents", "multi-turn", "synthetic", "trajsmith", "trl"],
        "configs": [
            {
                "config_name": "default",
                "data_files": [{"split": split, "path": f"data/{split}-*"} for split in splits],
                "description": f"rows {content_hash([summary.content, COLUMNS], 16)}",
            },
        ],
    }
    spoken = sorted({name for _, name in models} - {"scripted"})
    if spoken:
        fields["models"] = spoken
    return str(yaml.safe_dump(fields, sort_keys=False, allow_unicode=True))


def _models(statistics: Statistics) -> list[tuple[str, str]]:
    """Role and model, for every model that spoke in a kept conversation."""
    return [(role, name) for role in sorted(statistics.models) for name in sorted(statistics.models[role])]


def _version() -> str:
    """Version of trajsmith, as installed."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("trajsmith")
    except PackageNotFoundError:  # a checkout that was never installed
        return "of a checkout"


def _lengths(statistics: Statistics) -> list[tuple[str, Distribution]]:
    return [
        ("turns", statistics.turns),
        ("tool calls", statistics.calls),
        ("tool calls per turn", statistics.calls_per_turn),
        ("messages", statistics.messages),
        ("characters", statistics.characters),
    ]
