"""Products, extremes and logic over axes, and the positions of extremes."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from dualflow.core import dispatch
from dualflow.core.dtypes import DType, as_dtype, bool_, int64
from dualflow.core.errors import DTypeError, InvalidArgumentError
from dualflow.core.shape import normalize_axis
from dualflow.core.spec import TensorSpec
from dualflow.ops import maths_reference
from dualflow.ops.arrangement import reshape, transpose
from dualflow.ops.broadcasting import reduce_sum, reduced, reduction_axes, spread
from dualflow.ops.checks import required
from dualflow.ops.comparison import equal, greater, logical_or, not_equal
from dualflow.ops.conversion import cast
from dualflow.ops.creation import convert_to_tensor
from dualflow.ops.docstrings import REDUCTION, documented
from dualflow.ops.joining import split
from dualflow.ops.op_kinds import Reduce
from dualflow.ops.positions import iota
from dualflow.ops.record import Op, register
from dualflow.ops.repetition import pad
from dualflow.ops.samples import Domain, Sample
from dualflow.ops.selection import masked, where
from dualflow.ops.size_values import operand
from dualflow.ops.static import require_static_sizes, shape_of, static_int
from dualflow.ops.tensor_sizes import sizes_of

if TYPE_CHECKING:
    from dualflow.core.argument_types import AxisLike, DTypeLike, TensorLike
    from dualflow.ops.tensor import Tensor

_AXES: tuple[tuple[tuple[int, ...], tuple[int, ...], bool], ...] = (
    ((3, 4), (0, 1), False),
    ((3, 4), (1,), False),
    ((2, 3, 4), (0, 2), True),
    ((2, 3, 4), (1,), False),
)


_EMPTY: tuple[tuple[tuple[int, ...], tuple[int, ...], bool], ...] = (
    ((0, 4), (0,), False),
    ((2, 0), (0, 1), True),
    ((0, 3), (1,), False),
)


def _samples(kinds: str, low: float = -50, high: float = 50) -> tuple[Sample, ...]:
    return tuple(
        Sample((Domain(low, high, kinds, s),), {"axis": a, "keepdims": k}) for s, a, k in _AXES + _EMPTY
    )


def _reduction(
    name: str,
    doc: str,
    ufunc: np.ufunc,
    kinds: str,
    fold: Reduce,
    vjp: Callable[..., Any] | None,
    samples: Any,
) -> Op:
    """The op record of the reduction by ``ufunc``; its result without elements is the start of ``fold``."""
    reduce: Callable[..., Any] = ufunc.reduce

    def infer(x: TensorSpec, axis: tuple[int, ...], keepdims: bool) -> TensorSpec:
        if x.dtype.kind not in kinds:
            raise DTypeError(f"does not take {x.dtype.name}; convert the input with df.cast.")
        return TensorSpec.of(reduced(x.shape, axis, keepdims), x.dtype)

    def kernel(x: Any, axis: tuple[int, ...], keepdims: bool) -> Any:
        if x.dtype.kind not in kinds:
            raise TypeError(f"{name} does not take {x.dtype}")
        if x.dtype.char == "e":  # rounded once
            return kernel(x.astype(np.float32), axis, keepdims).astype(x.dtype)
        if not x.size:
            return reduce(x, axis, x.dtype, None, keepdims, fold.start(maths_reference, as_dtype(x.dtype))[0])
        return reduce(x, axis, x.dtype, None, keepdims)

    return register(
        Op(name=name, doc=doc, infer=infer, kernel=kernel, kind=fold, vjp=vjp and (vjp,), samples=samples)
    )


def _fold(neutral: Callable[[DType], Any], join: Callable[[Any, Any, Any], Any]) -> Reduce:
    return Reduce(
        start=lambda m, dtype: (m.cast(neutral(dtype), dtype),),
        step=lambda m, acc, x, index: (join(m, acc[0], x),),
        merge=lambda m, a, b: (join(m, a[0], b[0]),),
        finish=lambda m, acc: acc[0],
    )


def _lowest(dtype: DType) -> Any:
    return False if dtype is bool_ else -math.inf if dtype.is_floating else dtype.min


def _highest(dtype: DType) -> Any:
    return True if dtype is bool_ else math.inf if dtype.is_floating else dtype.max


def _extreme_vjp(g: Any, out: Any, x: Any, axis: tuple[int, ...], keepdims: bool) -> Any:
    """The cotangent of an extreme, divided equally among the elements that attain it."""
    share = cast(equal(x, spread(out, x, axis, keepdims)), x.dtype)
    count = reduce_sum(share, axis, keepdims)
    return share * spread(g / count, x, axis, keepdims)


def _first_vjp(g: Any, out: Any, x: Any, axis: tuple[int, ...], keepdims: bool) -> Any:
    """The VJP of max and min: the first element that is the extreme, or nan, gets the whole cotangent."""
    count, index = 1, convert_to_tensor(0)
    for a in reversed(axis):
        size = x.shape[a]
        along = [size if b == a else 1 for b in range(len(x.shape))]
        index, count = index + iota(along, a) * operand(count), count * size
    extreme = logical_or(equal(x, spread(out, x, axis, keepdims)), not_equal(x, x))
    first = reduce_min(where(extreme, index, operand(count)), axis, keepdims=True)
    return masked(equal(index, first), spread(g, x, axis, keepdims))


def _prod_vjp(g: Any, out: Any, x: Any, axis: tuple[int, ...], keepdims: bool) -> Any:
    """The cotangent of a product: products of all other elements, without a division by zeros."""
    kept = tuple(a for a in range(len(x.shape)) if a not in axis)
    flat = transpose(x, (*kept, *axis))
    moved = flat.shape
    count = math.prod(require_static_sizes(moved[len(kept) :], "the gradient of reduce_prod"))
    rows = reshape(flat, (*moved[: len(kept)], count))
    other_products = _exclusive_products(rows, count, 1) * _exclusive_products(rows, count, -1)
    order = (*kept, *axis)
    indices = sorted(range(len(order)), key=order.__getitem__)
    restored = transpose(reshape(other_products, moved), tuple(indices))
    return restored * spread(g, x, axis, keepdims)


def _exclusive_products(rows: Any, count: int, direction: int) -> Any:
    """For each element the product of those before it (after it, if ``direction`` is -1), by doubling."""
    products, reach = _shifted(rows, count, 1, direction), 1
    while reach < count:
        products = products * _shifted(products, count, reach, direction)
        reach *= 2
    return products


def _shifted(rows: Any, count: int, by: int, direction: int) -> Any:
    by = min(by, count)
    kept, lost = (count - by, by) if direction > 0 else (by, count - by)
    part = split(rows, [kept, lost], axis=-1)[0 if direction > 0 else 1]
    around = [[0, 0]] * (len(rows.shape) - 1) + [[by, 0] if direction > 0 else [0, by]]
    return pad(part, around, constant_values=1)


REDUCE_PROD = _reduction(
    "reduce_prod",
    """The product over the given axes.""",
    np.multiply,
    "iufc",
    _fold(lambda dtype: 1, lambda m, a, b: a * b),
    _prod_vjp,
    _samples("fi", -2, 3),
)
REDUCE_MAX = _reduction(
    "reduce_max",
    """The maximum over the given axes; nan if there is one. Ties share the gradient.""",
    np.maximum,
    "biuf",
    _fold(_lowest, lambda m, a, b: m.maximum(a, b)),
    _extreme_vjp,
    _samples("fi"),
)
REDUCE_FIRST_MAX = _reduction(
    "reduce_first_max",
    """The maximum over the given axes, of known sizes; the gradient goes to the first of equal ones.""",
    np.maximum,
    "biuf",
    _fold(_lowest, lambda m, a, b: m.maximum(a, b)),
    _first_vjp,
    _samples("fi"),
)
REDUCE_MIN = _reduction(
    "reduce_min",
    """The minimum over the given axes; nan if there is one. Ties share the gradient.""",
    np.minimum,
    "biuf",
    _fold(_highest, lambda m, a, b: m.minimum(a, b)),
    _extreme_vjp,
    _samples("fi"),
)
REDUCE_ALL = _reduction(
    "reduce_all",
    """Whether all elements over the given axes are true.""",
    np.logical_and,
    "b",
    _fold(lambda dtype: True, lambda m, a, b: a & b),
    None,
    _samples("b"),
)
REDUCE_ANY = _reduction(
    "reduce_any",
    """Whether any element over the given axes is true.""",
    np.logical_or,
    "b",
    _fold(lambda dtype: False, lambda m, a, b: a | b),
    None,
    _samples("b"),
)


def _reduce(op: Op, x: Any, axis: Any, keepdims: bool) -> Any:
    axes = reduction_axes(x, axis)
    return dispatch.current().apply(op, (x,), {"axis": axes, "keepdims": bool(keepdims)})


@documented(REDUCTION, input="input_tensor", takes="numbers other than bools", returns="the same dtype")
def reduce_prod(
    input_tensor: TensorLike, axis: AxisLike | None = None, keepdims: bool = False, name: str | None = None
) -> Tensor:
    """The product over ``axis``, by default over all axes; 1 if there are no elements.

    >>> import dualflow as df
    >>> df.reduce_prod([[1, 2], [3, 4]], axis=1).numpy()
    array([ 2, 12], dtype=int32)
    """
    return _reduce(REDUCE_PROD, input_tensor, axis, keepdims)


@documented(REDUCTION, input="input_tensor", takes="real numbers", returns="the same dtype")
def reduce_max(
    input_tensor: TensorLike, axis: AxisLike | None = None, keepdims: bool = False, name: str | None = None
) -> Tensor:
    """The maximum over ``axis``, by default over all axes; nan if an element is nan.

    The maximum of no elements is ``-inf``, or the lowest integer of the dtype. Equal maxima share the
    gradient.

    >>> import dualflow as df
    >>> df.reduce_max([[1, 5], [7, 3]], axis=1).numpy()
    array([5, 7], dtype=int32)
    """
    return _reduce(REDUCE_MAX, input_tensor, axis, keepdims)


def reduce_first_max(x: Any, axis: tuple[int, ...]) -> Any:
    """The maximum over ``axis``, of known sizes; the gradient goes to the first of equal elements."""
    return _reduce(REDUCE_FIRST_MAX, x, axis, keepdims=False)


@documented(REDUCTION, input="input_tensor", takes="real numbers", returns="the same dtype")
def reduce_min(
    input_tensor: TensorLike, axis: AxisLike | None = None, keepdims: bool = False, name: str | None = None
) -> Tensor:
    """The minimum over ``axis``, by default over all axes; nan if an element is nan.

    The minimum of no elements is ``inf``, or the highest integer of the dtype. Equal minima share the
    gradient.

    >>> import dualflow as df
    >>> df.reduce_min([[1, 5], [7, 3]], axis=1).numpy()
    array([1, 3], dtype=int32)
    """
    return _reduce(REDUCE_MIN, input_tensor, axis, keepdims)


@documented(REDUCTION, input="input_tensor", takes="bools", returns="dtype bool")
def reduce_all(
    input_tensor: TensorLike, axis: AxisLike | None = None, keepdims: bool = False, name: str | None = None
) -> Tensor:
    """Whether all elements over ``axis`` are true, by default over all axes; True if there are none.

    >>> import dualflow as df
    >>> df.reduce_all([[True, False], [True, True]], axis=1).numpy()
    array([False,  True])
    """
    return _reduce(REDUCE_ALL, input_tensor, axis, keepdims)


@documented(REDUCTION, input="input_tensor", takes="bools", returns="dtype bool")
def reduce_any(
    input_tensor: TensorLike, axis: AxisLike | None = None, keepdims: bool = False, name: str | None = None
) -> Tensor:
    """Whether an element over ``axis`` is true, by default over all axes; False if there are none.

    >>> import dualflow as df
    >>> df.reduce_any([[True, False], [False, False]], axis=1).numpy()
    array([ True, False])
    """
    return _reduce(REDUCE_ANY, input_tensor, axis, keepdims)


# argmax, argmin


def _position(
    name: str, doc: str, kernel: Callable[..., Any], worst: Callable[[DType], Any], sense: int
) -> Op:
    """The op record of argmax or argmin; nan counts as the extreme."""

    def infer(x: TensorSpec, axis: tuple[int, ...], keepdims: bool) -> TensorSpec:
        if x.dtype.kind not in "biuf":
            raise DTypeError(f"takes real numbers, not {x.dtype.name}; convert the input with df.cast.")
        if any(x.shape[a] == 0 for a in axis):
            raise InvalidArgumentError(
                f"no position exists among no elements (shape {x.shape}); leave empty tensors out."
            )
        return TensorSpec.of(reduced(x.shape, axis, keepdims), int64)

    def search(x: Any, axis: tuple[int, ...], keepdims: bool) -> Any:
        if x.dtype.kind == "c":
            raise TypeError(f"{name} takes real numbers")
        return kernel(x, axis[0], None, keepdims=keepdims)

    def join(m: Any, a: tuple[Any, Any], b: tuple[Any, Any]) -> tuple[Any, Any]:
        beyond = b[0] > a[0] if sense > 0 else b[0] < a[0]
        same = m.equal(a[0], b[0])
        if m.dtype(a[0]).kind == "f":
            beyond = beyond | (m.isnan(b[0]) & ~m.isnan(a[0]))
            same = same | (m.isnan(b[0]) & m.isnan(a[0]))
        take = beyond | (same & (b[1] < a[1]))
        return m.where(take, b[0], a[0]), m.where(take, b[1], a[1])

    fold = Reduce(
        start=lambda m, dtype: (m.cast(worst(dtype), dtype), m.cast(int64.max, int64)),
        step=lambda m, acc, x, index: join(m, acc, (x, m.cast(index, int64))),
        merge=join,
        finish=lambda m, acc: acc[1],
        needs_position=True,
    )
    samples = tuple(
        Sample((Domain(-50, 50, "fi", shape),), {"axis": axis, "keepdims": False})
        for shape, axis in (((5,), (0,)), ((3, 4), (1,)), ((3, 4), (0,)), ((2, 3, 4), (1,)))
    )
    return register(
        Op(
            name=name,
            doc=doc,
            infer=infer,
            kernel=search,
            kind=fold,
            samples=samples,
        )
    )


ARGMAX = _position(
    "argmax", """The position of the first maximum along an axis.""", np.ndarray.argmax, _lowest, 1
)
ARGMIN = _position(
    "argmin", """The position of the first minimum along an axis.""", np.ndarray.argmin, _highest, -1
)


def _search(op: Op, x: Any, axis: Any, output_type: Any) -> Any:
    position = normalize_axis(static_int(0 if axis is None else axis, "axis"), len(shape_of(x)))
    indices = dispatch.current().apply(op, (x,), {"axis": (position,), "keepdims": False})
    if shape_of(x)[position] is None:
        indices = required(
            indices, greater(sizes_of(x)[position], 0), "no position exists among no elements."
        )
    target = as_dtype(output_type)
    return indices if target is int64 else cast(indices, target)


def argmax(
    input: TensorLike, axis: AxisLike | None = None, output_type: DTypeLike = int64, name: str | None = None
) -> Tensor:
    """The positions of the first maxima along an axis; a nan counts as the maximum.

    Args:
        input: real numbers of one axis or more.
        axis: the axis to search; None for the first.
        output_type: the integer dtype of the positions; int64 by default.

    Returns:
        A tensor with the shape of ``input`` without ``axis``, and dtype ``output_type``.

    Raises:
        InvalidArgumentError: the axis has no elements or is out of range.
        DTypeError: ``input`` holds complex numbers or strings.

    >>> import dualflow as df
    >>> df.argmax([[1, 9, 9], [4, 2, 3]], axis=1).numpy()
    array([1, 0])
    """
    return _search(ARGMAX, input, axis, output_type)


def argmin(
    input: TensorLike, axis: AxisLike | None = None, output_type: DTypeLike = int64, name: str | None = None
) -> Tensor:
    """The positions of the first minima along an axis; a nan counts as the minimum.

    Args:
        input: real numbers of one axis or more.
        axis: the axis to search; None for the first.
        output_type: the integer dtype of the positions; int64 by default.

    Returns:
        A tensor with the shape of ``input`` without ``axis``, and dtype ``output_type``.

    Raises:
        InvalidArgumentError: the axis has no elements or is out of range.
        DTypeError: ``input`` holds complex numbers or strings.

    >>> import dualflow as df
    >>> df.argmin([[3, 1, 1], [4, 2, 3]], axis=1).numpy()
    array([1, 1])
    """
    return _search(ARGMIN, input, axis, output_type)
