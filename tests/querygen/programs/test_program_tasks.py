"""Programmatic tasks: natural requests, checks that catch mutants, and plays that are accepted."""

import asyncio
from contextlib import suppress
from pathlib import Path
from typing import Any

import orjson
import pytest
from pydantic import ValidationError

from trajsmith.environments import NativeSession
from trajsmith.environments.library import ENVIRONMENTS, get_phrases_path
from trajsmith.grounding import Grounder, GroundSettings
from trajsmith.phrasing import load_phrasebook
from trajsmith.phrasing.table_phrases import MeasurePhrases, TablePhrases, WritePhrases
from trajsmith.pipeline.config import load_config
from trajsmith.pipeline.run_directory import TASKS, TRAJECTORIES, VERDICTS, RunDirectory
from trajsmith.pipeline.runner import run_pipeline
from trajsmith.pipeline.yaml_settings import dump_settings
from trajsmith.querygen.parallel_calls import do_calls_commute
from trajsmith.querygen.programs import composition
from trajsmith.querygen.programs.composition import ProgramComposer, ProgramSettings
from trajsmith.querygen.programs.execution import ProgramRun
from trajsmith.querygen.programs.operations import Aggregate, SolutionProgram
from trajsmith.querygen.programs.sentences import (
    ProgramWords,
    address_user,
    describe_extreme,
    find_predicate,
    format_bound,
    format_measure,
    join_clauses,
    make_plural,
    render_answers,
)
from trajsmith.querygen.programs.write import _list_other_labels
from trajsmith.records import GoldCall, InputError, RecordDropped, Task, Trajectory, Verdict
from trajsmith.records.journal import read_records
from trajsmith.verify.solution_check import check_solution

CONFIG = """
name: p
seed: 3
environments: [{library: smart_home, states: {medium: 1}}, {library: retail, states: {medium: 1}}]
sample: {count: 16, length: [4, 6]}
sources: {chains: 0.25, programs: 0.75}
play: {candidates: 1}
"""


def run(folder: Path, config: str = CONFIG) -> RunDirectory:
    (folder / "c.yaml").write_text(config)
    loaded = load_config(folder / "c.yaml", [f"run={folder / 'run'}"])
    directory = RunDirectory.create(folder / "run", dump_settings(loaded))
    asyncio.run(run_pipeline(directory))
    return directory


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> RunDirectory:
    return run(tmp_path_factory.mktemp("programs"))


def test_sources_come_together_in_one_run(done: RunDirectory) -> None:
    tasks = list(read_records(done.file(TASKS), Task))
    programs = [task for task in tasks if task.source == "program"]
    assert len(programs) >= 8 and any(task.source is None for task in tasks)
    verdicts = {verdict.task_id: verdict for verdict in read_records(done.file(VERDICTS), Verdict)}
    assert all(verdicts[task.id].accepted and verdicts[task.id].replay_match for task in programs)
    for task in programs:
        assert task.solution is not None and "def solve(call):" in task.solution.python
        assert task.audit is not None and task.audit.discrimination == 1.0
        assert task.audit.accepted == task.audit.equivalent > 0
        assert len(task.gold_calls) >= 2


def test_the_agent_plays_the_program_and_tells_its_answer(done: RunDirectory) -> None:
    tasks = {task.id: task for task in read_records(done.file(TASKS), Task) if task.source == "program"}
    for trajectory in read_records(done.file(TRAJECTORIES), Trajectory):
        task = tasks.get(trajectory.task_id)
        if task is not None and task.solution is not None:
            made = sorted((event.tool, orjson.dumps(event.arguments)) for event in trajectory.events)
            assert made == sorted((call.tool, orjson.dumps(call.arguments)) for call in task.gold_calls)
            assert any(sentence in trajectory.messages[-1].content for sentence in task.solution.sentences)


def test_the_same_seed_gives_the_same_tasks(done: RunDirectory, tmp_path: Path) -> None:
    again = run(tmp_path)
    assert again.file(TASKS).read_bytes() == done.file(TASKS).read_bytes()


def test_programs_are_english_only(tmp_path: Path) -> None:
    english = CONFIG.replace("{library: smart_home, states: {medium: 1}}, ", "")
    (tmp_path / "c.yaml").write_text(english + "language: de\n")
    with pytest.raises(InputError, match="programmatic tasks are written in English only"):
        load_config(tmp_path / "c.yaml")


def test_a_run_without_any_source_is_refused(tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text(CONFIG.replace("{chains: 0.25, programs: 0.75}", "{chains: 0}"))
    with pytest.raises(InputError, match="at least one source"):
        load_config(tmp_path / "c.yaml")


@pytest.mark.parametrize("name", ENVIRONMENTS.names())
def test_tables_name_tools_fields_and_values_that_exist(name: str) -> None:
    cls = ENVIRONMENTS.get(name)
    tools = {tool.name: tool for tool in cls.describe().tools}
    for table, words in load_phrasebook(get_phrases_path(cls)).tables.items():
        fields = row_fields(tools[table].output_schema)
        if words.parent:
            fields = {**row_fields(tools[words.parent].output_schema), **fields}
            assert words.parent_key in tools[table].parameters
        assert {words.key, words.label, *words.measures, *words.bounds} <= fields.keys()
        assert {words.page, words.owner, *words.arguments} - {""} <= set(tools[table].parameters)
        for field, clauses in words.where.items():
            assert field in fields
            known = fields[field].get("enum")
            assert known is None or set(clauses) - {"*"} <= set(known), (table, field)
        for write in words.writes:
            assert {write.parameter, *write.arguments} == set(tools[write.tool].required), (table, write.tool)
        for look_up in words.lookups:
            shown = row_fields({"properties": {"result": {"items": tools[look_up.tool].output_schema}}})
            assert {*look_up.where, *look_up.measures} <= shown.keys(), (table, look_up.tool)


def row_fields(schema: Any) -> dict[str, Any]:
    """Fields of the rows of a list result, with their schemas."""
    definitions = schema.get("$defs", {})
    items = schema["properties"]["result"]["items"]
    own = definitions | items.get("$defs", {})

    def resolve(node: Any) -> Any:
        if "$ref" in node:
            return resolve(own[node["$ref"].rsplit("/", 1)[-1]])
        options = [each for each in node.get("anyOf", ()) if each.get("type") != "null"]
        return resolve(options[0]) if options else node

    return {name: resolve(child) for name, child in resolve(items)["properties"].items()}


@pytest.mark.parametrize(
    ("text", "value", "more", "passes"),
    [
        pytest.param("It comes to £1,234.50 in all.", 1234.5, {}, True, id="money"),
        pytest.param("1234.5", 1234.5, {}, True, id="digits"),
        pytest.param("There are three.", 3, {}, True, id="word"),
        pytest.param("Order W3 has 4.", 3, {}, False, id="part-of-a-name"),
        pytest.param("About 1234", 1234.5, {}, False, id="rounded-too-far"),
        pytest.param(" ".join(map(str, range(40))), 7, {}, False, id="every-number-there-is"),
        pytest.param("They are B and A.", ["A", "B"], {"others": ["C"]}, True, id="any-order"),
        pytest.param("They are B and A.", ["A", "B"], {"ordered": True}, False, id="wrong-order"),
        pytest.param("A, B and C", ["A", "B"], {"others": ["C"]}, False, id="one-too-many"),
        pytest.param("Just A.", ["A", "B"], {}, False, id="one-too-few"),
        pytest.param("", 3, {}, False, id="nothing"),
    ],
)
def test_structured_answers(text: str, value: Any, more: dict[str, Any], passes: bool) -> None:
    assert check_solution(text, value, **more)[0] is passes


def test_clauses_are_joined_as_people_say_them() -> None:
    assert join_clauses(["that are late", "with low priority", "whose total is high"]) == (
        " with low priority that are late and whose total is high"
    )
    assert find_predicate(" that have been paid") == "have been paid"
    assert find_predicate(" with low priority") == "have low priority"
    assert find_predicate(" in the attic that are lights and that are switched on") == (
        "are in the attic and are lights and are switched on"
    )
    assert find_predicate(" whose total is high") == find_predicate(" in the attic whose total is high") == ""


def test_questions_about_extremes_use_the_words_of_the_measure() -> None:
    size = MeasurePhrases(noun="size", unit="MB", most="is the largest", extremes=("largest", "smallest"))
    assert describe_extreme(size, True) == "is the largest" and make_plural("is the largest") == "are the largest"
    assert describe_extreme(size, False) == "has the smallest size"
    assert make_plural("cost the most") == "cost the most"
    money = MeasurePhrases(noun="price", form="money")
    assert format_bound(460, money) == "£460" and format_measure(460, money) == "£460.00"


def test_a_difference_names_no_row_of_several_with_the_same_value() -> None:
    humidity = MeasurePhrases(noun="humidity", extremes=("highest", "lowest"), unit="percent")
    rows = [
        {"room": "landing", "humidity": 38},
        {"room": "hobby room", "humidity": 61},
        {"room": "guest room", "humidity": 38},
    ]
    answers = render_answers(
        SolutionProgram.model_construct(answer=Aggregate(how="difference", field="humidity")),
        TablePhrases.model_construct(label="room", alone=None),
        ProgramWords(whole="rooms", how_many="How many rooms", rows="rooms", measure=humidity),
        None,
        ProgramRun(rows=rows, answer=23),
    )
    assert answers[1] == (
        "They are 23 percentage points apart: the lowest is 38 percent, and the highest 61 percent, for the hobby room."
    )


@pytest.mark.parametrize(
    ("words", "spoken"),
    [
        ("my orders that I've paid", "your orders that you've paid"),
        ("my phones, which I was sent, cost me", "your phones, which you were sent, cost you"),
        ("Irish melodies", "Irish melodies"),
        ('my "my trips" and me.txt by Henry I. Smith', 'your "my trips" and me.txt by Henry I. Smith'),
    ],
)
def test_the_answer_turns_to_the_user(words: str, spoken: str) -> None:
    assert address_user(words) == spoken


async def test_rows_of_other_lists_are_wrong_answers_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """The devices of the cellar are no part of those of the kitchen, though no call told of them."""
    monkeypatch.setattr(composition, "SHAPES", {"answer": 1.0})
    cls = ENVIRONMENTS.get("smart_home")
    spec, state = cls.describe(), cls.seed_state("medium", 1).model_dump(mode="json")
    grounder = Grounder(spec, state, load_phrasebook(get_phrases_path(cls)), GroundSettings())
    pushed = 0
    for seed in range(30):
        composer = ProgramComposer(grounder, NativeSession(cls, spec), ProgramSettings(calls=(2, 60), tries=60), seed)
        with suppress(RecordDropped):
            composed = await composer.compose()
            if composed.program.rows.parents and composed.program.answer.how in ("labels", "ordered"):
                pushed += 1
                assert len(composed.labels) > len(composed.run.listed)
                named = {*_list_other_labels(composed), *map(str, composed.run.answer)}
                assert named == {device["device_name"] for device in state["devices"].values()}
    assert pushed


async def test_no_loop_looks_up_what_the_answer_does_not_need(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rooms of a floor stand in a list: nobody has to look at the energy that each of them uses."""
    monkeypatch.setattr(composition, "SHAPES", {"look_up": 1.0})
    cls = ENVIRONMENTS.get("smart_home")
    spec, state = cls.describe(), cls.seed_state("medium", 1).model_dump(mode="json")
    grounder = Grounder(spec, state, load_phrasebook(get_phrases_path(cls)), GroundSettings())
    told = set[str]()
    for seed in range(30):
        composer = ProgramComposer(grounder, NativeSession(cls, spec), ProgramSettings(calls=(2, 60), tries=60), seed)
        with suppress(RecordDropped):
            program = (await composer.compose()).program
            if program.table == "list_rooms":
                kinds = [step.kind for step in program.steps]
                used = {
                    program.answer.field,
                    *(getattr(step, "field", "") for step in program.steps[kinds.index("look_up") + 1 :]),
                }
                assert used & {"total_kwh", "cost", "window_open", "heating", "target_temperature", "humidity_percent"}
                told.add(program.answer.how)
    assert {"labels", "count"} & told and len(told) > 3


def test_an_average_has_the_decimal_places_that_were_asked_for() -> None:
    humidity = MeasurePhrases(noun="humidity", extremes=("highest", "lowest"), unit="percent")
    answers = render_answers(
        SolutionProgram.model_construct(answer=Aggregate(how="mean", field="humidity")),
        TablePhrases.model_construct(label="room", alone=None),
        ProgramWords(whole="rooms", how_many="How many rooms", rows="my rooms", measure=humidity),
        None,
        ProgramRun(rows=[{"room": "landing", "humidity": 38}, {"room": "attic", "humidity": 61}], answer=49.5),
    )
    assert list(answers) == ["The average humidity of your rooms is 49.50 percent."]


async def test_extremes_are_told_by_name_and_asked_for_without_a_bound_of_their_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The largest of those that are larger than something are the largest; a number of a record alone says little."""
    monkeypatch.setattr(composition, "SHAPES", {"answer": 1.0})
    cls = ENVIRONMENTS.get("bank")
    spec, state = cls.describe(), cls.seed_state("medium", 1).model_dump(mode="json")
    grounder = Grounder(spec, state, load_phrasebook(get_phrases_path(cls)), GroundSettings())
    told: dict[str, int] = {}
    for seed in range(60):
        composer = ProgramComposer(grounder, NativeSession(cls, spec), ProgramSettings(calls=(2, 60), tries=60), seed)
        with suppress(RecordDropped):
            composed = await composer.compose()
            how, table = composed.program.answer.how, composer.tables[composed.program.table]
            if how not in ("largest", "smallest", "difference"):
                continue
            bounds = [step.field for step in composed.program.steps if getattr(step, "how", "") in ("above", "below")]
            assert composed.program.answer.field not in bounds
            told[how] = told.get(how, 0) + 1
            ends = sorted(composed.run.rows, key=lambda row: row[composed.program.answer.field])
            named = {"largest": ends[-1:], "smallest": ends[:1], "difference": [ends[0], ends[-1]]}[how]
            values = [row[composed.program.answer.field] for row in ends]
            named = [row for row in named if values.count(row[composed.program.answer.field]) == 1]
            for text in render_answers(composed.program, table, composed.words, composed.write, composed.run):
                assert all(str(row[table.label]) in text for row in named)
                assert not table.alone or all(row["description"] in text for row in named)
    assert {"difference"} < set(told)


@pytest.mark.parametrize(
    ("places", "commute"), [((0, 1), True), ((0, 0), False)], ids=["two blinds", "one blind twice"]
)
async def test_writes_share_a_message_if_their_order_means_nothing(places: tuple[int, int], commute: bool) -> None:
    cls = ENVIRONMENTS.get("smart_home")
    session, state = NativeSession(cls, cls.describe()), cls.seed_state("medium", 3).model_dump(mode="json")
    devices = state["devices"].items()
    lights = [
        key for key, device in devices if device["kind"] == "light" and device["online"] and device["level"] == 70
    ]
    await session.reset(state)
    calls = []
    for place, level in zip(places, (15, 35), strict=True):
        arguments = {"device_id": lights[place], "level": level}
        result = await session.call("set_level", arguments)
        assert result.ok
        calls.append(
            GoldCall(tool="set_level", arguments=arguments, provenance={}, effect="write", result=result.content)
        )
    assert await do_calls_commute(calls, (0, 0), state, session, 1) is commute
    assert await do_calls_commute(calls, (0, 1), state, session, 1)


@pytest.mark.parametrize(
    "wrong",
    [{"whole": "all my lamps"}, {"clause": "that are on"}, {"whole": "all {x}", "clause": "that are on"},
     {"whole": "all my lamps", "clause": "that are on", "where": {"power": ["on", "off"]}}],
)  # fmt: skip
def test_own_words_of_a_write_say_what_it_keeps(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match="clause"):
        WritePhrases(tool="switch", parameter="lamp_id", ask=("switch {rows}",), done=("Done: {names}.",), **wrong)


def get_python(task: Task) -> str:
    assert task.solution is not None
    return task.solution.python


def test_long_requests_have_fifteen_calls_and_more(tmp_path: Path) -> None:
    config = """
name: l
seed: 2
environments: [{library: smart_home, states: {medium: 1}}]
sample: {count: 12}
sources: {chains: 0, long: 1}
play: {candidates: 1}
"""
    done = run(tmp_path, config)
    tasks = list(read_records(done.file(TASKS), Task))
    assert tasks and all(task.source == "long" and 15 <= len(task.gold_calls) <= 50 for task in tasks)
    late = "rows = [row for row in rows if row['floor']"  # devices have the floor of their room
    assert all("list_devices" not in text or late not in text or "listed" in text for text in map(get_python, tasks))
    written = [task for task in tasks if any(call.effect == "write" for call in task.gold_calls)]
    assert written and all("in my home that are" in task.turns[0].query for task in written)
    for task in written:
        groups = [
            group for group, call in zip(task.turns[0].groups, task.gold_calls, strict=True) if call.effect == "write"
        ]
        assert len(groups) > 1 and len(set(groups)) == 1, "devices are switched in any order"
    assert all(verdict.accepted for verdict in read_records(done.file(VERDICTS), Verdict))
