"""Programs that a model writes (Agent-World 3.1.1): question, Python text and answer, with execution feedback.

The text runs in the sandbox; each call that it asks for is made in the environment. What goes wrong is told to the
model, with the calls so far and their results; what is still wrong after the last attempt is a counted reason. Nothing
that the model says is taken on trust: the answer is the one that the program comes to.
"""

import random
from collections.abc import Sequence
from typing import Any

import orjson
from pydantic import BaseModel, ConfigDict, Field

from trajsmith.environments import Session
from trajsmith.grounding import Grounder, iterate_leaves
from trajsmith.models import ChatModel, ChatRequest
from trajsmith.models.prompts import Prompts, PromptSpec
from trajsmith.models.structured import complete_structured
from trajsmith.phrasing import format_value, humanize, is_value_mentioned, join_words
from trajsmith.querygen.programs.composition import ProgramSettings
from trajsmith.querygen.programs.execution import DECIMALS, ProgramRun, ProgramRunner, get_rows, is_number
from trajsmith.querygen.programs.source_text import list_literals
from trajsmith.querygen.programs.written_execution import ProgramLimits, SourceRunner, prove_dependence, render_calls
from trajsmith.querygen.query_gates import build_tool_patterns, find_leaked_value, find_tool_mention
from trajsmith.records import (
    Chain,
    EnvironmentSpec,
    FromUser,
    FrozenModel,
    GoldCall,
    GroundedChain,
    JsonObject,
    JsonValue,
    RecordDropped,
    UserFact,
    derive_seed,
    truncate_text,
)

SLOT = "{answer}"
EXAMPLES = 2
"""Rows shown of each table."""
MOST_ROWS_LENGTH = 6000
"""Characters shown of the state."""
LONGEST_SOURCE = 20_000
MOST_OTHERS = 40
"""Labels of other rows that an answer must not tell."""
WRITE_PROGRAM = PromptSpec(
    "querygen/write_program",
    {
        "description": "A shop.",
        "policy": "Be kind.",
        "tools": ["list_orders(status): List orders."],
        "rows": '{"orders": {"O1": {"status": "open"}}}',
        "clock": "2026-03-03T09:00:00",
        "least": 2,
        "most": 14,
        "earlier": [{"draft": "{}", "fault": "solve raises KeyError", "calls": "list_orders() -> []"}],
    },
)


class UserValue(BaseModel):
    """Value that the person says."""

    model_config = ConfigDict(extra="forbid")

    value: JsonValue
    words: str = Field(min_length=1)


class ProgramDraft(BaseModel):
    """Reply schema of the prompt."""

    model_config = ConfigDict(extra="forbid")

    question: str = Field(min_length=1, max_length=1500)
    python: str = Field(min_length=1, max_length=LONGEST_SOURCE)
    user_values: list[UserValue]
    answer: str
    ordered: bool = False


class WrittenProgram(FrozenModel):
    """A program of a model with what its gold run came to; stored with the grounded calls."""

    question: str
    python: str
    sentence: str
    """Sentence that tells the answer, with `{answer}` in its place."""
    ordered: bool
    answer: JsonValue = None
    others: tuple[str, ...] = ()
    """Labels of rows that are not meant."""
    groups: tuple[int, ...] = ()
    model: str
    prompts: dict[str, str] = {}

    @property
    def sentences(self) -> tuple[str, ...]:
        """Sentences that tell the answer."""
        return (fill_sentence(self.sentence, self.answer),)


def load_written(grounded: GroundedChain) -> WrittenProgram | None:
    """Read the program of a grounded chain if a model wrote it; None for a composed one."""
    content: Any = grounded.program or {}
    return WrittenProgram.model_validate(content["written"]) if "written" in content else None


def fill_sentence(sentence: str, answer: JsonValue) -> str:
    """Put an answer into the sentence that tells it."""
    values = answer if isinstance(answer, list) else [answer]
    return sentence.replace(SLOT, join_words(format_value(value) for value in values))


class ProgramWriter:
    """Asks a model for a question and its program, again with what was wrong."""

    def __init__(self, model: ChatModel, spec: EnvironmentSpec, prompts: Prompts) -> None:
        self.model = model
        self.spec = spec
        self.prompt = prompts.get(WRITE_PROGRAM)

    async def write(
        self, chain: Chain, state: JsonObject, calls: tuple[int, int], earlier: Sequence[tuple[ProgramDraft, str, str]]
    ) -> ProgramDraft:
        """Ask for one program.

        Args:
            chain: The chain that it is for.
            state: The initial state.
            calls: Fewest and most calls.
            earlier: Attempts with what was wrong, and the calls that they made.

        Raises:
            ModelFault: The model gives no usable answer.
        """
        rng = random.Random(derive_seed(chain.seed, "program rows"))
        rows: JsonObject = {
            name: dict(rng.sample(list(part.items()), min(EXAMPLES, len(part))))
            for name, part in state.items()
            if isinstance(part, dict) and part
        }
        messages = self.prompt.messages(
            description=self.spec.description,
            policy=self.spec.policy,
            tools=[_describe_tool(tool.as_function()) for tool in self.spec.tools if tool.actor == "assistant"],
            rows=truncate_text(orjson.dumps(rows).decode(), MOST_ROWS_LENGTH),
            clock=str(state.get("now", "")),
            least=calls[0],
            most=calls[1],
            earlier=[
                {"draft": draft.model_dump_json(), "fault": fault, "calls": calls_text}
                for draft, fault, calls_text in earlier
            ],
        )
        request = ChatRequest(messages=messages, purpose="write_program", record=chain.id)
        return await complete_structured(self.model, request, ProgramDraft)


def _describe_tool(function: JsonObject) -> str:
    body: Any = function["function"]
    parameters = orjson.dumps(body["parameters"].get("properties", {})).decode()
    return f"{body['name']}: {' '.join(body['description'].split())} {parameters}"


async def ground_written_program(
    chain: Chain,
    writer: ProgramWriter,
    grounder: Grounder,
    session: Session,
    settings: ProgramSettings,
    limits: ProgramLimits,
) -> GroundedChain:
    """Let a model write a program on the chain's state, and run it.

    Args:
        chain: Names environment, state and seed; it has no tools.
        writer: Asks the model.
        grounder: Grounder of the chain's state.
        session: A session of the environment.
        settings: Calls of a program, and how often it may be repaired.
        limits: Limits of the sandbox.

    Raises:
        RecordDropped: The last attempt fails, too; the reason says how.
        ModelFault: The model gives no usable answer.
        EnvironmentFault: The environment broke.
    """
    settings = settings.for_source(chain.source)
    earlier, drop = list[tuple[ProgramDraft, str, str]](), RecordDropped("program_no_function")
    for _ in range(settings.repairs + 1):
        draft = await writer.write(chain, grounder.state, settings.calls, earlier)
        runner = SourceRunner(grounder.spec, session, grounder.state, limits, settings.calls[1])
        try:
            return await _ground_draft(chain, draft, writer, runner, grounder, settings)
        except RecordDropped as fault:
            drop = fault
            earlier.append((draft, f"{fault.reason}: {fault.detail}", render_calls(runner.calls)))
    raise drop


async def _ground_draft(
    chain: Chain,
    draft: ProgramDraft,
    writer: ProgramWriter,
    runner: SourceRunner,
    grounder: Grounder,
    settings: ProgramSettings,
) -> GroundedChain:
    question = " ".join(draft.question.split())
    values = _check_words(draft, question, grounder.spec)
    run = await runner.run(draft.python, {f"said.{number}": each.value for number, each in enumerate(values)})
    answer = check_answer(run.answer)
    _check_run(draft, run, answer, settings)
    writes = [tool.name for tool in grounder.spec.tools if tool.declares_write]
    if not run.writes and any(name in list_literals(draft.python) for name in writes):
        raise RecordDropped("program_idle_write", "it changes nothing: on this data no row is meant, or no branch")
    again = ProgramRunner(runner.session, grounder.state)
    hashes = await again.replay_states(run.calls)
    if hashes is None:
        raise RecordDropped("gold_not_repeatable", "a call of the program is refused when it is made again")
    await prove_dependence(draft.python, run, runner.limits)
    known = _list_facts(values, run.calls)
    leak = find_leaked_value(question, run.calls, known)
    if leak is not None:
        raise RecordDropped(leak.reason, leak.says)
    written = WrittenProgram(
        question=question, python=draft.python, sentence=draft.answer, ordered=draft.ordered, answer=answer,
        others=list_other_labels(answer, run.calls), groups=tuple(run.groups), model=writer.model.name,
        prompts={writer.prompt.name: writer.prompt.version},
    )  # fmt: skip
    return GroundedChain(
        chain_id=chain.id, environment=chain.environment, initial_state=chain.state, calls=tuple(run.calls),
        states=tuple(hashes), known=tuple(known), attempts=len(run.calls), seed=chain.seed, source=chain.source,
        program={"written": written.model_dump(mode="json")},
    )  # fmt: skip


def _check_words(draft: ProgramDraft, question: str, spec: EnvironmentSpec) -> list[UserValue]:
    """Return what the person says, each with words that stand in the question and tell the value.

    Raises:
        RecordDropped: The question names a tool, or a value is not in its words.
    """
    mention = find_tool_mention(question, build_tool_patterns(spec))
    if mention is not None:
        raise RecordDropped(mention.reason, mention.says)
    choices = [
        choice
        for tool in spec.tools
        for schema in tool.parameters.values()
        for choice in (*schema.get("enum", ()), *schema.get("items", {}).get("enum", ()))
    ]
    for each in draft.user_values:
        names_value = (
            each.value in choices or isinstance(each.value, bool) or is_value_mentioned(each.words, each.value)
        )
        if " ".join(each.words.split()) not in question or not names_value:
            raise RecordDropped("program_words_not_said", f"{each.words!r} in the question does not say {each.value!r}")
    return draft.user_values


def check_answer(answer: JsonValue) -> JsonValue:
    """Return an answer that can be verified: a number, a text, a list of different texts, or None.

    Raises:
        RecordDropped: It is none of them.
    """
    if answer is None or (isinstance(answer, str) and answer.strip()):
        return answer
    if is_number(answer) and isinstance(answer, int | float):
        if answer == round(answer, DECIMALS) and abs(answer) < 10**12:  # not for NaN and infinity
            return answer
        raise RecordDropped("program_wrong_answer", f"the number {answer!r} is not rounded to {DECIMALS} decimals")
    if isinstance(answer, list) and answer and all(isinstance(each, str) and each.strip() for each in answer):
        if len(set(map(str, answer))) == len(answer):
            return answer
        raise RecordDropped("program_wrong_answer", "a text stands twice in the list")
    shown = truncate_text(repr(answer), 100)
    raise RecordDropped("program_wrong_answer", f"{shown} is no number, text, list of texts or None")


def _check_run(draft: ProgramDraft, run: ProgramRun, answer: JsonValue, settings: ProgramSettings) -> None:
    if len(run.calls) < settings.calls[0]:
        raise RecordDropped("program_too_few_calls", f"{len(run.calls)} calls; {settings.calls[0]} are needed")
    if answer is None and not run.writes:
        raise RecordDropped("program_wrong_answer", "it answers nothing and changes nothing")
    if (SLOT in draft.answer) != (answer is not None):
        raise RecordDropped("program_wrong_answer", f"the sentence of the answer and {answer!r} do not fit: {SLOT}")


def _list_facts(values: Sequence[UserValue], calls: Sequence[GoldCall]) -> list[UserFact]:
    """List what the user says of the arguments, named by the parameters that take it."""
    facts: dict[str, UserFact] = {}
    for call in calls:
        for path, source, _ in iterate_leaves(call):
            if isinstance(source, FromUser) and source.known not in facts:
                each = values[int(source.known.partition(".")[2])]
                name = path.rsplit(".", 1)[-1].split("[")[0]
                facts[source.known] = UserFact(
                    key=source.known, label=humanize(name), value=each.value, said=each.words, slot=name
                )
    return list(facts.values())


def list_other_labels(answer: JsonValue, calls: Sequence[GoldCall]) -> tuple[str, ...]:
    """List the texts of other rows in the field that holds the answer's, of the first list that has them all."""
    wanted = answer if isinstance(answer, list) else [answer]
    if not all(isinstance(each, str) for each in wanted):
        return ()
    for call in calls:
        rows = get_rows(call.result)
        for field in rows[0] if rows else ():
            labels = [row.get(field) for row in rows]
            if all(each in labels for each in wanted):
                others = dict.fromkeys(str(label) for label in labels if label not in wanted and label)
                return tuple(others)[:MOST_OTHERS]
    return ()
