"""Install hints: commands that work from a checkout and from an index."""

import tomllib
from importlib import metadata
from pathlib import Path

import pytest

from trajsmith.records import install_command

PROJECT = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]


def names(texts):
    return {text.strip("'").split("[")[0].split(">")[0].split("<")[0].split("=")[0] for text in texts}


@pytest.mark.parametrize("extra", ["train", "embed", "awm", "envgen", "vllm"])
def test_the_command_names_the_requirements_of_the_extra_and_not_this_distribution(extra):
    command = install_command(extra)
    assert command.startswith("pip install '") and "trajsmith" not in command
    assert names(command.removeprefix("pip install ").split()) == names(PROJECT["optional-dependencies"][extra])


def test_quoted_requirements_and_markers_are_read(monkeypatch):
    lines = ["orjson>=3", "torch<3,>=2 ; python_version > '3' and extra == 'train'", 'peft>=0.18; extra == "train"']
    monkeypatch.setattr(metadata, "requires", lambda name: lines)
    assert install_command("train") == "pip install 'torch<3,>=2' 'peft>=0.18'"


def test_without_metadata_it_is_the_command_of_a_checkout(monkeypatch):
    def missing(name):
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "requires", missing)
    assert install_command("train") == "pip install -e '.[train]'"
