"""What is read of EnvScaler's files on the host, and what is wrong with them."""

import json

import pytest
from envscaler_files import CONFIG, MESSAGES

from trajsmith.environments.adapters.envscaler.program import load
from trajsmith.environments.adapters.envscaler.settings import (
    EnvScalerSettings,
    build_payload,
    discover,
    get_environment_name,
)
from trajsmith.environments.sources import EnvironmentSettings, expand_settings
from trajsmith.records import InputError

ENTRY = {
    "env_id": "env_1",
    "environment_introduction": "People write messages.",
    "constraints_rules": ["Blocked users get nothing.", "Nobody is deleted."],
    "operation_list": [
        {"operation_name": "get_user", "operation_type": "Information Query Class"},
        {"operation_name": "send", "operation_type": "State Change Class"},
        {"operation_name": "block", "operation_type": "unclear"},
    ],
    "env_class_name": "MessageCenter",
    "env_class_code": MESSAGES,
    "tools": [
        {"type": "function", "function": {"name": name, "description": name, "parameters": None}}
        for name in ("get_user", "send", "block")
    ],
}
TWO = {"env_1": ENTRY, "env_2": ENTRY | {"env_id": "env_2", "env_class_name": "User"}}
SCENARIOS = [
    {"task_id": "t1", "env_id": "env_1", "init_config": CONFIG},
    {"task_id": "t2", "env_id": "env_2", "init_config": {}},
    {"task_id": "t3", "env_id": "env_1", "init_config": {"users": {}}},
]


def written(path, content):
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def test_an_entry_of_the_metadata(tmp_path):
    file = written(tmp_path / "metadata.json", TWO)
    scenarios = written(tmp_path / "scenarios.json", SCENARIOS)
    settings = EnvScalerSettings(file=file, id="env_1", scenarios=scenarios)
    assert get_environment_name(settings) == "MessageCenter"
    program = load(build_payload(settings))
    assert program.spec.description == "People write messages."
    assert program.spec.policy == "- Blocked users get nothing.\n- Nobody is deleted."
    assert [tool.annotations.read_only_hint for tool in program.spec.tools] == [True, False, None]
    assert [len(state["users"]) for state in program.states(0)] == [2, 0]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("one.json", ENTRY),
        ("list.json", [ENTRY]),
        ("named.json", {"env_1": ENTRY}),
        ("lines.jsonl", json.dumps(ENTRY) + "\n\n"),
        ("class.py", MESSAGES),
    ],
)
def test_forms_of_files(tmp_path, name, content):
    settings = EnvScalerSettings(file=written(tmp_path / name, content))
    assert load(build_payload(settings)).spec.tool("send")
    assert get_environment_name(settings) == ("class" if name == "class.py" else "MessageCenter")


@pytest.mark.parametrize(
    ("name", "content", "count"),
    [
        ("states.json", [CONFIG, CONFIG], 2),
        ("state.json", CONFIG, 1),
        ("lists.json", [{"env_id": "env_1", "init_config_list": [CONFIG] * 3}], 3),
        ("lines.jsonl", "\n".join(json.dumps(scenario) for scenario in SCENARIOS), 2),
    ],
)
def test_forms_of_scenarios(tmp_path, name, content, count):
    file = written(tmp_path / "metadata.json", ENTRY)
    settings = EnvScalerSettings(file=file, scenarios=written(tmp_path / name, content))
    assert len(build_payload(settings)["states"]) == count


def test_the_entrys_own_configurations_and_the_limit(tmp_path):
    file = written(tmp_path / "metadata.json", ENTRY | {"init_config_list": [CONFIG] * 3})
    assert len(build_payload(EnvScalerSettings(file=file))["states"]) == 3
    assert len(build_payload(EnvScalerSettings(file=file, max_states=2))["states"]) == 2


def test_all_of_a_file(tmp_path):
    file = written(tmp_path / "metadata.json", TWO)
    assert [settings.id for settings in discover(file)] == ["env_1", "env_2"]
    chosen = EnvironmentSettings(envscaler=EnvScalerSettings(file=file, max_states=2))
    entries = [entry.envscaler for entry in expand_settings(chosen)]
    assert [(entry.id, entry.max_states) for entry in entries] == [("env_1", 2), ("env_2", 2)]


@pytest.mark.parametrize(
    ("content", "chosen", "reason"),
    [
        (TWO, None, "it has 2 entries; set `id` to one of: env_1, env_2"),
        (TWO, "env_9", "0 entries have the id env_9; set `id` to one of: env_1, env_2"),
        ("[", None, "metadata.json:1: no JSON"),
        ([], None, "metadata must be an entry"),
        ([{"env_id": "x"}], None, "entry x has no env_class_code"),
        (ENTRY | {"tools": [{}]}, None, "tool 1 has no name"),
    ],
)
def test_broken_metadata_is_named(tmp_path, content, chosen, reason):
    settings = EnvScalerSettings(file=written(tmp_path / "metadata.json", content), id=chosen)
    with pytest.raises(InputError) as caught:
        build_payload(settings)
    assert reason in str(caught.value)


def test_scenarios_of_other_environments_only(tmp_path):
    file = written(tmp_path / "metadata.json", ENTRY)
    scenarios = written(tmp_path / "scenarios.json", [SCENARIOS[1]])
    with pytest.raises(InputError, match=r"scenarios\.json: no scenario for env_1"):
        build_payload(EnvScalerSettings(file=file, scenarios=scenarios))
