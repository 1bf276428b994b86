"""Asking models for parts of an environment: JSON that is validated, or code that parses; wrong answers go back."""

import ast
import asyncio
import re
from collections.abc import Callable
from typing import TypeVar

from pydantic import BaseModel

from chatmodel import ChatModel, ChatRequest
from chatmodel.prompts import Prompts, PromptSpec
from chatmodel.structured import ROUNDS, ask, read_answer
from envgen.generate.tidying import Untidy, formatted
from envgen.synthesis.records import Provenance
from envgen.synthesis.settings import STAGES, StageRole
from trajectory import JsonObject, JsonValue, Message, ModelFault, content_hash

Answer = TypeVar("Answer", bound=BaseModel)
Check = Callable[[Answer], str]
"""What is wrong with a valid answer, in one sentence; empty if nothing is."""
_BLOCK = re.compile(r"```(?:python|py)[^\n]*\n(.*?)```", re.DOTALL)


class Asked(BaseModel):
    """A request as it stands before it is sent, and where its answer comes from."""

    request: ChatRequest
    provenance: Provenance


class Desk:
    """The models of all roles, and the prompts.

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
        """A valid answer in JSON.

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
            found = await ask(model, request, kind)
            fault = check(found) if check else ""
            if not fault:
                return found, asked.provenance
            request = _sent_back(request, found.model_dump_json(), f"{fault} Give the whole answer again.")
        raise ModelFault("bad_reply", model.name, f"{stage}: {fault}", found.model_dump_json())

    async def code(
        self, stage: str, theme: str, check: Callable[[str], str], **values: JsonValue
    ) -> tuple[str, Provenance]:
        """Python from a fenced block, which `check` finds nothing wrong with.

        Raises:
            ModelFault: No usable answer.
        """
        asked = self._asked(stage, theme, values)
        model = self._models[STAGES[stage]]
        request = asked.request
        for _ in range(ROUNDS + 1):
            reply = (await model.complete(request)).message.content
            code = block(reply)
            fault = "there is no block of Python in it."
            if code is not None:
                fault = await asyncio.to_thread(unusable, code) or check(code)
                if not fault:
                    return code, asked.provenance
            request = _sent_back(request, reply, f"{fault} Give the whole block again, fenced by ```python and ```.")
        raise ModelFault("bad_reply", model.name, f"{stage}: {fault}", reply)

    async def both(
        self,
        stage: str,
        theme: str,
        kind: type[Answer],
        check: Callable[[Answer, str | None], str],
        **values: JsonValue,
    ) -> tuple[Answer, str | None, Provenance]:
        """JSON and, if there is one, a block of Python beside it.

        Raises:
            ModelFault: No usable answer.
        """
        asked = self._asked(stage, theme, values)
        model = self._models[STAGES[stage]]
        request = asked.request
        for _ in range(ROUNDS + 1):
            reply = (await model.complete(request)).message.content
            code = block(reply)
            fault = await asyncio.to_thread(unusable, code) if code is not None else ""
            try:
                found = read_answer(_BLOCK.sub("", reply), kind)
                fault = fault or check(found, code)
                if not fault:
                    return found, code, asked.provenance
            except ValueError as error:
                fault = f"the JSON cannot be used: {' '.join(str(error).split())[:300]}."
            request = _sent_back(request, reply, f"{fault} Give the whole answer again.")
        raise ModelFault("bad_reply", model.name, f"{stage}: {fault}", reply)

    def _asked(self, stage: str, theme: str, values: JsonObject) -> Asked:
        prompt = self._prompts.get(self._specs[stage])
        messages = prompt.messages(**values)
        request = ChatRequest(messages=messages, purpose=f"{STAGES[stage]}.{stage}", record=theme)
        said = content_hash([message.model_dump(mode="json") for message in messages], 16)
        model = self._models[STAGES[stage]].name
        return Asked(
            request=request,
            provenance=Provenance(prompt=f"{prompt.name}@{prompt.version}", model=model, request=said),
        )


def block(reply: str) -> str | None:
    """The Python of a reply: its longest fenced block."""
    found = _BLOCK.findall(reply)
    return max(found, key=len).strip() + "\n" if found else None


def unusable(code: str) -> str:
    """Why a text cannot become part of an environment's file; empty if it can."""
    fault = unparsable(code)
    if fault:
        return fault
    try:
        formatted(code)
    except Untidy as error:
        return f"this Python cannot be formatted: {error}."
    return ""


def unparsable(code: str) -> str:
    """Why a text is no Python; empty if it is."""
    try:
        ast.parse(code)
    except (SyntaxError, ValueError) as error:
        where = f" in line {error.lineno}" if isinstance(error, SyntaxError) else ""
        return f"this is no valid Python: {error}{where}."
    except (RecursionError, MemoryError):
        return "this Python nests too deeply."
    return ""


def _sent_back(request: ChatRequest, reply: str, fault: str) -> ChatRequest:
    said = Message(role="assistant", content=reply)
    mend = Message(role="user", content=f"That answer cannot be used: {fault}")
    return request.model_copy(update={"messages": (*request.messages, said, mend)})
