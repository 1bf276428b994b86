"""A folder of documents as a source: passages of bounded length, and what contradicts itself or says nothing."""

import re
from collections.abc import Collection, Iterator, Sequence
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import yaml

from envgen.generate.blueprint import LeftOut
from envgen.sources import Source
from envgen.sources.contradictions import contradicted
from envgen.sources.licences import FILES, licence_in, licence_named
from envgen.sources.reading import Reading
from environments.openapi.words import kinds_of
from environments.reading import read_json
from trajectory import InputError, JsonObject

ENDINGS = (".md", ".txt", ".html", ".htm", ".json")
LONGEST = 1200
"""Letters of a passage."""
PASSAGES = 400
"""Passages of a folder at most."""
LARGEST = 5_000_000
"""Bytes of a document."""
FEWEST = 40
"""Letters below which a document says nothing."""
_FRONT = re.compile(r"\A---\s*\n(.*?)\n---\s*(?:\n|\Z)", re.S)


class _Document:
    """One file: its paragraphs, and what its head says."""

    def __init__(self, name: str, head: JsonObject, text: str) -> None:
        self.name = name
        self.head = head
        self.paragraphs = [" ".join(part.split()) for part in re.split(r"\n\s*\n", text) if part.strip()]

    @property
    def licence(self) -> str | None:
        said = self.head.get("license") or self.head.get("licence")
        return licence_named(str(said)) if said else None


def read_documents(folder: Path) -> Reading:
    """One source of everything that a folder, or one document, says.

    Raises:
        InputError: There is no such folder, no document in it, or none that says anything.
    """
    if not folder.exists():
        raise InputError(f"no such folder of documents: {folder}")
    files = sorted(file for file in folder.rglob("*") if file.is_file()) if folder.is_dir() else [folder]
    left_out, documents, read = list[LeftOut](), list[_Document](), 0
    for file in files:
        if file.name in FILES:
            continue
        read += 1
        found = _read(file, str(file.relative_to(folder)) if folder.is_dir() else file.name)
        if isinstance(found, LeftOut):
            left_out.append(found)
        else:
            documents.append(found)
    if not documents:
        reasons = "; ".join(f"{one.what}: {one.reason}" for one in left_out[:3])
        raise InputError(f"{folder}: no document to use ({', '.join(ENDINGS)}): {reasons or 'it is empty'}")
    passages = _passages(documents, left_out)
    if not passages:
        raise InputError(f"{folder}: its documents say nothing but what contradicts itself: {left_out[-1].reason}")
    licence = _licence(folder if folder.is_dir() else folder.parent, documents, left_out)
    name = " ".join(re.findall(r"[^\W_]+", folder.stem)) or "documents"
    source = Source(
        kind="documents", name=name, summary=_summary(documents, passages), passages=tuple(passages),
        origin=folder.name, licence=licence,
    )  # fmt: skip
    return Reading(sources=(source,), left_out=tuple(left_out), read=read)


def _read(file: Path, name: str) -> "_Document | LeftOut":
    if file.suffix.lower() not in ENDINGS:
        return LeftOut(what=name, reason=f"neither {' nor '.join(ENDINGS)}")
    if file.stat().st_size > LARGEST:
        return LeftOut(what=name, reason=f"larger than {LARGEST // 1_000_000} MB")
    try:
        text = file.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        return LeftOut(what=name, reason="no UTF-8 text")
    head: JsonObject = {}
    if file.suffix == ".json":
        try:
            text = "\n\n".join(_said(read_json(file)))
        except InputError as error:
            return LeftOut(what=name, reason=f"no JSON: {str(error).rpartition(': ')[2]}")
    elif file.suffix.startswith(".htm"):
        text, head = text_of_html(text)
    else:
        text, head = _front(text)
    document = _Document(name, head, text)
    if sum(map(len, document.paragraphs)) < FEWEST:
        return LeftOut(what=name, reason="empty" if not document.paragraphs else f"fewer than {FEWEST} letters")
    return document


def _front(text: str) -> tuple[str, JsonObject]:
    """A text without its front matter, and that."""
    found = _FRONT.match(text)
    if not found:
        return text, {}
    try:
        head = yaml.safe_load(found.group(1))
    except yaml.YAMLError:
        return text, {}  # dashes that are no front matter belong to the text
    return (text[found.end() :], head) if isinstance(head, dict) else (text, {})


class _Html(HTMLParser):
    """The text of a page: paragraphs apart, no scripts."""

    BLOCKS = kinds_of("p div li tr h1 h2 h3 h4 h5 h6 section article table ul ol dl dt dd br blockquote pre")
    SILENT = kinds_of("script style head nav noscript svg template")

    def __init__(self) -> None:
        super().__init__()
        self.parts: list[str] = []
        self.head: JsonObject = {}
        self._silent = 0
        self._title = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self._silent += tag in self.SILENT
        self._title = tag == "title"
        if tag in self.BLOCKS:
            self.parts.append("\n\n")
        if tag == "meta" and given.get("name") in ("license", "licence", "description", "dcterms.license"):
            self.head[str(given["name"]).rpartition(".")[2]] = given.get("content") or ""
        if tag in ("a", "link") and given.get("rel") == "license":
            self.head.setdefault("license", given.get("title") or given.get("href") or "")

    def handle_endtag(self, tag: str) -> None:
        self._silent -= tag in self.SILENT and self._silent > 0
        self._title = False
        if tag in self.BLOCKS:
            self.parts.append("\n\n")

    def handle_data(self, data: str) -> None:
        if self._title:
            self.head["title"] = " ".join(data.split())
        elif not self._silent:
            self.parts.append(data)


def text_of_html(text: str) -> tuple[str, JsonObject]:
    """What a page says, paragraphs apart, and what its head says of it."""
    page = _Html()
    page.feed(text)
    return "".join(page.parts), page.head


def _said(value: Any, path: str = "") -> Iterator[str]:
    """What a JSON document says, a line per value with the keys that lead to it."""
    if isinstance(value, dict):
        for key, part in value.items():
            yield from _said(part, f"{path} {key}".strip())
    elif isinstance(value, list):
        for part in value:
            yield from _said(part, path)
    elif value is not None and str(value).strip():
        yield f"{path}: {value}" if path else str(value)


def _passages(documents: list[_Document], left_out: list[LeftOut]) -> list[str]:
    wrong = contradicted([(document.name, document.paragraphs) for document in documents])
    left_out += [LeftOut(what=" and ".join(one.documents), reason=f"contradictory: {one.told}") for one in wrong]
    doubted = {sentence for one in wrong for sentence in one.sentences}
    found = dict[str, None]()
    for document in documents:
        for passage in bounded(document.paragraphs, doubted):
            found.setdefault(passage)
    if len(found) > PASSAGES:
        left_out.append(LeftOut(what="passages", reason=f"{len(found) - PASSAGES} beyond the first {PASSAGES}"))
    return list(found)[:PASSAGES]


def bounded(paragraphs: Sequence[str], doubted: Collection[str] = ()) -> Iterator[str]:
    """Paragraphs joined up to the longest passage, cut at sentences where one alone is longer."""
    waiting = ""
    for paragraph in paragraphs:
        for sentence in re.split(r"(?<=[.!?])\s+", paragraph):
            if sentence in doubted:
                continue
            for part in [sentence[at : at + LONGEST] for at in range(0, len(sentence), LONGEST)]:
                if waiting and len(waiting) + 1 + len(part) > LONGEST:
                    yield waiting
                    waiting = part
                else:
                    waiting = f"{waiting} {part}".strip()
    if waiting:
        yield waiting


def _summary(documents: list[_Document], passages: list[str]) -> str:
    """What a document's head says it is about, else the first sentence that no other contradicts."""
    keys = ("description", "summary", "title")
    told = (str(document.head[key]) for document in documents for key in keys if document.head.get(key))
    sentences = (
        one for document in documents for part in document.paragraphs for one in re.split(r"(?<=[.!?])\s+", part)
    )
    first = next(told, "") or next(
        (one for one in sentences if any(one in passage for passage in passages)), passages[0]
    )
    first = first.lstrip("# ")
    return " ".join(first.split())[:300]


def _licence(folder: Path, documents: list[_Document], left_out: list[LeftOut]) -> str | None:
    """What the folder's own file says, else what all documents that say something agree on."""
    stated = licence_in(folder)
    said = list(dict.fromkeys(document.licence for document in documents if document.licence))
    if stated is None and len(said) == 1:
        return said[0]
    others = [one for one in said if one != stated]
    if others:
        several = ", ".join([*([stated] if stated else []), *others])
        left_out.append(LeftOut(what="licence", reason=f"contradictory: documents state {several}"))
    return stated
