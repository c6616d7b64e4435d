"""NumPy's methods on tensors, for programs that enable them."""

from __future__ import annotations

from typing import Any, Final

from dualflow.core.tracebacks import make_entries
from dualflow.numpy import (
    accumulation,
    averages,
    creation,
    diagonals,
    indexing,
    manipulation,
    number_parts,
    products,
    reductions,
    sorting,
)
from dualflow.numpy.docstrings import complete_docstrings
from dualflow.ops.tensor import Operators

_METHODS: Final = (
    creation.astype,
    creation.copy,
    diagonals.diagonal,
    indexing.take,
    manipulation.ravel,
    manipulation.swapaxes,
    products.dot,
    reductions.all,
    reductions.any,
    reductions.argmax,
    reductions.argmin,
    accumulation.cumprod,
    accumulation.cumsum,
    reductions.max,
    averages.mean,
    reductions.min,
    reductions.prod,
    averages.std,
    reductions.sum,
    averages.var,
    sorting.sort,
    number_parts.clip,
    number_parts.round,
)


def flatten(self: Any, order: str = "C") -> Any:
    """The tensor flattened to one axis."""
    return manipulation.ravel(self, order)


def reshape(self: Any, *shape: Any, order: str = "C") -> Any:
    """The tensor with another shape, which is one argument or several."""
    return manipulation.reshape(self, shape[0] if len(shape) == 1 else shape, order)


def transpose(self: Any, *axes: Any) -> Any:
    """The tensor with its axes permuted, by one argument or several; reversed by default."""
    return manipulation.transpose(self, axes[0] if len(axes) == 1 else axes or None)


def _product(self: Any, other: Any) -> Any:
    return products.matmul(self, other)


def _reflected_product(self: Any, other: Any) -> Any:
    return products.matmul(other, self)


def experimental_enable_numpy_behavior(
    prefer_float32: bool = False, dtype_conversion_mode: str = "legacy"
) -> None:
    """Give tensors and variables NumPy's methods, such as ``x.sum(axis=0)``, and ``@`` with vectors.

    It holds for the whole process and can't be undone. Without it, these methods raise an error that names
    the function to use, as TensorFlow's tensors have none of them. Operators promote dtypes with and without
    it.

    Raises nothing.

    Args:
        prefer_float32: ignored: dtypes are those of NumPy.
        dtype_conversion_mode: ignored: dtypes promote by the one rule of operators.

    Returns:
        None.

    >>> import dualflow as df
    >>> df.numpy.experimental_enable_numpy_behavior()  # doctest: +SKIP
    >>> int(df.constant([1, 2]).sum())  # doctest: +SKIP
    3
    """
    for function in (*_METHODS, flatten, reshape, transpose):
        setattr(Operators, function.__name__, function)
    setattr(Operators, "__matmul__", _product)  # noqa: B010  # as above
    setattr(Operators, "__rmatmul__", _reflected_product)  # noqa: B010


complete_docstrings(globals())
make_entries(globals())
