"""Phrasebooks speak of tools, parameters, fields and slots that exist, and what does not is one clear error."""

import asyncio
import shutil

import pytest

from trajsmith.cli.app import app
from trajsmith.cli.scaffold import PROJECT
from trajsmith.environments.library import ENVIRONMENTS
from trajsmith.environments.native_source import NativeSource
from trajsmith.grounding import check_phrasebook
from trajsmith.phrasing import load_phrasebook
from trajsmith.pipeline import run_context
from trajsmith.pipeline.config import RunConfig
from trajsmith.pipeline.run_directory import RunDirectory
from trajsmith.pipeline.yaml_settings import dump_settings
from trajsmith.records import InputError

BANK = ENVIRONMENTS.get("bank").describe()
FREEZE = "tools: {freeze_card: {%s}}"


@pytest.mark.parametrize("name", ENVIRONMENTS.names())
def test_bundled_phrasebooks_name_what_there_is(name):
    cls = ENVIRONMENTS.get(name)
    check_phrasebook(NativeSource(cls, {"small": 1}).phrasebook, cls.describe())


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        pytest.param(
            "tools: {freeze_crd: {}}",
            "tools.freeze_crd: no tool 'freeze_crd' (did you mean \"freeze_card\"?)",
            id="tool",
        ),
        pytest.param(
            FREEZE % "ask: ['freeze {card}']",
            "tools.freeze_card.ask: 'freeze {card}': no slot 'card' (did you mean \"card_id\"?); there are: card_id",
            id="slot",
        ),
        pytest.param(
            FREEZE % "done: ['It is {out.statuss}.']",
            "no field of the result of freeze_card 'statuss' (did you mean \"status\"?)",
            id="field-of-the-result",
        ),
        pytest.param(
            FREEZE % "done: ['{% if arg.crd_id %}Done.{% endif %}']",
            "no parameter of freeze_card 'crd_id'",
            id="argument",
        ),
        pytest.param(
            FREEZE % "facts: ['$.statuss']",
            "tools.freeze_card.facts: no field of the result of freeze_card 'statuss'",
            id="fact",
        ),
        pytest.param(
            FREEZE % "unavailable: ['It is {row.statuss}.']",
            "tools.freeze_card.unavailable: 'It is {row.statuss}.': no parameter or field 'statuss'",
            id="unavailable",
        ),
        pytest.param(FREEZE % "done: ['{out.status|mony}']", "no filter named 'mony'", id="filter"),
        pytest.param(
            FREEZE % "done: ['{% if out.status %}It is.']", "tools.freeze_card.done: phrase template", id="syntax"
        ),
        pytest.param(
            "parameters: {crd_id: {label: card}}", "parameters.crd_id: no parameter or field 'crd_id'", id="parameter"
        ),
        pytest.param(
            "parameters: {freeze_card.reasn: {label: why}}",
            "parameters.freeze_card.reasn: no parameter of freeze_card 'reasn'",
            id="parameter-of-a-tool",
        ),
        pytest.param(
            "parameters: {card_id: {tell: ['It is {card_id}.']}}",
            "parameters.card_id.tell: 'It is {card_id}.': no slot 'card_id'; there are: value",
            id="slot-of-a-parameter",
        ),
        pytest.param(
            "entities: {crd_id: {noun: card}}",
            "entities.crd_id: no parameter or field 'crd_id' (did you mean \"card_id\"?)",
            id="entity",
        ),
        pytest.param(
            "entities: {card_id: {noun: card, row: ['{knd}']}}",
            "entities.card_id.row: '{knd}': no slot 'knd'",
            id="field-of-a-row",
        ),
        pytest.param(
            "scenarios: ['{nme} calls.']",
            "scenarios: '{nme} calls.': no slot 'nme' (did you mean \"name\"?); there are: name, role",
            id="scenario",
        ),
    ],
)
def test_what_is_not_there_is_named_with_file_key_and_what_is_known(tmp_path, text, fault):
    path = tmp_path / "phrases.yaml"
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        check_phrasebook(load_phrasebook(path), BANK)
    assert str(caught.value).startswith(f"phrasebook {path}: ") and fault in str(caught.value)


def test_fields_of_results_without_a_schema_are_not_judged(tmp_path):
    path = tmp_path / "phrases.yaml"
    path.write_text("tools: {freeze_card: {done: ['It is {out.anything}.']}}\nentities: {row_id: {noun: row}}\n")
    tools = tuple(tool.model_copy(update={"output_schema": {"type": "object"}}) for tool in BANK.tools)
    check_phrasebook(load_phrasebook(path), BANK.model_copy(update={"tools": tools}))


@pytest.mark.parametrize(
    "command",
    [
        ["env", "show", "garden.py"],
        ["env", "check", "garden.py"],
        ["run", "garden.yaml"],
        ["run", "garden.yaml", "--dry-run"],
    ],
    ids=" ".join,
)
@pytest.mark.parametrize("file", ["phrases.yaml", "scenarios.yaml"])
def test_commands_that_open_an_environment_name_the_file_at_fault(tmp_path, monkeypatch, command, file):
    shutil.copytree(PROJECT, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    (tmp_path / file).write_text((tmp_path / file).read_text().replace("water_plant", "watr_plant"))
    with pytest.raises(InputError, match=rf"{file}: .*'watr_plant'"):
        app(command, standalone_mode=False)


def test_words_are_checked_when_a_run_starts_and_not_when_it_goes_on(tmp_path, monkeypatch):
    checked = []
    monkeypatch.setattr(run_context, "check_phrasebook", lambda book, spec: checked.append(spec.name))
    (tmp_path / "phrases.yaml").write_text("{}\n")
    bank, shop = {"library": "bank", "states": {"small": 1}}, {"library": "retail", "states": {"small": 1}}
    bank["phrases"] = tmp_path / "phrases.yaml"  # those of the shop are bundled, and checked by the tests
    settings = {"name": "words", "run": tmp_path / "run", "environments": [bank, shop]}
    config = RunConfig.model_validate(settings)
    run = RunDirectory.create(config.run, dump_settings(config))
    with run.lock():
        for _ in range(2):
            asyncio.run(run_context.RunContext.open(config, run))
    assert checked == ["bank"]
