"""A harbour for the tests of evidence: ids that fit and ids that only look so, free text, a tool that breaks."""

from datetime import datetime
from typing import Any

from trajsmith.environments import Environment, EnvironmentState, NativeSession, StateModel, tool
from trajsmith.phrasing import Phrasebook
from trajsmith.records import EnvironmentSpec, JsonObject, ToolSpec


class Boat(StateModel):
    boat_id: str
    name: str
    berth: str


class HarbourState(EnvironmentState):
    boats: dict[str, Boat] = {}
    notes: list[str] = []


class BoatRow(StateModel):
    boat_id: str
    name: str


class Wreck(StateModel):
    boat_id: str
    """A number of the museum, and no boat of the harbour."""


class Plate(StateModel):
    engraved: str
    """The same ids under another name."""


class Made(StateModel):
    text: str
    number: int


class Harbour(Environment[HarbourState]):
    """A harbour."""

    @tool(effect="read")
    def list_boats(self) -> list[BoatRow]:
        """All boats."""
        return [BoatRow(boat_id=boat.boat_id, name=boat.name) for boat in self.state.boats.values()]

    @tool(effect="read")
    def list_wrecks(self) -> list[Wreck]:
        """Boats of the museum."""
        return [Wreck(boat_id=f"W{number}00") for number in range(1, 7)]

    @tool(effect="read")
    def read_plates(self) -> list[Plate]:
        """What is engraved on the quay."""
        return [Plate(engraved=boat.boat_id) for boat in self.state.boats.values()]

    @tool(effect="read")
    def get_boat(self, boat_id: str) -> Boat:
        """One boat.

        Args:
            boat_id: Which boat.
        """
        return self.lookup(self.state.boats, boat_id, "boat")

    @tool(effect="write")
    def write_note(self, name: str) -> Made:
        """Pin a note to the board.

        Args:
            name: Any words.
        """
        self.state.notes.append(name)
        return Made(text="pinned", number=len(self.state.notes))

    @tool(effect="read")
    def fall_over(self) -> str:
        """Breaks."""
        raise ZeroDivisionError("of course")


class HarbourSource:
    """Its sessions, with two initial states.

    `lies` adds a promised field to the output of get_boat; `silent` leaves out all output schemas.
    """

    name = "harbour"
    isolation = "in process"
    notes: tuple[str, ...] = ()
    phrasebook = Phrasebook()

    def __init__(self, lies: bool = False, silent: bool = False) -> None:
        self.lies = lies
        self.silent = silent

    async def spec(self) -> EnvironmentSpec:
        spec = Harbour.describe()
        if self.silent:
            tools = tuple(tool.model_copy(update={"output_schema": None}) for tool in spec.tools)
        else:
            tools = tuple(map(_lying, spec.tools)) if self.lies else spec.tools
        return spec.model_copy(update={"tools": tools})

    async def states(self, seed: int) -> list[JsonObject]:
        return [_state(first) for first in (11, 57)]

    async def open(self) -> NativeSession:
        return NativeSession(Harbour, Harbour.describe())


def _lying(spec: ToolSpec) -> ToolSpec:
    if spec.name != "get_boat":
        return spec
    schema: dict[str, Any] = dict(spec.output_schema or {})
    schema["properties"] = {**schema["properties"], "owner_id": {"type": "string"}}
    schema["required"] = [*schema.get("required", ()), "owner_id"]
    return spec.model_copy(update={"output_schema": schema})


def _state(first: int) -> JsonObject:
    boats = {
        f"B{number}": Boat(boat_id=f"B{number}", name=f"Lady {number}", berth=f"Q-{number}")
        for number in range(first, first + 6)
    }
    return HarbourState(now=datetime(2026, 3, 2, 9), boats=boats).model_dump(mode="json")
