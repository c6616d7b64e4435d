"""Identities and zeros: operators that hold sizes instead of elements."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from dualflow.core.dtypes import as_dtype, float32
from dualflow.core.errors import InvalidArgumentError
from dualflow.core.shape import Shape, broadcast
from dualflow.core.tracebacks import entry
from dualflow.linear_operators.linear_operator import LinearOperator
from dualflow.linear_operators.parameters import as_batch_shape, as_size, shape_vector
from dualflow.linear_operators.property_hints import Hints, documented_hints
from dualflow.ops.arrangement import expand_dims, matrix_transpose
from dualflow.ops.broadcasting import broadcast_to
from dualflow.ops.conversion import cast
from dualflow.ops.creation import convert_to_tensor, ones, zeros
from dualflow.ops.joining import concat
from dualflow.ops.rearranging.shapes import broadcast_dynamic_shape
from dualflow.ops.selection import where
from dualflow.ops.tensor_sizes import axis_sizes, sizes_of

if TYPE_CHECKING:
    from dualflow.core.argument_types import DTypeLike, IntLike, ShapeLike

_SIZES: Final = ("num_rows", "num_columns", "batch_shape")


class _SizedOperator(LinearOperator):
    """The base of operators that hold their sizes and the shape of a batch, but no elements."""

    _products_check_sizes = False
    _num_rows: Any
    _num_columns: Any
    _batch_shape: Any = None

    @property
    def _composite_tensor_prefer_static_fields(self) -> tuple[str, ...]:
        return tuple(name for name in self._composite_tensor_fields if name in _SIZES)

    def _static_batch(self) -> Shape:
        """The shape of the batch, with None for dynamic sizes."""
        if self._batch_shape is None or isinstance(self._batch_shape, Shape):
            return self._batch_shape or Shape(())
        return Shape([None] * self._batch_shape.shape[0])

    def _shape(self) -> Shape:
        sizes = [n if isinstance(n, int) else None for n in (self._num_rows, self._num_columns)]
        return Shape((*self._static_batch(), *sizes))

    def _shape_tensor(self) -> Any:
        return shape_vector(self._batch_vector(), self._num_rows, self._num_columns)

    def _batch_vector(self) -> Any:
        batch = self._batch_shape
        return convert_to_tensor(batch or Shape(()), "int32") if isinstance(batch, Shape | None) else batch

    def _diagonal_shape(self) -> Any:
        """The shape of the diagonals: a list, or a vector if it is dynamic."""
        rows, columns = self._num_rows, self._num_columns
        if self.shape.is_fully_defined():
            return [*self.batch_shape, min(rows, columns)]
        smaller = rows if rows is columns else where(rows < columns, rows, columns)
        return concat([self.batch_shape_tensor(), expand_dims(cast(smaller, "int32"), 0)], 0)

    def _batch_size_list(self) -> Any:
        batch = self.batch_shape
        return list(batch) if batch.is_fully_defined() else self.batch_shape_tensor()

    def _with_batch_of(self, x: Any) -> Any:
        """``x``, repeated over the batch of this operator."""
        if self._batch_shape is None:
            return x
        static = self.batch_shape
        if static.is_fully_defined() and x.shape[:-2].is_fully_defined():
            batch = broadcast([static, x.shape[:-2]])
            return x if batch == x.shape[:-2] else broadcast_to(x, [*batch, *axis_sizes(x)[-2:]])
        sizes = sizes_of(x)
        shape = broadcast_dynamic_shape(self.batch_shape_tensor(), sizes[:-2])
        return broadcast_to(x, concat([shape, sizes[-2:]], 0))

    @entry
    def __getitem__(self, slices: Any) -> Any:
        batch = sizes_of(zeros(self._batch_size_list())[slices])
        return type(self)(**(self.parameters | {"batch_shape": batch}))


@documented_hints
@entry
class LinearOperatorIdentity(_SizedOperator):
    """The identity matrix.

    Args:
        num_rows: the number of rows: an integer, or an integer scalar.
        batch_shape: the shape of a batch: integers; None for a single matrix.
        dtype: the dtype of the elements; None for float32.
        assert_proper_shapes: ignored; sizes are always checked, dynamic ones when a function runs.

    Raises:
        InvalidArgumentError: a size is negative, or a hint is not True.

    >>> import dualflow as df
    >>> eye = df.linalg.LinearOperatorIdentity(2)
    >>> eye.matvec([3.0, 4.0]).numpy().tolist(), eye.add_to_tensor([[1.0, 2.0], [3.0, 4.0]]).numpy().tolist()
    ([3.0, 4.0], [[2.0, 2.0], [3.0, 5.0]])
    """

    @entry
    def __init__(
        self,
        num_rows: IntLike,
        batch_shape: ShapeLike | None = None,
        dtype: DTypeLike | None = None,
        is_non_singular: bool | None = True,
        is_self_adjoint: bool | None = True,
        is_positive_definite: bool | None = True,
        is_square: bool | None = True,
        assert_proper_shapes: bool = False,
        name: str = "LinearOperatorIdentity",
    ) -> None:
        hints = Hints(is_non_singular, is_self_adjoint, is_positive_definite, is_square)
        for hint in Hints._fields:
            if not getattr(hints, hint):
                raise InvalidArgumentError(f"An identity operator always has {hint}; leave the hint out.")
        parameters = {"num_rows": num_rows, "batch_shape": batch_shape, "dtype": dtype, "name": name}
        self._num_rows = self._num_columns = as_size(num_rows, "num_rows")
        self._batch_shape = as_batch_shape(batch_shape)
        self._assert_proper_shapes = assert_proper_shapes
        parameters |= {"assert_proper_shapes": assert_proper_shapes, **hints._asdict()}
        target = float32 if dtype is None else as_dtype(dtype)
        super().__init__(target, **hints._asdict(), name=name, parameters=parameters)

    @property
    def _composite_tensor_fields(self) -> tuple[str, ...]:
        return "num_rows", "batch_shape", "dtype"

    def _linop_adjoint(self) -> Any:
        return self

    def _linop_inverse(self) -> Any:
        return self

    def _linop_cholesky(self) -> Any:
        return self

    def _assert_nothing(self) -> None:
        """Passes: the properties hold by construction."""

    _assert_non_singular = _assert_positive_definite = _assert_self_adjoint = _assert_nothing

    def _matmul(self, x: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        return self._with_batch_of(matrix_transpose(x, conjugate=True) if adjoint_arg else x)

    def _solve(self, rhs: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        return self._matmul(rhs, adjoint_arg=adjoint_arg)

    def _determinant(self) -> Any:
        return ones(self._batch_size_list(), self.dtype)

    def _log_abs_determinant(self) -> Any:
        return zeros(self._batch_size_list(), self.dtype)

    def _trace(self) -> Any:
        return cast(self._num_rows, self.dtype) * ones(self._batch_size_list(), self.dtype)

    def _diag_part(self) -> Any:
        return ones(self._diagonal_shape(), self.dtype)

    def _eigvals(self) -> Any:
        return self._diag_part()

    def _cond(self) -> Any:
        return self._determinant()


@documented_hints
@entry
class LinearOperatorZeros(_SizedOperator):
    """The matrix of zeros.

    Args:
        num_rows: the number of rows: an integer, or an integer scalar.
        num_columns: the number of columns; None for as many as rows.
        batch_shape: the shape of a batch: integers; None for a single matrix.
        dtype: the dtype of the elements; None for float32.
        assert_proper_shapes: ignored; sizes are always checked, dynamic ones when a function runs.

    Raises:
        InvalidArgumentError: a size is negative; or a hint, such as ``is_square`` for other sizes, is wrong.

    >>> import dualflow as df
    >>> zero = df.linalg.LinearOperatorZeros(2, 3, is_square=False, is_self_adjoint=False)
    >>> zero.shape, zero.matvec([1.0, 2.0, 3.0]).numpy().tolist()
    ((2, 3), [0.0, 0.0])
    """

    @entry
    def __init__(
        self,
        num_rows: IntLike,
        num_columns: IntLike | None = None,
        batch_shape: ShapeLike | None = None,
        dtype: DTypeLike | None = None,
        is_non_singular: bool | None = False,
        is_self_adjoint: bool | None = True,
        is_positive_definite: bool | None = False,
        is_square: bool | None = True,
        assert_proper_shapes: bool = False,
        name: str = "LinearOperatorZeros",
    ) -> None:
        hints = Hints(is_non_singular, is_self_adjoint, is_positive_definite, is_square)
        if is_square and not is_self_adjoint:
            raise InvalidArgumentError("A square matrix of zeros is self-adjoint; leave is_self_adjoint out.")
        for hint in ("is_non_singular", "is_positive_definite"):
            if getattr(hints, hint):
                raise InvalidArgumentError(f"A matrix of zeros never has {hint}; leave the hint out.")
        self._num_rows = as_size(num_rows, "num_rows")
        self._num_columns = self._num_rows if num_columns is None else as_size(num_columns, "num_columns")
        sizes = (self._num_rows, self._num_columns)
        if is_square and all(isinstance(n, int) for n in sizes) and sizes[0] != sizes[1]:
            raise InvalidArgumentError(
                f"A matrix of {sizes[0]} rows and {sizes[1]} columns is not square; set is_square=False and "
                "is_self_adjoint=False."
            )
        self._batch_shape = as_batch_shape(batch_shape)
        self._assert_proper_shapes = assert_proper_shapes
        parameters = {"num_rows": num_rows, "num_columns": num_columns, "batch_shape": batch_shape} | {
            "dtype": dtype,
            "assert_proper_shapes": assert_proper_shapes,
            "name": name,
            **hints._asdict(),
        }
        target = float32 if dtype is None else as_dtype(dtype)
        super().__init__(target, **hints._asdict(), name=name, parameters=parameters)

    @property
    def _composite_tensor_fields(self) -> tuple[str, ...]:
        return "num_rows", "num_columns", "batch_shape", "dtype"

    def _matmul(self, x: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        sizes = axis_sizes(x)
        rows = self._num_columns if adjoint else self._num_rows
        return self._with_batch_of(zeros([*sizes[:-2], rows, sizes[-2 if adjoint_arg else -1]], self.dtype))

    def _linop_adjoint(self) -> Any:
        hints = Hints(
            self._is_non_singular, self._is_self_adjoint, self._is_positive_definite, self._is_square
        )
        return LinearOperatorZeros(
            self._num_columns, self._num_rows, self._batch_shape, self.dtype, **hints._asdict()
        )

    def _to_dense(self) -> Any:
        sizes = [self._num_rows, self._num_columns]
        batch = self._batch_size_list()
        return zeros([*batch, *sizes] if isinstance(batch, list) else shape_vector(batch, *sizes), self.dtype)

    def _determinant(self) -> Any:
        return zeros(self._batch_size_list(), self.dtype)

    _trace = _determinant

    def _diag_part(self) -> Any:
        return zeros(self._diagonal_shape(), self.dtype)

    _eigvals = _diag_part

    def _assert_self_adjoint(self) -> None:
        """Passes for square matrices, by construction."""
        if self.is_square is False:
            raise InvalidArgumentError(
                f"The matrix of zeros of shape {self.shape} was not equal to its adjoint."
            )

    def _assert_non_singular(self) -> None:
        raise InvalidArgumentError("Zero operators are always non-invertible; use another operator.")

    def _assert_positive_definite(self) -> None:
        raise InvalidArgumentError("Zero operators are always non-positive definite; use another operator.")
