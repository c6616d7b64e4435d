"""C routines for ops that are no loop nests: sort, argsort, top-k, searchsorted, take_along_axis."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Final

from dualflow.backends.c.source_lines import c_type, type_name
from dualflow.core.dtypes import DType
from dualflow.core.records import NamedTuple
from dualflow.graph.ir import Node, Value
from dualflow.graph.views import sizes
from dualflow.ops.ordering.extremes import TOP_PLACES
from dualflow.ops.ordering.search import SEARCHSORTED
from dualflow.ops.record import Op
from dualflow.ops.sorting import ADD_ALONG, ARGSORT, SORT, TAKE_ALONG
from dualflow.scalar.text_maths import UNSIGNED
from dualflow.schedule.kernel_statements import OUT_OF_RANGE


class OpRoutine(NamedTuple):
    """A routine that computes an op, of contiguous tensors.

    Its parameters are pointers to the inputs and to the output, the numbers, and scratch memory.

    Attributes:
        name: the name of the function.
        functions: the text of each function, by its name.
        numbers: the numbers, which are sizes or flags.
        scratch: the number of int64s of scratch memory; None if there is no such parameter.
        message: the message if the function returns false; None if it returns nothing.
    """

    name: str
    functions: dict[str, str]
    numbers: tuple[int, ...]
    scratch: int | None = None
    message: str | None = None


def op_routine(node: Node) -> OpRoutine | None:
    """The routine that computes ``node``; None if there is none."""
    write = _WRITERS.get(node.op)
    return None if write is None else write(node)


def _outer_size_inner(value: Value, axis: int) -> tuple[int, int, int]:
    """The number of elements before an axis, on it and after it."""
    shape = sizes(value)
    axis %= len(shape)
    return math.prod(shape[:axis]), shape[axis], math.prod(shape[axis + 1 :])


def _less(dtype: DType) -> tuple[str, str]:
    """The name and the C text of the comparison of elements in a sort, in which nan is the largest."""
    name, c = f"df_before_{type_name(dtype)}", c_type(dtype)
    nan = " || (y != y && x == x)" if dtype.is_floating else ""
    return name, f"static inline bool {name}({c} x, {c} y)\n{{\n    return x < y{nan};\n}}\n"


def _merge_sort(dtype: DType) -> tuple[str, dict[str, str]]:
    """The name and the functions of the merge sort of positions, which keeps the order of equal elements."""
    before, order = _less(dtype)
    name, c = f"df_ordered_{type_name(dtype)}", c_type(dtype)
    text = f"""\
/* The positions that sort n elements at distances of `step`; `scratch` has room for two of each. */
static const int64_t *{name}(const {c} *x, int64_t n, int64_t step, bool descending, int64_t *scratch)
{{
    int64_t *positions = scratch, *merged = scratch + n;
    for (int64_t i = 0; i < n; i++) positions[i] = i;
    for (int64_t width = 1; width < n; width *= 2) {{
        for (int64_t begin = 0; begin < n; begin += 2 * width) {{
            const int64_t middle = begin + width < n ? begin + width : n;
            const int64_t end = middle + width < n ? middle + width : n;
            int64_t a = begin, b = middle;
            for (int64_t i = begin; i < end; i++) {{
                bool second = a == middle;
                if (a < middle && b < end) {{
                    const {c} left = x[positions[a] * step], right = x[positions[b] * step];
                    second = descending ? {before}(left, right) : {before}(right, left);
                }}
                merged[i] = positions[second ? b++ : a++];
            }}
        }}
        int64_t *const other = positions;
        positions = merged;
        merged = other;
    }}
    return positions;
}}
"""
    return name, {before: order, name: text}


def _sorted(node: Node, axis: int, count: int, element: str) -> OpRoutine:
    """The routine for the first ``count`` elements, or their positions, of each sorted row."""
    (x,) = node.inputs
    out, dtype = node.output.spec.dtype, x.spec.dtype
    ordered, functions = _merge_sort(dtype)
    name = f"df_{element}_{type_name(dtype)}"
    result = "positions[i]" if element == "positions" else "row[positions[i] * inner]"
    functions[name] = f"""\
static void {name}(const {c_type(dtype)} *x, {c_type(out)} *out, int64_t outer, int64_t n, int64_t inner,
                   int64_t count, int64_t descending, int64_t *scratch)
{{
    for (int64_t i0 = 0; i0 < outer; i0++) {{
        for (int64_t i1 = 0; i1 < inner; i1++) {{
            const {c_type(dtype)} *const row = x + i0 * n * inner + i1;
            const int64_t *const positions = {ordered}(row, n, inner, descending != 0, scratch);
            for (int64_t i = 0; i < count; i++) {{
                out[(i0 * count + i) * inner + i1] = ({c_type(out)}){result};
            }}
        }}
    }}
}}
"""
    outer, n, inner = _outer_size_inner(x, axis)
    return OpRoutine(name, functions, (outer, n, inner, count, int(node.attrs["descending"])), 2 * n)


def _sort(node: Node) -> OpRoutine:
    axis = node.attrs["axis"]
    return _sorted(node, axis, _outer_size_inner(node.inputs[0], axis)[1], "sorted")


def _argsort(node: Node) -> OpRoutine:
    axis = node.attrs["axis"]
    return _sorted(node, axis, _outer_size_inner(node.inputs[0], axis)[1], "positions")


def _top_places(node: Node) -> OpRoutine:
    return _sorted(node, -1, node.attrs["count"], "positions")


def _searchsorted(node: Node) -> OpRoutine:
    rows, values = node.inputs
    dtype, out = rows.spec.dtype, node.output.spec.dtype
    before, order = _less(dtype)
    name, c = f"df_searched_{type_name(dtype)}_{type_name(out)}", c_type(dtype)
    text = f"""\
/* The index at which each value fits into its sorted row, left or right of equal elements. */
static void {name}(const {c} *rows, const {c} *values, {c_type(out)} *out, int64_t outer, int64_t n,
                   int64_t count, int64_t right)
{{
    for (int64_t i = 0; i < outer * count; i++) {{
        const {c} *const row = rows + i / count * n;
        int64_t low = 0, high = n;
        while (low < high) {{
            const int64_t middle = low + (high - low) / 2;
            const bool after = right ? !{before}(values[i], row[middle]) : {before}(row[middle], values[i]);
            if (after) low = middle + 1;
            else high = middle;
        }}
        out[i] = ({c_type(out)})low;
    }}
}}
"""
    outer, n, _ = _outer_size_inner(rows, -1)
    numbers = (outer, n, sizes(values)[-1], int(node.attrs["side"] == "right"))
    return OpRoutine(name, {before: order, name: text}, numbers)


def _axis_sizes(indices: Value, shape: Sequence[int], axis: int) -> tuple[int, ...] | None:
    """The sizes of a routine along an axis; None if other axes differ in size, and broadcast."""
    own = list(sizes(indices))
    axis %= len(own)
    if [*own[:axis], *own[axis + 1 :]] != [*shape[:axis], *shape[axis + 1 :]]:
        return None
    outer, count, inner = _outer_size_inner(indices, axis)
    return outer, shape[axis], inner, count


def _take_along(node: Node) -> OpRoutine | None:
    x, indices = node.inputs
    return _by_positions(
        x,
        indices,
        _axis_sizes(indices, sizes(x), node.attrs["axis"]),
        "taken",
        "to[k] = from[at * inner]",
    )


def _add_along(node: Node) -> OpRoutine | None:
    indices, updates = node.inputs
    numbers, dtype = _axis_sizes(indices, sizes(node.output), node.attrs["axis"]), updates.spec.dtype
    add = "to[at * inner] += from[k]"
    if dtype.is_integer:  # without a sign, since overflow of signed integers is undefined
        unsigned = c_type(UNSIGNED[max(dtype.size, 4)])
        add = f"to[at * inner] = ({c_type(dtype)})(({unsigned})to[at * inner] + ({unsigned})from[k])"
    return _by_positions(updates, indices, numbers, "added", add)


def _by_positions(
    x: Value, indices: Value, numbers: tuple[int, ...] | None, verb: str, statement: str
) -> OpRoutine | None:
    """The routine that reads the elements at positions of each row, or adds to them."""
    if numbers is None:
        return None
    adds = verb == "added"
    name = f"df_{verb}_{type_name(x.spec.dtype)}_{type_name(indices.spec.dtype)}"
    c, index = c_type(x.spec.dtype), c_type(indices.spec.dtype)
    operands = [f"const {c} *x", f"const {index} *indices"]
    read, written = ("count", "n") if adds else ("n", "count")
    clear = "    memset(out, 0, (size_t)(outer * n * inner) * sizeof *out);\n" if adds else ""
    text = f"""\
/* Whether all positions are in bounds. */
static bool {name}({", ".join(operands[::-1] if adds else operands)}, {c} *out, int64_t outer, int64_t n,
                   int64_t inner, int64_t count)
{{
{clear}    for (int64_t i0 = 0; i0 < outer; i0++) {{
        for (int64_t i = 0; i < count; i++) {{
            for (int64_t i1 = 0; i1 < inner; i1++) {{
                const int64_t k = i * inner, at = (int64_t)indices[(i0 * count + i) * inner + i1];
                if (at < 0 || at >= n) return false;
                const {c} *const from = x + i0 * {read} * inner + i1;
                {c} *const to = out + i0 * {written} * inner + i1;
                {statement};
            }}
        }}
    }}
    return true;
}}
"""
    return OpRoutine(name, {name: text}, numbers, message=OUT_OF_RANGE)


_WRITERS: Final[dict[Op, Callable[[Node], OpRoutine | None]]] = {
    SORT: _sort,
    ARGSORT: _argsort,
    TOP_PLACES: _top_places,
    SEARCHSORTED: _searchsorted,
    TAKE_ALONG: _take_along,
    ADD_ALONG: _add_along,
}
