"""Kernels of scatters, and of the bounds checks of their indices."""

from __future__ import annotations

from dualflow.backends.c.source_lines import CLines, CValue, c_type
from dualflow.backends.c.source_maths import CMaths
from dualflow.backends.opencl.dialect import OpenCLSupport, buffer_type, program
from dualflow.backends.opencl.kernel_source import KERNEL
from dualflow.core.dtypes import DType, float16


def joins(element: DType, join: str) -> bool:
    """Whether a scatter combines elements with an op: float16 is only put, pairs are put and added."""
    if element is float16:
        return join == "put"
    return not element.is_complex or join in ("put", "add")


def scatter(element: DType, index: DType, depth: int, join: str) -> str:
    """The program of a scatter of rows.

    The grid runs over repetitions and positions within a row. A work-item owns one position within the rows
    of one repetition, and applies all rows in order, so the result is deterministic. A check of the indices
    has run before, but the host may not have read its result yet. So rows whose index is out of bounds are
    left out.
    """
    element_type, index_type = buffer_type(element), c_type(index)
    support, lines = OpenCLSupport(), CLines(3)
    value = CValue("row_element", element)
    if join != "put":
        value = getattr(CMaths(lines, support), join)(CValue("old", element), value)
    axes = "".join(f", const long size{d}" for d in range(depth))
    axes += "".join(f", const long stride{d}" for d in range(depth))
    offsets = "\n".join(
        f"            place += (long)indices[row * {depth} + {d}] * stride{d};" for d in range(depth)
    )
    text = f"""\
__kernel void {KERNEL}(__global uchar *b0, const long at0, __global uchar *b1, const long at1,
                       __global uchar *b2, const long at2, const long count, const long length,
                       const long distance{axes}, const long items)
{{
    __global {element_type} *out = (__global {element_type} *)b0 + at0;
    __global const {index_type} *indices = (__global const {index_type} *)b1 + at1;
    __global const {element_type} *rows = (__global const {element_type} *)b2 + at2;
    for (long item = get_global_id(0); item < items; item += get_global_size(0)) {{
        const long repeat = item / length, element = item % length;
        for (long row = 0; row < count; row++) {{
            if (!({_inside(depth, "row")})) continue;
            long place = 0;
{offsets}
            __global {element_type} *to = out + repeat * distance + place * length + element;
            const {c_type(element)} row_element = rows[(repeat * count + row) * length + element];
            const {c_type(element)} old = *to;
{chr(10).join(lines.text)}
            *to = {value.text};
        }}
    }}
}}
"""
    return program(*support.pieces(), text)


def indices_inside(index: DType, depth: int) -> str:
    """The program of the bounds check of a scatter's indices, one row of them for each work-item."""
    i = c_type(index)
    sizes = "".join(f", const long size{d}" for d in range(depth))
    text = f"""\
__kernel void {KERNEL}(__global uchar *b0, const long at0{sizes}, const long items, __global int *status,
                       const int first_check)
{{
    __global const {i} *indices = (__global const {i} *)b0 + at0;
    for (long item = get_global_id(0); item < items; item += get_global_size(0)) {{
        if (!({_inside(depth, "item")})) atomic_min(status, first_check + 1);
    }}
}}
"""
    return program(text)


def _inside(depth: int, row: str) -> str:
    """The condition that the integers of an index are in bounds of their axes."""
    numbers = [f"indices[{row} * {depth} + {d}]" for d in range(depth)]
    return " && ".join(f"{x} >= 0 && (long){x} < size{d}" for d, x in enumerate(numbers)) or "true"
