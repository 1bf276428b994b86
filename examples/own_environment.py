"""An environment of your own: a Pydantic state, and a class whose `@tool` methods are tools.

    python examples/own_environment.py

First its tools are called by hand, then dialogues are made with it. In the run this file is executed in the sandbox.
"""

import trajsmith as ts


class Plant(ts.StateModel):
    plant_id: str
    name: str
    watered: bool


class GardenState(ts.EnvironmentState):
    plants: dict[str, Plant] = {}


class Garden(ts.Environment[GardenState]):
    """A balcony garden."""

    policy = "1. A plant that was watered today is not watered again."

    @classmethod
    def seed_state(cls, size: str, seed: int) -> GardenState:
        names = ("Basil", "Mint", "Sage", "Thyme")
        plants = {f"P{n}": Plant(plant_id=f"P{n}", name=name, watered=False) for n, name in enumerate(names)}
        return GardenState(now="2026-05-04T09:00:00", seed=seed, plants=plants)

    @ts.tool(effect="read")
    def list_plants(self) -> list[Plant]:
        """List all plants."""
        return list(self.state.plants.values())

    @ts.tool(effect="write")
    def water_plant(self, plant_id: str) -> Plant:
        """Water a plant.

        Args:
            plant_id: Plant to water.
        """
        plant = self.lookup(self.state.plants, plant_id, "plant")
        if plant.watered:
            raise ts.ToolError(f"{plant.name} was watered today")
        plant.watered = True
        return plant


if __name__ == "__main__":
    with ts.open_environment(Garden) as garden:
        print(garden.call("water_plant", plant_id="P1"))
        print(garden.call("water_plant", plant_id="P1"))  # refused: a result that the agent sees
    config = {"name": "garden", "environments": [{"python": f"{__file__}:Garden"}]}
    config |= {"sample": {"count": 8, "length": [2, 3]}, "ground": {"min_calls": 2}}
    run = ts.run(config, run="runs/garden", fresh=True)
    print(run.summary.funnel)
