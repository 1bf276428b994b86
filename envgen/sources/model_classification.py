"""Classify requests with a model: which need a state, and of which environment (EnvScaler 3.1)."""

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from pydantic import Field

from trajsmith.envgen.generate.blueprint import SkippedItem
from trajsmith.envgen.sources import ThemeSource
from trajsmith.envgen.sources.licences import find_licence
from trajsmith.envgen.sources.read_result import SourceReadResult
from trajsmith.envgen.sources.requests import read_requests
from trajsmith.envgen.sources.task_sets import MIN_REQUESTS, drop_repeats, shorten_request
from trajsmith.grounding import split_name
from trajsmith.models import ChatModel, ChatRequest
from trajsmith.models.prompts import Prompts, PromptSpec
from trajsmith.models.structured import complete_structured
from trajsmith.records import FrozenModel, InputError, ModelFault

STATEFUL_PROMPT = PromptSpec(
    "envgen.sources/stateful", {"labels": ["library loans"], "requests": ["Renew my loan of two books."]}
)
BATCH_SIZE = 20
"""Requests of one question."""
MAX_REQUEST_CHARACTERS = 600
"""Letters of a request that are shown."""
MAX_LABELS = 60
"""Names that are shown as being in use, the commonest."""


class RequestClassification(FrozenModel):
    """Model's classification of one request."""

    number: int
    stateful: bool
    environment: str = Field(max_length=60)
    summary: str = Field(max_length=400)
    reason: str = Field(max_length=300)


class RequestClassifications(FrozenModel):
    """Model's answer to one batch."""

    requests: tuple[RequestClassification, ...]


async def read_task_set_with_model(
    model: ChatModel, prompts: Prompts, path: Path, fewest: int = MIN_REQUESTS, batch: int = BATCH_SIZE
) -> SourceReadResult:
    """Read a file of requests and group them by a model's classification; repetitions are dropped first.

    A batch without a usable answer is left out under its own reason: nothing is known of its requests.

    Raises:
        InputError: The file cannot be used, or no request needs a state.
        ModelFault: The model cannot be reached.
    """
    texts, left_out = read_requests(path)
    read = len(texts) + len(left_out)
    texts = drop_repeats(texts, left_out)
    themes: dict[tuple[str, ...], list[tuple[str, RequestClassification]]] = defaultdict(list)
    for start in range(0, len(texts), batch):
        some = texts[start : start + batch]
        labels = sorted(themes, key=lambda key: -len(themes[key]))[:MAX_LABELS]
        classified = await _classify_requests(model, prompts, some, [themes[key][0][1].environment for key in labels])
        for number, text in enumerate(some, 1):
            opinion = classified.get(number)
            if opinion is None:
                left_out.append(SkippedItem(what=shorten_request(text), reason="no usable answer of the model"))
            elif not opinion.stateful or not split_name(opinion.environment):
                left_out.append(
                    SkippedItem(what=shorten_request(text), reason=f"the model sees no state: {opinion.reason}")
                )
            else:
                themes[split_name(opinion.environment)].append((text, opinion))
    sources = _build_sources(themes, fewest, path, left_out)
    if not sources:
        raise InputError(f"{path}: the model sees no theme of {fewest} requests that need a state")
    return SourceReadResult(sources=tuple(sources), left_out=tuple(left_out), read=read)


async def _classify_requests(
    model: ChatModel, prompts: Prompts, texts: Sequence[str], labels: Sequence[str]
) -> dict[int, RequestClassification]:
    messages = prompts.get(STATEFUL_PROMPT).messages(
        labels=list(labels), requests=[text[:MAX_REQUEST_CHARACTERS] for text in texts]
    )
    try:
        reply = await complete_structured(
            model, ChatRequest(messages=messages, temperature=0.0, purpose="envgen.stateful"), RequestClassifications
        )
    except ModelFault as fault:
        if fault.kind != "bad_reply":
            raise
        return {}
    return {one.number: one for one in reply.requests}


def _build_sources(
    themes: dict[tuple[str, ...], list[tuple[str, RequestClassification]]],
    fewest: int,
    path: Path,
    left_out: list[SkippedItem],
) -> list[ThemeSource]:
    sources, licence = list[ThemeSource](), find_licence(path.parent)
    for members in sorted(themes.values(), key=lambda members: (-len(members), members[0][1].environment)):
        first = members[0][1]
        if len(members) < fewest:
            reason = f"its theme has fewer than {fewest} requests"
            left_out += [SkippedItem(what=shorten_request(text), reason=reason) for text, _ in members]
            continue
        sources.append(
            ThemeSource(
                kind="tasks", name=first.environment.strip(), summary=first.summary.strip(),
                requests=tuple(text for text, _ in members), origin=path.name, licence=licence,
            )
        )  # fmt: skip
    return sources
