"""Requests through the batch API of an OpenAI-compatible server (`/files` and `/batches`), for stages without dialogue.

Requests are collected until none has come for a while, sent as one file, and answered when the batch is done. What is
being worked on is noted on disk before it is sent, so that a run that was killed finds its batches again and pays for
none twice. An answer is found by its request's content, whatever order or process asks for it.
"""

import asyncio
from collections.abc import Awaitable, Collection, Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeAlias

import orjson

from trajsmith.models.failures import OUTAGE, FailedAttempt, HttpErrorResponse
from trajsmith.models.model import ChatReply, ChatRequest
from trajsmith.models.openai_server import PATHS, OpenAIProvider
from trajsmith.models.provider import Provider
from trajsmith.models.replicas import ReplicatedProvider
from trajsmith.models.settings import PROVIDERS, ModelSettings
from trajsmith.records import AppendFile, JsonObject, RunError, TrajsmithError, read_lines, to_one_line

COLLECT_SECONDS = 0.05
MAX_REQUESTS = 20_000
"""Requests in one file; servers take 50,000, and a limit on bytes."""
MAX_BYTES = 90_000_000
LABEL = "trajsmith"
"""Name of the note that each batch carries at the server."""
PENDING_STATUSES = frozenset({"validating", "in_progress", "finalizing", "cancelling"})
MAX_LISTED_BATCHES = 100
"""Latest batches of the account that are looked through for one that was sent as the process died."""


Outcome: TypeAlias = ChatReply | FailedAttempt | TrajsmithError


class BatchApiProvider:
    """One model behind a batch API.

    Args:
        served: The same model; its client, key and errors are used.
        notes: File of the batches that are being worked on.
    """

    def __init__(self, served: OpenAIProvider, notes: Path) -> None:
        self._served = served
        self._settings = served.settings
        self._endpoint: Any = f"/v1{PATHS[served.settings.api]}"
        self._notes = _BatchLog(notes)
        self._bodies: dict[str, bytes] = {}
        """Requests that somebody waits for, by the hash of their content."""
        self._waiting: dict[str, asyncio.Future[ChatReply]] = {}
        self._early: dict[str, Outcome] = {}
        """What batches of an earlier process brought, until somebody asks for it."""
        self._arrived = asyncio.Event()
        self._work: asyncio.Task[None] | None = None

    async def send(self, request: ChatRequest) -> ChatReply:
        native = self._settings.structured != "prompt"
        body = orjson.dumps(self._served.build_body(request, native, encrypted=False))
        name = sha256(body).hexdigest()[:32]
        if name in self._early:
            return _unwrap_outcome(self._early.pop(name))
        self._waiting[name] = asyncio.get_running_loop().create_future()
        self._bodies[name] = body
        self._arrived.set()
        if self._work is None or self._work.done():
            self._work = asyncio.create_task(self._run())
        return await self._waiting[name]

    async def check(self) -> bool:
        return await self._served.check()

    async def close(self) -> None:
        if self._work is not None:
            self._work.cancel()
            await asyncio.gather(self._work, return_exceptions=True)
            self._work = None
        self._notes.forget(self._early)
        self._notes.close()
        await self._served.close()

    async def _run(self) -> None:
        """Send what was collected and fetch what is done, as long as anybody waits."""
        silent = 0
        while self._waiting:
            try:
                await self._step()
                silent = 0
            except FailedAttempt as failure:
                silent += 1
                if failure.kind not in OUTAGE:
                    self._fail_all(failure)
                elif silent >= self._settings.outage_after:
                    self._fail_all(RunError(f"{self._served.where}: {failure.message}; later, resume the run"))
            except TrajsmithError as failure:
                self._fail_all(failure)
            except (AttributeError, LookupError, TypeError, ValueError) as error:  # the client checks no types
                self._fail_all(FailedAttempt("bad_reply", f"no batch: {to_one_line(error)}", retryable=True))
            if self._waiting:
                await self._until_asked(self._settings.batch_poll)

    async def _step(self) -> None:
        await self._find_lost()
        if self._unsent():
            while len(self._unsent()) < MAX_REQUESTS and await self._until_asked(self._settings.batch_quiet):
                pass
            while unsent := self._unsent():
                await self._submit(
                    dict(_take_batch({name: self._bodies[name] for name in unsent}, MAX_REQUESTS, MAX_BYTES))
                )
        for label in self._notes.at_work():
            await self._look_at(label)
        await asyncio.sleep(COLLECT_SECONDS)  # answers are kept by those who waited for them before notes are dropped
        self._notes.forget(self._early)

    def _unsent(self) -> list[str]:
        return [name for name in self._waiting if not self._notes.holds(name)]

    async def _until_asked(self, seconds: float) -> bool:
        """Wait for a new request, so long at most; False if there was none."""
        self._arrived.clear()
        try:
            await asyncio.wait_for(self._arrived.wait(), seconds)
        except TimeoutError:
            return False
        return True

    async def _submit(self, bodies: dict[str, bytes]) -> None:
        """One file and one batch; noted before they are sent, and named when the server has named them."""
        label = sha256("".join(sorted(bodies)).encode()).hexdigest()[:32]
        lines = b"".join(_line(name, self._endpoint, body) for name, body in bodies.items())
        self._notes.add(label, list(bodies))
        client = self._served.client
        try:
            file = await self._ask(client.files.create(file=("requests.jsonl", lines), purpose="batch"))
            batch = client.batches.create(
                input_file_id=file.id,
                endpoint=self._endpoint,
                completion_window="24h",
                metadata={LABEL: label},
            )
            self._notes.name(label, (await self._ask(batch)).id)
        except FailedAttempt as failure:
            if failure.kind not in {"timeout", "connection"}:  # else it may be there, and is looked for
                self._notes.drop(label)
            raise
        except TrajsmithError:
            self._notes.drop(label)
            raise

    async def _find_lost(self) -> None:
        """Batches that were noted but not named: the server has them under their label, or never got them."""
        unnamed = self._notes.unnamed()
        if not unnamed:
            return
        page = await self._ask(self._served.client.batches.list(limit=MAX_LISTED_BATCHES))
        batch_ids = {(batch.metadata or {}).get(LABEL): batch.id for batch in page.data}
        for label in unnamed:
            if label in batch_ids:
                self._notes.name(label, batch_ids[label])
            else:
                self._notes.drop(label)

    async def _look_at(self, label: str) -> None:
        """Fetch a batch that is done, and answer whoever waits for something in it."""
        batch = await self._ask(self._served.client.batches.retrieve(self._notes.batches[label]["id"]))
        if batch.status in PENDING_STATUSES:
            return
        outcomes: dict[str, Outcome] = {}
        for file in (batch.output_file_id, batch.error_file_id):
            if file:
                content = await self._ask(self._served.client.files.content(file))
                read = (self._read(line) for line in content.content.splitlines() if line.strip())
                outcomes.update(outcome for outcome in read if outcome is not None)
        names = self._notes.release(label)
        errors = batch.errors.data or [] if batch.errors else []
        why = "; ".join([f"the batch ended as {batch.status}", *(error.message or "" for error in errors)])
        again = batch.status != "failed"  # failed: the server does not take the file at all
        for name in names:
            missing = FailedAttempt("timeout" if again else "bad_request", why, retryable=again)
            self._settle(name, outcomes.get(name, missing))

    def _read(self, line: bytes) -> tuple[str, Outcome] | None:
        """One line of a batch: the name of its request and what became of it; None if it is no such line."""
        try:
            row = orjson.loads(line)
            name = row["custom_id"]
            response = row.get("response") or {}
            status = int(response.get("status_code") or 500)
            body = orjson.dumps(response.get("body") or {"error": row.get("error") or {}})
        except (AttributeError, LookupError, TypeError, ValueError):
            return None
        if status >= 400:
            refusal = HttpErrorResponse.read(status, body, {})
            return str(name), refusal.to_error(self._served.where, asked_tools=False)
        try:
            return str(name), self._served.read_reply(body)
        except FailedAttempt as failure:
            return str(name), failure

    def _settle(self, name: str, outcome: Outcome) -> None:
        future = self._waiting.pop(name, None)
        self._bodies.pop(name, None)
        if future is None or future.done():
            self._early[name] = outcome
        elif isinstance(outcome, ChatReply):
            future.set_result(outcome)
        else:
            future.set_exception(outcome)

    def _fail_all(self, failure: FailedAttempt | TrajsmithError) -> None:
        """Raise the failure in all waiting requests."""
        for name in list(self._waiting):
            self._bodies.pop(name, None)
            future = self._waiting.pop(name)
            if not future.done():
                future.set_exception(failure)

    async def _ask(self, call: Awaitable[Any]) -> Any:
        from openai import APIConnectionError, APIStatusError

        try:
            return await call
        except APIStatusError as error:
            raise self._served.refused(error) from None
        except APIConnectionError as error:
            raise self._served.lost(error) from None


def _unwrap_outcome(outcome: Outcome) -> ChatReply:
    if isinstance(outcome, ChatReply):
        return outcome
    raise outcome


class _BatchLog:
    """Pending batches on disk: label to the server's batch id and its requests.

    Each change appends the batch as it is then; a batch without requests is over. After the last one the file is
    emptied.
    """

    def __init__(self, path: Path) -> None:
        self._fetched: set[str] = set()
        self.batches: dict[str, JsonObject] = {}
        end = 0
        for number, line, end in read_lines(path):  # noqa: B007 - the last one is used below
            try:
                batch = orjson.loads(line)
                self._set(batch.pop("label"), batch)
            except (orjson.JSONDecodeError, AttributeError, KeyError) as error:
                raise RunError(
                    f"{path}:{number}: changed by hand: {error}; remove it to send its requests again"
                ) from error
        self._file = AppendFile(path, "resume the run")
        self._file.cut(end)
        self._names = {name for batch in self.batches.values() for name in batch["requests"]}

    def holds(self, name: str) -> bool:
        """The request is in a batch that has not been fetched."""
        return name in self._names

    def unnamed(self) -> list[str]:
        return [label for label, batch in self.batches.items() if not batch["id"]]

    def at_work(self) -> list[str]:
        """Labels of the batches that are not fetched."""
        return [label for label, batch in self.batches.items() if batch["id"] and label not in self._fetched]

    def add(self, label: str, names: list[str]) -> None:
        self._fetched.discard(label)
        self._names.update(names)
        self._note(label, {"id": "", "requests": names})

    def name(self, label: str, identity: str) -> None:
        self._note(label, {"id": identity, "requests": self.batches[label]["requests"]})

    def release(self, label: str) -> list[str]:
        """The batch is fetched; gives its requests. It stays noted until all of its answers were asked for."""
        names: list[str] = self.batches[label]["requests"]
        self._fetched.add(label)
        self._names.difference_update(names)
        return names

    def forget(self, unasked: Collection[str]) -> None:
        """Of the fetched batches, keep what nobody has asked for yet; drop those of which nothing is left."""
        for label in list(self._fetched):
            requests = self.batches[label]["requests"]
            left = [name for name in requests if name in unasked]
            if not left:
                self.drop(label)
            elif len(left) < len(requests):
                self._note(label, {"id": self.batches[label]["id"], "requests": left})

    def drop(self, label: str) -> None:
        self._names.difference_update(self.batches[label]["requests"])
        self._fetched.discard(label)
        self._note(label, {"id": "", "requests": []})

    def close(self) -> None:
        """Close the file; safe to call twice."""
        self._file.close()

    def _set(self, label: str, batch: JsonObject) -> None:
        if batch["requests"]:
            self.batches[label] = batch
        else:
            self.batches.pop(label, None)

    def _note(self, label: str, batch: JsonObject) -> None:
        self._set(label, batch)
        if self.batches:
            self._file.append(orjson.dumps({"label": label, **batch}, option=orjson.OPT_APPEND_NEWLINE))
        else:
            self._file.cut(0)


def _line(name: str, endpoint: str, body: bytes) -> bytes:
    row = {"custom_id": name, "method": "POST", "url": endpoint, "body": orjson.Fragment(body)}
    return orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE)


def _take_batch(bodies: dict[str, bytes], most: int, most_bytes: int) -> Iterator[tuple[str, bytes]]:
    """As many as one file takes."""
    size = 0
    for number, (name, body) in enumerate(bodies.items()):
        size += len(body) + 200
        if number and (number >= most or size > most_bytes):
            return
        yield name, body


@PROVIDERS.register("openai")
def open_openai_provider(entry: str, settings: ModelSettings, folder: Path | None) -> Provider:
    """Open an OpenAI-compatible server, for single requests or through its batch API, or several servers."""
    if settings.replicas:
        return ReplicatedProvider(entry, settings, OpenAIProvider)
    provider = OpenAIProvider(entry, settings)
    if settings.batch and folder is not None:
        return BatchApiProvider(provider, folder / f"batches-{entry}.jsonl")
    return provider
