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
from trajsmith.phrasing.templates import find_row_template, list_slots, render_phrase
from trajsmith.phrasing.text_values import TextValues
from trajsmith.phrasing.tool_index import ToolIndex
from trajsmith.phrasing.value_formatting import (
    drop_near_years,
    find_clock_date,
    find_value_spans,
    format_money,
    format_quoted,
    format_value,
    humanize,
    is_distinctive,
    is_value_mentioned,
    join_words,
    list_value_forms,
    parse_datetime,
    shift_date,
)
from trajsmith.phrasing.voices import (
    AgentVoice,
    Outcome,
    UserVoice,
    apply_surface,
    draw_agent_voice,
    draw_pattern,
    draw_user_voice,
    fill_pattern,
    get_agent_voice,
    get_user_voice,
    join_opening,
)
from trajsmith.phrasing.wording import Wording, pick_text
from trajsmith.phrasing.words import (
    normalize_name,
    pluralize,
    singularize,
    split_identifier,
    stem,
    to_snake_case,
    with_article,
    word_set,
)
from trajsmith.phrasing.yaml_files import find_language_file, load_yaml_model

__all__ = [
    "DECLINES",
    "LANGUAGE_CODES",
    "AgentVoice",
    "BatchRequest",
    "DialogueVariety",
    "EntityPhrases",
    "LanguageCode",
    "NounLexicon",
    "Outcome",
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
    "UserVoice",
    "Wording",
    "apply_surface",
    "capitalize_first",
    "check_confirmation_rule",
    "draw_agent_voice",
    "draw_pattern",
    "draw_user_voice",
    "drop_near_years",
    "fill_pattern",
    "find_clock_date",
    "find_language_file",
    "find_row_template",
    "find_shown_row",
    "find_value_spans",
    "format_money",
    "format_quoted",
    "format_value",
    "get_agent_voice",
    "get_confirmation_rule",
    "get_language",
    "get_user_voice",
    "has_yes_or_no_question",
    "humanize",
    "is_answer_stated",
    "is_distinctive",
    "is_fact_answered",
    "is_reason_shown",
    "is_refusal_told",
    "is_value_mentioned",
    "join_opening",
    "join_words",
    "list_slots",
    "list_value_forms",
    "load_phrasebook",
    "load_refusals",
    "load_scenarios",
    "load_yaml_model",
    "needs_confirmation",
    "normalize_name",
    "open_scenarios",
    "parse_datetime",
    "pick_text",
    "pluralize",
    "render_confirmation_policy",
    "render_fact",
    "render_full_policy",
    "render_phrase",
    "render_refusal",
    "set_language",
    "shift_date",
    "singularize",
    "split_identifier",
    "stem",
    "summarize_rule",
    "to_snake_case",
    "use_language",
    "with_article",
    "word_set",
]
