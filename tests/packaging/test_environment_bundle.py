"""A bundle of environments: its wheel is built and installed beside trajsmith, listed, and used by a run."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

sys.path.insert(0, str(Path(__file__).parents[1] / "export"))

from made_environments import write_catalogue

from trajsmith.cli.app import app
from trajsmith.environments.bundles import BUNDLES, EnvironmentBundle, list_bundle_files
from trajsmith.records import InputError

RUN = """
name: bundled
seed: 1
run: {run}
environments: [{{library: "acme_shops.*", states: {{small: 1}}}}]
sample: {{count: 6, length: [1, 2]}}
ground: {{min_calls: 1}}
"""


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    """The source of a package of two environments."""
    folder = tmp_path_factory.mktemp("bundle")
    write_catalogue(folder / "made", "shop", "store")
    command = ["env", "bundle", str(folder / "made"), "--out", str(folder / "package"), "--name", "acme-shops"]
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 0, done.output
    assert "library: acme_shops.*" in done.output
    assert CliRunner().invoke(app, command).exit_code == 0  # an older one is replaced
    return folder / "package"


@pytest.fixture(scope="module")
def python(package, tmp_path_factory):
    """The interpreter of an environment that has the bundle, with trajsmith and its dependencies from here."""
    folder = tmp_path_factory.mktemp("environment")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder / "wheel"]
    subprocess.run(build, cwd=package, check=True, capture_output=True)
    (wheel,) = (folder / "wheel").iterdir()
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder / "venv"], check=True)
    interpreter = folder / "venv" / "bin" / "python"
    install = [sys.executable, "-m", "pip", "--python", interpreter, "install", "--quiet", "--no-index", "--no-deps"]
    subprocess.run([*install, wheel], check=True)
    site = subprocess.run(
        [interpreter, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    shared = [path for path in sys.path if path.endswith("site-packages")]
    source = str(Path(__file__).parents[2] / "src")
    (Path(site.stdout.strip()) / "shared.pth").write_text("".join(f"{path}\n" for path in [*shared, source]))
    return interpreter


def execute(python, *command, cwd):
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    command = [str(python), *map(str, command)]
    return subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, check=False)


def test_an_installed_bundle_is_listed_and_its_environments_run_in_the_sandbox(python, tmp_path):
    listed = execute(python, "-m", "trajsmith", "env", "list", "--names", cwd=tmp_path)
    assert {"bank", "acme_shops.shop", "acme_shops.store"} <= set(listed.stdout.split()), listed.stderr
    plugins = execute(python, "-m", "trajsmith", "plugins", "--kind", "bundles", cwd=tmp_path)
    assert plugins.stdout.splitlines()[1].split() == ["bundles", "acme_shops", "acme-shops", "0.1.0", "acme_shops"]
    shown = execute(python, "-m", "trajsmith", "env", "show", "acme_shops.shop", cwd=tmp_path)
    assert "runs in: sandbox" in shown.stdout and "take_item" in shown.stdout, shown.stderr
    imported = execute(python, "-c", IMPORTED, cwd=tmp_path)
    assert imported.stdout.split() == ["2", "False"], imported.stderr
    (tmp_path / "run.yaml").write_text(RUN.format(run=tmp_path / "run"))
    done = execute(python, "-m", "trajsmith", "run", "run.yaml", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert {path.stem for path in (tmp_path / "run" / "environments").glob("s*.json")} >= {"shop", "store"}
    unknown = execute(python, "-m", "trajsmith", "env", "show", "acme_shops.shup", cwd=tmp_path)
    assert unknown.returncode == 2 and "has no environment 'shup' (did you mean \"shop\"?)" in unknown.stderr


IMPORTED = """
import sys
from trajsmith.environments.bundles import list_bundled_environments
from trajsmith.environments.sources import EnvironmentSettings, expand_settings
entries = expand_settings(EnvironmentSettings(library="acme_shops.*"))
print(len(entries), any("shop" in name.rpartition(".")[2] for name in sys.modules if name != "acme_shops"))
"""


def test_all_of_the_library_does_not_mean_bundles(python, tmp_path):
    code = "from trajsmith.environments.sources import *; print(len(expand_settings(EnvironmentSettings(library='*'))))"
    assert execute(python, "-c", code, cwd=tmp_path).stdout == "9\n"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--name", "Acme Shops"], "write a name for a package"),
        (["--name", "json"], "write a name for a package"),
        (["--name", "../x"], "write a name for a package"),
        (["--name", "trajsmith"], "write a name for a package"),
        (["--name", "x", "--version", "new"], "write numbers and dots"),
        (["--name", "x", "--licence", "a b"], "is no name of a licence"),
    ],
    ids=["letters", "standard-library", "traversal", "own", "version", "licence"],
)
def test_a_wrong_option_is_one_line(package, tmp_path, options, message):
    made = package.parent / "made"
    done = CliRunner().invoke(app, ["env", "bundle", str(made), "--out", str(tmp_path / "out"), *options])
    assert isinstance(done.exception, InputError) and message in str(done.exception)


def test_a_folder_with_other_files_is_not_replaced(package, tmp_path):
    (tmp_path / "src" / "shops").mkdir(parents=True)
    (tmp_path / "src" / "shops" / "mine.py").write_text("mine = 1\n")
    made = package.parent / "made"
    done = CliRunner().invoke(app, ["env", "bundle", str(made), "--out", str(tmp_path), "--name", "shops"])
    assert done.exit_code == 1 and "holds mine.py" in str(done.exception)
    assert (tmp_path / "src" / "shops" / "mine.py").is_file()


def test_a_bundle_without_its_folder_is_one_line(tmp_path, monkeypatch):
    monkeypatch.setitem(BUNDLES._things, "torn", EnvironmentBundle(tmp_path))
    monkeypatch.setitem(BUNDLES._modules, "torn", "torn")
    with pytest.raises(InputError, match=r"holds no published environments: there is no environments.json"):
        list_bundle_files("torn.shop")
    monkeypatch.setitem(BUNDLES._things, "other", "a text")
    monkeypatch.setitem(BUNDLES._modules, "other", "other")
    with pytest.raises(InputError, match="is no bundle of environments"):
        list_bundle_files("other.*")
    with pytest.raises(InputError, match="no bundle named 'none'"):
        list_bundle_files("none.shop")
