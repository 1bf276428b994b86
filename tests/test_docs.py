"""The documentation names files that exist, and its lists are complete. `make docs` checks links between pages."""

import re
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
IN_BACKTICKS = re.compile(r"`([^`\s]+)`")
LINK = re.compile(r"\]\(([^)#\s]+)[^)]*\)")
MADE_LATER = ("runs/", "dataset/", "prompts/", "site/")
"""What a run, a build or each package makes: not a path of the repository."""


def _list_named_paths(text: str) -> list[str]:
    """Return words in backticks that look like paths from the root: a slash, and a known first folder."""
    folders = {path.name for path in ROOT.iterdir() if path.is_dir()}
    names = [name for name in IN_BACKTICKS.findall(text) if "/" in name and not name.startswith(MADE_LATER)]
    return [name for name in names if name.split("/")[0] in folders]


@pytest.mark.parametrize("page", ["docs/architecture.md", "AGENTS.md", "CONTRIBUTING.md", "README.md"])
def test_paths_in_backticks_exist(page: str) -> None:
    names = _list_named_paths((ROOT / page).read_text())
    missing = [name for name in names if not (ROOT / name).exists() and not list(ROOT.glob(name))]
    assert not missing, f"{page} names files that do not exist: {missing}"


def _list_stale_names(row: str) -> list[str]:
    """Return names in backticks of a table's row that stand in none of the files which the row names."""
    paths = [file for name in _list_named_paths(row) for file in (ROOT.glob(name) if "*" in name else [ROOT / name])]
    files = [file for path in paths for file in (path.rglob("*") if path.is_dir() else [path])]
    texts = [file.read_text() for file in files if file.suffix in {".py", ".yaml", ".md"}]
    names = [name for name in IN_BACKTICKS.findall(row) if re.fullmatch(r"[\w.]+", name) and "." not in name[-5:]]
    return [name for name in names if not any(name.split(".")[-1] in text for text in texts)]


def test_names_in_the_map_stand_in_the_files_beside_them() -> None:
    rows = [row for row in (DOCS / "architecture.md").read_text().splitlines() if row.startswith("| ")]
    stale = [name for row in rows if "/" in row for name in _list_stale_names(row)]
    assert len(rows) > 30
    assert not stale, f"docs/architecture.md names what its files do not have: {stale}"


def test_a_stale_name_in_the_map_is_found() -> None:
    assert _list_stale_names("| a reward | `REWARDS` and `WHICH` in `verify/rewards/_evidence.py` |") == ["WHICH"]


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", "AGENTS.md", "CHANGELOG.md", "docs/llms.txt"])
def test_links_lead_to_files(page: str) -> None:
    file = ROOT / page
    links = [link for link in LINK.findall(file.read_text()) if "://" not in link]
    missing = [link for link in links if not (file.parent / link).exists()]
    assert not missing, f"{page} links to files that do not exist: {missing}"


def test_llms_txt_lists_every_tutorial_and_guide() -> None:
    text = (ROOT / "mkdocs.yml").read_text()
    nav = {title: pages for entry in yaml.safe_load(text)["nav"] for title, pages in entry.items()}
    wanted = [page for title in ("Tutorials", "Guides") for entry in nav[title] for page in entry.values()]
    assert len(wanted) > 10
    missing = sorted(set(wanted) - set(LINK.findall((DOCS / "llms.txt").read_text())))
    assert not missing, f"docs/llms.txt leaves out {missing}"


def test_every_page_is_in_the_navigation() -> None:
    text = (ROOT / "mkdocs.yml").read_text()
    missing = [page.name for page in DOCS.glob("*.md") if f": {page.name}" not in text]
    assert not missing, f"mkdocs.yml leaves out {missing}"
