"""The scenarios of the bundled environments speak of tools, parameters, fields and slots that exist."""

import pytest

from trajsmith.environments.library import ENVIRONMENTS
from trajsmith.environments.library.smart_home.seeds import SCENES
from trajsmith.environments.native_source import build_library_source
from trajsmith.grounding import check_scenarios


@pytest.mark.parametrize("name", ENVIRONMENTS.names())
def test_the_scenarios_fit_the_tools(name: str) -> None:
    source = build_library_source(name, {})
    check_scenarios(source.scenarios, ENVIRONMENTS.get(name).describe())


def test_requests_to_the_house_say_on_or_off_and_lock_or_unlock() -> None:
    """Nobody asks to "switch the lamp" that is on, only to be asked which of the two they mean."""
    source = build_library_source("smart_home", {})
    said = {"switch_device": "{power}", "set_door_lock": "{action}"}
    for tool, slot in said.items():
        phrases = source.phrasebook.tools[tool]
        steps = [step for story in source.scenarios.scenarios for step in story.steps if step.tool == tool]
        texts = [*phrases.ask, *phrases.say, *(text for step in steps for text in step.texts)]
        assert steps and not [text for text in texts if slot not in text]


def test_questions_before_a_link_say_who_can_open_it() -> None:
    confirm = build_library_source("file_store", {}).phrasebook.tools["create_share_link"].confirm
    assert not [text for text in confirm if "anybody who has it" not in text and "whoever" not in text]


def test_evening_scenes_only_move_to_a_later_time() -> None:
    """Who comes home later does not have the evening start earlier, whatever time a home has now."""
    latest = {recipe.name: max(recipe.times) for recipe in SCENES}
    stories = build_library_source("smart_home", {}).scenarios
    for story, step in (
        ("later_evenings", "first_shift"),
        ("other_mornings", "bedtime"),
        ("other_mornings", "first_shift"),
    ):
        found = stories.find(story)
        moved = found.find_step(step) if found else None
        assert moved is not None
        for name in moved.where["scene_name"]:
            assert min(map(str, moved.arguments["starts_at"])) > latest[str(name)], (story, name)
