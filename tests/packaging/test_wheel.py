"""The wheel as a stranger uses it: in an environment of its own, in a folder with files named like our packages."""

import os
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path, PurePosixPath

import pytest

ROOT = Path(__file__).parents[2]
DATA = {
    "py.typed",
    "cli/garden/garden.yaml",
    "configs/quickstart.yaml",
    "configs/phrases/mcp_git.yaml",
    "environments/library/retail/phrases.yaml",
    "export/templates/report.html.j2",
    "querygen/prompts/write.md.j2",
    "toolgraph/data/words.npz",
}


def execute(*command, cwd):
    """Standard output of a command that must succeed; nothing of this environment's paths reaches it."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    done = subprocess.run([*map(str, command)], cwd=cwd, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def build(source, kind, target):
    """Build an sdist or a wheel of a source folder; gives the file."""
    subprocess.run([sys.executable, "-m", "hatchling", "build", "-t", kind, "-d", target], cwd=source, check=True)
    (file,) = target.iterdir()
    return file


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    return build(ROOT, "wheel", tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    """Folder of the programs of an environment that has the wheel, and the packages that it depends on."""
    folder = tmp_path_factory.mktemp("environment")
    execute(sys.executable, "-m", "venv", "--without-pip", folder, cwd=folder)
    python = folder / "bin" / "python"
    subprocess.run(
        [sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-index", "--no-deps", wheel],
        check=True,
    )
    own = Path(execute(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", cwd=folder).strip())
    shared = [path for path in sys.path if path.endswith("site-packages")]
    (own / "dependencies.pth").write_text("".join(f"{path}\n" for path in shared))
    return folder / "bin"


@pytest.fixture
def folder(tmp_path):
    """A user's folder: their own modules have the names of our packages, and fail where they are imported."""
    for name in ("export.py", "environments.py", "verify/__init__.py", "records/__init__.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("raise RuntimeError('this is the file of the user')\n")
    return tmp_path


def git(*arguments):
    listed = subprocess.run(["git", *arguments, "-z"], cwd=ROOT, capture_output=True, text=True, check=True)
    return [entry for entry in listed.stdout.split("\0") if entry]


def source_files():
    """Files of the source tree that belong into the package, by their name in it."""
    files = [name for name in git("ls-files", "--cached", "--others", "--exclude-standard") if (ROOT / name).exists()]
    links = {name for name in files if name.startswith("trajsmith/") and (ROOT / name).is_symlink()}
    targets = {os.path.relpath((ROOT / link).resolve(), ROOT): link for link in links}
    for name in files:
        if name in links:
            continue
        if name.startswith("trajsmith/"):
            yield name
        for parent in PurePosixPath(name).parents:
            if str(parent) in targets:
                yield f"{targets[str(parent)]}/{PurePosixPath(name).relative_to(parent)}"


def test_the_wheel_holds_every_file_of_the_packages_once_and_nothing_else(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    assert len(names) == len(set(names))
    content = {name for name in names if ".dist-info/" not in name}
    assert content == set(source_files())
    assert {f"trajsmith/{name}" for name in DATA} <= content


def test_the_sdist_gives_the_same_wheel(wheel, tmp_path):
    sdist = build(ROOT, "sdist", tmp_path / "sdist")
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path, filter="data")
    unpacked = tmp_path / sdist.name.removesuffix(".tar.gz")
    assert {path.name for path in unpacked.iterdir()} == {
        *(".gitignore", "CHANGELOG.md", "LICENSE", "PKG-INFO", "README.md", "pyproject.toml", "src")
    }
    again = build(unpacked, "wheel", tmp_path / "again")
    assert again.read_bytes() == wheel.read_bytes()


def test_only_one_name_reaches_site_packages_and_ours_are_imported_beside_the_users(installed, folder):
    code = """
import importlib.metadata, trajsmith, trajsmith.cli.app, trajsmith.environments, trajsmith.export, trajsmith.verify
names = {file.parts[0] for file in importlib.metadata.files("trajsmith") if file.parts[0] != ".."}
assert {name for name in names if not name.endswith(".dist-info")} == {"trajsmith"}, names
print(trajsmith.export.__file__)
"""
    environment, version = installed.parent, tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert execute(installed / "python", "-c", code, cwd=folder).startswith(str(environment))
    assert execute(installed / "trajsmith", "--version", cwd=folder) == f"trajsmith {version}\n"


def test_a_packaged_configuration_runs_by_name(installed, folder):
    out = execute(installed / "python", "-m", "trajsmith", "run", "quickstart", "--set", "sample.count=5", cwd=folder)
    accepted = re.search(r"quickstart: (\d+) accepted trajectories", out)
    assert accepted and int(accepted.group(1)) >= 4
    assert (folder / "runs/quickstart/report.html").is_file()
    assert any((folder / "runs/quickstart/dataset").rglob("*.parquet"))


def test_a_new_project_passes_its_test_and_runs(installed, folder):
    assert "trajsmith run garden.yaml" in execute(installed / "trajsmith", "init", "shop", cwd=folder)
    project = folder / "shop"
    assert "6 passed" in execute(installed / "python", "-m", "pytest", cwd=project)
    out = execute(installed / "trajsmith", "run", "garden.yaml", "--set", "sample.count=5", cwd=project)
    assert "garden: 5 accepted trajectories" in out
