"""A cellar for the tests: boxes with keys, a door that never opens with the key that is found first, broken tools."""

from datetime import datetime
from typing import Any, ClassVar, Literal

from trajsmith.environments import (
    Environment,
    EnvironmentState,
    NativeSession,
    StateModel,
    ToolError,
    ToolResult,
    tool,
)
from trajsmith.grounding.fields import list_input_fields, list_output_fields
from trajsmith.grounding.names import is_identifier
from trajsmith.records import Actor, Chain, Dependency, EnvironmentSpec, JsonObject, derive_seed

COLOURS = ("red", "green", "blue", "white", "black")


class Box(StateModel):
    box_id: str
    colour: str
    key_id: str


class CellarState(EnvironmentState):
    boxes: dict[str, Box] = {}
    opened: list[str] = []
    rings: list[str] = []


class BoxRow(StateModel):
    box_id: str
    colour: str


class Key(StateModel):
    key_id: str
    from_box: str


class Door(StateModel):
    opened_with: str
    rings: int


class Ticket(StateModel):
    ticket_id: str


class Cellar(Environment[CellarState]):
    """A cellar."""

    first_key: ClassVar[str | None] = None
    """The key that was found first; it fits nowhere, ever. Kept outside the state so that no search can be lucky."""

    @tool(effect="read")
    def list_boxes(self) -> list[BoxRow]:
        """All boxes."""
        return [BoxRow(box_id=box.box_id, colour=box.colour) for box in self.state.boxes.values()]

    @tool(effect="read")
    def get_key(self, box_id: str) -> Key:
        """The key in a box.

        Args:
            box_id: Which box.
        """
        box = self.lookup(self.state.boxes, box_id, "box")
        Cellar.first_key = Cellar.first_key or box.key_id
        return Key(key_id=box.key_id, from_box=box.colour)

    @tool(effect="write")
    def ring_bell(self, song: Literal["ding", "dong"]) -> Door:
        """Ring.

        Args:
            song: What to ring.
        """
        self.state.rings.append(song)
        return Door(opened_with="", rings=len(self.state.rings))

    @tool(effect="write")
    def open_door(self, key_id: str) -> Door:
        """Open the door.

        Args:
            key_id: The key.
        """
        self.state.opened.append(key_id)
        if key_id == Cellar.first_key:
            raise ToolError("this key does not fit")
        return Door(opened_with=key_id, rings=len(self.state.rings))

    @tool(effect="read")
    def list_spiders(self) -> list[str]:
        """There are none."""
        return []

    @tool(effect="write")
    def do_nothing(self) -> str:
        """Says that it writes, but never does."""
        return "done"

    @tool(effect="write")
    def request_ticket(self) -> Ticket:
        """Always refused."""
        raise ToolError("no tickets today")

    @tool(effect="write")
    def use_ticket(self, ticket_id: str) -> Door:
        """Needs a ticket, which nobody gives.

        Args:
            ticket_id: The ticket.
        """
        self.state.opened.append(ticket_id)
        return Door(opened_with=ticket_id, rings=0)

    @tool(effect="write", actor="user")
    def clap(self) -> str:
        """The user claps."""
        self.state.rings.append("clap")
        return "clap"

    @tool(effect="read")
    def crash(self) -> str:
        """Falls over."""
        raise ZeroDivisionError("of course")

    @tool(effect="read")
    def mumble(self) -> int:
        """Gives a text where it says a number."""
        return "seven"  # type: ignore[return-value]


class Restarting:
    """The same session without checkpoints, as a live server is: going back means to start anew."""

    def __init__(self) -> None:
        self.inner = NativeSession(Cellar, Cellar.describe())
        self.spec: EnvironmentSpec = self.inner.spec
        self.resets = 0

    async def reset(self, state: JsonObject) -> None:
        self.resets += 1
        await self.inner.reset(state)

    async def call(self, tool: str, arguments: JsonObject, actor: Actor = "assistant") -> ToolResult:
        return await self.inner.call(tool, arguments, actor)

    async def snapshot(self) -> JsonObject:
        return await self.inner.snapshot()

    async def state_hash(self) -> str:
        return await self.inner.state_hash()

    async def close(self) -> None:
        await self.inner.close()


def cellar_state(boxes: int = 5) -> JsonObject:
    rows = {
        f"B{number}": Box(box_id=f"B{number}", colour=colour, key_id=f"K{number}")
        for number, colour in enumerate(COLOURS[:boxes])
    }
    return CellarState(now=datetime(2026, 3, 2, 9), boxes=rows).model_dump(mode="json")


def chain_of(*tools: str, seed: int = 0, environment: Any = Cellar) -> Chain:
    """A chain of these tools; every id comes from each earlier tool that gives a field of its name."""
    spec = environment.describe()
    fields = {name: list_output_fields(spec.tool(name)) for name in tools}
    dependencies = tuple(
        Dependency(consumer=consumer, parameter=leaf.path, producer=producer, output=field.path)
        for consumer, tool in enumerate(tools)
        for leaf in list_input_fields(spec.tool(tool))
        if is_identifier(leaf.name)
        for producer in range(consumer - 1, -1, -1)
        for field in fields[tools[producer]]
        if field.name == leaf.name
    )
    return Chain(
        index=seed,
        environment=spec.name,
        tools=tools,
        dependencies=dependencies,
        state="state",
        sampler={},
        seed=derive_seed("cellar", seed),
    )
