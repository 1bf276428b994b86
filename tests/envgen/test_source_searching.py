"""Search servers as sources: what arrives, what is asked once only, what cannot be asked, what finds nothing."""

import sys
from pathlib import Path

import pytest
import yaml
from expertly import Expert, domain, expert, loop_in
from running_server import RunningServer
from test_synthesis_run import EXPERT, here, lines, write_config  # noqa: F401 - `here` is a fixture

from trajsmith.envgen.sources import MAX_SHOWN_PASSAGES
from trajsmith.envgen.sources.search_hits import find_server_message, parse_hits
from trajsmith.envgen.sources.web_search import SearchSettings, WebSearcher
from trajsmith.envgen.synthesis import synthesize_environments
from trajsmith.envgen.synthesis.records import Theme
from trajsmith.envgen.synthesis.search_records import collect_origins, search_all
from trajsmith.records import InputError
from trajsmith.records.journal import StepJournal

SERVER = Path(__file__).parent / "search_server.py"


@pytest.fixture
def asked(tmp_path):
    """What the server was asked."""
    log = tmp_path / "asked.txt"
    return lambda: log.read_text().splitlines() if log.exists() else []


def search(tmp_path, **more):
    command = [sys.executable, str(SERVER), str(tmp_path / "asked.txt")]
    return SearchSettings.model_validate({"tool": "web_search", "command": command} | more)


async def found(settings, *names):
    async with WebSearcher(settings) as searcher:
        return [await searcher.search(domain(name)) for name in names]


@pytest.mark.parametrize("tool", ["web_search", "text_search"])
async def test_passages_arrive_in_the_source_each_with_its_origin(tool, tmp_path, asked):
    (one,) = await found(search(tmp_path, tool=tool), "score lending")
    assert asked() == ["score lending data model", "score lending how it works rules"]
    said = " ".join(one.source.passages)
    for part in ("has a due date and a count of renewals", "card number", "may be renewed twice", "owes twenty pence"):
        assert part in said
    assert len(one.source.passages) == 4 and one.repeated == 1, "the same text under another title counts once"
    assert "http" not in said and "<strong>" not in said
    assert all("\n" not in text and len(text) <= 1200 for text in one.source.passages)
    assert one.source.passages == tuple(passage.text for passage in one.passages)
    assert {(p.server, p.tool, p.licence) for p in one.passages} == {("six-pages", tool, None)}
    assert [p.query for p in one.passages[:2]] == asked(), "both queries come before the second result of either"
    assert one.passages[0].page == "https://pages.example/0"
    assert (one.source.name, one.source.kind, one.faults) == ("score lending", "domain", ())


@pytest.mark.parametrize(
    ("content", "texts"),
    [
        ({"web": {"results": [{"title": "Loans", "description": "A loan has a member, a score and a due date."}]}},
         ["Loans. A loan has a member, a score and a due date."]),
        ({"result": '[{"name": "Loans", "id": "x1", "body": "A loan has a member, a score and a due date."}]'},
         ["Loans. A loan has a member, a score and a due date."]),
        (["A loan has a member, a score and a due date.", "No."], ["A loan has a member, a score and a due date."]),
        ({"answer": "A loan has a member, a score and a due date.", "tokens": 9},
         ["A loan has a member, a score and a due date."]),
        ('{"title": "Loans",\n "text": "A loan has a member, a score and a due date."}\n{"title": "x", "text": "No."}',
         ["Loans. A loan has a member, a score and a due date."]),
        ("Found 2 search results:\n\n1. Loans\n   URL: https://a.example/1\n   Summary: A loan has one member.\n\n"
         "2. Fees\n   URL: https://a.example/2\n   Summary: A fee is owed by the member who is late.\n",
         ["1. Loans Summary: A loan has one member.", "2. Fees Summary: A fee is owed by the member who is late."]),
        ("", []), ({}, []), ([], []), (7, []), ({"results": []}, []),
    ],
    ids=["nested", "JSON in a text", "texts", "one answer", "a block each", "numbered", "no text", "no keys", "nothing",
         "a number", "no results"],
)  # fmt: skip
def test_results_of_any_shape_are_read(content, texts):
    assert [hit.text for hit in parse_hits(content)] == texts


def test_a_message_in_place_of_results_is_no_passage():
    assert find_server_message("Error: the key is not valid") == find_server_message(
        {"error": "Error: the key is not valid"}
    )
    assert find_server_message({"result": "No results were found."}) == "No results were found."
    assert find_server_message("Error codes of a library system: 12 means that the loan is closed. " * 20) == ""
    assert (
        find_server_message({"error": "", "results": [{"title": "Failed to load", "text": "A page on failures."}]})
        == ""
    )


async def test_no_more_passages_than_a_prompt_shows_and_no_more_results_than_wished(tmp_path):
    queries = [f"{{domain}} data {word}" for word in ("model", "records", "rules", "fields", "tables", "keys")]
    (one,) = await found(search(tmp_path, queries=queries, results=1), "score lending")
    assert len(one.passages) == 1 and one.repeated == 5
    (one,) = await found(search(tmp_path, queries=["{domain}"], results=40), "many things")
    assert (len(one.passages), one.beyond) == (MAX_SHOWN_PASSAGES, 30 - MAX_SHOWN_PASSAGES)


async def test_a_query_that_fails_leaves_the_others_and_says_why(tmp_path, asked):
    broken, unknown, dead, whole = await found(
        search(tmp_path), "what breaks", "unknown things", "what dies", "score lending"
    )
    assert len(broken.passages) == 2 and len(broken.faults) == 1
    assert broken.faults[0].startswith("what breaks how it works rules: refused:") and "quota" in broken.faults[0]
    assert unknown.source == unknown.asked
    assert unknown.faults == tuple(f"{query}: nothing found" for query in asked()[2:4])
    assert len(dead.faults) == 2 and all("server_exited" in fault for fault in dead.faults)
    assert len(whole.passages) == 4, "a server that died is started again"
    (said,) = await found(search(tmp_path, tool="text_search", queries=["{domain}"]), "unknown things")
    assert said.faults[0].startswith("unknown things: nothing found: No results were found for your search query.")


async def test_a_run_that_goes_on_asks_nothing_again(tmp_path, asked):
    settings, told = search(tmp_path), []
    wanted = [domain("score lending"), domain("unknown things")]
    with pytest.raises(ZeroDivisionError):
        await search_all(StepJournal(tmp_path / "run"), settings, wanted, lambda line: [told.append(line), 1 / 0])
    assert len(asked()) == 2, "stopped after the first of two themes"
    first = await search_all(StepJournal(tmp_path / "run"), settings, wanted, told.append)
    assert len(asked()) == 4 and told[0] == "score lending: 4 passages from six-pages"
    assert told[1].startswith("unknown things: continues without passages: ")
    store = StepJournal(tmp_path / "run")
    assert await search_all(store, settings, wanted, told.append) == first
    assert await search_all(store, settings, [*wanted, *first], told.append) == first, "bare and found are one theme"
    assert (len(asked()), len(told)) == (4, 2)
    origins = collect_origins(store, Theme(source=first[0]).id)
    assert len(origins) == 4 and origins[0]["query"] == "score lending data model" and "text" not in origins[0]
    assert first[0].licence is None
    await search_all(store, search(tmp_path, results=1), wanted[:1], told.append)
    assert len(asked()) == 6, "other settings ask anew"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"arguments": {"pages": 2}}, "search.arguments: the tool web_search has no parameter 'pages'"),
        ({"tool": "regional_search"}, "wants others: 'region' is a required property"),
        ({"arguments": {"count": "many"}}, "wants others: count: 'many' is not of type 'integer'"),
        ({"command": ["no-such-program"]}, "command 'no-such-program' was not found"),
        ({"command": [sys.executable, "-c", "import sys; sys.exit(4)"]}, "the server exited with code 4"),
        ({"env": {"KEY": "${NO_SUCH_KEY}"}}, "the environment variable NO_SUCH_KEY is not set"),
    ],
    ids=["further argument", "missing argument", "type", "program", "start", "variable"],
)
async def test_a_server_that_cannot_be_asked_is_one_line(change, said, tmp_path, asked):
    with pytest.raises(InputError) as error:
        await found(search(tmp_path, **change), "score lending")
    assert said in str(error.value) and "\n" not in str(error.value) and asked() == []


async def test_passages_reach_the_designer_and_faults_the_outcome(tmp_path):
    prompts = []

    def answer(request):
        prompts.append(request["messages"][1]["content"])
        return expert.answer(request)

    loop = loop_in(tmp_path / "run", Expert(answer))
    wanted = [domain("general knowledge"), domain("general knowledge that breaks")]
    sources = await search_all(loop.store, search(tmp_path), wanted, loop.tell)
    outcomes = await synthesize_environments(loop, sources)
    assert "> Loans as records. A loan belongs to one member and one score" in prompts[0]
    assert [len(one.notes) for one in outcomes] == [0, 1] and not any(one.accepted for one in outcomes)
    assert outcomes[1].notes[0].startswith("search: general knowledge that breaks how it works rules: refused:")


class TestCommandLine:
    @pytest.fixture
    def config(self, tmp_path):
        with RunningServer(script=str(EXPERT), model="expert") as server:
            entry = {"command": [sys.executable, str(SERVER), str(tmp_path / "asked.txt")], "tool": "web_search"}
            yield write_config(tmp_path, server.url, search=entry)

    def test_it_is_shown_asked_once_and_counted(self, config, tmp_path, asked, here):  # noqa: F811
        source = ("--from-domain", "general knowledge")
        shown = here("env", "gen", *source, "--config", config, "--dry-run")
        assert shown.code == 0 and "search: web_search of search: 2 queries for each of 1 themes" in shown.out
        assert asked() == [] and not (tmp_path / "run").exists()
        done = here("env", "gen", *source, "--config", config)
        assert "general knowledge: 4 passages from six-pages" in done.err and len(asked()) == 2
        assert "search: 1 themes, 4 passages, 1 repeated, 0 queries without results" in done.out
        assert [len(one["source"]["passages"]) for one in lines(tmp_path / "run" / "themes.jsonl")] == [0, 4]
        summary = (tmp_path / "run" / "summary.json").read_text()
        gone = yaml.safe_load(config.read_text())
        gone["search"]["command"][1] = "/nowhere/search_server.py"
        for again in (("--run", tmp_path / "run"), (*source, "--config", config)):
            assert here("env", "gen", *again).code == 1, "the only theme is rejected again, from the records"
        assert len(asked()) == 2 and (tmp_path / "run" / "summary.json").read_text() == summary
        config.write_text(yaml.safe_dump(gone))
        assert here("env", "gen", *source, "--config", config).code == 2, "another server is another search"

    def test_what_cannot_be_asked_is_one_line_before_any_work(self, config, tmp_path, here):  # noqa: F811
        for change, said in (
            ("search.tool=find", "search has no tool 'find'; it has regional_search, text_search, web_search"),
            ("search.argument=q", "search.argument: the tool web_search has no parameter 'q'; it has query, count"),
            ("search.url=http://localhost:1/mcp", "give either `command` (stdio) or `url`"),
            ("search.queries=[rules]", "must hold {domain}"),
            ("search.read_only=[web_search]", "`read_only` is for servers that are environments"),
            ("search.tol=find", 'did you mean "tool"'),
        ):
            done = here("env", "gen", "--from-domain", "general knowledge", "--config", config, "--set", change)
            assert done.code == 2 and said in done.err and done.err.count("\n") == 1, done.err
        assert not (tmp_path / "run").exists()
