"""Kernels that are no loop nests: matrix products, scatters, and bounds checks of a scatter's indices."""

from __future__ import annotations

from dualflow.backends.c.source_maths import CMaths
from dualflow.backends.c.values import CLines, CValue, c_type
from dualflow.backends.opencl.dialect import PREAMBLE, OpenCLSupport, buffer_type
from dualflow.backends.opencl.kernel_source import KERNEL
from dualflow.core.dtypes import DType

PRODUCT_GROUP = 256
"""The work-items of a group of a matrix product: 16 x 16, each of which computes 2 x 2 elements."""
PRODUCT_TILE = 32
"""The rows and columns of the tile that a group computes."""


def product(dtype: DType, batch: int) -> str:
    """The program of a batch of matrix products with ``batch`` axes: ``out = scale * (x @ y)``, or ``+=``.

    A group computes a tile of 32 x 32 elements. It copies 16 columns of x and 16 rows of y to local memory,
    from where each element is read 32 times, and goes on to the next 16. Products are added in the order of
    the inner axis.
    """
    c = c_type(dtype)
    support = OpenCLSupport()
    add = support.primitive(f"multiply_add_{'f32' if dtype.size == 4 else 'f64'}")
    sizes = "".join(
        f", const long size{i}, const long x{i}, const long y{i}, const long out{i}" for i in range(batch)
    )
    moves = "\n".join(
        f"        xs += index % size{i} * x{i}; ys += index % size{i} * y{i};\n"
        f"        outs += index % size{i} * out{i}; index /= size{i};"
        for i in reversed(range(batch))
    )
    text = f"""\
__kernel __attribute__((reqd_work_group_size({PRODUCT_GROUP}, 1, 1)))
void {KERNEL}(__global uchar *b0, const long at0, __global uchar *b1, const long at1, __global uchar *b2,
              const long at2, const long rows, const long columns, const long inner, const long x_row,
              const long x_column, const long y_row, const long y_column, const long out_row,
              const long out_column{sizes}, const {c} scale, const long adds, const long items)
{{
    __local {c} x_tile[16][{PRODUCT_TILE} + 1], y_tile[16][{PRODUCT_TILE} + 1];
    const int across = get_local_id(0) % 16, down = get_local_id(0) / 16;
    const long tiles_across = (columns + {PRODUCT_TILE - 1}) / {PRODUCT_TILE};
    const long tiles_down = (rows + {PRODUCT_TILE - 1}) / {PRODUCT_TILE};
    for (long tile = get_group_id(0); tile < items; tile += get_num_groups(0)) {{
        const long first_column = tile % tiles_across * {PRODUCT_TILE};
        const long first_row = tile / tiles_across % tiles_down * {PRODUCT_TILE};
        long index = tile / tiles_across / tiles_down;
        __global const {c} *xs = (__global const {c} *)b0 + at0;
        __global const {c} *ys = (__global const {c} *)b1 + at1;
        __global {c} *outs = (__global {c} *)b2 + at2;
{moves}
        {c} sums[2][2] = {{{{0, 0}}, {{0, 0}}}};
        for (long first = 0; first < inner; first += 16) {{
            for (int h = 0; h < 2; h++) {{
                const long row = first_row + down + 16 * h, k = first + across;
                x_tile[across][down + 16 * h] = row < rows && k < inner ? xs[row * x_row + k * x_column] : 0;
                const long column = first_column + across + 16 * h, l = first + down;
                y_tile[down][across + 16 * h] =
                    column < columns && l < inner ? ys[l * y_row + column * y_column] : 0;
            }}
            barrier(CLK_LOCAL_MEM_FENCE);
            const int depth = inner - first < 16 ? inner - first : 16;
            for (int k = 0; k < depth; k++) {{
                for (int i = 0; i < 2; i++) {{
                    for (int j = 0; j < 2; j++) {{
                        sums[i][j] = {add}(x_tile[k][down + 16 * i], y_tile[k][across + 16 * j], sums[i][j]);
                    }}
                }}
            }}
            barrier(CLK_LOCAL_MEM_FENCE);
        }}
        for (int i = 0; i < 2; i++) {{
            for (int j = 0; j < 2; j++) {{
                const long row = first_row + down + 16 * i, column = first_column + across + 16 * j;
                if (row < rows && column < columns) {{
                    __global {c} *to = outs + row * out_row + column * out_column;
                    *to = adds ? *to + scale * sums[i][j] : scale * sums[i][j];
                }}
            }}
        }}
    }}
}}
"""
    return "\n".join([PREAMBLE, *support.pieces(), text])


def scatter(element: DType, index: DType, depth: int, join: str) -> str:
    """The program of a scatter of rows.

    The grid runs over repetitions and positions within a row. A work-item owns one position within the rows
    of one repetition, and applies all rows in order, so the result is deterministic. A check of the indices
    has run before, but the host may not have read its result yet. So rows whose index is out of bounds are
    left out.
    """
    c, i = buffer_type(element), c_type(index)
    support, lines = OpenCLSupport(), CLines(3)
    value = CValue("row_element", element)
    if join != "put":
        value = getattr(CMaths(lines, support), join)(CValue("old", element), value)
    axes = "".join(f", const long size{d}" for d in range(depth))
    axes += "".join(f", const long stride{d}" for d in range(depth))
    places = "\n".join(
        f"            place += (long)indices[row * {depth} + {d}] * stride{d};" for d in range(depth)
    )
    text = f"""\
__kernel void {KERNEL}(__global uchar *b0, const long at0, __global uchar *b1, const long at1,
                       __global uchar *b2, const long at2, const long count, const long length,
                       const long distance{axes}, const long items)
{{
    __global {c} *out = (__global {c} *)b0 + at0;
    __global const {i} *indices = (__global const {i} *)b1 + at1;
    __global const {c} *rows = (__global const {c} *)b2 + at2;
    for (long item = get_global_id(0); item < items; item += get_global_size(0)) {{
        const long repeat = item / length, element = item % length;
        for (long row = 0; row < count; row++) {{
            if (!({_inside(depth, "row")})) continue;
            long place = 0;
{places}
            __global {c} *to = out + repeat * distance + place * length + element;
            const {c_type(element)} row_element = rows[(repeat * count + row) * length + element];
            const {c_type(element)} old = *to;
{chr(10).join(lines.text)}
            *to = {value.text};
        }}
    }}
}}
"""
    return "\n".join([PREAMBLE, *support.pieces(), text])


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
    return "\n".join([PREAMBLE, text])


def _inside(depth: int, row: str) -> str:
    """The condition that the integers of an index are in bounds of their axes."""
    numbers = [f"indices[{row} * {depth} + {d}]" for d in range(depth)]
    return " && ".join(f"{x} >= 0 && (long){x} < size{d}" for d, x in enumerate(numbers)) or "true"
