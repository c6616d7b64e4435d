"""The order in which einsum multiplies several inputs, pair by pair."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Final

Pair = tuple[int, int]

_MAX_EXHAUSTIVE: Final = 5
"""The largest number of inputs of which every order is tried: 180 orders for five."""

_ASSUMED_SIZE: Final = 64
"""The size of an axis that is known at run time only."""


def contraction_order(
    groups: Sequence[str], result: str, size_of: Mapping[str, int | None]
) -> tuple[Pair, ...]:
    """The pairs to multiply: positions in the list of what is left, where each product becomes the last.

    The order needs the fewest multiplications of all, or, of many inputs, at each step; the first such one.

    Args:
        groups: the labels of the axes of each input.
        result: those of the result.
        size_of: the size of each label; None or symbolic if it is dynamic.
    """
    if len(groups) <= 2:
        return ((0, 1),) * (len(groups) - 1)
    sizes = {label: max(n, 1) if type(n) is int else _ASSUMED_SIZE for label, n in size_of.items()}
    if len(groups) <= _MAX_EXHAUSTIVE:
        return _cheapest([frozenset(group) for group in groups], frozenset(result), sizes)[1]
    return _greedy([frozenset(group) for group in groups], frozenset(result), sizes)


def _cheapest(
    groups: list[frozenset[str]], result: frozenset[str], sizes: Mapping[str, int]
) -> tuple[int, tuple[Pair, ...]]:
    """The least number of multiplications, and its order."""
    if len(groups) == 1:
        return 0, ()
    orders = []
    for pair in combinations(range(len(groups)), 2):
        cost, left_over = _contracted(groups, pair, result, sizes)
        further, order = _cheapest(left_over, result, sizes)
        orders.append((cost + further, (pair, *order)))
    return min(orders, key=lambda order: order[0])


def _greedy(
    groups: list[frozenset[str]], result: frozenset[str], sizes: Mapping[str, int]
) -> tuple[Pair, ...]:
    order: list[Pair] = []
    while len(groups) > 1:
        steps = {
            pair: _contracted(groups, pair, result, sizes) for pair in combinations(range(len(groups)), 2)
        }
        pair = min(steps, key=lambda pair: steps[pair][0])
        order.append(pair)
        groups = steps[pair][1]
    return tuple(order)


def _contracted(
    groups: list[frozenset[str]], pair: Pair, result: frozenset[str], sizes: Mapping[str, int]
) -> tuple[int, list[frozenset[str]]]:
    """The number of multiplications of a step, and the labels of what is left."""
    left, right = (groups[i] for i in pair)
    others = [group for i, group in enumerate(groups) if i not in pair]
    kept = result.union(*others)
    cost = math.prod(sizes[label] for label in left | right)
    return cost, [*others, (left | right) & kept]
