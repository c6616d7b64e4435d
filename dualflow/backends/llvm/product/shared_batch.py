"""Batches of matrix products of which each thread computes whole products.

A small product has too few blocks for the threads, and each product ends with a wait for all of them. Here
one parallel loop runs over the first axis of the batch, and each thread computes its products alone::

    for i in 0 .. SIZE, in parallel, CHUNK at a time
        for j in 0 .. INNER_SIZE
            product(x[i, j], y[i, j], out[i, j])          on one thread, in scratch memory of its own

If the size is symbolic and below ``LEAST``, the products run one after another, each parallel over its
blocks.
"""

from __future__ import annotations

import functools
from enum import IntEnum, auto
from typing import Final

from dualflow.backends.llvm.product.gemm_kernel import LOOP_BODY, ROUTINE
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
    """Emit the entry function: a parallel loop over the batch.

    Its last arguments are the thread pool and the pool's function, ``pfor(pool, body, context, count,
    chunk)``. They are never null here: programs on one thread have no such step. The body gets null
    ones where threads share whole products, so a product runs on one thread.
    """
    function = module.function(NAME, VOID, ROUTINE)
    builder = function.builder
    *operands, pool, pfor = function.args
    size, chunk, least = (
        builder.load(operands[0], which, I64)
        for which in (BatchField.SIZE, BatchField.CHUNK, BatchField.LEAST)
    )
    one_thread_per_product, zero = size >= least, builder.constant(I64, 0)
    null = zero.cast(PTR)
    context = builder.alloca(PTR, len(function.args))
    pool_of_products = [one_thread_per_product.select(null, x) for x in (pool, pfor)]
    for i, operand in enumerate([*operands, *pool_of_products]):
        builder.store(operand, context, i)

    def share_products() -> list[EmittedValue]:
        builder.call_pointer(pfor, VOID, [pool, builder.address(body), context, size, chunk])
        return []

    def share_blocks() -> list[EmittedValue]:
        builder.call(body, [context, zero, size, zero])
        return []

    builder.if_else(one_thread_per_product, share_products, share_blocks)
    builder.ret()


def _emit_body(module: LlvmModule, name: str) -> None:
    """Emit the products for indices ``low`` to ``high`` of the first axis, with the pool of the context."""
    function = module.function(name, VOID, LOOP_BODY, internal=True)
    builder = function.builder
    context, low, high, thread = function.args
    table, *matrices, scratch, pool, pfor = (builder.load(context, i, PTR) for i in range(7))
    field = {which: builder.load(table, which, I64) for which in tuple(BatchField)[:-1]}
    product = builder.load(table, BatchField.PRODUCT, PTR)
    own_scratch = builder.offset(scratch, thread * field[BatchField.THREAD_SCRATCH], I8)

    def operand_addresses(index: EmittedValue, inner: EmittedValue) -> list[EmittedValue]:
        outer_strides = (BatchField.X, BatchField.Y, BatchField.OUT)
        inner_strides = (BatchField.INNER_X, BatchField.INNER_Y, BatchField.INNER_OUT)
        return [
            builder.offset(matrix, index * field[stride] + inner * field[inner_stride], I8)
            for matrix, stride, inner_stride in zip(matrices, outer_strides, inner_strides, strict=True)
        ]

    with builder.loop(low, high) as outer, builder.loop(0, field[BatchField.INNER_SIZE]) as inner:
        operands = [
            builder.offset(table, BatchField.TABLE, I64),
            *operand_addresses(outer.index, inner.index),
        ]
        builder.call_pointer(product, VOID, [*operands, own_scratch, pool, pfor])
    builder.ret()
