"""Layers: the row in which each thing of a drawing stands, its order in the row, and how far to the side.

Rows and sides are the same question: positions at given least distances at which what belongs together is
near. That is a linear program, and its dual a flow of least cost, for which networkx has the network simplex.
The order is found by moving each thing to the mean position of its neighbours in the next row, down and up,
and is the one with the fewest crossings: networkx has no layout that looks at these.

Source: Gansner, Koutsofios, North and Vo, "A technique for drawing directed graphs", 1993.
"""

from __future__ import annotations

from bisect import bisect, insort
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

import networkx as nx

from dualflow.core.records import dataclass

Rows = list[list["RowItem"]]

GAP = 14
"""Room between neighbours of a row, in points."""

_SWEEPS = 12
_BAND = 400  # places that are moved to their sides at once: the time grows with the square of it
_STRAIGHT = {0: 1, 1: 2, 2: 8}  # how much a link should run straight down, by its ends that are wires


@dataclass(slots=True, eq=False)
class RowItem:
    """What takes up room in a row, all in points: a box, or a ``wire`` on its way through the row."""

    row: int
    width: int
    height: float = 0.0
    wire: bool = False
    x: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class Link:
    """A wire between neighbouring rows, and where it meets both places, from their left sides.

    ``arrives`` says whether it ends at the box below.
    """

    above: RowItem
    below: RowItem
    out: int
    into: int
    arrives: bool


def rows_of(count: int, wires: Sequence[tuple[int, int]]) -> list[int]:
    """The row of each of ``count`` boxes.

    Every wire, a source and a target, runs down, and the rows that all of them run over are as few as can be.

    >>> rows_of(4, [(0, 1), (1, 2), (3, 2)])
    [0, 1, 2, 1]
    """
    down = [(source, target, 1) for source, target in wires]
    return nearest(count, down, [(*wire, 1) for wire in down])[0]


def order(rows: Rows, links: Sequence[Link]) -> Rows:
    """The rows with the places of each in another order, for fewer crossings."""
    above, below = _neighbours(links)
    best, fewest = rows, crossings(rows, links)
    rows = [list(row) for row in rows]
    for sweep in range(_SWEEPS):
        if not fewest:
            break
        at = {place: float(i) for row in rows for i, place in enumerate(row)}
        down = sweep % 2 == 0
        for row in rows if down else reversed(rows):
            means = {
                p: _mean([at[q] + share for q, share in (above if down else below)[p]], at[p]) for p in row
            }
            row.sort(key=means.__getitem__)
            at.update({place: float(i) for i, place in enumerate(row)})
        found = crossings(rows, links)
        if found < fewest:
            best, fewest = [list(row) for row in rows], found
    return best


def crossings(rows: Rows, links: Iterable[Link]) -> int:
    """How many pairs of links cross."""
    at = {place: i for row in rows for i, place in enumerate(row)}
    between: dict[int, list[tuple[tuple[int, int], tuple[int, int]]]] = defaultdict(list)
    for k in links:
        between[k.above.row].append(((at[k.above], k.out), (at[k.below], k.into)))
    count = 0
    for ends in between.values():
        seen: list[tuple[int, int]] = []
        for _, end in sorted(ends):
            count += len(seen) - bisect(seen, end)
            insort(seen, end)
    return count


def move_to_sides(rows: Rows, links: Sequence[Link]) -> None:
    """Give each place its x: neighbours with a gap between them, and links that run straight down.

    Links between wires count most, so that long wires are straight lines.
    """
    entering: dict[int, list[Link]] = defaultdict(list)
    for link in links:
        entering[link.below.row].append(link)
    fixed: Sequence[RowItem] = ()
    for band in _bands(rows):
        places = [*fixed, *(place for row in band for place in row)]
        number = {place: i for i, place in enumerate(places)}
        apart = [(number[a], number[b], a.width + GAP) for row in band for a, b in pairwise(row)]
        for a, b in pairwise(fixed):
            apart += [(number[a], number[b], b.x - a.x), (number[b], number[a], a.x - b.x)]
        together = [
            (number[k.above], number[k.below], k.out - k.into, _STRAIGHT[k.above.wire + k.below.wire])
            for row in band
            if row
            for k in entering[row[0].row]
            if k.above in number
        ]
        least, most = nearest(len(places), apart, together)
        middle = [(a + b) // 2 for a, b in zip(least, most, strict=True)]
        shift = fixed[0].x - middle[0] if fixed else 0
        for place, x in zip(places, middle, strict=True):
            place.x = x + shift
        fixed = band[-1]


def nearest(
    count: int,
    apart: Iterable[tuple[int, int, int]],
    together: Iterable[tuple[int, int, int, int]],
) -> tuple[list[int], list[int]]:
    """Positions of ``count`` things for which the sum of ``together`` is least: the first and the last such.

    Each ``(a, b, distance)`` of ``apart`` demands ``at[b] - at[a] >= distance``; each ``(a, b, distance,
    weight)`` of ``together`` adds ``weight * abs(at[b] - at[a] - distance)`` to the sum. Where several
    positions have the same sum, the smallest that begin with 0 and the largest that end with 0 are returned;
    their mean, rounded down, has that sum, too.

    >>> nearest(3, [(0, 1, 4)], [(0, 2, 0, 1), (1, 2, 0, 1)])
    ([0, 4, 0], [-4, 0, 0])
    """
    network = nx.MultiDiGraph()
    network.add_nodes_from(range(count))
    for a, b, distance in apart:
        network.add_edge(a, b, weight=-distance)
    for a, b, distance, weight in together:
        network.add_edge(a, b, weight=-distance, capacity=weight)
        network.add_edge(b, a, weight=distance, capacity=weight)
    if not count:
        return [], []
    _, flow = nx.network_simplex(network)
    left = nx.DiGraph()
    left.add_nodes_from(range(count))
    for a, b, key, data in network.edges(keys=True, data=True):
        if flow[a][b][key] < data.get("capacity", float("inf")):
            _add_shorter(left, a, b, data["weight"])
        if flow[a][b][key] > 0:
            _add_shorter(left, b, a, -data["weight"])
    first, last = map(_distances, (left, left.reverse()))
    return [-first[i] for i in range(count)], [last[i] for i in range(count)]


def _add_shorter(graph: nx.DiGraph, a: int, b: int, weight: int) -> None:
    if not graph.has_edge(a, b) or graph.edges[a, b]["weight"] > weight:
        graph.add_edge(a, b, weight=weight)


def _distances(graph: nx.DiGraph) -> dict[int, int]:
    """How far each node is, at most 0, from one that is 0 from all."""
    graph.add_weighted_edges_from([(-1, node, 0) for node in graph])
    found: dict[int, int] = nx.single_source_bellman_ford_path_length(graph, -1)
    return found


def _bands(rows: Rows) -> Iterator[Rows]:
    """Rows that follow each other, in parts of not many more places than ``_BAND``."""
    band: Rows = []
    size = 0
    for row in rows:
        band.append(row)
        size += len(row)
        if size >= _BAND:
            yield band
            band, size = [], 0
    if band:
        yield band


def _neighbours(links: Iterable[Link]) -> tuple[dict[RowItem, list[tuple[RowItem, float]]], ...]:
    """For each place those linked from above and below; ports of one box count as different places."""
    above: dict[RowItem, list[tuple[RowItem, float]]] = defaultdict(list)
    below: dict[RowItem, list[tuple[RowItem, float]]] = defaultdict(list)
    for k in links:
        above[k.below].append((k.above, k.out / (k.above.width + 1)))
        below[k.above].append((k.below, k.into / (k.below.width + 1)))
    return above, below


def _mean(numbers: Sequence[float], otherwise: float) -> float:
    return sum(numbers) / len(numbers) if numbers else otherwise
