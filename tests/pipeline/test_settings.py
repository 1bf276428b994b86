"""Settings: every fault is one line that names file, line, key, and what would be right."""

from datetime import date
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field, SecretStr, field_validator, model_validator

from trajsmith.pipeline.config import load_config
from trajsmith.pipeline.yaml_settings import dump_settings, load_settings
from trajsmith.records import InputError


class Play(BaseModel):
    candidates: int = 1
    temperature: float = 0.0
    models: dict[str, str] = {}

    @field_validator("candidates")
    @classmethod
    def _positive(cls, value):
        if value < 1:
            raise ValueError("must be at least 1")
        return value


class Python(BaseModel):
    kind: Literal["python"]
    module: str


class Mcp(BaseModel):
    kind: Literal["mcp"]
    command: list[str] = Field(alias="cmd")


class Short(BaseModel):
    name: str

    @model_validator(mode="before")
    @classmethod
    def _from_text(cls, value):
        return {"nme": value} if isinstance(value, str) else value


class Config(BaseModel):
    seed: int
    play: Play = Play()
    environments: list[Annotated[Python | Mcp, Field(discriminator="kind")]] = []
    either: Python | Mcp | None = None
    limits: dict[str, Play] = {}
    start: date | None = None
    country: str = ""
    strict: bool = False
    short: Short | None = None
    rest: Any = None
    key: SecretStr | None = None


TEXT = """\
seed: 7
play:
  candidates: 4
  temperature: 1e-3
environments:
  - kind: python
    module: a.b
  - {kind: mcp, cmd: [x, "y"]}
"""


@pytest.fixture
def load(tmp_path):
    def load(text=TEXT, *overrides):
        path = tmp_path / "config.yaml"
        path.write_text(text)
        return load_settings(path, Config, overrides)

    return load


def test_reads_and_dumps_the_same_settings(load):
    config = load()
    assert (config.seed, config.play.candidates, config.play.temperature) == (7, 4, 0.001)
    assert config.environments[1].command == ["x", "y"]
    assert load(dump_settings(config)) == config


def test_dump_writes_defaults_and_odd_text_survives(load):
    config = load("seed: 1\ncountry: no\nstart: 2024-01-31\nrest: [2024-01-31, on, ~, 'true', 'ä: #', '1e5', 1e-4]")
    assert config.country == "no" and config.start == date(2024, 1, 31)
    assert config.rest == ["2024-01-31", "on", None, "true", "ä: #", "1e5", 0.0001]
    assert "candidates: 1" in dump_settings(config)
    assert load(dump_settings(config)) == config


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("seed: 1\nplay:\n  temprature: 1", '3: play.temprature: unknown key; did you mean "temperature"?'),
        ("seed: 1\nsed: 2", '2: sed: unknown key; did you mean "seed"?'),
        ("sed: 2", '1: sed: unknown key; did you mean "seed"?'),
        ("seed: 1\nplay:\n  zz: 1", "3: play.zz: unknown key; valid keys are candidates, models, temperature"),
        (
            "seed: 1\nlimits:\n  a: {}\n  b: {candidate: 3}",
            '4: limits.b.candidate: unknown key; did you mean "candidates"?',
        ),
        (
            "seed: 1\nenvironments:\n- kind: mcp\n  cmd: []\n- kind: python\n  modul: x",
            '6: environments.1.modul: unknown key; did you mean "module"?',
        ),
        ("seed: 1\neither:\n  kind: mcp\n  cmmd: 3", '4: either.cmmd: unknown key; did you mean "cmd"?'),
        ("seed: 1\nshort: hm", '2: short.nme: unknown key; did you mean "name"?'),
        ("seed: 1\nseed: 2", '2: the key "seed" stands twice, first in line 1'),
        ("seed: 1\nplay:\n  candidates: 1\n\n  candidates: 1", '5: the key "candidates" stands twice, first in line 3'),
        ("seed: 1\nrest: [{a: 1, a: 2}]", '2: the key "a" stands twice, first in line 2'),
        ("seed: 1\n1: 2", "2: the key 1 is not read as text: put it in quotes"),
        ("seed: x", "1: seed: it is a whole number (got 'x')"),
        ("play: {}", "1: seed: this key is required"),
        ("seed: 1\nenvironments:\n- kind: python", "3: environments.0.module: this key is required"),
        ("seed: 1\nplay: {candidates: 0}", "2: play.candidates: must be at least 1 (got '0')"),
        ("seed: 1\nplay: [1]", "2: play: Input should be a valid dictionary or instance of Play"),
        (
            "seed: 1\nenvironments: [{kind: mpc}]",
            "2: environments.0: Input tag 'mpc' found using 'kind' does not match any of the expected tags: "
            "'python', 'mcp'",
        ),
        ("- 1", "1: the file must hold keys and values, not a list"),
        ("seed: [1", "1: not valid YAML: expected ',' or ']', but got '<stream end>'"),
        ("seed: 1\n\tx: 1", "2: not valid YAML: found character '\\t' that cannot start any token"),
        (
            "seed: !!python/object:os.system 1",
            "1: not valid YAML: could not determine a constructor for the tag "
            "'tag:yaml.org,2002:python/object:os.system'",
        ),
        ("seed: 1\n---\nseed: 2", "2: not valid YAML: but found another document"),
    ],
)
def test_faults_of_the_file_are_one_line(load, tmp_path, text, fault):
    with pytest.raises(InputError) as caught:
        load(text)
    assert str(caught.value) == f"{tmp_path}/config.yaml:{fault}"


def test_a_key_of_another_branch_is_not_called_unknown(load):
    with pytest.raises(InputError, match="either") as caught:
        load("seed: 1\neither: {kind: mcp, cmd: 3}")
    assert "unknown key" not in str(caught.value)


def test_an_empty_file_lacks_the_required_key(load):
    with pytest.raises(InputError, match=r"config\.yaml:1: seed: this key is required"):
        load("# nothing\n")


@pytest.mark.parametrize(
    ("override", "path", "value"),
    [
        ("seed=8", ("seed",), 8),
        ("play.candidates=2", ("play", "candidates"), 2),
        ("limits.new.candidates=3", ("limits", "new", "candidates"), 3),
        ("environments.0.module=c=d", ("environments", 0, "module"), "c=d"),
        ("environments.1.cmd.1=z", ("environments", 1, "cmd", 1), "z"),
        ("rest={a: [1, no]}", ("rest",), {"a": [1, "no"]}),
        ("start=", ("start",), None),
    ],
    ids=lambda value: value if isinstance(value, str) and "=" in value else "",
)
def test_overrides_reach_their_place(load, override, path, value):
    found = load(TEXT, override).model_dump(by_alias=True)
    for key in path:
        found = found[key]
    assert found == value


def test_later_overrides_win_and_anchors_are_not_shared(load):
    config = load("seed: 1\nplay: &p {candidates: 2}\nlimits: {a: *p}", "limits.a.candidates=5", "seed=2", "seed=3")
    assert (config.seed, config.play.candidates, config.limits["a"].candidates) == (3, 2, 5)


@pytest.mark.parametrize(
    ("override", "fault"),
    [
        ("seed", "write it as key=value, for example play.candidates=4"),
        ("=1", "write it as key=value, for example play.candidates=4"),
        ("play..x=1", "write it as key=value, for example play.candidates=4"),
        ("plya.candidates=1", 'plya: unknown key; did you mean "play"?'),
        ("play.candidats=1", 'play.candidats: unknown key; did you mean "candidates"?'),
        ("seed.x=1", "seed is a number, so nothing can be set inside it"),
        ("environments.2.module=x", "environments is a list of 2, so 2 is no index in it"),
        ("environments.first.module=x", "environments is a list of 2, so first is no index in it"),
        (
            "play.candidates=many",
            "play.candidates: it is a whole number (got 'many')",
        ),
        ("environments.0={kind: python}", "environments.0.module: this key is required"),
    ],
)
def test_faults_of_an_override_name_it(load, override, fault):
    with pytest.raises(InputError) as caught:
        load(TEXT, override)
    assert str(caught.value) == f"--set {override}: {fault}"


@pytest.mark.parametrize(
    ("override", "fault"),
    [("seed=[1", "not valid YAML"), ("rest={a: 1, a: 2}", 'the key "a" stands twice')],
)
def test_yaml_faults_of_an_override_name_it(load, override, fault):
    with pytest.raises(InputError, match=fault) as caught:
        load(TEXT, override)
    assert str(caught.value).startswith(f"--set {override}") and "\n" not in str(caught.value)


def test_a_secret_is_not_shown(load):
    with pytest.raises(InputError) as caught:
        load("seed: 1\nkey: [hunter2]")
    assert "hunter2" not in str(caught.value)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(InputError, match=f"^no such file: {tmp_path}/none.yaml$"):
        load_settings(tmp_path / "none.yaml", Config)


def test_a_folder_and_a_binary_file_are_no_configuration(tmp_path):
    with pytest.raises(InputError, match="cannot be read: Is a directory"):
        load_settings(tmp_path, Config)
    (tmp_path / "x.yaml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match="not UTF-8 text"):
        load_settings(tmp_path / "x.yaml", Config)


def test_source_paths_start_at_the_folder_of_the_file_and_stay_where_they_are(tmp_path, monkeypatch):
    from trajsmith.pipeline.config import load_config

    (tmp_path / "there").mkdir()
    file = tmp_path / "there" / "run.yaml"
    file.write_text(
        "name: n\nrun: runs/n\nprompts: words\ndecontaminate: [bench.jsonl]\nenvironments:\n"
        "  - {python: 'mine.py:Mine', state_files: [one.json], phrases: p.yaml}\n  - {openapi: api.yaml}\n"
        "  - {awm: {server: s.py}}\n"
    )
    config, there = load_config(file), tmp_path / "there"
    python, openapi, awm = config.environments
    assert (python.python, python.state_files, python.phrases) == (
        f"{there}/mine.py:Mine", (there / "one.json",), there / "p.yaml"
    )  # fmt: skip
    assert (openapi.openapi.spec, awm.awm.server) == (there / "api.yaml", there / "s.py")
    assert (config.prompts, config.decontaminate) == (there / "words", (there / "bench.jsonl",))
    assert str(config.run) == "runs/n"
    (tmp_path / "config.yaml").write_text(dump_settings(config))
    monkeypatch.chdir("/")
    assert load_config(tmp_path / "config.yaml") == config


LITERAL = "sk-" + "a1B2" * 8
SERVER = """name: rows
environments:
  - mcp: {name: shop, url: "https://me:pass@host/mcp?key=abc", headers: {Authorization: Bearer abc, X: "${SHOP_KEY}"}}
  - mcp: {name: d, command: [d, --token, hunter2, --key=hunter2, --port, "80"], env: {PIN: "4711", K: "${SHOP_KEY}"}}
models:
  big: {model: big, base_url: "http://localhost:1/v1", key_env: SHOP_KEY, extra_body: {api_key: hunter2, top_k: 5}}
"""


@pytest.mark.parametrize(
    ("text", "line", "key"),
    [
        (SERVER.replace("4711", LITERAL), 4, "environments.1.mcp.env.PIN"),
        (SERVER.replace("Bearer abc", f"Bearer {LITERAL}"), 3, "environments.0.mcp.headers.Authorization"),
        (SERVER.replace("api_key: hunter2", f"api_key: {LITERAL}"), 6, "models.big.extra_body.api_key"),
        (SERVER.replace("--port", LITERAL), 4, "environments.1.mcp.command.4"),
    ],
    ids=["env", "headers", "extra_body", "arguments"],
)
def test_a_key_in_a_configuration_is_refused(tmp_path, text, line, key):
    (tmp_path / "run.yaml").write_text(text)
    with pytest.raises(InputError, match=rf"run\.yaml:{line}: {key}: it holds .*environment variable") as caught:
        load_config(tmp_path / "run.yaml")
    assert LITERAL not in str(caught.value)


def test_a_key_given_by_set_is_refused_and_not_shown(tmp_path):
    (tmp_path / "run.yaml").write_text(SERVER)
    with pytest.raises(InputError, match=r"^--set: models\.big\.model: it holds") as caught:
        load_config(tmp_path / "run.yaml", [f"models.big.model={LITERAL}"])
    assert LITERAL not in str(caught.value)


def test_a_key_in_an_address_of_a_model_is_refused(tmp_path):
    (tmp_path / "run.yaml").write_text(SERVER.replace("http://localhost:1/v1", "http://localhost:1/v1?key=abc"))
    with pytest.raises(InputError, match="without a name, key or query"):
        load_config(tmp_path / "run.yaml")


def test_published_settings_hold_no_literal_secrets(tmp_path):
    (tmp_path / "run.yaml").write_text(SERVER)
    config = load_config(tmp_path / "run.yaml")
    published = dump_settings(config, folders=False)
    for secret in ("hunter2", "me:pass", "abc", "4711"):
        assert secret not in published
        assert secret in dump_settings(config)
    for public in ("${SHOP_KEY}", "key_env: SHOP_KEY", "top_k: 5", "--port", "host/mcp", "- '80'"):
        assert public in published


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ("environments: [retial]", "2: environments: write an entry as - {library: retial}, or - {python: FILE}"),
        (
            "environments: my.py",
            "2: environments: write an entry as - {python: my.py}, or - {library: NAME} (got 'my.py')",
        ),
        ("environments: []", "2: environments: name at least one environment, such as - {library: retail}"),
        ("sample: {length: 40}", "2: sample.length: two values in brackets, such as [2, 4] (got '40')"),
        ("sample: {count: many}", "2: sample.count: it is a whole number (got 'many')"),
        ("count: 3", '2: count: unknown key; did you mean "sample.count" or "accept.count"?'),
    ],
)
def test_a_run_configuration_is_told_how_to_write_it(tmp_path, line, fault):
    path = tmp_path / "run.yaml"
    path.write_text(f"name: x\n{line}\n" + ("" if "environments" in line else "environments: [{library: retail}]\n"))
    with pytest.raises(InputError) as caught:
        load_config(path)
    assert str(caught.value) == f"{path}:{fault}"


@pytest.mark.parametrize(
    ("name", "command"),
    [
        ("sft_qwen3", "sft sft_qwen3"),
        ("grpo_qwen3", "grpo grpo_qwen3"),
        ("train_demo_eval", "eval train_demo_eval"),
        ("envgen_openai", "env gen --config envgen_openai"),
    ],
)
def test_the_configuration_of_another_command_is_told_its_command(name, command):
    with pytest.raises(InputError, match=f"this configures trajsmith .*: trajsmith {command}$"):
        load_config(Path(name))


TINY = "name: tiny\nseed: 1\nenvironments: [{library: bank}]\nsample: {count: 2, length: [3, 4]}\n"


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("seed: 1", "seed: -1", "line.yaml:2: seed: Input should be greater than or equal to 0"),
        ("seed: 1", "seed: true", "line.yaml:2: seed: a number is needed (got true)"),
        ("seed: 1", f"seed: {10**30}", "line.yaml:2: seed: the number has more than 64 bits"),
        ("count: 2", f"count: {10**30}", "line.yaml:4: sample.count: the number has more than 64 bits"),
        ("count: 2", "count: true", "line.yaml:4: sample.count: a number is needed (got true)"),
        ("[3, 4]", "[true, 4]", "line.yaml:4: sample.length.0: a number is needed (got true)"),
        ("{library: bank}", "{library: bank, states: {small: true}}", "states.small: a number is needed"),
        ("{library: bank}", "{library: bank, states: {small: 10001}}", "states.small: Input should be less than"),
        ("tiny", "a/b", "line.yaml:1: name: a name of 1 to 120 printable characters"),
        ("tiny", '"a\\nb"', "line.yaml:1: name: a name of 1 to 120 printable characters"),
        ("tiny", '"  "', "line.yaml:1: name: a name of 1 to 120 printable characters"),
        ("tiny", '"a\\0b"', "line.yaml:1: not valid YAML: a text has a NUL character"),
        ("tiny", "[" * 200, "nested deeper than 100 levels"),
        ("tiny", "9" * 5000, "Exceeds the limit"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_numbers_and_names_have_bounds(tmp_path: Path, old: str, new: str, said: str) -> None:
    (tmp_path / "line.yaml").write_text(TINY.replace(old, new))
    with pytest.raises(InputError) as refusal:
        load_config(tmp_path / "line.yaml")
    assert said in str(refusal.value)


def test_truth_values_and_optional_numbers_pass_where_they_are_meant(tmp_path: Path) -> None:
    (tmp_path / "line.yaml").write_text(
        f"{TINY}play: {{parallel: 1.0}}\nroles: {{writer: {{model: scripted, seed: 5}}}}\n"
    )
    assert load_config(tmp_path / "line.yaml").roles.writer.seed == 5


def test_a_stored_run_with_the_former_sharing_of_plays_opens(tmp_path):
    file = tmp_path / "config.yaml"
    file.write_text("name: old\nenvironments: [{library: bank, sandbox: {plays: auto}}]\n")
    assert load_config(file).environments[0].sandbox.plays == "process"
