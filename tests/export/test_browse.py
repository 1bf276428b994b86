import json
import re
import shutil
import subprocess

import pytest
from samples import make_items

from trajsmith.export import INDEX, ConversationBrowser, write_overview
from trajsmith.export.conversation_pages import PER_PAGE

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update", "--enable-logging=stderr", "--v=0",
    "--virtual-time-budget=2000", "--dump-dom",
)  # fmt: skip


def write(folder, items):
    with ConversationBrowser(folder, "quick<start>") as browser:
        for item in items:
            browser.add(*item)
    return browser


def shown(page):
    text = page.read_text()
    items = json.loads(re.search(r'<script type="application/json" id="items">(.*?)</script>', text, re.S)[1])
    return [item["id"] for item in items], re.findall(r'<a href="([^"#]+)">', text.split("<main>")[0])


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run") / "gallery"
    items = list(make_items(3 * PER_PAGE + 7))
    return folder, items, write(folder, items)


def test_every_conversation_is_on_one_page_of_its_environment_and_outcome(pages):
    folder, items, browser = pages
    found = [name for page in sorted(folder.glob("*-*.html")) for name in shown(page)[0]]
    assert sorted(found) == sorted(trajectory.id for _, trajectory, _ in items)
    assert sum(browser.counts.values()) == len(items)
    for page in folder.glob("*-*.html"):
        assert len(shown(page)[0]) <= PER_PAGE
        assert all((folder / link).is_file() for link in shown(page)[1]), "no link leads nowhere"


def test_the_overview_leads_to_every_page_and_an_id_to_its_conversation(pages):
    folder, items, _ = pages
    overview = (folder / "index.html").read_text()
    assert "quick&lt;start&gt;" in overview and "quick<start>" not in overview
    assert set(re.findall(r'href="([^"]+\.html)"', overview)) == {
        "../report.html",
        *(page.name for page in folder.glob("*-*.html")),
    }
    for _, trajectory, _ in items[::20]:
        name = trajectory.id
        file = re.search(rf'id="{name}" href="\.\./([^"#]+)#{name}"', (folder / f"ids/{name[-2:]}.html").read_text())[1]
        assert name in shown(folder / file)[0]


@pytest.mark.parametrize("rows", [PER_PAGE, PER_PAGE + 1], ids=["a full page", "one more"])
def test_a_full_page_has_a_next_one_only_if_there_is_one(tmp_path, rows):
    task, trajectory, verdict = next(make_items(1))
    write(tmp_path / "gallery", ((task, trajectory, verdict) for _ in range(rows)))
    pages = sorted((tmp_path / "gallery").glob("*-*.html"))
    assert len(pages) == rows // PER_PAGE + (rows % PER_PAGE > 0)
    assert [len(shown(page)[1]) for page in pages] == ([1] if rows == PER_PAGE else [2, 2])


def test_an_older_folder_stays_if_the_new_one_comes_to_nothing(tmp_path):
    folder = tmp_path / "gallery"
    write(folder, make_items(3))
    before = (folder / "index.html").read_text()

    def broken():
        yield from make_items(5)
        raise OSError("no space left")

    with pytest.raises(OSError, match="no space left"):
        write(folder, broken())
    assert (folder / "index.html").read_text() == before
    assert [path.name for path in tmp_path.iterdir()] == ["gallery"]


def test_the_ids_of_a_small_run_stand_on_one_page(tmp_path):
    items = list(make_items(30))
    with ConversationBrowser(tmp_path / "gallery", "small", prefix=0) as browser:
        for item in items:
            browser.add(*item)
    assert [page.name for page in (tmp_path / "gallery" / "ids").iterdir()] == ["all.html"]
    page = (tmp_path / "gallery" / "ids" / "all.html").read_text()
    assert all(f'id="{trajectory.id}"' in page for _, trajectory, _ in items)
    assert "`ids/all.html#${id}`" in (tmp_path / "gallery" / INDEX).read_text()


def test_a_run_without_pages_has_an_overview_that_names_the_command(tmp_path):
    folder = tmp_path / "gallery"
    write(folder, make_items(3))
    write_overview(
        folder, "large", {("shop", "accepted"): 90_000, ("shop", "partial"): 10_000}, "trajsmith report x --all"
    )
    assert [path.name for path in folder.iterdir()] == [INDEX], "pages of an older state are gone"
    text = (folder / INDEX).read_text()
    assert "100\u202f000 conversations" in text and "<code>trajsmith report x --all</code>" in text
    assert 'id="find"' not in text, "nothing can be looked up yet"


@pytest.mark.browser
@pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium: apt-get install chromium")
def test_an_id_is_led_to_its_conversation_in_the_browser(pages, tmp_path):
    folder, items, _ = pages
    name = items[150][1].id
    address = (folder / "ids" / f"{name[-2:]}.html").as_uri() + f"#{name}"
    command = [CHROMIUM, *FLAGS, f"--user-data-dir={tmp_path / 'profile'}", address]
    page = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert "CONSOLE" not in page.stderr
    assert f"<small>{name} · " in page.stdout, "the conversation itself is open"
