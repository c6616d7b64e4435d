"""Large eager ops run the kernel that a graph of the op has: threads, vector code, one pass.

Which ops have one follows from their records and from what the backend makes of them: an op whose graph is
not all native, or whose result is an input as it is, stays with NumPy. The choice depends on the op, its
attributes and its inputs' dtypes, shapes and layouts, so equal calls give equal bits. The text of a kernel
holds no sizes: the first op of a kind compiles it, or finds it in the cache; another size only plans.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Mapping, Sequence
from contextvars import Context
from typing import Any, Final

import numpy as np

from dualflow.core.dtypes import DType, of_array
from dualflow.core.errors import DTypeError, InvalidArgumentError
from dualflow.core.shape import Shape
from dualflow.core.spec import TensorSpec
from dualflow.core.warning import warn_user
from dualflow.eager.kernels import KERNELS, LARGE, Computation
from dualflow.eager.tensor import EagerTensor, wrap
from dualflow.function.calling.backend_door import any_length
from dualflow.function.calling.compiled_graph import CompiledGraph
from dualflow.function.options import compile_options, eager_kernels_on, without_eager_kernels
from dualflow.function.tracing.tracer import Tracer, tracing
from dualflow.graph.exact_equality import exact_attrs
from dualflow.graph.ir import Graph, Value
from dualflow.graph.passes.dead_code import eliminate_dead_code
from dualflow.ops.arrangement import TRANSPOSE
from dualflow.ops.forms import Assemble, Contraction, Element, Fold, Opaque, Scan, Scatter, Take
from dualflow.ops.record import Op

Array = np.ndarray[Any, Any]
Run = Callable[..., EagerTensor | None]

_FORMS: Final = (Element, Fold, Scan, Take, Assemble, Scatter, Contraction)
_NUMBERS: Final = "biufc"
_PLAIN: Final = (bool, int, float, complex, str, type(None), DType, np.dtype, np.generic)
_MOST: Final = 512
"""So many kinds of calls are remembered, of some ten kilobytes each."""
_MOST_SIZES: Final = 1 << 14
_SMALL_BESIDE: Final = 16
"""An array with so many times fewer elements than another one costs little to copy."""
_MISSING: Final = object()
_known: Final[dict[Hashable, Any]] = {}
_lengths: Final[dict[Hashable, Any]] = {}
"""Elementwise kernels for vectors of any length, by all of their key but the shapes."""
_once: Final[set[Hashable]] = set()
"""What has been computed by one of these: a call that comes again gets a kernel of its own, a shorter way."""


class _Building(threading.local):
    """Whether this thread makes a kernel: what runs meanwhile runs on NumPy."""

    on = False


_building: Final = _Building()


@KERNELS.give
def run_kernel(
    what: Computation, inputs: tuple[EagerTensor, ...], attrs: dict[str, Any], count: int | None = None, /
) -> EagerTensor | None:
    """The result of an op, or of a function of ops, by its compiled kernel.

    A function that makes ``count`` numbers of a few is given that too. None where there is no kernel, and
    where that fails: NumPy then says in the op's own words what is wrong.
    """
    if (isinstance(what, Op) and not _has_kernel(what, inputs, attrs)) or not eager_kernels_on():
        return None
    arrays = [x._array for x in inputs]
    key = what, exact_attrs(attrs), *[(a.dtype, a.shape, a.strides) for a in arrays], count
    run = _known.get(key, _MISSING)
    if run is _MISSING:
        run = _found(key, what, arrays, attrs, count)
    if run is None:
        return None
    try:
        made: EagerTensor | None = run(*inputs)
    except (InvalidArgumentError, MemoryError):
        return None
    return made


def _has_kernel(op: Op, inputs: Sequence[EagerTensor], attrs: Mapping[str, Any]) -> bool:
    """Whether compiled functions have kernels for such ops, as far as forms tell."""
    form = op.form
    if isinstance(form, Opaque):
        return form.unless is not None and form.unless(*[x._array for x in inputs], **attrs)
    return isinstance(form, _FORMS)


def _found(
    key: Hashable, what: Computation, arrays: Sequence[Array], attrs: dict[str, Any], count: int | None
) -> Run | None:
    """What runs calls of this kind, made now; None where NumPy does, also while a kernel is being made."""
    if _building.on or not all(map(_plain, attrs.values())) or any(_is_repeated(a, arrays) for a in arrays):
        return None
    run, kind = None, _kind(key, arrays)
    shape = max(arrays, key=np.ndim).shape if count is None else (count,)
    attrs = attrs if count is None else {**attrs, "count": count}
    if kind in _lengths and key not in _once:
        if len(_once) >= _MOST_SIZES:
            _once.clear()
        _once.add(key)
        return _of_length(_lengths[kind], arrays, shape)
    order = _order_of_all(what, arrays)
    if order is not None:
        run = _in_memory_order(what, attrs, order)
    elif not isinstance(what, Op) or _eligible(what, arrays):
        _building.on = True
        try:
            run = Context().run(_made, what, arrays, attrs, kind, shape)
        except _UnfitError:
            return None
        except Exception as error:
            _switch_off(what, error)
        finally:
            _building.on = False
    _remember(_known, key, run)
    return run


def _is_repeated(array: Array, arrays: Sequence[Array]) -> bool:
    """Whether memory holds fewer elements: NumPy reads these where they are, a kernel would need a copy.

    It is made of an array that is small beside another.
    """
    return (
        0 in array.strides
        and not array.flags.c_contiguous
        and array.size * _SMALL_BESIDE > max(a.size for a in arrays)
    )


def _remember(table: dict[Hashable, Any], key: Hashable, value: Any) -> None:
    """Keep ``value``, in the place of what has been kept longest where there is too much."""
    if len(table) >= _MOST:
        for oldest in list(table)[: _MOST // 8]:
            table.pop(oldest, None)
    table[key] = value


def _kind(key: Any, arrays: Sequence[Array]) -> Hashable:
    """The key without shapes; None where not all arrays are row-major and of one shape, or scalars."""
    if len({a.shape for a in arrays if a.ndim}) > 1 or not all(a.flags.c_contiguous for a in arrays):
        return None
    return *key[:2], *[(a.dtype, not a.ndim) for a in arrays]


def _of_length(compute: Callable[..., Array], arrays: Sequence[Array], shape: tuple[int, ...]) -> Run:
    """One call of a kernel for vectors of any length."""
    return lambda *inputs: wrap(compute(arrays, shape))


class _UnfitError(Exception):
    """The op can't take its inputs, as NumPy will say."""


def _switch_off(what: Computation, error: Exception) -> None:
    name = _name(what)
    without_eager_kernels(f"no kernel for {name}: {type(error).__name__}: {error}")
    warn_user(
        f"Large tensors are computed by NumPy on one thread, as no kernel of {name} could be made "
        f'({type(error).__name__}: {error}). Where this is meant, say df.config.set_eager_kernels("numpy").'
    )


def _name(what: Computation) -> str:
    return what.name if isinstance(what, Op) else what.__name__.strip("_")


def _plain(value: Any) -> bool:
    """Whether an attribute can be part of a key that outlives it."""
    return isinstance(value, _PLAIN) or (isinstance(value, tuple) and all(map(_plain, value)))


def _eligible(op: Op, arrays: Sequence[Array]) -> bool:
    """Whether ``op`` does nothing but compute one result of numbers."""
    return op.outputs == 1 and op.effect is None and all(a.dtype.kind in _NUMBERS for a in arrays)


def _made(
    what: Computation,
    arrays: Sequence[Array],
    attrs: Mapping[str, Any],
    kind: Hashable,
    shape: tuple[int, ...],
) -> Run | None:
    """The compiled graph of the op alone; None where a part of it is not native, or nothing is left of it.

    A kernel whose result has ``shape``, elementwise, is kept for other lengths.
    """
    orders = [_memory_order(a) for a in arrays]
    options = compile_options()
    tracer = Tracer(_name(what), options=options)
    try:
        graph = _graph(tracer, what, arrays, orders, attrs)
    except (InvalidArgumentError, DTypeError) as error:
        raise _UnfitError from error
    (result,) = graph.outputs
    if isinstance(what, Op) and isinstance(what.form, Take) and result.spec.size <= LARGE:
        return None
    compiled = CompiledGraph(graph, options)
    if compiled.optimised.outputs[0].node is None or any(part.node for part in compiled.executable.parts):
        return None
    if kind is not None and kind not in _lengths and result.spec.shape == shape:
        found = any_length(compiled.executable)
        if found is not None:
            _remember(_lengths, kind, found)
    if all(a.flags.c_contiguous for a in arrays):
        return lambda *inputs: compiled(*inputs)[0]
    return lambda *inputs: compiled(*map(_in_order, inputs, orders))[0]


def _order_of_all(what: Computation, arrays: Sequence[Array]) -> tuple[int, ...] | None:
    """The order of axes that all inputs of an elementwise op have in memory; None for their own one."""
    if not isinstance(what, Op) or not isinstance(what.form, Element):
        return None
    shapes = {a.shape for a in arrays if a.ndim}
    found = {_memory_order(a) for a in arrays if a.ndim}
    return found.pop() if len(shapes) == len(found) == 1 and list(*found) != sorted(*found) else None


def _in_memory_order(what: Computation, attrs: dict[str, Any], order: tuple[int, ...]) -> Run:
    """The op on inputs with their axes in the order of memory; the result lies as they do, as with NumPy."""
    perm = _inverse(order)

    def run(*inputs: EagerTensor) -> EagerTensor | None:
        rows = [wrap(x._array.transpose(order)) if x._array.ndim else x for x in inputs]
        found = run_kernel(what, tuple(rows), attrs)
        return None if found is None else wrap(found._array.transpose(perm))

    return run


def _graph(
    tracer: Tracer,
    what: Computation,
    arrays: Sequence[Array],
    orders: Sequence[tuple[int, ...]],
    attrs: Mapping[str, Any],
) -> Graph:
    """The graph of the op or function, whose arguments lie in row-major order."""
    with tracing(tracer):
        inputs = tuple([_argument(tracer, a, order) for a, order in zip(arrays, orders, strict=True)])
        found = tracer.run(what, inputs, dict(attrs)) if isinstance(what, Op) else what(*inputs, **attrs)
    result: Value = found._value
    return eliminate_dead_code(tracer.builder.finish([result]))


def _argument(tracer: Tracer, array: Array, order: tuple[int, ...]) -> Any:
    """What the op reads: an argument, whose axes are put in another order where ``order`` says so."""
    symbol = tracer.argument(TensorSpec.of(Shape([array.shape[a] for a in order]), of_array(array.dtype)))
    perm = _inverse(order)
    return symbol if list(perm) == sorted(perm) else tracer.run(TRANSPOSE, (symbol,), {"perm": perm})


def _memory_order(array: Array) -> tuple[int, ...]:
    """The order of axes in which the array is row-major; its own where there is none."""
    own = tuple(range(array.ndim))
    if array.flags.c_contiguous:
        return own
    order = tuple(sorted(own, key=lambda a: (-array.strides[a], a)))
    return order if array.transpose(order).flags.c_contiguous else own


def _inverse(order: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(sorted(range(len(order)), key=order.__getitem__))


def _in_order(tensor: EagerTensor, order: tuple[int, ...]) -> EagerTensor:
    """The tensor with its axes in ``order``, in row-major order: a copy where memory has them otherwise."""
    return wrap(np.ascontiguousarray(tensor._array.transpose(order)))
