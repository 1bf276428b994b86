"""The scripted language: phrasebooks, templates, the wording of values, and the understanding of user text.

Sandboxed workers import this package, so it loads neither a network client nor a database.
"""

from trajsmith.phrasing.answer_detection import is_answer_stated, is_fact_answered, render_fact
from trajsmith.phrasing.confirmation import (
    check_confirmation_rule,
    find_shown_row,
    get_confirmation_rule,
    needs_confirmation,
    render_confirmation_policy,
    render_full_policy,
    summarize_rule,
)
from trajsmith.phrasing.dialogue_variety import DialogueVariety
from trajsmith.phrasing.languages import LANGUAGE_CODES, LanguageCode, get_language, set_language, use_language
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
from trajsmith.phrasing.referring_expressions import NounLexicon, ReferringExpression
from trajsmith.phrasing.refusals import DECLINES, is_reason_shown, is_refusal_told, load_refusals, render_refusal
from trajsmith.phrasing.scenarios import (
    BatchRequest,
    Scenario,
    ScenarioBook,
    ScenarioStep,
    load_scenarios,
    open_scenarios,
)
from trajsmith.phrasing.text_values import TextValues
from trajsmith.phrasing.tool_index import ToolIndex
from trajsmith.phrasing.voices import AgentVoice, draw_pattern
from trajsmith.phrasing.wording import Wording, pick_text
from trajsmith.phrasing.yaml_files import find_language_file

__all__ = [
    "DECLINES",
    "LANGUAGE_CODES",
    "AgentVoice",
    "BatchRequest",
    "DialogueVariety",
    "EntityPhrases",
    "LanguageCode",
    "NounLexicon",
    "ParameterPhrases",
    "Phrasebook",
    "Question",
    "ReferringExpression",
    "Scenario",
    "ScenarioBook",
    "ScenarioStep",
    "TextValues",
    "ToolIndex",
    "ToolPhrases",
    "Wording",
    "capitalize_first",
    "check_confirmation_rule",
    "draw_pattern",
    "find_language_file",
    "find_shown_row",
    "get_confirmation_rule",
    "get_language",
    "has_yes_or_no_question",
    "is_answer_stated",
    "is_fact_answered",
    "is_reason_shown",
    "is_refusal_told",
    "load_phrasebook",
    "load_refusals",
    "load_scenarios",
    "needs_confirmation",
    "open_scenarios",
    "pick_text",
    "render_confirmation_policy",
    "render_fact",
    "render_full_policy",
    "render_refusal",
    "set_language",
    "summarize_rule",
    "use_language",
]
