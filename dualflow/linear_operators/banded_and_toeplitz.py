"""Tridiagonal and Toeplitz matrices, which hold a few diagonals or one number for each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dualflow.core.errors import InvalidArgumentError
from dualflow.core.shape import Shape, broadcast
from dualflow.core.tracebacks import entry
from dualflow.function.debugging.assertions import all_checks, assert_equal
from dualflow.linear_operators.checks import assert_real, require_square
from dualflow.linear_operators.circulant import LinearOperatorCirculant, as_complex
from dualflow.linear_operators.linear_operator import LinearOperator
from dualflow.linear_operators.parameters import as_parameter, broadcast_shapes, shape_vector
from dualflow.linear_operators.property_hints import Hints, documented_hints
from dualflow.ops.arrangement import matrix_transpose
from dualflow.ops.broadcasting import broadcast_to, reduce_sum
from dualflow.ops.complex_numbers import conj
from dualflow.ops.conversion import cast
from dualflow.ops.creation import convert_to_tensor, ones, zeros_like
from dualflow.ops.joining import concat, stack
from dualflow.ops.linear_algebra.diagonals import diag_part
from dualflow.ops.linear_algebra.tridiagonal import tridiagonal_matmul, tridiagonal_solve
from dualflow.ops.positions import range as count_up
from dualflow.ops.repetition import reverse, roll
from dualflow.ops.signal.fourier import fft
from dualflow.ops.taking import gather
from dualflow.ops.tensor_sizes import axis_size, axis_sizes, sizes_of

if TYPE_CHECKING:
    from dualflow.core.argument_types import TensorLike
    from dualflow.ops.tensor import Tensor


@documented_hints
@entry
class LinearOperatorTridiag(LinearOperator):
    """Tridiagonal matrices.

    Args:
        diagonals: the diagonal above the main one, the main one, and the one below: in "compact" format a
            tensor of shape ``(..., 3, n)``, in "sequence" format a list of three of shape ``(..., n)``; the
            last element of the first and the first of the last are not read. In "matrix" format the matrices,
            ``(..., n, n)``.
        diagonals_format: "compact", "sequence" or "matrix".

    Raises:
        InvalidArgumentError: another format, or other shapes; or the hints contradict each other.
        DTypeError: ``diagonals`` holds integers.

    >>> import dualflow as df
    >>> a = df.linalg.LinearOperatorTridiag([[1.0, 1.0, 0.0], [2.0, 2.0, 2.0], [0.0, 1.0, 1.0]])
    >>> a.matvec([1.0, 1.0, 1.0]).numpy().tolist(), a.solvevec([3.0, 4.0, 3.0]).numpy().round(4).tolist()
    ([3.0, 4.0, 3.0], [1.0, 1.0, 1.0])
    """

    @entry
    def __init__(
        self,
        diagonals: TensorLike,
        diagonals_format: str = "compact",
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool | None = None,
        name: str = "LinearOperatorTridiag",
    ) -> None:
        stated = Hints(is_non_singular, is_self_adjoint, is_positive_definite, is_square)
        parameters = {"diagonals": diagonals, "diagonals_format": diagonals_format, "name": name}
        parameters |= stated._asdict()
        if diagonals_format not in ("compact", "sequence", "matrix"):
            raise InvalidArgumentError(
                f'diagonals_format is "compact", "sequence" or "matrix", not {diagonals_format!r}.'
            )
        self._diagonals_format = diagonals_format
        self._diagonals = _as_diagonals(diagonals, diagonals_format)
        first = self._diagonals[0] if diagonals_format == "sequence" else self._diagonals
        super().__init__(first.dtype, **stated._asdict(), name=name, parameters=parameters)

    @property
    def diagonals(self) -> Any:
        """The diagonals in their format: a tensor, or a list of three."""
        return self._diagonals

    @property
    def diagonals_format(self) -> str:
        """The format of the diagonals."""
        return self._diagonals_format

    @property
    def _composite_tensor_fields(self) -> tuple[str, ...]:
        return "diagonals", "diagonals_format"

    @property
    def _experimental_parameter_ndims_to_matrix_ndims(self) -> dict[str, Any]:
        return {"diagonals": [1, 1, 1] if self._diagonals_format == "sequence" else 2}

    def _three(self) -> list[Any]:
        """The diagonals above, on and below the main one, each of n elements."""
        if self._diagonals_format == "sequence":
            return [convert_to_tensor(x) for x in self._diagonals]
        x = convert_to_tensor(self._diagonals)
        if self._diagonals_format == "compact":
            return [x[..., i, :] for i in range(3)]
        columns = zeros_like(x[..., :1])
        above = diag_part(concat([x, columns], -1)[..., 1:])
        below = diag_part(concat([columns, x], -1)[..., :-1])
        return [above, diag_part(x), below]

    def _compact(self) -> Any:
        three = self._three()
        if all(x.shape == three[0].shape and x.shape.is_fully_defined() for x in three):
            return stack(three, -2)
        shape = broadcast_shapes([sizes_of(x) for x in three])
        return stack([broadcast_to(x, shape) for x in three], -2)

    def _shape(self) -> Shape:
        if self._diagonals_format == "matrix":
            return Shape(self._diagonals.shape)
        parts = self._diagonals if self._diagonals_format == "sequence" else None
        compact = None if parts else self._diagonals.shape
        shape = broadcast([x.shape for x in parts]) if parts else Shape((*compact[:-2], compact[-1]))  # type: ignore[index]
        return Shape((*shape, shape[-1]))

    def _shape_tensor(self) -> Any:
        if self._diagonals_format == "matrix":
            return sizes_of(convert_to_tensor(self._diagonals))
        sizes = broadcast_shapes([sizes_of(x) for x in self._three()])
        return shape_vector(sizes, sizes[-1])

    def _adjoint_diagonals(self) -> Any:
        above, main, below = [conj(x) for x in self._three()]
        parts = [roll(below, -1, -1), main, roll(above, 1, -1)]
        shape = broadcast_shapes([sizes_of(x) for x in parts])
        return stack([broadcast_to(x, shape) for x in parts], -2)

    def _matmul(self, x: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        x = matrix_transpose(x, conjugate=True) if adjoint_arg else x
        return tridiagonal_matmul(self._adjoint_diagonals() if adjoint else self._compact(), x)

    def _solve(self, rhs: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        rhs = matrix_transpose(rhs, conjugate=True) if adjoint_arg else rhs
        diagonals = self._adjoint_diagonals() if adjoint else self._compact()
        if len(diagonals.shape) > len(rhs.shape):  # rhs of one axis less would be vectors
            rhs = rhs[(*[None] * (len(diagonals.shape) - len(rhs.shape)), ...)]
        return tridiagonal_solve(diagonals, rhs)

    def _diag_part(self) -> Any:
        return self._compact()[..., 1, :]

    def _assert_self_adjoint(self) -> Any:
        above, main, below = self._three()
        main_message = "The diagonal contained imaginary parts, thus was not self-adjoint."
        message = "The diagonals beside the main one were not conjugate to each other."
        return all_checks(
            [
                assert_real(main, main_message),
                assert_equal(conj(below[..., 1:]), above[..., :-1], message=message),
            ]
        )


def _as_diagonals(diagonals: Any, diagonals_format: str) -> Any:
    if diagonals_format == "matrix":
        matrix = as_parameter(diagonals, "diagonals", 2)
        require_square(matrix, "diagonals")
        return matrix
    if diagonals_format == "compact":
        compact = as_parameter(diagonals, "diagonals", 2)
        if compact.shape[-2] not in (3, None):
            raise InvalidArgumentError(
                f'diagonals in the format "compact" have shape (..., 3, n), not {compact.shape}.'
            )
        return compact
    parts = list(diagonals)
    if len(parts) != 3:
        raise InvalidArgumentError(f"A sequence of diagonals has three, not {len(parts)}.")
    return [as_parameter(x, "a diagonal", 1) for x in parts]


@documented_hints
@entry
class LinearOperatorToeplitz(LinearOperator):
    """Toeplitz matrices: each diagonal holds one number.

    Products are those of a circulant matrix of twice the size, by Fourier transforms; solutions are those of
    the dense matrix.

    Args:
        col: the first columns, of shape ``(..., n)``.
        row: the first rows, of shape ``(..., n)``, whose first elements are those of ``col``.

    Raises:
        InvalidArgumentError: the sizes differ; or a hint contradicts the structure.
        DTypeError: ``col`` or ``row`` holds integers.

    >>> import dualflow as df
    >>> a = df.linalg.LinearOperatorToeplitz([1.0, 2.0], [1.0, 3.0])
    >>> a.to_dense().numpy().tolist(), a.matvec([1.0, 1.0]).numpy().round(4).tolist()
    ([[1.0, 3.0], [2.0, 1.0]], [4.0, 3.0])
    """

    @entry
    def __init__(
        self,
        col: TensorLike,
        row: TensorLike,
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool | None = None,
        name: str = "LinearOperatorToeplitz",
    ) -> None:
        stated = Hints(is_non_singular, is_self_adjoint, is_positive_definite, is_square)
        self._col, self._row = as_parameter(col, "col", 1), as_parameter(row, "row", 1)
        sizes = self._col.shape[-1], self._row.shape[-1]
        if None not in sizes and sizes[0] != sizes[1]:
            raise InvalidArgumentError(
                f"A square matrix has columns and rows of one size, not of {sizes[0]} and {sizes[1]}."
            )
        hints = stated.implying("is_square", True, "A Toeplitz operator is always square.")
        parameters = {"col": col, "row": row, **stated._asdict(), "name": name}
        super().__init__(self._row.dtype, **hints._asdict(), name=name, parameters=parameters)

    @property
    def col(self) -> Tensor:
        """The first columns."""
        column: Tensor = self._col
        return column

    @property
    def row(self) -> Tensor:
        """The first rows."""
        row: Tensor = self._row
        return row

    @property
    def _composite_tensor_fields(self) -> tuple[str, ...]:
        return "col", "row"

    @property
    def _experimental_parameter_ndims_to_matrix_ndims(self) -> dict[str, Any]:
        return {"col": 1, "row": 1}

    def _tensors(self) -> tuple[Any, Any]:
        """The columns and rows, of one batch."""
        column, row = convert_to_tensor(self._col), convert_to_tensor(self._row)
        if column.shape[:-1] == row.shape[:-1] and column.shape[:-1].is_fully_defined():
            return column, row
        shape = broadcast_shapes([sizes_of(column), sizes_of(row)])
        return broadcast_to(column, shape), broadcast_to(row, shape)

    def _shape(self) -> Shape:
        shape = broadcast([self._col.shape, self._row.shape])
        return Shape((*shape, shape[-1]))

    def _shape_tensor(self) -> Any:
        sizes = broadcast_shapes([sizes_of(convert_to_tensor(x)) for x in (self._col, self._row)])
        return shape_vector(sizes, sizes[-1])

    def _matmul(self, x: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        x = matrix_transpose(x, conjugate=True) if adjoint_arg else x
        column, row = self._tensors()
        around = concat([column, zeros_like(column[..., :1]), reverse(row[..., 1:], [-1])], -1)
        circulant = LinearOperatorCirculant(fft(as_complex(around)), self.dtype)
        product = circulant.matmul(concat([x, zeros_like(x)], -2), adjoint=adjoint)
        return product[..., : axis_size(column, -1), :]

    def _to_dense(self) -> Any:
        column, row = self._tensors()
        size = axis_size(column, -1)
        # From the lowest diagonal to the highest:
        elements = concat([reverse(column, [-1]), row[..., 1:]], -1)
        steps = count_up(size)
        return gather(elements, steps + (size - 1 - steps)[:, None], axis=-1)

    def _diag_part(self) -> Any:
        column, _ = self._tensors()
        return column[..., :1] * ones(axis_sizes(column)[-1:], self.dtype)

    def _trace(self) -> Any:
        column, _ = self._tensors()
        return cast(axis_size(column, -1), self.dtype) * reduce_sum(column[..., :1], -1)  # 0 of no rows

    def _assert_self_adjoint(self) -> Any:
        message = "The first rows and the conjugate first columns differ, thus it was not self-adjoint."
        return assert_equal(self._row, conj(self._col), message=message)
