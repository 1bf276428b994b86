"""A model writes the checklist of a task and a function for each item of it (EnvScaler 4.2)."""

from collections.abc import Sequence
from typing import TypeVar

import orjson
from pydantic import BaseModel, Field

from trajsmith.models import ChatModel, ChatRequest
from trajsmith.models.prompts import Prompts, PromptSpec
from trajsmith.models.structured import complete_structured
from trajsmith.records import EnvironmentSpec, JsonObject, JsonValue, Task, truncate_text
from trajsmith.verify.check_cases import list_gold_changes
from trajsmith.verify.check_panel import CheckPanel
from trajsmith.verify.check_source import ALLOWED_MODULES
from trajsmith.verify.written_checks import CheckDraft

Answer = TypeVar("Answer", bound=BaseModel)
MAX_ROWS_LENGTH = 6000
"""Characters shown of the data before the work."""
_SHOP: JsonObject = {
    "description": "A shop.",
    "requests": ["Please cancel my order."],
    "rows": '{"orders": {"O1": {"status": "open"}}}',
}
CHECKLIST = PromptSpec("verify/checklist", {**_SHOP, "policy": "Be kind.", "most": 6})
CHECK_FUNCTION = PromptSpec(
    "verify/check_function",
    {
        **_SHOP,
        "item": "Order O1 is cancelled.",
        "modules": "re",
        "earlier": [{"source": "def check(): ...", "fault": "it fails the right run"}],
    },
)


class ChecklistReply(BaseModel):
    """Reply schema of the checklist prompt."""

    items: list[str] = Field(min_length=1)


class CheckFunctionReply(BaseModel):
    """Reply schema of the check function prompt."""

    source: str = Field(min_length=1)


class ModelCheckWriter:
    """Asks a model for the checks of one task.

    The model sees the requests and the data before the work, never the gold calls or the gold state.
    """

    def __init__(
        self, model: ChatModel, task: Task, spec: EnvironmentSpec, panel: CheckPanel, prompts: Prompts
    ) -> None:
        """`panel` has the gold run; of it only which rows it touches is used."""
        self.model = model
        self.task = task
        self.prompts = prompts
        self.used: dict[str, str] = {}
        """Prompts sent so far: name to hash."""
        rows = orjson.dumps(select_rows(panel)).decode()
        self.shown: JsonObject = {
            "description": spec.description,
            "requests": [turn.query for turn in task.turns],
            "rows": truncate_text(rows, MAX_ROWS_LENGTH),
        }

    async def list_items(self, most: int) -> Sequence[str]:
        """Ask for the checklist."""
        reply = await self._ask("checklist", CHECKLIST, ChecklistReply, policy=self.task.policy, most=most)
        return [" ".join(item.split()) for item in reply.items if item.strip()]

    async def write(self, item: str, earlier: Sequence[CheckDraft]) -> str:
        """Ask for the function of one item."""
        drafts: list[JsonValue] = [{"source": draft.source, "fault": draft.fault.hint} for draft in earlier]
        modules = ", ".join(sorted(ALLOWED_MODULES))
        reply = await self._ask("check", CHECK_FUNCTION, CheckFunctionReply, item=item, modules=modules, earlier=drafts)
        return reply.source

    async def _ask(self, purpose: str, spec: PromptSpec, schema: type[Answer], **values: JsonValue) -> Answer:
        prompt = self.prompts.get(spec)
        self.used[prompt.name] = prompt.version
        messages = prompt.messages(**self.shown, **values)
        request = ChatRequest(messages=messages, purpose=purpose, record=self.task.id)
        return await complete_structured(self.model, request, schema)


def select_rows(panel: CheckPanel) -> JsonObject:
    """Select of the initial state one row of each table, and the rows that the gold run touches, as they were."""
    initial, touched = panel.gold.initial, dict[str, set[str]]()
    for change in list_gold_changes(panel):
        parts = change.path.split("/")[1:3]
        if len(parts) == 2:
            touched.setdefault(parts[0], set()).add(parts[1])
    rows: JsonObject = {}
    for name, part in initial.items():
        if isinstance(part, dict) and part and all(isinstance(row, dict) for row in part.values()):
            first = next(iter(part))
            rows[name] = {key: row for key, row in part.items() if key == first or key in touched.get(name, ())}
        else:
            rows[name] = part
    return dict(sorted(rows.items(), key=lambda entry: entry[0] not in touched))
