"""The matrix product of 8-bit integers, with sums of 32 bits: what quantized layers compute."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dualflow.core import dispatch
from dualflow.core.dtypes import int8, int32, uint8
from dualflow.core.errors import DTypeError, InvalidArgumentError
from dualflow.core.shape import Shape, broadcast
from dualflow.core.spec import TensorSpec
from dualflow.core.tracebacks import hide_frames_of
from dualflow.ops.arrangement import reshape, transpose
from dualflow.ops.batching_rules import BatchingRule
from dualflow.ops.creation import convert_to_tensor
from dualflow.ops.op_kinds import MatMul
from dualflow.ops.record import Op, register
from dualflow.ops.repetition import pad
from dualflow.ops.samples import Domain, Sample
from dualflow.ops.static import require_static_sizes

if TYPE_CHECKING:
    from dualflow.core.argument_types import TensorLike
    from dualflow.ops.tensor import Tensor

GROUP: Final = 4
"""The number of neighbouring weights of a column that are stored together."""


def _infer(x: TensorSpec, w: TensorSpec) -> TensorSpec:
    if x.dtype is not uint8 or w.dtype is not int8:
        raise DTypeError(f"takes uint8 and int8, not {x.dtype.name} and {w.dtype.name}.")
    if len(x.shape) < 2 or len(w.shape) < 3 or w.shape[-1] not in (GROUP, None):
        raise InvalidArgumentError(
            f"takes matrices and grouped weights of shape (inner / {GROUP}, columns, {GROUP}), not shapes "
            f"{x.shape} and {w.shape}; group_weights returns such weights."
        )
    inner, groups = x.shape[-1], w.shape[-3]
    if inner is not None and groups is not None and inner != GROUP * groups:
        raise InvalidArgumentError(
            f"the inner sizes {inner} and {GROUP} * {groups} differ; pad x with zeros."
        )
    batch = broadcast([x.shape[:-2], w.shape[:-3]])
    return TensorSpec.of(Shape([*batch, x.shape[-2], w.shape[-2]]), int32)


def _required_shapes(x: Sequence[int], w: Sequence[int]) -> list[Sequence[int]]:
    return [(*x[:-1], GROUP * w[-3]), (*w[:-1], GROUP)]


def _kernel(x: Any, w: Any) -> Any:
    *batch, groups, columns, _ = w.shape
    weights = w.swapaxes(-1, -2).reshape(*batch, GROUP * groups, columns)
    return np.matmul(x.astype(np.int32), weights.astype(np.int32))


def _sample(rows: int, groups: int, columns: int, batch: tuple[int, ...] = ()) -> Sample:
    x = Domain(0, 256, "u", (*batch, rows, GROUP * groups))
    return Sample((x, Domain(-128, 128, "i", (*batch[1:], groups, columns, GROUP), dtype="int8")), {})


INTEGER_PRODUCT = register(
    Op(
        name="integer_product",
        doc="""The product of a matrix of uint8 with grouped weights of int8; sums of int32, which wrap.""",
        infer=_infer,
        kernel=_kernel,
        kind=MatMul(),
        required_shapes=_required_shapes,
        batching_rule=BatchingRule(per_element=True),  # the ranks of the inputs differ
        samples=(
            _sample(3, 2, 5),
            _sample(1, 1, 1),
            _sample(2, 0, 3),
            _sample(0, 2, 3),
            _sample(3, 2, 5, (2, 1)),
        ),
    )
)


def integer_product(x: TensorLike, w: TensorLike, name: str | None = None) -> Tensor:
    """The matrix product of 8-bit integers, with sums of 32 bits.

    Args:
        x: uint8 of shape ``(..., n, k)``; ``k`` is a multiple of 4.
        w: int8 of shape ``(..., k / 4, m, 4)``, as :func:`group_weights` returns: four weights of a
            column that are neighbours along ``k`` are stored together, as processors read them.

    Returns:
        A tensor of shape ``(..., n, m)`` and dtype int32; leading axes broadcast. Sums wrap
        beyond 32 bits, which takes 65,000 products of the largest integers.

    Raises:
        InvalidArgumentError: the shapes don't match.
        DTypeError: other dtypes.

    >>> import dualflow as df
    >>> x = df.constant([[255, 1, 0, 0]], df.uint8)
    >>> w = df.quantization.group_weights(df.constant([[-128], [3], [0], [0]], df.int8))
    >>> df.quantization.integer_product(x, w).numpy()
    array([[-32637]], dtype=int32)
    """
    try:
        return dispatch.current().binary(INTEGER_PRODUCT, x, w)
    except Exception as error:
        hide_frames_of(integer_product, error)
        raise


def group_weights(w: TensorLike, name: str | None = None) -> Tensor:
    """A matrix in the layout of :func:`integer_product`: groups of four neighbours along the first axis.

    Args:
        w: a matrix of shape ``(k, m)``, usually of int8; static sizes.

    Returns:
        A tensor of shape ``(ceil(k / 4), m, 4)`` and the dtype of ``w``; the last group is filled with zeros.

    Raises:
        InvalidArgumentError: ``w`` is no matrix.

    >>> import dualflow as df
    >>> df.quantization.group_weights([[1, 5], [2, 6], [3, 7]]).numpy()
    array([[[1, 2, 3, 0],
            [5, 6, 7, 0]]], dtype=int32)
    """
    matrix = convert_to_tensor(w)
    if len(matrix.shape) != 2:
        raise InvalidArgumentError(f"group_weights takes a matrix, not shape {matrix.shape}; df.reshape it.")
    rows, columns = require_static_sizes(matrix.shape, "group_weights")
    padded = pad(matrix, [[0, -rows % GROUP], [0, 0]])
    return transpose(reshape(padded, [-(-rows // GROUP), GROUP, columns]), [0, 2, 1])
