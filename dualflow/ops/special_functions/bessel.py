"""Bessel functions of orders 0 and 1, by SciPy, and their derivatives."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dualflow.ops.arithmetic import sign
from dualflow.ops.comparison import equal
from dualflow.ops.docstrings import documented
from dualflow.ops.selection import where
from dualflow.ops.special_functions.scipy_kernels import OF_REALS, SpecialFunction, apply, between, by_scipy

if TYPE_CHECKING:
    from dualflow.core.argument_types import TensorLike
    from dualflow.ops.tensor import Tensor


def _by_itself(value: Any, x: Any) -> Any:
    """``value / x``, or its limit 1/2 at 0, for a ``value`` that is ``x / 2`` near 0."""
    zero = equal(x, 0)
    return where(zero, 0.5, value / where(zero, 1, x))


_ANY, _POSITIVE = (between(-4, 4),), (between(0.5, 5),)


@documented(OF_REALS)
def bessel_i0(x: TensorLike, name: str | None = None) -> Tensor:
    """The modified Bessel function of the first kind, of order 0.

    >>> import dualflow as df
    >>> df.math.bessel_i0([1.0]).numpy().round(4)
    array([1.2661], dtype=float32)
    """
    return apply(BESSEL, "bessel_i0", x)


@documented(OF_REALS)
def bessel_i0e(x: TensorLike, name: str | None = None) -> Tensor:
    """``exp(-abs(x))`` times :func:`bessel_i0`, without overflow.

    >>> import dualflow as df
    >>> df.math.bessel_i0e([1.0]).numpy().round(4)
    array([0.4658], dtype=float32)
    """
    return apply(BESSEL, "bessel_i0e", x)


@documented(OF_REALS)
def bessel_i1(x: TensorLike, name: str | None = None) -> Tensor:
    """The modified Bessel function of the first kind, of order 1.

    >>> import dualflow as df
    >>> df.math.bessel_i1([1.0]).numpy().round(4)
    array([0.5652], dtype=float32)
    """
    return apply(BESSEL, "bessel_i1", x)


@documented(OF_REALS)
def bessel_i1e(x: TensorLike, name: str | None = None) -> Tensor:
    """``exp(-abs(x))`` times :func:`bessel_i1`, without overflow.

    >>> import dualflow as df
    >>> df.math.bessel_i1e([1.0]).numpy().round(4)
    array([0.2079], dtype=float32)
    """
    return apply(BESSEL, "bessel_i1e", x)


@documented(OF_REALS)
def bessel_j0(x: TensorLike, name: str | None = None) -> Tensor:
    """The Bessel function of the first kind, of order 0.

    >>> import dualflow as df
    >>> df.math.special.bessel_j0([1.0]).numpy().round(4)
    array([0.7652], dtype=float32)
    """
    return apply(BESSEL, "bessel_j0", x)


@documented(OF_REALS)
def bessel_j1(x: TensorLike, name: str | None = None) -> Tensor:
    """The Bessel function of the first kind, of order 1.

    >>> import dualflow as df
    >>> df.math.special.bessel_j1([1.0]).numpy().round(4)
    array([0.4401], dtype=float32)
    """
    return apply(BESSEL, "bessel_j1", x)


@documented(OF_REALS)
def bessel_y0(x: TensorLike, name: str | None = None) -> Tensor:
    """The Bessel function of the second kind, of order 0; ``-inf`` at 0, nan below.

    >>> import dualflow as df
    >>> df.math.special.bessel_y0([1.0]).numpy().round(4)
    array([0.0883], dtype=float32)
    """
    return apply(BESSEL, "bessel_y0", x)


@documented(OF_REALS)
def bessel_y1(x: TensorLike, name: str | None = None) -> Tensor:
    """The Bessel function of the second kind, of order 1; ``-inf`` at 0, nan below.

    >>> import dualflow as df
    >>> df.math.special.bessel_y1([1.0]).numpy().round(4)
    array([-0.7812], dtype=float32)
    """
    return apply(BESSEL, "bessel_y1", x)


@documented(OF_REALS)
def bessel_k0(x: TensorLike, name: str | None = None) -> Tensor:
    """The modified Bessel function of the second kind, of order 0; inf at 0, nan below.

    >>> import dualflow as df
    >>> df.math.special.bessel_k0([1.0]).numpy().round(4)
    array([0.421], dtype=float32)
    """
    return apply(BESSEL, "bessel_k0", x)


@documented(OF_REALS)
def bessel_k0e(x: TensorLike, name: str | None = None) -> Tensor:
    """``exp(x)`` times :func:`bessel_k0`, without underflow.

    >>> import dualflow as df
    >>> df.math.special.bessel_k0e([1.0]).numpy().round(4)
    array([1.1445], dtype=float32)
    """
    return apply(BESSEL, "bessel_k0e", x)


@documented(OF_REALS)
def bessel_k1(x: TensorLike, name: str | None = None) -> Tensor:
    """The modified Bessel function of the second kind, of order 1; inf at 0, nan below.

    >>> import dualflow as df
    >>> df.math.special.bessel_k1([1.0]).numpy().round(4)
    array([0.6019], dtype=float32)
    """
    return apply(BESSEL, "bessel_k1", x)


@documented(OF_REALS)
def bessel_k1e(x: TensorLike, name: str | None = None) -> Tensor:
    """``exp(x)`` times :func:`bessel_k1`, without underflow.

    >>> import dualflow as df
    >>> df.math.special.bessel_k1e([1.0]).numpy().round(4)
    array([1.6362], dtype=float32)
    """
    return apply(BESSEL, "bessel_k1e", x)


BESSEL = by_scipy(
    "bessel_function",
    """Bessel functions of order 0 or 1.""",
    {
        "bessel_i0": SpecialFunction(lambda special, x: special.i0(x), lambda out, x: bessel_i1(x), _ANY),
        "bessel_i0e": SpecialFunction(
            lambda special, x: special.i0e(x), lambda out, x: bessel_i1e(x) - sign(x) * out, _ANY
        ),
        "bessel_i1": SpecialFunction(
            lambda special, x: special.i1(x), lambda out, x: bessel_i0(x) - _by_itself(out, x), _ANY
        ),
        "bessel_i1e": SpecialFunction(
            lambda special, x: special.i1e(x),
            lambda out, x: bessel_i0e(x) - sign(x) * out - _by_itself(out, x),
            _ANY,
        ),
        "bessel_j0": SpecialFunction(lambda special, x: special.j0(x), lambda out, x: -bessel_j1(x), _ANY),
        "bessel_j1": SpecialFunction(
            lambda special, x: special.j1(x), lambda out, x: bessel_j0(x) - _by_itself(out, x), _ANY
        ),
        "bessel_y0": SpecialFunction(
            lambda special, x: special.y0(x), lambda out, x: -bessel_y1(x), _POSITIVE
        ),
        "bessel_y1": SpecialFunction(
            lambda special, x: special.y1(x), lambda out, x: bessel_y0(x) - out / x, _POSITIVE
        ),
        "bessel_k0": SpecialFunction(
            lambda special, x: special.k0(x), lambda out, x: -bessel_k1(x), _POSITIVE
        ),
        "bessel_k0e": SpecialFunction(
            lambda special, x: special.k0e(x), lambda out, x: out - bessel_k1e(x), _POSITIVE
        ),
        "bessel_k1": SpecialFunction(
            lambda special, x: special.k1(x), lambda out, x: -bessel_k0(x) - out / x, _POSITIVE
        ),
        "bessel_k1e": SpecialFunction(
            lambda special, x: special.k1e(x), lambda out, x: out * (1 - 1 / x) - bessel_k0e(x), _POSITIVE
        ),
    },
)
