"""What is wrong with a checkout is one line that names the file; nothing is run on the way."""

import pytest
from tau2_files import CHECKOUT, copied, lending, settings

from trajsmith.environments.adapters.tau2 import settings as module
from trajsmith.environments.adapters.tau2.program import load
from trajsmith.environments.adapters.tau2.settings import Tau2Settings, build_payload, get_environment_name
from trajsmith.records import InputError

DOMAIN = "src__tau2__domains__lending__"
DATA = "data__tau2__domains__lending__"


def test_names_are_known_without_running_anything():
    assert get_environment_name(settings()) == "tau2_lending"
    assert get_environment_name(settings(name="desk")) == "desk"
    assert get_environment_name(Tau2Settings(domain="telecom-workflow")) == "tau2_telecom_workflow"


def test_the_payload_has_what_is_needed_and_no_more():
    given = build_payload(settings())
    names = [name for name, _, _ in given["modules"]]
    assert names.index("tau2.domains.lending.data_model") < names.index("tau2.domains.lending.tools")
    assert names[-1] == "tau2.data_model.tasks" or names[-1] == "tau2.domains.lending.environment"
    assert not {"tau2", "tau2.utils", "tau2.domains.lending"} & set(names)
    assert given["data"].keys() == {"db.json", "policy.md", "user_db.toml"}
    assert given["file"] == "tau2/domains/lending"


@pytest.mark.parametrize(
    "path", [CHECKOUT, CHECKOUT / "src", CHECKOUT / "src" / "tau2"], ids=["checkout", "src", "package"]
)
def test_a_checkout_may_be_named_at_any_height(path):
    assert build_payload(settings(path)) == build_payload(settings())


def test_the_data_may_lie_elsewhere(tmp_path, monkeypatch):
    found = copied(tmp_path / "other")
    assert build_payload(settings(data=found / "data")) == build_payload(settings())
    monkeypatch.setenv("TAU2_DATA_DIR", str(tmp_path))
    with pytest.raises(InputError, match=r"no data of the domain; set `data`, or TAU2_DATA_DIR"):
        build_payload(settings())


def test_the_other_package_of_this_name_is_told_apart(tmp_path, monkeypatch):
    monkeypatch.setattr("sys.path", [str(tmp_path)])
    with pytest.raises(InputError, match=r"^the package tau2 is not installed \(PyPI's is not the benchmark\): clone"):
        build_payload(Tau2Settings(domain="retail"))
    (tmp_path / "tau2").mkdir()
    (tmp_path / "tau2" / "__init__.py").write_text("raise RuntimeError('imported')")
    with pytest.raises(InputError, match=r"^the package tau2 that is installed is another one"):
        build_payload(Tau2Settings(domain="retail"))
    monkeypatch.setattr("sys.path", [str(CHECKOUT / "src")])
    assert module.find_package(None) == CHECKOUT / "src" / "tau2"


def test_tasks_can_be_left_out_and_states_limited():
    assert [task["id"] for task in build_payload(settings(without=("2",)))["tasks"]] == ["1", "3"]
    assert len(build_payload(settings(without=("2",)))["initial"]) == 1
    assert len(build_payload(settings(max_states=0))["initial"]) == 2


MISSING = [
    ({"path": CHECKOUT / "data"}, "no package tau2 with environment/toolkit.py in it: give a checkout of https://"),
    ({"domain": "nothing"}, "no domain 'nothing'; there are lending"),
    ({"tasks": "gone.json"}, "gone.json cannot be read: No such file"),
    ({"tasks": "policy.md"}, "policy.md:1: no JSON"),
    ({"tasks": "db.json"}, "db.json: not a list of tasks"),
]


@pytest.mark.parametrize(("more", "message"), MISSING, ids=[message for _, message in MISSING])
def test_what_is_missing_is_named(more, message):
    wanted = Tau2Settings.model_validate({"domain": "lending", "path": CHECKOUT, **more})
    with pytest.raises(InputError) as caught:
        build_payload(wanted)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


BROKEN = [
    ({f"{DOMAIN}tools_DOT_py": "def x(:\n"}, "tools.py:1: it does not parse"),
    (
        {f"{DOMAIN}tools_DOT_py": "import tau2.nothing\n"},
        "no module tau2.nothing, which tau2.domains.lending.tools needs",
    ),
    ({f"{DOMAIN}utils_DOT_py": "import not_there_at_all\n"}, "tau2/domains/lending/utils.py:1: ModuleNotFoundError"),
    ({f"{DOMAIN}utils_DOT_py": "\nfrom tau2.utils import send_mail\n"}, "tau2/domains/lending/utils.py:2: ImportError"),
    ({f"{DOMAIN}utils_DOT_py": "x = 1\nraise SystemExit(3)\n"}, "tau2/domains/lending/utils.py:2: SystemExit: 3"),
    ({f"{DATA}db_DOT_json": "{"}, "tau2/domains/lending/environment.py:1: JSONDecodeError"),
    ({f"{DATA}db_DOT_json": '{"books": {}}'}, "environment.py:1: ValidationError: members: Field required"),
]


@pytest.mark.parametrize(("changes", "message"), BROKEN, ids=[message for _, message in BROKEN])
def test_what_is_broken_is_named_with_file_and_line(tmp_path, changes, message):
    path = copied(tmp_path / "copy", **changes)
    with pytest.raises(InputError) as caught:
        load(build_payload(settings(path)))
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_options_and_data_that_the_domain_wants_and_nobody_has():
    with pytest.raises(InputError, match=r"FileNotFoundError: data file extra.json is missing"):
        lending(options={"with_extra": True})
    with pytest.raises(InputError, match=r"TypeError: .*unexpected keyword argument 'wish'"):
        lending(options={"wish": 1})


def test_an_initial_state_that_cannot_be_had_is_named(tmp_path):
    action = '{"env_type": "assistant", "func_name": "fly", "arguments": {}}'
    tasks = f'[{{"id": "9", "initial_state": {{"initialization_actions": [{action}]}}}}]'
    path = copied(tmp_path / "copy", **{f"{DATA}tasks_DOT_json": tasks})
    with pytest.raises(InputError, match=r"an initial state cannot be had: .*no attribute 'fly'"):
        load(build_payload(settings(path)))
    assert len(load(build_payload(settings(path, without=("9",)))).states(0)) == 1


def test_tools_of_both_sides_with_one_name_are_refused(tmp_path):
    tools = (CHECKOUT / "src/tau2/domains/lending/user_tools.py").read_text().replace("def look", "def journal")
    path = copied(tmp_path / "copy", **{f"{DOMAIN}user_tools_DOT_py": tools})
    with pytest.raises(InputError, match=r"agent and user both have a tool named journal"):
        load(build_payload(settings(path)))
