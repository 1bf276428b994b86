"""What the tools do to the state, and what they refuse."""

import pytest
from garden import Garden


@pytest.fixture
def garden() -> Garden:
    return Garden(Garden.seed_state("small", seed=0))


def test_a_watered_plant_is_not_watered_again(garden):
    assert garden.call("water_plant", {"plant_id": "P1"}).content["last_watered"] == "2026-05-04"
    refusal = garden.call("water_plant", {"plant_id": "P1"})
    assert refusal.error == "refused" and "was watered today" in refusal.text


def test_a_new_plant_gets_the_next_id_and_a_name_of_its_own(garden):
    plant = garden.call("pot_plant", {"plant_name": "Savory", "place": "hall"})
    assert plant.content["plant_id"] == "P5"
    before = garden.dump()
    assert garden.call("pot_plant", {"plant_name": "Savory", "place": "kitchen"}).error == "refused"
    assert garden.dump() == before


def test_a_moved_plant_is_listed_where_it_stands(garden):
    assert garden.call("move_plant", {"plant_id": "P2", "place": "kitchen"}).ok
    plants = garden.call("list_plants", {"place": "kitchen"}).content["result"]
    assert "P2" in {plant["plant_id"] for plant in plants}


@pytest.mark.parametrize("size", ["small", "medium", "large"])
def test_initial_states_are_made_the_same_way_every_time(size):
    states = [Garden(Garden.seed_state(size, seed=3)).dump() for _ in range(2)]
    assert states[0] == states[1]
