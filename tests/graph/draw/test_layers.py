"""Rows, order and sides of a layered drawing, against brute force where that is possible."""

from __future__ import annotations

from itertools import pairwise, permutations, product

from hypothesis import given, settings
from hypothesis import strategies as st

from dualflow.graph.draw.layers import (
    GAP,
    Link,
    RowItem,
    crossings,
    optimal_positions,
    order,
    rows_of,
    set_x_positions,
)


@st.composite
def layout_problems(
    draw: st.DrawFn,
) -> tuple[int, list[tuple[int, int, int]], list[tuple[int, int, int, int]]]:
    """Up to four items, minimum distances between some, without cycles, and terms of the objective."""
    count = draw(st.integers(1, 4))
    pairs = [(a, b) for b in range(count) for a in range(b)]
    min_distances = [(a, b, draw(st.integers(0, 3))) for a, b in pairs if draw(st.booleans())]
    objective = [
        (a, b, draw(st.integers(-2, 3)), draw(st.integers(1, 4))) for a, b in pairs if draw(st.booleans())
    ]
    return count, min_distances, objective


def is_feasible(positions: tuple[int, ...] | list[int], min_distances: list[tuple[int, int, int]]) -> bool:
    return all(positions[b] - positions[a] >= distance for a, b, distance in min_distances)


def objective_value(
    positions: tuple[int, ...] | list[int], objective: list[tuple[int, int, int, int]]
) -> int:
    return sum(weight * abs(positions[b] - positions[a] - distance) for a, b, distance, weight in objective)


@given(layout_problems())
@settings(max_examples=25, deadline=None)
def test_the_nearest_positions_are_legal_and_none_are_nearer(problem) -> None:
    count, min_distances, objective = problem
    tried = (
        positions for positions in product(range(10), repeat=count) if is_feasible(positions, min_distances)
    )
    least = min(objective_value(positions, objective) for positions in tried)
    first, last = optimal_positions(count, min_distances, objective)
    middle = [(a + b) // 2 for a, b in zip(first, last, strict=True)]
    for positions in (first, last, middle):
        assert is_feasible(positions, min_distances)
        assert objective_value(positions, objective) == least
    assert min(first) == 0
    assert max(last) == 0


def test_an_empty_problem_has_no_positions() -> None:
    assert optimal_positions(0, [], []) == ([], [])


@st.composite
def wires(draw: st.DrawFn) -> tuple[int, list[tuple[int, int]]]:
    count = draw(st.integers(1, 12))
    return count, [
        (draw(st.integers(0, b - 1)), b) for b in range(1, count) for _ in range(draw(st.integers(0, 2)))
    ]


@given(wires())
@settings(max_examples=25, deadline=None)
def test_every_wire_runs_down_and_the_highest_row_is_the_first(given_wires) -> None:
    count, result = given_wires
    rows = rows_of(count, result)
    assert all(rows[source] < rows[target] for source, target in result)
    assert min(rows) == 0


def test_a_box_without_inputs_is_above_its_only_reader() -> None:
    assert rows_of(5, [(0, 1), (1, 2), (2, 3), (4, 3)]) == [0, 1, 2, 3, 2]


@st.composite
def two_rows(draw: st.DrawFn) -> tuple[list[list[RowItem]], list[Link]]:
    upper = [RowItem(0, draw(st.integers(10, 60)), 20.0) for _ in range(draw(st.integers(1, 4)))]
    lower = [RowItem(1, draw(st.integers(10, 60)), 20.0) for _ in range(draw(st.integers(1, 4)))]
    ends = draw(st.lists(st.tuples(st.sampled_from(upper), st.sampled_from(lower)), max_size=6))
    return [upper, lower], [Link(a, b, a.width // 2, b.width // 2, True) for a, b in ends]


@given(two_rows())
@settings(max_examples=25, deadline=None)
def test_crossings_are_counted_and_an_order_never_has_more(given_rows) -> None:
    rows, links = given_rows
    positions = {place: i for row in rows for i, place in enumerate(row)}
    pairs = [(k, other) for i, k in enumerate(links) for other in links[:i]]
    expected = sum(
        (positions[k.above] - positions[o.above]) * (positions[k.below] - positions[o.below]) < 0
        for k, o in pairs
    )
    assert crossings(rows, links) == expected
    ordered = order(rows, links)
    assert [sorted(map(id, row)) for row in ordered] == [sorted(map(id, row)) for row in rows]
    assert crossings(ordered, links) <= expected


def test_crossings_that_can_be_avoided_are() -> None:
    """Every way to join three boxes to three others, one by one."""
    for targets in permutations(range(3)):
        rows = [[RowItem(row, 30, 20.0) for _ in range(3)] for row in range(2)]
        links = [Link(rows[0][i], rows[1][t], 15, 15, True) for i, t in enumerate(targets)]
        assert crossings(order(rows, links), links) == 0


@given(two_rows())
@settings(max_examples=25, deadline=None)
def test_neighbours_have_a_gap_between_them(given_rows) -> None:
    rows, links = given_rows
    set_x_positions(rows, links)
    for row in rows:
        assert all(b.x - a.x >= a.width + GAP for a, b in pairwise(row))


def test_a_box_with_two_readers_is_between_them() -> None:
    top, left, right = RowItem(0, 20, 9.0), RowItem(1, 20, 9.0), RowItem(1, 20, 9.0)
    set_x_positions([[top], [left, right]], [Link(top, left, 10, 10, True), Link(top, right, 10, 10, True)])
    assert left.x < top.x < right.x
    assert right.x - top.x == top.x - left.x


def test_a_chain_longer_than_one_band_stays_straight() -> None:
    """A long chain is moved part by part, and stays one line."""
    chain = [RowItem(i, 20 + i % 7, 9.0) for i in range(1000)]
    links = [Link(a, b, a.width // 2, b.width // 2, True) for a, b in pairwise(chain)]
    set_x_positions([[place] for place in chain], links)
    assert {place.x + place.width // 2 for place in chain} == {chain[0].x + chain[0].width // 2}
