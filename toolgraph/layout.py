"""Where the tools of a graph stand on a page: each server a disc of its tools, connected servers near one another.

A force layout of a thousand tools is a ball of wool. Tools of one server belong together, so each server gets a disc in
which its own edges pull; then the discs are packed, each as near as possible to those that it is connected with.
Everything is deterministic: the same graph gives the same picture.
"""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

ROOM = 26.0
"""Room of one tool: a disc of n tools has a radius of about ROOM times the root of n."""

GAP = 22.0
"""Least distance between two discs."""

LARGE = 700
"""Servers with more tools are laid out as a spiral: forces between all pairs would cost too much."""

ROUNDS = 120
GOLDEN = math.pi * (3 - math.sqrt(5))

PagePoint = tuple[float, float]


def place_tools(
    servers: Sequence[int], edges: Sequence[tuple[int, int]]
) -> tuple[list[PagePoint], list[tuple[float, float, float]]]:
    """Positions of tools, and the discs of their servers.

    Args:
        servers: Tool to the number of its server, from 0.
        edges: Pairs of tools.

    Returns:
        Tool to (x, y); server to (x, y, radius).
    """
    members: list[list[int]] = [[] for _ in range(max(servers, default=-1) + 1)]
    seat = [0] * len(servers)
    for tool, server in enumerate(servers):
        seat[tool] = len(members[server])
        members[server].append(tool)
    own: list[list[tuple[int, int]]] = [[] for _ in members]
    between: dict[tuple[int, int], int] = {}
    for one, two in edges:
        a, b = servers[one], servers[two]
        if a == b:
            own[a].append((seat[one], seat[two]))
        else:
            between[min(a, b), max(a, b)] = between.get((min(a, b), max(a, b)), 0) + 1
    discs = [_disc(len(tools), pairs) for tools, pairs in zip(members, own, strict=True)]
    centres = _pack([radius for _, radius in discs], between)
    places: list[PagePoint] = [(0.0, 0.0)] * len(servers)
    for tools, (points, _), (x, y) in zip(members, discs, centres, strict=True):
        for tool, (dx, dy) in zip(tools, points.tolist(), strict=True):
            places[tool] = (round(x + dx, 1), round(y + dy, 1))
    circles = zip(centres, discs, strict=True)
    return places, [(round(x, 1), round(y, 1), round(radius, 1)) for (x, y), (_, radius) in circles]


def _disc(count: int, pairs: Sequence[tuple[int, int]]) -> tuple["np.ndarray[Any, Any]", float]:
    """Points [count, 2] around the origin, and the radius that holds them."""
    import numpy as np

    numbers = np.arange(count)
    radii, angles = ROOM * np.sqrt(numbers + 0.4), numbers * GOLDEN
    points = np.stack([radii * np.cos(angles), radii * np.sin(angles)], 1)
    if 2 < count <= LARGE and pairs:
        points = _even(_relax(points, np.array(sorted({(min(a, b), max(a, b)) for a, b in pairs if a != b}))))
    points = points - points.mean(0)
    reach = float(np.sqrt((points**2).sum(1)).max()) if count else 0.0
    return points, max(reach, ROOM) + ROOM * 0.8


def _relax(points: "np.ndarray[Any, Any]", pairs: "np.ndarray[Any, Any]") -> "np.ndarray[Any, Any]":
    """Fruchterman and Reingold (1991): all push, edges pull, the middle pulls, and steps grow shorter."""
    import numpy as np

    ideal = ROOM * 1.9
    for turn in range(ROUNDS):
        apart = points[:, None] - points[None]
        square = (apart**2).sum(2) + np.eye(len(points)) + 1e-9
        force = (apart * (ideal**2 / square)[..., None]).sum(1) - 0.35 * points
        along = points[pairs[:, 1]] - points[pairs[:, 0]]
        pull = along * (np.sqrt((along**2).sum(1)) / ideal)[:, None] / math.sqrt(max(1, len(pairs) / len(points)))
        np.add.at(force, pairs[:, 0], pull)
        np.add.at(force, pairs[:, 1], -pull)
        size = np.sqrt((force**2).sum(1))[:, None] + 1e-9
        points = points + force / size * np.minimum(size, ideal * (1 - turn / ROUNDS))
    return points


def _even(points: "np.ndarray[Any, Any]") -> "np.ndarray[Any, Any]":
    """Spread over the disc: tight knots come apart and stragglers come near, directions stay; then nobody overlaps."""
    import numpy as np

    points = points - points.mean(0)
    radii = np.sqrt((points**2).sum(1)) + 1e-9
    even = ROOM * np.sqrt(np.argsort(np.argsort(radii, kind="stable"), kind="stable") + 0.4)
    points = points * ((0.75 * even + 0.25 * np.minimum(radii, even.max())) / radii)[:, None]
    for _ in range(ROUNDS // 3):
        apart = points[:, None] - points[None]
        distance = np.sqrt((apart**2).sum(2)) + np.eye(len(points)) * 1e9 + 1e-9
        overlap = np.maximum(0.0, ROOM * 1.5 - distance)
        points = points + (apart / distance[..., None] * overlap[..., None]).sum(1) * 0.3
    return points


def _pack(radii: Sequence[float], between: dict[tuple[int, int], int]) -> list[PagePoint]:
    """Centres of discs that do not touch, greedily: next is who shares most with those that stand already."""
    import numpy as np

    near: list[dict[int, int]] = [{} for _ in radii]
    for (one, two), count in between.items():
        near[one][two] = near[two][one] = count
    centres, sizes = np.zeros((len(radii), 2)), np.array(radii)
    placed: list[int] = []
    waiting = dict.fromkeys(sorted(range(len(radii)), key=lambda server: -radii[server]), 0.0)
    """Server to how much it is drawn to those that are placed; the largest first where that is equal."""
    while waiting:
        server = max(waiting, key=waiting.__getitem__)
        del waiting[server]
        if placed:
            centres[server] = _best_spot(server, placed, centres, sizes, near[server])
        placed.append(server)
        for other in near[server].keys() & waiting.keys():
            waiting[other] += math.sqrt(near[server][other])
    return [(float(x), float(y)) for x, y in centres]


def _best_spot(
    server: int, placed: list[int], centres: "np.ndarray[Any, Any]", radii: "np.ndarray[Any, Any]", near: dict[int, int]
) -> "np.ndarray[Any, Any]":
    """Of the spots that touch a placed disc and are free, the one nearest to the server's own and to the middle."""
    import numpy as np

    there, sizes = centres[placed], radii[placed]
    linked = [other for other in placed if other in near]
    weights = np.array([math.sqrt(near[other]) for other in linked])
    goal = (centres[linked] * weights[:, None]).sum(0) / (weights.sum() + 0.5) if linked else np.zeros(2)
    angles = np.linspace(0, 2 * math.pi, 24, endpoint=False) + server * GOLDEN
    ring = np.stack([np.cos(angles), np.sin(angles)], 1)
    distance = np.sqrt(((there - goal) ** 2).sum(1)) - sizes
    for anchors in (np.argsort(distance, kind="stable")[:40], np.arange(len(placed))):
        reach = sizes[anchors] + radii[server] + GAP * 1.001
        spots = (there[anchors][:, None] + ring[None] * reach[:, None, None]).reshape(-1, 2)
        gaps = np.sqrt(((spots[:, None] - there[None]) ** 2).sum(2)) - sizes[None] - radii[server] - GAP
        free = spots[gaps.min(1) >= -1e-6]
        if len(free):
            nearest: np.ndarray[Any, Any] = free[((free - goal) ** 2).sum(1).argmin()]
            return nearest
    raise AssertionError("the outermost disc always has a free side")
