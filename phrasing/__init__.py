"""The scripted language: phrasebooks, templates, the wording of values, and the understanding of user text.

Sandboxed workers import this package, so it loads neither a network client nor a database.
"""

from trajsmith.phrasing.dialogue_variety import DialogueVariety
from trajsmith.phrasing.phrasebook import (
    EntityPhrases,
    ParameterPhrases,
    Phrasebook,
    Question,
    ToolPhrases,
    load_phrasebook,
)
from trajsmith.phrasing.plain_sentences import capitalize_first
from trajsmith.phrasing.question_detection import has_yes_or_no_question
from trajsmith.phrasing.scenarios import Scenario, ScenarioBook, ScenarioStep, load_scenarios
from trajsmith.phrasing.wording import Wording, pick_text

__all__ = [
    "DialogueVariety",
    "EntityPhrases",
    "ParameterPhrases",
    "Phrasebook",
    "Question",
    "Scenario",
    "ScenarioBook",
    "ScenarioStep",
    "ToolPhrases",
    "Wording",
    "capitalize_first",
    "has_yes_or_no_question",
    "load_phrasebook",
    "load_scenarios",
    "pick_text",
]
