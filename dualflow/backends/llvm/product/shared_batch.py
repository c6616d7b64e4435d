"""Batches of matrix products of which each thread computes whole products.

A small product has too few blocks for the threads, and each product ends with a wait for all of them. Here
one parallel loop runs over the first axis of the batch, and each thread computes its products alone::

    for i in 0 .. SIZE, in parallel, CHUNK at a time
        for j in 0 .. INNER_SIZE
            product(x[i, j], y[i, j], out[i, j])          on one thread, in scratch memory of its own

If the size is symbolic and fewer than ``LEAST``, threads share the blocks of one product after another.
"""

from __future__ import annotations

import functools
from enum import IntEnum, auto
from typing import Final

from dualflow.backends.llvm.runtime.ir_source import IrSource
from dualflow.backends.llvm.text import I8, I64, PTR, VOID, EmittedValue, LlvmModule

NAME: Final = "df_products"
MAX_AXES: Final = 2
"""The maximum number of axes of such a batch."""


class BatchField(IntEnum):
    """The index of each parameter in the table of a batch; strides are in bytes."""

    PRODUCT = 0  # the address of the routine
    THREAD_SCRATCH = auto()  # the scratch memory of one thread, in bytes
    CHUNK = auto()  # the number of indices of the first axis that a thread claims
    LEAST = auto()  # the size from which on threads share whole products
    SIZE = auto()
    X = auto()
    Y = auto()
    OUT = auto()
    INNER_SIZE = auto()
    INNER_X = auto()
    INNER_Y = auto()
    INNER_OUT = auto()
    TABLE = auto()  # the table of one product begins here


@functools.cache
def routine() -> IrSource:
    """The module of the routine, which has the signature of the routine for one product."""
    module = LlvmModule()
    _emit_body(module, "products")
    _emit_entry(module, "products")
    return IrSource(module.text(), (NAME,))


def _emit_entry(module: LlvmModule, body: str) -> None:
    """Emit the entry function: a parallel loop over the batch."""
    arguments = ("table", "x", "y", "out", "scratch", "pool", "pfor")
    function = module.function(NAME, VOID, [(name, PTR) for name in arguments])
    ir = function.builder
    *operands, pool, pfor = function.args
    size, chunk, least = (
        ir.load(operands[0], which, I64) for which in (BatchField.SIZE, BatchField.CHUNK, BatchField.LEAST)
    )
    whole, zero = size >= least, ir.constant(I64, 0)
    none = zero.cast(PTR)
    context = ir.alloca(PTR, len(function.args))
    for i, operand in enumerate([*operands, whole.select(none, pool), whole.select(none, pfor)]):
        ir.store(operand, context, i)

    def share_products() -> list[EmittedValue]:
        ir.call_pointer(pfor, VOID, [pool, ir.address(body), context, size, chunk])
        return []

    def share_blocks() -> list[EmittedValue]:
        ir.call(body, [context, zero, size, zero])
        return []

    ir.if_else(whole, share_products, share_blocks)
    ir.ret()


def _emit_body(module: LlvmModule, name: str) -> None:
    """Emit the products for indices ``low`` to ``high`` of the first axis, with the pool of the context."""
    arguments = [("context", PTR), ("low", I64), ("high", I64), ("thread", I64)]
    function = module.function(name, VOID, arguments, internal=True)
    ir = function.builder
    context, low, high, thread = function.args
    table, *matrices, scratch, pool, pfor = (ir.load(context, i, PTR) for i in range(7))
    field = {which: ir.load(table, which, I64) for which in tuple(BatchField)[:-1]}
    product = ir.load(table, BatchField.PRODUCT, PTR)
    own_scratch = ir.offset(scratch, thread * field[BatchField.THREAD_SCRATCH], I8)

    def moved(index: EmittedValue, inner: EmittedValue) -> list[EmittedValue]:
        outer_strides = (BatchField.X, BatchField.Y, BatchField.OUT)
        inner_strides = (BatchField.INNER_X, BatchField.INNER_Y, BatchField.INNER_OUT)
        return [
            ir.offset(matrix, index * field[stride] + inner * field[inner_stride], I8)
            for matrix, stride, inner_stride in zip(matrices, outer_strides, inner_strides, strict=True)
        ]

    with ir.loop(low, high) as outer, ir.loop(0, field[BatchField.INNER_SIZE]) as inner:
        operands = [ir.offset(table, BatchField.TABLE, I64), *moved(outer.index, inner.index)]
        ir.call_pointer(product, VOID, [*operands, own_scratch, pool, pfor])
    ir.ret()
