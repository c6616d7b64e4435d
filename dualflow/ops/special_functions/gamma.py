"""The gamma function's logarithm and derivatives, the incomplete functions, beta and zeta."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from dualflow.core import dispatch
from dualflow.ops import maths_reference
from dualflow.ops.arithmetic import add_n
from dualflow.ops.batching_rules import LEADING
from dualflow.ops.broadcasting import reduce_sum
from dualflow.ops.creation import convert_to_tensor
from dualflow.ops.elementwise import UnaryFunction, as_real_float, elementwise
from dualflow.ops.exponential import exp
from dualflow.ops.op_kinds import Opaque
from dualflow.ops.powers import log
from dualflow.ops.record import Op, Promotion, register
from dualflow.ops.samples import Sample, numbers
from dualflow.ops.special_functions import gamma_elements
from dualflow.ops.special_functions.incomplete_gamma import derivative_by_order
from dualflow.ops.special_functions.scipy_kernels import (
    SpecialFunction,
    apply,
    between,
    by_scipy,
    computed,
    of_floats,
)
from dualflow.ops.special_functions.vanishing import xlog1py, xlogy

if TYPE_CHECKING:
    from dualflow.core.argument_types import TensorLike
    from dualflow.ops.tensor import Tensor


def _polygamma(special: Any, a: Any, x: Any) -> Any:
    """The polygamma function, computed in float64, since its factorials overflow float32."""
    order, at = a.astype(np.float64), x.astype(np.float64)
    sign = np.where(order % 2 == 0, -1, 1)
    values = sign * special.gamma(order + 1) * special.zeta(order + 1, at)
    is_valid = (order == np.floor(order)) & (order >= 0)
    return np.where(is_valid, np.where(order == 0, special.psi(at), values), np.nan)


def _density(a: Any, x: Any) -> Any:
    """``x**(a - 1) exp(-x) / gamma(a)``, the lower incomplete function's derivative."""
    return exp(xlogy(a - 1, x) - x - lgamma(a))


_POSITIVE = between(0.5, 5)


def _lgamma(x: Any) -> Any:
    """SciPy's ``gammaln``, with more precise values near its roots and for subnormal numbers."""
    values = computed(lambda special, x: special.gammaln(x), x)
    size = np.abs(x)
    few = (np.abs(size - 1.75) < 1.25) | (size < np.finfo(x.dtype).tiny) | (x == -np.inf)
    if not few.any():
        return values
    values = np.asarray(values)
    values[few] = gamma_elements.lgamma(maths_reference, x[few])
    return values


lgamma: UnaryFunction = elementwise(
    "lgamma",
    """``log(abs(gamma(x)))``; inf at 0, -1, -2, ...""",
    example=("df.math.lgamma([1.0, 2.0])", "[0.0, 0.0]"),
    dtype=as_real_float,
    eager=_lgamma,
    code=lambda m, x: gamma_elements.lgamma(m, x),
    vjp=lambda g, out, x: g * digamma(x),
    samples=numbers(0.5, 5),
    cost=120,
)

digamma: UnaryFunction = elementwise(
    "digamma",
    """The derivative of ``lgamma``; nan at -1, -2, ..., and infinite at 0.""",
    example=("df.math.digamma([0.0])", "[-inf]"),
    dtype=as_real_float,
    eager=lambda x: computed(lambda special, x: special.psi(x), x),
    code=lambda m, x: gamma_elements.digamma(m, x),
    vjp=lambda g, out, x: g * polygamma(1.0, x),
    samples=numbers(0.5, 5),
    cost=100,
)
OF_ORDER = by_scipy(
    "function_of_order",
    """Functions of an order, which has no gradient, and a number.""",
    {
        "polygamma": SpecialFunction(
            _polygamma, lambda out, a, x: polygamma(a + 1, x), (between(1, 1), _POSITIVE)
        ),
        "zeta": SpecialFunction(
            lambda special, x, q: special.zeta(x, q),
            lambda out, x, q: -x * zeta(x + 1, q),
            (between(1.5, 5), _POSITIVE),
        ),
    },
)


def _density_by_order(a: Any, x: Any, times: int) -> Any:
    """:func:`_density` differentiated by ``a``, by the rule for exponentials."""
    slopes = [log(x) - digamma(a), *[-polygamma(float(k), a) for k in range(1, times)]]
    derivatives = [_density(a, x)]
    for k in range(1, times + 1):
        terms = [math.comb(k - 1, j) * derivatives[j] * slopes[k - 1 - j] for j in range(k)]
        derivatives.append(add_n(terms))
    return derivatives[times]


BY_ORDER = register(
    Op(
        name="igamma_by_order",
        doc="""The lower regularized incomplete gamma function, differentiated by its order.""",
        infer=lambda a, x, times: of_floats("igamma", a, x),
        kernel=lambda a, x, times: computed(partial(derivative_by_order, degree=times), a, x),
        kind=Opaque("SciPy computes parts of it"),
        batching_rule=LEADING,
        vjp=(
            lambda g, out, a, x, times: g * differentiated_by_order(a, x, times + 1),
            lambda g, out, a, x, times: g * _density_by_order(a, x, times),
        ),
        promotion=Promotion.FLOAT,
        samples=(Sample((_POSITIVE, _POSITIVE), {"times": 1}),),
    )
)


def differentiated_by_order(a: Any, x: Any, times: int = 1) -> Any:
    """The lower regularized incomplete gamma function, differentiated ``times`` times by its order."""
    return dispatch.current().apply(BY_ORDER, (a, x), {"times": times})


INCOMPLETE_GAMMA = by_scipy(
    "incomplete_gamma",
    """The regularized incomplete gamma functions.""",
    {
        "igamma": SpecialFunction(
            lambda special, a, x: special.gammainc(a, x),
            lambda out, a, x: _density(a, x),
            (_POSITIVE, _POSITIVE),
            (lambda out, a, x: differentiated_by_order(a, x),),
        ),
        "igammac": SpecialFunction(
            lambda special, a, x: special.gammaincc(a, x),
            lambda out, a, x: -_density(a, x),
            (_POSITIVE, _POSITIVE),
            (lambda out, a, x: -differentiated_by_order(a, x),),
        ),
    },
)
INCOMPLETE_BETA = by_scipy(
    "incomplete_beta",
    """The regularized incomplete beta function.""",
    {
        "betainc": SpecialFunction(
            lambda special, a, b, x: special.betainc(a, b, x),
            lambda out, a, b, x: exp(
                xlogy(a - 1, x) + xlog1py(b - 1, -x) - (lgamma(a) + lgamma(b) - lgamma(a + b))
            ),
            (_POSITIVE, _POSITIVE, between(0.1, 0.9)),
        )
    },
)


def polygamma(a: TensorLike, x: TensorLike, name: str | None = None) -> Tensor:
    """The derivative of :func:`digamma` of order ``a``, an integer of 0 or more; nan for other orders.

    Args:
        a: the orders; no gradient flows to them.
        x: real numbers; the shapes broadcast. Integers become float32.

    Returns:
        A tensor of the broadcast shape with the common float dtype.

    Raises:
        DTypeError: an input holds complex numbers or strings.
        InvalidArgumentError: the shapes do not broadcast.

    >>> import dualflow as df
    >>> df.math.polygamma([0.0, 1.0], [1.0, 1.0]).numpy().round(4)
    array([-0.5772,  1.6449], dtype=float32)
    """
    return apply(OF_ORDER, "polygamma", a, x)


def zeta(x: TensorLike, q: TensorLike, name: str | None = None) -> Tensor:
    """Hurwitz's zeta function: the sum of ``(q + k) ** -x`` over all ``k`` from 0 on, for ``x`` above 1.

    No gradient flows to ``x``.

    Args:
        x: real numbers above 1; no gradient flows to them.
        q: real numbers; the shapes broadcast. Integers become float32.

    Returns:
        A tensor of the broadcast shape with the common float dtype.

    Raises:
        DTypeError: an input holds complex numbers or strings.
        InvalidArgumentError: the shapes do not broadcast.

    >>> import dualflow as df
    >>> df.math.zeta([2.0], [1.0]).numpy().round(4)
    array([1.6449], dtype=float32)
    """
    return apply(OF_ORDER, "zeta", x, q)


def igamma(a: TensorLike, x: TensorLike, name: str | None = None) -> Tensor:
    """The lower regularized incomplete gamma function.

    It is the integral of ``t**(a - 1) exp(-t) / gamma(a)`` from 0 to ``x``. Gradients flow to both inputs.

    Args:
        a: real numbers above 0.
        x: real numbers of 0 or more; the shapes broadcast. Integers become float32.

    Returns:
        A tensor of the broadcast shape with the common float dtype; nan outside of the domain.

    Raises:
        DTypeError: an input holds complex numbers or strings.
        InvalidArgumentError: the shapes do not broadcast.

    >>> import dualflow as df
    >>> df.math.igamma([1.0, 0.5], [1.0, 2.0]).numpy().round(4)
    array([0.6321, 0.9545], dtype=float32)
    """
    return apply(INCOMPLETE_GAMMA, "igamma", a, x)


def igammac(a: TensorLike, x: TensorLike, name: str | None = None) -> Tensor:
    """The upper regularized incomplete gamma function: ``1 - igamma(a, x)`` without cancellation.

    Gradients flow to both inputs.

    Args:
        a: real numbers above 0.
        x: real numbers of 0 or more; the shapes broadcast. Integers become float32.

    Returns:
        A tensor of the broadcast shape with the common float dtype; nan outside of the domain.

    Raises:
        DTypeError: an input holds complex numbers or strings.
        InvalidArgumentError: the shapes do not broadcast.

    >>> import dualflow as df
    >>> df.math.igammac([1.0, 0.5], [1.0, 2.0]).numpy().round(4)
    array([0.3679, 0.0455], dtype=float32)
    """
    return apply(INCOMPLETE_GAMMA, "igammac", a, x)


def betainc(a: TensorLike, b: TensorLike, x: TensorLike, name: str | None = None) -> Tensor:
    """The regularized incomplete beta function.

    It is the integral of ``t**(a - 1) (1 - t)**(b - 1) / beta(a, b)`` from 0 to ``x``.

    Args:
        a: real numbers above 0; no gradient flows to them.
        b: likewise.
        x: real numbers from 0 to 1; the shapes broadcast. Integers become float32.

    Returns:
        A tensor of the broadcast shape with the common float dtype.

    Raises:
        DTypeError: an input holds complex numbers or strings.
        InvalidArgumentError: the shapes do not broadcast.

    >>> import dualflow as df
    >>> df.math.betainc([1.0], [2.0], [0.5]).numpy().round(4)
    array([0.75], dtype=float32)
    """
    return apply(INCOMPLETE_BETA, "betainc", a, b, x)


def lbeta(x: TensorLike, name: str | None = None) -> Tensor:
    """``log(abs(beta(x)))`` over the last axis: the sum of ``lgamma(x)``, less ``lgamma`` of the sum.

    Args:
        x: real numbers of one axis or more; a last axis without elements gives ``-inf``. Integers become
            float32.

    Returns:
        A tensor with the shape of ``x`` without its last axis, and its dtype.

    Raises:
        InvalidArgumentError: ``x`` has no axis.
        DTypeError: an input holds complex numbers.

    >>> import dualflow as df
    >>> df.math.lbeta([[1.0, 2.0], [3.0, 4.0]]).numpy().round(4)
    array([-0.6931, -4.0943], dtype=float32)
    """
    values = convert_to_tensor(x)
    return reduce_sum(lgamma(values), -1) - lgamma(reduce_sum(values, -1))
