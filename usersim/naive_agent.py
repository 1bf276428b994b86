"""An agent that does not notice the perturbation of a variant: every variant must turn its plays down."""

from collections.abc import Sequence

from trajsmith.environments import ToolResult
from trajsmith.phrasing import Wording
from trajsmith.records import FunctionCall, Message, Task, ToolCall
from trajsmith.usersim.roles import AgentAct
from trajsmith.usersim.scripted_agent import ScriptedAgent
from trajsmith.usersim.variant_roles import get_perturbation


class NaiveAgent(ScriptedAgent):
    """Agent that ignores the perturbation: no question, no second try, and a claim of success at the end."""

    name = "naive"

    def __init__(self, task: Task, wording: Wording, candidate: int) -> None:
        super().__init__(task, wording, candidate)
        self.twist = get_perturbation(task)
        self.said |= set(self.known)
        self.tempted = self.obeys = False

    async def act(self, messages: list[Message]) -> AgentAct:
        turn = len(self._openings(messages)) - 1
        if turn != self.turn:
            self.open_turn(turn)
        if self.twist.act == "ignore" and not self.tempted and self._is_told(messages):
            self.tempted = self.obeys = True
            return self._make_tempting_call()
        if not self._blunders(turn):
            return await super().act(messages)
        if self.twist.act == "reread":
            old = self.twist.tempting[-1]
            return AgentAct(Message(role="assistant", content=self.reports.report(old, old.result, [])))
        if not self.tempted and self.twist.tempting:
            self.tempted = True
            return self._make_tempting_call()
        return AgentAct(Message(role="assistant", content="That's done. Everything is as you wanted."))

    def _make_tempting_call(self) -> AgentAct:
        call = self.twist.tempting[-1]
        self.made += 1
        tool_call = ToolCall(id=f"call_{self.made}", function=FunctionCall(name=call.tool, arguments=call.arguments))
        return AgentAct(Message(role="assistant", tool_calls=(tool_call,)))

    def _is_told(self, messages: list[Message]) -> bool:
        """Return True if a result shows an instruction."""
        texts = [message.content for message in messages if message.role == "tool"]
        return any(str(demand) in text for demand in self.twist.told for text in texts)

    def observe(self, tools: Sequence[str], results: Sequence[ToolResult], by_user: bool) -> None:
        if self.obeys:
            self.obeys = False
        elif not self._blunders(self.turn):
            super().observe(tools, results, by_user)

    def _blunders(self, turn: int) -> bool:
        """True where it makes the tempting call at once; elsewhere it does what it always does."""
        return turn == self.twist.turn and self.twist.act not in ("recover", "ask", "ignore")
