"""``LinearOperator``: the base of operators that act as matrices without storing all of their elements."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from dualflow.core.dtypes import finfo
from dualflow.core.errors import DTypeError, InvalidArgumentError
from dualflow.core.status_errors import UnimplementedError
from dualflow.core.tracebacks import entry
from dualflow.function.debugging.assertions import assert_equal, assert_less, assert_positive
from dualflow.linear_operators import function_rules as function_rules  # the import registers them
from dualflow.linear_operators.batch_slices import sliced
from dualflow.linear_operators.derivation_slots import ADJOINT, CHOLESKY, INVERSE, PRODUCT, SOLUTION
from dualflow.linear_operators.linear_operator_base import LinearOperatorBase
from dualflow.ops.arithmetic import abs as absolute
from dualflow.ops.arithmetic import maximum
from dualflow.ops.arrangement import expand_dims, matrix_transpose, squeeze
from dualflow.ops.broadcasting import reduce_sum
from dualflow.ops.conversion import cast
from dualflow.ops.creation import convert_to_tensor
from dualflow.ops.exponential import exp
from dualflow.ops.linear_algebra.cholesky import cholesky, cholesky_solve
from dualflow.ops.linear_algebra.diagonals import diag_part
from dualflow.ops.linear_algebra.eigenvalues import eigvalsh
from dualflow.ops.linear_algebra.inverse import det, slogdet
from dualflow.ops.linear_algebra.singular_values import svd
from dualflow.ops.linear_algebra.solving import solve
from dualflow.ops.positions import eye
from dualflow.ops.powers import log
from dualflow.ops.reduction import reduce_max, reduce_min

if TYPE_CHECKING:
    from dualflow.core.argument_types import TensorLike
    from dualflow.ops.tensor import Tensor


@entry
class LinearOperator(LinearOperatorBase):
    """The base of linear operators: batches of matrices that are stored without all of their elements.

    ``matmul``, ``solve``, ``determinant`` and their like use the structure of the matrices. Operators are
    structures of their tensors: traced functions take and return them, and gradients flow to the tensors.

    A subclass defines ``_shape()``, ``_shape_tensor()`` and ``_matmul(x, adjoint, adjoint_arg)``. What it
    doesn't define is computed from the dense matrix: ``_solve(rhs, adjoint, adjoint_arg)``,
    ``_determinant()``, ``_log_abs_determinant()``, ``_diag_part()``, ``_trace()``, ``_to_dense()``,
    ``_eigvals()``, ``_cond()``, ``_add_to_tensor(x)``, ``_assert_non_singular()`` and its like, and
    ``_linop_adjoint()``, ``_linop_inverse()``, ``_linop_cholesky()``, ``_linop_matmul(left, right)`` and
    ``_linop_solve(left, right)``, which return operators.

    Args:
        dtype: the dtype of the elements.
        graph_parents: deprecated, as in TensorFlow: a list that :attr:`graph_parents` returns.
        is_non_singular: a hint: whether the matrices are invertible; None for unknown.
        is_self_adjoint: a hint: whether they equal their conjugate transposes.
        is_positive_definite: a hint: whether ``x^H A x`` has a positive real part for each vector but 0.
        is_square: a hint: whether they have as many rows as columns.
        name: the name of the operator; None for that of the class.
        parameters: the arguments of the subclass's constructor, which slices of the batch are built with.

    Raises:
        InvalidArgumentError: the hints contradict each other.

    >>> import dualflow as df
    >>> class Doubling(df.linalg.LinearOperator):
    ...     def __init__(self, size):
    ...         super().__init__(df.float32, is_non_singular=True, is_self_adjoint=True)
    ...         self._size = size
    ...     def _shape(self):
    ...         return df.TensorShape([self._size, self._size])
    ...     def _matmul(self, x, adjoint=False, adjoint_arg=False):
    ...         return 2 * (df.linalg.adjoint(x) if adjoint_arg else x)
    >>> double = Doubling(2)
    >>> double.matvec([1.0, 2.0]).numpy().tolist(), double.solvevec([4.0, 8.0]).numpy().tolist()
    ([2.0, 4.0], [2.0, 4.0])
    >>> float(double.determinant())
    4.0
    """

    # Products

    def _matmul(self, x: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        raise UnimplementedError(f"{type(self).__name__} defines no _matmul(); define it in the class.")

    def matmul(
        self,
        x: TensorLike | LinearOperator,
        adjoint: bool = False,
        adjoint_arg: bool = False,
        name: str = "matmul",
    ) -> Any:
        """The product of the matrices with others. Also written ``operator @ x``.

        Args:
            x: a tensor of shape ``(..., columns, n)``, whose leading axes broadcast with the batch; or an
                operator.
            adjoint: whether to multiply by the conjugate transpose.
            adjoint_arg: whether to multiply the conjugate transpose of ``x``.

        Returns:
            A tensor of shape ``(..., rows, n)``; for an operator an operator.

        Raises:
            InvalidArgumentError: the sizes don't fit.
            DTypeError: ``x`` has another dtype.
        """
        if isinstance(x, LinearOperator):
            left, right = self._factors(x, adjoint, adjoint_arg, "x")
            return self._linop_matmul(left, right)
        x = self._argument(x, "x")
        self._check_size(-2 if adjoint else -1, x, -1 if adjoint_arg else -2, "x")
        return self._matmul(x, adjoint=adjoint, adjoint_arg=adjoint_arg)

    def _linop_matmul(self, left_operator: Any, right_operator: Any) -> Any:
        return PRODUCT.value(left_operator, right_operator)

    @entry
    def __matmul__(self, other: Any) -> Any:
        return self.matmul(other)

    def _matvec(self, x: Any, adjoint: bool = False) -> Any:
        return squeeze(self.matmul(expand_dims(x, -1), adjoint=adjoint), -1)

    def matvec(self, x: TensorLike, adjoint: bool = False, name: str = "matvec") -> Tensor:
        """The products of the matrices with vectors.

        Args:
            x: of shape ``(..., columns)``; the leading axes broadcast with the batch.
            adjoint: whether to multiply by the conjugate transpose.

        Returns:
            A tensor of shape ``(..., rows)``.

        Raises:
            InvalidArgumentError: the sizes don't fit.
            DTypeError: ``x`` has another dtype.
        """
        x = self._argument(x, "x")
        self._check_size(-2 if adjoint else -1, x, -1, "x")
        product: Tensor = self._matvec(x, adjoint=adjoint)
        return product

    # Solutions

    def _solve(self, rhs: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        rhs = matrix_transpose(rhs, conjugate=True) if adjoint_arg else rhs
        if self._can_use_cholesky():
            return cholesky_solve(cholesky(self.to_dense()), rhs)
        return solve(self.to_dense(), rhs, adjoint=adjoint)

    def solve(
        self,
        rhs: TensorLike | LinearOperator,
        adjoint: bool = False,
        adjoint_arg: bool = False,
        name: str = "solve",
    ) -> Any:
        """The ``x`` with ``operator @ x = rhs``.

        Args:
            rhs: a tensor of shape ``(..., rows, n)``, whose leading axes broadcast with the batch; or an
                operator.
            adjoint: whether to solve with the conjugate transpose.
            adjoint_arg: whether to solve for the conjugate transpose of ``rhs``.

        Returns:
            A tensor of shape ``(..., rows, n)``; for an operator an operator.

        Raises:
            UnimplementedError: the operator is not square, or not invertible, by its hints.
            InvalidArgumentError: the sizes don't fit, or a matrix is not invertible.
            DTypeError: ``rhs`` has another dtype.
        """
        self._require_solvable()
        if isinstance(rhs, LinearOperator):
            left, right = self._factors(rhs, adjoint, adjoint_arg, "rhs")
            return self._linop_solve(left, right)
        rhs = self._argument(rhs, "rhs")
        self._check_size(-1 if adjoint else -2, rhs, -1 if adjoint_arg else -2, "rhs")
        return self._solve(rhs, adjoint=adjoint, adjoint_arg=adjoint_arg)

    def _linop_solve(self, left_operator: Any, right_operator: Any) -> Any:
        return SOLUTION.value(left_operator, right_operator)

    def _solvevec(self, rhs: Any, adjoint: bool = False) -> Any:
        return squeeze(self.solve(expand_dims(rhs, -1), adjoint=adjoint), -1)

    def solvevec(self, rhs: TensorLike, adjoint: bool = False, name: str = "solve") -> Tensor:
        """The vectors ``x`` with ``operator.matvec(x) = rhs``.

        Args:
            rhs: of shape ``(..., rows)``; the leading axes broadcast with the batch.
            adjoint: whether to solve with the conjugate transpose.

        Returns:
            A tensor of shape ``(..., rows)``.

        Raises:
            UnimplementedError: the operator is not square, or not invertible, by its hints.
            InvalidArgumentError: the sizes don't fit, or a matrix is not invertible.
            DTypeError: ``rhs`` has another dtype.
        """
        rhs = self._argument(rhs, "rhs")
        self._check_size(-1 if adjoint else -2, rhs, -1, "rhs")
        solution: Tensor = self._solvevec(rhs, adjoint=adjoint)
        return solution

    # Other operators

    def adjoint(self, name: str = "adjoint") -> LinearOperator:
        """The operator of the conjugate transposes; also the attribute ``H``."""
        if self.is_self_adjoint:
            return self
        adjoint: LinearOperator = self._linop_adjoint()
        return adjoint

    @property
    def H(self) -> LinearOperator:
        """The operator of the conjugate transposes."""
        return self.adjoint()

    def _linop_adjoint(self) -> Any:
        return ADJOINT.value(self)

    def inverse(self, name: str = "inverse") -> LinearOperator:
        """The operator of the inverses.

        Raises:
            InvalidArgumentError: the operator is not square, or not invertible, by its hints.
        """
        for hint, adjective in ((self.is_square, "square"), (self.is_non_singular, "invertible")):
            if hint is False:
                raise InvalidArgumentError(
                    f"Cannot take the inverse of {self.name}, which is not {adjective} by its hints; use "
                    "df.linalg.pinv of its to_dense()."
                )
        inverse: LinearOperator = self._linop_inverse()
        return inverse

    def _linop_inverse(self) -> Any:
        return INVERSE.value(self)

    def cholesky(self, name: str = "cholesky") -> LinearOperator:
        """The operator of the Cholesky factors, lower triangular.

        Raises:
            InvalidArgumentError: the hints ``is_self_adjoint`` and ``is_positive_definite`` are not both
                True; or a matrix is not positive definite.
        """
        if not self._can_use_cholesky():
            raise InvalidArgumentError(
                f"Cannot take the Cholesky decomposition of {self.name}: it is not self-adjoint and positive "
                "definite by its hints. Create it with is_self_adjoint=True and is_positive_definite=True."
            )
        factor: LinearOperator = self._linop_cholesky()
        return factor

    def _linop_cholesky(self) -> Any:
        return CHOLESKY.value(self)

    # Numbers of the matrices

    def _determinant(self) -> Any:
        return exp(self.log_abs_determinant()) if self._can_use_cholesky() else det(self.to_dense())

    def determinant(self, name: str = "det") -> Tensor:
        """The determinant of each matrix, of the shape of the batch.

        Raises:
            UnimplementedError: the operator is not square.
        """
        self._require_square("A determinant")
        determinant: Tensor = self._determinant()
        return determinant

    def _log_abs_determinant(self) -> Any:
        if self._can_use_cholesky():
            return 2 * reduce_sum(log(diag_part(cholesky(self.to_dense()))), -1)
        return slogdet(self.to_dense()).log_abs_determinant

    def log_abs_determinant(self, name: str = "log_abs_det") -> Tensor:
        """The logarithm of the absolute value of the determinant of each matrix, of the shape of the batch.

        Raises:
            UnimplementedError: the operator is not square.
        """
        self._require_square("A determinant")
        logarithm: Tensor = self._log_abs_determinant()
        return logarithm

    def _to_dense(self) -> Any:
        static = self.batch_shape.is_fully_defined()
        batch: Any = list(self.batch_shape) if static else self.batch_shape_tensor()
        columns = self.domain_dimension
        size = self.domain_dimension_tensor() if columns is None else columns
        return self.matmul(eye(size, batch_shape=batch, dtype=self.dtype))

    def to_dense(self, name: str = "to_dense") -> Tensor:
        """The matrices, as a tensor of the shape of the operator."""
        matrix: Tensor = self._to_dense()
        return matrix

    def _diag_part(self) -> Any:
        return diag_part(self.to_dense())

    def diag_part(self, name: str = "diag_part") -> Tensor:
        """The diagonal of each matrix, of shape ``(*batch, min(rows, columns))``."""
        diagonal: Tensor = self._diag_part()
        return diagonal

    def _trace(self) -> Any:
        return reduce_sum(self.diag_part(), -1)

    def trace(self, name: str = "trace") -> Tensor:
        """The sum of the diagonal of each matrix, of the shape of the batch."""
        trace: Tensor = self._trace()
        return trace

    def _add_to_tensor(self, x: Any) -> Any:
        return self.to_dense() + x

    def add_to_tensor(self, x: TensorLike, name: str = "add_to_tensor") -> Tensor:
        """The sum of the matrices and a tensor.

        Args:
            x: a tensor whose shape broadcasts with that of the operator.

        Raises:
            InvalidArgumentError: the shapes don't broadcast.
            DTypeError: ``x`` has another dtype.
        """
        total: Tensor = self._add_to_tensor(self._argument(x, "x"))
        return total

    def _eigvals(self) -> Any:
        return eigvalsh(self.to_dense())

    def eigvals(self, name: str = "eigvals") -> Tensor:
        """The eigenvalues of each matrix, of shape ``(*batch, rows)``.

        Raises:
            UnimplementedError: the hint ``is_self_adjoint`` is not True.
        """
        if not self.is_self_adjoint:
            raise UnimplementedError(
                f"Only self-adjoint operators have eigvals(), and {self.name} is not by its hints; use "
                "df.linalg.eigvals of its to_dense()."
            )
        values: Tensor = self._eigvals()
        return values

    def _cond(self) -> Any:
        if self.is_self_adjoint:
            values: Any = absolute(self._eigvals())
        else:
            values = svd(self.to_dense(), compute_uv=False)
        return reduce_max(values, -1) / reduce_min(values, -1)

    def cond(self, name: str = "cond") -> Tensor:
        """The condition number of each matrix: the largest by the smallest singular value."""
        number: Tensor = self._cond()
        return number

    # Checks

    def _assert_non_singular(self) -> Any:
        if self._can_use_cholesky():
            return self.assert_positive_definite()
        values = svd(self.to_dense(), compute_uv=False)
        condition = reduce_max(values, -1) / reduce_min(values, -1)
        sizes = [
            cast(n, condition.dtype) for n in (self.range_dimension_tensor(), self.domain_dimension_tensor())
        ]
        largest = 1 / (maximum(100.0, maximum(sizes[0], sizes[1])) * float(finfo(condition.dtype).eps))
        return assert_less(condition, largest, message="Singular matrix up to precision epsilon.")

    def assert_non_singular(self, name: str = "assert_non_singular") -> Any:
        """Raises an error unless the matrices are invertible; in a function, when it runs.

        Returns:
            None; in an explicit graph the operation that checks.

        Raises:
            InvalidArgumentError: the condition number of a matrix is not less than the precision of the dtype
                allows.
        """
        return self._assert_non_singular()

    def _assert_positive_definite(self) -> Any:
        if not self.is_self_adjoint:
            raise UnimplementedError(
                f"assert_positive_definite() needs the hint is_self_adjoint, which {self.name} lacks; "
                "create it with is_self_adjoint=True."
            )
        diagonal = diag_part(cholesky(self.to_dense()))
        return assert_positive(diagonal, message="Matrix was not positive definite.")

    def assert_positive_definite(self, name: str = "assert_positive_definite") -> Any:
        """Raises an error unless the matrices are positive definite; in a function, when it runs.

        Returns:
            None; in an explicit graph the operation that checks.

        Raises:
            InvalidArgumentError: a matrix is not positive definite.
            UnimplementedError: the hint ``is_self_adjoint`` is missing.
        """
        return self._assert_positive_definite()

    def _assert_self_adjoint(self) -> Any:
        matrix = self.to_dense()
        transpose = matrix_transpose(matrix, conjugate=True)
        return assert_equal(matrix, transpose, message="Matrix was not equal to its adjoint.")

    def assert_self_adjoint(self, name: str = "assert_self_adjoint") -> Any:
        """Raises an error unless the matrices equal their conjugate transposes; in a function, when it runs.

        Returns:
            None; in an explicit graph the operation that checks.

        Raises:
            InvalidArgumentError: a matrix differs from its conjugate transpose.
        """
        return self._assert_self_adjoint()

    def _can_use_cholesky(self) -> bool:
        return bool(self.is_self_adjoint and self.is_positive_definite)

    # Batches and arguments

    @entry
    def __getitem__(self, slices: Any) -> Self:
        part: Self = sliced(self, slices)
        return part

    def _argument(self, x: Any, name: str) -> Any:
        tensor = convert_to_tensor(x, dtype_hint=None if hasattr(x, "dtype") else self.dtype)
        if tensor.dtype is not self.dtype:
            raise DTypeError(
                f"{self.name} takes {self.dtype.name}, but {name} has dtype {tensor.dtype.name}; convert it "
                "with df.cast."
            )
        return tensor

    def _factors(self, x: Any, adjoint: bool, adjoint_arg: bool, name: str) -> tuple[Any, Any]:
        """The two operators of a product or a solution."""
        if x.dtype is not self.dtype:
            raise DTypeError(
                f"{self.name} takes {self.dtype.name}, but {name}, {x.name}, has dtype {x.dtype.name}; build "
                "both from tensors of one dtype."
            )
        left = self.adjoint() if adjoint else self
        right = x.adjoint() if adjoint_arg else x
        if None not in (left.domain_dimension, right.range_dimension) and (
            left.domain_dimension != right.range_dimension
        ):
            raise InvalidArgumentError(
                f"Operators are incompatible: {left.name} takes {name} with {left.domain_dimension} rows, "
                f"but {right.name} has {right.range_dimension}."
            )
        return left, right

    def _require_solvable(self) -> None:
        self._require_square("A solution")
        if self.is_non_singular is False:
            raise UnimplementedError(
                f"solve() needs invertible matrices, and {self.name} is singular by its hints; use "
                "df.linalg.lstsq with its to_dense()."
            )
