"""Expansion of a list of domains: rounds in which a model proposes further ones (Self-Instruct, as AWM 3.1 uses it).

Each round shows some known domains and asks for others. A second role judges which of them keep records that are
changed. Code refuses what is known, what means nearly the same, and what belongs to a category that is full.
"""

import random
import re
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Annotated, Any, ClassVar

from pydantic import Field, StringConstraints

from trajsmith.envgen.sources import ThemeSource
from trajsmith.envgen.sources.domains import find_name_fault
from trajsmith.envgen.synthesis.prompted_generation import PromptedGenerator
from trajsmith.records import FrozenModel, ModelFault, Record, StepJournal, content_hash, derive_seed, to_one_line

ROUNDS = "expansion"
"""Journal of the rounds."""
SHOWN_EXAMPLES, SHOWN_CATEGORIES = 24, 40
MOST_FRUITLESS = 3
"""Rounds one after another that bring nothing, after which it ends."""
LEAST_CAP = 3
_WORD = re.compile(r"[^a-z0-9]+")

Line = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=400)]
Encoder = Callable[[Sequence[str]], Any]
"""Texts to unit vectors, float32 [n, d]."""


class ExpansionPlan(FrozenModel):
    """Settings of an expansion."""

    count: int = Field(ge=1, le=100_000)
    """Domains that are wanted, the seeds included."""
    batch: int = Field(20, ge=1, le=60)
    """Domains that a round asks for."""
    share: float = Field(0.08, gt=0, le=1)
    """Largest share of the wanted domains that one category may have."""
    alike: float = Field(0.7, gt=0, le=1)
    """Similarity of meaning from which two domains count as the same."""
    seed: int = 0

    @property
    def cap(self) -> int:
        """Domains of one category at most."""
        return max(LEAST_CAP, round(self.count * self.share))


class ProposedDomain(FrozenModel):
    """A domain as a model proposes it."""

    name: Line
    summary: Line
    """One sentence: whose service it is, and what is done there."""
    category: Annotated[str, StringConstraints(strip_whitespace=True, min_length=2, max_length=40)]


class DomainProposals(FrozenModel):
    """Answer of a round."""

    domains: tuple[ProposedDomain, ...] = Field(min_length=1, max_length=80)


class DomainJudgement(FrozenModel):
    """Judgement of one domain: it keeps records that are changed, or not."""

    number: int
    stateful: bool
    reason: str = Field(max_length=300)


class DomainJudgements(FrozenModel):
    """Judgements of all domains of a round."""

    domains: tuple[DomainJudgement, ...]


class ExpandedDomain(FrozenModel):
    """One domain of the list."""

    name: str
    summary: str
    category: str


class ExpansionRound(Record):
    """One round: domains that were taken, and those that were refused, with the reason."""

    PREFIX: ClassVar[str] = "round"

    number: int
    taken: tuple[ExpandedDomain, ...]
    refused: dict[str, str]
    """Name to reason."""
    fault: str = ""
    """Why there was no usable answer."""
    prompt: str = ""
    model: str = ""


class ExpansionResult(FrozenModel):
    """List of domains, and how it came about."""

    domains: tuple[ExpandedDomain, ...]
    seeds: int
    rounds: int
    refused: dict[str, int]
    """Reason to number."""
    stopped: str

    @property
    def categories(self) -> Counter[str]:
        return Counter(one.category for one in self.domains)


class DomainExpander:
    """Expansion of one list; the same call after a kill goes on with the next round."""

    def __init__(
        self, generator: PromptedGenerator, store: StepJournal, encode: Encoder, plan: ExpansionPlan, makers: str
    ) -> None:
        self._generator, self._store, self._encode, self._plan, self._makers = generator, store, encode, plan, makers
        self._domains: list[ExpandedDomain] = []
        self._known: set[str] = set()
        self._counts: Counter[str] = Counter()

    async def expand(
        self, seeds: Sequence[tuple[str, ThemeSource]], tell: Callable[[str], None] = lambda line: None
    ) -> ExpansionResult:
        """Expand seeds, each with its category, until enough are there, or nothing new comes.

        Raises:
            ModelFault: A model cannot be reached; finished rounds stay.
            BudgetExceeded: The budget is spent; finished rounds stay.
        """
        for category, source in seeds:
            self._take(ExpandedDomain(name=source.name, summary=source.summary, category=category))
        base = content_hash([[one.model_dump() for one in self._domains], self._plan.model_dump(), self._makers], 16)
        refused, fruitless, number = Counter[str](), 0, 0
        stopped = f"{self._plan.count} domains"
        while len(self._domains) < self._plan.count:
            number += 1
            step = self._store.get(ROUNDS, ExpansionRound, f"{base}:{number}")
            if step is None:
                step = await self._ask(number)
                self._store.put(ROUNDS, f"{base}:{number}", step)
                tell(self._describe(step))
            for one in step.taken:
                self._take(one)
            refused.update(reason.partition(":")[0] for reason in step.refused.values())
            refused.update({"no usable answer": 1} if step.fault else {})
            fruitless = 0 if step.taken else fruitless + 1
            if fruitless >= MOST_FRUITLESS:
                why = step.fault or "what is proposed is known, full or without a state"
                stopped = f"{fruitless} rounds brought nothing new ({why})"
                break
        return ExpansionResult(
            domains=tuple(self._domains[: max(self._plan.count, len(seeds))]), seeds=len(seeds), rounds=number,
            refused=dict(refused.most_common()), stopped=stopped,
        )  # fmt: skip

    def _take(self, domain: ExpandedDomain) -> None:
        self._domains.append(domain)
        self._known.add(_fold(domain.name))
        self._counts[domain.category] += 1

    async def _ask(self, number: int) -> ExpansionRound:
        plan, key = self._plan, f"expansion:{number}"
        rng = random.Random(derive_seed(plan.seed, key))
        examples = rng.sample(self._domains, min(SHOWN_EXAMPLES, len(self._domains)))
        full = sorted(category for category, count in self._counts.items() if count >= plan.cap)
        wanted = min(plan.batch, plan.count - len(self._domains) + plan.batch // 4 + 1)
        try:
            answer, provenance = await self._generator.answer(
                "expand", key, DomainProposals, None,
                count=wanted, full=full, examples=[one.model_dump() for one in examples],
                categories=[f"{name} ({count})" for name, count in self._counts.most_common(SHOWN_CATEGORIES)],
            )  # fmt: skip
            taken, refused = self._sift(answer.domains)
            if taken:
                taken, judged = await self._judge(key, taken)
                refused |= judged
        except ModelFault as fault:
            if fault.kind != "bad_reply":
                raise
            return ExpansionRound(number=number, taken=(), refused={}, fault=to_one_line(fault.message, 200))
        return ExpansionRound(
            number=number, taken=tuple(taken), refused=refused, prompt=provenance.prompt, model=provenance.model
        )

    def _sift(self, proposed: Sequence[ProposedDomain]) -> tuple[list[ExpandedDomain], dict[str, str]]:
        """Return what is new and fits, and the reasons of the rest, by name."""
        taken, refused = list[ExpandedDomain](), dict[str, str]()
        room = self._plan.count - len(self._domains)
        counts, places = Counter(self._counts), list(range(len(self._domains)))
        names = [*(one.name for one in self._domains), *(one.name for one in proposed)]
        summaries = [*(one.summary for one in self._domains), *(one.summary for one in proposed)]
        # encoders may number words by what they are given, so all texts go together
        vectors = self._encode([f"{name} {summary}" for name, summary in zip(names, summaries, strict=True)])
        for place, one in enumerate(proposed, len(self._domains)):
            name, category = " ".join(one.name.split()), _fold(one.category) or "other"
            fault = find_name_fault(name)
            scores = (vectors[places] @ vectors[place]).tolist() if places else [0.0]
            score = max(scores)
            like = names[places[scores.index(score)]] if places else ""
            if fault:
                refused[name[:60]] = f"no name of a domain: {fault}"
            elif _fold(name) in self._known or _fold(name) in {_fold(other.name) for other in taken}:
                refused[name] = "known"
            elif score >= self._plan.alike:
                refused[name] = f"nearly the same as another: {like} ({score:.2f})"
            elif counts[category] >= self._plan.cap:
                refused[name] = f"its category is full: {category}"
            elif len(taken) >= room:
                refused[name] = "beyond the wanted number"
            else:
                taken.append(ExpandedDomain(name=name, summary=" ".join(one.summary.split()), category=category))
                counts[category] += 1
                places.append(place)
        return taken, refused

    async def _judge(self, key: str, proposed: Sequence[ExpandedDomain]) -> tuple[list[ExpandedDomain], dict[str, str]]:
        def find_fault(answer: DomainJudgements) -> str:
            missing = set(range(1, len(proposed) + 1)) - {one.number for one in answer.domains}
            return f"the domains {sorted(missing)[:10]} are not judged." if missing else ""

        answer, _ = await self._generator.answer(
            "screen", key, DomainJudgements, find_fault, domains=[one.model_dump() for one in proposed]
        )
        judged = {one.number: one for one in answer.domains}
        taken = [one for number, one in enumerate(proposed, 1) if judged[number].stateful]
        refused = {
            one.name: f"keeps no state: {to_one_line(judged[number].reason, 120)}"
            for number, one in enumerate(proposed, 1)
            if not judged[number].stateful
        }
        return taken, refused

    def _describe(self, step: ExpansionRound) -> str:
        have = len(self._domains) + len(step.taken)
        lost = f", {len(step.refused)} refused" if step.refused else ""
        fault = f", no usable answer: {step.fault}" if step.fault else ""
        return f"round {step.number}: {len(step.taken)} new{lost}{fault}; {have}/{self._plan.count}"


def _fold(text: str) -> str:
    return _WORD.sub(" ", text.casefold()).strip()
