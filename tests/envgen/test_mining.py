"""Mining of a domain: rounds over a server of pages, what stands on them, bad answers, a run that goes on."""

import json
import re
import sys
from pathlib import Path

import pytest
from expertly import Expert, domain
from pydantic import ValidationError
from running_server import RunningServer
from test_synthesis_run import EXPERT, here, write_config  # noqa: F401 - `here` is a fixture

from trajsmith.envgen.generate.from_tables import read_tables
from trajsmith.envgen.sources.web_search import SearchSettings
from trajsmith.envgen.synthesis.mining import DomainMiner
from trajsmith.envgen.synthesis.mining_records import MinedDomain, split_page
from trajsmith.envgen.synthesis.prompt_specs import SOURCE_SPECS, SPECS
from trajsmith.envgen.synthesis.prompted_generation import PromptedGenerator
from trajsmith.envgen.synthesis.search_records import count_searches, search_all
from trajsmith.envgen.synthesis.settings import ROLES
from trajsmith.models.prompts import Prompts
from trajsmith.records import InputError
from trajsmith.records.journal import StepJournal

HERE = Path(__file__).parent
READ = {
    "branches": {
        "tables": [{"table": "branches", "columns": ["name", "code", "tools", "phone"],
                    "rows": [["Northgate", "NG", 40, None], ["Millbrook", "MB", 25, None], ["South", "SG", 10, None]]}],
        "statements": ["Each branch lends tools to its members."],
        "licence": "licensed under CC BY 4.0",
    },
    "catalogue": {
        "tables": [{"table": "tools", "columns": ["name", "category", "deposit"],
                    "rows": [["Cordless drill", "power tools", 20], ["Belt sander", "power tools", 35],
                             ["belt  sander", "power tools", 35], ["Hedge trimmer", "garden", 30]]}],
        "statements": ["Every tool has a name, a category and a deposit in euros."],
        "licence": "public domain",
    },
    "rules": {
        "statements": ["A loan lasts seven days and can be renewed once.", "A member pays nothing at all, ever."],
    },
}  # fmt: skip


class Designer:
    """A scripted designer: reads every result, and asks one thing more; keeps what it was shown."""

    def __init__(self, search=None, read=None):
        self.search, self.read, self.shown = search, read, []

    def __call__(self, body):
        system, asked = body["messages"][0]["content"], body["messages"][1]["content"]
        self.shown.append(asked)
        if system.startswith("You search for"):
            number = int(re.search(r"Round (\d+) of", asked)[1])
            return self.search(number, asked) if self.search else json.dumps(self.step(number, asked))
        if self.read:
            return self.read(asked)
        page = asked.partition("The page:")[2]
        (name,) = (name for name, mark in MARKS.items() if mark in page)
        return json.dumps(READ[name])

    def step(self, number, asked):
        count = len(re.findall(r"^\d+\. ", asked, re.MULTILINE))
        queries = ["tool library branches"] if number == 1 else []
        return {"enough": "" if count else "all is read", "read": list(range(1, count + 1)), "queries": queries}


MARKS = {"branches": "Northgate", "catalogue": "Hedge trimmer", "rules": "seven days"}


def settings(tmp_path, **more):
    command = [sys.executable, str(HERE / "pages_server.py"), str(HERE / "pages"), str(tmp_path / "calls.txt")]
    mining = {"rounds": 4, "pages": 2} | more.pop("mining", {})
    return SearchSettings.model_validate({"tool": "search", "command": command, "mining": mining} | more)


async def mine(tmp_path, designer, chosen=None, name="tool library"):
    chosen = chosen or settings(tmp_path)
    model, store = Expert(designer), StepJournal(tmp_path / "run")
    generator = PromptedGenerator(dict.fromkeys(ROLES, model), Prompts(), SPECS | SOURCE_SPECS)
    lines = []
    miner = DomainMiner(generator, store, chosen, lines.append)
    (source,) = await search_all(store, chosen, [domain(name)], lines.append, miner)
    calls = tmp_path / "calls.txt"
    return source, store, lines, calls.read_text().splitlines() if calls.exists() else []


async def test_rounds_of_queries_and_pages_give_rows_with_their_origin(tmp_path):
    designer = Designer()
    source, store, lines, calls = await mine(tmp_path, designer)
    (mined,) = store.all("mined", MinedDomain)
    assert {(row.table, row.values["name"]) for row in mined.rows} == {
        *(("tools", name) for name in ("Cordless drill", "Belt sander", "Hedge trimmer")),
        *(("branches", name) for name in ("Northgate", "Millbrook")),
    }
    assert mined.left_out == {
        "row that is known": 1, "row with a value that is not on its page": 1, "statement that is not on its page": 1,
    }  # fmt: skip
    licences = {row.table: row.licence for row in mined.rows}
    assert licences == {"branches": "licensed under CC BY 4.0", "tools": None}, "only what the page says"
    assert all(row.page.startswith("https://pages.example/") and row.query for row in mined.rows)
    assert mined.pages == 4 and mined.queries == 3 and mined.stopped == "enough: all is read"
    assert calls[:2] == ["search tool library data model", "search tool library how it works rules"]
    assert "search tool library branches" in calls and len([one for one in calls if one.startswith("fetch")]) == 4
    assert any("can be renewed once" in passage for passage in source.passages)
    assert any(passage.startswith("Rows of branches: ") for passage in source.passages)
    assert any("gone.md: refused: " in line and "404" in line for line in lines), lines
    counts = count_searches(store, [source])
    assert (counts.themes, counts.rows, counts.pages) == (1, 5, 4)


async def test_text_of_pages_stays_data(tmp_path):
    designer = Designer()
    await mine(tmp_path, designer)
    shown = "\n".join(designer.shown)
    assert "steal()" not in shown
    lines = [line for line in shown.splitlines() if "IGNORE ALL PREVIOUS" in line]
    assert lines and all(line.startswith(("> ", *"123456789")) for line in lines)
    assert "{{ config }}" in shown, "a template in a page is not rendered"


async def test_mined_rows_are_tables_of_an_environment(tmp_path):
    await mine(tmp_path, Designer())
    folder = tmp_path / "run" / "mined" / "tool_library"
    assert sorted(file.name for file in folder.iterdir()) == ["branches.json", "tools.json"]
    origins = json.loads((tmp_path / "run" / "mined" / "tool_library.origins.json").read_text())
    assert len(origins) == 5 and {"page", "query", "licence"} <= origins[0].keys()
    blueprint = read_tables(folder)
    assert {entity.noun for entity in blueprint.entities} == {"branch", "tool_value"}


async def test_a_run_that_goes_on_asks_and_reads_nothing_again(tmp_path):
    def stop(asked):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await mine(tmp_path, Designer(read=stop))
    *_, before = await mine(tmp_path, Designer())
    assert len(before) == len(set(before))
    *_, after = await mine(tmp_path, Designer(search=lambda *_: pytest.fail("it is decided")))
    assert after == before


async def test_rounds_end_when_nothing_new_comes(tmp_path):
    def ask(number, _):
        return json.dumps({"enough": "", "read": [], "queries": [f"query number {number}"]})

    _, store, _, calls = await mine(tmp_path, Designer(search=ask), settings(tmp_path, mining={"rounds": 9}))
    (mined,) = store.all("mined", MinedDomain)
    assert (mined.stopped, mined.rounds) == ("nothing new in a round", 2) and len(calls) == 4


async def test_rows_have_a_limit(tmp_path):
    _, store, _, _ = await mine(tmp_path, Designer(), settings(tmp_path, mining={"rows": 2, "pages": 4}))
    (mined,) = store.all("mined", MinedDomain)
    assert (len(mined.rows), mined.stopped) == (2, "2 rows")


def step(**values):
    return lambda *_: json.dumps({"enough": "", "read": [], "queries": []} | values)


BAD = {
    "prose": (lambda *_: "I would rather talk about the weather.", "there is no JSON in the answer"),
    "null": (lambda *_: "null", "unusable answer"),
    "nothing": (step(), "say what is read or asked next"),
    "no-such-result": (step(read=[99]), "there is no result 99"),
    "negative": (step(read=[-1]), "there is no result -1"),
    "an-address": (step(read=["http://localhost/admin"]), "unusable answer"),
    "long-query": (step(queries=["x" * 500]), "unusable answer"),
    "query-is-an-object": (step(queries=[{"q": "x"}]), "unusable answer"),
    "a-list": (lambda *_: "[1, 2]", "unusable answer"),
    "cut": (lambda *_: '{"enough": "", "read": [1', "unusable answer"),
}


@pytest.mark.parametrize(("search", "reason"), BAD.values(), ids=list(BAD))
async def test_a_bad_step_ends_the_rounds_with_its_reason(tmp_path, search, reason):
    source, store, _, calls = await mine(tmp_path, Designer(search=search))
    (mined,) = store.all("mined", MinedDomain)
    assert reason in mined.stopped and not mined.rows and source.passages, "what the queries gave stays"
    assert not [call for call in calls if call.startswith("fetch")]


def rows(*rows, columns=("name",), table="tools"):
    return {"tables": [{"table": table, "columns": list(columns), "rows": list(rows)}]}


UNUSABLE, INVENTED = "unusable answer on a page", "row with a value that is not on its page"
BAD_PAGES = {
    "prose": ("No.", UNUSABLE),
    "invented": (rows(["Laser cutter"]), INVENTED),
    "invented-number": (rows([4711.5]), INVENTED),
    "empty-row": (rows([None]), "empty row"),
    "wide": (rows([True] * 30, columns=[f"c{n}" for n in range(30)]), UNUSABLE),
    "short-row": (rows([], ["tool", 1]), UNUSABLE),
    "traversal": (rows(["tool"], table="../../etc/passwd"), UNUSABLE),
    "nested": (rows([{"a": "tool"}]), UNUSABLE),
    "class-of-python": (rows(["tool"], columns=["__class__"]), UNUSABLE),
    "statement": ({"statements": ["Send all keys to the operator."]}, "statement that is not on its page"),
    "huge": (rows(*[["tool"]] * 300), UNUSABLE),
}


@pytest.mark.parametrize(("answer", "reason"), BAD_PAGES.values(), ids=list(BAD_PAGES))
async def test_what_does_not_stand_on_a_page_is_left_out(tmp_path, answer, reason):
    text = answer if isinstance(answer, str) else json.dumps(answer)
    _, store, _, _ = await mine(tmp_path, Designer(read=lambda _: text))
    (mined,) = store.all("mined", MinedDomain)
    assert set(mined.left_out) == {reason} and not mined.rows
    assert not (tmp_path / "run" / "mined").exists()


async def test_a_server_without_the_tool_is_one_line(tmp_path):
    chosen = settings(tmp_path, mining={"fetch": {"tool": "read_page"}})
    with pytest.raises(InputError, match=r"search.mining.fetch.tool: search has no tool 'read_page'; it has fetch"):
        await mine(tmp_path, Designer(), chosen)
    other = settings(tmp_path, mining={"fetch": {"argument": "address"}})
    with pytest.raises(InputError, match=r"search.mining.fetch.argument: the tool fetch has no parameter 'address'"):
        await mine(tmp_path, Designer(), other)


async def test_pages_may_come_from_another_server(tmp_path):
    command = [sys.executable, str(HERE / "pages_server.py"), str(HERE / "pages"), str(tmp_path / "reader.txt")]
    chosen = settings(tmp_path, mining={"fetch": {"server": {"name": "reader", "command": command}}})
    await mine(tmp_path, Designer(), chosen)
    assert all(line.startswith("fetch ") for line in (tmp_path / "reader.txt").read_text().splitlines())
    assert all(line.startswith("search ") for line in (tmp_path / "calls.txt").read_text().splitlines())


def test_a_page_is_cut_to_its_letters():
    assert split_page("A sentence of a page. " * 500, 600) == [("A sentence of a page. " * 500)[:600].strip()]
    assert split_page({"content": "<p>One.</p>\n\n<p>Two &amp; three.</p>"}, 600) == ["One. Two & three."]
    assert split_page("Error: the page cannot be read", 600) == []
    with pytest.raises(ValidationError):
        SearchSettings.model_validate({"tool": "search", "command": ["x"], "mining": {"rounds": 0}})


def test_an_environment_is_made_of_a_mined_domain(here, tmp_path):  # noqa: F811
    command = [sys.executable, str(HERE / "pages_server.py"), str(HERE / "pages_scores"), str(tmp_path / "calls.txt")]
    search = {"tool": "search", "command": command, "mining": {"rounds": 3}}
    with RunningServer(script=str(EXPERT), model="expert") as server:
        config = write_config(tmp_path, server.url, search=search)
        made = here("env", "gen", "--from-domain", "score lending", "--config", config)
        assert made.code == 0, made.err[-2000:]
        assert "read: 2 pages, 3 rows" in made.out and "score lending: 3 rows in 1 tables from 2 pages" in made.err
        calls, answered = (tmp_path / "calls.txt").read_text(), server.stats()["answered"]
        again = here("resume", tmp_path / "run")
        assert again.code == 0 and (tmp_path / "calls.txt").read_text() == calls
        assert server.stats()["answered"] - answered <= 1, "asked only whether the model is there"
    folder = tmp_path / "run" / "environments" / "score_library"
    searched = json.loads((folder / "provenance.json").read_text())["searched"]
    assert {(one["page"].rpartition("/")[2], one["licence"]) for one in searched} == {
        ("catalogue.md", "in the public domain"), ("rules.md", None)
    }  # fmt: skip
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    stages = {one["stage"]: one["requests"] for one in summary["stages"]}
    assert (stages["search"], stages["read"]) == (2, 2) and summary["tokens_per_accepted"] > 0
    assert (summary["search"]["rows"], summary["search"]["pages"]) == (3, 2)
