"""Functions by the names of TensorFlow's kernels that libraries call: ``df.raw_ops``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dualflow.core.dtypes import DTypeLike, int32
from dualflow.core.errors import InvalidArgumentError
from dualflow.ops.creation import constant, convert_to_tensor
from dualflow.ops.exponential import exp
from dualflow.ops.linear_algebra.diagonals import diag_part
from dualflow.ops.ordering.distinct import UniqueWithCounts, unique_with_counts
from dualflow.ops.powers import log
from dualflow.ops.special_functions.gamma import differentiated_by_order, lgamma
from dualflow.ops.static import static_value

if TYPE_CHECKING:
    from dualflow.core.argument_types import IntsLike, TensorLike
    from dualflow.ops.tensor import Tensor


def IgammaGradA(*, a: TensorLike, x: TensorLike, name: str | None = None) -> Tensor:
    """The derivative of ``igamma(a, x)`` by ``a``.

    >>> import dualflow as df
    >>> df.raw_ops.IgammaGradA(a=1.0, x=2.0).numpy().round(4)
    np.float32(-0.2208)
    """
    return differentiated_by_order(a, x)


def RandomGammaGrad(*, alpha: TensorLike, sample: TensorLike, name: str | None = None) -> Tensor:
    """The derivative of a number drawn from a gamma distribution by the shape ``alpha`` of the distribution.

    It is that of the implicit function ``igamma(alpha, sample) = u`` with ``u`` fixed: Figurnov et al.,
    "Implicit Reparameterization Gradients" (2018).

    >>> import dualflow as df
    >>> df.raw_ops.RandomGammaGrad(alpha=1.0, sample=2.0).numpy().round(3)
    np.float32(1.632)
    """
    shape, drawn = convert_to_tensor(alpha), convert_to_tensor(sample)
    log_density = (shape - 1) * log(drawn) - drawn - lgamma(shape)
    return -differentiated_by_order(shape, drawn) * exp(-log_density)


def BroadcastGradientArgs(
    *, s0: TensorLike, s1: TensorLike, name: str | None = None
) -> tuple[Tensor, Tensor]:
    """The axes of the broadcast shape along which a gradient is summed, for each of two shapes.

    Raises:
        InvalidArgumentError: a shape is known only at run time, or they do not broadcast.

    >>> import dualflow as df
    >>> [x.numpy().tolist() for x in df.raw_ops.BroadcastGradientArgs(s0=[2, 1], s1=[3])]
    [[1], [0]]
    """
    shapes = []
    for shape in (s0, s1):
        value = static_value(convert_to_tensor(shape, dtype_hint=int32))
        if value is None:
            raise InvalidArgumentError(
                "BroadcastGradientArgs takes shapes that are known while tracing; give the sizes as integers."
            )
        shapes.append([int(size) for size in value])
    rank = max(map(len, shapes))
    first, second = [[1] * (rank - len(shape)) + shape for shape in shapes]
    if any(a != b and 1 not in (a, b) for a, b in zip(first, second, strict=True)):
        raise InvalidArgumentError(f"The shapes {shapes[0]} and {shapes[1]} do not broadcast; reshape one.")
    own, other = (
        [axis for axis in range(rank) if mine[axis] == 1 and (theirs[axis] != 1 or axis < rank - len(shape))]
        for mine, theirs, shape in ((first, second, shapes[0]), (second, first, shapes[1]))
    )
    return constant(own, int32), constant(other, int32)


def MatrixDiagPartV2(
    *, input: TensorLike, k: IntsLike, padding_value: TensorLike, name: str | None = None
) -> Tensor:
    """The diagonals ``k`` of matrices, filled with ``padding_value`` at the right.

    >>> import dualflow as df
    >>> df.raw_ops.MatrixDiagPartV2(input=[[1, 2], [3, 4]], k=0, padding_value=0).numpy().tolist()
    [1, 4]
    """
    return diag_part(input, k=k, padding_value=padding_value, align="LEFT_LEFT")


def UniqueWithCountsV2(
    *, x: TensorLike, axis: TensorLike, out_idx: DTypeLike = int32, name: str | None = None
) -> UniqueWithCounts:
    """The distinct elements of a vector, with the index of each element and their counts.

    Raises:
        InvalidArgumentError: ``x`` has more than one axis.

    >>> import dualflow as df
    >>> df.raw_ops.UniqueWithCountsV2(x=[5, 5, 7], axis=[0]).count.numpy().tolist()
    [2, 1]
    """
    tensor = convert_to_tensor(x)
    if len(tensor.shape) != 1:
        raise InvalidArgumentError(f"UniqueWithCountsV2 takes a vector here, not {tensor.shape}; reshape it.")
    return unique_with_counts(tensor, out_idx)
