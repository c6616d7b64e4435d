"""Compiled kernels for eager ops on large tensors: threads, vector code, one pass over memory.

An op is compiled as a graph of one node. It stays with NumPy if a part of the graph is not native, or if its
result is one of its inputs. This depends only on the op, its attributes, and the dtypes, shapes and layouts
of its inputs, so equal calls return equal bits. The text of a kernel has no sizes: the first op of a kind
compiles it, or loads it from the cache; for another size only a plan is made.

A kernel that is one loop over contiguous elements also serves other shapes, without a plan, if they are
proved to have the same program. An elementwise op needs no proof, since its code doesn't read a shape. A
function of ops is traced for symbolic sizes, and the program of that graph is compared with the kernel's.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Mapping, Sequence
from contextvars import Context
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dualflow.core.dtypes import DType, of_array
from dualflow.core.errors import DTypeError, InvalidArgumentError
from dualflow.core.exact_equality import exact_attrs
from dualflow.core.records import NamedTuple
from dualflow.core.shape import Shape
from dualflow.core.spec import TensorSpec
from dualflow.core.warning import warn_user
from dualflow.eager.kernel_slot import KERNELS, Computation, computation_name
from dualflow.eager.tensor import EagerTensor, wrap
from dualflow.function.calls.compiled_graph import CompiledGraph
from dualflow.function.calls.lazy_backends import any_length
from dualflow.function.options import compile_options, eager_kernels_on, without_eager_kernels
from dualflow.function.tracing.tracer import Tracer, tracing
from dualflow.graph.ir import Graph, Value
from dualflow.graph.passes.dead_code import eliminate_dead_code
from dualflow.graph.passes.pipeline import optimise
from dualflow.ops.arrangement import TRANSPOSE, inverse_permutation
from dualflow.ops.op_kinds import CopyPieces, Elementwise, Gather, MatMul, Opaque, Reduce, Scan, Scatter
from dualflow.ops.record import COMPILED_ABOVE, Op
from dualflow.sizes.symbolic_sizes import UndecidedSize, size_variable

if TYPE_CHECKING:
    from dualflow.backends.llvm.any_length import AnyLength

Array = np.ndarray[Any, Any]
Run = Callable[..., EagerTensor | None]

_KINDS: Final = (Elementwise, Reduce, Scan, Gather, CopyPieces, Scatter, MatMul)
_NUMBERS: Final = "biufc"
_PLAIN: Final = (bool, int, float, complex, str, type(None), DType, np.dtype, np.generic)
_MAX_CALLS: Final = 512
"""The number of cached calls, of some ten kilobytes each."""
_MAX_SIZES: Final = 1 << 14
_SMALL_RATIO: Final = 16
"""An array is copied if another one is larger by at least this factor."""
_MISSING: Final = object()
_runs: Final[dict[Hashable, Any]] = {}
_shared_kernels: Final[dict[Hashable, _ManyShapes]] = {}
"""The elementwise kernels that may serve several shapes, by :class:`_ShapeFamily`."""
_served_once: Final[set[Hashable]] = set()
"""The keys of calls that a kernel for several shapes has served.

A second call gets its own, faster kernel.
"""


class _ShapeFamily(NamedTuple):
    """The key of calls that may share one kernel: that of a call without the sizes that may differ.

    Attributes:
        inputs: the dtype of each input, and its shape if that is fixed: for scalars, and for the inputs of a
            function that returns ``count`` numbers.
        units: for a function of ops, whether each axis of the inputs' common shape has size 1; empty if the
            dynamic size is ``count``. None for an elementwise op, which doesn't read its shape.
    """

    what: Computation
    attrs: Hashable
    inputs: tuple[tuple[np.dtype[Any], tuple[int, ...] | None], ...]
    units: tuple[bool, ...] | None


class _ManyShapes:
    """A kernel of one loop, and whether it is proved to serve all shapes; None before the proof."""

    __slots__ = ("kernel", "proved")

    def __init__(self, kernel: AnyLength, proved: bool | None) -> None:
        self.kernel = kernel
        self.proved = proved


class _Building(threading.local):
    """Whether this thread is compiling a kernel; eager ops run on NumPy meanwhile."""

    on = False


_building: Final = _Building()


@KERNELS.fill
def run_kernel(
    what: Computation, inputs: tuple[EagerTensor, ...], attrs: dict[str, Any], count: int | None = None, /
) -> EagerTensor | None:
    """The result of an op, or of a function of ops, by its compiled kernel.

    A function that returns ``count`` numbers takes that as an attribute. Returns None if there is no kernel,
    or if it fails: then NumPy's kernel raises the op's own error.
    """
    arrays = [x._array for x in inputs]
    if (isinstance(what, Op) and not _has_kernel(what, arrays, attrs)) or not eager_kernels_on():
        return None
    key = call_key(what, arrays, attrs, count)
    run = _runs.get(key, _MISSING)
    if run is _MISSING:
        run = _kernel_or_none(key, what, arrays, attrs, count)
    if run is None:
        return None
    try:
        result: EagerTensor | None = run(*inputs)
    except (InvalidArgumentError, MemoryError):
        return None
    return result


def call_key(
    what: Computation, arrays: Sequence[Array], attrs: Mapping[str, Any], count: int | None
) -> tuple[Hashable, ...]:
    """The key of a kernel: the op, its attributes, and dtype, shape and strides of each input.

    The graph is traced from these alone. Of the compile options only the backend changes within a process:
    there are kernels only if it is the default one.
    """
    return what, exact_attrs(attrs), count, *[(a.dtype, a.shape, a.strides) for a in arrays]


def _has_kernel(op: Op, arrays: Sequence[Array], attrs: Mapping[str, Any]) -> bool:
    """Whether there are kernels for the kind of the op, and they suit these inputs."""
    if op.small is not None and op.small(*arrays, **attrs):
        return False
    kind = op.kind
    if isinstance(kind, Opaque):
        return kind.fourier is not None and kind.fourier(*arrays, **attrs)
    return isinstance(kind, _KINDS)


def _kernel_or_none(
    key: Hashable, what: Computation, arrays: Sequence[Array], attrs: dict[str, Any], count: int | None
) -> Run | None:
    """A new kernel for calls of ``key``; None if NumPy runs them, or this thread is compiling a kernel."""
    if _building.on or not all(map(is_plain, attrs.values())) or any(_is_repeated(a, arrays) for a in arrays):
        return None
    try:
        return _new_run(key, what, arrays, attrs, count)
    except _UnfitError:
        return None


def _new_run(
    key: Hashable, what: Computation, arrays: Sequence[Array], attrs: dict[str, Any], count: int | None
) -> Run | None:
    family = shape_family(what, arrays, attrs, count)
    kernel = None if family is None or key in _served_once else _kernel_of(family, what, attrs)
    if kernel is not None:
        if len(_served_once) >= _MAX_SIZES:
            _served_once.clear()
        _served_once.add(key)
        return _of_length(kernel.run, arrays, max(arrays, key=np.ndim).shape if count is None else (count,))
    run: Run | None = None
    order = _order_of_all(what, arrays)
    if order is not None:
        run = _in_memory_order(what, attrs, order)
    elif not isinstance(what, Op) or _eligible(what, arrays):
        run = _in_build(_compiled, what, arrays, attrs, family, count)
    remember(_runs, key, run)
    return run


def _in_build(make: Callable[..., Any], what: Computation, *arguments: Any) -> Any:
    """The result of ``make``, during which ops of this thread run on NumPy.

    Raises:
        _UnfitError: it has failed: for these inputs, or since kernels can't be compiled here.
    """
    _building.on = True
    try:
        return Context().run(make, what, *arguments)
    except _UnfitError:
        raise
    except Exception as error:
        _switch_off(what, error)
        raise _UnfitError from error
    finally:
        _building.on = False


def _is_repeated(array: Array, arrays: Sequence[Array]) -> bool:
    """Whether a large array has strides of 0: a kernel would need a copy of it, while NumPy does not.

    An array that is small compared with another one is copied.
    """
    return (
        0 in array.strides
        and not array.flags.c_contiguous
        and array.size * _SMALL_RATIO > max(a.size for a in arrays)
    )


def remember(table: dict[Hashable, Any], key: Hashable, value: Any, most: int = _MAX_CALLS) -> None:
    """Store ``value``; the oldest entries of a table with ``most`` entries are removed."""
    if len(table) >= most:
        for oldest in list(table)[: most // 8]:
            table.pop(oldest, None)
    table[key] = value


def shape_family(
    what: Computation, arrays: Sequence[Array], attrs: Mapping[str, Any], count: int | None
) -> _ShapeFamily | None:
    """The family of a call; None if its inputs are not row-major, or differ in shape (except scalars).

    Ops that aren't elementwise have no family.
    """
    if isinstance(what, Op) and not isinstance(what.kind, Elementwise):
        return None
    counted = count is not None
    if not all(a.flags.c_contiguous for a in arrays):
        return None
    shapes = {a.shape for a in arrays if a.ndim}
    if not counted and len(shapes) != 1:
        return None
    inputs = tuple([(a.dtype, a.shape if counted or not a.ndim else None) for a in arrays])
    units: tuple[bool, ...] | None = None
    if not isinstance(what, Op):
        units = () if counted else tuple([d == 1 for d in shapes.pop()])
    return _ShapeFamily(what, exact_attrs(attrs), inputs, units)


def _kernel_of(family: _ShapeFamily, what: Computation, attrs: dict[str, Any]) -> AnyLength | None:
    """The kernel that serves all shapes of a family; None if it isn't built, or its bounds aren't proved."""
    entry = _shared_kernels.get(family)
    if entry is None:
        return None
    if entry.proved is None:
        entry.proved = _in_build(_is_program_of_all, what, entry.kernel, attrs, family)
    return entry.kernel if entry.proved else None


def _is_program_of_all(
    what: Computation, kernel: AnyLength, attrs: dict[str, Any], family: _ShapeFamily
) -> bool:
    """Whether the graph with symbolic sizes has the program that ``kernel`` runs, which is then shared."""
    options = compile_options()
    tracer = Tracer(computation_name(what), options=options)
    dynamic_shape = Shape([1 if unit else size_variable(least=0) for unit in family.units or ()])
    specs = [
        TensorSpec.of(dynamic_shape if fixed is None else Shape(fixed), of_array(dtype))
        for dtype, fixed in family.inputs
    ]
    if family.units == ():
        attrs = {**attrs, "count": size_variable(least=0)}
    try:
        with tracing(tracer):
            graph = _graph(tracer, what, [tracer.argument(spec) for spec in specs], attrs)
        return kernel.is_program_of(optimise(graph, options))
    except (UndecidedSize, InvalidArgumentError, DTypeError):
        return False


def _of_length(compute: Callable[..., Array], arrays: Sequence[Array], shape: tuple[int, ...]) -> Run:
    """A function that calls a kernel for vectors of any length on arrays of ``shape``."""
    return lambda *inputs: wrap(compute(arrays, shape))


class _UnfitError(Exception):
    """Raised if an op has no kernel: it rejects its inputs, or can't be compiled."""


def _switch_off(what: Computation, error: Exception) -> None:
    name = computation_name(what)
    without_eager_kernels(f"no kernel for {name}: {type(error).__name__}: {error}")
    warn_user(
        f"Large tensors are computed by NumPy on one thread, as no kernel of {name} could be made "
        f'({type(error).__name__}: {error}). To choose NumPy, call df.config.set_eager_kernels("numpy").'
    )


def is_plain(value: Any) -> bool:
    """Whether an attribute is immutable, so that a key can store it."""
    return isinstance(value, _PLAIN) or (isinstance(value, tuple) and all(map(is_plain, value)))


def _eligible(op: Op, arrays: Sequence[Array]) -> bool:
    """Whether ``op`` is pure, and has one result and inputs of numbers."""
    return op.outputs == 1 and op.effect is None and all(a.dtype.kind in _NUMBERS for a in arrays)


def _compiled(
    what: Computation,
    arrays: Sequence[Array],
    attrs: Mapping[str, Any],
    family: _ShapeFamily | None,
    count: int | None,
) -> Run | None:
    """The compiled graph of the op alone; None if a part of it is not native, or it has no nodes.

    A kernel that may serve other shapes of the family is stored for them.
    """
    orders = [_memory_order(a) for a in arrays]
    options = compile_options()
    tracer = Tracer(computation_name(what), options=options)
    if count is not None:
        attrs = {**attrs, "count": count}
    try:
        with tracing(tracer):
            inputs = [_argument(tracer, a, order) for a, order in zip(arrays, orders, strict=True)]
            graph = _graph(tracer, what, inputs, attrs)
    except (InvalidArgumentError, DTypeError) as error:
        raise _UnfitError from error
    (result,) = graph.outputs
    if isinstance(what, Op) and isinstance(what.kind, Gather) and result.spec.size <= COMPILED_ABOVE:
        return None
    compiled = CompiledGraph(graph, options)
    if compiled.optimised.outputs[0].node is None or any(part.node for part in compiled.executable.parts):
        return None
    shape = max(arrays, key=np.ndim).shape if count is None else (count,)
    if family is not None and family not in _shared_kernels and result.spec.shape == shape:
        kernel = any_length(compiled.executable)
        if kernel is not None:
            remember(_shared_kernels, family, _ManyShapes(kernel, True if isinstance(what, Op) else None))
    if all(a.flags.c_contiguous for a in arrays):
        return lambda *inputs: compiled(*inputs)[0]
    return lambda *inputs: compiled(*map(_in_order, inputs, orders))[0]


def _order_of_all(what: Computation, arrays: Sequence[Array]) -> tuple[int, ...] | None:
    """The order of axes that all inputs of an elementwise op have in memory; None if that is row-major."""
    if not isinstance(what, Op) or not isinstance(what.kind, Elementwise):
        return None
    shapes = {a.shape for a in arrays if a.ndim}
    orders = {_memory_order(a) for a in arrays if a.ndim}
    return orders.pop() if len(shapes) == len(orders) == 1 and list(*orders) != sorted(*orders) else None


def _in_memory_order(what: Computation, attrs: dict[str, Any], order: tuple[int, ...]) -> Run:
    """The op on inputs with their axes in the order of memory; the result has that layout, as in NumPy."""
    perm = inverse_permutation(order)

    def run(*inputs: EagerTensor) -> EagerTensor | None:
        rows = [wrap(x._array.transpose(order)) if x._array.ndim else x for x in inputs]
        result = run_kernel(what, tuple(rows), attrs)
        return None if result is None else wrap(result._array.transpose(perm))

    return run


def _graph(tracer: Tracer, what: Computation, inputs: Sequence[Any], attrs: Mapping[str, Any]) -> Graph:
    """The graph of the op or function on symbolic tensors of ``tracer``, which is current."""
    output = tracer.run(what, tuple(inputs), dict(attrs)) if isinstance(what, Op) else what(*inputs, **attrs)
    result: Value = output._value
    return eliminate_dead_code(tracer.builder.finish([result]))


def _argument(tracer: Tracer, array: Array, order: tuple[int, ...]) -> Any:
    """The op's operand: a row-major argument of the graph, transposed if ``order`` is another one."""
    argument = tracer.argument(TensorSpec.of(Shape([array.shape[a] for a in order]), of_array(array.dtype)))
    perm = inverse_permutation(order)
    return argument if list(perm) == sorted(perm) else tracer.run(TRANSPOSE, (argument,), {"perm": perm})


def _memory_order(array: Array) -> tuple[int, ...]:
    """The order of axes in which the array is row-major; the order of its axes if there is none."""
    own = tuple(range(array.ndim))
    if array.flags.c_contiguous:
        return own
    order = tuple(sorted(own, key=lambda a: (-array.strides[a], a)))
    return order if array.transpose(order).flags.c_contiguous else own


def _in_order(tensor: EagerTensor, order: tuple[int, ...]) -> EagerTensor:
    """The tensor with its axes in ``order``, row-major: a copy if memory has another order."""
    return wrap(np.ascontiguousarray(tensor._array.transpose(order)))
