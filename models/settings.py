"""Settings of language models: servers, rate limits, prices and roles."""

import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Annotated, Any, Literal, Self
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    PositiveFloat,
    PositiveInt,
    model_validator,
)

from trajsmith.records import FrozenModel, InputError, JsonObject, Registry, ToolStyle

HOSTED_URL = "https://api.openai.com/v1"
HOSTED_KEY = "OPENAI_API_KEY"
SCRIPTED = "scripted"
MOST_CONCURRENCY = 1024
"""Requests in flight that `concurrency: auto` ends at."""

Role = Literal["proposer", "writer", "checker", "user", "agent", "judge", "classify", "refine"]
ROLES: tuple[Role, ...] = ("proposer", "writer", "checker", "user", "agent", "judge", "classify", "refine")
DIALOGUE: tuple[Role, ...] = ("user", "agent")
"""Roles whose every request waits for the answer to the one before."""
Parameter = Literal["temperature", "top_p", "max_tokens", "seed", "stop", "tool_choice"]


PROVIDERS: Registry[Callable[[str, "ModelSettings", Path | None], Any]] = Registry(
    "providers",
    {
        "openai": "trajsmith.models.batch_api",
        "transformers": "trajsmith.models.transformers_engine",
        "vllm": "trajsmith.models.vllm_engine",
    },
)
"""Name to a function with the parameters of `trajsmith.models.provider.open_provider`, which returns a `Provider`."""


IN_PROCESS = frozenset({"transformers", "vllm"})
"""Providers of models that this process computes."""


class Price(FrozenModel):
    """Money per million tokens, in any one currency."""

    prompt: float = Field(0.0, ge=0)
    cached: float | None = Field(None, ge=0)
    """Prompt tokens that the server had in its prefix cache; the prompt's price if not given."""
    completion: float = Field(0.0, ge=0)
    """Reasoning tokens are part of the completion."""


class Sampling(FrozenModel):
    """Parameters that a request leaves open. Those of the role go before those of the model."""

    temperature: float | None = Field(None, ge=0)
    top_p: float | None = Field(None, gt=0, le=1)
    max_tokens: PositiveInt | None = None
    seed: int | None = None


def _has_host(address: str) -> bool:
    try:
        parts = urlsplit(address)
        return bool(parts.hostname) and parts.port != 0
    except ValueError:  # an open bracket, a port that is no number
        return False


def _check_address(value: str) -> str:
    if not (re.fullmatch(r"https?://[^\s@?#]+", value) and value.isprintable() and _has_host(value)):
        raise ValueError("an address such as http://localhost:8000/v1, without a name, key or query in it: key_env")
    return value.rstrip("/")


def _check_variable(value: str | None) -> str | None:
    if value is not None and not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", value):
        raise InputError("key_env must name an environment variable, for example OPENAI_API_KEY, not hold the key")
    return value


Address = Annotated[str, AfterValidator(_check_address)]
Variable = Annotated[str | None, AfterValidator(_check_variable)]


class ServerSettings(FrozenModel):
    """One of several servers with the same model."""

    base_url: Address
    """Address up to and including /v1."""
    key_env: Variable = None
    """Environment variable that holds its key."""
    weight: PositiveFloat = 1.0
    """Its share of the dialogues, against 1 of the server at the model's own `base_url`."""


def _address_only(value: object) -> object:
    return {"base_url": value} if isinstance(value, str) else value


class ModelSettings(Sampling):
    """One model and the server behind it, or several."""

    provider: Annotated[str, AfterValidator(PROVIDERS.check_name)] = "openai"
    """`openai`: any OpenAI-compatible server; `vllm` and `transformers`: in this process, on this machine."""
    model: str = Field(min_length=1)
    """Name that the server knows, or for a model in this process a folder or a name on the Hub."""
    base_url: Address = HOSTED_URL
    """Address up to and including /v1."""
    replicas: tuple[Annotated[ServerSettings, BeforeValidator(_address_only)], ...] = ()
    """Further servers with the same model: addresses, or {base_url, key_env, weight}. A dialogue stays on one server as
    long as that answers. For `openai` only."""
    hedge_after: PositiveFloat | None = None
    """Seconds without an answer after which a request goes to a second of the servers as well; the first usable answer
    counts, and the other request is given up. None sends none twice. With `replicas` only."""
    api: Literal["chat_completions", "responses"] = "chat_completions"
    """API of the server: chat completions, or OpenAI's Responses API. For `openai` only."""
    key_env: Variable = None
    """Environment variable that holds the key; for OpenAI's own address OPENAI_API_KEY, elsewhere none."""
    concurrency: PositiveInt | Literal["auto"] = 32
    """Requests in flight at a time. `auto` finds the number: more while replies stay as fast, half where the server
    refuses, fails to answer, or slows down."""
    requests_per_minute: PositiveFloat | None = None
    tokens_per_minute: PositiveFloat | None = None
    timeout: PositiveFloat = 120.0
    """Seconds that one attempt may take. A model in this process is waited for: hanging up would not stop it."""
    attempts: PositiveInt = 6
    """Times that a request is sent at most, where its failures are of a kind that passes."""
    deadline: PositiveFloat = 600.0
    """Seconds for a request with all its attempts and the waits between them."""
    first_wait: PositiveFloat = 0.5
    """Seconds before the second attempt; doubled each time, with jitter, up to `longest_wait`."""
    longest_wait: PositiveFloat = 30.0
    outage_after: PositiveInt = 20
    """So many requests in a row without an answer are an outage: the run stops, to be resumed."""
    price: Price = Price()
    extra_body: JsonObject = {}
    """Sent along in every request, for what only this server knows; for `vllm`, arguments of the chat template."""
    wire_names: dict[Parameter, str | None] = {}
    """How this server calls a parameter, for example {max_tokens: max_completion_tokens}; null leaves it out."""
    reasoning_key: str | None = None
    """Key under which earlier reasoning is sent back; not sent if not given."""
    structured: Literal["native", "prompt", "auto"] = "auto"
    """JSON replies by `response_format`, by words in the prompt, or the first as long as the server takes it. A model
    in this process follows a grammar, or words, or a grammar where its package is installed."""
    batch: bool = False
    """Collect requests and send them through the server's batch API: cheaper, answered within a day. Not for the roles
    of dialogues."""
    batch_quiet: PositiveFloat = 5.0
    """Seconds without a new request after which what was collected is sent."""
    batch_poll: PositiveFloat = 30.0
    """Seconds between two looks at batches that are being worked on."""
    tools: ToolStyle | None = None
    """How tools are shown: `full` schemas, or `compact`. None is as a checkpoint in a folder was trained, else full."""
    preflight: bool = True
    """Ask the server before any work whether key, address, model and tools are right."""
    engine: JsonObject = {}
    """`vllm` only: arguments of its engine, for example {max_model_len: 16384}."""

    @model_validator(mode="after")
    def _check_api(self) -> Self:
        if self.api != "responses":
            return self
        if self.provider != "openai":
            raise ValueError(f"api: responses is for provider openai, not for {self.provider}")
        if self.reasoning_key is not None:
            raise ValueError("reasoning_key is for api: chat_completions; responses sends back reasoning by itself")
        if self.wire_names.get("max_tokens") in ("max_tokens", "max_completion_tokens"):
            raise ValueError("the Responses API calls it max_output_tokens: leave max_tokens out of wire_names")
        return self

    @model_validator(mode="after")
    def _check_replicas(self) -> Self:
        if self.replicas and self.provider != "openai":
            raise ValueError(f"replicas are for provider openai, not for {self.provider}")
        if self.replicas and self.batch:
            raise ValueError("batch: true sends all requests to one server: leave out replicas")
        if self.hedge_after is not None and not self.replicas:
            raise ValueError("hedge_after is for a model with replicas: a second server has to be there")
        addresses = [server.base_url for server in self.list_servers()]
        for address in addresses:
            if addresses.count(address) > 1:
                raise ValueError(f"replicas: {address} is there more than once; give it a weight")
        return self

    @model_validator(mode="after")
    def _check_concurrency(self) -> Self:
        if self.concurrency == "auto" and (self.is_in_process or self.batch):
            raise ValueError("concurrency: auto is for requests that a server answers one by one; give a number")
        return self

    def list_servers(self) -> list[ServerSettings]:
        """List the servers that have the model."""
        return [ServerSettings(base_url=self.base_url, key_env=self.key_env), *self.replicas]

    def of_server(self, server: ServerSettings) -> "ModelSettings":
        """Return the settings of the model on one of its servers."""
        return self.model_copy(
            update={"base_url": server.base_url, "key_env": server.key_env, "replicas": (), "hedge_after": None}
        )

    @property
    def connections(self) -> int:
        """Requests that may be in flight at a time."""
        return MOST_CONCURRENCY if self.concurrency == "auto" else self.concurrency

    @property
    def is_in_process(self) -> bool:
        """Return True for a model that this process computes."""
        return self.provider in IN_PROCESS

    @property
    def key_variable(self) -> str | None:
        """Environment variable with the key, or None where no key is needed."""
        return self.key_env or (HOSTED_KEY if self.provider == "openai" and self.base_url == HOSTED_URL else None)


class RoleSettings(Sampling):
    """Model of one role, with its sampling parameters."""

    model: str = SCRIPTED
    """Name among `models`, or "scripted"."""
    played_by: str = ""
    """Installed role that plays it, for `user` and `agent`; empty for `scripted` or `model`, as `model` says."""


def _named(value: object) -> object:
    return {"model": value} if isinstance(value, str) else value


RoleEntry = Annotated[RoleSettings, BeforeValidator(_named)]


class RolesSettings(FrozenModel):
    """Model of each role: a name, or {model: name, temperature: ...}; scripted by default."""

    proposer: RoleEntry = RoleSettings()
    """States and goals of state-first tasks, questions and programs of programmatic ones; scripted draws and composes
    them from what the environment does."""
    writer: RoleEntry = RoleSettings()
    """Persona, scenario, query writing and refinement."""
    checker: RoleEntry = RoleSettings()
    """Checklists of tasks, check functions and criteria of rubrics, beside those that are derived; scripted writes
    none."""
    user: RoleEntry = RoleSettings()
    """The simulated user."""
    agent: RoleEntry = RoleSettings()
    """The teacher whose messages become training data."""
    judge: RoleEntry = RoleSettings()
    """Decides what execution cannot."""
    classify: RoleEntry = RoleSettings()
    """Classifies parameters for the tool graph."""
    refine: RoleEntry = RoleSettings()
    """Refines the edges of the tool graph."""

    def of(self, role: Role) -> RoleSettings:
        entries: dict[Role, RoleSettings] = {
            "proposer": self.proposer,
            "writer": self.writer,
            "checker": self.checker,
            "user": self.user,
            "agent": self.agent,
            "judge": self.judge,
            "classify": self.classify,
            "refine": self.refine,
        }
        return entries[role]

    def check(self, models: dict[str, ModelSettings]) -> None:
        """Check that the model of every role exists and can play it.

        Raises:
            InputError: A role names a model that is not configured, or that answers too late for it.
        """
        for role in ROLES:
            name = self.of(role).model
            if self.of(role).played_by and role not in DIALOGUE:
                raise InputError(f"roles.{role}: played_by is for {' and '.join(DIALOGUE)}")
            if name != SCRIPTED and name not in models:
                allowed = ", ".join([SCRIPTED, *models])
                raise InputError(f"roles.{role}: no model is named {name!r}; choose one of: {allowed}")
            if name != SCRIPTED and models[name].batch and role in DIALOGUE:
                raise InputError(
                    f"roles.{role}: models.{name} answers in batches, within a day, and a dialogue waits for every "
                    "answer: choose a model without batch"
                )


class BudgetSettings(FrozenModel):
    """Spending limits of a run, over all of its parts. None is no limit."""

    max_cost: float | None = Field(None, ge=0)
    """In the currency of the prices."""
    max_tokens: int | None = Field(None, ge=0)
    """Prompt and completion tokens."""

    def check(self, played: Iterable[Role]) -> None:
        """Check that the budget is not zero if models are used.

        Raises:
            InputError: A limit is zero.
        """
        roles = ", ".join(played)
        for name, limit in (("max_cost", self.max_cost), ("max_tokens", self.max_tokens)):
            if roles and limit == 0:
                raise InputError(
                    f"budget.{name} is 0 and models play {roles}: raise it, or leave them to the scripted language"
                )
