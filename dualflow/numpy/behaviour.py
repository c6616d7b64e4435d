"""NumPy's methods on tensors, for programs that enable them."""

from __future__ import annotations

from typing import Any, Final

from dualflow.core.tracebacks import make_entries
from dualflow.numpy import creation, indexing, manipulation, products, reductions, sorting, values
from dualflow.ops.tensor import Operators

_METHODS: Final = (
    creation.astype,
    creation.copy,
    indexing.diagonal,
    indexing.take,
    manipulation.ravel,
    manipulation.swapaxes,
    products.dot,
    reductions.all,
    reductions.any,
    reductions.argmax,
    reductions.argmin,
    reductions.cumprod,
    reductions.cumsum,
    reductions.max,
    reductions.mean,
    reductions.min,
    reductions.prod,
    reductions.std,
    reductions.sum,
    reductions.var,
    sorting.sort,
    values.clip,
    values.round,
)


def flatten(self: Any, order: str = "C") -> Any:
    """The elements in one axis."""
    return manipulation.ravel(self, order)


def reshape(self: Any, *shape: Any, order: str = "C") -> Any:
    """The elements under another shape, given as one argument or as several."""
    return manipulation.reshape(self, shape[0] if len(shape) == 1 else shape, order)


def transpose(self: Any, *axes: Any) -> Any:
    """The axes in another order, given as one argument or as several; by default backwards."""
    return manipulation.transpose(self, axes[0] if len(axes) == 1 else axes or None)


def _product(self: Any, other: Any) -> Any:
    return products.matmul(self, other)


def _reflected_product(self: Any, other: Any) -> Any:
    return products.matmul(other, self)


def experimental_enable_numpy_behavior(
    prefer_float32: bool = False, dtype_conversion_mode: str = "legacy"
) -> None:
    """Give tensors and variables NumPy's methods, ``x.sum(axis=0)`` and others, and ``@`` with vectors.

    It is for the whole process, and for good. Without it they raise an error that names the function to use,
    as TensorFlow's tensors have none of them. Operators promote dtypes with and without it.

    Args:
        prefer_float32: ignored: dtypes are those of NumPy.
        dtype_conversion_mode: ignored: dtypes promote by the one rule of operators.
    """
    for function in (*_METHODS, flatten, reshape, transpose):
        setattr(Operators, function.__name__, function)
    setattr(Operators, "__matmul__", _product)  # noqa: B010  # as above
    setattr(Operators, "__rmatmul__", _reflected_product)  # noqa: B010


make_entries(globals())
