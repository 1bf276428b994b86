"""Choose services from the tool lists of many servers: stateful, self-contained, different from each other."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from math import fsum

from trajsmith.envgen.generate.blueprint import READS, Blueprint
from trajsmith.envgen.generate.from_known_records import BEYOND
from trajsmith.envgen.generate.listed_tools import JOIN, name_service
from trajsmith.envgen.generate.tool_lists import ToolList
from trajsmith.envgen.scale.composition import compose_services, measure_overlap, recombine_services
from trajsmith.envgen.scale.documents import DocumentSources, SourceRejection
from trajsmith.envgen.scale.outside_world import find_outside_need
from trajsmith.envgen.scale.services import Feature, Service, read_service
from trajsmith.records import InputError

MIN_TOOLS, MIN_WRITES = 5, 2
"""Tools, and tools that write, below which a service is too small to stand alone."""
SAME = 0.75
"""Overlap of records and actions from which on two services are nearly the same."""


@dataclass
class Selection:
    """Services in the order in which they are made, and what was rejected."""

    services: list[Service] = field(default_factory=list)
    rejected: list[SourceRejection] = field(default_factory=list)

    def count_reasons(self) -> dict[str, int]:
        """Return how many servers each reason rejected, the most frequent first."""
        return dict(Counter(one.reason for one in self.rejected).most_common())


def select_services(
    lists: Iterable[ToolList],
    avoid: Iterable[str] = (),
    documents: DocumentSources | None = None,
    wanted: int = 0,
) -> Selection:
    """Return the services of many servers, those that add most to the coverage first.

    If they are fewer than wanted, further ones of the same tools come after them: linked kinds of records in other
    company.

    Args:
        lists: Tools of one server each.
        avoid: Kinds of records that no service may be about, for example those of an evaluation.
        documents: Services of OpenAPI documents and tables, and SQL schemas.
        wanted: Services that are needed; a tenth more are looked for, since not all are accepted.
    """
    documents = documents or DocumentSources()
    selection, small, whole = Selection(rejected=list(documents.rejected)), list[ToolList](), list(documents.services)
    lists = [*lists, *documents.schemas]
    usable = list[ToolList]()
    unwanted = frozenset(avoid)
    for tool_list in lists:
        need = find_outside_need(tool_list)
        if need:
            _reject(selection, tool_list.server, "needs the world outside", need)
            continue
        usable.append(tool_list)
        services, rest = _read_services(tool_list, selection)
        whole += services
        small += rest
    whole += compose_services(usable)
    merged = {part for one in whole for part in one.blueprint.source.name.split(JOIN)}
    for tool_list in small:
        if tool_list.server not in merged:
            _reject(selection, tool_list.server, "too small, and none of its tools was merged with others")
    whole = [one for one in whole if _is_wanted(one, unwanted, selection)]
    selection.services = _order_by_coverage(_drop_alike(whole, selection))
    missing = wanted + wanted // 10 - len(selection.services)
    if missing > 0:
        further = recombine_services(usable, selection.services, missing)
        further = [one for one in further if _is_wanted(one, unwanted, selection)]
        selection.services = _name_apart([*selection.services, *_order_by_coverage(further)])
    return selection


def _reject(selection: Selection, server: str, reason: str, detail: str = "") -> None:
    selection.rejected.append(SourceRejection(server=server, reason=reason, detail=detail))


def _is_wanted(service: Service, unwanted: frozenset[str], selection: Selection) -> bool:
    kinds = Counter(kind for kind, _ in service.features)
    main = kinds.most_common(1)[0][0]
    if main in unwanted:
        _reject(selection, service.blueprint.source.name, "about records that are to be avoided", main)
        return False
    return True


def _read_services(tool_list: ToolList, selection: Selection) -> tuple[list[Service], list[ToolList]]:
    """Return the services of one server, and what is too small to be one."""
    services, left, name = list[Service](), tool_list, name_service(tool_list.server)
    while True:
        part_name = name if not services else ""
        try:
            service = read_service(left, part_name)
        except InputError as error:
            if not services and _can_be_merged(left):
                return [], [left]
            if not services:
                _reject(selection, tool_list.server, _find_reason(left), str(error)[:200])
            return services, []
        if not _is_large(service.blueprint):
            return services, [left]
        if services:
            service = _rename(service, f"{name}_{service.blueprint.entities[0].table}")
        services.append(service)
        beyond = {one.what for one in service.blueprint.left_out if one.reason == BEYOND}
        rest = [tool for tool in left.tools if tool["name"] in beyond]
        if not rest:
            return services, []
        left = ToolList(tool_list.server, rest, tool_list.licence)


def _find_reason(tool_list: ToolList) -> str:
    return "fewer than three tools" if len(tool_list.tools) < 3 else "no known record that its tools can change"


def _can_be_merged(tool_list: ToolList) -> bool:
    try:
        return bool(read_service(tool_list, "", whole=False).features)
    except InputError:
        return False


def _rename(service: Service, name: str) -> Service:
    from trajsmith.envgen.generate.identifiers import to_class_name, to_identifier, to_words

    name = to_identifier(name, "service")
    update = {"name": name, "cls": to_class_name(name), "title": to_words(name).capitalize(), "domain": f"mcp/{name}"}
    return Service(service.blueprint.model_copy(update=update), service.features, service.family)


def _is_large(blueprint: Blueprint) -> bool:
    writes = [one for one in blueprint.operations if one.action not in READS]
    return len(blueprint.operations) >= MIN_TOOLS and len(writes) >= MIN_WRITES


def _drop_alike(services: Sequence[Service], selection: Selection) -> list[Service]:
    """Return services of which no two have nearly the same records and actions; the larger one stays."""
    distinct = list[Service]()
    for service in sorted(services, key=lambda one: (-len(one.features), one.blueprint.source.name)):
        twin = next((one for one in distinct if measure_overlap(one.features, service.features) >= SAME), None)
        if twin is None:
            distinct.append(service)
        else:
            _reject(selection, service.blueprint.source.name, "nearly the same as another", twin.blueprint.name)
    return _name_apart(distinct)


def _name_apart(services: Iterable[Service]) -> list[Service]:
    """Return services of which no two have one name: a later one gets a number."""
    apart = dict[str, Service]()
    for service in services:
        name, number = service.blueprint.name, 1
        while name in apart:
            number += 1
            name = f"{service.blueprint.name}_{number}"
        apart[name] = service if number == 1 else _rename(service, name)
    return list(apart.values())


def _order_by_coverage(services: Sequence[Service]) -> list[Service]:
    """Return services so that each next one adds most to what those before it cover; rare features count more."""
    rest, seen, ordered = list(services), Counter[Feature](), list[Service]()
    while rest:
        best = max(rest, key=lambda one: (fsum(1 / (1 + seen[f]) for f in one.features), one.blueprint.name))
        rest.remove(best)
        seen.update(best.features)
        ordered.append(best)
    return ordered
