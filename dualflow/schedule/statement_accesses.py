"""The ranges of elements that statements other than kernels access."""

from __future__ import annotations

import math

from dualflow.graph.ir import Value
from dualflow.graph.passes import fourier_tables
from dualflow.graph.views import sizes
from dualflow.ops.integer_product import INTEGER_PRODUCT
from dualflow.schedule.element_ranges import ElementRange, contiguous_range, range_of_layout
from dualflow.schedule.nest import Layout
from dualflow.schedule.operands import CallKind
from dualflow.schedule.program_statements import (
    CallRoutine,
    CheckBounds,
    FusedProduct,
    Multiply,
    RequireCondition,
    ScatterRows,
    Statement,
)
from dualflow.schedule.scatter_calls import ScatterIndices
from dualflow.schedule.sliding import SlidingWindows


def accesses_of(statement: Statement) -> dict[int, ElementRange | None]:
    """The ranges that ``statement`` accesses, by the number of the operand, inputs first.

    A value of None means that no element is accessed. Operands without an entry are accessed entirely.
    """
    count = len(statement.inputs)
    match statement:
        case Multiply():
            if _reads_operands(statement):
                return {}
            return dict(zip((0, 1, count), _matrices(statement), strict=True))
        case FusedProduct(product=product):
            return {i: elements for i, elements in accesses_of(product).items() if i < 2}
        case ScatterRows(indices=indices):
            return {
                count: _scatter_target_range(statement),
                count - 2: _indices(indices),
                count - 1: _rows(statement),
            }
        case CheckBounds(indices=indices):
            return {0: _indices(indices)}
        case RequireCondition():
            return {i: _contiguous(*x) for i, x in enumerate((statement.condition, *statement.reads))}
        case CallRoutine():
            return _routine(statement)
    return {}


def _reads_operands(product: Multiply) -> bool:
    """Whether the factors of a product are its operands, perhaps transposed, and no windows."""
    (rows, columns, inner), (x, y, out), node = product.shape, product.matrices, product.node
    if node.op is INTEGER_PRODUCT:
        return True
    if product.windows is not None or product.batch:
        return False
    return (
        _is_operand(x, (rows, inner), product.inputs[0], node.inputs[0])
        and _is_operand(y, (inner, columns), product.inputs[1], node.inputs[1])
        and _is_operand(out, (rows, columns), product.outputs[0], node.output)
    )


def _is_operand(matrix: Layout, shape: tuple[int, int], layout: Layout, value: Value) -> bool:
    if matrix == layout:
        return shape == value.spec.shape
    (buffer, offset, (down, across)), (rows, columns) = matrix, shape
    return layout == (buffer, offset, (across, down)) and value.spec.shape == (columns, rows)


def _contiguous(layout: Layout, value: Value) -> ElementRange | None:
    """The range of elements that a contiguous value takes in its buffer; None if it is empty."""
    return contiguous_range(layout, sizes(value), value.spec.dtype.size)


def _matrices(product: Multiply) -> tuple[ElementRange | None, ElementRange | None, ElementRange | None]:
    """The elements that a matrix product accesses: of the left matrix, the right one, and the result."""
    (rows, columns, inner), (x, y, out) = product.shape, product.matrices
    size, batch = product.node.output.spec.dtype.size, product.batch
    if product.windows is None:
        left = range_of_layout(x, (*batch, rows, inner), size)
    else:
        tensors = sizes(product.node.inputs[0])[0]
        left = contiguous_range(x, _tensor(product.windows, tensors), size)
        counts, lengths = _window_shapes(product.windows, tensors)
        if not product.by_window:
            counts, lengths = lengths, counts
        if (math.prod(counts), math.prod(lengths)) != (rows, inner):
            # the product reads more elements than the tensor has: a range that no buffer contains
            left = contiguous_range(x, (*_tensor(product.windows, tensors), rows, inner), size)
    return (
        left,
        range_of_layout(y, (*batch, inner, columns), size),
        range_of_layout(out, (*batch, rows, columns), size),
    )


def _tensor(windows: SlidingWindows, tensors: int) -> tuple[int, ...]:
    """The shape of a batch of ``tensors`` tensors that windows slide over."""
    return (tensors, *[axis.size for axis in windows.axes], windows.channels)


def _window_shapes(windows: SlidingWindows, tensors: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The shape of the windows' positions, and the shape of a window."""
    axes = windows.axes
    return (tensors, *[a.windows for a in axes]), (*[a.length for a in axes], windows.channels)


def _scatter_target_range(scatter: ScatterRows) -> ElementRange | None:
    """The range of all elements that the indices of a scatter can select."""
    indices = scatter.indices
    shape = (indices.iterations, *indices.axis_sizes, indices.row_length)
    (out,) = scatter.outputs
    strides = (indices.distance, *[stride * indices.row_length for stride in indices.axis_strides], 1)
    dtype = scatter.node.output.spec.dtype
    if indices.num_indices == 0:
        return None
    return range_of_layout(Layout(out.buffer, out.offset, strides), shape, dtype.size)


def _rows(scatter: ScatterRows) -> ElementRange | None:
    indices = scatter.indices
    shape = (indices.iterations, indices.num_indices, indices.row_length)
    return contiguous_range(scatter.rows, shape, scatter.node.output.spec.dtype.size)


def _indices(indices: ScatterIndices) -> ElementRange | None:
    return contiguous_range(indices.layout, (indices.num_indices, indices.depth), indices.dtype.size)


def _routine(call: CallRoutine) -> dict[int, ElementRange | None]:
    """The ranges that a backend's routine accesses.

    A NumPy kernel has none, as it gets views of the operands.
    """
    node, values = call.node, (*call.node.inputs, *call.node.outputs)
    layouts, count = (*call.inputs, *call.outputs), len(call.inputs)
    match call.kind:
        case CallKind.MEASURE if call.inputs:
            element = Layout(layouts[0].buffer, layouts[0].offset + node.attrs["index"], ())
            return {0: contiguous_range(element, (), values[0].spec.dtype.size)}
        case CallKind.SIZES:
            return {0: contiguous_range(layouts[0], (len(node.attrs["values"]),), values[0].spec.dtype.size)}
        case CallKind.POSITIONS:
            return {i: _contiguous(*x) for i, x in enumerate(zip(layouts, values, strict=True))}
        case CallKind.WINDOW_SUM:
            windows: SlidingWindows = node.attrs["windows"]
            tensors, size = sizes(values[0])[0], node.output.spec.dtype.size
            counts, lengths = _window_shapes(windows, tensors)
            shapes = (_tensor(windows, tensors), lengths, (*counts, windows.channels))
            return {i: contiguous_range(layouts[i], shape, size) for i, shape in enumerate(shapes)}
        case CallKind.FOURIER:
            shape = fourier_tables.shape_of(node)
            return {i: contiguous_range(layouts[i], shape, node.output.spec.dtype.size) for i in (0, count)}
    return {}
