"""Layered layout of a drawing: the row of each item, its index in the row, and its x.

Rows and x positions are both minimal weighted distances of linked items under minimal gaps. That is a linear
program, and its dual is a minimum-cost flow, for which networkx has the network simplex. The order comes from
sweeps down and up, in which each item moves to the mean position of its neighbours in the next row; the order
with the fewest crossings is used. networkx has no layout that minimises crossings.

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
"""The gap between neighbours of a row, in points."""

_SWEEPS = 12
_BAND = 400  # items whose x is computed at once: the time grows with its square
_STRAIGHT = {0: 1, 1: 2, 2: 8}  # the weight of a straight link, by the number of its ends that are wires


@dataclass(slots=True, eq=False)
class RowItem:
    """An item of a row, in points: a box, or a ``wire`` that passes the row."""

    row: int
    width: int
    height: float = 0.0
    wire: bool = False
    x: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class Link:
    """The part of a wire between items of neighbouring rows, and the x offsets of its ends in these items.

    ``arrives``: whether it ends at the box below.
    """

    above: RowItem
    below: RowItem
    out: int
    into: int
    arrives: bool


def rows_of(count: int, wires: Sequence[tuple[int, int]]) -> list[int]:
    """The row of each of ``count`` boxes.

    Every wire, a source and a target, runs down. The total length of the wires in rows is minimal.

    >>> rows_of(4, [(0, 1), (1, 2), (3, 2)])
    [0, 1, 2, 1]
    """
    down = [(source, target, 1) for source, target in wires]
    return optimal_positions(count, down, [(*wire, 1) for wire in down])[0]


def order(rows: Rows, links: Sequence[Link]) -> Rows:
    """The rows with their items reordered for fewer crossings."""
    above, below = _neighbours(links)
    best, fewest = rows, crossings(rows, links)
    rows = [list(row) for row in rows]
    for sweep in range(_SWEEPS):
        if not fewest:
            break
        index = {item: float(i) for row in rows for i, item in enumerate(row)}
        down = sweep % 2 == 0
        neighbours = above if down else below
        for row in rows if down else reversed(rows):
            means = {
                item: _mean([index[other] + port for other, port in neighbours[item]], index[item])
                for item in row
            }
            row.sort(key=means.__getitem__)
            index.update({item: float(i) for i, item in enumerate(row)})
        count = crossings(rows, links)
        if count < fewest:
            best, fewest = [list(row) for row in rows], count
    return best


def crossings(rows: Rows, links: Iterable[Link]) -> int:
    """The number of pairs of links that cross."""
    index = {item: i for row in rows for i, item in enumerate(row)}
    ends_by_row: dict[int, list[tuple[tuple[int, int], tuple[int, int]]]] = defaultdict(list)
    for link in links:
        ends_by_row[link.above.row].append(((index[link.above], link.out), (index[link.below], link.into)))
    count = 0
    for ends in ends_by_row.values():
        earlier_ends: list[tuple[int, int]] = []
        for _, end in sorted(ends):
            count += len(earlier_ends) - bisect(earlier_ends, end)
            insort(earlier_ends, end)
    return count


def set_x_positions(rows: Rows, links: Sequence[Link]) -> None:
    """Set the x of each item: neighbours have a gap between them, and links run straight down if possible.

    Links between wires have the largest weight, so that long wires are straight lines.
    """
    entering: dict[int, list[Link]] = defaultdict(list)
    for link in links:
        entering[link.below.row].append(link)
    fixed: Sequence[RowItem] = ()
    for band in _bands(rows):
        items = [*fixed, *(item for row in band for item in row)]
        number = {item: i for i, item in enumerate(items)}
        min_distances = [(number[a], number[b], a.width + GAP) for row in band for a, b in pairwise(row)]
        for a, b in pairwise(fixed):
            min_distances += [(number[a], number[b], b.x - a.x), (number[b], number[a], a.x - b.x)]
        objective = [
            (number[x.above], number[x.below], x.out - x.into, _STRAIGHT[x.above.wire + x.below.wire])
            for row in band
            if row
            for x in entering[row[0].row]
            if x.above in number
        ]
        smallest, largest = optimal_positions(len(items), min_distances, objective)
        middle = [(a + b) // 2 for a, b in zip(smallest, largest, strict=True)]
        shift = fixed[0].x - middle[0] if fixed else 0
        for item, x in zip(items, middle, strict=True):
            item.x = x + shift
        fixed = band[-1]


def optimal_positions(
    count: int,
    min_distances: Iterable[tuple[int, int, int]],
    objective: Iterable[tuple[int, int, int, int]],
) -> tuple[list[int], list[int]]:
    """Positions of ``count`` items that minimise the sum of ``objective``: the smallest and the largest ones.

    Each ``(a, b, distance)`` of ``min_distances`` requires ``x[b] - x[a] >= distance``; each ``(a, b,
    distance, weight)`` of ``objective`` adds ``weight * abs(x[b] - x[a] - distance)`` to the sum. If several
    positions are optimal, the smallest that begin with 0 and the largest that end with 0 are returned; their
    mean, rounded down, is optimal, too.

    >>> optimal_positions(3, [(0, 1, 4)], [(0, 2, 0, 1), (1, 2, 0, 1)])
    ([0, 4, 0], [-4, 0, 0])
    """
    network = nx.MultiDiGraph()
    network.add_nodes_from(range(count))
    for a, b, distance in min_distances:
        network.add_edge(a, b, weight=-distance)
    for a, b, distance, weight in objective:
        network.add_edge(a, b, weight=-distance, capacity=weight)
        network.add_edge(b, a, weight=distance, capacity=weight)
    if not count:
        return [], []
    _, flow = nx.network_simplex(network)
    residual = nx.DiGraph()
    residual.add_nodes_from(range(count))
    for a, b, key, data in network.edges(keys=True, data=True):
        if flow[a][b][key] < data.get("capacity", float("inf")):
            _add_shorter(residual, a, b, data["weight"])
        if flow[a][b][key] > 0:
            _add_shorter(residual, b, a, -data["weight"])
    first, last = map(_distances, (residual, residual.reverse()))
    return [-first[i] for i in range(count)], [last[i] for i in range(count)]


def _add_shorter(graph: nx.DiGraph, a: int, b: int, weight: int) -> None:
    if not graph.has_edge(a, b) or graph.edges[a, b]["weight"] > weight:
        graph.add_edge(a, b, weight=weight)


def _distances(graph: nx.DiGraph) -> dict[int, int]:
    """The shortest distance of each node from a virtual source that has an edge of length 0 to each."""
    graph.add_weighted_edges_from([(-1, node, 0) for node in graph])
    distances: dict[int, int] = nx.single_source_bellman_ford_path_length(graph, -1)
    return distances


def _bands(rows: Rows) -> Iterator[Rows]:
    """Runs of consecutive rows, with about ``_BAND`` items each."""
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
    """The neighbours of each item in the rows above and below, with their ports as fractions of the width."""
    above: dict[RowItem, list[tuple[RowItem, float]]] = defaultdict(list)
    below: dict[RowItem, list[tuple[RowItem, float]]] = defaultdict(list)
    for link in links:
        above[link.below].append((link.above, link.out / (link.above.width + 1)))
        below[link.above].append((link.below, link.into / (link.below.width + 1)))
    return above, below


def _mean(numbers: Sequence[float], otherwise: float) -> float:
    return sum(numbers) / len(numbers) if numbers else otherwise
