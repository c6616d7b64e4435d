"""Emits calls of matrix products in an entry; imported only for graphs with products."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext

from dualflow.backends.llvm.entry import Entry, Unit
from dualflow.backends.llvm.product.gemm_kernel import Field
from dualflow.backends.llvm.product.gemm_or_blas import uses_own_gemm
from dualflow.backends.llvm.product.product import ProductBatch, blas_function, blas_symbols
from dualflow.backends.llvm.runtime.ir_source import IrSource
from dualflow.backends.llvm.steps import FUNCTION, StepKind
from dualflow.core.locks import imported
from dualflow.graph.ir import Node
from dualflow.schedule.program_statements import Multiply
from dualflow.sizes.symbolic_sizes import typical

_NO_ADDRESS = 0
"""The function of a step until the program is linked; see ``Unit.set_callee``."""
_NO_SCRATCH = 0, 0


def write_product(entry: Entry, product: Multiply) -> None:
    """Emit the step of a batch of matrix products."""
    if product.onto is not None:
        entry.launch(product.onto)
    if product.is_empty:
        return
    node, unit = product.node, entry.unit
    unit.work_ns += unit.costs.product_ns * typical(product.multiplications)
    products = _batch(product)
    if uses_own_gemm() and products.splits_whole_products(unit.threads):
        _emit_split_by_product(entry, products, node)
        return
    if uses_own_gemm():
        function, calls = products.gemm.source(), _own_gemm_calls(products, unit.threads)
        memory = _scratch(entry, products, calls[0][1], node)  # all calls have the same blocks and scratch
    else:
        function = blas_function(products.char)
        calls = [(1, products.blas_parameters())]
        memory = nullcontext(_NO_SCRATCH)
        unit.addresses |= blas_symbols()
    with memory as scratch:
        for enabled, parameters in calls:
            words = [_NO_ADDRESS, *products.step_parameters(scratch, parameters, enabled)]
            index = entry.step(StepKind.PRODUCT, words)
            unit.set_callee(index, function)
            unit.routines.append(index + FUNCTION)
            if uses_own_gemm():
                _set_routines(unit, products, parameters, index + FUNCTION + len(words) - len(parameters))


def called_routines(product: Multiply, threads: int) -> Iterator[IrSource]:
    """The modules that the step of a batch of products calls, if it calls the backend's own routine."""
    if product.is_empty or not uses_own_gemm():
        return
    products = _batch(product)
    if products.splits_whole_products(threads):
        shared = imported("dualflow.backends.llvm.product.shared_batch")
        yield shared.routine()
        tables = [products.split_parameters(threads)[shared.BatchField.TABLE :]]
    else:
        tables = [parameters for _, parameters in _own_gemm_calls(products, threads)]
    gemm = products.gemm
    for table in tables:
        yield from gemm.routines(table).values()
    yield gemm.source()


def _batch(product: Multiply) -> ProductBatch:
    return ProductBatch(
        product.node.output.spec.dtype.char,
        product.shape,
        product.batch,
        product.matrices,
        product.scale,
        product.accumulate,
        product.windows,
        product.by_window,
    )


def _set_routines(unit: Unit, products: ProductBatch, table: Sequence[int], index: int) -> None:
    """Set the addresses of the routines that a product calls; its ``table`` begins at parameter ``index``."""
    for which, source in products.gemm.routines(table).items():
        unit.set_address(index + which, source)


def _own_gemm_calls(products: ProductBatch, threads: int) -> list[tuple[int, list[int]]]:
    """The parameters of calls of the backend's own routine, each with whether it is executed: 1 or 0."""
    if products.windows is None:
        return [(1, products.product_parameters(threads))]
    return products.window_parameters(threads)


def _emit_split_by_product(entry: Entry, products: ProductBatch, node: Node) -> None:
    """Emit the step of a batch of matrix products of which each thread computes whole products."""
    unit, shared = entry.unit, imported("dualflow.backends.llvm.product.shared_batch")
    fields = shared.BatchField
    unit.use_threads()
    parameters = products.split_parameters(unit.threads)
    with entry.scratch(parameters[fields.THREAD_SCRATCH] * unit.threads, node) as scratch:
        words = [_NO_ADDRESS, *products.split_step_parameters(scratch, parameters)]
        index = entry.step(StepKind.PRODUCT, words)
    unit.set_callee(index, shared.routine())
    first_parameter = index + FUNCTION + len(words) - len(parameters)  # the parameters end the step
    product = first_parameter + fields.PRODUCT
    unit.set_address(product, products.gemm.source())
    unit.routines.append(product)
    _set_routines(unit, products, parameters[fields.TABLE :], first_parameter + fields.TABLE)


def _scratch(
    entry: Entry, products: ProductBatch, parameters: Sequence[int], node: Node
) -> AbstractContextManager[tuple[int, int]]:
    """Emit a block with the scratch memory of the backend's own routine; marks the program parallel."""
    unit = entry.unit
    if unit.threads > 1 and not unit.parallel and typical(parameters[Field.BLOCKS]) > 1:
        unit.use_threads()
    return entry.scratch(products.gemm.scratch_bytes(parameters, unit.threads), node)
