"""Sums of products by Einstein's convention."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dualflow.core.errors import DTypeError
from dualflow.core.tracebacks import make_entries
from dualflow.numpy.docstrings import complete_docstrings
from dualflow.numpy.operands import promote_together, reject_unsupported, tensor, to
from dualflow.ops import products
from dualflow.ops.static import static_int
from dualflow.ops.tensor import Tensor


def einsum(
    *operands: Any, out: None = None, optimize: bool | str | Sequence[object] = False, **kwargs: Any
) -> Tensor:
    """Sums of products by Einstein's convention.

    Letters name axes. Axes whose letter the result lacks are summed.

    Args:
        *operands: the subscripts and the tensors, or each tensor with a list of integers that name its axes.
        optimize: ignored: of several products those are computed first that need the fewest multiplications.
        **kwargs: ``dtype``, the dtype to compute in; the common dtype by default.

    Returns:
        A tensor with the axes of the result's letters, in ``dtype``.

    Raises:
        InvalidArgumentError: the subscripts don't fit the tensors, or one letter has two sizes.
        DTypeError: there are no operands, or one can't become a tensor.

    >>> import dualflow as df
    >>> df.numpy.einsum("ij,j->i", [[1, 2], [3, 4]], [1, 1]).numpy()
    array([3, 7])
    """
    reject_unsupported("einsum", out=out)
    subscripts, tensors = _spelt(operands)
    factors = promote_together(*[tensor(x) for x in tensors], dtype=kwargs.get("dtype"))
    if "->" not in subscripts:
        letters = [c for c in subscripts if c.isalpha()]
        unrepeated = "".join(sorted(c for c in set(letters) if letters.count(c) == 1))
        subscripts += "->" + ("..." if "..." in subscripts else "") + unrepeated
    if factors[0].dtype.is_bool:
        return to(products.einsum(subscripts, *[to(x, np.int64) for x in factors]), bool)
    return products.einsum(subscripts, *factors)


_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


def _spelt(arguments: tuple[Any, ...]) -> tuple[str, list[Any]]:
    """The subscripts as text, and the tensors."""
    if not arguments:
        raise DTypeError("einsum takes subscripts and tensors.")
    if isinstance(arguments[0], str):
        return arguments[0].replace(" ", ""), list(arguments[1:])

    def text(axes: Any) -> str:
        return "".join("..." if i is Ellipsis else _LETTERS[i] for i in axes)

    pairs = list(zip(arguments[::2], arguments[1::2], strict=False))
    subscripts = ",".join(text(axes) for _, axes in pairs)
    return subscripts + ("->" + text(arguments[-1]) if len(arguments) % 2 else ""), [x for x, _ in pairs]


def _known_sizes(x: Any) -> tuple[int, ...]:
    """The sizes of ``x``, which must be static."""
    return tuple(static_int(size, "a size") for size in tensor(x).shape)


def einsum_path(
    *operands: Any, optimize: bool | str | Sequence[object] = "greedy", einsum_call: bool = False
) -> Any:
    """The order of products that NumPy chooses, and its description.

    :func:`einsum` of tensors chooses the order with the fewest multiplications, whatever this one is.

    Args:
        *operands: as for :func:`einsum`.
        optimize: NumPy's strategy: "greedy", "optimal", True or False.
        einsum_call: ignored.

    Returns:
        A pair of a list and a string, as ``numpy.einsum_path`` returns them.

    Raises:
        DTypeError: there are no operands, or a size is known at run time only.

    >>> import dualflow as df
    >>> df.numpy.einsum_path("ij,jk", [[1, 2]], [[3], [4]])[0]
    ['einsum_path', (0, 1)]
    """
    subscripts, tensors = _spelt(operands)
    shapes = [np.broadcast_to(np.zeros(()), _known_sizes(x)) for x in tensors]
    return np.einsum_path(subscripts, *shapes, optimize=optimize)


complete_docstrings(globals())
make_entries(globals())
