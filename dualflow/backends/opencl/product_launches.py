"""The launch of a matrix product's kernel: its form, its arguments in order, and its tiles."""

from __future__ import annotations

import math
from collections.abc import Sequence

from dualflow.backends.opencl import products
from dualflow.backends.opencl.devices import OpenCLDevice
from dualflow.backends.opencl.epilogue_source import epilogue_source
from dualflow.backends.opencl.products import ProductForm, window_geometry
from dualflow.backends.opencl.steps import (
    BufferArgument,
    Int64Argument,
    KernelArgument,
    KernelProgram,
    Launch,
    ScalarArgument,
    kernel_arguments,
)
from dualflow.backends.opencl.tile_selection import tile_for
from dualflow.graph.ir import Node
from dualflow.schedule.epilogue_kernels import EpilogueLaunch
from dualflow.schedule.nest import Layout
from dualflow.schedule.program_statements import Multiply


def product_launch(
    device: OpenCLDevice, node: Node, product: Multiply, epilogue: EpilogueLaunch | None = None
) -> Launch:
    """The launch of a product, and of its epilogue, in one kernel.

    Args:
        device: the device, for which the tile is selected.
        node: the node that the kernel computes.
        product: the product.
        epilogue: computes the outputs from its elements; None if the product is stored.
    """
    x, y, out = product.matrices
    addend = [_addend(product)] if product.accumulate else []
    matrices = [x, y, *([out] if epilogue is None else []), *addend]
    rows, columns, _ = product.shape
    dtype, axes, windows = product.node.output.spec.dtype, len(product.batch), product.windows
    tile = tile_for(device, dtype, rows, columns)
    form = ProductForm(
        dtype,
        axes,
        tile,
        product.accumulate,
        x_is_column_major=_is_column_major(x.strides[axes:]),
        y_is_column_major=_is_column_major(y.strides[axes:]),
        window_axes=0 if windows is None else len(windows.axes),
        by_window=product.by_window,
    )
    arguments = _arguments(product, matrices)
    reads, writes = {m.buffer for m in (x, y, *addend)}, {out.buffer}
    source = None
    if epilogue is not None:
        launch, source = epilogue.launch, epilogue_source(epilogue, columns)
        arguments = (*arguments, *kernel_arguments(launch))
        writes = {launch.buffers[i].buffer for i in source.stored}
        reads |= {b.buffer for b in launch.buffers}
    return Launch(
        node,
        (node,),
        KernelProgram(products.product(form, source)),
        arguments,
        _tiles(rows, tile.height) * _tiles(columns, tile.width) * math.prod(product.batch),
        tile.group_size,
        frozenset(reads),
        frozenset(writes),
        by_groups=True,
        is_product=True,
    )


def _arguments(product: Multiply, matrices: Sequence[Layout]) -> tuple[KernelArgument, ...]:
    """The arguments of a product whose ``matrices`` are in memory."""
    axes, windows = len(product.batch), product.windows
    numbers = [
        *product.shape,
        *(stride for m in matrices for stride in m.strides[axes:]),
        *(n for i, size in enumerate(product.batch) for n in (size, *(m.strides[i] for m in matrices))),
        *(() if windows is None else window_geometry(windows)),
    ]
    scale = product.node.output.spec.dtype.dtype.type(product.scale)
    return (
        *(BufferArgument(m.buffer, m.offset) for m in matrices),
        *map(Int64Argument, numbers),
        ScalarArgument(scale),
    )


def _addend(product: Multiply) -> Layout:
    """The layout of the addend, a batch of matrices; it is in the output if nothing copies it there."""
    return product.matrices[2] if product.onto is None else product.onto.inputs[0]


def _tiles(size: int, side: int) -> int:
    """The number of tiles along an axis."""
    return (size + side - 1) // side


def _is_column_major(strides: Sequence[int]) -> bool:
    """Whether neighbouring elements of a column are neighbours in memory, and those of a row are not."""
    down, across = strides
    return type(down) is int and down == 1 and not (type(across) is int and across == 1)
