"""Writes the size code of a program whose sizes follow from those of its arguments, with its checks."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence

from dualflow.backends.llvm.entry import ALLOCATION_FAILED, TOO_LARGE, Unit
from dualflow.backends.llvm.program_image import OTHER_SIZES
from dualflow.backends.llvm.size_code import SizeCode, SizeOp, float_bits
from dualflow.core.records import NamedTuple
from dualflow.core.shape import MAX_ELEMENTS
from dualflow.graph.ir import Node
from dualflow.schedule.call_reports import OUT_OF_BOUNDS
from dualflow.schedule.element_ranges import ElementRange, at_least


class ArgumentSizes(NamedTuple):
    """What the sizes of a call's arguments have to satisfy, as indices of parameters and nodes.

    Attributes:
        equal: pairs of parameters that have to be equal.
        different: pairs of parameters that have to differ.
        equal_to: parameters, each with the expression that it has to be equal to.
        guards: nodes of comparisons that have to have their outcome.
        required: nodes of comparisons without which the call fails.
    """

    equal: Sequence[tuple[int, int]]
    different: Sequence[tuple[int, int]]
    equal_to: Sequence[tuple[int, int]]
    guards: Sequence[Node]
    required: Sequence[Node]


def write_size_code(
    unit: Unit, sizes: ArgumentSizes, shapes: Iterable[tuple[int, ...]], arena_bytes: int
) -> SizeCode:
    """The code that computes all parameters from the sizes of arguments, and checks them.

    A call stores the sizes of its arguments at their places first. The status becomes :data:`OTHER_SIZES` if
    another program serves the call, whatever calls there were before: if ``equal``, ``different``,
    ``equal_to`` or ``guards`` of ``sizes`` don't hold.
    The call fails if sizes that are ``required`` to be equal differ, if a value of ``shapes`` or the arena is
    larger than memory, or if elements that a statement accesses are outside of their buffer.
    """
    code = SizeCode(unit.table)
    _refuse_other_sizes(code, sizes)
    first = unit.plan.calls[0].node
    limit = code.constant(float_bits(float(MAX_ELEMENTS)))
    for shape in shapes:
        _fail_if(unit, code, SizeOp.FAIL_IF_MORE_ELEMENTS, code.elements(shape), limit, TOO_LARGE, first)
    for check in sizes.required:
        _require(unit, code, check)
    for accessed, node in _farthest(unit.range_checks):
        _check_range(unit, code, accessed, node)
    limit, needed = unit.memory_param(1), code.value(arena_bytes)
    _fail_if(unit, code, SizeOp.FAIL_IF_LESS, limit, needed, ALLOCATION_FAILED, first)
    code.compute_parameters()
    return code


def _refuse_other_sizes(code: SizeCode, sizes: ArgumentSizes) -> None:
    for index, other in sizes.equal:
        code.check(SizeOp.FAIL_UNLESS_EQUAL, OTHER_SIZES, index, other)
    for index, other in sizes.different:
        code.check(SizeOp.FAIL_IF_EQUAL, OTHER_SIZES, index, other)
    for index, size in sizes.equal_to:
        code.check(SizeOp.FAIL_UNLESS_EQUAL, OTHER_SIZES, index, code.value(size))
    for guard in sizes.guards:
        x, y, equality, outcome = (guard.attrs[name] for name in ("x", "y", "equality", "outcome"))
        code.check(_REFUSALS[equality, outcome], OTHER_SIZES, code.value(x), code.value(y))


_REFUSALS = {
    (True, True): SizeOp.FAIL_UNLESS_EQUAL,
    (True, False): SizeOp.FAIL_IF_EQUAL,
    (False, True): SizeOp.FAIL_UNLESS_LESS,
    (False, False): SizeOp.FAIL_IF_LESS,
}
"""The check of a guard, by whether it is of an equality, and its outcome."""


def _require(unit: Unit, code: SizeCode, node: Node) -> None:
    """Compare two sizes; the call fails if they differ."""
    attrs = node.attrs
    first, second = code.value(attrs["x"]), code.value(attrs["y"])
    if attrs["repeats"]:
        is_one = code.apply(SizeOp.EQUAL, first, code.constant(1))
        is_same = code.apply(SizeOp.EQUAL, first, second)
        first, second = code.apply(SizeOp.LARGEST, is_one, is_same), code.constant(1)
    _fail_if(unit, code, SizeOp.FAIL_UNLESS_EQUAL, first, second, attrs["message"], node)


def _farthest(checks: Iterable[tuple[ElementRange, Node]]) -> list[tuple[ElementRange, Node]]:
    """``checks``, with one for all ranges of numbers in a buffer: the one that needs the most bytes."""
    farthest: dict[Hashable, tuple[ElementRange, Node]] = {}
    for check in checks:
        elements = check[0]
        is_number = type(elements.first) is int and type(elements.last) is int and not elements.counts
        key: Hashable = elements.buffer if is_number and elements.first >= 0 else (len(farthest),)
        earlier = farthest.get(key)
        if earlier is None or elements.nbytes > earlier[0].nbytes:
            farthest[key] = check
    return list(farthest.values())


def _check_range(unit: Unit, code: SizeCode, elements: ElementRange, node: Node) -> None:
    """Compare elements with their buffer; the call fails if some are outside."""
    nbytes = unit.memory_bounds.nbytes[elements.buffer]
    assert nbytes is not None, "all sizes are computed before the program runs"
    available, needed, zero = code.value(nbytes), code.value(elements.nbytes), code.constant(0)
    outside = code.apply(SizeOp.LESS, available, needed)
    if at_least(elements.first, 0) is not True:
        is_before = code.apply(SizeOp.LESS, code.value(elements.first), zero)
        outside = code.apply(SizeOp.LARGEST, outside, is_before)
    for count in elements.counts:
        has_some = code.apply(SizeOp.LESS, zero, code.value(count))
        outside = code.apply(SizeOp.MULTIPLY, outside, has_some)
    _fail_if(unit, code, SizeOp.FAIL_UNLESS_EQUAL, outside, zero, OUT_OF_BOUNDS, node)


def _fail_if(unit: Unit, code: SizeCode, check: SizeOp, x: int, y: int, message: str, node: Node) -> None:
    unit.messages.append((message, node))
    code.check(check, len(unit.messages), x, y)
