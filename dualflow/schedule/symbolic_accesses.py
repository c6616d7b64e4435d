"""Bounds of a kernel's accesses whose launch parameters are polynomials over size variables."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import chain

from dualflow.graph.ir import Node
from dualflow.schedule.access_bounds import AccessBounds, Condition, Index, IndexRange, Rule
from dualflow.schedule.element_ranges import ElementRange, at_least, both, contains, distances
from dualflow.schedule.kernel import KernelLaunch
from dualflow.schedule.refused_accesses import refused
from dualflow.sizes.symbolic_sizes import SymInt


def undecided_accesses(
    launch: KernelLaunch,
    accesses: AccessBounds,
    operands: Sequence[ElementRange],
    partials: IndexRange,
    node: Node,
) -> list[ElementRange]:
    """The ranges that a kernel accesses and that are not proved to be inside an operand.

    Args:
        launch: the kernel with its arguments.
        accesses: the bounds of the kernel's accesses.
        operands: the operands that are inside their buffers.
        partials: the elements of each buffer of partial results.
        node: the node that the kernel computes.

    Raises:
        InternalError: a scratch buffer is too small, or a condition of the accesses may not hold.
    """
    values = accesses.values(launch)
    for condition in accesses.conditions:
        if not _holds(condition, values, launch.total):
            why = "its launch parameters may not meet a condition of its accesses"
            raise refused(launch, condition.statement, node, why)
    undecided: dict[ElementRange, None] = {}
    in_buffer, from_element = _grouped(operands)
    for index in accesses.indices:
        trip_counts = [values[loop] for loop in index.loops]
        if any(type(count) is int and count < 1 for count in trip_counts):
            continue
        first, last = _extremes(index, values)
        factors = accesses.scratch.get(index.buffer)
        if index.buffer >= len(launch.buffers):
            lower, upper = partials if factors is None else (0, math.prod(values[n] for n in factors) - 1)
            if not both(at_least(first, lower), at_least(upper, last)):
                why = f"it accesses elements {first} to {last} of scratch memory that has {lower} to {upper}"
                raise refused(launch, index.statement, node, why)
            continue
        argument = launch.buffers[index.buffer]
        counts = tuple(dict.fromkeys([n for n in trip_counts if isinstance(n, SymInt)]))
        buffer, start = (argument.buffer, argument.dtype.size), argument.offset
        elements = ElementRange(*buffer, start + first, start + last, counts)
        candidates = chain(from_element.get((*buffer, elements.first), ()), in_buffer.get(buffer, ()))
        if not any(contains(operand, elements) for operand in candidates):
            undecided[elements] = None
    return list(undecided)


def _grouped(
    operands: Sequence[ElementRange],
) -> tuple[dict[tuple[int, int], list[ElementRange]], dict[tuple[int, int, int], list[ElementRange]]]:
    """The operands by buffer and element size, and by these and the first element.

    Most accesses are those of the operand that begins where they do: a buffer may have hundreds.
    """
    in_buffer: dict[tuple[int, int], list[ElementRange]] = {}
    from_element: dict[tuple[int, int, int], list[ElementRange]] = {}
    for elements in operands:
        buffer = elements.buffer, elements.size
        in_buffer.setdefault(buffer, []).append(elements)
        from_element.setdefault((*buffer, elements.first), []).append(elements)
    return in_buffer, from_element


def _extremes(index: Index, values: Sequence[int]) -> tuple[int, int]:
    """The smallest and the largest index of an access, which has at least one iteration of each loop.

    So a stride that is the trip count of one of its loops, such as that of rows of partial results, is
    positive, even if the bounds of the sizes in it are unknown.
    """
    first = last = 0 if index.offset is None else values[index.offset]
    trip_counts = {values[loop] for loop in index.loops}
    for stride, count in index.terms:
        if values[stride] in trip_counts:
            before, after = 0, values[stride] * (values[count] - 1)
        else:
            before, after = distances(values[stride], values[count])
        first, last = first + before, last + after
    return first, last


def _holds(condition: Condition, values: Sequence[int], total: int) -> bool:
    left, right = values[condition.left], values[condition.right]
    match condition.rule:
        case Rule.EQUAL:
            return left == right
        case Rule.AT_LEAST:
            return at_least(left, right) is True
        case Rule.MULTIPLE:
            return type(left) is int and left % right == 0
        case Rule.ROWS_WITHIN:  # the number of chunks is rounded up
            return total == -(-right // left) or at_least(right - 1, (total - 1) * left) is True
