"""Source of the routines that programs call in addition to kernels; it needs NumPy and Numba only.

Routines take flat arrays, and the offsets of operands.
"""

from __future__ import annotations

from typing import Final

_JOIN: Final = "Combine rows with the rows at indices, in order."
_EXTREME: Final = (
    "out[u(target + j)] if out[u(target + j)] {sign} rows[u(source + j)] "
    "or out[u(target + j)] != out[u(target + j)] else rows[u(source + j)]"
)


def _scatter(join: str, doc: str, joined: str) -> str:
    """The source of a scatter that stores the expression ``joined`` of the old and the new element."""
    return f'''
@njit(error_model="numpy", cache=True)
def scatter_{join}(out, out_begin, indices, indices_begin, rows, rows_begin,
                   iterations, count, length, sizes, depth):
    """{doc}"""
    out_rows = 1
    for size in sizes:
        out_rows *= size
    for iteration in range(iterations):
        for i in range(count):
            index = i64(0)
            for d in range(depth):
                index = index * sizes[d] + i64(indices[indices_begin + i * depth + d])
            target = out_begin + (iteration * out_rows + index) * length
            source = rows_begin + (iteration * count + i) * length
            for j in range(length):
                out[u(target + j)] = {joined}
'''


ROUTINES: Final = {
    "array": '''
def array(flat, offset, shape, strides):
    """A strided view of a flat array, with element strides."""
    bits = flat.view(f"u{flat.itemsize}") if flat.dtype.num >= 256 else flat  # as_strided supports no others
    view = np.lib.stride_tricks.as_strided(bits[offset:], shape, [s * flat.itemsize for s in strides])
    return view if bits is flat else view.view(flat.dtype)
''',
    "doubled": '''
@njit(error_model="numpy", cache=True)
def doubled(stack, least):
    """The stack with twice its capacity, but at least ``least`` elements."""
    more = np.empty(max(least, 2 * len(stack)), stack.dtype)
    more[: len(stack)] = stack
    return more
''',
    "product": '''
@njit(error_model="numpy", cache=True)
def product(x, x0, xr, xc, y, y0, yr, yc, out, o0, outr, outc, rows, columns, inner, scale, keep):
    """out = scale * (x @ y), or with ``keep`` out += scale * (x @ y).

    x0, xr and xc are the offset, the row stride and the column stride of x; likewise for y and out.
    """
    if columns == 1 or (rows < 4 and yr == 1):
        for i in range(rows):
            for j in range(columns):
                total = x.dtype.type(0)
                for p in range(inner):
                    total = plus(total, x[u(x0 + i * xr + p * xc)] * y[u(y0 + p * yr + j * yc)])
                at = u(o0 + i * outr + j * outc)
                out[at] = (out[at] if keep else out.dtype.type(0)) + total * scale
        return
    if yc != 1:  # lanes read neighbours
        packed = np.empty(inner * columns, y.dtype)
        for p in range(inner):
            for j in range(columns):
                packed[u(p * columns + j)] = y[u(y0 + p * yr + j * yc)]
        y, y0, yr = packed, 0, columns
    sums = np.empty(4 * columns, out.dtype)
    for i in range(0, rows, 4):
        height = min(4, rows - i)
        sums[:] = 0
        for p in range(inner):
            column, row = x0 + i * xr + p * xc, y0 + p * yr
            if height == 4:
                a, b, c, d = x[u(column)], x[u(column + xr)], x[u(column + 2 * xr)], x[u(column + 3 * xr)]
                for j in range(columns):
                    element = y[u(row + j)]
                    sums[u(j)] += a * element
                    sums[u(j + columns)] += b * element
                    sums[u(j + 2 * columns)] += c * element
                    sums[u(j + 3 * columns)] += d * element
            else:
                for r in range(height):
                    a = x[u(column + r * xr)]
                    for j in range(columns):
                        sums[u(j + r * columns)] += a * y[u(row + j)]
        for r in range(height):
            for j in range(columns):
                at = u(o0 + (i + r) * outr + j * outc)
                before = out[at] if keep else out.dtype.type(0)
                out[at] = before + sums[u(r * columns + j)] * scale
''',
    "scatter_inside": '''
@njit(error_model="numpy", cache=True)
def scatter_inside(indices, indices_begin, count, sizes, depth):
    """Whether ``count`` indices are in the bounds of an array of these sizes."""
    for i in range(count):
        for d in range(depth):
            if not 0 <= i64(indices[indices_begin + i * depth + d]) < sizes[d]:
                return False
    return True
''',
    "scatter_put": _scatter("put", "Write rows to indices, in order.", "rows[u(source + j)]"),
    "scatter_add": _scatter("add", _JOIN, "out[u(target + j)] + rows[u(source + j)]"),
    "scatter_multiply": _scatter("multiply", _JOIN, "out[u(target + j)] * rows[u(source + j)]"),
    "scatter_maximum": _scatter("maximum", _JOIN, _EXTREME.format(sign=">")),
    "scatter_minimum": _scatter("minimum", _JOIN, _EXTREME.format(sign="<")),
}
"""The routines by name; ``product`` calls the primitive ``plus``."""
