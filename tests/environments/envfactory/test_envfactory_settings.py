"""What is read of EnvFactory's files on the host, and what is wrong with them."""

import json

import pytest
from envfactory_files import LIBRARY, STATE

from trajsmith.environments.adapters.envfactory.program import load
from trajsmith.environments.adapters.envfactory.settings import EnvFactorySettings, build_payload, discover
from trajsmith.records import InputError

CHECKPOINT = {
    "schema": {},
    "scenarios": [
        {"scenario_id": "good", "expected_behavior": "pass", "scenario_data": STATE},
        {"scenario_id": "bad", "expected_behavior": "validation_error", "scenario_data": {"books": 1}},
        {"scenario_id": "more", "scenario_data": STATE},
    ],
}


@pytest.fixture
def checkout(tmp_path):
    for folder in ("envs/tools", "envs/metadata", "envs/intermediate", "configs"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "envs/tools/Library.py").write_text(LIBRARY)
    (tmp_path / "envs/tools/Spare.py").write_text("raise SystemExit")
    metadata = {"class_name": "Library", "description": "The desk.", "tools": [{"name": "lend"}]}
    (tmp_path / "envs/metadata/Library_metadata.json").write_text(json.dumps(metadata))
    (tmp_path / "envs/intermediate/Library_checkpoint.json").write_text(json.dumps(CHECKPOINT))
    servers = {"Desk": {"tool_path": "envs/tools/Library.py", "stateless": False}}
    (tmp_path / "configs/mcp_server.json").write_text(json.dumps({"mcpServers": servers}))
    return tmp_path


def test_a_checkout_has_what_its_configuration_registers(checkout):
    (settings,) = discover(checkout)
    assert settings.environment == "Desk"
    program = load(build_payload(settings))
    assert program.spec.name == "Desk"
    assert program.spec.description == "The desk."
    assert len(program.states(0)) == 2


def test_without_configuration_all_tool_files(checkout):
    (checkout / "configs/mcp_server.json").unlink()
    assert [settings.environment for settings in discover(checkout)] == ["Library", "Spare"]
    assert [settings.environment for settings in discover(checkout / "envs")] == ["Library", "Spare"]


def test_files_are_only_read(checkout):
    assert build_payload(EnvFactorySettings(tools=checkout / "envs/tools/Spare.py"))["source"] == "raise SystemExit"


def test_the_number_of_states_is_limited(checkout):
    settings = EnvFactorySettings(tools=checkout / "envs/tools/Library.py", max_states=1)
    assert [entry["name"] for entry in build_payload(settings)["scenarios"]] == ["good"]


@pytest.mark.parametrize("content", [[STATE], STATE, [{"scenario_data": STATE}]], ids=["list", "state", "wrapped"])
def test_forms_of_scenario_files(checkout, content):
    file = checkout / "states.json"
    file.write_text(json.dumps(content))
    settings = EnvFactorySettings(tools=checkout / "envs/tools/Library.py", scenarios=file)
    assert json.loads(build_payload(settings)["scenarios"][0]["state"]) == STATE


@pytest.mark.parametrize(
    ("file", "text", "reason"),
    [
        ("envs/metadata/Library_metadata.json", "{", "Library_metadata.json:1: no JSON"),
        ("envs/metadata/Library_metadata.json", "[]", "Library_metadata.json: metadata must be an object"),
        ("envs/metadata/Library_metadata.json", '{"tools": [1]}', "Library_metadata.json: tool 1 has no name"),
        ("envs/intermediate/Library_checkpoint.json", "[1]", "Library_checkpoint.json: scenarios must be"),
        ("configs/mcp_server.json", '{"mcpServers": {"x": 1}}', "mcp_server.json: mcpServers must be an object"),
    ],
)
def test_broken_files_are_named(checkout, file, text, reason):
    (checkout / file).write_text(text)
    with pytest.raises(InputError) as caught:
        for settings in discover(checkout):
            build_payload(settings)
    assert reason in str(caught.value)


def test_missing_files_are_named(tmp_path):
    with pytest.raises(InputError, match=r"Nowhere\.py cannot be read: No such file"):
        build_payload(EnvFactorySettings(tools=tmp_path / "Nowhere.py"))
    with pytest.raises(InputError, match="no environments of EnvFactory"):
        discover(tmp_path)
    (tmp_path / "Latin.py").write_bytes(b"x = '\xff'")
    with pytest.raises(InputError, match=r"Latin\.py is no UTF-8 text"):
        build_payload(EnvFactorySettings(tools=tmp_path / "Latin.py"))
