"""Operators that hold all elements: full and lower triangular matrices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dualflow.core.shape import Shape
from dualflow.core.tracebacks import entry
from dualflow.linear_operators.checks import assert_no_zeros, require_square
from dualflow.linear_operators.linear_operator import LinearOperator
from dualflow.linear_operators.parameters import as_parameter
from dualflow.linear_operators.property_hints import Hints, documented_hints
from dualflow.ops.arithmetic import abs as absolute
from dualflow.ops.arrangement import matrix_transpose
from dualflow.ops.broadcasting import reduce_sum
from dualflow.ops.contraction import matmul
from dualflow.ops.conversion import cast
from dualflow.ops.creation import convert_to_tensor
from dualflow.ops.linear_algebra.diagonals import band_part, diag_part
from dualflow.ops.linear_algebra.triangular import triangular_solve
from dualflow.ops.powers import log
from dualflow.ops.reduction import reduce_prod
from dualflow.ops.tensor_sizes import sizes_of

if TYPE_CHECKING:
    from dualflow.core.argument_types import TensorLike
    from dualflow.ops.tensor import Tensor


@documented_hints
@entry
class LinearOperatorFullMatrix(LinearOperator):
    """Matrices that store all of their elements.

    Args:
        matrix: floats or complex numbers of shape ``(..., rows, columns)``; the leading axes are the batch.

    Raises:
        InvalidArgumentError: ``matrix`` has fewer than two axes; or the hints contradict each other.
        DTypeError: ``matrix`` holds integers.

    >>> import dualflow as df
    >>> a = df.linalg.LinearOperatorFullMatrix([[2.0, 1.0], [1.0, 2.0]], is_self_adjoint=True)
    >>> a.solvevec([3.0, 3.0]).numpy().tolist(), float(a.trace())
    ([1.0, 1.0], 4.0)
    """

    @entry
    def __init__(
        self,
        matrix: TensorLike,
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool | None = None,
        name: str = "LinearOperatorFullMatrix",
    ) -> None:
        stated = Hints(is_non_singular, is_self_adjoint, is_positive_definite, is_square)
        self._matrix = as_parameter(matrix, "matrix", 2)
        parameters = {"matrix": matrix, **stated._asdict(), "name": name}
        super().__init__(self._matrix.dtype, **stated._asdict(), name=name, parameters=parameters)

    @property
    def matrix(self) -> Tensor:
        """The matrices."""
        matrix: Tensor = self._matrix
        return matrix

    @property
    def _composite_tensor_fields(self) -> tuple[str, ...]:
        return ("matrix",)

    @property
    def _experimental_parameter_ndims_to_matrix_ndims(self) -> dict[str, Any]:
        return {"matrix": 2}

    def _shape(self) -> Shape:
        return Shape(self._matrix.shape)

    def _shape_tensor(self) -> Any:
        return sizes_of(convert_to_tensor(self._matrix))

    def _matmul(self, x: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        return matmul(self._matrix, x, adjoint_a=adjoint, adjoint_b=adjoint_arg)

    def _to_dense(self) -> Any:
        return convert_to_tensor(self._matrix)


@documented_hints
@entry
class LinearOperatorLowerTriangular(LinearOperator):
    """Lower triangular matrices.

    Args:
        tril: floats or complex numbers of shape ``(..., n, n)``, whose elements above the diagonal are not
            read; the leading axes are the batch.

    Raises:
        InvalidArgumentError: ``tril`` holds no square matrices; or a hint contradicts the structure.
        DTypeError: ``tril`` holds integers.

    >>> import dualflow as df
    >>> l = df.linalg.LinearOperatorLowerTriangular([[2.0, 9.0], [1.0, 3.0]])
    >>> l.matvec([1.0, 1.0]).numpy().tolist(), l.solvevec([2.0, 4.0]).numpy().tolist()
    ([2.0, 4.0], [1.0, 1.0])
    """

    @entry
    def __init__(
        self,
        tril: TensorLike,
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool | None = None,
        name: str = "LinearOperatorLowerTriangular",
    ) -> None:
        stated = Hints(is_non_singular, is_self_adjoint, is_positive_definite, is_square)
        hints = stated.implying("is_square", True, "A lower triangular operator is always square.")
        self._tril = as_parameter(tril, "tril", 2)
        require_square(self._tril, "tril")
        parameters = {"tril": tril, **stated._asdict(), "name": name}
        super().__init__(self._tril.dtype, **hints._asdict(), name=name, parameters=parameters)

    @property
    def tril(self) -> Tensor:
        """The argument ``tril``, which includes the elements above the diagonals."""
        matrix: Tensor = self._tril
        return matrix

    @property
    def _composite_tensor_fields(self) -> tuple[str, ...]:
        return ("tril",)

    @property
    def _experimental_parameter_ndims_to_matrix_ndims(self) -> dict[str, Any]:
        return {"tril": 2}

    def _shape(self) -> Shape:
        return Shape(self._tril.shape)

    def _shape_tensor(self) -> Any:
        return sizes_of(convert_to_tensor(self._tril))

    def _matmul(self, x: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        return matmul(self._to_dense(), x, adjoint_a=adjoint, adjoint_b=adjoint_arg)

    def _solve(self, rhs: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        rhs = matrix_transpose(rhs, conjugate=True) if adjoint_arg else rhs
        return triangular_solve(self._tril, rhs, lower=True, adjoint=adjoint)

    def _determinant(self) -> Any:
        return reduce_prod(self._diag_part(), -1)

    def _log_abs_determinant(self) -> Any:
        return cast(reduce_sum(log(absolute(self._diag_part())), -1), self.dtype)

    def _to_dense(self) -> Any:
        return band_part(self._tril, -1, 0)

    def _diag_part(self) -> Any:
        return diag_part(self._tril)

    _eigvals = _get_diag = _diag_part  # subclasses call the second by TensorFlow's name

    def _assert_non_singular(self) -> Any:
        return assert_no_zeros(self._diag_part(), "Singular operator: the diagonal contained zeros.")
