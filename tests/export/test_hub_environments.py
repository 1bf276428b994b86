"""Environments on a Hub on this machine: what is published, what a copy must show before it is used, bad copies."""

import errno
import json
import os
import subprocess
import sys

import pytest
from hub_server import serve
from made_environments import write_catalogue, write_environment
from typer.testing import CliRunner

from trajsmith.cli.app import app
from trajsmith.envcheck import ConformanceRecord, replay_conformance
from trajsmith.environments.published import parse_hub_reference
from trajsmith.environments.sources import EnvironmentSettings, expand_settings
from trajsmith.export.environment_publication import (
    find_environment_folders,
    open_published_source,
    record_environments,
    write_publication,
)
from trajsmith.pipeline.hub_runs import check_foreign_config
from trajsmith.records import InputError, RunError

KEYS = [
    ["genpkey", "-algorithm", "ed25519", "-out", "key.pem"],
    ["pkey", "-in", "key.pem", "-pubout", "-out", "key.pub"],
]
RUN = """
name: pulled
seed: 1
run: {run}
environments: [{{python: "hub:me/shops", states: {{small: 1}}}}]
sample: {{count: 6, length: [1, 2]}}
ground: {{min_calls: 1}}
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = write_catalogue(tmp_path_factory.mktemp("made"), "shop", "store")
    write_environment(folder, "bad", accepted=False)
    return folder


@pytest.fixture
def shop(made):
    (recorded,) = record_environments([made / "shop"])
    return recorded


def trajsmith(hub, home, *command):
    env = os.environ | {
        "HF_ENDPOINT": hub.url if hub else "http://127.0.0.1:9", "HF_TOKEN": "hf_good", "HF_HOME": str(home / "home"),
        "HF_HUB_DISABLE_XET": "1", "HF_HUB_DISABLE_TELEMETRY": "1", "HF_HUB_DISABLE_PROGRESS_BARS": "1",
    }  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-m", "trajsmith", *map(str, command)],
        env=env, capture_output=True, text=True, check=False, cwd=home,
    )  # fmt: skip
    assert "Traceback" not in done.stderr, done.stderr
    return done


def test_a_catalogue_is_pushed_pulled_examined_and_run(made, tmp_path):
    for command in KEYS:
        subprocess.run(["openssl", *command], cwd=tmp_path, check=True, capture_output=True)
    (tmp_path / "run.yaml").write_text(RUN.format(run=tmp_path / "run"))
    with serve() as hub:
        pushed = trajsmith(hub, tmp_path, "env", "push", made, "me/shops", "--sign", "key.pem")
        assert pushed.returncode == 0 and "files, signed" in pushed.stdout, pushed.stderr
        files = hub.files("datasets/me/shops")
        assert {"README.md", "environments.json", "manifest.json", "environments/shop/conformance.json"} <= files.keys()
        assert not [name for name in files if "bad" in name or "stages" in name]
        assert not [name for name, data in files.items() if str(made).encode() in data]
        assert len(hub.commits) == 1, "many small files go up together"
        again = trajsmith(hub, tmp_path, "env", "push", made, "me/shops", "--sign", "key.pem")
        assert "0 files to upload" in again.stdout and "recorded" not in again.stderr
        early = trajsmith(hub, tmp_path, "run", "run.yaml")
        assert early.returncode == 2 and "get it with `trajsmith env pull me/shops`" in early.stderr
        pulled = trajsmith(hub, tmp_path, "env", "pull", "me/shops", "--key", "key.pub")
        assert pulled.returncode == 0, pulled.stderr
        assert "2/2 store: " in pulled.stdout and "signed by " in pulled.stdout
    assert trajsmith(None, tmp_path, "run", "run.yaml").returncode == 0
    shown = trajsmith(None, tmp_path, "env", "show", "hub:me/shops:store")
    assert "runs in: sandbox" in shown.stdout and "take_item" in shown.stdout
    several = trajsmith(None, tmp_path, "env", "show", "hub:me/shops")
    assert several.returncode == 2 and "holds 2 environments" in several.stderr
    (code,) = (tmp_path / "home").rglob("shop.py")
    code.write_text(code.read_text() + "# more\n")
    changed = trajsmith(None, tmp_path, "env", "show", "hub:me/shops:shop")
    assert changed.returncode == 2 and "was changed after it was examined" in changed.stderr
    dead = trajsmith(None, tmp_path, "env", "pull", "me/shops")
    assert dead.returncode == 1 and "the Hub cannot be reached" in dead.stderr


def test_the_card_has_scores_licences_and_no_markup_of_others(made, tmp_path):
    index = write_publication(record_environments([made / "shop"]), tmp_path / "out", "shops", use="python: x")
    (one,) = index.environments
    assert (one.name, one.domain, one.tools, one.score, one.tests) == ("shop", "commerce/shop", 3, 0.97, "9 passed")
    assert (one.source, one.licence, index.licence) == ("mcp: x/shop", "MIT", "mit") and one.calls > 4
    card = (tmp_path / "out" / "README.md").read_text()
    assert "license: mit" in card and "<b>" not in card and "| 0.97 | 9 passed |" in card
    record = json.loads((tmp_path / "out/environments/shop/conformance.json").read_text())
    calls = [call for episode in record["episodes"] for call in episode["calls"]]
    assert {call["tool"] for call in calls if call["error"] is None} == {"get_item", "list_items", "take_item"}
    assert json.loads((tmp_path / "out/environments/shop/made.json").read_text())["directory"] == "shop"


def test_a_space_shows_a_page(made, tmp_path):
    with serve() as hub:
        pushed = trajsmith(hub, tmp_path, "env", "push", made, "spaces/me/shops", "--licence", "cc-by-4.0")
        assert pushed.returncode == 0, pushed.stderr
        files = hub.files("spaces/me/shops")
        assert b"sdk: static" in files["README.md"] and b"&lt;b&gt;Cheap" in files["index.html"]
        pulled = trajsmith(hub, tmp_path, "env", "pull", "spaces/me/shops", "--name", "store")
        assert "1 environments of commit " in pulled.stdout, pulled.stderr
        assert "use it: - python: hub:spaces/me/shops\n" in pulled.stdout
        assert not list((tmp_path / "home").rglob("shop.py")) and list((tmp_path / "home").rglob("store.py"))


def test_a_dry_run_asks_nothing_and_an_interrupted_push_goes_on(made, tmp_path):
    dry = trajsmith(None, tmp_path, "env", "push", made / "shop", "me/shop", "--dry-run")
    assert dry.returncode == 0 and "1 environments, at most" in dry.stdout
    with serve() as hub:
        hub.commits_left = 0
        failed = trajsmith(hub, tmp_path, "env", "push", made / "shop", "me/shop")
        assert failed.returncode == 1 and "the Hub answered 502: run the same command again" in failed.stderr
        hub.commits_left = 9
        assert trajsmith(hub, tmp_path, "env", "push", made / "shop", "me/shop").returncode == 0
        refused = trajsmith(hub, tmp_path, "env", "push", made / "shop", "you/shop")
        assert refused.returncode == 2 and "(403)" in refused.stderr


def change(data, **values):
    return json.dumps(json.loads(data) | values).encode()


def rewrite(files, publish):
    """Change a file and everything that names it: only the recorded calls can tell."""
    from trajsmith.environments.published import compute_version
    from trajsmith.export import write_manifest

    code = publish / "environments/shop/shop.py"
    code.write_text(code.read_text().replace("item.stock -= 1", "item.stock -= 2"))
    record = publish / "environments/shop/conformance.json"
    import hashlib

    record.write_bytes(change(record.read_bytes(), code=hashlib.sha256(code.read_bytes()).hexdigest()))
    index = json.loads((publish / "environments.json").read_text())
    index["environments"][0]["version"] = compute_version(code.parent)
    (publish / "environments.json").write_text(json.dumps(index))
    write_manifest(publish, "me/shop")
    files |= {path.relative_to(publish).as_posix(): path.read_bytes() for path in publish.rglob("*") if path.is_file()}


def retitle(files, publish, name):
    """Another name in the index, with a manifest that agrees."""
    from trajsmith.export import write_manifest

    index = publish / "environments.json"
    index.write_text(index.read_text().replace('"name": "shop"', json.dumps({"name": name})[1:-1]))
    write_manifest(publish, "me/shop")
    files |= {name: (publish / name).read_bytes() for name in ("environments.json", "manifest.json")}


def put(name, before, after):
    """Change the bytes of one file."""
    return lambda files, _: files.update({name: files[name].replace(before, after)})


CODE, MANIFEST, INDEX = "environments/shop/shop.py", "manifest.json", "environments.json"
BAD = {
    "changed-file": (put(CODE, b"stock", b"stick"), 1, f"{CODE} is not the file that the manifest names"),
    "other-behaviour": (rewrite, 1, "environments do not behave as recorded, and cannot be used"),
    "traversal": (lambda *both: retitle(*both, "../../../escaped"), 2, "is no index of published environments"),
    "absolute": (lambda *both: retitle(*both, "/etc/shop"), 2, "is no index of published environments"),
    "missing-environment": (lambda *both: retitle(*both, "shopping"), 2, "holds no shopping.py"),
    "wrong-hash": (
        put(MANIFEST, b'"sha256": "', b'"sha256": "0'), 1, f"{INDEX} is not the file that the manifest names"
    ),
    "no-conformance": (
        lambda files, _: files.pop("environments/shop/conformance.json"), 1, "conformance.json is missing"
    ),
    "no-manifest": (lambda files, _: files.pop(MANIFEST), 2, "has no manifest.json"),
    "no-index": (lambda files, _: files.pop(INDEX), 2, "me/shop holds no environments: push some with"),
    "manifest-of-others": (lambda files, _: files.update({MANIFEST: b"{}"}), 1, "is no manifest of a dataset"),
    "manifest-traversal": (
        put(MANIFEST, b'"README.md"', b'"../README.md"'), 1, "which is no file inside the dataset"
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def published(tmp_path_factory):
    """A publication of one environment, as files of a repository."""
    from trajsmith.export import write_manifest

    home = tmp_path_factory.mktemp("published")
    write_environment(home, "shop")
    write_publication(record_environments([home / "shop"]), home / "out", "shop", use="python: hub:me/shop")
    write_manifest(home / "out", "me/shop")
    return home / "out"


@pytest.mark.parametrize(("harm", "code", "message"), BAD.values(), ids=list(BAD))
def test_a_bad_copy_is_one_line_and_cannot_be_used(published, tmp_path, harm, code, message):
    import shutil

    publish = tmp_path / "publish"
    shutil.copytree(published, publish)
    with serve() as hub:
        files = {
            path.relative_to(publish).as_posix(): path.read_bytes() for path in publish.rglob("*") if path.is_file()
        }
        hub.repos["datasets/me/shop"] = {"files": files, "sha": "a" * 40, "private": False}
        harm(files, publish)
        pulled = trajsmith(hub, tmp_path, "env", "pull", "me/shop")
    assert pulled.returncode == code, pulled.stdout + pulled.stderr
    (line,) = [line for line in pulled.stderr.splitlines() if not line.startswith("No files matched")]
    assert line.startswith("error: ") and message in line
    for copy in (tmp_path / "home").rglob("pulled.json"):
        assert json.loads(copy.read_text()) == {"versions": {}}
    assert not list(tmp_path.rglob("escaped*"))


def test_another_repository_and_another_key_are_refused(published, tmp_path):
    with serve() as hub:
        missing = trajsmith(hub, tmp_path, "env", "pull", "me/nothing")
        assert missing.returncode == 2 and "me/nothing: there is no such repository" in missing.stderr
        hub.repos["datasets/me/rows"] = {"files": {"data/train.parquet": b"x"}, "sha": "b" * 40, "private": False}
        other = trajsmith(hub, tmp_path, "env", "pull", "me/rows")
        assert other.returncode == 2 and "me/rows holds no environments" in other.stderr
        unknown = trajsmith(hub, tmp_path, "env", "pull", "me/rows", "--key", tmp_path / "none.pub")
        assert unknown.returncode == 2


@pytest.mark.parametrize(
    "reference",
    [
        "",
        "hub:",
        "a",
        "a/b/c",
        "../b",
        "a/..",
        "a b/c",
        "hub:a/b@../x",
        "a/b@\x00",
        "hub:a/\x1b[31m",
        "é\udc80/b",
        "a/b:../x",
    ],
)
def test_a_reference_cannot_lead_elsewhere(reference):
    with pytest.raises(InputError, match="write a repository of environments as owner/name") as error:
        parse_hub_reference(reference)
    assert str(error.value).isprintable()


def test_a_configuration_from_outside_names_no_pulled_environment(tmp_path):
    (tmp_path / "config.yaml").write_text("name: x\nseed: 1\nrun: .\nenvironments: [{python: 'hub:me/shop'}]\n")
    with pytest.raises(InputError):
        check_foreign_config(tmp_path / "config.yaml", "me/rows")


def test_what_cannot_be_published_is_one_line(made, tmp_path):
    with pytest.raises(InputError, match="was rejected \\(too few tools\\)"):
        find_environment_folders(made / "bad")
    with pytest.raises(InputError, match="is no folder of environments"):
        find_environment_folders(tmp_path / "nothing")
    with pytest.raises(InputError, match=r"--licence 'a b' is no name of a licence"):
        write_publication(record_environments([made / "shop"]), tmp_path / "out", "x", "a b")
    unsourced = write_environment(tmp_path, "stall")
    (unsourced / "blueprint.json").write_text("{}")
    with pytest.raises(InputError, match="it does not say what the environment was made from"):
        write_publication(record_environments([unsourced]), tmp_path / "out", "x")
    (unsourced / "blueprint.json").unlink()
    (unsourced / "phrases.yaml").symlink_to("/etc/passwd")
    with pytest.raises(InputError, match=r"phrases.yaml is no file of its own"):
        write_publication(record_environments([unsourced]), tmp_path / "out", "x")


def test_a_key_in_a_file_is_not_pushed(tmp_path):
    place = write_environment(tmp_path, "shop")
    (place / "phrases.yaml").write_text("# hf_" + "a" * 34 + "\n")
    done = CliRunner().invoke(app, ["env", "push", str(place), "me/shop", "--dry-run"])
    assert isinstance(done.exception, InputError) and "phrases.yaml:1: it holds what looks like a key" in str(
        done.exception
    )


def test_an_environment_that_breaks_is_not_published(tmp_path):
    place = write_environment(tmp_path, "shop")
    (place / "shop.py").write_text((place / "shop.py").read_text().replace("return State(", "raise ValueError("))
    with pytest.raises(InputError, match="shop cannot be recorded: it breaks: shop: crash: TypeError"):
        record_environments([place])


def test_a_full_disk_is_one_line(made, tmp_path, monkeypatch):
    recorded = record_environments([made / "shop"])

    def fill(self, *_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("pathlib.Path.write_bytes", fill)
    with pytest.raises(RunError, match=r"disk full .* free some space, then give the same command again"):
        write_publication(recorded, tmp_path / "out", "shop")
    assert not (tmp_path / "out").exists()


async def test_calls_are_compared_one_by_one(made, shop):
    recorded, source = shop, open_published_source(made / "shop" / "shop.py")
    assert await replay_conformance(source, recorded.record) == []
    content = recorded.record.model_dump(mode="json")
    (call, *_) = content["episodes"][0]["calls"]
    for changed, expected in (
        ({"digest": "0"}, "call 1, get_item, gives "),
        ({"state": "0"}, "call 1, get_item, leads to another state"),
        ({"error": "refused"}, "call 1, get_item, gives "),
    ):
        content["episodes"][0]["calls"][0] = call | changed
        differences = await replay_conformance(source, ConformanceRecord.model_validate(content))
        assert len(differences) == 1 and differences[0].startswith(expected)
    other = recorded.record.model_copy(update={"tools": ("get_item",)})
    assert await replay_conformance(source, other) == ["it has other tools: list_items, take_item"]
    source.close()


def test_the_configuration_keeps_the_reference_as_it_is(tmp_path, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HOME", str(tmp_path))
    entry = EnvironmentSettings.model_validate({"python": "hub:me/shop"}, context={"folder": tmp_path})
    assert entry.python == "hub:me/shop"
    with pytest.raises(InputError, match="is not on this machine"):
        expand_settings(entry)
