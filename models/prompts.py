"""Prompts: Jinja2 files beside the stage that uses them, checked before any work and named by their hash.

A prompt file is `<package>/prompts/<name>.md.j2`. Its first comment says what it is for, where it comes from and which
variables it takes; it is not sent. Each block becomes one message: `system`, then `user` where there is one. What never
changes comes first, then the environment, then the case, so that a server can keep the common prefix.

What a prompt is given is data of environments, documents and people. A text of several lines stands in it as one line
of JSON, so that no data can pose as a part of the prompt. Filters lay it out otherwise: `quoted` begins each line with
">", `fenced` puts code between fences, and `block` leaves a text of ours as it is.
"""

import re
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from pathlib import Path

import jinja2
from jinja2 import meta

from trajsmith.records import (
    RENDER_ERRORS,
    InputError,
    JsonObject,
    JsonValue,
    Message,
    hash_bytes,
    quote_lines,
    template_environment,
    to_one_line,
)

SUFFIX = ".md.j2"
ROLES = ("system", "user")
_HEADER = re.compile(r"\A\s*\{#-?(.*?)-?#\}", re.DOTALL)
_BACKTICKS = re.compile(r"`+")
_NAMES = "Purpose|Source|Variables"
_ENTRY = re.compile(rf"^[ \t]*({_NAMES}):\s*(.*?)(?=^[ \t]*(?:{_NAMES}):|\Z)", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True)
class PromptSpec:
    """A prompt as the code that uses it sees it.

    Attributes:
        name: "package/name", for example "usersim/user".
        example: A value for every variable that the code gives; the prompt is rendered with them once before any work.
    """

    name: str
    example: JsonObject = field(hash=False)


@dataclass(frozen=True)
class Prompt:
    """A prompt that was read and checked."""

    name: str
    version: str
    """Hash of the file, what stands in provenance."""
    purpose: str
    source: str
    variables: tuple[str, ...]
    where: str
    """File, for messages."""
    template: jinja2.Template = field(repr=False, compare=False)

    def messages(self, **values: JsonValue) -> tuple[Message, ...]:
        """The messages that are sent.

        Raises:
            InputError: The template uses something that is not there or not allowed.
        """
        messages = []
        for role in ROLES:
            if role in self.template.blocks:
                text = self._block(role, values).strip()
                messages.append(Message(role="system" if role == "system" else "user", content=text))
        return tuple(messages)

    def text(self, **values: JsonValue) -> str:
        """The only message of a prompt that has one."""
        return self.messages(**values)[0].content

    def _block(self, role: str, values: JsonObject) -> str:
        try:
            block, context = self.template.blocks[role], self.template.new_context(values)
            return self.template.environment.concat(block(context))
        except (jinja2.TemplateError, *RENDER_ERRORS) as error:
            raise InputError(f"prompt {self.where}: {to_one_line(error)}") from error


class Prompts:
    """All prompts of a run.

    Args:
        directory: Folder with files that take the place of ours, as `<package>/<name>.md.j2`; None for ours.
    """

    def __init__(self, directory: Path | None = None) -> None:
        if directory is not None and not directory.is_dir():
            raise InputError(f"prompts: there is no folder {directory}")
        self.directory = directory
        self._read: dict[str, Prompt] = {}

    def get(self, spec: PromptSpec) -> Prompt:
        """Read and check a prompt; cached after the first call.

        Raises:
            InputError: It cannot be read, has no header, or uses a variable that the stage does not give.
        """
        if spec.name not in self._read:
            self._read[spec.name] = self._load(spec)
        return self._read[spec.name]

    def _load(self, spec: PromptSpec) -> Prompt:
        package, name = spec.name.split("/")
        own = None if self.directory is None else self.directory / package / f"{name}{SUFFIX}"
        if own is not None and own.is_file():
            where, text = str(own), _read(own)
        else:
            where = f"{package}/prompts/{name}{SUFFIX}"
            text = (
                resources.files(f"trajsmith.{package}")
                .joinpath("prompts", f"{name}{SUFFIX}")
                .read_text(encoding="utf-8")
            )
        prompt = _parse(spec, where, text)
        prompt.messages(**spec.example)
        return prompt


@cache
def load_builtin_prompts() -> Prompts:
    """Load the built-in prompts; cached."""
    return Prompts()


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"prompt {path}: cannot be read: {to_one_line(error)}") from error


class _Block(str):
    """Text that stands in a prompt as it is."""


def _fence(code: str, language: str = "python") -> _Block:
    """Return code between fences that no line of it can close."""
    fence = "`" * max(3, 1 + max(map(len, _BACKTICKS.findall(code)), default=0))
    return _Block(f"{fence}{language}\n{code.rstrip()}\n{fence}")


def _quote(text: str) -> _Block:
    """Return a text of several lines with a mark before each."""
    return _Block("\n".join(f"> {line}" for line in text.strip().splitlines()))


def _print_value(value: JsonValue) -> JsonValue:
    """Return what an expression of a prompt prints: a plain text of several lines on one."""
    return quote_lines(value) if type(value) is str else value


def _parse(spec: PromptSpec, where: str, text: str) -> Prompt:
    environment = template_environment(bounded=True, trim_blocks=True, lstrip_blocks=True, finalize=_print_value)
    environment.filters |= {"block": _Block, "fenced": _fence, "quoted": _quote}
    try:
        used = meta.find_undeclared_variables(environment.parse(text))
        template = environment.from_string(text)
    except jinja2.TemplateSyntaxError as error:
        raise InputError(f"prompt {where}:{error.lineno}: {to_one_line(error.message)}") from error
    unknown = sorted(used - spec.example.keys())
    if unknown:
        raise InputError(
            f"prompt {where}: it uses {', '.join(unknown)}, which is not given: use {', '.join(sorted(spec.example))}"
        )
    header = _header(where, text)
    listed = {part.strip() for part in header["Variables"].rstrip(".").split(",") if part.strip()}
    if listed != used:
        raise InputError(f"prompt {where}: its header must list the variables that it uses: {', '.join(sorted(used))}")
    if not set(template.blocks) & set(ROLES):
        raise InputError(f"prompt {where}: it has no block named system or user, so nothing would be sent")
    return Prompt(
        name=spec.name,
        version=hash_bytes(text.encode(), 12),
        purpose=header["Purpose"],
        source=header["Source"],
        variables=tuple(sorted(used)),
        where=where,
        template=template,
    )


def _header(where: str, text: str) -> dict[str, str]:
    match = _HEADER.match(text)
    entries = {name: " ".join(value.split()) for name, value in _ENTRY.findall(match.group(1) if match else "")}
    missing = [name for name in ("Purpose", "Source", "Variables") if name not in entries]
    if missing:
        raise InputError(f"prompt {where}: its first comment must say {', '.join(missing)}")
    return entries
