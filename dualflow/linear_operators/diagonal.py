"""Diagonal matrices, and multiples of the identity."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from dualflow.core.shape import Shape
from dualflow.core.tracebacks import entry
from dualflow.function.debugging.assertions import assert_positive
from dualflow.linear_operators.checks import assert_no_zeros, assert_real
from dualflow.linear_operators.linear_operator import LinearOperator
from dualflow.linear_operators.parameters import as_parameter, as_size, shape_vector
from dualflow.linear_operators.property_hints import Hints, documented_hints, hints_of
from dualflow.ops.arithmetic import abs as absolute
from dualflow.ops.arrangement import expand_dims, matrix_transpose
from dualflow.ops.broadcasting import reduce_sum
from dualflow.ops.comparison import equal
from dualflow.ops.complex_numbers import conj, real
from dualflow.ops.conversion import cast
from dualflow.ops.creation import convert_to_tensor, ones
from dualflow.ops.linear_algebra.diagonals import diag as diagonal_matrix
from dualflow.ops.powers import log, sqrt
from dualflow.ops.reduction import reduce_max, reduce_min, reduce_prod
from dualflow.ops.selection import where
from dualflow.ops.tensor_sizes import axis_sizes, sizes_of

if TYPE_CHECKING:
    from dualflow.core.argument_types import IntLike, TensorLike
    from dualflow.ops.tensor import Tensor


@documented_hints
@entry
class LinearOperatorDiag(LinearOperator):
    """Diagonal matrices.

    Args:
        diag: the diagonals, floats or complex numbers of shape ``(..., n)``; the leading axes are the batch.

    Raises:
        InvalidArgumentError: ``diag`` is a scalar; or a hint contradicts the structure.
        DTypeError: ``diag`` holds integers.

    >>> import dualflow as df
    >>> scale = df.linalg.LinearOperatorDiag([1.0, 2.0])
    >>> scale.matvec([3.0, 4.0]).numpy().tolist(), float(scale.determinant())
    ([3.0, 8.0], 2.0)
    >>> (scale @ scale.inverse()).to_dense().numpy().tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """

    @entry
    def __init__(
        self,
        diag: TensorLike,
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool | None = None,
        name: str = "LinearOperatorDiag",
    ) -> None:
        stated = Hints(is_non_singular, is_self_adjoint, is_positive_definite, is_square)
        self._diag = as_parameter(diag, "diag", 1)
        hints = stated.implying("is_square", True, "A diagonal matrix is always square.")
        if not self._diag.dtype.is_complex:
            hints = hints.implying("is_self_adjoint", True, "A real diagonal matrix is always self-adjoint.")
        parameters = {"diag": diag, **stated._asdict(), "name": name}
        super().__init__(self._diag.dtype, **hints._asdict(), name=name, parameters=parameters)

    @property
    def diag(self) -> Tensor:
        """The diagonals, of shape ``(..., n)``."""
        diagonal: Tensor = self._diag
        return diagonal

    @property
    def _composite_tensor_fields(self) -> tuple[str, ...]:
        return ("diag",)

    @property
    def _experimental_parameter_ndims_to_matrix_ndims(self) -> dict[str, Any]:
        return {"diag": 1}

    def _shape(self) -> Shape:
        shape = self._diag.shape
        return Shape((*shape, shape[-1]))

    def _shape_tensor(self) -> Any:
        sizes = sizes_of(convert_to_tensor(self._diag))
        return shape_vector(sizes, sizes[-1])

    def _factor(self, adjoint: bool) -> Any:
        return conj(self._diag) if adjoint else convert_to_tensor(self._diag)

    def _matmul(self, x: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        x = matrix_transpose(x, conjugate=True) if adjoint_arg else x
        return expand_dims(self._factor(adjoint), -1) * x

    def _matvec(self, x: Any, adjoint: bool = False) -> Any:
        return self._factor(adjoint) * x

    def _solve(self, rhs: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        rhs = matrix_transpose(rhs, conjugate=True) if adjoint_arg else rhs
        return rhs / expand_dims(self._factor(adjoint), -1)

    def _determinant(self) -> Any:
        return reduce_prod(self._diag, -1)

    def _log_abs_determinant(self) -> Any:
        return cast(reduce_sum(log(absolute(self._diag)), -1), self.dtype)

    def _to_dense(self) -> Any:
        return diagonal_matrix(self._diag)

    def _diag_part(self) -> Any:
        return convert_to_tensor(self._diag)

    _eigvals = _diag_part

    def _cond(self) -> Any:
        sizes = absolute(self._diag)
        return reduce_max(sizes, -1) / reduce_min(sizes, -1)

    def _assert_non_singular(self) -> Any:
        return assert_no_zeros(self._diag, "Singular operator: the diagonal contained zeros.")

    def _assert_positive_definite(self) -> Any:
        message = "The diagonal had entries with a non-positive real part, thus was not positive definite."
        return assert_positive(real(self._diag), message=message)

    def _assert_self_adjoint(self) -> Any:
        message = "The diagonal contained non-zero imaginary values, thus was not self-adjoint."
        return assert_real(self._diag, message)

    def _linop_adjoint(self) -> Any:
        return LinearOperatorDiag(conj(self._diag), **hints_of(self)._asdict())

    def _linop_inverse(self) -> Any:
        return LinearOperatorDiag(1 / self._diag, **hints_of(self)._asdict())

    def _linop_cholesky(self) -> Any:
        return LinearOperatorDiag(sqrt(self._diag), True, True, True, True)


@documented_hints
@entry
class LinearOperatorScaledIdentity(LinearOperator):
    """Multiples of the identity matrix.

    Args:
        num_rows: the number of rows: an integer, or an integer scalar.
        multiplier: the factors, floats or complex numbers of the shape of the batch.
        assert_proper_shapes: ignored; sizes are always checked, dynamic ones when a function runs.

    Raises:
        InvalidArgumentError: ``num_rows`` is negative; or a hint contradicts the structure.
        DTypeError: ``multiplier`` holds integers.

    >>> import dualflow as df
    >>> triple = df.linalg.LinearOperatorScaledIdentity(2, 3.0)
    >>> triple.matvec([1.0, 2.0]).numpy().tolist(), float(triple.trace())
    ([3.0, 6.0], 6.0)
    """

    _products_check_sizes = False

    @entry
    def __init__(
        self,
        num_rows: IntLike,
        multiplier: TensorLike,
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool | None = True,
        assert_proper_shapes: bool = False,
        name: str = "LinearOperatorScaledIdentity",
    ) -> None:
        stated = Hints(is_non_singular, is_self_adjoint, is_positive_definite, is_square)
        self._multiplier = as_parameter(multiplier, "multiplier", 0)
        hints = stated.implying("is_square", True, "A multiple of the identity is always square.")
        if not self._multiplier.dtype.is_complex:
            hints = hints.implying("is_self_adjoint", True, "A real diagonal matrix is always self-adjoint.")
        self._num_rows = as_size(num_rows, "num_rows")
        self._assert_proper_shapes = assert_proper_shapes
        parameters = {"num_rows": num_rows, "multiplier": multiplier, "name": name, **stated._asdict()}
        parameters["assert_proper_shapes"] = assert_proper_shapes
        super().__init__(self._multiplier.dtype, **hints._asdict(), name=name, parameters=parameters)

    @property
    def multiplier(self) -> Tensor:
        """The factors, of the shape of the batch."""
        factors: Tensor = self._multiplier
        return factors

    @property
    def _composite_tensor_fields(self) -> tuple[str, ...]:
        return "num_rows", "multiplier"

    @property
    def _composite_tensor_prefer_static_fields(self) -> tuple[str, ...]:
        return ("num_rows",)

    @property
    def _experimental_parameter_ndims_to_matrix_ndims(self) -> dict[str, Any]:
        return {"multiplier": 0}

    def _shape(self) -> Shape:
        size = self._num_rows if isinstance(self._num_rows, int) else None
        return Shape((*self._multiplier.shape, size, size))

    def _shape_tensor(self) -> Any:
        return shape_vector(sizes_of(convert_to_tensor(self._multiplier)), self._num_rows, self._num_rows)

    def _factor(self, axes: int, adjoint: bool = False) -> Any:
        """The multipliers with new last axes: two for those of a matrix, one for that of its diagonal."""
        factors = conj(self._multiplier) if adjoint else convert_to_tensor(self._multiplier)
        return factors[(..., *[None] * axes)]

    def _matmul(self, x: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        return (matrix_transpose(x, conjugate=True) if adjoint_arg else x) * self._factor(2, adjoint)

    def _solve(self, rhs: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        return (matrix_transpose(rhs, conjugate=True) if adjoint_arg else rhs) / self._factor(2, adjoint)

    def _determinant(self) -> Any:
        return self._multiplier ** cast(self._num_rows, self.dtype)

    def _log_abs_determinant(self) -> Any:
        logarithm = log(absolute(self._multiplier))
        return cast(self._num_rows, logarithm.dtype) * logarithm

    def _trace(self) -> Any:
        return self._multiplier * cast(self._num_rows, self.dtype)

    def _diag_part(self) -> Any:
        return ones(
            [*axis_sizes(convert_to_tensor(self._multiplier)), self._num_rows], self.dtype
        ) * self._factor(1)

    _eigvals = _diag_part

    def _cond(self) -> Any:
        condition = where(equal(self._multiplier, 0), math.nan, 1.0)
        return cast(condition, self.dtype)

    def _assert_non_singular(self) -> Any:
        return assert_no_zeros(self._multiplier, "Singular operator: the multiplier contained zeros.")

    def _assert_positive_definite(self) -> Any:
        return assert_positive(real(self._multiplier), message="The multiplier was not positive definite.")

    def _assert_self_adjoint(self) -> Any:
        return assert_real(self._multiplier, "The multiplier had imaginary parts, thus was not self-adjoint.")

    def _linop_adjoint(self) -> Any:
        return LinearOperatorScaledIdentity(
            self._num_rows, conj(self._multiplier), **hints_of(self)._asdict()
        )

    def _linop_inverse(self) -> Any:
        return LinearOperatorScaledIdentity(self._num_rows, 1 / self._multiplier, **hints_of(self)._asdict())

    def _linop_cholesky(self) -> Any:
        return LinearOperatorScaledIdentity(self._num_rows, sqrt(self._multiplier), True, True, True, True)
