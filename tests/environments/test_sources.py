"""Where environments come from: the library by name, one's own by file; what is wrong with either."""

import subprocess
import sys
from pathlib import Path

import pytest
from pydantic import ValidationError

from trajsmith.environments.library import ENVIRONMENTS
from trajsmith.environments.sandbox.source import SandboxSource
from trajsmith.environments.session import Checkpointed
from trajsmith.environments.sources import EnvironmentSettings, expand_settings, open_source
from trajsmith.records import InputError, format_first_error

GOOD = '''
from datetime import datetime
from trajsmith import Environment, EnvironmentState, tool


class {name}State(EnvironmentState):
    notes: dict[str, str] = {{}}


class {name}(Environment[{name}State]):
    """Notes on paper."""

    @classmethod
    def seed_state(cls, size: str, seed: int) -> {name}State:
        return {name}State(now=datetime(2026, 1, 1), seed=seed, notes={{"N1": size}})

    @tool(effect="read")
    def read_note(self, note_id: str) -> str:
        """Read a note."""
        return self.lookup(self.state.notes, note_id, "note") + "{tail}"
'''
SIZES = {"small": 2, "medium": 1}


def written(path: Path, *names: str, tail: str = "") -> Path:
    path.write_text("".join(GOOD.format(name=name, tail=tail) for name in names))
    return path


def opened(reference: object, **settings: object) -> SandboxSource:
    source = open_source(EnvironmentSettings.model_validate({"python": str(reference), "states": SIZES, **settings}))
    assert isinstance(source, SandboxSource)
    return source


async def test_an_environment_from_a_file(tmp_path: Path) -> None:
    source = opened(written(tmp_path / "paper.py", "Paper"))
    session = await source.open()
    await session.reset((await source.states(1))[0])
    assert source.name == "paper"
    assert (await session.call("read_note", {"note_id": "N1"})).content == {"result": "small"}
    assert source.isolation == "sandbox default, plays in a process each"


async def test_the_same_seed_gives_the_same_states(tmp_path: Path) -> None:
    source = opened(written(tmp_path / "paper2.py", "Paper"))
    states = await source.states(1)
    assert [state["notes"]["N1"] for state in states] == ["small", "small", "medium"]
    assert states == await source.states(1)
    assert states != await source.states(2)
    assert states[0] != states[1]


async def test_a_class_is_named_where_there_are_several(tmp_path: Path) -> None:
    path = written(tmp_path / "two.py", "Paper", "Stone")
    with pytest.raises(InputError, match="expected one Environment class, found Paper, Stone"):
        await opened(path).spec()
    assert (await opened(f"{path}:Stone").spec()).name == "stone"


@pytest.mark.parametrize(
    ("reference", "content", "reason"),
    [
        pytest.param("none.py", None, r"environment file not found: .*none\.py", id="no-file"),
        pytest.param("a.py", "x = 1\n\nraise ValueError('bad\\nday')\n", r"a\.py:3: ValueError: bad day", id="raises"),
        pytest.param(
            "b.py", "\nimport no_such_package\n", r"b\.py:2: ModuleNotFoundError: No module named", id="import-error"
        ),
        pytest.param("c.py", "x = 1\ndef f(:\n", r"c\.py:2: SyntaxError: ", id="syntax"),
        pytest.param(
            "d.py", "def f():\n    return 1 / 0\n\n\nf()\n", r"d\.py:2: ZeroDivisionError", id="deepest-own-line"
        ),
        pytest.param("e.py", "import json\njson.loads('{')\n", r"e\.py:2: JSONDecodeError", id="raised-in-a-library"),
        pytest.param("f.py", "x = 1\n", "expected one Environment class, found none", id="no-class"),
        pytest.param("g.py:Rock", "x = 1\n", "there is no Environment class named 'Rock'", id="no-such-class"),
        pytest.param("h.py:x", "x = 1\n", "there is no Environment class named 'x'", id="name-of-something-else"),
    ],
)
async def test_a_bad_file_names_file_and_line(tmp_path: Path, reference: str, content: str | None, reason: str) -> None:
    if content is not None:
        (tmp_path / reference.partition(":")[0]).write_text(content)
    with pytest.raises(InputError, match=reason) as caught:
        await opened(tmp_path / reference).spec()
    assert "\n" not in str(caught.value)


async def test_files_of_the_same_name_are_told_apart(tmp_path: Path) -> None:
    """Two files called env.py in two folders are two environments with two versions."""
    paths = [tmp_path / "one" / "env.py", tmp_path / "two" / "env.py"]
    for path in paths:
        path.parent.mkdir()
    first = opened(written(paths[0], "Paper", tail="!"))
    second = opened(written(paths[1], "Paper", tail="?"))
    assert (await first.spec()).version != (await second.spec()).version


def test_a_phrasebook_beside_the_file_is_read(tmp_path: Path) -> None:
    (tmp_path / "phrases.yaml").write_text("roles: [reader]\n")
    assert opened(written(tmp_path / "paper3.py", "Paper")).phrasebook.roles == ("reader",)


async def test_code_of_a_file_cannot_touch_the_machine(tmp_path: Path) -> None:
    path = tmp_path / "evil.py"
    path.write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n")
    with pytest.raises(InputError, match=r"evil\.py:1: PermissionError"):
        await opened(path).spec()
    assert not (tmp_path / "ran").exists()


async def test_code_that_keeps_all_in_its_state_goes_back_to_a_checkpoint_and_other_code_repeats_its_calls(
    tmp_path: Path,
) -> None:
    path = written(tmp_path / "paper4.py", "Paper")
    source = opened(path)
    assert isinstance(await source.open(), Checkpointed)
    source.close()
    path.write_text(path.read_text() + "\nSEEN = []\n\n\ndef see(x: str) -> None:\n    SEEN.append(x)\n")
    source = opened(path)
    assert not isinstance(await source.open(), Checkpointed)
    source.close()
    assert opened(path).isolation == "sandbox default, plays in a process each"
    assert opened(path, sandbox={"plays": "shared"}).isolation == "sandbox default, plays share"
    assert opened(path, sandbox="unsafe").isolation == "unsafe: a process without any lock"


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        pytest.param({}, "there is none", id="none"),
        pytest.param({"library": "retail", "python": "a.py"}, "there is library and python", id="two"),
        pytest.param({"library": "retail", "states": {"huge": 1}}, "'small', 'medium' or 'large'", id="no-such-size"),
        pytest.param({"library": "retail", "states": {"small": 0}}, "greater than or equal to 1", id="no-states"),
    ],
)
def test_an_entry_is_exactly_one_environment(given: dict[str, object], reason: str) -> None:
    with pytest.raises(ValidationError) as caught:
        EnvironmentSettings.model_validate(given)
    assert reason in format_first_error(caught.value)


def test_an_unknown_name_lists_those_that_there_are() -> None:
    with pytest.raises(InputError, match=r"named 'retial' \(did you mean \"retail\"\?\); there are: .*retail"):
        ENVIRONMENTS.get("retial")


def test_the_library_is_a_source_like_any_other() -> None:
    source = open_source(EnvironmentSettings(library="retail"))
    assert (source.name, source.isolation) == ("retail", "bundled or installed code, in process")
    assert source.phrasebook.tools


def test_words_beside_a_bundled_environment_take_the_place_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "words.yaml").write_text("parameters: {status: {values: {pending: [still waiting]}}}\n", "utf-8")
    (tmp_path / "stories.yaml").write_text("scenarios: []\n", "utf-8")
    words = {"phrases": tmp_path / "words.yaml", "scenarios": tmp_path / "stories.yaml"}
    source = open_source(EnvironmentSettings.model_validate({"library": "retail", **words}))
    assert not source.phrasebook.tools and list(source.phrasebook.parameters) == ["status"]
    assert not source.scenarios.scenarios
    source = open_source(EnvironmentSettings.model_validate({"library": "retail", "scenarios": words["scenarios"]}))
    assert source.phrasebook.tools and not source.scenarios.scenarios


def test_what_a_worker_imports_brings_no_network_and_no_database() -> None:
    """Whatever a sandboxed worker has imported before it is locked, foreign code can use."""
    heavy = "{'asyncio', 'ssl', 'sqlite3', 'http'}"
    wanted = f"import sys, trajsmith.environments.native; print(*sorted({heavy} & set(sys.modules)))"
    found = subprocess.run([sys.executable, "-c", wanted], capture_output=True, text=True, check=True)
    assert found.stdout.split() == []


def generated(folder: Path, *names: str) -> Path:
    for name in names:
        (folder / name).mkdir(parents=True)
        written(folder / name / f"{name}.py", name.capitalize())
        (folder / name / f"test_{name}.py").write_text("")
    return folder


def files_of(folder: Path) -> list[str]:
    settings = EnvironmentSettings.model_validate({"python": str(folder)}, context={"must_exist": True})
    return [Path(str(one.python)).name for one in expand_settings(settings)]


def test_a_folder_of_generated_environments_stands_for_all_of_them(tmp_path: Path) -> None:
    assert files_of(generated(tmp_path, "notes", "books")) == ["books.py", "notes.py"]


def test_what_a_catalogue_does_not_accept_is_left_out(tmp_path: Path) -> None:
    entries = '{"entries": [{"name": "notes", "accepted": true}, {"name": "books", "accepted": false}]}'
    (generated(tmp_path, "notes", "books") / "catalogue.json").write_text(entries)
    assert files_of(tmp_path) == ["notes.py"]


@pytest.mark.parametrize("catalogue", ["[]", '{"entries": [{}]}', '{"entries": []}'])
def test_a_folder_without_environments_is_one_clear_error(tmp_path: Path, catalogue: str) -> None:
    (generated(tmp_path, "notes") / "catalogue.json").write_text(catalogue)
    with pytest.raises(ValidationError, match="env gen --count"):
        files_of(tmp_path)
