"""Initial states: scenarios that load, old ones that are completed, and those that cannot be."""

import pytest
from envfactory_files import LIBRARY, STATE, loaded, scenario, started

from trajsmith.environments.programs import apply_changes
from trajsmith.records import InputError, canonical_json

OLD = {key: value for key, value in STATE.items() if key != "current_time"}


def test_scenarios_are_the_states():
    second = STATE | {"current_time": "2025-01-01 00:00:00"}
    program = loaded(LIBRARY, scenarios=[scenario(STATE), scenario(second)])
    assert program.states(0) == program.states(1) == [STATE, second]


def test_an_old_scenario_gets_its_clock_and_that_is_noted():
    program = loaded(LIBRARY, scenarios=[scenario(OLD, "one")])
    assert program.states(0) == [STATE | {"current_time": "2024-01-01 00:00:00"}]
    assert program.notes == [
        "scenario one does not load (load_scenario refuses it: current_time: Field required); "
        'it does with {"current_time":"2024-01-01 00:00:00"}'
    ]


def test_a_time_in_another_form_is_kept_as_a_time():
    given = STATE | {"current_time": "2024-05-01T10:00:00"}
    assert loaded(LIBRARY, scenarios=[scenario(given)]).states(0) == [STATE]


def test_defaults_of_the_model_are_left_to_the_model():
    program = loaded(LIBRARY, scenarios=[scenario({"books": {}})])
    assert "opening" not in program.states(0)[0]
    state = canonical_json(program.states(0)[0])
    assert apply_changes(state, program.start(state).changes())["opening"] == {"monday": "9-17"}


def test_scenarios_that_do_not_load_are_left_out():
    program = loaded(LIBRARY, scenarios=[scenario(STATE), scenario(STATE | {"books": 3}, "two"), scenario([], "three")])
    assert program.states(0) == [STATE]
    assert [note.partition(":")[0] for note in program.notes] == [
        "scenario two does not load",
        "scenario three does not load",
    ]


def test_what_a_model_does_not_know_is_noted():
    program = loaded(LIBRARY, scenarios=[scenario(STATE | {"rooms": {}}, "one")])
    assert program.notes == ["scenario one has rooms, which its model does not know"]


def test_without_scenarios_a_file_starts_as_it_starts():
    program = loaded(LIBRARY)
    assert program.states(0) == [{"current_time": "2024-01-01 00:00:00"}]
    assert started(program).call("get_book", {"number": 1}).error == "refused"


def test_a_file_that_accepts_nothing():
    source = LIBRARY.replace("api.load_scenario(scenario)", "raise ValueError('never')")
    program = loaded(source, scenarios=[scenario(STATE)])
    with pytest.raises(InputError) as caught:
        program.states(0)
    assert "Library.py: no initial state:" in str(caught.value)
    assert "load_scenario refuses it: never" in str(caught.value)


def test_states_are_not_touched_by_plays():
    program = loaded(LIBRARY, scenarios=[scenario(STATE)])
    play = started(program)
    play.call("lend", {"number": 1})
    play.changes()
    assert program.states(0) == [STATE]
