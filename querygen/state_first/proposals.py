"""States and goals that a model proposes (EnvScaler 4.1, AWM 3.2): records and a change; code validates and inserts.

The model sees example rows, tools and rules; nothing that it says is taken on trust. A proposal that does not fit the
state is a counted reason, told to the model with what is wrong as long as it may try again.
"""

import random
from collections.abc import Sequence
from typing import Any

import orjson
from pydantic import BaseModel, ConfigDict, Field

from trajsmith.environments import Session, compile_schema
from trajsmith.grounding import Grounder, make_rewindable
from trajsmith.models import ChatModel, ChatRequest
from trajsmith.models.prompts import Prompts, PromptSpec
from trajsmith.models.structured import complete_structured
from trajsmith.querygen.state_first.goals import StateGoal
from trajsmith.records import (
    Chain,
    EnvironmentFault,
    EnvironmentSpec,
    JsonObject,
    JsonValue,
    RecordDropped,
    derive_seed,
    truncate_text,
)

MOST_RECORDS = 6
EXAMPLES = 2
"""Rows shown of each table."""
MOST_ROWS_LENGTH = 8000
"""Characters shown of the state."""
PROPOSE = PromptSpec(
    "querygen/propose_state",
    {
        "description": "A shop.",
        "policy": "Be kind.",
        "tools": ["cancel_order: Cancel an order."],
        "rows": '{"orders": {"O1": {"status": "open"}}}',
        "counts": {"orders": 20},
        "clock": "2026-03-03T09:00:00",
        "most": MOST_RECORDS,
        "about": "cancel_order: Cancel an order.",
        "earlier": [{"proposal": "{}", "fault": "O1 is there already"}],
    },
)


class ProposedRecord(BaseModel):
    """A row that is to be in the state from the start."""

    model_config = ConfigDict(extra="forbid")

    table: str
    key: str = Field(min_length=1, max_length=60)
    fields: dict[str, JsonValue]


class ProposedChange(BaseModel):
    """Change that somebody wants: a row gets values, or a row is added."""

    model_config = ConfigDict(extra="forbid")

    table: str
    key: str = ""
    """The row that is meant; empty for one that is to be added."""
    fields: dict[str, JsonValue] = Field(min_length=1)


class StateProposal(BaseModel):
    """Reply schema of the prompt."""

    model_config = ConfigDict(extra="forbid")

    records: list[ProposedRecord] = Field(max_length=MOST_RECORDS)
    change: ProposedChange


class StateProposer:
    """Asks a model for a state and a goal of one task."""

    def __init__(self, model: ChatModel, spec: EnvironmentSpec, prompts: Prompts) -> None:
        self.model = model
        self.spec = spec
        self.prompts = prompts

    async def propose(
        self, chain: Chain, state: JsonObject, earlier: Sequence[tuple[StateProposal, str]]
    ) -> StateProposal:
        """Ask for one proposal, about what a tool does that the chain's seed draws.

        Args:
            chain: The chain that it is for.
            state: The state to which records are added.
            earlier: Proposals that did not fit, with what was wrong.

        Raises:
            ModelFault: The model gives no usable answer.
        """
        rng = random.Random(derive_seed(chain.seed, "proposal"))
        tables = {name: rows for name, rows in state.items() if isinstance(rows, dict) and rows}
        rows: JsonObject = {
            name: dict(rng.sample(list(content.items()), min(EXAMPLES, len(content))))
            for name, content in tables.items()
        }
        rows |= {name: value for name, value in state.items() if isinstance(value, str | int | float)}
        tools = {
            tool.name: f"{tool.name}: {next(iter(tool.description.strip().splitlines()), '')}"
            for tool in self.spec.tools
            if tool.actor == "assistant"
        }
        writes = [tool.name for tool in self.spec.tools if tool.name in tools and tool.declares_write]
        messages = self.prompts.get(PROPOSE).messages(
            description=self.spec.description,
            policy=self.spec.policy,
            tools=list(tools.values()),
            about=tools[rng.choice(writes)] if writes else "",
            rows=truncate_text(orjson.dumps(rows).decode(), MOST_ROWS_LENGTH),
            counts={name: len(content) for name, content in tables.items()},
            clock=str(state.get("now", "")),
            most=MOST_RECORDS,
            earlier=[{"proposal": proposal.model_dump_json(), "fault": fault} for proposal, fault in earlier],
        )
        request = ChatRequest(messages=messages, purpose="propose_state", record=chain.id)
        return await complete_structured(self.model, request, StateProposal)


def insert_records(records: Sequence[ProposedRecord], state: JsonObject) -> JsonObject:
    """Return the state with proposed records.

    Raises:
        RecordDropped: A record does not fit the table that it is for; the reason says how.
    """
    tables: dict[str, Any] = {name: dict(rows) for name, rows in state.items() if isinstance(rows, dict)}
    for record in records:
        rows = tables.get(record.table)
        if not rows or not all(isinstance(row, dict) for row in rows.values()):
            raise RecordDropped("proposal_unknown_table", f"there is no table {record.table!r} with rows")
        if record.key in rows:
            raise RecordDropped("proposal_taken_key", f"{record.table} has a row {record.key!r} already")
        example = next(iter(rows.values()))
        wrong = sorted(example.keys() ^ record.fields.keys())
        if wrong:
            raise RecordDropped("proposal_wrong_fields", f"rows of {record.table} have the fields {', '.join(example)}")
        own = [name for name in example if all(row.get(name) == key for key, row in rows.items())]
        if any(record.fields[name] != record.key for name in own):
            raise RecordDropped("proposal_wrong_fields", f"{own[0]} of a row of {record.table} is its key")
        rows[record.key] = dict(record.fields)
    for record in records:
        for name, table in find_reference_fields(record.table, state).items():
            value = record.fields[name]
            if value is not None and value not in tables[table]:
                fault = f"{name} of {record.table} {record.key!r} must be a key of {table}"
                raise RecordDropped("proposal_broken_reference", fault)
    return {**state, **tables}


def find_reference_fields(table: str, state: JsonObject) -> dict[str, str]:
    """Return the fields of a table that hold keys of another in every row that has a value there."""
    rows: Any = state[table]
    tables = {name: part for name, part in state.items() if isinstance(part, dict) and part and name != table}
    references: dict[str, str] = {}
    for name in next(iter(rows.values())):
        values = [row.get(name) for row in rows.values() if row.get(name) is not None]
        if values and all(isinstance(value, str) for value in values):
            target = next((other for other, part in tables.items() if all(value in part for value in values)), None)
            if target is not None:
                references[name] = target
    return references


async def validate_proposal(
    proposal: StateProposal, grounder: Grounder, session: Session
) -> tuple[JsonObject, StateGoal]:
    """Return the state with the proposed records, and the goal.

    Raises:
        RecordDropped: The proposal does not fit; the reason says how.
    """
    state, change = insert_records(proposal.records, grounder.state), proposal.change
    schema = grounder.spec.state_schema
    error = next(compile_schema(schema).iter_errors(state), None) if schema else None
    if error is not None:
        where = ".".join(map(str, error.absolute_path))
        raise RecordDropped("proposal_invalid_state", f"{where}: {error.message[:200]}")
    try:
        await make_rewindable(session).reset(state)
        started = await session.snapshot()
    except EnvironmentFault as fault:
        raise RecordDropped("proposal_invalid_state", str(fault)[:200]) from fault
    rows: Any = started.get(change.table)
    if not isinstance(rows, dict) or not rows:
        raise RecordDropped("proposal_unknown_table", f"there is no table {change.table!r} with rows")
    if change.key and change.key not in rows:
        raise RecordDropped("proposal_unknown_row", f"{change.table} has no row {change.key!r}")
    known = rows[change.key] if change.key else next(iter(rows.values()))
    unknown = sorted(change.fields.keys() - known.keys())
    if unknown:
        raise RecordDropped("proposal_wrong_fields", f"rows of {change.table} have no field {unknown[0]}")
    goal = StateGoal(table=change.table, key=change.key, fields=change.fields)
    if goal.holds(started, started):
        raise RecordDropped("proposal_met_already", "the change is there before anything is done")
    return state, goal
