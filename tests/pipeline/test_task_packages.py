"""The package of a run: what it holds stands alone, and solutions lack the calls that the verdict takes out."""

import shutil
from pathlib import Path, PurePosixPath

import orjson
import pytest

from trajsmith.environments.sources import EnvironmentSettings
from trajsmith.pipeline.dataset_selection import SELECTION
from trajsmith.pipeline.record_joins import JudgedTrajectory, join_verdicts
from trajsmith.pipeline.run_directory import RunDirectory
from trajsmith.pipeline.task_bundle import _take_files, write_dataset_tasks
from trajsmith.pipeline.task_packages import FORMS, build_module_name, write_task_package
from trajsmith.pipeline.task_server import build_solution, build_transcript, iter_solutions, open_tasks
from trajsmith.records import RunError
from trajsmith.records.verdict import PrunedCall


@pytest.mark.parametrize(
    ("folder", "module"),
    [("quickstart", "trajsmith_quickstart"), ("My Run-2", "trajsmith_my_run_2"), ("旅", "trajsmith_run")],
)
def test_module_names_are_identifiers(folder, module):
    assert build_module_name(folder) == module
    assert module.isidentifier()


@pytest.mark.parametrize("form", FORMS)
def test_the_package_holds_a_run_that_opens(made_run, tmp_path, form):
    counts = write_task_package(made_run, form, tmp_path / "package")
    inner = RunDirectory.open(
        tmp_path / "package" / FORMS[form].place.format(module=build_module_name(made_run.path.name))
    )
    solved = [judged.task.id for judged in iter_solutions(made_run)]
    with open_tasks(inner) as source:
        assert list(source.tasks) == solved
    assert len(solved) == counts["written"] > 0
    assert inner.file("trajectories.jsonl").is_file() == FORMS[form].solutions


def test_tasks_that_the_selection_left_out_are_not_given_away(made_run, tmp_path):
    run = RunDirectory.open(shutil.copytree(made_run.path, tmp_path / "run"))
    dropped, *others = iter_solutions(run)
    plays = [one for one in join_verdicts(run) if one.task.id == dropped.task.id]
    rows = [
        {"trajectory_id": one.trajectory.id, "task_id": one.task.id, "reason": "contaminated: mmlu.jsonl"}
        for one in plays
    ]
    run.file(SELECTION).write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in rows))
    assert [one.task.id for one in iter_solutions(run)] == [one.task.id for one in others]
    (tmp_path / "dataset").mkdir()
    write_dataset_tasks(run, tmp_path / "dataset")
    assert dropped.task.id not in (tmp_path / "dataset/run/tasks.jsonl").read_text()
    assert others[0].task.id in (tmp_path / "dataset/run/tasks.jsonl").read_text()


def test_a_pushed_run_takes_its_phrases_along(tmp_path):
    own = tmp_path / "own"
    own.mkdir()
    for name in ("env.py", "words.yaml", "words.de.yaml", "stories.yaml"):
        (own / name).write_text("")
    entry = EnvironmentSettings(
        python=str(own / "env.py:Env"), phrases=own / "words.yaml", scenarios=own / "stories.yaml"
    )
    taken = _take_files(entry, tmp_path / "run", PurePosixPath())
    assert (taken.phrases, taken.scenarios) == (Path("files/env/words.yaml"), Path("files/env/stories.yaml"))
    assert {file.name for file in (tmp_path / "run/files/env").iterdir()} == {file.name for file in own.iterdir()}


def test_words_of_a_bundled_environment_go_along(tmp_path):
    for name in ("words.yaml", "words.de.yaml", "stories.yaml"):
        (tmp_path / name).write_text("")
    entry = EnvironmentSettings(library="bank", phrases=tmp_path / "words.yaml", scenarios=tmp_path / "stories.yaml")
    taken = _take_files(entry, tmp_path / "run", PurePosixPath())
    assert (taken.library, taken.python) == ("bank", None)
    assert (taken.phrases, taken.scenarios) == (Path("files/bank/words.yaml"), Path("files/bank/stories.yaml"))
    copied = {file.name for file in (tmp_path / "run/files/bank").iterdir()}
    assert copied == {"words.yaml", "words.de.yaml", "stories.yaml"}
    plain = EnvironmentSettings(library="bank")
    assert _take_files(plain, tmp_path / "other", PurePosixPath()) is plain


def test_a_pushed_run_takes_the_scenarios_beside_its_phrases_along(tmp_path):
    """As `open_scenarios` finds them, and not those of the environment's own folder, which it does not read."""
    for name in ("env.py", "scenarios.yaml", "words/phrases.yaml", "words/scenarios.yaml", "words/scenarios.de.yaml"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(f"# {name}")
    entry = EnvironmentSettings(python=str(tmp_path / "env.py"), phrases=tmp_path / "words/phrases.yaml")
    _take_files(entry, tmp_path / "run", PurePosixPath())
    assert {file.name: file.read_text() for file in (tmp_path / "run/files/env").iterdir()} == {
        "env.py": "# env.py",
        "phrases.yaml": "# words/phrases.yaml",
        "scenarios.yaml": "# words/scenarios.yaml",
        "scenarios.de.yaml": "# words/scenarios.de.yaml",
    }


@pytest.mark.parametrize("form", FORMS)
def test_an_export_replaces_only_an_older_export(made_run, tmp_path, form):
    out = tmp_path / "package"
    inner = out / FORMS[form].place.format(module=build_module_name(made_run.path.name))
    cached = inner.parent / "__pycache__" / "app.cpython-311.pyc"
    write_task_package(made_run, form, out)
    cached.parent.mkdir()
    cached.write_bytes(b"")
    write_task_package(made_run, form, out)
    assert not cached.exists()
    own = inner.parent / "notes.py"
    own.write_text("# mine")
    with pytest.raises(RunError, match=r"notes\.py, which no export writes: choose another folder"):
        write_task_package(made_run, form, out)
    assert own.read_text() == "# mine"
    assert inner.is_dir()


@pytest.mark.parametrize("form", FORMS)
def test_a_checkout_of_the_framework_is_not_replaced(made_run, tmp_path, form):
    place = FORMS[form].place.format(module=build_module_name(made_run.path.name))
    own = tmp_path / "checkout" / PurePosixPath(place).parts[0] / "mine" / "app.py"
    own.parent.mkdir(parents=True)
    own.write_text("# mine")
    (tmp_path / "checkout" / ".git").mkdir()
    with pytest.raises(RunError, match=r"which no export writes"):
        write_task_package(made_run, form, tmp_path / "checkout")
    assert own.read_text() == "# mine"


def test_a_solution_lacks_the_calls_that_the_verdict_takes_out(made_run):
    judged = next(one for one in iter_solutions(made_run) if len(one.trajectory.events) > 1)
    event = judged.trajectory.events[0]
    gone = PrunedCall(event=0, tool=event.tool, arguments=event.arguments, why="not needed")
    verdict = judged.verdict.model_copy(update={"pruned": (gone,)})
    whole = build_transcript(judged.trajectory.messages)
    shorter = build_solution(JudgedTrajectory(judged.task, judged.trajectory, verdict))
    assert build_solution(judged) == whole
    assert (
        sum(line["tool"] != "message_user" for line in shorter)
        == sum(line["tool"] != "message_user" for line in whole) - 1
    )


@pytest.fixture(scope="module")
def made_run(tmp_path_factory):
    import asyncio

    from trajsmith.pipeline.config import load_config
    from trajsmith.pipeline.runner import run_pipeline
    from trajsmith.pipeline.yaml_settings import dump_settings

    folder = tmp_path_factory.mktemp("package")
    text = "name: package\nseed: 9\nrun: {}\nsample: {{count: 3}}\n"
    text += "environments: [{{library: bank, states: {{small: 1}}}}]\n"
    (folder / "run.yaml").write_text(text.format(folder / "made"))
    settings = load_config(folder / "run.yaml")
    run = RunDirectory.create(settings.run, dump_settings(settings))
    asyncio.run(run_pipeline(run))
    return run
