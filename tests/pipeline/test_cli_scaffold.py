"""What a new user starts from: packaged configurations by name, a copy to change, a project of their own."""

import pytest

from trajsmith.pipeline.config import load_config
from trajsmith.pipeline.yaml_settings import PACKAGED_CONFIGS, find_config
from trajsmith.records import InputError

NAMES = sorted(file.stem for file in PACKAGED_CONFIGS.glob("*.yaml"))


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_every_packaged_configuration_is_listed_with_a_line_about_it(trajsmith):
    lines = trajsmith("configs").out.splitlines()
    assert [line.split()[0] for line in lines] == NAMES
    assert all(len(line.split()) > 5 for line in lines), (
        "a configuration begins with a comment that says what it is for"
    )


def test_a_name_is_a_packaged_configuration_unless_there_is_such_a_file(tmp_path):
    (tmp_path / "variants").mkdir()
    assert find_config("variants") == PACKAGED_CONFIGS / "variants.yaml"
    (tmp_path / "quickstart").write_text("name: mine\n")
    assert find_config("quickstart").read_text() == "name: mine\n"
    assert find_config("variants.yaml").parent != PACKAGED_CONFIGS


def test_an_unknown_name_gives_the_nearest(trajsmith):
    run = trajsmith("run", "quickstrat")
    assert (run.code, run.err) == (
        2,
        'error: no such file or packaged configuration: quickstrat: did you mean "quickstart"?\n',
    )
    with pytest.raises(InputError, match="`trajsmith configs` lists"):
        find_config("zzz")


def test_a_copy_has_the_phrasebook_that_it_names(trajsmith, tmp_path):
    (tmp_path / "mine").mkdir()
    assert trajsmith("configs", "copy", "mcp_git", "mine").code == 0
    (entry,) = load_config(tmp_path / "mine" / "mcp_git.yaml").environments
    assert entry.mcp.phrases == tmp_path / "mine" / "phrases" / "mcp_git.yaml"
    assert entry.mcp.phrases.read_bytes() == (PACKAGED_CONFIGS / "phrases" / "mcp_git.yaml").read_bytes()


@pytest.mark.parametrize("command", [("configs", "copy", "quickstart"), ("init", ".")], ids=["configs copy", "init"])
def test_nothing_is_overwritten(trajsmith, tmp_path, command):
    assert trajsmith(*command).code == 0
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    again = trajsmith(*command)
    assert again.code == 2 and "is there already" in again.err
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == before


def test_version_and_completion(trajsmith, monkeypatch):
    assert trajsmith("--version").out.startswith("trajsmith ")
    assert "--install-completion" in trajsmith("--help").out
