"""Values that the user leaves out: which can be left out, and that nobody can know or do without them."""

from grounding import leaves
from querygen.vary._case import Case, stands_in
from trajectory import FromUser, GoldCall, JsonValue, Known


def missable(case: Case, turn: int, index: int) -> list[tuple[str, str]]:
    """(argument, known key) of a call: required, plain, and needed here for the first time."""
    call = case.calls[index]
    required = set(case.tools[call.tool].required)
    found = []
    for path, source, value in leaves(call):
        if isinstance(source, FromUser) and path in required and case.first_needed(source.known) == turn:
            if case.known[source.known].how != "value" or isinstance(value, bool) or _elsewhere(case, index, value):
                continue
            found.append((path, source.known))
    return case.rng.sample(found, len(found))


def _elsewhere(case: Case, index: int, value: JsonValue) -> bool:
    """True if an agent can read the value in an earlier result."""
    return any(stands_in(value, call.result) for call in case.calls[:index])


async def refused_without(case: Case, index: int, argument: str) -> bool:
    """True if the environment refuses the call when the argument is left out."""
    session = await case.at(index)
    call = case.calls[index]
    arguments = {name: value for name, value in call.arguments.items() if name != argument}
    result = await session.call(call.tool, arguments, call.actor)
    return not result.ok


def ways_to_tell(case: Case, call: GoldCall, known: Known) -> tuple[JsonValue, ...]:
    """The value, and every wording in which people say it."""
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
