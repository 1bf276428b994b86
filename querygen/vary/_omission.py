"""Values that the user leaves out: which can be left out, and that nobody can know or do without them."""

from trajsmith.grounding import iterate_leaves
from trajsmith.querygen.request import is_identity
from trajsmith.querygen.vary._case import VariantCase, is_leaf_of
from trajsmith.records import FromOutput, FromUser, GoldCall, JsonValue, UserFact


def find_omittable_arguments(case: VariantCase, turn: int, index: int) -> list[tuple[str, str]]:
    """(argument, known key) of a call: required, plain, and needed here for the first time.

    Nobody keeps back the name by which the agent is to find what they came for: of look-ups on the way to a request
    only those of the user's own account count.
    """
    call = case.calls[index]
    used = {
        source.call for later in case.calls for _, source, _ in iterate_leaves(later) if isinstance(source, FromOutput)
    }
    if call.effect == "read" and index in used and not is_identity(call, case.wording):
        return []
    required = set(case.tools[call.tool].required)
    arguments = []
    for path, source, value in iterate_leaves(call):
        if isinstance(source, FromUser) and path in required and case.first_needed(source.known) == turn:
            if (
                case.known[source.known].how != "value"
                or isinstance(value, bool)
                or _is_readable_earlier(case, index, value)
                or _is_told_by_story(case, index, path)
            ):
                continue
            arguments.append((path, source.known))
    return case.rng.sample(arguments, len(arguments))


def _is_told_by_story(case: VariantCase, index: int, name: str) -> bool:
    """Return True for a choice that the story has made: its words tell it whatever is left out ("that's not what I
    ordered"), so that nobody has to ask for the reason."""
    step = case.find_step(index)
    choices = "enum" in case.tools[case.calls[index].tool].parameters.get(name, {})
    return step is not None and choices and step.fixes(name)


def _is_readable_earlier(case: VariantCase, index: int, value: JsonValue) -> bool:
    """Return True if an agent can read the value in an earlier result."""
    return any(is_leaf_of(value, call.result) for call in case.calls[:index])


async def is_refused_without(case: VariantCase, index: int, argument: str) -> bool:
    """Return True if the environment refuses the call when the argument is left out."""
    session = await case.at(index)
    call = case.calls[index]
    arguments = {name: value for name, value in call.arguments.items() if name != argument}
    result = await session.call(call.tool, arguments, call.actor)
    return not result.ok


def list_value_wordings(case: VariantCase, call: GoldCall, known: UserFact) -> tuple[JsonValue, ...]:
    """Return the value, and every wording in which people state it."""
    phrases = case.wording.parameter(call.tool, known.slot).values
    options = phrases.get(str(known.value)) or phrases.get(str(known.value).lower()) or ()
    return (
        tuple(dict.fromkeys((known.value, known.said, *options)))
        if not isinstance(known.value, list | dict)
        else (
            *(known.value if isinstance(known.value, list) else ()),
            known.said,
            *options,
        )
    )
