"""Discrete Fourier transforms of any axes, by SciPy, which keeps single precision.

One op is all of them: complex or real, there or back. Each is linear, so the gradient of each is another one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import scipy.fft

from dualflow.core import dispatch
from dualflow.core.dtypes import complex64, complex128, float32, float64, int64
from dualflow.core.errors import DTypeError, InvalidArgumentError
from dualflow.core.shape import Dim, Shape, normalize_axes, normalize_axis
from dualflow.core.spec import TensorSpec
from dualflow.ops.arrangement import expand_dims
from dualflow.ops.batching_rules import BatchingRule
from dualflow.ops.complex_numbers import conj
from dualflow.ops.conversion import cast
from dualflow.ops.creation import convert_to_tensor
from dualflow.ops.docstrings import documented
from dualflow.ops.op_kinds import Opaque
from dualflow.ops.record import Op, register
from dualflow.ops.repetition import pad, roll
from dualflow.ops.samples import Domain, Sample
from dualflow.ops.signal.fourier_sections import ANY_AXES, COMPLEX, FFT, FULL, ONE, REAL, RFFT, THREE, TWO
from dualflow.ops.size_values import numbers_below, operand, selected
from dualflow.ops.static import ints, require_static_sizes, static_int
from dualflow.ops.tensor_sizes import axis_sizes
from dualflow.sizes.size_functions import largest, smallest
from dualflow.sizes.symbolic_sizes import SymInt

if TYPE_CHECKING:
    from dualflow.core.argument_types import AxisLike, IntsLike, TensorLike
    from dualflow.ops.tensor import Tensor

Array = np.ndarray[Any, Any]
Axes = tuple[int, ...]
Lengths = tuple[Dim, ...]

_TRANSFORMS: Final[dict[str, Callable[..., Array]]] = {
    "fft": scipy.fft.fftn,
    "ifft": scipy.fft.ifftn,
    "rfft": scipy.fft.rfftn,
    "irfft": scipy.fft.irfftn,
}


def _input_kind(kind: str) -> str:
    return "f" if kind == "rfft" else "c"


def _full(kind: str, shape: Sequence[Dim], axes: Axes, lengths: Lengths) -> Lengths:
    """The lengths of the transform; those that are None are the sizes of the input."""
    full = [shape[a] if n is None else n for a, n in zip(axes, lengths, strict=True)]
    last = shape[axes[-1]]
    if kind == "irfft" and lengths[-1] is None and last is not None:
        full[-1] = largest(0, 2 * (last - 1))
    return tuple(full)


def _infer(x: TensorSpec, kind: str, axes: Axes, lengths: Lengths) -> TensorSpec:
    if x.dtype.kind != _input_kind(kind) or x.dtype.size == 2:
        expected = "float32 or float64" if kind == "rfft" else "complex64 or complex128"
        raise DTypeError(f"takes {expected}, not {x.dtype.name}; convert the input with df.cast.")
    dims = list(x.shape)
    for axis, length in zip(axes, _full(kind, x.shape, axes, lengths), strict=True):
        dims[axis] = length
    last = dims[axes[-1]]
    if kind == "rfft":
        dims[axes[-1]] = None if last is None else smallest(last, last // 2 + 1)
        return TensorSpec.of(Shape(dims), complex64 if x.dtype is float32 else complex128)
    return TensorSpec.of(Shape(dims), x.dtype.real if kind == "irfft" else x.dtype)


def _kernel(x: Array, kind: str, axes: Axes, lengths: Lengths) -> Array:
    if x.dtype.kind != _input_kind(kind) or x.dtype.itemsize == 2:
        raise TypeError("this transform does not take the dtype")
    full = _full(kind, x.shape, axes, lengths)
    if not x.size or 0 in full:
        spec = _infer(TensorSpec(x.shape, x.dtype), kind, axes, lengths)
        return np.zeros(spec.shape, spec.dtype.dtype)
    return _TRANSFORMS[kind](x, full, axes)


def _vjp(g: Any, out: Any, x: Any, kind: str, axes: Axes, lengths: Lengths) -> Any:
    """The transposed transform; it also reverses the truncation or padding of the input.

    The matrix of a complex transform is symmetric. A real one omits mirrored coefficients: coefficients
    with a mirror image count twice.
    """
    full = require_static_sizes(_full(kind, x.shape, axes, lengths), "the gradient of a Fourier transform")
    count = math.prod(full)
    if kind == "rfft":
        weights = _mirrored(full[-1], 0.5, g.shape[axes[-1]]) * operand(count, float64)
        weighed = conj(g) * _along(axes[-1], cast(weights, g.dtype), g)
        g_input: Any = _transform("irfft", weighed, axes, full)
    elif kind == "irfft":
        transformed = _transform("rfft", g, axes, full)
        weights = _mirrored(full[-1], 2.0, transformed.shape[axes[-1]]) / operand(count, float64)
        g_input = conj(transformed) * _along(axes[-1], cast(weights, transformed.dtype), transformed)
    else:
        g_input = _transform(kind, g, axes, full)
    return _fitted(g_input, x.shape, axes)


def _mirrored(length: int, weight: float, count: int) -> Any:
    """The weights of a real signal's ``count`` coefficients: 1 for self-conjugate ones, else ``weight``."""
    index = numbers_below(count)
    return selected((index == 0) | (index * 2 == operand(length)), 1.0, weight)


def _along(axis: int, weights: Any, x: Any) -> Any:
    """A vector of weights in the shape in which it broadcasts along an axis of ``x``."""
    axes_after = len(x.shape) - 1 - axis
    return expand_dims(weights, tuple(range(1, axes_after + 1))) if axes_after else weights


def _fitted(x: Any, shape: Shape, axes: Axes) -> Any:
    """``x`` truncated or zero-padded along ``axes`` to the sizes in ``shape``."""
    for axis in axes:
        size, current = shape[axis], x.shape[axis]
        if current > size:
            x = x[(slice(None),) * axis + (slice(0, size),)]
        elif current < size:
            x = pad(x, [[0, size - current if a == axis else 0] for a in range(len(shape))])
    return x


LONG: Final = tuple([1 << n for n in range(16, 25)])
"""The lengths of rows of complex numbers that the default backend transforms itself."""


def _is_long_row(x: Any, kind: str, axes: Axes, lengths: Lengths) -> bool:
    """Whether rows are transformed unchanged, and so long that SciPy's one thread takes longer."""
    (*batch, size), (axis, *others) = x.shape, axes
    if kind not in ("fft", "ifft") or others or axis != len(x.shape) - 1 or type(size) is not int:
        return False
    return all(isinstance(n, SymInt) or n for n in batch) and lengths[0] in (None, size) and size in LONG


def _is_long_size(x: TensorSpec, kind: str, axes: Axes, lengths: Lengths) -> bool:
    """Whether the rows, of a symbolic size, are :func:`_is_long_row` in a call, whose sizes decide."""
    size, last = x.shape[-1], (len(x.shape) - 1,)
    is_row = kind in ("fft", "ifft") and (axes, lengths) == (last, (None,)) and size is not None
    return is_row and size >= LONG[0] and any(size == n for n in LONG)


def _sample(kind: str, shape: tuple[int, ...], axes: Axes, *lengths: Dim) -> Sample:
    attrs = {"kind": kind, "axes": axes, "lengths": lengths or (None,) * len(axes)}
    return Sample((Domain(-3, 3, _input_kind(kind), shape),), attrs)


FOURIER: Final = register(
    Op(
        name="fourier_transform",
        doc="""The discrete Fourier transform of complex or real signals over axes, or its inverse.""",
        infer=_infer,
        kernel=_kernel,
        kind=Opaque("Fourier transforms are SciPy's", _is_long_row, compare_sizes=_is_long_size),
        batching_rule=BatchingRule(axes=("axes",)),
        vjp=(_vjp,),
        samples=(
            _sample("rfft", (2, 6), (1,)),
            _sample("rfft", (7, 2), (0,), 5),
            _sample("rfft", (2, 3, 4), (0, 2), 3, 6),
            _sample("rfft", (2, 0), (1,)),
            _sample("fft", (2, 5), (1,)),
            _sample("fft", (3, 4), (1, 0), 3, 4),
            _sample("ifft", (2, 6), (1,), 4),
            _sample("irfft", (2, 4), (1,)),
            _sample("irfft", (3, 4), (0, 1), 3, 7),
        ),
    )
)


def _transform(kind: str, x: Any, axes: Axes, lengths: Lengths) -> Any:
    return dispatch.current().apply(FOURIER, (x,), {"kind": kind, "axes": axes, "lengths": lengths})


def _of_last(kind: str, x: Any, rank: int, fft_length: Any) -> Tensor:
    """The transform of the last ``rank`` axes."""
    x = convert_to_tensor(x)
    dims = len(x.shape)
    if dims < rank:
        raise InvalidArgumentError(
            f"{_name(kind, rank)} takes {rank} axes or more, not the shape {x.shape}; use df.reshape."
        )
    axes = tuple(range(dims - rank, dims))
    return _transform(kind, x, axes, _lengths(fft_length, rank, _name(kind, rank)))


def _name(kind: str, rank: int) -> str:
    return kind if rank == 1 else f"{kind}{rank}d"


def _lengths(fft_length: Any, rank: int, name: str) -> Lengths:
    if fft_length is None:
        return (None,) * rank
    entries = fft_length if isinstance(fft_length, list | tuple) else ints(fft_length, "fft_length")
    lengths = tuple([None if n is None else static_int(n, "an entry of fft_length") for n in entries])
    if len(lengths) != rank or any(n is not None and n < 0 for n in lengths):
        raise InvalidArgumentError(
            f"{name}'s fft_length has one size, not negative, for each of {rank} axes, not {fft_length}."
        )
    return lengths


@documented(FFT, **ONE)
def fft(input: TensorLike, name: str | None = None) -> Tensor:
    """The discrete Fourier transform along the last axis: ``sum(input[n] * exp(-2j * pi * k * n / N))``.

    >>> import dualflow as df
    >>> df.signal.fft([1 + 0j, 0, 0, 0]).numpy()
    array([1.+0.j, 1.+0.j, 1.+0.j, 1.+0.j])
    """
    return _of_last("fft", input, 1, None)


@documented(FFT, **ONE)
def ifft(input: TensorLike, name: str | None = None) -> Tensor:
    """The inverse of :func:`fft`.

    >>> import dualflow as df
    >>> df.signal.ifft([4 + 0j, 0, 0, 0]).numpy()
    array([1.+0.j, 1.+0.j, 1.+0.j, 1.+0.j])
    """
    return _of_last("ifft", input, 1, None)


@documented(FFT, **TWO)
def fft2d(input: TensorLike, name: str | None = None) -> Tensor:
    """The discrete Fourier transform over the last two axes.

    >>> import dualflow as df
    >>> df.signal.fft2d([[1 + 0j, 2], [3, 4]]).numpy()
    array([[10.+0.j, -2.+0.j],
           [-4.+0.j,  0.+0.j]])
    """
    return _of_last("fft", input, 2, None)


@documented(FFT, **TWO)
def ifft2d(input: TensorLike, name: str | None = None) -> Tensor:
    """The inverse of :func:`fft2d`.

    >>> import dualflow as df
    >>> df.signal.ifft2d([[10 + 0j, -2], [-4, 0]]).numpy()
    array([[1.+0.j, 2.+0.j],
           [3.+0.j, 4.+0.j]])
    """
    return _of_last("ifft", input, 2, None)


@documented(FFT, **THREE)
def fft3d(input: TensorLike, name: str | None = None) -> Tensor:
    """The discrete Fourier transform over the last three axes.

    >>> import dualflow as df
    >>> df.signal.fft3d([[[1 + 0j, 3]]]).numpy()
    array([[[ 4.+0.j, -2.+0.j]]])
    """
    return _of_last("fft", input, 3, None)


@documented(FFT, **THREE)
def ifft3d(input: TensorLike, name: str | None = None) -> Tensor:
    """The inverse of :func:`fft3d`.

    >>> import dualflow as df
    >>> df.signal.ifft3d([[[4 + 0j, -2]]]).numpy()
    array([[[1.+0.j, 3.+0.j]]])
    """
    return _of_last("ifft", input, 3, None)


@documented(RFFT, **REAL, **ONE)
def rfft(input_tensor: TensorLike, fft_length: IntsLike | None = None, name: str | None = None) -> Tensor:
    """The discrete Fourier transform of real signals along the last axis, without the redundant half.

    >>> import dualflow as df
    >>> df.signal.rfft([1.0, 2.0, 3.0, 4.0]).numpy()
    array([10.+0.j, -2.+2.j, -2.+0.j], dtype=complex64)
    """
    return _of_last("rfft", input_tensor, 1, fft_length)


@documented(RFFT, **COMPLEX, **ONE)
def irfft(input_tensor: TensorLike, fft_length: IntsLike | None = None, name: str | None = None) -> Tensor:
    """The inverse of :func:`rfft`.

    >>> import dualflow as df
    >>> df.signal.irfft(df.signal.rfft([1.0, 2.0, 3.0, 4.0])).numpy()
    array([1., 2., 3., 4.], dtype=float32)
    """
    return _of_last("irfft", input_tensor, 1, fft_length)


@documented(RFFT, **REAL, **TWO)
def rfft2d(input_tensor: TensorLike, fft_length: IntsLike | None = None, name: str | None = None) -> Tensor:
    """The discrete Fourier transform of real signals over the last two axes, without the redundant half.

    >>> import dualflow as df
    >>> df.signal.rfft2d([[1.0, 2.0], [3.0, 4.0]]).numpy().real.tolist()
    [[10.0, -2.0], [-4.0, 0.0]]
    """
    return _of_last("rfft", input_tensor, 2, fft_length)


@documented(RFFT, **COMPLEX, **TWO)
def irfft2d(input_tensor: TensorLike, fft_length: IntsLike | None = None, name: str | None = None) -> Tensor:
    """The inverse of :func:`rfft2d`.

    >>> import dualflow as df
    >>> df.signal.irfft2d(df.signal.rfft2d([[1.0, 2.0], [3.0, 4.0]])).numpy().tolist()
    [[1.0, 2.0], [3.0, 4.0]]
    """
    return _of_last("irfft", input_tensor, 2, fft_length)


@documented(RFFT, **REAL, **THREE)
def rfft3d(input_tensor: TensorLike, fft_length: IntsLike | None = None, name: str | None = None) -> Tensor:
    """The discrete Fourier transform of real signals over the last three axes, without the redundant half.

    >>> import dualflow as df
    >>> df.signal.rfft3d([[[1.0, 3.0]]]).numpy().real.tolist()
    [[[4.0, -2.0]]]
    """
    return _of_last("rfft", input_tensor, 3, fft_length)


@documented(RFFT, **COMPLEX, **THREE)
def irfft3d(input_tensor: TensorLike, fft_length: IntsLike | None = None, name: str | None = None) -> Tensor:
    """The inverse of :func:`rfft3d`.

    >>> import dualflow as df
    >>> df.signal.irfft3d(df.signal.rfft3d([[[1.0, 3.0]]])).numpy().tolist()
    [[[1.0, 3.0]]]
    """
    return _of_last("irfft", input_tensor, 3, fft_length)


_NORMS: Final = {None: 0.0, "backward": 0.0, "ortho": 0.5, "forward": 1.0}
"""The exponents of the number of elements by which a transform is divided, for each ``norm``."""


def _transform_axes(kind: str, x: Any, fft_length: Any, axes: Any, norm: str | None) -> Tensor:
    x = convert_to_tensor(x)
    requested = range(len(x.shape)) if axes is None else ints(axes, "axes")
    over = tuple(normalize_axis(a, len(x.shape)) for a in requested)
    return transform(kind, x, over, _lengths(fft_length, len(over), f"{kind}nd"), norm)


def transform(kind: str, x: Any, axes: Axes, lengths: Lengths, norm: str | None) -> Tensor:
    """The transform ``kind`` over axes counted from 0, scaled by NumPy's ``norm``; ``x`` itself over no axes.

    Args:
        kind: "fft", "ifft", "rfft" or "irfft".
        x: a tensor of a dtype that the transform takes.
        axes: the axes.
        lengths: a length for each axis; None for its own.
        norm: as :func:`fftnd` takes it.

    Raises:
        InvalidArgumentError: another ``norm``.
    """
    if norm not in _NORMS:
        raise InvalidArgumentError(f"norm is 'backward', 'ortho' or 'forward', not {norm!r}.")
    if not axes:
        return x
    transformed = _transform(kind, x, axes, lengths)
    if not _NORMS[norm]:
        return transformed
    count = math.prod(require_static_sizes(_full(kind, x.shape, axes, lengths), "norm"))
    scale: Any = operand(count, float64) ** _NORMS[norm]
    if isinstance(count, SymInt):
        scale = cast(scale, transformed.dtype)
    return transformed * scale if kind.startswith("i") else transformed / scale


@documented(ANY_AXES, **FULL)
def fftnd(
    input_tensor: TensorLike,
    fft_length: IntsLike | None = None,
    axes: AxisLike | None = None,
    norm: str | None = None,
    name: str | None = None,
) -> Tensor:
    """The discrete Fourier transform over any axes.

    >>> import dualflow as df
    >>> df.signal.fftnd([[1 + 0j, 2], [3, 4]]).numpy()
    array([[10.+0.j, -2.+0.j],
           [-4.+0.j,  0.+0.j]])
    """
    return _transform_axes("fft", input_tensor, fft_length, axes, norm)


@documented(ANY_AXES, **FULL)
def ifftnd(
    input_tensor: TensorLike,
    fft_length: IntsLike | None = None,
    axes: AxisLike | None = None,
    norm: str | None = None,
    name: str | None = None,
) -> Tensor:
    """The inverse of :func:`fftnd`.

    >>> import dualflow as df
    >>> df.signal.ifftnd([[10 + 0j, -2], [-4, 0]]).numpy()
    array([[1.+0.j, 2.+0.j],
           [3.+0.j, 4.+0.j]])
    """
    return _transform_axes("ifft", input_tensor, fft_length, axes, norm)


@documented(ANY_AXES, **REAL)
def rfftnd(
    input_tensor: TensorLike,
    fft_length: IntsLike | None = None,
    axes: AxisLike | None = None,
    norm: str | None = None,
    name: str | None = None,
) -> Tensor:
    """The discrete Fourier transform of real signals over any axes, without the redundant half of the last.

    >>> import dualflow as df
    >>> df.signal.rfftnd([[1.0, 2.0], [3.0, 4.0]]).numpy().real.tolist()
    [[10.0, -2.0], [-4.0, 0.0]]
    """
    return _transform_axes("rfft", input_tensor, fft_length, axes, norm)


@documented(ANY_AXES, **COMPLEX)
def irfftnd(
    input_tensor: TensorLike,
    fft_length: IntsLike | None = None,
    axes: AxisLike | None = None,
    norm: str | None = None,
    name: str | None = None,
) -> Tensor:
    """The inverse of :func:`rfftnd`.

    >>> import dualflow as df
    >>> df.signal.irfftnd(df.signal.rfftnd([[1.0, 2.0], [3.0, 4.0]])).numpy().tolist()
    [[1.0, 2.0], [3.0, 4.0]]
    """
    return _transform_axes("irfft", input_tensor, fft_length, axes, norm)


def _shifted(x: Any, axes: Any, forth: bool) -> Tensor:
    x = convert_to_tensor(x)
    over = normalize_axes(None if axes is None else ints(axes, "axes"), len(x.shape))
    sizes = axis_sizes(x, int64)
    return roll(x, [sizes[axis] // 2 if forth else -(sizes[axis] // 2) for axis in over], over)


def fftshift(x: TensorLike, axes: AxisLike | None = None, name: str | None = None) -> Tensor:
    """``x`` with the frequency 0 moved to the middle of each axis.

    Args:
        x: a tensor of any shape and dtype.
        axes: the axes to shift: an integer or a list; None for all.

    Returns:
        A tensor with the shape and dtype of ``x``.

    Raises:
        InvalidArgumentError: an axis is out of range.

    >>> import dualflow as df
    >>> df.signal.fftshift([0, 1, 2, -2, -1]).numpy()
    array([-2, -1,  0,  1,  2], dtype=int32)
    """
    return _shifted(x, axes, forth=True)


def ifftshift(x: TensorLike, axes: AxisLike | None = None, name: str | None = None) -> Tensor:
    """The inverse of :func:`fftshift`.

    Args:
        x: a tensor of any shape and dtype.
        axes: the axes to shift: an integer or a list; None for all.

    Returns:
        A tensor with the shape and dtype of ``x``.

    Raises:
        InvalidArgumentError: an axis is out of range.

    >>> import dualflow as df
    >>> df.signal.ifftshift([-2, -1, 0, 1, 2]).numpy()
    array([ 0,  1,  2, -2, -1], dtype=int32)
    """
    return _shifted(x, axes, forth=False)
