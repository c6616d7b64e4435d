"""Covariances and correlations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dualflow.core.errors import InvalidArgumentError
from dualflow.core.tracebacks import make_entries
from dualflow.numpy import averages, operands, reductions
from dualflow.numpy.docstrings import complete_docstrings
from dualflow.numpy.operands import tensor, to
from dualflow.ops.arithmetic import maximum, minimum
from dualflow.ops.arrangement import reshape, transpose
from dualflow.ops.broadcasting import reduce_sum
from dualflow.ops.complex_numbers import conj
from dualflow.ops.contraction import matmul
from dualflow.ops.joining import concat
from dualflow.ops.powers import sqrt
from dualflow.ops.tensor import Tensor

if TYPE_CHECKING:
    from dualflow.core.argument_types import DTypeLike, TensorLike

# Covariances


def cov(
    m: TensorLike,
    y: TensorLike | None = None,
    rowvar: bool = True,
    bias: bool = False,
    ddof: float | None = None,
    fweights: TensorLike | None = None,
    aweights: TensorLike | None = None,
    *,
    dtype: DTypeLike | None = None,
) -> Tensor:
    """The covariance matrix of variables.

    Args:
        m: observations: a variable in each row, an observation in each column; or a vector, one variable.
        y: more variables, as ``m``; none by default.
        rowvar: whether variables are rows; they are columns otherwise.
        bias: whether to divide by the number of observations n instead of ``n - 1``.
        ddof: divide by ``n - ddof``, whatever ``bias`` is; None by default.
        fweights: how often each observation counts, a vector of integers; once by default.
        aweights: the weight of each observation, a vector; 1 by default.
        dtype: the dtype to compute in; by default the common dtype, float64 at least.

    Returns:
        A matrix of as many rows and columns as variables, or a number for one variable, in the dtype.

    Raises:
        InvalidArgumentError: ``m`` has more than two axes, or ``ddof`` is no integer.

    >>> import dualflow as df
    >>> df.numpy.cov([[1.0, 2.0, 3.0], [6.0, 4.0, 2.0]]).numpy().tolist()
    [[1.0, -2.0], [-2.0, 4.0]]
    """
    if ddof is not None and ddof != int(ddof):
        raise InvalidArgumentError(f"cov's ddof is an integer, not {ddof!r}.")
    x = tensor(m)
    if len(x.shape) > 2:
        raise InvalidArgumentError(f"cov takes one or two axes, not shape {x.shape}.")
    kinds = [x.dtype.dtype, np.dtype("float64"), *([tensor(y).dtype.dtype] if y is not None else [])]
    kind = operands.numpy_dtype(dtype) if dtype is not None else np.result_type(*kinds)

    def variables(v: Any) -> Any:
        v = to(tensor(v), kind)
        v = v if len(v.shape) == 2 else reshape(v, [1, -1])
        return v if rowvar or (v.shape[0] == 1 and len(tensor(m).shape) < 2) else transpose(v)

    rows = variables(x)
    if y is not None:
        rows = concat([rows, variables(y)], 0)
    count = to(tensor(operands.sizes(rows)[1]), np.float64)
    weights = _observation_weights(fweights, aweights)
    if weights is None:
        mean: Any = averages.mean(rows, 1, rows.dtype, keepdims=True)
        total: Any = count
    else:
        w = to(weights, rows.dtype.real)
        total = to(reduce_sum(weights), np.float64)
        mean = reductions.sum(rows * to(w, rows.dtype), 1, keepdims=True) / to(reduce_sum(w), rows.dtype)
    degrees_lost = float(ddof) if ddof is not None else 0.0 if bias else 1.0
    divisor = total - degrees_lost
    if aweights is not None and degrees_lost:
        square = reduce_sum(to(weights, np.float64) * to(tensor(aweights), np.float64))
        divisor = total - degrees_lost * square / total
    centered = rows - mean
    weighted = centered if weights is None else centered * to(weights, rows.dtype)
    covariances = matmul(centered, transpose(conj(weighted) if weighted.dtype.is_complex else weighted))
    covariances = covariances / to(maximum(divisor, 0.0), covariances.dtype)
    return covariances[0, 0] if covariances.shape == (1, 1) else covariances


def _observation_weights(fweights: Any, aweights: Any) -> Any:
    """The weight of each observation; None if all are equal."""
    weights = [to(tensor(w), np.float64) for w in (fweights, aweights) if w is not None]
    if not weights:
        return None
    return weights[0] if len(weights) == 1 else weights[0] * weights[1]


def corrcoef(
    x: TensorLike, y: TensorLike | None = None, rowvar: bool = True, *, dtype: DTypeLike | None = None
) -> Tensor:
    """The correlation matrix: covariances divided by the product of the standard deviations.

    Args:
        x: observations: a variable in each row, an observation in each column; or a vector, one variable.
        y: more variables, as ``x``; none by default.
        rowvar: whether variables are rows; they are columns otherwise.
        dtype: the dtype to compute in; by default the common dtype, float64 at least.

    Returns:
        A matrix of as many rows and columns as variables, or a number for one variable, in the dtype.

    Raises:
        InvalidArgumentError: ``x`` has more than two axes.

    >>> import dualflow as df
    >>> df.numpy.corrcoef([[1.0, 2.0, 3.0], [6.0, 4.0, 2.0]]).numpy().round(6).tolist()
    [[1.0, -1.0], [-1.0, 1.0]]
    """
    correlations = cov(x, y, rowvar, dtype=dtype)
    if not correlations.shape:
        return correlations / correlations
    size = correlations.shape[0]
    deviations = to(sqrt(_real(gather_diagonal(correlations, size))), correlations.dtype)
    correlations = correlations / deviations[:, None] / deviations[None, :]
    return correlations if correlations.dtype.is_complex else minimum(maximum(correlations, -1.0), 1.0)


def _real(x: Any) -> Any:
    return x if not x.dtype.is_complex else to(x, x.dtype.real)


def gather_diagonal(x: Any, size: Any) -> Any:
    """The diagonal of a square matrix."""
    return reshape(x, [-1])[:: size + 1]


complete_docstrings(globals())
make_entries(globals())
