"""Usage of models: one line per answered request in `usage.jsonl`, prices, and the budget of a run.

The lines are first written beside the answers (`answers.py`) and then appended here; opening makes up for what a kill
left out between the two. So the file has every paid request once.
"""

from collections import defaultdict
from pathlib import Path

import orjson

from trajsmith.models.model import ChatReply, ChatRequest, Usage
from trajsmith.models.response_cache import ResponseCache
from trajsmith.models.settings import BudgetSettings, Price
from trajsmith.records import AppendFile, BudgetExceeded, JsonObject, RunError, UsageSummary, read_lines

MILLION = 1_000_000
BYTES_PER_TOKEN = 4.0
USAGE_FIELDS = ("prompt_tokens", "cached_tokens", "completion_tokens", "reasoning_tokens", "cost")
COMPLETION = 256
"""Tokens that an answer is thought to have before there was one."""


def compute_cost(usage: Usage, price: Price) -> float:
    """Compute the cost of tokens; cached ones have their own price."""
    cached = price.prompt if price.cached is None else price.cached
    fresh = usage.prompt_tokens - usage.cached_tokens
    spent = fresh * price.prompt + usage.cached_tokens * cached + usage.completion_tokens * price.completion
    return spent / MILLION


def summarize_usage(path: Path) -> dict[str, UsageSummary]:
    """Sum the usage of a run by role; empty if it has no `usage.jsonl`."""
    totals: defaultdict[str, UsageSummary] = defaultdict(UsageSummary)
    for _, line, _ in read_lines(path):
        role, one = _read(line, path)
        totals[role] += one
    return dict(sorted(totals.items()))


def _read(line: bytes, path: Path) -> tuple[str, UsageSummary]:
    """Role and tokens of one line."""
    try:
        row = orjson.loads(line)
        return str(row["purpose"]).split(".")[0], UsageSummary(requests=1, **{name: row[name] for name in USAGE_FIELDS})
    except (orjson.JSONDecodeError, KeyError, TypeError, ValueError) as error:
        raise RunError(f"{path}: a line was changed by hand: {line[:80]!r}") from error


class UsageLedger:
    """Usage and budget of a run, over all of its parts.

    Args:
        path: `usage.jsonl` of the run; made before the first request is sent.
        again: The command that goes on, for the line that says how; settings can be added to it.
    """

    def __init__(self, path: Path, answers: ResponseCache, budget: BudgetSettings, again: str) -> None:
        self._answers = answers
        self._budget = budget
        self._again = again
        self.totals: defaultdict[str, UsageSummary] = defaultdict(UsageSummary)
        """Role to what was spent for it."""
        self.spent = UsageSummary()
        self._reserved_tokens = 0
        self._reserved_cost = 0.0
        self._bytes = self._prompt = 0
        if not path.is_file():  # a new run: what an earlier one in this place spent is not its own
            answers.forget_usage()
        self._file = AppendFile(path, again)
        self._path = path
        self._take_up()

    def _take_up(self) -> None:
        """Make file and database agree, after a kill between the two or after one of them was lost; add all up."""
        lines = end = 0
        for lines, line, end in read_lines(self._path):  # noqa: B007 - the last ones are used below
            if lines > self._answers.number:
                self._answers.put(line)
            self._add(line)
        self._file.cut(end)
        for line in self._answers.lines(after=lines):
            self._file.append(line)
            self._add(line)

    def reserve(self, size: int, most: int | None, price: Price) -> "BudgetReservation":
        """Set aside what a request may cost, before it is sent.

        Args:
            size: Bytes of the request.
            most: Its `max_tokens`.

        Raises:
            BudgetExceeded: It could go beyond the budget.
        """
        guess = self.estimate_usage(size, most)
        cost = compute_cost(guess, price)
        tokens = guess.prompt_tokens + guess.completion_tokens
        self._check("max_tokens", self._budget.max_tokens, self.spent.tokens, self._reserved_tokens + tokens)
        self._check("max_cost", self._budget.max_cost, self.spent.cost, self._reserved_cost + cost)
        return BudgetReservation(self, tokens, cost)

    def estimate_usage(self, size: int, most: int | None) -> Usage:
        """Estimate the tokens of an unanswered request from the answered ones."""
        ratio = self._bytes / self._prompt if self._prompt else BYTES_PER_TOKEN
        mean = self.spent.completion_tokens / self.spent.requests if self.spent.requests else COMPLETION
        answer = min(round(mean), most) if most else round(mean)
        return Usage(prompt_tokens=round(size / ratio), completion_tokens=answer)

    def pay(
        self,
        request: ChatRequest,
        model: str,
        usage: Usage,
        price: Price,
        size: int,
        key: bytes | None = None,
        reply: ChatReply | None = None,
    ) -> None:
        """Record the usage of an answered request, and cache the reply if it was usable.

        Args:
            size: Bytes of the request.
            key: Name of the answer in the cache, together with `reply`.
        """
        row: JsonObject = {"record": request.record, "purpose": request.purpose, "model": model}
        row |= usage.model_dump(exclude={"requests"}) | {"cost": round(compute_cost(usage, price), 9)}
        if reply is None:
            row["usable"] = False
        line = orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE)
        self._answers.put(line, key, reply)
        self._file.append(line)
        self._count(
            request.purpose.split(".")[0], UsageSummary(requests=1, **{name: row[name] for name in USAGE_FIELDS})
        )
        if usage.prompt_tokens:
            self._bytes += size
            self._prompt += usage.prompt_tokens

    def close(self) -> None:
        """Safe to call twice."""
        self._file.close()

    def _check(self, name: str, limit: float | None, spent: float, wanted: float) -> None:
        if limit is None or (limit > 0 and spent + wanted <= limit):
            return
        more = f"{max(limit * 2, 1):g}"
        raise BudgetExceeded(
            f"the budget is used up: {spent:.6g} of budget.{name}={limit:g} spent, and the next request may cost "
            f"{wanted:.3g} with those in flight; raise it and continue with: "
            f"{self._again} --set budget.{name}={more}"
        )

    def _add(self, line: bytes) -> None:
        self._count(*_read(line, self._path))

    def _count(self, role: str, one: UsageSummary) -> None:
        self.totals[role] += one
        self.spent += one


class BudgetReservation:
    """Money and tokens set aside for one request while the context lasts."""

    def __init__(self, ledger: UsageLedger, tokens: int, cost: float) -> None:
        self.tokens = tokens
        self._ledger = ledger
        self._cost = cost

    def __enter__(self) -> "BudgetReservation":
        self._ledger._reserved_tokens += self.tokens
        self._ledger._reserved_cost += self._cost
        return self

    def __exit__(self, *error: object) -> None:
        self._ledger._reserved_tokens -= self.tokens
        self._ledger._reserved_cost -= self._cost
