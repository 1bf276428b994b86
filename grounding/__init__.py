"""Finding arguments that make calls succeed, by execution; provenance of every argument."""

from trajsmith.grounding.argument_paths import replace_value_at
from trajsmith.grounding.grounder import Grounder
from trajsmith.grounding.lessons import Lessons
from trajsmith.grounding.list_limits import is_end_out_of_reach, is_extreme_certain, is_list_cut
from trajsmith.grounding.outdated_fields import update_outdated_fields
from trajsmith.grounding.references import ReferenceNotResolved, find_rows, leads_to, resolve_reference
from trajsmith.grounding.repair import Producers
from trajsmith.grounding.scenario_checks import check_scenarios
from trajsmith.grounding.search import is_empty
from trajsmith.grounding.settings import GroundSettings
from trajsmith.grounding.text_generation import generate_text
from trajsmith.grounding.user_facts import build_selector_key, iterate_leaves, list_needed_keys
from trajsmith.grounding.value_source import ValueSource

__all__ = [
    "GroundSettings",
    "Grounder",
    "Lessons",
    "Producers",
    "ReferenceNotResolved",
    "ValueSource",
    "build_selector_key",
    "check_scenarios",
    "find_rows",
    "generate_text",
    "is_empty",
    "is_end_out_of_reach",
    "is_extreme_certain",
    "is_list_cut",
    "iterate_leaves",
    "leads_to",
    "list_needed_keys",
    "replace_value_at",
    "resolve_reference",
    "update_outdated_fields",
]
