"""The Levenshtein distance of sequences, which are the rows of SparseTensors: ``df.edit_distance``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dualflow.core import dispatch
from dualflow.core.dtypes import float32, int64
from dualflow.core.errors import DTypeError, InvalidArgumentError
from dualflow.core.spec import TensorSpec
from dualflow.core.tracebacks import entry
from dualflow.ops.arithmetic import maximum
from dualflow.ops.creation import zeros
from dualflow.ops.op_kinds import Opaque
from dualflow.ops.record import Op, register
from dualflow.ops.samples import Domain, Sample
from dualflow.ops.sparse.row_major import row_major_positions, sparse

if TYPE_CHECKING:
    from dualflow.ops.sparse.sparse_tensor import SparseTensor
    from dualflow.ops.tensor import Tensor

Array = np.ndarray[Any, Any]


def _infer(
    first_rows: TensorSpec,
    second_rows: TensorSpec,
    first: TensorSpec,
    second: TensorSpec,
    like: TensorSpec,
    normalize: bool,
) -> TensorSpec:
    if first.dtype is not second.dtype:
        raise DTypeError(
            f"the sequences have the dtypes {first.dtype.name} and {second.dtype.name}; cast one of them."
        )
    return TensorSpec.of(like.shape, float32)


def _kernel(
    first_rows: Array, second_rows: Array, first: Array, second: Array, like: Array, normalize: bool
) -> Array:
    """The distance of each two rows of equal number; ``like`` has the shape of the result."""
    if first.dtype != second.dtype:
        raise TypeError("the sequences have different dtypes")
    # a nan equals no element, not even another nan
    codes = np.unique(np.concatenate([first, second]), return_inverse=True, equal_nan=False)[1].reshape(-1)
    a, a_lengths = _padded(first_rows, codes[: len(first)], like.size)
    b, b_lengths = _padded(second_rows, codes[len(first) :], like.size)
    distances = _distances(a, a_lengths, b, b_lengths).astype(np.float32)
    if normalize:
        with np.errstate(divide="ignore", invalid="ignore"):
            distances = np.where(distances == 0, np.float32(0), distances / b_lengths.astype(np.float32))
    return distances.astype(np.float32).reshape(like.shape)


def _padded(rows: Array, codes: Array, count: int) -> tuple[Array, Array]:
    """The elements of each row from its begin, padded with -1, and the length of each row."""
    order = np.argsort(rows, kind="stable")
    rows = rows[order].astype(np.int64)
    if len(rows) and not 0 <= rows[0] <= rows[-1] < count:
        raise InvalidArgumentError(
            "edit_distance: an index is outside of the dense_shape; give sequences whose indices are inside."
        )
    lengths = np.bincount(rows, minlength=count)
    padded = np.full((count, int(lengths.max(initial=0))), -1, np.int64)
    padded[rows, np.arange(len(rows)) - np.searchsorted(rows, rows)] = codes[order]
    return padded, lengths


def _distances(a: Array, a_lengths: Array, b: Array, b_lengths: Array) -> Array:
    """The distances, by dynamic programming: a row has those of a prefix of ``a`` to those of ``b``."""
    columns, every = np.arange(b.shape[1] + 1), np.arange(len(a))
    row = np.broadcast_to(columns, (len(a), len(columns)))
    distances = row[every, b_lengths]
    for i in range(a.shape[1]):
        substituted = row[:, :-1] + (a[:, i, None] != b)
        shorter = np.concatenate([row[:, :1] + 1, np.minimum(row[:, 1:] + 1, substituted)], axis=1)
        row = np.minimum.accumulate(shorter - columns, axis=1) + columns
        distances = np.where(a_lengths > i, row[every, b_lengths], distances)
    return distances


EDIT_DISTANCE: Final = register(
    Op(
        name="edit_distance",
        doc="""The edit distance of the rows of equal number of two flat lists of sequences.""",
        infer=_infer,
        kernel=_kernel,
        kind=Opaque("each step depends on the elements before it"),
        strings=True,
        samples=tuple(
            Sample(
                (
                    Domain(0, 2, "i", (5,), values=np.array([0, 0, 1, 1, 1])),
                    Domain(0, 2, "i", (4,), values=np.array([0, 0, 0, 1])),
                    Domain(-1, 1, "i", (5,)),
                    Domain(-1, 1, "i", (4,)),
                    Domain(0, 1, "i", (2,)),
                ),
                {"normalize": normalize},
            )
            for normalize in (False, True)
        ),
    )
)


@entry
def edit_distance(
    hypothesis: SparseTensor, truth: SparseTensor, normalize: bool = True, name: str = "edit_distance"
) -> Tensor:
    """The number of insertions, deletions and substitutions that make each hypothesis the truth.

    Args:
        hypothesis: sequences along the last axis, of any dtype.
        truth: as many axes, of the same dtype.
        normalize: whether the numbers are divided by the lengths of the truths: inf for a truth of length 0,
            unless the hypothesis is empty, too.
        name: ignored; as in TensorFlow.

    Returns:
        A float32 tensor without the last axis. Along each other axis it has the larger of the two sizes; a
        sequence that one of the tensors lacks is empty.

    Raises:
        DTypeError: an argument is no SparseTensor, or the dtypes differ.
        InvalidArgumentError: the numbers of axes differ, or are less than 2; or a sequence has an index
            outside of the result's shape.

    >>> import dualflow as df
    >>> words = df.sparse.from_dense([[1, 2, 3], [4, 5, 0]])
    >>> df.edit_distance(words, df.sparse.from_dense([[1, 3, 0], [4, 5, 6]]), normalize=False).numpy()
    array([1., 1.], dtype=float32)
    """
    first, second = sparse(hypothesis), sparse(truth)
    rank = len(first.shape)
    if rank != len(second.shape) or rank < 2:
        raise InvalidArgumentError(
            "edit_distance takes two SparseTensors of the same number of axes, 2 at least, not of the "
            f"shapes {first.shape} and {second.shape}; reshape one with df.sparse.reshape."
        )
    sizes = [_larger(first, second, axis) for axis in range(rank - 1)]
    inputs = (
        row_major_positions(first.indices[:, :-1], sizes),
        row_major_positions(second.indices[:, :-1], sizes),
        first.values,
        second.values,
        zeros(sizes, int64),
    )
    return dispatch.current().apply(EDIT_DISTANCE, inputs, {"normalize": bool(normalize)})


def _larger(first: SparseTensor, second: SparseTensor, axis: int) -> Any:
    a, b = first.shape[axis], second.shape[axis]
    if isinstance(a, int) and isinstance(b, int):
        return max(a, b)
    return maximum(first.dense_shape[axis], second.dense_shape[axis])
