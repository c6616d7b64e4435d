"""Permutations and reflections, whose inverses are their transposes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dualflow.core.dispatch import TENSORS
from dualflow.core.dtypes import as_dtype, float32
from dualflow.core.errors import DTypeError, InvalidArgumentError
from dualflow.core.shape import Shape
from dualflow.core.status_errors import UnimplementedError
from dualflow.core.tracebacks import entry
from dualflow.linear_operators.linear_operator import LinearOperator
from dualflow.linear_operators.parameters import as_parameter, shape_vector
from dualflow.linear_operators.property_hints import Hints, documented_hints
from dualflow.ops.arithmetic import abs as absolute
from dualflow.ops.arithmetic import divide_no_nan
from dualflow.ops.arrangement import matrix_transpose
from dualflow.ops.broadcasting import broadcast_to
from dualflow.ops.comparison import equal
from dualflow.ops.complex_numbers import conj
from dualflow.ops.contraction import matmul
from dualflow.ops.conversion import cast, stop_gradient
from dualflow.ops.creation import convert_to_tensor, ones, zeros
from dualflow.ops.joining import concat
from dualflow.ops.neural.normalization import l2_normalize
from dualflow.ops.positions import eye
from dualflow.ops.positions import range as count_up
from dualflow.ops.rearranging.shapes import broadcast_dynamic_shape
from dualflow.ops.reduction import reduce_max
from dualflow.ops.sorting import argsort
from dualflow.ops.static import static_value
from dualflow.ops.taking import gather
from dualflow.ops.tensor_sizes import axis_size, axis_sizes, sizes_of

if TYPE_CHECKING:
    from dualflow.core.argument_types import DTypeLike, TensorLike
    from dualflow.ops.tensor import Tensor


class OrthogonalOperator(LinearOperator):
    """The base of orthogonal matrices that a vector defines, whose determinant is 1 or -1."""

    @property
    def _vector(self) -> Any:
        """The vector, of shape ``(..., n)``."""
        raise UnimplementedError(f"{type(self).__name__} defines no vector; define it in the class.")

    def _shape(self) -> Shape:
        shape = self._vector.shape
        return Shape((*shape, shape[-1]))

    def _shape_tensor(self) -> Any:
        sizes = sizes_of(self._vector)
        return shape_vector(sizes, sizes[-1])

    def _ones(self) -> Any:
        return ones(axis_sizes(self._vector)[:-1], self.dtype)

    def _cond(self) -> Any:
        return self._ones()

    def _log_abs_determinant(self) -> Any:
        return zeros(axis_sizes(self._vector)[:-1], self.dtype)

    def _assert_non_singular(self) -> None:
        """Passes: orthogonal matrices are invertible."""


@documented_hints
@entry
class LinearOperatorPermutation(OrthogonalOperator):
    """Permutations of rows: row i of a product is row ``perm[i]`` of the argument.

    Args:
        perm: the numbers from 0 to n - 1 in some order, of shape ``(..., n)``; the leading axes are the
            batch.
        dtype: the dtype of the arguments; float32 by default.

    Raises:
        InvalidArgumentError: ``perm`` is a scalar, or no permutation; or a hint contradicts the structure.
        DTypeError: ``perm`` doesn't hold integers.

    >>> import dualflow as df
    >>> df.linalg.LinearOperatorPermutation([2, 0, 1]).matvec([5.0, 6.0, 7.0]).numpy().tolist()
    [7.0, 5.0, 6.0]
    """

    _products_check_sizes = False

    @entry
    def __init__(
        self,
        perm: TensorLike,
        dtype: DTypeLike = float32,
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool | None = None,
        name: str = "LinearOperatorPermutation",
    ) -> None:
        stated = Hints(is_non_singular, is_self_adjoint, is_positive_definite, is_square)
        self._perm = perm if isinstance(perm, TENSORS) else convert_to_tensor(perm)
        self._check()
        hints = stated.implying("is_square", True, "A permutation is always square.")
        if is_non_singular is False:
            raise InvalidArgumentError("A permutation is always non-singular; leave is_non_singular out.")
        parameters = {"perm": perm, "dtype": dtype, **stated._asdict(), "name": name}
        super().__init__(as_dtype(dtype), **hints._asdict(), name=name, parameters=parameters)

    def _check(self) -> None:
        perm = self._perm
        if not perm.dtype.is_integer:
            raise DTypeError(f"perm holds integers, not {perm.dtype.name}; cast it with df.cast.")
        if not len(perm.shape):
            raise InvalidArgumentError("perm has one axis or more, but is a scalar; give a vector.")
        static = static_value(perm)
        if static is not None and (np.sort(static, -1) != np.arange(static.shape[-1])).any():
            raise InvalidArgumentError(
                f"perm holds each of the integers from 0 to {static.shape[-1] - 1} once, not "
                f"{static.tolist()}."
            )

    @property
    def perm(self) -> Any:
        """The row of the argument for each row of a product."""
        perm: Any = self._perm
        return perm

    @property
    def _vector(self) -> Any:
        return convert_to_tensor(self._perm)

    @property
    def _composite_tensor_fields(self) -> tuple[str, ...]:
        return "perm", "dtype"

    @property
    def _experimental_parameter_ndims_to_matrix_ndims(self) -> dict[str, Any]:
        return {"perm": 1}

    def _matmul(self, x: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        perm = self._vector
        perm = argsort(perm, -1) if adjoint else perm
        x = matrix_transpose(x, conjugate=True) if adjoint_arg else x
        if len(perm.shape) == 1:
            return gather(x, perm, axis=-2)
        batch = broadcast_dynamic_shape(sizes_of(x)[:-1], sizes_of(perm))
        x = broadcast_to(x, concat([batch, sizes_of(x)[-1:]], 0))
        return gather(x, broadcast_to(perm, batch), axis=-2, batch_dims=len(x.shape) - 2)

    def _solve(self, rhs: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        return self._matmul(rhs, adjoint=not adjoint, adjoint_arg=adjoint_arg)

    def _to_dense(self) -> Any:
        perm = self._vector
        return cast(equal(count_up(axis_size(perm, -1)), cast(perm, "int32")[..., None]), self.dtype)

    def _diag_part(self) -> Any:
        perm = self._vector
        return cast(equal(count_up(axis_size(perm, -1)), cast(perm, "int32")), self.dtype)


@documented_hints
@entry
class LinearOperatorHouseholder(OrthogonalOperator):
    """Householder reflections: ``I - 2 v v^H`` for a normalized vector ``v``.

    Args:
        reflection_axis: vectors in the direction of ``v``, of any length but 0, of shape ``(..., n)``; the
            leading axes are the batch.

    Raises:
        InvalidArgumentError: ``reflection_axis`` is a scalar, or empty; or a hint contradicts the structure.
        DTypeError: ``reflection_axis`` holds integers.

    >>> import dualflow as df
    >>> df.linalg.LinearOperatorHouseholder([0.0, 2.0]).matvec([3.0, 4.0]).numpy().tolist()
    [3.0, -4.0]
    """

    @entry
    def __init__(
        self,
        reflection_axis: TensorLike,
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool | None = None,
        name: str = "LinearOperatorHouseholder",
    ) -> None:
        stated = Hints(is_non_singular, is_self_adjoint, is_positive_definite, is_square)
        self._reflection_axis = as_parameter(reflection_axis, "reflection_axis", 1)
        if self._reflection_axis.shape[-1] == 0:
            raise InvalidArgumentError("A reflection_axis has one element or more, not 0.")
        hints = stated.implying("is_self_adjoint", True, "A reflection is always self-adjoint.")
        hints = hints.implying("is_square", True, "A reflection is always square.")
        hints = hints.implying("is_positive_definite", False, "A reflection is never positive definite.")
        parameters = {"reflection_axis": reflection_axis, **stated._asdict(), "name": name}
        super().__init__(self._reflection_axis.dtype, **hints._asdict(), name=name, parameters=parameters)

    @property
    def reflection_axis(self) -> Tensor:
        """The argument ``reflection_axis``: vectors, which the reflections negate."""
        vector: Tensor = self._reflection_axis
        return vector

    @property
    def _vector(self) -> Any:
        return convert_to_tensor(self._reflection_axis)

    @property
    def _composite_tensor_fields(self) -> tuple[str, ...]:
        return ("reflection_axis",)

    @property
    def _experimental_parameter_ndims_to_matrix_ndims(self) -> dict[str, Any]:
        return {"reflection_axis": 1}

    def _linop_adjoint(self) -> Any:
        return self

    def _linop_inverse(self) -> Any:
        return self

    def _unit_vector(self) -> Any:
        """The normalized vector; scaled first, as squares of its elements may overflow or underflow."""
        vector = self._vector
        scale = stop_gradient(reduce_max(absolute(vector), -1, keepdims=True))  # which cancels
        return l2_normalize(divide_no_nan(vector, cast(scale, vector.dtype)), axis=-1)

    def _unit_column(self) -> Any:
        return self._unit_vector()[..., None]

    def _matmul(self, x: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        x = matrix_transpose(x, conjugate=True) if adjoint_arg else x
        column = self._unit_column()
        return x - 2 * column * matmul(column, x, adjoint_a=True)

    def _solve(self, rhs: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        return self._matmul(rhs, adjoint, adjoint_arg)

    def _determinant(self) -> Any:
        return -self._ones()

    def _trace(self) -> Any:
        return cast(self.domain_dimension_tensor() - 2, self.dtype) * self._ones()

    def _to_dense(self) -> Any:
        column = self._unit_column()
        return eye(axis_size(self._vector, -1), dtype=self.dtype) - 2 * matmul(column, column, adjoint_b=True)

    def _diag_part(self) -> Any:
        unit = self._unit_vector()
        return 1 - 2 * unit * conj(unit)

    def _eigvals(self) -> Any:
        ones_row = ones(axis_sizes(self._vector), self.dtype)
        return concat([-ones_row[..., :1], ones_row[..., 1:]], -1)

    def _assert_self_adjoint(self) -> None:
        """Passes: reflections are self-adjoint."""

    def _assert_positive_definite(self) -> None:
        raise InvalidArgumentError(
            "Householder operators are always non-positive definite; use another operator."
        )
