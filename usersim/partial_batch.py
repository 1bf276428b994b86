"""The scripted agent where some things of a batch are refused: the others are done, and the answer says both."""

from collections.abc import Sequence
from dataclasses import replace

from trajsmith.environments import ToolResult
from trajsmith.grounding import find_values
from trajsmith.phrasing import capitalize_first, draw_pattern, is_value_mentioned, join_words, load_refusals
from trajsmith.records import FromOutput, FunctionCall, GoldCall, JsonValue, ToolCall
from trajsmith.usersim.roles import AgentAct
from trajsmith.usersim.variant_roles import VariantAgent
from trajsmith.usersim.variant_texts import rephrase_plainly

NAMINGS = 4
"""Times that a name is drawn for one that tells a thing from the others."""
SOME_DONE = ("These are done:", "This is what worked:", "These went through:", "Here is what I could do:")


class PartialBatchAgent(VariantAgent):
    """Plays the agent of a batch of which a part is refused."""

    openings = SOME_DONE
    has_told = False
    """It has said what cannot be done when it asked for a yes."""
    tried = 0
    """Refused members that were called, in the order of the list."""
    slots: Sequence[int | None] = ()
    """Of each call of the last message: its gold call, or None for one that is refused."""

    def _call(self, index: int, answered: bool) -> AgentAct:
        act = super()._call(index, answered)
        self.slots = ()
        if not act.message.tool_calls or self.twist.visible or not self._is_perturbed(index):
            return act
        calls: list[ToolCall] = []
        slots: list[int | None] = []
        last = max(number for number in range(self.stop) if self.calls[number].tool == self.twist.tool)
        for member, call in zip(self.group, act.message.tool_calls, strict=True):
            while self._is_next_before(call.function.arguments):
                calls.append(self._call_refused())
                slots.append(None)
            calls.append(call)
            slots.append(member)
        while last in self.group and self.tried < len(self.twist.refused):
            calls.append(self._call_refused())
            slots.append(None)
        self.slots = slots
        return replace(act, message=act.message.model_copy(update={"tool_calls": tuple(calls)}))

    def observe(self, tools: Sequence[str], results: Sequence[ToolResult], by_user: bool) -> None:
        """Take the results of the gold calls; those of the others are refusals, which the answer tells."""
        if by_user or len(self.slots) != len(results):
            super().observe(tools, results, by_user)
            return
        taken = [number for number, member in enumerate(self.slots) if member is not None]
        self.slots = ()
        super().observe([tools[number] for number in taken], [results[number] for number in taken], by_user)

    def _is_next_before(self, arguments: dict[str, JsonValue]) -> bool:
        """Return True if the next refused member stands in the list before the thing of a call."""
        if self.tried >= len(self.twist.refused):
            return False
        refused = self.twist.refused[self.tried].call
        return self._get_position(refused) < self._get_position(refused.model_copy(update={"arguments": arguments}))

    def _get_position(self, call: GoldCall) -> int:
        """Return the row of the list that a call is about; the end of it for a thing that is not there."""
        name, source = next((name, each) for name, each in call.provenance.items() if isinstance(each, FromOutput))
        values = [match.value for match in find_values(self._get_result(source.call).content, source.path)]
        return values.index(call.arguments[name]) if call.arguments.get(name) in values else len(values)

    def _call_refused(self) -> ToolCall:
        member = self.twist.refused[self.tried]
        self.tried += 1
        self.made += 1
        function = FunctionCall(name=member.call.tool, arguments=self._arguments(member.call))
        return ToolCall(id=f"call_{self.made}", function=function)

    def _confirm_all(self) -> str:
        """Ask once for everything that is going to be tried; what the rules forbid is named before."""
        calls = [self.calls[index] for index in self.asking]
        if not self.twist.visible:
            calls = sorted([*calls, *(member.call for member in self.twist.refused)], key=self._get_position)
        question = self._write_for_all(calls)
        if not self.twist.visible:
            return question
        left_out, self.has_told = self._describe_left_out(), True
        return f"{left_out} {question}"

    def _answer_batch(self) -> str:
        text = super()._answer_batch()
        if self.turn != self.twist.turn or self.has_told:
            return text
        between = "\n\n" if "\n" in text else " "
        return f"{text}{between}{self._describe_left_out()}"

    def _describe_left_out(self) -> str:
        """Return what cannot be done and why, each thing by name where the reason does not name it."""
        writer = self.open_writer()
        reasons: dict[str, list[str]] = {}
        for member in self.twist.refused:
            because = rephrase_plainly(member.because).rstrip(".")
            name = next(name for name, source in member.call.provenance.items() if isinstance(source, FromOutput))
            row = self._identified_rows(member.call)[name]
            drafts = [writer.name_row(name, row) for _ in range(NAMINGS)]
            called = [value for value in member.told if any(is_value_mentioned(text, value) for text in drafts)]
            longest = max((value for value in called if isinstance(value, str)), key=len, default="")
            named = bool(longest) and is_value_mentioned(because, longest)
            distinct = [text for text in drafts if any(is_value_mentioned(text, value) for value in called)]
            reasons.setdefault(because, []).extend([] if named else (distinct or drafts)[:1])
        refusals = load_refusals()
        sentences: list[str] = []
        telling = [because for because, names in reasons.items() if not names]
        if len(telling) > 1:  # one sentence for all things that their reasons name
            reasons = {_join_reasons(telling): [], **{because: names for because, names in reasons.items() if names}}
        several = len(telling) > 1
        for reason, names in sorted(reasons.items(), key=lambda each: not each[1]):  # what its reason names comes last
            if self.twist.visible:
                patterns = refusals.left_out_rule if names else refusals.left_out_reason_rule
            else:
                patterns = refusals.left_out if names else refusals.left_out_reason
            if several and not names:
                patterns = refusals.left_out_reasons
            elif sentences and not names:
                patterns = refusals.left_out_reason_too
            text = draw_pattern(patterns, self.rng, self.frames).replace("{count}", str(len(telling)))
            reason = ". ".join(
                capitalize_first(part) if number else part for number, part in enumerate(reason.split("; "))
            )
            if len(names) > 1:
                reason = refusals.left_out_shared[len(names) > 2].replace("{}", reason)
            sentences.append(capitalize_first(text.replace("{name}", join_words(names)).replace("{}", reason)))
        return " ".join(sentences)


def _join_reasons(reasons: Sequence[str]) -> str:
    """Join reasons to one clause; the rule that all of them end with is said once."""
    parts = [reason.partition("; ") for reason in reasons]
    rules = dict.fromkeys(rule for _, _, rule in parts)
    if len(rules) > 1 or "" in rules:
        return "; ".join(reasons)
    return f"{join_words([fact for fact, _, _ in parts])}; {next(iter(rules))}"
