"""Scatters that keep the largest or smallest value at a position, or the product."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dualflow.core import dispatch
from dualflow.core.dtypes import int32
from dualflow.core.errors import DTypeError
from dualflow.core.spec import TensorSpec
from dualflow.ops.arithmetic import maximum
from dualflow.ops.batching_rules import BatchingRule
from dualflow.ops.comparison import equal
from dualflow.ops.conversion import cast
from dualflow.ops.op_kinds import Scatter
from dualflow.ops.record import Op, register
from dualflow.ops.samples import Sample, integers, numbers
from dualflow.ops.scattering import adapted, gather_nd, tensor_scatter_nd_add, update_infer, updated
from dualflow.ops.selection import masked, where

if TYPE_CHECKING:
    from dualflow.core.argument_types import TensorLike
    from dualflow.ops.tensor import Tensor

_UFUNCS = {"multiply": np.multiply, "maximum": np.maximum, "minimum": np.minimum}
_KINDS = {"multiply": "iufc", "maximum": "iuf", "minimum": "iuf"}


def _infer(tensor: TensorSpec, indices: TensorSpec, updates: TensorSpec, join: str) -> TensorSpec:
    if tensor.dtype.kind not in _KINDS[join]:
        expected = "numbers" if "c" in _KINDS[join] else "real numbers"
        raise DTypeError(f"takes {expected}, not {tensor.dtype.name}; convert them with df.cast.")
    return update_infer(tensor, indices, updates)


def _kernel(tensor: Any, indices: Any, updates: Any, join: str) -> Any:
    if tensor.dtype.kind not in _KINDS[join]:
        raise TypeError("takes numbers")
    return updated(tensor, indices, updates, _UFUNCS[join])


def _joint_vjp(
    needed: Sequence[bool], g: Any, out: Any, tensor: Any, indices: Any, updates: Any, join: str
) -> tuple[Any, None, Any]:
    shares = _factors if join == "multiply" else _ties
    return shares(needed, g, out, tensor, indices, updates)


def _ties(
    needed: Sequence[bool], g: Any, out: Any, tensor: Any, indices: Any, updates: Any
) -> tuple[Any, None, Any]:
    """The cotangents of a scattered extreme, divided equally among the elements that attain it."""
    kept, won = equal(tensor, out), equal(updates, gather_nd(out, indices))
    count = tensor_scatter_nd_add(cast(kept, g.dtype), indices, cast(won, g.dtype))
    share = g / maximum(count, 1)
    return (
        masked(kept, share) if needed[0] else None,
        None,
        masked(won, gather_nd(share, indices)) if needed[2] else None,
    )


def _factors(
    needed: Sequence[bool], g: Any, out: Any, tensor: Any, indices: Any, updates: Any
) -> tuple[Any, None, Any]:
    """The cotangents of a scattered product: for each factor the product of the others, also of zeros."""
    is_zero_start, nothing = equal(tensor, 0), equal(updates, 0)
    zeros = tensor_scatter_nd_add(cast(is_zero_start, int32), indices, cast(nothing, int32))
    product = join_at(where(is_zero_start, 1, tensor), indices, where(nothing, 1, updates), "multiply")

    def slope(factor: Any, is_zero: Any, zeros: Any, product: Any) -> Any:
        others = product / where(is_zero, 1, factor)
        return masked(equal(zeros, cast(is_zero, int32)), others)

    return (
        g * slope(tensor, is_zero_start, zeros, product) if needed[0] else None,
        None,
        gather_nd(g, indices)
        * slope(updates, nothing, gather_nd(zeros, indices), gather_nd(product, indices))
        if needed[2]
        else None,
    )


JOIN_ND = register(
    Op(
        name="tensor_scatter_nd_join",
        doc="""``tensor`` with ``updates`` combined with its elements by the ufunc that ``join`` names.""",
        infer=_infer,
        kernel=_kernel,
        kind=Scatter(onto=True, join=None),
        batching_rule=BatchingRule(positions=1),
        joint_vjp=_joint_vjp,
        samples=(
            Sample(
                (
                    numbers(-50, 50, shape=(3, 2)),
                    integers(0, 3, shape=(4, 1)),
                    numbers(-50, 50, shape=(4, 2)),
                ),
                {"join": "maximum"},
            ),
            Sample(
                (numbers(-50, 50, shape=(3, 4)), integers(0, 3, shape=(5, 2)), numbers(-50, 50, shape=(5,))),
                {"join": "minimum"},
            ),
            Sample(
                (numbers(1, 3, shape=(3, 2)), integers(0, 3, shape=(4, 1)), numbers(1, 3, shape=(4, 2))),
                {"join": "multiply"},
            ),
        ),
    )
)


def join_at(tensor: Any, indices: Any, updates: Any, join: str) -> Any:
    """``tensor`` with ``updates`` combined with its rows by "multiply", "maximum" or "minimum"."""
    return dispatch.current().apply(JOIN_ND, (tensor, indices, adapted(updates, tensor)), {"join": join})


def tensor_scatter_nd_max(
    tensor: TensorLike, indices: TensorLike, updates: TensorLike, name: str | None = None
) -> Tensor:
    """A copy of ``tensor`` with the larger of element and update at the positions in ``indices``.

    Args:
        tensor: real numbers of one axis or more.
        indices: integers of shape ``(..., depth)``: each row is a position on the first ``depth`` axes.
        updates: of shape ``indices.shape[:-1] + tensor.shape[depth:]`` and the dtype of ``tensor``. Of
            several updates at one position the largest is kept; nan if there is one.

    Returns:
        A tensor with the shape and dtype of ``tensor``.

    Raises:
        OutOfRangeError: a position is outside the tensor.
        InvalidArgumentError: ``updates`` has another shape than the positions need.
        DTypeError: the dtypes differ, or have no order.

    >>> import dualflow as df
    >>> df.tensor_scatter_nd_max([1, 2, 3], [[0], [0], [2]], [5, 4, -1]).numpy()
    array([5, 2, 3], dtype=int32)
    """
    return join_at(tensor, indices, updates, "maximum")


def tensor_scatter_nd_min(
    tensor: TensorLike, indices: TensorLike, updates: TensorLike, name: str | None = None
) -> Tensor:
    """A copy of ``tensor`` with the smaller of element and update at the positions in ``indices``.

    Of several updates at one position the smallest is kept; nan if there is one.

    Args:
        tensor: real numbers of one axis or more.
        indices: integers of shape ``(..., depth)``: each row is a position on the first ``depth`` axes.
        updates: of shape ``indices.shape[:-1] + tensor.shape[depth:]`` and the dtype of ``tensor``.

    Returns:
        A tensor with the shape and dtype of ``tensor``.

    Raises:
        OutOfRangeError: a position is outside the tensor.
        InvalidArgumentError: ``updates`` has another shape than the positions need.
        DTypeError: the dtypes differ, or have no order.

    >>> import dualflow as df
    >>> df.tensor_scatter_nd_min([1, 2, 3], [[0], [0], [2]], [5, 4, -1]).numpy()
    array([ 1,  2, -1], dtype=int32)
    """
    return join_at(tensor, indices, updates, "minimum")


def tensor_scatter_nd_sub(
    tensor: TensorLike, indices: TensorLike, updates: TensorLike, name: str | None = None
) -> Tensor:
    """A copy of ``tensor`` with ``updates`` subtracted at the positions in the rows of ``indices``.

    Updates at one position add up.

    Args:
        tensor: numbers of one axis or more.
        indices: integers of shape ``(..., depth)``: each row is a position on the first ``depth`` axes.
        updates: of shape ``indices.shape[:-1] + tensor.shape[depth:]`` and the dtype of ``tensor``.

    Returns:
        A tensor with the shape and dtype of ``tensor``.

    Raises:
        OutOfRangeError: a position is outside the tensor.
        InvalidArgumentError: ``updates`` has another shape than the positions need.
        DTypeError: the dtypes differ.

    >>> import dualflow as df
    >>> df.tensor_scatter_nd_sub([1, 2, 3], [[0], [0]], [5, 4]).numpy()
    array([-8,  2,  3], dtype=int32)
    """
    return tensor_scatter_nd_add(tensor, indices, -adapted(updates, tensor))
