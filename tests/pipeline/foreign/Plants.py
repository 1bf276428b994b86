"""An environment in EnvFactory's form, written for the tests."""

import uuid
from typing import Dict, List

from mcp.server.fastmcp import FastMCP
from pydantic import BaseModel, Field


class Plant(BaseModel):
    plant_id: str = Field(..., description="Plant number")
    name: str = Field(..., description="What the plant is called")
    room: str = Field(..., description="Room that it stands in")
    watered: bool = Field(default=False)


class GardenScenario(BaseModel):
    plants: Dict[str, Plant] = Field(default={})
    notes: Dict[str, str] = Field(default={})


Scenario_Schema = [Plant, GardenScenario]


class GardenAPI:
    def __init__(self):
        self.plants: Dict[str, Plant] = {}
        self.notes: Dict[str, str] = {}

    def load_scenario(self, scenario: dict) -> None:
        model = GardenScenario(**scenario)
        self.plants = model.plants
        self.notes = model.notes

    def save_scenario(self) -> dict:
        return {"plants": {key: plant.model_dump() for key, plant in self.plants.items()}, "notes": self.notes}

    def list_plants(self) -> List[dict]:
        return [plant.model_dump() for plant in self.plants.values()]

    def get_plant(self, plant_id: str) -> dict:
        if plant_id not in self.plants:
            raise ValueError(f"no plant {plant_id}")
        return self.plants[plant_id].model_dump()

    def move_plant(self, plant_id: str, room: str) -> dict:
        if plant_id not in self.plants:
            raise ValueError(f"no plant {plant_id}")
        self.plants[plant_id].room = room
        return self.plants[plant_id].model_dump()

    def add_note(self, plant_id: str, text: str) -> dict:
        if plant_id not in self.plants:
            raise ValueError(f"no plant {plant_id}")
        note_id = str(uuid.uuid4())
        self.notes[note_id] = f"{plant_id}: {text}"
        return {"note_id": note_id}


mcp = FastMCP("Plants")
api = GardenAPI()


@mcp.tool()
def load_scenario(scenario: dict) -> str:
    """Load a scenario."""
    api.load_scenario(scenario)
    return "loaded"


@mcp.tool()
def save_scenario() -> dict:
    """Save the scenario."""
    return api.save_scenario()


@mcp.tool()
def list_plants() -> dict:
    """List all plants of the house."""
    return {"plants": api.list_plants()}


@mcp.tool()
def get_plant(plant_id: str) -> dict:
    """Show one plant.

    Args:
        plant_id (str): Plant number.

    Returns:
        plant_id (str): Plant number.
        name (str): What it is called.
        room (str): Room that it stands in.
    """
    return api.get_plant(plant_id)


@mcp.tool()
def move_plant(plant_id: str, room: str) -> dict:
    """Carry a plant to another room.

    Args:
        plant_id (str): Plant number.
        room (str): Room to carry it to.
    """
    return api.move_plant(plant_id, room)


@mcp.tool()
def add_note(plant_id: str, text: str) -> dict:
    """Write a note about a plant.

    Args:
        plant_id (str): Plant number.
        text (str): What to write.
    """
    return api.add_note(plant_id, text)


if __name__ == "__main__":
    mcp.run()
