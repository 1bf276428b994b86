"""Finding arguments that make calls succeed, by execution; provenance of every argument."""

from trajsmith.grounding.argument_paths import (
    build_arguments,
    get_argument_name,
    get_leaf_name,
    get_value_at,
    replace_value_at,
)
from trajsmith.grounding.constraints import list_known_values, split_reference
from trajsmith.grounding.fields import (
    SchemaField,
    get_array_item,
    get_types,
    list_choices,
    list_input_fields,
    list_output_fields,
    resolve_pointer,
    unwrap,
)
from trajsmith.grounding.grounder import Grounder
from trajsmith.grounding.identity import find_user_names
from trajsmith.grounding.lessons import Lessons
from trajsmith.grounding.list_limits import has_namesake, is_end_out_of_reach, is_extreme_certain, is_list_cut
from trajsmith.grounding.names import get_tool_noun, is_identifier, split_name
from trajsmith.grounding.outdated_fields import update_outdated_fields
from trajsmith.grounding.paths import (
    ListLevel,
    PathMatch,
    find_values,
    get_value,
    iterate_named_values,
    iterate_nodes,
    join_path,
    split_path,
)
from trajsmith.grounding.phrasebook_checks import check_phrasebook
from trajsmith.grounding.references import ReferenceNotResolved, find_rows, leads_to, resolve_reference
from trajsmith.grounding.repair import Producers
from trajsmith.grounding.rewind import Rewindable, make_rewindable, replays
from trajsmith.grounding.row_fields import get_state
from trajsmith.grounding.scenario_checks import check_scenarios
from trajsmith.grounding.schema_values import (
    fits_schema,
    has_format,
    has_type,
    is_within_bounds,
    lacks_utc_offset,
    list_allowed_numbers,
    list_boundary_values,
    list_invalid_values,
)
from trajsmith.grounding.search import is_empty
from trajsmith.grounding.settings import GroundSettings
from trajsmith.grounding.text_generation import generate_text
from trajsmith.grounding.user_facts import build_selector_key, iterate_leaves, list_needed_keys
from trajsmith.grounding.value_source import ValueSource

__all__ = [
    "GroundSettings",
    "Grounder",
    "Lessons",
    "ListLevel",
    "PathMatch",
    "Producers",
    "ReferenceNotResolved",
    "Rewindable",
    "SchemaField",
    "ValueSource",
    "build_arguments",
    "build_selector_key",
    "check_phrasebook",
    "check_scenarios",
    "find_rows",
    "find_user_names",
    "find_values",
    "fits_schema",
    "generate_text",
    "get_argument_name",
    "get_array_item",
    "get_leaf_name",
    "get_state",
    "get_tool_noun",
    "get_types",
    "get_value",
    "get_value_at",
    "has_format",
    "has_namesake",
    "has_type",
    "is_empty",
    "is_end_out_of_reach",
    "is_extreme_certain",
    "is_identifier",
    "is_list_cut",
    "is_within_bounds",
    "iterate_leaves",
    "iterate_named_values",
    "iterate_nodes",
    "join_path",
    "lacks_utc_offset",
    "leads_to",
    "list_allowed_numbers",
    "list_boundary_values",
    "list_choices",
    "list_input_fields",
    "list_invalid_values",
    "list_known_values",
    "list_needed_keys",
    "list_output_fields",
    "make_rewindable",
    "replace_value_at",
    "replays",
    "resolve_pointer",
    "resolve_reference",
    "split_name",
    "split_path",
    "split_reference",
    "unwrap",
    "update_outdated_fields",
]
