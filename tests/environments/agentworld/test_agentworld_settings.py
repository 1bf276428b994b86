"""What is read of an Agent-World directory on the host, and what is wrong with it."""

import json

import pytest
from agentworld_files import FILES, HOTELS, STATE
from pydantic import ValidationError

from trajsmith.environments.adapters.agentworld.program import load
from trajsmith.environments.adapters.agentworld.settings import AgentWorldSettings, build_payload
from trajsmith.records import InputError


@pytest.fixture
def directory(tmp_path):
    made = tmp_path / "hotels"
    for name, text in FILES.items():
        (made / name).parent.mkdir(parents=True, exist_ok=True)
        (made / name).write_text(text)
    (made / "tools.py").write_text(HOTELS)
    (made / ".hidden").write_text("x")
    return made


def test_a_directory(directory):
    settings = AgentWorldSettings(directory=directory)
    program = load(build_payload(settings))
    assert program.spec.name == settings.environment == "hotels"
    assert program.states(0) == [STATE]


def test_tools_elsewhere_and_a_list_beside(directory, tmp_path):
    (tmp_path / "code").mkdir()
    (directory / "tools.py").rename(tmp_path / "code" / "hotel_tools.py")
    (directory / "tools.json").write_text(json.dumps({"tools": [{"name": "find", "description": "Find one."}]}))
    program = load(build_payload(AgentWorldSettings(directory=directory, tools=tmp_path / "code", name="inn")))
    assert [(tool.server, tool.name, tool.description) for tool in program.spec.tools] == [("inn", "find", "Find one.")]
    assert "tools.json" not in program.states(0)[0]


def test_fixed_and_ignored_files(directory):
    settings = AgentWorldSettings(directory=directory, fixed=("*.csv",), ignore=("cards/*",))
    given = build_payload(settings)
    assert given["fixed"] == {"rates.csv": FILES["rates.csv"]}
    assert set(given["states"][0]) == {"hotels.json", "bookings.json"}


def test_more_states(directory, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    (other / "hotels.json").write_text("[]")
    given = build_payload(AgentWorldSettings(directory=directory, states=(other,)))
    assert [len(state) for state in given["states"]] == [4, 1]


def test_what_is_wrong_is_named(directory, tmp_path):
    (directory / "bad.json").write_text("{")
    with pytest.raises(InputError, match=r"bad\.json:1: no JSON"):
        build_payload(AgentWorldSettings(directory=directory))
    (directory / "bad.json").unlink()
    (directory / "photo.png").write_bytes(b"\x89PNG\xff")
    with pytest.raises(InputError, match=r"photo\.png is no UTF-8 text.*leave it out with `ignore`"):
        build_payload(AgentWorldSettings(directory=directory))
    (directory / "tools.py").unlink()
    with pytest.raises(InputError, match=r"there is no tools\.py and no tools/"):
        build_payload(AgentWorldSettings(directory=directory))
    with pytest.raises(InputError, match="is no directory of data files"):
        build_payload(AgentWorldSettings(directory=tmp_path / "nowhere", tools=tmp_path))


@pytest.mark.parametrize("root", ["data", "/", "/app/", "/app/../x"])
def test_roots(root):
    with pytest.raises(ValidationError, match="must be an absolute path"):
        AgentWorldSettings(directory=".", root=root)
