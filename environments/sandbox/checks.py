"""Running check functions that came from outside: in workers of their own, never in those of an environment."""

from trajsmith.environments.sandbox.host import WorkerHost
from trajsmith.environments.sandbox.link import SandboxLink
from trajsmith.environments.sandbox.settings import SandboxSettings
from trajsmith.records import EnvironmentFault, JsonObject, JsonValue


class SandboxedCheck:
    """A check function with a process for every verdict: what it does for one cannot change what it says of another."""

    def __init__(self, name: str, source: str, function: str, settings: SandboxSettings | None = None) -> None:
        """Nothing starts yet.

        Args:
            name: Name of the check in texts.
            source: Python source that defines the function.
            function: Name of a function of `(initial_state, final_state, answer)`.
            settings: Limits and mode.
        """
        payload: JsonObject = {"name": name, "source": source, "function": function}
        self._host = WorkerHost(name, "check", payload, settings or SandboxSettings(), own_process=True)

    async def verdict(self, initial: JsonObject, final: JsonObject, answer: JsonValue) -> bool:
        """Return the verdict of the check.

        Raises:
            EnvironmentFault: It could not tell: it crashed, took too long, or returned something else.
            InputError: Its source is wrong.
        """
        link = SandboxLink(self._host)
        try:
            await link.start(b"{}", ())
            arguments = {"initial": initial, "final": final, "answer": answer}
            result = await link.call("check", arguments, "assistant", 0)
        finally:
            await link.close()
        if not (result.ok and isinstance(result.content, dict) and isinstance(result.content.get("result"), bool)):
            raise EnvironmentFault("protocol", self._host.name, "the check gave no verdict", "check")
        return result.content["result"] is True

    def close(self) -> None:
        """End its worker."""
        self._host.close()
