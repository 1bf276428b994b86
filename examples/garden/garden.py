"""Herbs in pots: an environment whose state is a Pydantic model and whose decorated methods are tools."""

from datetime import date, datetime
from typing import Annotated, Literal

from pydantic import Field

from trajsmith import Environment, EnvironmentState, StateModel, ToolError, tool

Place = Literal["kitchen", "greenhouse", "hall"]
NAMES = (
    "Basil",
    "Mint",
    "Sage",
    "Thyme",
    "Chives",
    "Parsley",
    "Rosemary",
    "Lavender",
    "Oregano",
    "Dill",
    "Lovage",
    "Tarragon",
)
PLACES: tuple[Place, ...] = ("kitchen", "greenhouse", "hall")
NUMBER = {"small": 4, "medium": 8, "large": 12}


class Plant(StateModel):
    plant_id: str
    plant_name: str
    place: Place
    last_watered: date


class GardenState(EnvironmentState):
    """The state; its base class carries the clock (`now`), the id counters and the random seed."""

    plants: dict[str, Plant] = {}


class Garden(Environment[GardenState]):
    """Herbs in pots, all over the house."""

    domain = "home/garden"
    policy = """
    1. A plant that was watered today is not watered again.
    2. Every plant has a name of its own.
    """

    @classmethod
    def seed_state(cls, size: str, seed: int) -> GardenState:
        """Return an initial state: 4, 8 or 12 plants, none of them watered today."""
        first = seed % len(NAMES)
        names = (NAMES[first:] + NAMES[:first])[: NUMBER[size]]
        plants = [
            Plant(
                plant_id=f"P{number}",
                plant_name=name,
                place=PLACES[(seed + number) % len(PLACES)],
                last_watered=date(2026, 5, 1 + (seed + number) % 3),
            )
            for number, name in enumerate(names, 1)
        ]
        return GardenState(
            now=datetime(2026, 5, 4, 9),
            seed=seed,
            counters={"plant": len(plants)},
            plants={plant.plant_id: plant for plant in plants},
        )

    @tool(effect="read")
    def list_plants(self, place: Place | None = None) -> list[Plant]:
        """List the plants.

        Args:
            place: Only plants that stand there.
        """
        return [plant for plant in self.state.plants.values() if place in (None, plant.place)]

    @tool(effect="write")
    def water_plant(self, plant_id: str) -> Plant:
        """Water a plant.

        Args:
            plant_id: Plant to water.
        """
        plant = self.lookup(self.state.plants, plant_id, "plant")
        if plant.last_watered == self.state.now.date():
            raise ToolError(f"{plant.plant_name} was watered today")
        plant.last_watered = self.state.now.date()
        return plant

    @tool(effect="write")
    def move_plant(self, plant_id: str, place: Place) -> Plant:
        """Move a plant to another room.

        Args:
            plant_id: Plant to move.
            place: Where it is to stand.
        """
        plant = self.lookup(self.state.plants, plant_id, "plant")
        if plant.place == place:
            raise ToolError(f"{plant.plant_name} already stands there")
        plant.place = place
        return plant

    @tool(effect="write")
    def pot_plant(
        self, plant_name: Annotated[str, Field(min_length=1, examples=["Coriander", "Savory"])], place: Place
    ) -> Plant:
        """Put a new plant into a pot. It is watered at once.

        Args:
            plant_name: Name of the new plant.
            place: Where it is to stand.
        """
        if any(plant.plant_name == plant_name for plant in self.state.plants.values()):
            raise ToolError(f"there is a plant with the name {plant_name}")
        plant = Plant(
            plant_id=self.new_id("plant", "P{:d}"),
            plant_name=plant_name,
            place=place,
            last_watered=self.state.now.date(),
        )
        self.state.plants[plant.plant_id] = plant
        return plant
