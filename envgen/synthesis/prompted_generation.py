"""Prompt models for parts of an environment: validated JSON or parsed code; faults are sent back."""

import ast
import asyncio
import re
from collections.abc import Callable
from typing import TypeVar

from pydantic import BaseModel

from trajsmith.envgen.generate.formatting import FormattingError, format_code
from trajsmith.envgen.synthesis.records import Provenance
from trajsmith.envgen.synthesis.settings import STAGES, StageRole
from trajsmith.models import ChatModel, ChatRequest
from trajsmith.models.prompts import Prompts, PromptSpec
from trajsmith.models.structured import ROUNDS, complete_structured, parse_answer
from trajsmith.records import JsonObject, JsonValue, Message, ModelFault, content_hash, to_one_line

Answer = TypeVar("Answer", bound=BaseModel)
Check = Callable[[Answer], str]
"""What is wrong with a valid answer, in one sentence; empty if nothing is."""
_BLOCK = re.compile(r"```(?:python|py)[^\n]*\n(.*?)```", re.DOTALL)


class PreparedRequest(BaseModel):
    """Prepared request with the provenance of its answer."""

    request: ChatRequest
    provenance: Provenance


class PromptedGenerator:
    """Prompted generation: the models of all roles, and the prompts.

    Args:
        models: Who plays which role.
        specs: The prompts, by stage.
    """

    def __init__(self, models: dict[StageRole, ChatModel], prompts: Prompts, specs: dict[str, PromptSpec]) -> None:
        self._models = models
        self._prompts = prompts
        self._specs = specs

    async def answer(
        self,
        stage: str,
        theme: str,
        kind: type[Answer],
        check: Callable[[Answer], str] | None = None,
        **values: JsonValue,
    ) -> tuple[Answer, Provenance]:
        """Request and validate an answer in JSON.

        Args:
            stage: A key of STAGES.
            theme: Id that the usage is counted under.
            check: What else must hold; a fault goes back to the model, as one of the JSON does.

        Raises:
            ModelFault: No usable answer; the kind says why.
        """
        asked = self._asked(stage, theme, values)
        model = self._models[STAGES[stage]]
        request = asked.request
        for _ in range(ROUNDS + 1):
            parsed = await complete_structured(model, request, kind)
            fault = check(parsed) if check else ""
            if not fault:
                return parsed, asked.provenance
            request = _append_fault(request, parsed.model_dump_json(), f"{fault} Give the whole answer again.")
        raise ModelFault("bad_reply", model.name, f"{stage}: {fault}", parsed.model_dump_json())

    async def code(
        self, stage: str, theme: str, check: Callable[[str], str], **values: JsonValue
    ) -> tuple[str, Provenance]:
        """Request Python in a fenced block that passes `check`.

        Raises:
            ModelFault: No usable answer.
        """
        asked = self._asked(stage, theme, values)
        model = self._models[STAGES[stage]]
        request = asked.request
        for _ in range(ROUNDS + 1):
            reply = (await model.complete(request)).message.content
            code = find_code_block(reply)
            fault = "there is no block of Python in it."
            if code is not None:
                fault = await asyncio.to_thread(find_code_fault, code) or check(code)
                if not fault:
                    return code, asked.provenance
            request = _append_fault(request, reply, f"{fault} Give the whole block again, fenced by ```python and ```.")
        raise ModelFault("bad_reply", model.name, f"{stage}: {fault}", reply)

    async def generate_with_code(
        self,
        stage: str,
        theme: str,
        kind: type[Answer],
        check: Callable[[Answer, str | None], str],
        **values: JsonValue,
    ) -> tuple[Answer, str | None, Provenance]:
        """Request JSON and, optionally, a block of Python beside it.

        Raises:
            ModelFault: No usable answer.
        """
        asked = self._asked(stage, theme, values)
        model = self._models[STAGES[stage]]
        request = asked.request
        for _ in range(ROUNDS + 1):
            reply = (await model.complete(request)).message.content
            code = find_code_block(reply)
            fault = await asyncio.to_thread(find_code_fault, code) if code is not None else ""
            try:
                parsed = parse_answer(_BLOCK.sub("", reply), kind)
                fault = fault or check(parsed, code)
                if not fault:
                    return parsed, code, asked.provenance
            except ValueError as error:
                fault = f"the JSON cannot be used: {' '.join(str(error).split())[:300]}."
            request = _append_fault(request, reply, f"{fault} Give the whole answer again.")
        raise ModelFault("bad_reply", model.name, f"{stage}: {fault}", reply)

    def _asked(self, stage: str, theme: str, values: JsonObject) -> PreparedRequest:
        prompt = self._prompts.get(self._specs[stage])
        messages = prompt.messages(**values)
        request = ChatRequest(messages=messages, purpose=f"{STAGES[stage]}.{stage}", record=theme)
        prompt_hash = content_hash([message.model_dump(mode="json") for message in messages], 16)
        model = self._models[STAGES[stage]].name
        return PreparedRequest(
            request=request,
            provenance=Provenance(prompt=f"{prompt.name}@{prompt.version}", model=model, request=prompt_hash),
        )


def find_code_block(reply: str) -> str | None:
    """Return the longest fenced Python block of a reply."""
    blocks = _BLOCK.findall(reply)
    return max(blocks, key=len).strip() + "\n" if blocks else None


def find_code_fault(code: str) -> str:
    """Return the reason why a text cannot become part of an environment's file; empty if it can."""
    fault = find_syntax_fault(code)
    if fault:
        return fault
    try:
        format_code(code)
    except FormattingError as error:
        return f"this Python cannot be formatted: {error}."
    return ""


def find_syntax_fault(code: str) -> str:
    """Return the syntax error of a text; empty if it parses."""
    try:
        ast.parse(code)
    except (SyntaxError, ValueError) as error:
        where = f" in line {error.lineno}" if isinstance(error, SyntaxError) else ""
        return f"this is no valid Python: {error}{where}."
    except (RecursionError, MemoryError):
        return "this Python nests too deeply."
    return ""


def _append_fault(request: ChatRequest, reply: str, fault: str) -> ChatRequest:
    previous = Message(role="assistant", content=reply)
    mend = Message(role="user", content=f"That answer cannot be used: {to_one_line(fault)}")
    return request.model_copy(update={"messages": (*request.messages, previous, mend)})
