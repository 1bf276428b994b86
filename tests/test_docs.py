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
