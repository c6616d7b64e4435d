"""Operators that differ from another one by a matrix of low rank."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dualflow.core.errors import DTypeError, InvalidArgumentError
from dualflow.core.shape import Shape, broadcast
from dualflow.core.tracebacks import entry
from dualflow.linear_operators.diagonal import LinearOperatorDiag
from dualflow.linear_operators.identities import LinearOperatorIdentity
from dualflow.linear_operators.linear_operator import LinearOperator
from dualflow.linear_operators.parameters import as_parameter, broadcast_shapes, shape_vector
from dualflow.linear_operators.property_hints import Hints, documented_hints
from dualflow.ops.arrangement import expand_dims
from dualflow.ops.broadcasting import reduce_sum
from dualflow.ops.complex_numbers import conj
from dualflow.ops.contraction import matmul
from dualflow.ops.conversion import cast
from dualflow.ops.creation import convert_to_tensor
from dualflow.ops.exponential import exp
from dualflow.ops.linear_algebra.cholesky import cholesky, cholesky_solve
from dualflow.ops.linear_algebra.diagonals import diag_part
from dualflow.ops.linear_algebra.inverse import det, slogdet
from dualflow.ops.linear_algebra.solving import solve
from dualflow.ops.powers import log
from dualflow.ops.tensor_sizes import axis_sizes, sizes_of

if TYPE_CHECKING:
    from dualflow.core.argument_types import TensorLike
    from dualflow.ops.tensor import Tensor


@documented_hints
@entry
class LinearOperatorLowRankUpdate(LinearOperator):
    """The sum ``L + U D V^H`` of an operator and a matrix of low rank.

    Solutions and determinants use those of ``L``, and a small matrix of the size of ``D``: by the Woodbury
    identity and the matrix determinant lemma (Golub and Van Loan, "Matrix Computations" (2013), 2.1.4).

    Args:
        base_operator: the operator ``L``.
        u: the matrices ``U``, of shape ``(..., rows, k)`` and the dtype of ``base_operator``.
        diag_update: the diagonals of ``D``, of shape ``(..., k)``; None for ones.
        v: the matrices ``V``, of shape ``(..., columns, k)``; None for ``u``.
        is_diag_update_positive: a hint: whether ``D`` is positive.

    Raises:
        InvalidArgumentError: the sizes don't fit; or a hint contradicts what follows from the others.
        DTypeError: ``u``, ``v`` or ``diag_update`` has another dtype than ``base_operator``.

    >>> import dualflow as df
    >>> base = df.linalg.LinearOperatorDiag([1.0, 1.0], is_positive_definite=True)
    >>> a = df.linalg.LinearOperatorLowRankUpdate(base, u=[[1.0], [1.0]])
    >>> a.to_dense().numpy().tolist(), a.is_positive_definite, round(float(a.determinant()), 4)
    ([[2.0, 1.0], [1.0, 2.0]], True, 3.0)
    """

    @entry
    def __init__(
        self,
        base_operator: LinearOperator,
        u: TensorLike,
        diag_update: TensorLike | None = None,
        v: TensorLike | None = None,
        is_diag_update_positive: bool | None = None,
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool | None = None,
        name: str = "LinearOperatorLowRankUpdate",
    ) -> None:
        stated = Hints(is_non_singular, is_self_adjoint, is_positive_definite, is_square)
        if diag_update is None and is_diag_update_positive is False:
            raise InvalidArgumentError(
                "Without diag_update the diagonal is of ones, which is positive; leave "
                "is_diag_update_positive out."
            )
        self._has_v = v is not None and v is not u
        parameters = {
            "base_operator": base_operator,
            "u": u,
            "diag_update": diag_update,
            "v": v if self._has_v else None,  # so that a slice has the v of its u
            "name": name,
        }
        parameters |= {"is_diag_update_positive": is_diag_update_positive, **stated._asdict()}
        self._base_operator = base_operator
        self._u = as_parameter(u, "u", 2)
        self._v = as_parameter(v, "v", 2) if self._has_v else self._u
        self._diag_update = None if diag_update is None else as_parameter(diag_update, "diag_update", 1)
        self._is_diag_update_positive = True if diag_update is None else is_diag_update_positive
        self._check_dtypes()
        hints = self._implied_hints(stated)
        super().__init__(base_operator.dtype, **hints._asdict(), name=name, parameters=parameters)
        self._check_sizes()

    @property
    def _use_cholesky(self) -> bool:
        """Whether the hints imply that the operator and its capacitance matrix are positive definite."""
        base = self._base_operator
        is_positive = base.is_positive_definite and base.is_self_adjoint and self._is_diag_update_positive
        return bool(is_positive and not self._has_v)

    def _implied_hints(self, stated: Hints) -> Hints:
        hints, base = stated, self._base_operator
        if base.is_self_adjoint and not self._has_v and not base.dtype.is_complex:
            reason = "A self-adjoint operator plus U D U^H with a real D is self-adjoint."
            hints = hints.implying("is_self_adjoint", True, reason)
        if self._use_cholesky:
            reason = "A positive definite operator plus U D U^H with a positive D is positive definite."
            for hint in ("is_positive_definite", "is_self_adjoint", "is_non_singular"):
                hints = hints.implying(hint, True, reason)
        return hints

    def _check_dtypes(self) -> None:
        dtype = self._base_operator.dtype
        for x, name in ((self._u, "u"), (self._v, "v"), (self._diag_update, "diag_update")):
            if x is not None and x.dtype is not dtype:
                raise DTypeError(
                    f"{name} has the dtype of base_operator, {dtype.name}, not {x.dtype.name}; cast it with "
                    "df.cast."
                )

    def _check_sizes(self) -> None:
        base = self._base_operator
        expected = [base.range_dimension, base.domain_dimension]
        for x, size, name in ((self._u, expected[0], "u"), (self._v, expected[1], "v")):
            if None not in (x.shape[-2], size) and x.shape[-2] != size:
                raise InvalidArgumentError(
                    f"{name} of shape {x.shape} doesn't fit an operator of shape {base.shape}; give it "
                    f"{size} rows."
                )
        ranks = {x.shape[-1] for x in (self._u, self._v, self._diag_update) if x is not None} - {None}
        if len(ranks) > 1:
            raise InvalidArgumentError(
                f"u, v and diag_update agree in their last axis, but it has {sorted(ranks)} elements; "
                "reshape them."
            )
        self._shape()  # which raises for batches that don't broadcast

    @property
    def u(self) -> Tensor:
        """The matrices ``U``."""
        matrix: Tensor = self._u
        return matrix

    @property
    def v(self) -> Tensor:
        """The matrices ``V``; ``U`` if the argument ``v`` was left out."""
        matrix: Tensor = self._v
        return matrix

    @property
    def is_diag_update_positive(self) -> bool | None:
        """Whether ``D`` is positive; None if that is unknown."""
        return self._is_diag_update_positive

    @property
    def diag_update(self) -> Tensor | None:
        """The diagonals of ``D``; None for ones."""
        return self._diag_update

    @property
    def diag_operator(self) -> LinearOperator:
        """The operator ``D``."""
        if self._diag_update is None:
            rank = axis_sizes(convert_to_tensor(self._u))[-1]
            return LinearOperatorIdentity(rank, dtype=self._base_operator.dtype)
        return LinearOperatorDiag(self._diag_update, is_positive_definite=self._is_diag_update_positive)

    @property
    def base_operator(self) -> LinearOperator:
        """The operator ``L``."""
        return self._base_operator

    @property
    def _composite_tensor_fields(self) -> tuple[str, ...]:
        names = ("base_operator", "u", "diag_update", "is_diag_update_positive")
        return (*names, "v") if self._has_v else names

    @property
    def _experimental_parameter_ndims_to_matrix_ndims(self) -> dict[str, Any]:
        axes = {"base_operator": 0, "u": 2, "diag_update": 1}
        return axes | {"v": 2} if self._has_v else axes

    def _shape(self) -> Shape:
        base = self._base_operator
        parts = [base.batch_shape, self._u.shape[:-2], self._v.shape[:-2]]
        if self._diag_update is not None:
            parts.append(self._diag_update.shape[:-1])
        return Shape((*broadcast(parts), base.range_dimension, base.domain_dimension))

    def _shape_tensor(self) -> Any:
        base = self._base_operator
        batches = [sizes_of(convert_to_tensor(x))[:-2] for x in (self._u, self._v)]
        batch = broadcast_shapes(
            [base.batch_shape_tensor(), self.diag_operator.batch_shape_tensor(), *batches]
        )
        return shape_vector(batch, base.range_dimension_tensor(), base.domain_dimension_tensor())

    def _matmul(self, x: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        left, right = (self._v, self._u) if adjoint else (self._u, self._v)
        first = self._base_operator.matmul(x, adjoint=adjoint, adjoint_arg=adjoint_arg)
        inner = matmul(right, x, adjoint_a=True, adjoint_b=adjoint_arg)
        return first + matmul(left, self.diag_operator.matmul(inner, adjoint=adjoint))

    def _solve(self, rhs: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        base = self._base_operator
        left, right = (self._v, self._u) if adjoint else (self._u, self._v)
        first = base.solve(rhs, adjoint=adjoint, adjoint_arg=adjoint_arg)
        inner = matmul(right, first, adjoint_a=True)
        if self._use_cholesky:
            weights = cholesky_solve(cholesky(self._capacitance()), inner)
        else:
            weights = solve(self._capacitance(), inner, adjoint=adjoint)
        return first - base.solve(matmul(left, weights), adjoint=adjoint)

    def _capacitance(self) -> Any:
        """``D^-1 + V^H L^-1 U``, the matrix of the Woodbury identity."""
        inner = matmul(self._v, self._base_operator.solve(convert_to_tensor(self._u)), adjoint_a=True)
        return self.diag_operator.inverse().add_to_tensor(inner)

    def _determinant(self) -> Any:
        if self.is_positive_definite and self.is_self_adjoint:
            return exp(self.log_abs_determinant())
        return det(self._capacitance()) * self.diag_operator.determinant() * self._base_operator.determinant()

    def _log_abs_determinant(self) -> Any:
        parts = self.diag_operator.log_abs_determinant() + self._base_operator.log_abs_determinant()
        if self._use_cholesky:
            logarithm: Any = 2 * reduce_sum(log(diag_part(cholesky(self._capacitance()))), -1)
        else:
            logarithm = cast(slogdet(self._capacitance()).log_abs_determinant, self.dtype)
        return parts + logarithm

    def _diag_part(self) -> Any:
        diagonal = self._base_operator.diag_part()
        size = axis_sizes(diagonal)[-1]  # the smaller one of a rectangular matrix
        product = self._u[..., :size, :] * conj(self._v)[..., :size, :]
        if self._diag_update is not None:
            product = product * expand_dims(self._diag_update, -2)
        return reduce_sum(product, -1) + diagonal

    def _assert_self_adjoint(self) -> Any:
        if not self._has_v and self._diag_update is None:
            return self._base_operator.assert_self_adjoint()
        return super()._assert_self_adjoint()
