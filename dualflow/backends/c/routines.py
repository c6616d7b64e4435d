"""Routines of exported programs: matrix products, scatters, and positions of elements."""

from __future__ import annotations

from dualflow.backends.c.source_lines import CLines, CValue, c_type, type_name
from dualflow.backends.c.source_maths import CMaths
from dualflow.backends.c.support import CSupport
from dualflow.core.dtypes import DType


def product(dtype: DType, support: CSupport) -> tuple[str, str]:
    """The name and the text of the matrix product: CBLAS if the file is compiled with it, or else tiles.

    A tile of 6 rows and 64 bytes of columns is accumulated in registers. Its columns of y are copied to the
    stack, unless their rows are contiguous already. Products are added in the order of the inner axis.
    """
    name, c, columns = f"df_matmul_{type_name(dtype)}", c_type(dtype), 64 // dtype.size
    support.primitive(f"multiply_add_{type_name(dtype)}")
    text = f"""\
{_tile(name, dtype, columns)}
/* out = scale * (x @ y), or out += scale * (x @ y) if `adds`; matrices have strides for rows and columns. */
static void {name}(int64_t rows, int64_t columns, int64_t inner, const {c} *x, int64_t x_row,
                   int64_t x_column, const {c} *y, int64_t y_row, int64_t y_column, {c} *out,
                   int64_t out_row, int64_t out_column, {c} scale, bool adds)
{{
{_blas_call("cblas_sgemm" if dtype.size == 4 else "cblas_dgemm")}\
{_loops_over_tiles(name, c, columns)}\
}}
"""
    return name, text


def _tile(name: str, dtype: DType, columns: int) -> str:
    """The function that computes a tile of the product ``name``."""
    c, add = c_type(dtype), f"df_multiply_add_{type_name(dtype)}"
    return f"""\
/* The product of 6 rows of x and {columns} columns of y; rows after the last one repeat it. */
static inline void {name}_tile(int64_t inner, const {c} *const x[6], int64_t x_column, const {c} *y,
                               int64_t y_row, {c} product[6][{columns}])
{{
    {c} sums[6][{columns}] = {{{{0}}}};
    for (int64_t k = 0; k < inner; k++) {{
        DF_UNROLL_ROWS
        for (int i = 0; i < 6; i++) {{
            const {c} factor = x[i][k * x_column];
            DF_UNROLL_COLUMNS
            for (int j = 0; j < {columns}; j++) sums[i][j] = {add}(factor, y[k * y_row + j], sums[i][j]);
        }}
    }}
    memcpy(product, sums, sizeof sums);
}}
"""


def _blas_call(gemm: str) -> str:
    """The call of BLAS, if BLAS supports the sizes and strides of the matrices; the product then returns."""
    return f"""\
#ifdef DF_CBLAS
    const bool x_by_rows = x_column == 1 && x_row >= inner, x_by_columns = x_row == 1 && x_column >= rows;
    const bool y_by_rows = y_column == 1 && y_row >= columns, y_by_columns = y_row == 1 && y_column >= inner;
    const bool readable = (x_by_rows || x_by_columns) && (y_by_rows || y_by_columns) && out_column == 1;
    const int64_t largest = rows | columns | inner | x_row | x_column | y_row | y_column | out_row;
    if (readable && out_row >= columns && inner > 0 && rows > 0 && columns > 0 && largest < INT32_MAX) {{
        {gemm}(CblasRowMajor, x_by_rows ? CblasNoTrans : CblasTrans, y_by_rows ? CblasNoTrans : CblasTrans,
               (int)rows, (int)columns, (int)inner, scale, x, (int)(x_by_rows ? x_row : x_column), y,
               (int)(y_by_rows ? y_row : y_column), adds ? 1 : 0, out, (int)out_row);
        return;
    }}
#endif
"""


def _loops_over_tiles(name: str, c: str, columns: int) -> str:
    """Loops over blocks of columns and of the inner axis, which compute and store a tile for each 6 rows."""
    return f"""\
    enum {{ DEPTH = 256 }};
    {c} panel[DEPTH * {columns}];
    for (int64_t column = 0; column < columns; column += {columns}) {{
        const int64_t width = columns - column < {columns} ? columns - column : {columns};
        for (int64_t first = 0; first < inner || first == 0; first += DEPTH) {{
            const int64_t depth = inner - first < DEPTH ? inner - first : DEPTH;
            const {c} *block = y + first * y_row + column * y_column;
            int64_t block_row = y_row;
            if (y_column != 1 || width < {columns}) {{
                for (int64_t k = 0; k < depth; k++) {{
                    for (int64_t j = 0; j < {columns}; j++) {{
                        panel[k * {columns} + j] = j < width ? block[k * y_row + j * y_column] : 0;
                    }}
                }}
                block = panel;
                block_row = {columns};
            }}
            for (int64_t row = 0; row < rows; row += 6) {{
                const int64_t height = rows - row < 6 ? rows - row : 6;
                const {c} *from[6];
                {c} sums[6][{columns}];
                for (int64_t i = 0; i < 6; i++) {{
                    from[i] = x + (row + (i < height ? i : height - 1)) * x_row + first * x_column;
                }}
                {name}_tile(depth, from, x_column, block, block_row, sums);
                for (int64_t i = 0; i < height; i++) {{
                    {c} *to = out + (row + i) * out_row + column * out_column;
                    for (int64_t j = 0; j < width; j++) {{
                        const {c} old = adds || first > 0 ? to[j * out_column] : 0;
                        to[j * out_column] = old + scale * sums[i][j];
                    }}
                }}
            }}
        }}
    }}
"""


def scatter(element: DType, index: DType, depth: int, join: str, support: CSupport) -> tuple[str, str]:
    """The name and the text of a scatter of rows, whose indices are checked before."""
    c, i = c_type(element), c_type(index)
    name = f"df_scatter_{join}{depth}_{type_name(element)}_{type_name(index)}"
    lines = CLines(4)
    value = CValue("from[j]", element)
    if join != "put":
        value = getattr(CMaths(lines, support), join)(CValue("to[j]", element), value)
    body = "\n".join([*lines.text, f"                to[j] = {value.text};"])
    text = f"""\
/* Rows of `length` elements at the positions of `indices`, in order; there are `repeats` groups of them. */
static void {name}({c} *out, const {i} *indices, const {c} *rows, int64_t repeats, int64_t count,
                   int64_t length, int64_t distance, const int64_t *strides)
{{
    for (int64_t group = 0; group < repeats; group++) {{
        for (int64_t row = 0; row < count; row++) {{
            int64_t place = 0;
            for (int64_t d = 0; d < {depth}; d++) place += (int64_t)indices[row * {depth} + d] * strides[d];
            const {c} *from = rows + (group * count + row) * length;
            {c} *to = out + group * distance + place * length;
            for (int64_t j = 0; j < length; j++) {{
{body}
            }}
        }}
    }}
}}
"""
    return name, text


def indices_inside(index: DType, depth: int) -> tuple[str, str]:
    """The name and the text of the bounds check of a scatter's indices."""
    name, i = f"df_inside{depth}_{type_name(index)}", c_type(index)
    text = f"""\
/* Whether all of `count` indices are in bounds of axes of these sizes. */
static bool {name}(const {i} *indices, int64_t count, const int64_t *sizes)
{{
    for (int64_t row = 0; row < count; row++) {{
        for (int64_t d = 0; d < {depth}; d++) {{
            const int64_t at = (int64_t)indices[row * {depth} + d];
            if (at < 0 || at >= sizes[d]) return false;
        }}
    }}
    return true;
}}
"""
    return name, text


def positions(counts: DType) -> tuple[str, str]:
    """The name and the text of the positions of elements, each repeated by the element's count."""
    name, c = f"df_positions_{type_name(counts)}", c_type(counts)
    text = f"""\
/* The position of each element, repeated by the element; returns their number, writes at most `size`. */
static int64_t {name}(const {c} *counts, int64_t n, int64_t *out, int64_t size)
{{
    int64_t at = 0;
    for (int64_t i = 0; i < n; i++) {{
        const int64_t stop = at + (int64_t)counts[i];
        for (int64_t j = at; j < stop && j < size; j++) out[j] = i;
        at = stop > at ? stop : at;
    }}
    return at;
}}
"""
    return name, text
