"""Discrete Fourier transforms by NumPy's names: ``df.numpy.fft``."""

from __future__ import annotations

from typing import Any, Final

from dualflow.core.argument_types import AxisLike, IntLike, ShapeLike, TensorLike
from dualflow.core.dtypes import complex64, complex128, float16, float32, float64
from dualflow.core.errors import InvalidArgumentError
from dualflow.core.namespace import publish as _publish
from dualflow.core.tracebacks import make_entries
from dualflow.numpy.docstrings import complete_docstrings
from dualflow.numpy.frequencies import fftfreq, fftshift, ifftshift, rfftfreq
from dualflow.numpy.operands import axes_in_order, reject_unsupported, tensor, to
from dualflow.ops.complex_numbers import conj
from dualflow.ops.docstrings import documented
from dualflow.ops.signal import fourier
from dualflow.ops.static import static_int
from dualflow.ops.tensor import Tensor

__all__ = [
    "fft",
    "fft2",
    "fftfreq",
    "fftn",
    "fftshift",
    "hfft",
    "ifft",
    "ifft2",
    "ifftn",
    "ifftshift",
    "ihfft",
    "irfft",
    "irfft2",
    "irfftn",
    "rfft",
    "rfft2",
    "rfftfreq",
    "rfftn",
]
_NARROW: Final = (float16, float32, complex64)
_AXIS: Final = """Returns:
    A {kind} tensor with the shape of ``a``, but {size} along ``axis``;
    {dtype}.

Raises:
    InvalidArgumentError: ``n`` is not positive, or ``norm`` is unknown.
"""
_AXES: Final = """Returns:
    A {kind} tensor with the shape of ``a``, but ``s`` along ``axes``{last};
    {dtype}.

Raises:
    InvalidArgumentError: ``s`` has a size that is not positive, or not one for each axis, an axis is out
        of range or occurs twice, or ``norm`` is another word.
"""
_COMPLEX: Final = {"kind": "complex", "dtype": "the dtype is as for :func:`fft`"}
_REAL: Final = {"kind": "real", "dtype": "float32 for complex64, else float64"}
_HALF: Final = ", where the last one has ``s[-1] // 2 + 1``"


def _signal(a: Any, of_reals: bool) -> Any:
    """``a`` in a dtype of transforms: float32 or float64, or complex64 or complex128."""
    x = tensor(a)
    narrow = x.dtype in _NARROW
    if of_reals:
        return to(x, float32 if narrow else float64)
    return to(x, complex64 if narrow else complex128)


def _transform(kind: str, a: Any, lengths: Any, axes: Any, norm: Any, out: Any) -> Tensor:
    """The transform over several axes, scaled by ``norm``.

    Raises:
        InvalidArgumentError: another ``norm``, a length that is not positive, or not as many as axes.
    """
    reject_unsupported(kind, out=out)
    x = _signal(a, kind == "rfft")
    rank = len(x.shape)
    if axes is None:
        axes = range(rank) if lengths is None else range(rank - len(lengths), rank)
    over = axes_in_order(axes, rank, "axes")
    requested = [None] * len(over) if lengths is None else [_length(n) for n in lengths]
    if len(requested) != len(over):
        raise InvalidArgumentError(
            f"s has one size for each axis, not {lengths} for {len(over)} axes: a transform over axes has as "
            "many lengths."
        )
    sizes = [x.shape[i] if n is None else n for i, n in zip(over, requested, strict=True)]
    if kind == "irfft" and over and requested[-1] is None and sizes[-1] is not None:
        sizes[-1] = 2 * (sizes[-1] - 1)
    if any(n is not None and n < 1 for n in sizes):
        raise InvalidArgumentError(f"A transform's lengths are positive, not {sizes}.")
    return fourier.transform(kind, x, over, tuple(requested), norm)


def _length(n: Any) -> int | None:
    return None if n is None else static_int(n, "a length")


def _transform_axis(kind: str, a: Any, n: Any, axis: int, norm: Any, out: Any) -> Tensor:
    return _transform(kind, a, None if n is None else [n], [axis], norm, out)


def fft(
    a: TensorLike, n: IntLike | None = None, axis: int = -1, norm: str | None = None, out: None = None
) -> Tensor:
    """The discrete Fourier transform along ``axis``.

    It is ``sum(a[j] * exp(-2j * pi * j * k / n))`` for each ``k``.

    Returns:
        A complex tensor with the shape of ``a``, but ``n`` along ``axis``; complex64 for float32, float16 and
        complex64, else complex128.

    Raises:
        InvalidArgumentError: a length that is not positive, or another ``norm``.

    >>> import dualflow as df
    >>> df.numpy.fft.fft([1.0, 0.0, -1.0, 0.0]).numpy()
    array([0.+0.j, 2.+0.j, 0.+0.j, 2.+0.j])
    """
    return _transform_axis("fft", a, n, axis, norm, out)


@documented(_AXIS, **_COMPLEX, size="``n``")
def ifft(
    a: TensorLike, n: IntLike | None = None, axis: int = -1, norm: str | None = None, out: None = None
) -> Tensor:
    """The inverse of :func:`fft` along ``axis``.

    >>> import dualflow as df
    >>> df.numpy.fft.ifft([0, 2, 0, 2]).numpy()
    array([ 1.+0.j,  0.+0.j, -1.+0.j,  0.+0.j])
    """
    return _transform_axis("ifft", a, n, axis, norm, out)


@documented(_AXIS, **_COMPLEX, size="``n // 2 + 1``")
def rfft(
    a: TensorLike, n: IntLike | None = None, axis: int = -1, norm: str | None = None, out: None = None
) -> Tensor:
    """The transform of real numbers along ``axis``.

    It is the first half of :func:`fft`; the other half is the conjugate of it.

    Args:
        a: real numbers of one axis or more.

    >>> import dualflow as df
    >>> df.numpy.fft.rfft([1.0, 0.0, -1.0, 0.0]).numpy()
    array([0.+0.j, 2.+0.j, 0.+0.j])
    """
    return _transform_axis("rfft", a, n, axis, norm, out)


@documented(_AXIS, **_REAL, size="``n``")
def irfft(
    a: TensorLike, n: IntLike | None = None, axis: int = -1, norm: str | None = None, out: None = None
) -> Tensor:
    """The inverse of :func:`rfft` along ``axis``.

    Args:
        n: the size of the result along the axis; ``2 * (size - 1)`` by default.

    >>> import dualflow as df
    >>> df.numpy.fft.irfft([0, 2, 0]).numpy()
    array([ 1.,  0., -1.,  0.])
    """
    return _transform_axis("irfft", a, n, axis, norm, out)


@documented(_AXIS, **_REAL, size="``n``")
def hfft(
    a: TensorLike, n: IntLike | None = None, axis: int = -1, norm: str | None = None, out: None = None
) -> Tensor:
    """The real transform of a signal with Hermitian symmetry, of which the first half is given.

    Args:
        n: the size of the result along the axis; ``2 * (size - 1)`` by default.

    >>> import dualflow as df
    >>> df.numpy.fft.hfft([1, 2, 3]).numpy()
    array([ 8., -2.,  0., -2.])
    """
    x = _signal(a, False)
    size = 2 * (static_int(x.shape[axis], "the size of the axis") - 1) if n is None else _length(n)
    return irfft(conj(x), size, axis, _inverse_norm(norm), out)


@documented(_AXIS, **_COMPLEX, size="``n // 2 + 1``")
def ihfft(
    a: TensorLike, n: IntLike | None = None, axis: int = -1, norm: str | None = None, out: None = None
) -> Tensor:
    """The inverse of :func:`hfft`: the first half of a signal with Hermitian symmetry.

    Args:
        a: real numbers of one axis or more.

    >>> import dualflow as df
    >>> df.numpy.fft.ihfft([10.0, -2.0, -2.0, -2.0]).numpy()
    array([1.-0.j, 3.-0.j, 3.-0.j])
    """
    return conj(rfft(a, n, axis, _inverse_norm(norm), out))


def _inverse_norm(norm: Any) -> Any:
    """The ``norm`` that scales the inverse transform as ``norm`` scales the transform."""
    return {None: "forward", "backward": "forward", "forward": "backward"}.get(norm, norm)


def fft2(
    a: TensorLike,
    s: ShapeLike | None = None,
    axes: AxisLike = (-2, -1),
    norm: str | None = None,
    out: None = None,
) -> Tensor:
    """The discrete Fourier transform over two axes; see :func:`fft`.

    Args:
        axes: two axes.

    Returns:
        A complex tensor with the shape of ``a``, but ``s`` along ``axes``; the dtype is as for :func:`fft`.

    Raises:
        InvalidArgumentError: ``s`` has a size that is not positive, or not one for each axis, an axis is out
            of range or occurs twice, or ``norm`` is another word.

    >>> import dualflow as df
    >>> df.numpy.fft.fft2([[1, 2], [3, 4]]).numpy().tolist()
    [[(10+0j), (-2+0j)], [(-4+0j), 0j]]
    """
    return _transform("fft", a, s, axes, norm, out)


@documented(_AXES, **_COMPLEX, last="")
def ifft2(
    a: TensorLike,
    s: ShapeLike | None = None,
    axes: AxisLike = (-2, -1),
    norm: str | None = None,
    out: None = None,
) -> Tensor:
    """The inverse of :func:`fft2`.

    Args:
        axes: two axes.

    >>> import dualflow as df
    >>> df.numpy.fft.ifft2([[10, -2], [-4, 0]]).numpy().tolist()
    [[(1+0j), (2+0j)], [(3+0j), (4+0j)]]
    """
    return _transform("ifft", a, s, axes, norm, out)


@documented(_AXES, **_COMPLEX, last=_HALF)
def rfft2(
    a: TensorLike,
    s: ShapeLike | None = None,
    axes: AxisLike = (-2, -1),
    norm: str | None = None,
    out: None = None,
) -> Tensor:
    """The transform of real numbers over two axes.

    It is :func:`rfft` along the last axis, and :func:`fft` along the other.

    Args:
        a: real numbers of two axes or more.
        axes: two axes.

    >>> import dualflow as df
    >>> df.numpy.fft.rfft2([[1, 2], [3, 4]]).numpy().tolist()
    [[(10+0j), (-2+0j)], [(-4+0j), 0j]]
    """
    return _transform("rfft", a, s, axes, norm, out)


@documented(_AXES, **_REAL, last="")
def irfft2(
    a: TensorLike,
    s: ShapeLike | None = None,
    axes: AxisLike = (-2, -1),
    norm: str | None = None,
    out: None = None,
) -> Tensor:
    """The inverse of :func:`rfft2`.

    Args:
        s: the sizes of the result along ``axes``; by default those of ``a``, the last one ``2 * (size - 1)``.
        axes: two axes.

    >>> import dualflow as df
    >>> df.numpy.fft.irfft2([[10, -2], [-4, 0]]).numpy().tolist()
    [[1.0, 2.0], [3.0, 4.0]]
    """
    return _transform("irfft", a, s, axes, norm, out)


@documented(_AXES, **_COMPLEX, last="")
def fftn(
    a: TensorLike,
    s: ShapeLike | None = None,
    axes: AxisLike | None = None,
    norm: str | None = None,
    out: None = None,
) -> Tensor:
    """The discrete Fourier transform over several axes; see :func:`fft`.

    >>> import dualflow as df
    >>> df.numpy.fft.fftn([[1, 2], [3, 4]]).numpy().tolist()
    [[(10+0j), (-2+0j)], [(-4+0j), 0j]]
    """
    return _transform("fft", a, s, axes, norm, out)


@documented(_AXES, **_COMPLEX, last="")
def ifftn(
    a: TensorLike,
    s: ShapeLike | None = None,
    axes: AxisLike | None = None,
    norm: str | None = None,
    out: None = None,
) -> Tensor:
    """The inverse of :func:`fftn`.

    >>> import dualflow as df
    >>> df.numpy.fft.ifftn([[10, -2], [-4, 0]]).numpy().tolist()
    [[(1+0j), (2+0j)], [(3+0j), (4+0j)]]
    """
    return _transform("ifft", a, s, axes, norm, out)


@documented(_AXES, **_COMPLEX, last=_HALF)
def rfftn(
    a: TensorLike,
    s: ShapeLike | None = None,
    axes: AxisLike | None = None,
    norm: str | None = None,
    out: None = None,
) -> Tensor:
    """The transform of real numbers over several axes.

    It is :func:`rfft` along the last axis, and :func:`fft` along the others.

    Args:
        a: real numbers of one axis or more.

    >>> import dualflow as df
    >>> df.numpy.fft.rfftn([[1, 2], [3, 4]]).numpy().tolist()
    [[(10+0j), (-2+0j)], [(-4+0j), 0j]]
    """
    return _transform("rfft", a, s, axes, norm, out)


@documented(_AXES, **_REAL, last="")
def irfftn(
    a: TensorLike,
    s: ShapeLike | None = None,
    axes: AxisLike | None = None,
    norm: str | None = None,
    out: None = None,
) -> Tensor:
    """The inverse of :func:`rfftn`.

    Args:
        s: the sizes of the result along ``axes``; by default those of ``a``, the last one ``2 * (size - 1)``.

    >>> import dualflow as df
    >>> df.numpy.fft.irfftn([[10, -2], [-4, 0]]).numpy().tolist()
    [[1.0, 2.0], [3.0, 4.0]]
    """
    return _transform("irfft", a, s, axes, norm, out)


complete_docstrings(
    globals(),
    a="numbers of one axis or more.",
    n="the size of the axis, which is cut off or filled up with zeros; that of ``a`` by default.",
    s="the sizes of the axes, which are cut off or filled up with zeros; those of ``a`` by default.",
    axes="the axes; all by default, or the last ones if ``s`` is passed.",
    norm=(
        '"backward", where the inverse divides by the size, the default; "forward", where the '
        'transform does; "ortho", where both divide by its square root.'
    ),
)
make_entries(globals())
_publish(globals())
