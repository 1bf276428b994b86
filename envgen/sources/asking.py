"""A model in place of words: which requests need a state, and of which environment each is (EnvScaler 3.1)."""

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from pydantic import Field

from chatmodel.model import ChatModel, ChatRequest
from chatmodel.prompts import Prompts, PromptSpec
from chatmodel.structured import ask
from envgen.generate.blueprint import LeftOut
from envgen.sources import Source
from envgen.sources.licences import licence_in
from envgen.sources.reading import Reading
from envgen.sources.requests import read_requests
from envgen.sources.task_sets import FEWEST, shown, without_repeats
from grounding.names import words
from trajectory import Frozen, InputError, ModelFault

STATEFUL = PromptSpec(
    "envgen.sources/stateful", {"labels": ["library loans"], "requests": ["Renew my loan of two books."]}
)
BATCH = 20
"""Requests of one question."""
LONGEST = 600
"""Letters of a request that are shown."""
LABELS = 60
"""Names that are shown as being in use, the commonest."""


class Opinion(Frozen):
    """What the model says of one request."""

    number: int
    stateful: bool
    environment: str = Field(max_length=60)
    summary: str = Field(max_length=400)
    reason: str = Field(max_length=300)


class Opinions(Frozen):
    """The model's answer to one batch."""

    requests: tuple[Opinion, ...]


async def read_task_set_by(
    model: ChatModel, prompts: Prompts, path: Path, fewest: int = FEWEST, batch: int = BATCH
) -> Reading:
    """The themes of a file of requests as a model sees them; repetitions are dropped before it is asked.

    A batch without a usable answer is left out under its own reason: nothing is known of its requests.

    Raises:
        InputError: The file cannot be used, or no request needs a state.
        ModelFault: The model cannot be reached.
    """
    texts, left_out = read_requests(path)
    read = len(texts) + len(left_out)
    texts = without_repeats(texts, left_out)
    themes: dict[tuple[str, ...], list[tuple[str, Opinion]]] = defaultdict(list)
    for start in range(0, len(texts), batch):
        some = texts[start : start + batch]
        labels = sorted(themes, key=lambda key: -len(themes[key]))[:LABELS]
        said = await _asked(model, prompts, some, [themes[key][0][1].environment for key in labels])
        for number, text in enumerate(some, 1):
            opinion = said.get(number)
            if opinion is None:
                left_out.append(LeftOut(what=shown(text), reason="no usable answer of the model"))
            elif not opinion.stateful or not words(opinion.environment):
                left_out.append(LeftOut(what=shown(text), reason=f"the model sees no state: {opinion.reason}"))
            else:
                themes[words(opinion.environment)].append((text, opinion))
    sources = _sources(themes, fewest, path, left_out)
    if not sources:
        raise InputError(f"{path}: the model sees no theme of {fewest} requests that need a state")
    return Reading(sources=tuple(sources), left_out=tuple(left_out), read=read)


async def _asked(model: ChatModel, prompts: Prompts, texts: Sequence[str], labels: Sequence[str]) -> dict[int, Opinion]:
    messages = prompts.get(STATEFUL).messages(labels=list(labels), requests=[text[:LONGEST] for text in texts])
    try:
        reply = await ask(model, ChatRequest(messages=messages, temperature=0.0, purpose="envgen.stateful"), Opinions)
    except ModelFault as fault:
        if fault.kind != "bad_reply":
            raise
        return {}
    return {one.number: one for one in reply.requests}


def _sources(
    themes: dict[tuple[str, ...], list[tuple[str, Opinion]]], fewest: int, path: Path, left_out: list[LeftOut]
) -> list[Source]:
    found, licence = list[Source](), licence_in(path.parent)
    for members in sorted(themes.values(), key=lambda members: (-len(members), members[0][1].environment)):
        first = members[0][1]
        if len(members) < fewest:
            reason = f"its theme has fewer than {fewest} requests"
            left_out += [LeftOut(what=shown(text), reason=reason) for text, _ in members]
            continue
        found.append(
            Source(
                kind="tasks", name=first.environment.strip(), summary=first.summary.strip(),
                requests=tuple(text for text, _ in members), origin=path.name, licence=licence,
            )
        )  # fmt: skip
    return found
