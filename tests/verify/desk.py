"""A small environment with ids, times and chance of its own, and a task on it that was really run."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from trajsmith.environments import Environment, EnvironmentState, NativeSession, StateModel, ToolError, tool
from trajsmith.records import (
    FromOutput,
    FromUser,
    GoldCall,
    JsonObject,
    Message,
    NondeterminismMask,
    Persona,
    PolicyRule,
    Selector,
    Task,
    ToolCall,
    Trajectory,
    Turn,
)
from trajsmith.records.message import FunctionCall
from trajsmith.usersim.dialogue import Dialogue, PlaySettings
from trajsmith.usersim.roles import AgentAct, UserAct
from trajsmith.verify.check_panel import CheckPanel
from trajsmith.verify.checks import build_checks
from trajsmith.verify.gold_run import GoldRun
from trajsmith.verify.nondeterminism import find_nondeterminism_mask
from trajsmith.verify.normalized_state import NormalizedState, normalize_state


class Note(StateModel):
    note_id: str
    title: str
    color: str
    made_at: datetime
    pin: str
    parent_id: str | None = None
    archived: bool = False


class Row(StateModel):
    note_id: str
    title: str
    color: str


class DeskState(EnvironmentState):
    notes: dict[str, Note] = {}


class Desk(Environment[DeskState]):
    """Notes on a desk."""

    policy = "Look at the notes before one is put away."
    rules = (PolicyRule(says="Notes are listed before one is put away.", tools=("archive",), after=("list_notes",)),)

    @tool(effect="read")
    def list_notes(self, limit: int = 20) -> list[Row]:
        """List notes.

        Args:
            limit: How many at most.
        """
        rows = [Row(note_id=n.note_id, title=n.title, color=n.color) for n in self.state.notes.values()]
        return rows[: max(limit, 4)]

    @tool(effect="read")
    def count_notes(self) -> int:
        """How many notes there are."""
        return len(self.state.notes)

    @tool(effect="write")
    def add_note(self, title: str, color: str, parent_id: str | None = None) -> Note:
        """Add a note.

        Args:
            title: What it says.
            color: Its color.
            parent_id: Note that it is stuck to.
        """
        if parent_id is not None:
            self.lookup(self.state.notes, parent_id, "note")
        made = Note(
            note_id=self.new_id("note", "N{}"), title=title, color=color, made_at=self.state.now, parent_id=parent_id,
            pin=f"{self.random().randrange(10**6):06d}",
        )  # fmt: skip
        self.state.notes[made.note_id] = made
        return made

    @tool(effect="write")
    def paint(self, note_id: str, color: str) -> Row:
        """Give a note another color.

        Args:
            note_id: Which note.
            color: The new color.
        """
        note = self.lookup(self.state.notes, note_id, "note")
        note.color = color
        return Row(note_id=note_id, title=note.title, color=color)

    @tool(effect="write")
    def archive(self, note_id: str) -> bool:
        """Put a note away.

        Args:
            note_id: Which note.
        """
        note = self.lookup(self.state.notes, note_id, "note")
        if note.archived:
            raise ToolError("it is put away already")
        note.archived = True
        return True

    @tool(effect="write")
    def unarchive(self, note_id: str) -> bool:
        """Take a note out again.

        Args:
            note_id: Which note.
        """
        self.lookup(self.state.notes, note_id, "note").archived = False
        return True


def _note(number: int, title: str, color: str) -> Note:
    return Note(note_id=f"N{number}", title=title, color=color, made_at=datetime(2026, 1, number), pin="000000")


STATE: JsonObject = DeskState(
    now=datetime(2026, 3, 2, 9), counters={"note": 3},
    notes={note.note_id: note for note in (_note(1, "milk", "red"), _note(2, "rent", "blue"), _note(3, "gym", "red"))},
).model_dump(mode="json")  # fmt: skip
SPEC = Desk.describe()


def session() -> NativeSession:
    return NativeSession(Desk, SPEC)


def call(tool_name: str, arguments: JsonObject, effect: Any, **outputs: FromOutput) -> GoldCall:
    provenance = {name: outputs.get(name, FromUser(known=f"k.{name}")) for name in arguments}
    return GoldCall(tool=tool_name, arguments=arguments, provenance=provenance, effect=effect)


def row(title: str) -> Selector:
    return Selector(rows="$.result", how="equals", field="title", value=title)


def picked(index: int, title: str) -> FromOutput:
    return FromOutput(call=index, path="$.result[*].note_id", selectors=(row(title),))


TURNS: list[list[GoldCall]] = [
    [
        call("list_notes", {"limit": 10}, "read"),
        call("paint", {"note_id": "N2", "color": "green"}, "write", note_id=picked(0, "rent")),
        call("paint", {"note_id": "N2", "color": "white"}, "write", note_id=picked(0, "rent")),
        call("add_note", {"title": "trip", "color": "blue"}, "write"),
        call("add_note", {"title": "tent", "color": "red"}, "write"),
    ],
    [
        call("add_note", {"title": "map", "color": "red", "parent_id": "N4"}, "write",
             parent_id=FromOutput(call=3, path="$.note_id")),
        call("archive", {"note_id": "N1"}, "write", note_id=picked(0, "milk")),
        call("count_notes", {}, "read"),
    ],
]  # fmt: skip
FACTS: list[list[Any]] = [["trip", "N4"], [6]]


async def gold_run(turns: list[list[GoldCall]] | None = None) -> GoldRun:
    """The gold run, with the results put into its calls."""
    first = GoldRun(turns or TURNS, session())
    await first.play(STATE)
    assert len(first.ran.states) == len(turns or TURNS), first.ran.calls
    results, index, filled = first.ran.results, 0, []
    for calls in turns or TURNS:
        filled.append([c.model_copy(update={"result": results[index + n]}) for n, c in enumerate(calls)])
        index += len(calls)
    gold = GoldRun(filled, session())
    await gold.play(STATE)
    return gold


async def jury() -> CheckPanel:
    """The derived checks of the task, ready to judge."""
    gold = await gold_run()
    masks, _ = await find_nondeterminism_mask(gold, session())
    forms = forms_of(gold, masks)
    return CheckPanel(gold, masks, build_checks(forms, FACTS, SPEC.rules, gold.ran.calls), FACTS)


def forms_of(gold: GoldRun, masks: NondeterminismMask) -> list[NormalizedState]:
    return [normalize_state(gold.initial, state, masks) for state in gold.ran.states]


async def make_task() -> Task:
    """The whole as a task."""
    judge = await jury()
    gold = judge.gold
    opened = session()
    await opened.reset(STATE)
    turns, start = [], 0
    for number, calls in enumerate(TURNS):
        made = gold.calls[start : start + len(calls)]
        for step in made:
            await opened.call(step.tool, step.arguments)
        turns.append(
            Turn(
                intent="x", query=f"request {number}", known=(), gold_calls=tuple(made),
                state_hash=await opened.state_hash(), form_hash=judge.forms[number].hash,
                answer_facts=tuple(FACTS[number]), checks=judge.checks[number],
            )
        )  # fmt: skip
        start += len(calls)
    await opened.reset(STATE)
    return Task(
        grounded_id="g", environments=("desk",), initial_state=await opened.state_hash(), scenario="", policy="",
        persona=Persona(name="Ida", role="user", style="brisk"), mode="conversation", difficulty=0.1, seed=1,
        exposed_tools=tuple(t.name for t in SPEC.tools), language="scripted", turns=tuple(turns), masks=judge.masks,
    )  # fmt: skip


Said = tuple[str, list[tuple[str, JsonObject]]]
"""Words of the agent, and the calls of that message."""


class Script:
    """An agent and a user that say what is written down."""

    name = "script"

    def __init__(self, task: Task, turns: list[list[Said]]) -> None:
        self.prompts: dict[str, str] = {}
        self.queries = [turn.query for turn in task.turns]
        self.lines = [said for turn in turns for said in turn]
        self.made = 0

    async def act(self, messages: list[Message]) -> AgentAct:
        text, calls = self.lines.pop(0)
        made = []
        for name, arguments in calls:
            self.made += 1
            made.append(ToolCall(id=f"call_{self.made}", function=FunctionCall(name=name, arguments=arguments)))
        return AgentAct(Message(role="assistant", content=text, tool_calls=tuple(made) or None))

    def observe(self, tools: Sequence[str], results: Sequence[Any], by_user: bool) -> None:
        """What comes back is not looked at."""

    async def open(self, turn: int) -> str:
        return self.queries[turn]

    async def reply(self, messages: list[Message], act: AgentAct) -> UserAct:
        return UserAct(text="Yes, please.") if act.message.content.endswith("?") else UserAct(done=True)

    async def report(self, messages: list[Message], results: Sequence[Any]) -> str:
        return ""


async def played(task: Task, turns: list[list[Said]], candidate: int = 0) -> Trajectory:
    """What an agent that says and does this leaves behind."""
    script = Script(task, turns)
    return await Dialogue(SPEC, task, STATE, session(), script, script, PlaySettings(), candidate).play()


def gold_lines(answers: tuple[str, str] = ("There is trip now, N4.", "There are 6 notes.")) -> list[list[Said]]:
    """The gold run, call by call, with a word before the first."""
    lines: list[list[Said]] = []
    for calls, answer in zip(TURNS, answers, strict=True):
        said = [("Let me see." if n == 0 else "", [(c.tool, c.arguments)]) for n, c in enumerate(calls)]
        lines.append([*said, (answer, [])])
    return lines
