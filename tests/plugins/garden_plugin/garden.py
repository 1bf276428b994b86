"""An environment."""

from trajsmith import Environment, EnvironmentState, StateModel, ToolError, tool


class Plant(StateModel):
    plant_id: str
    name: str
    watered: bool


class GardenState(EnvironmentState):
    plants: dict[str, Plant] = {}


class Garden(Environment[GardenState]):
    """A balcony garden."""

    NAMES = ("Basil", "Mint", "Sage", "Thyme")

    @classmethod
    def seed_state(cls, size, seed):
        plants = {f"P{n}": Plant(plant_id=f"P{n}", name=name, watered=False) for n, name in enumerate(cls.NAMES)}
        return GardenState(now="2026-05-04T09:00:00", seed=seed, plants=plants)

    @tool(effect="read")
    def list_plants(self) -> list[Plant]:
        """List all plants."""
        return list(self.state.plants.values())

    @tool(effect="write")
    def water_plant(self, plant_id: str) -> Plant:
        """Water a plant.

        Args:
            plant_id: Plant to water.
        """
        plant = self.lookup(self.state.plants, plant_id, "plant")
        if plant.watered:
            raise ToolError(f"{plant.name} was watered today")
        plant.watered = True
        return plant
