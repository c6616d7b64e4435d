"""Functions of two SparseTensors, or of one and a tensor: sums, maxima, products."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dualflow.core.dtypes import as_dtype, float32, int64, promote
from dualflow.core.errors import DTypeError, InvalidArgumentError
from dualflow.core.tracebacks import entry
from dualflow.ops import arithmetic
from dualflow.ops.arrangement import expand_dims, matrix_transpose
from dualflow.ops.broadcasting import reduce_sum
from dualflow.ops.checks import required
from dualflow.ops.comparison import equal
from dualflow.ops.complex_numbers import conj
from dualflow.ops.conversion import cast
from dualflow.ops.creation import convert_to_tensor, zeros_like
from dualflow.ops.joining import concat
from dualflow.ops.scattering import scatter_nd, tensor_scatter_nd_add
from dualflow.ops.sparse.row_major import as_int64, equal_sizes, joined, row_major_positions, sparse
from dualflow.ops.sparse.selection import retain
from dualflow.ops.sparse.sparse_tensor import SparseTensor
from dualflow.ops.static import static_value
from dualflow.ops.taking import gather
from dualflow.ops.tensor_sizes import sizes_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from dualflow.core.argument_types import DTypeLike, TensorLike
    from dualflow.ops.tensor import Tensor


@entry
def add(a: TensorLike, b: TensorLike, threshold: TensorLike = 0) -> Any:
    """``a + b``: a SparseTensor if both are SparseTensors, otherwise a tensor.

    Args:
        a: a SparseTensor, or a tensor of the same shape.
        b: likewise; one of them is a SparseTensor.
        threshold: sums of a smaller absolute value are not stored; 0 to store each.

    Returns:
        A SparseTensor or a tensor of that shape, with the common dtype.

    Raises:
        InvalidArgumentError: the shapes differ.
        DTypeError: both are tensors.

    >>> import dualflow as df
    >>> x = df.SparseTensor([[0, 1]], [1.0], [2, 2])
    >>> df.sparse.to_dense(df.sparse.add(x, df.sparse.eye(2))).numpy().tolist()
    [[1.0, 1.0], [0.0, 1.0]]
    """
    if isinstance(a, SparseTensor) and isinstance(b, SparseTensor):
        total = _combined(a, b, arithmetic.add)
        limit = static_value(threshold)
        if limit is not None and not limit:
            return total
        return retain(total, arithmetic.abs(total.values) >= threshold)
    if not isinstance(a, SparseTensor):
        a, b = b, a
    if not isinstance(a, SparseTensor):
        raise DTypeError("At least one input should be SparseTensor; do you mean to use df.add()?")
    dense = convert_to_tensor(b, dtype_hint=a.dtype)
    if not a.shape.is_compatible_with(dense.shape):
        raise InvalidArgumentError(_other_shapes(a.shape, dense.shape))
    dtype = promote(a.dtype, dense.dtype)
    return tensor_scatter_nd_add(cast(dense, dtype), a.indices, cast(a.values, dtype))


def maximum(sp_a: SparseTensor, sp_b: SparseTensor, name: str | None = None) -> SparseTensor:
    """The larger element of two SparseTensors at each position that one of them stores.

    Args:
        sp_a: a SparseTensor of real numbers.
        sp_b: a SparseTensor of the same shape.

    Returns:
        A SparseTensor with the common dtype.

    Raises:
        InvalidArgumentError: the shapes differ.
        DTypeError: an argument is not a SparseTensor.

    >>> import dualflow as df
    >>> df.sparse.maximum(df.sparse.eye(2), df.SparseTensor([[0, 0]], [-3.0], [2, 2])).values.numpy()
    array([1., 1.], dtype=float32)
    """
    return _combined(sparse(sp_a), sparse(sp_b), arithmetic.maximum)


def minimum(sp_a: SparseTensor, sp_b: SparseTensor, name: str | None = None) -> SparseTensor:
    """The smaller element of two SparseTensors at each position that one of them stores.

    Args:
        sp_a: a SparseTensor of real numbers.
        sp_b: a SparseTensor of the same shape.

    Returns:
        A SparseTensor with the common dtype.

    Raises:
        InvalidArgumentError: the shapes differ.
        DTypeError: an argument is not a SparseTensor.

    >>> import dualflow as df
    >>> df.sparse.minimum(df.sparse.eye(2), df.SparseTensor([[0, 0]], [-3.0], [2, 2])).values.numpy()
    array([-3.,  0.], dtype=float32)
    """
    return _combined(sparse(sp_a), sparse(sp_b), arithmetic.minimum)


def _combined(a: SparseTensor, b: SparseTensor, function: Callable[[Any, Any], Any]) -> SparseTensor:
    """A function of the elements at each position that one of two SparseTensors stores; others are 0."""
    if not a.shape.is_compatible_with(b.shape):
        raise InvalidArgumentError(_other_shapes(a.shape, b.shape))
    message = _other_shapes(a.shape, b.shape)
    sizes = [equal_sizes(pair, message) for pair in zip(a.sizes(), b.sizes(), strict=True)]
    indices = concat([a.indices, b.indices], 0)
    dynamic = [pair for pair in zip(a.sizes(), b.sizes(), strict=True) if not all(map(_is_static, pair))]
    for size, other in dynamic:
        indices = required(indices, equal(as_int64(size), as_int64(other)), message)
    joined_indices = joined(row_major_positions(indices, sizes))
    x = joined_indices.sums(concat([a.values, zeros_like(b.values)], 0))
    y = joined_indices.sums(concat([zeros_like(a.values), b.values], 0))
    return SparseTensor(joined_indices.at_first(indices), function(x, y), sizes)


def _other_shapes(a: Any, b: Any) -> str:
    return (
        f"Tensors of the shapes {a} and {b} can't be combined: sparse functions don't broadcast; reshape one."
    )


def sparse_dense_matmul(
    sp_a: SparseTensor | TensorLike,
    b: TensorLike,
    adjoint_a: bool = False,
    adjoint_b: bool = False,
    name: str | None = None,
) -> Tensor:
    """The product of two matrices of which one is a SparseTensor.

    Args:
        sp_a: a SparseTensor of shape ``(m, k)``, or a tensor.
        b: a tensor of shape ``(k, n)``, or a SparseTensor.
        adjoint_a: whether the first is transposed and conjugated before.
        adjoint_b: whether the second is.

    Returns:
        A tensor of shape ``(m, n)`` with the common dtype.

    Raises:
        InvalidArgumentError: an argument is not a matrix, or the inner sizes differ.
        DTypeError: not one of them is a SparseTensor and the other a tensor.

    >>> import dualflow as df
    >>> x = df.SparseTensor([[0, 1]], [2.0], [2, 2])
    >>> df.sparse.sparse_dense_matmul(x, [[1.0], [3.0]]).numpy().tolist()
    [[6.0], [0.0]]
    """
    left = sp_a if isinstance(sp_a, SparseTensor) else convert_to_tensor(sp_a)
    right = b if isinstance(b, SparseTensor) else convert_to_tensor(b)
    for x in (left, right):
        if len(x.shape) != 2:
            raise InvalidArgumentError(
                f"sparse_dense_matmul takes matrices, not a shape {x.shape}; reshape it, or loop over its "
                "first axis."
            )
    left = _conjugate(_transposed(left)) if adjoint_a else left
    right = _conjugate(_transposed(right)) if adjoint_b else right
    if isinstance(left, SparseTensor) == isinstance(right, SparseTensor):
        raise DTypeError("sparse_dense_matmul takes one SparseTensor and one tensor; see df.sparse.to_dense.")
    if not left.shape[1:].is_compatible_with(right.shape[:1]):
        raise InvalidArgumentError(
            f"The inner sizes of a product of matrices are equal, but the shapes are {left.shape} and "
            f"{right.shape}; transpose one of them."
        )
    left, right = _with_equal_inner_sizes(left, right)
    if isinstance(left, SparseTensor):
        return _product(left, right)
    return _transposed(_product(_transposed(right), _transposed(left)))


def _product(x: SparseTensor, dense: Any) -> Any:
    rows = expand_dims(x.values, 1) * gather(dense, x.indices[:, 1])
    return scatter_nd(x.indices[:, :1], rows, [x.sizes()[0], _sizes(dense)[1]])


def _with_equal_inner_sizes(left: Any, right: Any) -> tuple[Any, Any]:
    """The factors of a product; an error at run time unless dynamic inner sizes are equal."""
    inner, other = _sizes(left)[1], _sizes(right)[0]
    if _is_static(inner) and _is_static(other):
        return left, right
    message = f"The inner sizes of a product of matrices of shapes {left.shape} and {right.shape} are equal."
    holds = equal(as_int64(inner), as_int64(other))
    if isinstance(left, SparseTensor):
        return left.with_values(required(left.values, holds, message)), right
    return left, right.with_values(required(right.values, holds, message))


def _is_static(size: Any) -> bool:
    return isinstance(size, int)


def _sizes(x: Any) -> Sequence[Any]:
    """Each size, an int if it is static, else a scalar tensor."""
    if isinstance(x, SparseTensor):
        return x.sizes()
    return [sizes_of(x, int64)[axis] if size is None else size for axis, size in enumerate(x.shape)]


def _transposed(x: Any) -> Any:
    if not isinstance(x, SparseTensor):
        return matrix_transpose(x)
    return SparseTensor(gather(x.indices, [1, 0], axis=1), x.values, x.sizes()[::-1])


def _conjugate(x: Any) -> Any:
    return x.with_values(conj(x.values)) if isinstance(x, SparseTensor) else conj(x)


@entry
def sampled_addmm(
    indices: TensorLike,
    values: TensorLike,
    dense_shape: TensorLike,
    mat1: TensorLike,
    mat2: TensorLike,
    beta: complex | Tensor = 1.0,
    alpha: complex | Tensor = 1.0,
    output_type: DTypeLike = float32,
) -> tuple[Tensor, Tensor, Tensor]:
    """``beta * values + alpha * (mat1 @ mat2)`` at the positions of a sparse matrix only.

    Args:
        indices: the positions, integers of shape ``(n, 2)``.
        values: the elements of the sparse matrix, of shape ``(n,)``.
        dense_shape: the shape of the sparse matrix.
        mat1: a matrix of shape ``(m, k)``.
        mat2: a matrix of shape ``(k, n)``.
        beta: a number.
        alpha: a number.
        output_type: the dtype to compute in; float32 by default.

    Returns:
        ``indices``, the new values, of shape ``(n,)`` and dtype ``output_type``, and ``dense_shape``.

    Raises:
        OutOfRangeError: a position is outside of the product.

    >>> import dualflow as df
    >>> df.sparse.sampled_addmm([[0, 1]], [1.0], [2, 2], [[1.0], [2.0]], [[3.0, 4.0]])[1].numpy()
    array([5.], dtype=float32)
    """
    dtype = as_dtype(output_type)
    joined_indices = convert_to_tensor(indices)
    left, right, old = (cast(x, dtype) for x in (mat1, mat2, values))
    products = gather(left, joined_indices[:, 0]) * gather(matrix_transpose(right), joined_indices[:, 1])
    return joined_indices, beta * old + alpha * reduce_sum(products, 1), convert_to_tensor(dense_shape)
