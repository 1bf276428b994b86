"""OpenAPI documents, tables and SQL schemas beside tool lists in the generation of many environments."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from trajsmith.cli.app import app
from trajsmith.envgen.generate.code import render_environment_code
from trajsmith.envgen.generate.from_sql import read_sql_schema
from trajsmith.envgen.generate.tool_lists import ToolList
from trajsmith.envgen.scale import read_documents, select_services
from trajsmith.records import InputError

SPEC = Path(__file__).parents[1] / "environments" / "openapi" / "specs" / "shop.yaml"
SQL = """
-- a clinic
CREATE TABLE patients (id INTEGER PRIMARY KEY, name TEXT NOT NULL, phone VARCHAR(20), CHECK (length(name) > 1));
create table if not exists clinic."appointments" (
    appointment_id int, patient_id int REFERENCES patients(id), reason text, /* why, in words */ price numeric(8, 2),
    FOREIGN KEY (patient_id) REFERENCES patients(id)
);
INSERT INTO patients VALUES (1, 'Ann', '1');
"""


@pytest.fixture
def schema(tmp_path):
    file = tmp_path / "clinic.sql"
    file.write_text(SQL)
    return file


@pytest.fixture
def rows(tmp_path):
    folder = tmp_path / "garden"
    folder.mkdir()
    names = "\n".join(f"{number},Bed {number},{number * 3}" for number in range(1, 9))
    (folder / "beds.csv").write_text(f"bed_id,name,plants\n{names}\n")
    return folder


def test_a_schema_without_rows_is_a_tool_list(schema):
    listed = read_sql_schema(schema)
    names = [str(one["name"]) for one in listed.tools]
    assert names[:5] == ["create_patient", "get_patient", "update_patient", "delete_patient", "list_patients"]
    columns = {one["name"]: list(one["input_schema"].get("properties", {})) for one in listed.tools}
    assert columns["create_patient"] == ["id", "name", "phone"]
    assert columns["create_appointment"] == ["appointment_id", "patient_id", "reason", "price"]


def test_a_schema_gets_the_values_of_the_lexicon(schema):
    [service] = select_services([], documents=read_documents([], [schema])).services
    nouns = {entity.noun: entity for entity in service.blueprint.entities}
    assert set(nouns) == {"patient", "appointment"} and service.blueprint.name == "clinic"
    assert nouns["appointment"].column("patient_id").references == "patients"
    assert "random" in render_environment_code(service.blueprint)


def test_documents_and_tables_are_services_beside_those_of_lists(schema, rows, tmp_path):
    broken = tmp_path / "broken.yaml"
    broken.write_text("openapi: 3.1.0\npaths: {}\n")
    tools = [{"name": f"{verb}_{noun}", "description": "", "input_schema": {}} for noun in ("card", "board")
             for verb in ("create", "get", "update", "delete")]  # fmt: skip
    documents = read_documents([SPEC, broken], [rows, schema])
    selection = select_services([ToolList("x/board", tools)], documents=documents)
    kinds = {one.blueprint.name: one.blueprint.source.kind for one in selection.services}
    assert set(kinds.values()) == {"openapi", "tables", "mcp"} and {"garden", "clinic", "board"} <= set(kinds)
    [rejected] = selection.rejected
    assert (rejected.server, rejected.reason) == ("broken.yaml", "no usable document or table")


def test_a_directory_of_documents_is_read_whole(tmp_path):
    (tmp_path / "shop.yaml").write_bytes(SPEC.read_bytes())
    (tmp_path / "readme.txt").write_text("nothing")
    assert len(read_documents([tmp_path], []).services) == 1


@pytest.mark.parametrize(
    ("content", "columns"),
    [
        ('CREATE TABLE order_items (id int, "x\'); import os" int, ok int)', ["id"]),
        ("CREATE TABLE order_items (a int, b int", ["a", "b"]),
        (f"CREATE TABLE order_items ({'(' * 5000}", []),
    ],
    ids=["code", "no_end", "deep"],
)
def test_hostile_schemas_are_no_code(content, columns, tmp_path):
    file = tmp_path / "bad.sql"
    file.write_text(content)
    assert list(read_sql_schema(file).tools[0]["input_schema"]["properties"]) == columns


def test_what_cannot_be_read_is_one_line(tmp_path):
    (tmp_path / "empty.sql").write_text("SELECT 1;")
    [rejected] = read_documents([], [tmp_path / "empty.sql"]).rejected
    assert "no CREATE TABLE" in rejected.detail
    with pytest.raises(InputError, match=r"no such file or directory: .*missing"):
        read_documents([tmp_path / "missing.yaml"], [])


def test_the_command_takes_several_sources(schema, rows, tmp_path, monkeypatch):
    names = list[str]()

    def generate(selection, plan, report):
        names.extend(sorted(one.blueprint.name for one in selection.services))
        raise InputError("seen")

    monkeypatch.setattr("trajsmith.envgen.scale.generate_environments", generate)
    command = ["env", "gen", "--from-openapi", str(SPEC), "--from-tables", str(rows), "--from-tables", str(schema)]
    CliRunner().invoke(app, [*command, "--count", "3", "--out", str(tmp_path / "made")])
    assert names[:2] == ["clinic", "garden"]
    assert len(names) == 3
    once = CliRunner().invoke(app, [*command[:4], "--from-openapi", str(SPEC), "--out", str(tmp_path / "made")])
    assert once.exit_code != 0 and "several sources go with --count" in str(once.exception)
