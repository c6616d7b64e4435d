"""Neighbouring floats, angles, polynomials, and conversions that keep the bits or saturate."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dualflow.core import dispatch
from dualflow.core.dtypes import DType, as_dtype
from dualflow.core.errors import DTypeError, InvalidArgumentError
from dualflow.core.shape import Shape, as_shape, broadcast
from dualflow.core.spec import TensorSpec
from dualflow.ops.arithmetic import add, add_n, multiply
from dualflow.ops.batching_rules import LEADING
from dualflow.ops.clipping import clip_by_value
from dualflow.ops.comparison import less
from dualflow.ops.complex_numbers import complex as complex_of
from dualflow.ops.complex_numbers import imag, real
from dualflow.ops.conversion import cast
from dualflow.ops.creation import convert_to_tensor, zeros_like
from dualflow.ops.op_kinds import Elementwise, Opaque
from dualflow.ops.record import Op, Promotion, register
from dualflow.ops.samples import Domain, Sample
from dualflow.ops.selection import where
from dualflow.ops.trigonometric import atan2

if TYPE_CHECKING:
    from dualflow.core.argument_types import DTypeLike, ShapeLike, TensorLike
    from dualflow.ops.tensor import Tensor


def _neighbour_infer(x1: TensorSpec, x2: TensorSpec) -> TensorSpec:
    if not x1.dtype.is_floating:
        raise DTypeError(f"takes floats, not {x1.dtype.name}; convert them with df.cast.")
    return TensorSpec.of(broadcast([x1.shape, x2.shape]), x1.dtype)


def _neighbour(m: Any, x: Any, y: Any) -> Any:
    """The float after ``x`` towards ``y``; Rump et al., "Computing Predecessor and Successor" (2009)."""
    info = np.finfo(m.dtype(x).dtype)
    unit, least = float(info.eps) / 2, float(info.smallest_subnormal)
    phi = unit * (1 + 2 * unit)
    size, up = m.abs(x), x < y
    wide = phi * size
    scaled = x * (1 / unit)
    distance = phi * m.abs(scaled)
    normal = m.where(up, x + wide, x - wide)
    small = m.where(up, scaled + distance, scaled - distance) * unit
    smallest = m.where(up, x + least, x - least)
    neighbour = m.where(
        size >= least / (2 * unit * unit), normal, m.where(size < least / unit, smallest, small)
    )
    neighbour = m.where(m.isinf(x), m.copysign(float(info.max), x), neighbour)
    neighbour = m.where(m.equal(neighbour, 0), m.copysign(neighbour, x), neighbour)
    return m.where(m.equal(x, y), y, m.where(m.isnan(x) | m.isnan(y), x + y, neighbour))


NEXTAFTER = register(
    Op(
        name="nextafter",
        doc="""The float next to ``x1`` on the way to ``x2``.""",
        infer=_neighbour_infer,
        kernel=np.nextafter,
        kind=Elementwise(_neighbour, 20, depends_on_precision=True),
        vjp=(lambda g, out, x1, x2: g, lambda g, out, x1, x2: zeros_like(g)),
        promotion=Promotion.FLOAT,
        samples=(Sample((Domain(-5, 5, "f"), Domain(6, 9, "f"))),),
    )
)


def nextafter(x1: TensorLike, x2: TensorLike, name: str | None = None) -> Tensor:
    """The next float after ``x1`` towards ``x2``; ``x2`` where they are equal, nan where either is.

    Args:
        x1: real numbers of any shape.
        x2: likewise; the shapes broadcast. Integers become float32.

    Returns:
        A tensor of the broadcast shape with the common float dtype.

    Raises:
        DTypeError: an input holds complex numbers or strings.
        InvalidArgumentError: the shapes do not broadcast.

    >>> import dualflow as df
    >>> df.math.nextafter([1.0, 0.0], [2.0, 0.0]).numpy().tolist()
    [1.0000001192092896, 0.0]
    """
    return dispatch.current().binary(NEXTAFTER, x1, x2)


def angle(input: TensorLike, name: str | None = None) -> Tensor:
    """The angles of complex numbers, in (-pi, pi]; for real numbers 0, or pi if they are negative.

    Args:
        input: numbers of any shape.

    Returns:
        A tensor with the shape of ``input`` and its float dtype; for complex numbers, that of their parts.

    Raises:
        DTypeError: ``input`` holds strings.

    >>> import dualflow as df
    >>> df.math.angle([1j, -1.0]).numpy()
    array([1.57079633, 3.14159265])
    """
    x = convert_to_tensor(input)
    if x.dtype.is_complex:
        return atan2(imag(x), real(x))
    if not x.dtype.is_floating:
        raise DTypeError(f"angle takes floats or complex numbers, not {x.dtype.name}; use df.cast.")
    return where(less(x, 0), math.pi, zeros_like(x))


def polyval(coeffs: Sequence[Any], x: TensorLike, name: str | None = None) -> Tensor:
    """The polynomial with these coefficients at ``x``, by Horner's rule.

    Args:
        coeffs: a list of tensors or numbers whose shapes broadcast, that of the highest power first; 0 for an
            empty list.
        x: numbers of any shape.

    Returns:
        A tensor of the broadcast shape with the common dtype.

    Raises:
        DTypeError: ``coeffs`` is not a list.
        InvalidArgumentError: the shapes do not broadcast.

    >>> import dualflow as df
    >>> df.math.polyval([1.0, 2.0, 3.0], [2.0, 3.0]).numpy()
    array([11., 18.], dtype=float32)
    """
    if not isinstance(coeffs, list | tuple):
        raise DTypeError(
            f"polyval takes a list of coefficients, not {type(coeffs).__name__}; use df.unstack."
        )
    at = convert_to_tensor(x)
    if not coeffs:
        return zeros_like(at)
    value: Any = convert_to_tensor(coeffs[0])
    for coefficient in coeffs[1:]:
        value = add(multiply(value, at), coefficient)
    return value


def accumulate_n(
    inputs: Sequence[Any],
    shape: ShapeLike | None = None,
    tensor_dtype: DTypeLike | None = None,
    name: str | None = None,
) -> Tensor:
    """The sum of tensors of one shape and dtype: :func:`dualflow.add_n`.

    Args:
        inputs: a list of one tensor or more.
        shape: the expected shape of the tensors; None for any.
        tensor_dtype: the expected dtype of the tensors; None for any.

    Returns:
        A tensor with the shape and dtype of the inputs.

    Raises:
        InvalidArgumentError: the list is empty, or the shapes are others.
        DTypeError: the dtype is another.

    >>> import dualflow as df
    >>> df.math.accumulate_n([df.constant([1, 2]), df.constant([3, 4])]).numpy()
    array([4, 6], dtype=int32)
    """
    total = add_n(inputs)
    if tensor_dtype is not None and total.dtype is not as_dtype(tensor_dtype):
        raise DTypeError(f"accumulate_n adds {as_dtype(tensor_dtype).name} here, not {total.dtype.name}.")
    if shape is not None and not total.shape.is_compatible_with(as_shape(shape)):
        raise InvalidArgumentError(f"accumulate_n adds shape {as_shape(shape)} here, not {total.shape}.")
    return total


# Conversions


def saturate_cast(value: TensorLike, dtype: DTypeLike, name: str | None = None) -> Tensor:
    """``value`` in another dtype; numbers out of its range become its nearest end.

    Infinities become the largest finite numbers; nan stays nan, and becomes 0 as an integer.

    Args:
        value: numbers of any shape.
        dtype: a float, integer or complex dtype.

    Returns:
        A tensor with the shape of ``value`` and dtype ``dtype``.

    Raises:
        DTypeError: ``dtype`` is bool.

    >>> import dualflow as df
    >>> df.saturate_cast([300.0, -5.0, 1.7], df.uint8).numpy()
    array([255,   0,   1], dtype=uint8)
    """
    x, target = convert_to_tensor(value), as_dtype(dtype)
    if target.is_bool:
        raise DTypeError("saturate_cast makes numbers, not bools; write a comparison such as x != 0.")
    if x.dtype.is_complex and target.is_complex:
        return complex_of(saturate_cast(real(x), target.real), saturate_cast(imag(x), target.real))
    if x.dtype.is_complex:
        x = real(x)
    if target.is_complex:
        return cast(saturate_cast(x, target.real), target)
    return cast(_within(x, target), target)


def _within(x: Any, target: DType) -> Any:
    """``x`` clipped to the finite numbers of ``target``, unless a cast always gives one of them."""
    source = x.dtype
    if source.is_bool or (source.is_floating and target.is_integer):
        return x
    kind = float if source.is_floating else int
    low, high = max(kind(source.min), kind(target.min)), min(kind(source.max), kind(target.max))
    if source.is_integer and (low, high) == (source.min, source.max):
        return x
    return clip_by_value(x, low, high)


def _bits_infer(x: TensorSpec, dtype: DType) -> TensorSpec:
    if "b" in (x.dtype.kind, dtype.kind):
        raise DTypeError(f"reads the bits of numbers, not {x.dtype.name} as {dtype.name}; use df.cast.")
    if x.dtype.size >= dtype.size:
        parts = x.dtype.size // dtype.size
        return TensorSpec.of(Shape([*x.shape, parts]) if parts > 1 else x.shape, dtype)
    parts = dtype.size // x.dtype.size
    if not len(x.shape) or x.shape[-1] not in (parts, None):
        raise InvalidArgumentError(
            f"{parts} elements of {x.dtype.name} make one of {dtype.name}: the last axis of shape {x.shape} "
            f"should be of size {parts}."
        )
    return TensorSpec.of(x.shape[:-1], dtype)


def _bits(x: Any, dtype: DType) -> Any:
    spec = _bits_infer(TensorSpec(x.shape, x.dtype), dtype)
    return np.ascontiguousarray(x).reshape(-1).view(dtype.dtype).reshape(spec.shape)


BITCAST = register(
    Op(
        name="bitcast",
        doc="""The bits of ``x`` read as numbers of another dtype.""",
        infer=_bits_infer,
        kernel=_bits,
        kind=Opaque("it reads memory as another dtype"),
        batching_rule=LEADING,
        samples=(
            Sample((Domain(-50, 50, "fi", (3, 2)),), {"dtype": as_dtype("uint8")}),
            Sample((Domain(0, 200, "u", (3, 4)),), {"dtype": as_dtype("int32")}),
        ),
    )
)


def bitcast(input: TensorLike, type: DTypeLike, name: str | None = None) -> Tensor:
    """The bits of ``input`` read as numbers of another dtype.

    Args:
        input: numbers of any shape.
        type: the new dtype. A narrower one adds a last axis with the parts of each element; a wider one joins
            the elements of the last axis, which is removed.

    Returns:
        A tensor of dtype ``type``.

    Raises:
        InvalidArgumentError: the last axis doesn't have the size of one wider element.
        DTypeError: ``input`` or ``type`` is of bools.

    >>> import dualflow as df
    >>> df.bitcast(df.constant([1.0, 2.0]), df.int32).numpy()
    array([1065353216, 1073741824], dtype=int32)
    """
    return dispatch.current().apply(BITCAST, (input,), {"dtype": as_dtype(type)})
