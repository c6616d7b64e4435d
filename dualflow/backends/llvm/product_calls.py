"""Calls of matrix products in an entry: in a file of its own, which graphs without any don't wait for."""

from __future__ import annotations

import math
from collections.abc import Sequence

from dualflow.backends.llvm.entry import Entry
from dualflow.backends.llvm.product import product
from dualflow.backends.llvm.product.choice import own
from dualflow.backends.llvm.product.gemm_kernel import Field
from dualflow.backends.llvm.product.product import Batch
from dualflow.backends.llvm.steps import StepKind
from dualflow.core.extent import typical
from dualflow.graph.axes import sizes
from dualflow.graph.ir import Node
from dualflow.schedule.assembly import spread
from dualflow.schedule.copying import copy_elements
from dualflow.schedule.nest import Layout
from dualflow.schedule.plan import PlannedCall
from dualflow.schedule.sliding import SlidingWindows

FLOP_NS = 0.01
"""Nanoseconds of one multiplication and addition of a matrix product."""


def write_product(entry: Entry, call: PlannedCall) -> None:
    """Call a routine for each matrix of the batch.

    A third input, to which the product is added, is copied first.
    """
    node = call.node
    x, y, *addend = call.inputs
    (out,) = call.outputs
    if addend and addend[0] != out:
        entry.kernel(copy_elements(sizes(node.output), node.output.spec.dtype), addend, (out,))
    windows: SlidingWindows | None = node.attrs.get("windows")
    turned = bool(node.attrs.get("transpose_a"))
    if turned and windows is None:
        x = _swapped(x)
    if node.attrs.get("transpose_b"):
        y = _swapped(y)
    *batch, rows, columns = sizes(node.output)
    inner = sizes(node.inputs[1])[-1 if node.attrs.get("transpose_b") else -2]
    if 0 in (*batch, rows, columns):
        return
    entry.unit.work_ns += FLOP_NS * typical(math.prod((*batch, rows, columns, inner)))
    values = (*node.inputs[:2], node.output)
    if windows is not None:  # the tensor, whose elements lie in order
        x, values = Layout(x.buffer, x.offset, (0, 0)), (node.output, *values[1:])
    x, y, out = [_batched(i, sizes(v), batch) for i, v in zip((x, y, out), values, strict=True)]
    char, scale = node.output.spec.dtype.char, node.attrs.get("scale", 1.0)
    shape, layouts = (rows, columns, inner), (x, y, out)
    products = Batch(char, shape, tuple(batch), layouts, scale, bool(addend), windows, not turned)
    unit = entry.unit
    if own():
        function, table = products.gemm.source(), products.table(unit.threads)
        scratch = _scratch(entry, products, table, node)
    else:
        function, table, scratch = product.blas_function(char), products.blas_table(), (0, 0)
        unit.addresses |= product.blas_symbols()
    place = entry.step(StepKind.PRODUCT, [0, *products.step(scratch, table)])
    unit.functions[place + 2] = function
    unit.products.append(place + 2)


def _scratch(entry: Entry, products: Batch, table: Sequence[int], node: Node) -> tuple[int, int]:
    """The memory that our own routine needs, which shares its blocks between threads."""
    unit = entry.unit
    unit.parallel |= unit.threads > 1 and typical(table[Field.BLOCKS]) > 1
    return entry.scratch(products.gemm.scratch_bytes(table, unit.threads), node)


def _swapped(layout: Layout) -> Layout:
    return Layout(
        layout.buffer, layout.offset, (*layout.strides[:-2], layout.strides[-1], layout.strides[-2])
    )


def _batched(layout: Layout, shape: Sequence[int], batch: Sequence[int]) -> Layout:
    """``layout`` of matrices with one stride for each axis of ``batch``, to which its own broadcast."""
    found = spread(layout, (*shape[:-2], 2, 2), (*batch, 2, 2))
    return Layout(layout.buffer, layout.offset, found.strides)
