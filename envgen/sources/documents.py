"""A folder of documents as a source: passages of bounded length, and what contradicts itself or says nothing."""

import re
from collections.abc import Collection, Iterator, Sequence
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import yaml

from trajsmith.envgen.generate.blueprint import SkippedItem
from trajsmith.envgen.sources import ThemeSource
from trajsmith.envgen.sources.contradictions import find_contradictions
from trajsmith.envgen.sources.licences import LICENCE_FILES, find_licence, identify_licence
from trajsmith.envgen.sources.read_result import SourceReadResult
from trajsmith.environments.file_reading import read_json
from trajsmith.phrasing import word_set
from trajsmith.records import InputError, JsonObject, compose_yaml

DOCUMENT_SUFFIXES = (".md", ".txt", ".html", ".htm", ".json")
MAX_PASSAGE_CHARACTERS = 1200
"""Letters of a passage."""
MAX_PASSAGES = 400
"""Passages of a folder at most."""
MAX_FILE_BYTES = 5_000_000
"""Bytes of a document."""
MIN_LETTERS = 40
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
        stated = self.head.get("license") or self.head.get("licence")
        return identify_licence(str(stated)) if stated else None


def read_documents(folder: Path) -> SourceReadResult:
    """Read a folder, or one document, as one source.

    Raises:
        InputError: There is no such folder, no document in it, or none that says anything.
    """
    if not folder.exists():
        raise InputError(f"no such folder of documents: {folder}")
    files = sorted(file for file in folder.rglob("*") if file.is_file()) if folder.is_dir() else [folder]
    left_out, documents, read = list[SkippedItem](), list[_Document](), 0
    for file in files:
        if file.name in LICENCE_FILES:
            continue
        read += 1
        document = _read(file, str(file.relative_to(folder)) if folder.is_dir() else file.name)
        if isinstance(document, SkippedItem):
            left_out.append(document)
        else:
            documents.append(document)
    if not documents:
        reasons = "; ".join(f"{one.what}: {one.reason}" for one in left_out[:3])
        raise InputError(f"{folder}: no document to use ({', '.join(DOCUMENT_SUFFIXES)}): {reasons or 'it is empty'}")
    passages = _build_passages(documents, left_out)
    if not passages:
        raise InputError(f"{folder}: its documents say nothing but what contradicts itself: {left_out[-1].reason}")
    licence = _find_licence(folder if folder.is_dir() else folder.parent, documents, left_out)
    name = " ".join(re.findall(r"[^\W_]+", folder.stem)) or "documents"
    source = ThemeSource(
        kind="documents", name=name, summary=_find_summary(documents, passages), passages=tuple(passages),
        origin=folder.name, licence=licence,
    )  # fmt: skip
    return SourceReadResult(sources=(source,), left_out=tuple(left_out), read=read)


def _read(file: Path, name: str) -> "_Document | SkippedItem":
    if file.suffix.lower() not in DOCUMENT_SUFFIXES:
        return SkippedItem(what=name, reason=f"neither {' nor '.join(DOCUMENT_SUFFIXES)}")
    if file.stat().st_size > MAX_FILE_BYTES:
        return SkippedItem(what=name, reason=f"larger than {MAX_FILE_BYTES // 1_000_000} MB")
    try:
        text = file.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        return SkippedItem(what=name, reason="no UTF-8 text")
    head: JsonObject = {}
    if file.suffix == ".json":
        try:
            text = "\n\n".join(_flatten_json(read_json(file)))
        except InputError as error:
            return SkippedItem(what=name, reason=f"no JSON: {str(error).rpartition(': ')[2]}")
    elif file.suffix.startswith(".htm"):
        text, head = extract_html_text(text)
    else:
        text, head = _split_front_matter(text)
    document = _Document(name, head, text)
    if sum(map(len, document.paragraphs)) < MIN_LETTERS:
        return SkippedItem(
            what=name, reason="empty" if not document.paragraphs else f"fewer than {MIN_LETTERS} letters"
        )
    return document


def _split_front_matter(text: str) -> tuple[str, JsonObject]:
    """A text without its front matter, and that."""
    match = _FRONT.match(text)
    if not match:
        return text, {}
    try:
        head = compose_yaml(match.group(1), yaml.SafeLoader)[1]
    except yaml.YAMLError:
        return text, {}  # dashes that are no front matter belong to the text
    return (text[match.end() :], head) if isinstance(head, dict) else (text, {})


class _Html(HTMLParser):
    """Parser that extracts the paragraphs of a page, without scripts."""

    BLOCKS = word_set("p div li tr h1 h2 h3 h4 h5 h6 section article table ul ol dl dt dd br blockquote pre")
    SILENT = word_set("script style head nav noscript svg template")

    def __init__(self) -> None:
        super().__init__()
        self.parts: list[str] = []
        self.head: JsonObject = {}
        self._silent = 0
        self._title = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = dict(attrs)
        self._silent += tag in self.SILENT
        self._title = tag == "title"
        if tag in self.BLOCKS:
            self.parts.append("\n\n")
        if tag == "meta" and attributes.get("name") in ("license", "licence", "description", "dcterms.license"):
            self.head[str(attributes["name"]).rpartition(".")[2]] = attributes.get("content") or ""
        if tag in ("a", "link") and attributes.get("rel") == "license":
            self.head.setdefault("license", attributes.get("title") or attributes.get("href") or "")

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


def extract_html_text(text: str) -> tuple[str, JsonObject]:
    """Return a page's text with blank lines between paragraphs, and the metadata of its head."""
    page = _Html()
    page.feed(text)
    return "".join(page.parts), page.head


def _flatten_json(value: Any, path: str = "") -> Iterator[str]:
    """Return a JSON document as lines: each value with the keys that lead to it."""
    if isinstance(value, dict):
        for key, part in value.items():
            yield from _flatten_json(part, f"{path} {key}".strip())
    elif isinstance(value, list):
        for part in value:
            yield from _flatten_json(part, path)
    elif value is not None and str(value).strip():
        yield f"{path}: {value}" if path else str(value)


def _build_passages(documents: list[_Document], left_out: list[SkippedItem]) -> list[str]:
    wrong = find_contradictions([(document.name, document.paragraphs) for document in documents])
    left_out += [
        SkippedItem(what=" and ".join(one.documents), reason=f"contradictory: {one.explanation}") for one in wrong
    ]
    doubted = {sentence for one in wrong for sentence in one.sentences}
    passages = dict[str, None]()
    for document in documents:
        for passage in join_paragraphs(document.paragraphs, doubted):
            passages.setdefault(passage)
    if len(passages) > MAX_PASSAGES:
        left_out.append(
            SkippedItem(what="passages", reason=f"{len(passages) - MAX_PASSAGES} beyond the first {MAX_PASSAGES}")
        )
    return list(passages)[:MAX_PASSAGES]


def join_paragraphs(paragraphs: Sequence[str], doubted: Collection[str] = ()) -> Iterator[str]:
    """Join paragraphs up to the longest passage; cut at sentences where one alone is longer."""
    waiting = ""
    for paragraph in paragraphs:
        for sentence in re.split(r"(?<=[.!?])\s+", paragraph):
            if sentence in doubted:
                continue
            for part in [
                sentence[at : at + MAX_PASSAGE_CHARACTERS] for at in range(0, len(sentence), MAX_PASSAGE_CHARACTERS)
            ]:
                if waiting and len(waiting) + 1 + len(part) > MAX_PASSAGE_CHARACTERS:
                    yield waiting
                    waiting = part
                else:
                    waiting = f"{waiting} {part}".strip()
    if waiting:
        yield waiting


def _find_summary(documents: list[_Document], passages: list[str]) -> str:
    """Return the description in a document's head, else the first sentence that no other contradicts."""
    keys = ("description", "summary", "title")
    stated = (str(document.head[key]) for document in documents for key in keys if document.head.get(key))
    sentences = (
        one for document in documents for part in document.paragraphs for one in re.split(r"(?<=[.!?])\s+", part)
    )
    first = next(stated, "") or next(
        (one for one in sentences if any(one in passage for passage in passages)), passages[0]
    )
    first = first.lstrip("# ")
    return " ".join(first.split())[:300]


def _find_licence(folder: Path, documents: list[_Document], left_out: list[SkippedItem]) -> str | None:
    """Return the licence that the folder's own file states, else the one that all documents agree on."""
    stated = find_licence(folder)
    declared = list(dict.fromkeys(document.licence for document in documents if document.licence))
    if stated is None and len(declared) == 1:
        return declared[0]
    others = [one for one in declared if one != stated]
    if others:
        several = ", ".join([*([stated] if stated else []), *others])
        left_out.append(SkippedItem(what="licence", reason=f"contradictory: documents state {several}"))
    return stated
