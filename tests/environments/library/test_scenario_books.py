"""The scenarios of the bundled environments speak of tools, parameters, fields and slots that exist."""

import re
from pathlib import Path

import pytest

from trajsmith.environments.library import ENVIRONMENTS, list_environments_in
from trajsmith.environments.library.smart_home.seeds import SCENES
from trajsmith.environments.native_source import build_library_source
from trajsmith.grounding import check_phrasebook, check_scenarios
from trajsmith.phrasing import LANGUAGE_CODES, LanguageCode, use_language
from trajsmith.phrasing.templates import render_phrase
from trajsmith.records import InputError


@pytest.mark.parametrize(
    ("name", "language"), [(name, language) for language in LANGUAGE_CODES for name in list_environments_in(language)]
)
def test_the_words_fit_the_tools(name: str, language: LanguageCode) -> None:
    """Runs do not check them again."""
    with use_language(language):
        source, spec = build_library_source(name, {}), ENVIRONMENTS.get(name).describe()
        assert source.has_bundled_words and source.phrasebook.tools
        check_phrasebook(source.phrasebook, spec)
        check_scenarios(source.scenarios, spec)


def test_words_of_users_are_checked_in_place_of_bundled_ones(tmp_path: Path) -> None:
    (tmp_path / "phrases.yaml").write_text("tools: {no_such_tool: {ask: [do it]}}\n", "utf-8")
    source = build_library_source("retail", {}, tmp_path / "phrases.yaml")
    assert not source.has_bundled_words
    with pytest.raises(InputError, match="no_such_tool"):
        check_phrasebook(source.phrasebook, ENVIRONMENTS.get("retail").describe())


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
    assert not [text for text in confirm if "anybody" not in text and "public" not in text]


def test_only_of_files_without_a_link_is_it_asked_who_can_open_them() -> None:
    """Anybody who has a link can open the file, and the list of shares does not show them."""
    source = build_library_source("file_store", {})
    phrases, asked = source.phrasebook.tools["list_shares"], 0
    assert not [text for text in (*phrases.ask, *phrases.say) if "open" in text or "access" in text]
    for story in source.scenarios.scenarios:
        for step in (step for step in story.steps if step.tool == "list_shares"):
            first = story.find_step(step.same_as.get("file_id", step.name).partition(".")[0])
            if any("open" in text or "access" in text for text in step.texts):
                asked += 1
                assert first is not None and first.where["link_until"] == (None,), (story.id, step.name)
    assert asked >= 3


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


def test_rooms_that_must_be_refundable_are_booked_before_their_deadline() -> None:
    """A stay can be cancelled until two days before it: later, "it has to be refundable" is of no use."""
    found = [
        step
        for story in build_library_source("travel", {}).scenarios.scenarios
        if any(step.arguments.get("refundable_only") == (True,) for step in story.steps)
        for step in story.steps
        if step.tool == "reserve_room"
    ]
    assert found and all(step.days_ahead.get("arrival_date", 0) > 2 for step in found)


@pytest.mark.parametrize("manager", [{"manager_name": None}, {"manager_name": "Ivo Xu"}, {}])
def test_questions_about_a_licence_name_a_manager_only_where_the_record_does(manager: dict[str, object]) -> None:
    """Without a manager nobody approves; while the record is not at hand, there may be one."""
    confirm = build_library_source("helpdesk", {}).phrasebook.tools["request_licence"].confirm
    row = {"monthly_cost": 59.7, "needs_approval": True, **manager}
    said = [render_phrase(text, {"software_id": "Probe Profiler", "row": row}) for text in confirm]
    texts = [text for text in said if text is not None]
    assert len(texts) >= 3
    for text in texts:
        assert ("Ivo Xu" in text) == bool(manager.get("manager_name"))
        assert "your manager" not in text and "approval is asked" not in text
        assert ("a manager has to approve it if you have one" in text) == (not manager)


@pytest.mark.parametrize(
    ("departs_at", "late"),
    [("2026-02-21T08:00:00", True), ("2026-02-26T20:00:00", True), ("2026-02-27T08:00:00", False)],
)
def test_a_saver_ticket_is_offered_with_the_refund_that_it_still_has(departs_at: str, late: bool) -> None:
    """On the seventh day before, the hour decides, which is not known: the rule is told."""
    confirm = build_library_source("travel", {}).phrasebook.tools["book_trip"].confirm
    row = {"departs_at": departs_at, "saver_fare": 20.0, "flexible_fare": 31.0, "move_fee": 0.0}
    values = {"departure_id": "the train", "fare": "saver", "passengers": 2, "travel_class": "standard", "row": row}
    texts = [render_phrase(text, {**values, "now": "2026-02-19"}) for text in confirm if "row." in text]
    assert len(texts) >= 10
    for text in texts:
        assert text is not None
        none = re.search("no refund|can't be refunded|isn't refundable", text) is not None
        assert none == late and ("half" in text) != late


def test_batches_of_cards_leave_out_what_is_blocked_for_good() -> None:
    batches = build_library_source("bank", {}).scenarios.batches
    (unfreeze,) = [batch for batch in batches if batch.tool == "unfreeze_card"]
    assert unfreeze.where == {"status": ("frozen",)}
    assert not [text for text in unfreeze.ask if "blocked" in text]


def test_worn_laptops_get_no_repair_ticket_beside_their_replacement() -> None:
    stories = build_library_source("helpdesk", {}).scenarios.scenarios
    for story in stories:
        steps = {step.tool: step for step in story.steps}
        if {"open_ticket", "order_replacement"} <= steps.keys():
            problems = steps["open_ticket"].arguments["problem"]
            assert not [text for text in problems if "laptop" in str(text)], story.id
