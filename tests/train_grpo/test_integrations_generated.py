"""Generated environments have the interfaces of bundled ones: gold transcripts score the same through each.

One is made of tables without a model, one is the scripted expert's, as models would have written it.
"""

import asyncio
import json
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from test_foreign_integrations import HERE, ROOT, SAME, python_of, said
from test_integrations import assert_every_interface_agrees

from trajsmith.envgen.generate.code import rename_colliding_classes, render_environment_code
from trajsmith.envgen.generate.from_tables import read_tables
from trajsmith.envgen.generate.refinement import refine_blueprint
from trajsmith.pipeline.config import load_config
from trajsmith.pipeline.eval_contexts import open_eval_contexts
from trajsmith.pipeline.record_joins import join_verdicts
from trajsmith.pipeline.run_directory import RunDirectory
from trajsmith.pipeline.runner import run_pipeline
from trajsmith.pipeline.yaml_settings import dump_settings

sys.path.insert(0, str(Path(__file__).parents[1] / "envgen"))
from expertly import score_library


def club(folder):
    """The file of an environment of two tables."""
    rows = folder / "club"
    rows.mkdir()
    members = [{"id": n, "name": f"Member {n}", "email": f"m{n}@example.org"} for n in range(1, 13)]
    visits = [{"id": n, "member_id": n % 12 + 1, "status": ("booked", "done")[n % 2]} for n in range(1, 31)]
    (rows / "members.json").write_text(json.dumps(members))
    (rows / "visits.json").write_text(json.dumps(visits))
    made = rename_colliding_classes(refine_blueprint(read_tables(rows)))
    file = folder / "club.py"
    file.write_text(render_environment_code(made))
    return file


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("generated")
    return [club(folder), asyncio.run(score_library(folder / "expert")) / "score_library.py"]


@pytest.fixture(scope="module")
def run(files, tmp_path_factory):
    """A run on both, of which every transcript is gold."""
    folder = tmp_path_factory.mktemp("generated_run")
    (folder / "line.yaml").write_text(yaml.safe_dump({
        "name": "integrations", "seed": 9, "run": str(folder / "run"), "sample": {"count": 10, "length": [2, 4]},
        "ground": {"min_calls": 1}, "write": {"direct": 1.0},
        "environments": [{"python": str(file), "states": {"small": 1}} for file in files],
    }))  # fmt: skip
    settings = load_config(folder / "line.yaml")
    made = RunDirectory.create(settings.run, dump_settings(settings))
    asyncio.run(run_pipeline(made))
    return made


def test_every_interface_gives_the_same_verdict(run):
    records, grounds = list(join_verdicts(run)), asyncio.run(open_eval_contexts(run))
    assert {record.environment for _, record, _ in records} == {"club", "score_library"}
    assert_every_interface_agrees(records, grounds)


@pytest.mark.servers
@pytest.mark.parametrize("number", [0, 1], ids=["from tables", "by models"])
def test_openenv_gives_the_same_verdicts(run, files, number):
    python, file = python_of("openenv"), files[number]
    command = [python, "-m", "trajsmith", "env", "serve", str(file), "--openenv", "127.0.0.1:0", "--admin"]
    server = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=ROOT)
    try:
        line = next(line for line in server.stderr if "serving OpenEnv at" in line)
        url = line.split(" at ")[1].split(";")[0]
        found = dict(said([python, str(HERE / "through_openenv.py"), str(run.path), url, file.stem]))
    finally:
        server.terminate()
        server.communicate(timeout=30)
    mine = {record.id: verdict.model_dump(mode="json") for _, record, verdict in join_verdicts(run)
            if record.environment == file.stem}  # fmt: skip
    assert found.keys() == mine.keys() and mine
    for name, verdict in mine.items():
        assert {key: found[name][key] for key in SAME} == {key: verdict[key] for key in SAME}
