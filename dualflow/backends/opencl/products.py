"""Kernels of matrix products: tiles in local memory, and in registers; also of windows of a tensor.

A group computes a tile of the result. It copies ``depth`` columns of x and rows of y to local memory, from
where each element is read many times, and goes on to the next ``depth``. A work-item keeps ``rows x columns``
elements of the result in registers::

    for each depth of the inner axis
        x_tile[k][i] = x[i, k]; y_tile[k][j] = y[k, j]; barrier          each member copies a few elements
        for k: sums[i] = fma(x_tile[k][i], y_tile[k][...], sums[i])      a vector of columns for each row
        barrier
    out = scale * sums, or addend + scale * sums; or an epilogue, which computes the outputs from that

Products are added in the order of the inner axis, whatever the tile: so the tile doesn't change the bits. A
convolution is a product of windows: the elements of x are then read from the tensor, and zeros around it.
"""

from __future__ import annotations

from typing import Final

from dualflow.backends.c.source_lines import c_type
from dualflow.backends.opencl.dialect import program
from dualflow.backends.opencl.epilogue_source import EpilogueSource
from dualflow.backends.opencl.kernel_source import KERNEL
from dualflow.core.dtypes import DType
from dualflow.core.records import NamedTuple
from dualflow.schedule.sliding import SlidingWindows

_PADDING: Final = 4
"""The elements after each row of a tile in local memory, so that neighbouring rows are in other banks."""


_UNSIGNED: Final = {1: "uchar", 2: "ushort", 4: "uint", 8: "ulong"}
"""The types in which integers are multiplied, by their bytes: in C signed overflow is undefined."""


class ProductTile(NamedTuple):
    """The tile of a group.

    Attributes:
        rows, columns: the elements of a work-item; ``columns`` is the width of a vector.
        down, across: the work-items of a group, none of which is less than the tile's sides require.
        depth: the elements of the inner axis that are copied at a time.
    """

    rows: int
    columns: int
    down: int
    across: int
    depth: int

    @property
    def height(self) -> int:
        """The rows of the tile."""
        return self.rows * self.down

    @property
    def width(self) -> int:
        """The columns of the tile."""
        return self.columns * self.across

    @property
    def group_size(self) -> int:
        """The work-items of a group."""
        return self.down * self.across

    def local_bytes(self, itemsize: int) -> int:
        """The bytes of local memory that it takes."""
        return (self.height + self.width + 2 * _PADDING) * self.depth * itemsize


SMALL: Final = ProductTile(2, 2, 16, 16, 16)
"""The tile of small products, which then have more groups."""
NARROW: Final = ProductTile(4, 4, 16, 16, 16)
"""The tile of products with few rows or columns, but many elements, as of most convolutions."""
LARGE: Final = (
    ProductTile(4, 4, 16, 16, 16),
    ProductTile(8, 4, 16, 16, 16),
    ProductTile(8, 8, 16, 16, 16),
    ProductTile(8, 8, 8, 8, 16),
)
"""The tiles of large products, one of which is selected for a device by measuring."""


class ProductForm(NamedTuple):
    """What the text of a product's kernel depends on.

    Attributes:
        dtype: of all elements.
        batch: the number of axes of the batch.
        tile: the tile.
        adds: whether an addend is added to the product.
        x_is_column_major: whether neighbouring elements of a column of x are neighbours in memory.
        y_is_column_major: likewise of y.
        window_axes: the number of axes that windows slide over; 0 if x is a matrix.
        by_window: whether windows are rows of x; else they are columns.
    """

    dtype: DType
    batch: int
    tile: ProductTile
    adds: bool
    x_is_column_major: bool = False
    y_is_column_major: bool = False
    window_axes: int = 0
    by_window: bool = True


def window_geometry(windows: SlidingWindows) -> tuple[int, ...]:
    """The arguments of a kernel that reads windows, in the order of :func:`window_names`."""
    return (*[n for axis in windows.axes for n in axis], windows.channels)


def window_names(axes: int) -> list[str]:
    """The names of the geometry of windows over a number of axes; none for a matrix."""
    names = ("size", "before", "windows", "stride", "length", "dilation")
    return [*(f"{name}{i}" for i in range(axes) for name in names), "channels"] if axes else []


def _tensor_strides(axes: int) -> str:
    """The lines that compute the strides of a tensor's axes, and of its batch, ``tensor``."""
    lines, stride = [], "channels"
    for i in reversed(range(axes)):
        lines.append(f"    const long axis{i} = {stride};")
        stride = f"axis{i} * size{i}"
    return "\n".join([*lines, f"    const long tensor = {stride};"])


def product(form: ProductForm, epilogue: EpilogueSource | None = None) -> str:
    """The program of a product: ``out = scale * (x @ y)``, or ``out = addend + scale * (x @ y)``.

    With an epilogue, ``out`` is not stored: the epilogue computes the outputs from its elements.
    """
    functions = () if epilogue is None else epilogue.functions
    return program(*functions, _ProductWriter(form, epilogue).text())


class _ProductWriter:
    """Writes the OpenCL source of a matrix product for one :class:`ProductForm`.

    Attributes:
        matrices: the matrices in memory.
    """

    def __init__(self, form: ProductForm, epilogue: EpilogueSource | None) -> None:
        self.form, self.tile, self.epilogue = form, form.tile, epilogue
        self.c = _UNSIGNED[form.dtype.size] if form.dtype.is_integer else c_type(form.dtype)
        self.vector = f"{self.c}{form.tile.columns}"
        stored = ["out"] if epilogue is None else []
        self.matrices = ["x", "y", *stored, *(["addend"] if form.adds else [])]

    def text(self) -> str:
        tile, c = self.tile, self.c
        return f"""\
__kernel __attribute__((reqd_work_group_size({tile.group_size}, 1, 1)))
void {KERNEL}({", ".join(self._parameters())})
{{
{self._epilogue_pointers()}
    __local {c} x_tile[{tile.depth}][{tile.height + _PADDING}], y_tile[{tile.depth}][{tile.width + _PADDING}];
    const int member = get_local_id(0), across = member % {tile.across}, down = member / {tile.across};
    const long tiles_across = (columns + {tile.width - 1}) / {tile.width};
    const long tiles_down = (rows + {tile.height - 1}) / {tile.height};
{self._window_memory()}
    for (long number = get_group_id(0); number < items; number += get_num_groups(0)) {{
        const long first_column = number % tiles_across * {tile.width};
        const long first_row = number / tiles_across % tiles_down * {tile.height};
        const long matrix = number / tiles_across / tiles_down;
{self._pointers()}
        {self.vector} sums[{tile.rows}];
        for (int i = 0; i < {tile.rows}; i++) sums[i] = 0;
{self._row_table()}
        for (long first = 0; first < inner; first += {tile.depth}) {{
{self._inner_table()}
{self._copy_x()}
{self._copy_y()}
            barrier(CLK_LOCAL_MEM_FENCE);
            const int depth = inner - first < {tile.depth} ? inner - first : {tile.depth};
            for (int k = 0; k < depth; k++) {{
                const {self.vector} y_part = vload{tile.columns}(0, &y_tile[k][across * {tile.columns}]);
                for (int i = 0; i < {tile.rows}; i++) {{
                    const {self.vector} x_part = x_tile[k][down * {tile.rows} + i];
                    sums[i] = {self._sum("x_part", "y_part", "sums[i]")};
                }}
            }}
            barrier(CLK_LOCAL_MEM_FENCE);
        }}
        for (int i = 0; i < {tile.rows}; i++) {{
            {c} sum[{tile.columns}];
            vstore{tile.columns}(sums[i], 0, sum);
            const long row = first_row + down * {tile.rows} + i;
            for (int j = 0; j < {tile.columns}; j++) {{
                const long column = first_column + across * {tile.columns} + j;
                if (row < rows && column < columns) {{
{self._result()}
                }}
            }}
        }}
    }}
}}
"""

    def _sum(self, x: str, y: str, addend: str) -> str:
        """A product that is added to ``addend``, without a rounding between; integers wrap."""
        return f"{x} * {y} + {addend}" if self.form.dtype.is_integer else f"fma({x}, {y}, {addend})"

    def _parameters(self) -> list[str]:
        """The declarations of the parameters."""
        names = [
            "rows",
            "columns",
            "inner",
            *(f"{m}_{axis}" for m in self.matrices for axis in ("row", "column")),
            *(
                name
                for i in range(self.form.batch)
                for name in (f"size{i}_batch", *(f"{m}{i}_batch" for m in self.matrices))
            ),
            *window_names(self.form.window_axes),
        ]
        memory = [f"__global uchar *{m}_memory, const long {m}_start" for m in self.matrices]
        epilogue = () if self.epilogue is None else self.epilogue.parameters
        numbers = [f"const long {name}" for name in names]
        return [*memory, *numbers, f"const {self.c} scale", *epilogue, "const long items"]

    def _pointers(self) -> str:
        """The lines that declare the matrices of number ``matrix`` in the batch."""
        lines = []
        for m in self.matrices:
            pointer = f"__global {'' if m == 'out' else 'const '}{self.c} *"
            lines.append(f"        {pointer}{m} = ({pointer}){m}_memory + {m}_start;")
        if self.form.batch:
            lines.append("        long left = matrix;")
        for i in reversed(range(self.form.batch)):
            steps = " ".join(f"{m} += at * {m}{i}_batch;" for m in self.matrices)
            lines.append(
                f"        {{ const long at = left % size{i}_batch; left /= size{i}_batch; {steps} }}"
            )
        return "\n".join(lines)

    def _epilogue_pointers(self) -> str:
        """The lines that declare the buffers of the epilogue."""
        return "" if self.epilogue is None else "\n".join(self.epilogue.pointers)

    def _result(self) -> str:
        """The lines that store an element, or compute the epilogue from it."""
        value = "scale * sum[j]"
        if self.form.adds:
            value = f"addend[row * addend_row + column * addend_column] + {value}"
        if self.epilogue is None:
            return f"                    out[row * out_row + column * out_column] = {value};"
        lines = [
            f"        const {c_type(self.form.dtype)} {self.epilogue.element} = {value};",
            "        const long row_of_all = matrix * rows + row;",
            *self.epilogue.lines,
        ]
        return "\n".join([f"            {line}" for line in lines])

    def _copy_y(self) -> str:
        """The copy of rows of y: neighbouring members copy neighbours in memory."""
        tile = self.tile
        count = tile.width * tile.depth
        if self.form.y_is_column_major:
            at = f"const int k = e % {tile.depth}, j = e / {tile.depth};"
        else:
            at = f"const int j = e % {tile.width}, k = e / {tile.width};"
        return f"""\
            for (int e = member; e < {count}; e += {tile.group_size}) {{
                {at}
                const long column = first_column + j, l = first + k;
                y_tile[k][j] = column < columns && l < inner ? y[l * y_row + column * y_column] : 0;
            }}"""

    def _copy_x(self) -> str:
        """The copy of columns of x; of windows, those elements that are inside of the tensor."""
        form, tile = self.form, self.tile
        axes = range(form.window_axes)
        if not form.by_window if axes else form.x_is_column_major:
            at = f"const int i = e % {tile.height}, k = e / {tile.height};"
        else:
            at = f"const int k = e % {tile.depth}, i = e / {tile.depth};"
        if axes:
            inside = " && ".join(f"(ulong)(row_at{a}[i] + inner_at{a}[k]) < (ulong)size{a}" for a in axes)
            value = f"{inside} ? x[row_index[i] + inner_index[k]] : 0"
        else:
            value = (
                "first_row + i < rows && first + k < inner "
                "? x[(first_row + i) * x_row + (first + k) * x_column] : 0"
            )
        return f"""\
            for (int e = member; e < {tile.height * tile.depth}; e += {tile.group_size}) {{
                {at}
                x_tile[k][i] = {value};
            }}"""

    # Windows

    def _window_memory(self) -> str:
        """The declarations of a tile's local memory for the positions and offsets of windows and elements."""
        if not self.form.window_axes:
            return ""
        lines = [_tensor_strides(self.form.window_axes)]
        for name, length in (("row", self.tile.height), ("inner", self.tile.depth)):
            tables = [f"{name}_index[{length}]"]
            tables += [f"{name}_at{i}[{length}]" for i in range(self.form.window_axes)]
            lines.append(f"    __local long {', '.join(tables)};")
        return "\n".join(lines)

    def _row_table(self) -> str:
        """The lines that compute positions and offsets of a tile's rows."""
        if not self.form.window_axes:
            return ""
        return self._table("row", "first_row", "rows", self.tile.height, self.form.by_window)

    def _inner_table(self) -> str:
        """The lines that compute positions and offsets along the inner axis, and a barrier."""
        if not self.form.window_axes:
            return ""
        lines = self._table("inner", "first", "inner", self.tile.depth, not self.form.by_window)
        return f"{lines}\n            barrier(CLK_LOCAL_MEM_FENCE);"

    def _table(self, name: str, first: str, end: str, length: int, by_window: bool) -> str:
        """The lines that compute positions and offsets of windows, or of their elements, in local memory.

        Positions along an axis are added, and so are indices. One that is out of range has a position far
        before the tensor.
        """
        axes = reversed(range(self.form.window_axes))
        if by_window:
            index, position = f"{name}_rest * tensor", "windows{0} * stride{0} - before{0}"
            count, channel = "windows", ""
        else:
            index, position = "channel", "length{0} * dilation{0}"
            count = "length"
            channel = f"const long channel = {name}_rest % channels; {name}_rest /= channels;"
        parts = [
            f"                const long at{i} = {name}_rest % {position.format(i)};\n"
            f"                {name}_rest /= {count}{i};\n"
            f"                {name}_at{i}[e] = {first} + e < {end} ? at{i} : LONG_MIN / 4;"
            for i in axes
        ]
        total = "".join(f" + at{i} * axis{i}" for i in range(self.form.window_axes))
        return "\n".join(
            [
                f"            for (int e = member; e < {length}; e += {self.tile.group_size}) {{",
                f"                long {name}_rest = {first} + e;",
                f"                {channel}",
                *parts,
                f"                {name}_index[e] = {index}{total};",
                "            }",
            ]
        )


def window_sum(dtype: DType, axes: int) -> str:
    """The program of a depthwise convolution: each work-item sums a window times the filter, in order."""
    c = c_type(dtype)
    positions = "\n".join(
        f"        const long at{i}_axis = left % windows{i} * stride{i} - before{i}; left /= windows{i};"
        for i in reversed(range(axes))
    )
    loops, inside, index, weight = "", "true", "channel", "0"
    for i in range(axes):
        loops += f"        for (long o{i} = 0; o{i} < length{i}; o{i}++)\n"
        at = f"(at{i}_axis + o{i} * dilation{i})"
        inside += f" && {at} >= 0 && {at} < size{i}"
        index += f" + {at} * axis{i}"
        weight = f"({weight}) * length{i} + o{i}"
    geometry = ", ".join(f"const long {name}" for name in window_names(axes))
    text = f"""\
__kernel void {KERNEL}(__global uchar *b0, const long at0, __global uchar *b1, const long at1,
                       __global uchar *b2, const long at2, {geometry}, const long items)
{{
    __global const {c} *x = (__global const {c} *)b0 + at0;
    __global const {c} *y = (__global const {c} *)b1 + at1;
    __global {c} *out = (__global {c} *)b2 + at2;
{_tensor_strides(axes)}
    for (long item = get_global_id(0); item < items; item += get_global_size(0)) {{
        const long channel = item % channels;
        long left = item / channels;
{positions}
        {c} sum = 0;
{loops}        {{
            const long weight = ({weight}) * channels + channel;
            if ({inside}) sum = fma(x[left * tensor + {index}], y[weight], sum);
        }}
        out[item] = sum;
    }}
}}
"""
    return program(text)
