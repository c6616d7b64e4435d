"""Block matrices of operators: arguments that are lists of blocks, and block diagonal operators."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce
from operator import add, mul
from typing import TYPE_CHECKING, Any

from dualflow.core.errors import InvalidArgumentError
from dualflow.core.shape import Shape
from dualflow.core.status_errors import UnimplementedError
from dualflow.core.tracebacks import entry
from dualflow.function.debugging.assertions import all_checks
from dualflow.linear_operators.linear_operator import LinearOperator
from dualflow.linear_operators.operator_sequence import OperatorSequence
from dualflow.linear_operators.parameters import (
    common_batch,
    common_batch_tensor,
    dimension,
    shape_vector,
    with_common_batch,
)
from dualflow.linear_operators.property_hints import Hints, all_have, documented_hints, hints_of
from dualflow.ops.arrangement import expand_dims, squeeze
from dualflow.ops.broadcasting import broadcast_to
from dualflow.ops.creation import convert_to_tensor
from dualflow.ops.joining import concat
from dualflow.ops.repetition import pad
from dualflow.ops.tensor_sizes import axis_sizes, sizes_of

if TYPE_CHECKING:
    from dualflow.core.argument_types import TensorLike


@entry
class BlockOperator(LinearOperator):
    """The base of block matrices, whose methods take and return a list of blocks as well as one tensor."""

    _products_check_sizes = False
    _diagonal: list[Any]
    """The operators on the diagonal."""

    def _apply_blocks(self, blocks: list[Any], adjoint: bool, adjoint_arg: bool) -> list[Any]:
        """The product, block by block; a subclass defines it."""
        raise UnimplementedError(f"{type(self).__name__} defines no products of blocks.")

    def _solve_blocks(self, blocks: list[Any], adjoint: bool, adjoint_arg: bool) -> list[Any]:
        """The solution, block by block; a subclass defines it."""
        raise UnimplementedError(f"{type(self).__name__} defines no solutions of blocks.")

    def _all_operators(self) -> list[Any]:
        """All operators of which the matrix consists."""
        return self._diagonal

    def _shape(self) -> Shape:
        rows = [operator.range_dimension for operator in self._diagonal]
        columns = [operator.domain_dimension for operator in self._diagonal]
        sizes = [None if None in side else sum(side) for side in (rows, columns)]
        return Shape((*common_batch(self._all_operators()), *sizes))

    def _shape_tensor(self) -> Any:
        rows = reduce(add, [operator.range_dimension_tensor() for operator in self._diagonal])
        columns = reduce(add, [operator.domain_dimension_tensor() for operator in self._diagonal])
        return shape_vector(common_batch_tensor(self._all_operators()), rows, columns)

    def matmul(
        self,
        x: TensorLike | LinearOperator,
        adjoint: bool = False,
        adjoint_arg: bool = False,
        name: str = "matmul",
    ) -> Any:
        """The product of the matrices with others. Also written ``operator @ x``.

        Args:
            x: a tensor of shape ``(..., columns, n)``, whose leading axes broadcast with the batch; a list
                of its blocks of rows, one for each block of columns; or an operator.
            adjoint: whether to multiply by the conjugate transpose.
            adjoint_arg: whether to multiply the conjugate transpose of ``x``, or of each block.

        Returns:
            A tensor of shape ``(..., rows, n)``; for a list a list of its blocks, for an operator an
            operator.

        Raises:
            InvalidArgumentError: the sizes don't fit.
            DTypeError: ``x`` has another dtype.
        """
        axis = -1 if adjoint_arg else -2
        blocks = self._blocks(x, -2 if adjoint else -1, axis)
        if blocks is not None:
            return self._apply_blocks(blocks, adjoint, adjoint_arg)
        return super().matmul(x, adjoint, adjoint_arg)

    def matvec(self, x: TensorLike, adjoint: bool = False, name: str = "matvec") -> Any:
        """The products of the matrices with vectors.

        Args:
            x: of shape ``(..., columns)``; the leading axes broadcast with the batch; or a list of its
                blocks.
            adjoint: whether to multiply by the conjugate transpose.

        Returns:
            A tensor of shape ``(..., rows)``; for a list a list of its blocks.

        Raises:
            InvalidArgumentError: the sizes don't fit.
            DTypeError: ``x`` has another dtype.
        """
        blocks = self._blocks(x, -2 if adjoint else -1, -1)
        if blocks is not None:
            products = self._apply_blocks([expand_dims(block, -1) for block in blocks], adjoint, False)
            return [squeeze(product, -1) for product in products]
        return super().matvec(x, adjoint)

    def solve(
        self,
        rhs: TensorLike | LinearOperator,
        adjoint: bool = False,
        adjoint_arg: bool = False,
        name: str = "solve",
    ) -> Any:
        """The ``x`` with ``operator @ x = rhs``.

        Args:
            rhs: a tensor of shape ``(..., rows, n)``, whose leading axes broadcast with the batch; a list of
                its blocks of rows; or an operator.
            adjoint: whether to solve with the conjugate transpose.
            adjoint_arg: whether to solve for the conjugate transpose of ``rhs``, or of each block.

        Returns:
            A tensor of shape ``(..., rows, n)``; for a list a list of its blocks, for an operator an
            operator.

        Raises:
            UnimplementedError: the operator is not square, or not invertible, by its hints.
            InvalidArgumentError: the sizes don't fit, or a matrix is not invertible.
            DTypeError: ``rhs`` has another dtype.
        """
        blocks = self._blocks(rhs, -1 if adjoint else -2, -1 if adjoint_arg else -2)
        if blocks is not None:
            self._require_solvable()
            return self._solve_blocks(blocks, adjoint, adjoint_arg)
        return super().solve(rhs, adjoint, adjoint_arg)

    def solvevec(self, rhs: TensorLike, adjoint: bool = False, name: str = "solve") -> Any:
        """The vectors ``x`` with ``operator.matvec(x) = rhs``.

        Args:
            rhs: of shape ``(..., rows)``; the leading axes broadcast with the batch; or a list of its blocks.
            adjoint: whether to solve with the conjugate transpose.

        Returns:
            A tensor of shape ``(..., rows)``; for a list a list of its blocks.

        Raises:
            UnimplementedError: the operator is not square, or not invertible, by its hints.
            InvalidArgumentError: the sizes don't fit, or a matrix is not invertible.
            DTypeError: ``rhs`` has another dtype.
        """
        blocks = self._blocks(rhs, -1 if adjoint else -2, -1)
        if blocks is not None:
            self._require_solvable()
            solutions = self._solve_blocks([expand_dims(block, -1) for block in blocks], adjoint, False)
            return [squeeze(solution, -1) for solution in solutions]
        return super().solvevec(rhs, adjoint)

    def _matmul(self, x: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        blocks = self._split(x, -2 if adjoint else -1, -1 if adjoint_arg else -2)
        return _joined(self._apply_blocks(blocks, adjoint, adjoint_arg))

    def _solve(self, rhs: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        blocks = self._split(rhs, -1 if adjoint else -2, -1 if adjoint_arg else -2)
        return _joined(self._solve_blocks(blocks, adjoint, adjoint_arg))

    def _split(self, x: Any, own_axis: int, axis: int) -> list[Any]:
        sizes = [dimension(operator, own_axis) for operator in self._diagonal]
        parts, start = [], 0
        for size in sizes:
            part = slice(start, start + size)
            parts.append(x[..., part] if axis == -1 else x[..., part, :])
            start = start + size
        return parts

    def _blocks(self, x: Any, own_axis: int, axis: int) -> list[Any] | None:
        """The blocks of an argument that is a list of them; None for one tensor.

        A list of numbers is blocks if its entries have the sizes of the blocks, and one tensor if not.
        """
        if not isinstance(x, list | tuple) or len(x) != len(self._diagonal):
            return None
        has_tensors = any(hasattr(block, "shape") for block in x)
        blocks = [
            block if hasattr(block, "shape") else convert_to_tensor(block, dtype_hint=self.dtype)
            for block in x
        ]
        sizes = [
            operator.range_dimension if own_axis == -2 else operator.domain_dimension
            for operator in self._diagonal
        ]
        actual = [block.shape[axis] if len(block.shape) >= -axis else None for block in blocks]
        fits = all(n is None or m is None or n == m for n, m in zip(sizes, actual, strict=True))
        if not has_tensors and (not fits or None in actual):
            return None
        if not fits:
            raise InvalidArgumentError(
                f"{self.name} takes blocks of {sizes} elements along axis {axis}, but got {actual}; give "
                "one block for each operator."
            )
        return [self._argument(block, "a block") for block in blocks]

    def _determinant(self) -> Any:
        return self._over_batch(reduce(mul, [operator.determinant() for operator in self._diagonal]))

    def _log_abs_determinant(self) -> Any:
        return self._over_batch(reduce(add, [operator.log_abs_determinant() for operator in self._diagonal]))

    def _trace(self) -> Any:
        self._require_square_blocks("trace()")
        return self._over_batch(reduce(add, [operator.trace() for operator in self._diagonal]))

    def _diag_part(self) -> Any:
        self._require_square_blocks("diag_part()")
        return self._over_batch(_joined_vectors([operator.diag_part() for operator in self._diagonal]), 1)

    def _eigvals(self) -> Any:
        if not all_have(self._diagonal, "is_self_adjoint"):
            return super()._eigvals()
        return self._over_batch(_joined_vectors([operator.eigvals() for operator in self._diagonal]), 1)

    def _assert_non_singular(self) -> Any:
        return all_checks([operator.assert_non_singular() for operator in self._diagonal])

    def _over_batch(self, x: Any, axes: int = 0) -> Any:
        """Numbers of the diagonal blocks, or vectors (one axis), repeated over the batch of all blocks."""
        batch, end = self.batch_shape, len(x.shape) - axes
        if batch.is_fully_defined():
            return x if x.shape[:end] == batch else broadcast_to(x, [*batch, *axis_sizes(x)[end:]])
        return broadcast_to(x, concat([self.batch_shape_tensor(), sizes_of(x)[end:]], 0))

    def _require_square_blocks(self, method: str) -> None:
        if any(operator.is_square is False for operator in self._diagonal):
            raise UnimplementedError(
                f"{method} needs square blocks; {self.name} has others. Use its to_dense()."
            )


def _joined(blocks: Sequence[Any]) -> Any:
    """Blocks of rows as one tensor, after their batches are broadcast."""
    return concat(with_common_batch(blocks), -2)


def _joined_vectors(parts: Sequence[Any]) -> Any:
    return squeeze(_joined([expand_dims(part, -1) for part in parts]), -1)


@documented_hints
@entry
class LinearOperatorBlockDiag(OperatorSequence, BlockOperator):
    """The block diagonal matrix of operators.

    ``matmul``, ``solve`` and their like take a list of blocks as well, and then return one.

    Args:
        operators: the blocks, a list of operators of one dtype.

    Raises:
        InvalidArgumentError: there is no operator; or a hint contradicts what follows from theirs.
        DTypeError: the dtypes differ, or a block is no operator.

    >>> import dualflow as df
    >>> a = df.linalg.LinearOperatorFullMatrix([[1.0, 2.0], [3.0, 4.0]])
    >>> b = df.linalg.LinearOperatorIdentity(1)
    >>> df.linalg.LinearOperatorBlockDiag([a, b]).to_dense().numpy().tolist()
    [[1.0, 2.0, 0.0], [3.0, 4.0, 0.0], [0.0, 0.0, 1.0]]
    """

    _described = "a block diagonal operator"
    _separator = "_ds_"

    @entry
    def __init__(
        self,
        operators: Iterable[LinearOperator],
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool | None = True,
        name: str | None = None,
    ) -> None:
        super().__init__(operators, is_non_singular, is_self_adjoint, is_positive_definite, is_square, name)
        self._diagonal = self._operators

    def _implied_hints(self, stated: Hints) -> Hints:
        hints = stated
        if stated.is_square and any(operator.is_square is False for operator in self._operators):
            hints = hints._replace(is_square=None)  # True is the default, and may not hold
        for hint in ("is_non_singular", "is_self_adjoint", "is_positive_definite"):
            if all_have(self._operators, hint):
                hints = hints.implying(
                    hint, True, f"All blocks have {hint}, hence their block diagonal matrix has."
                )
        return hints

    def _apply_blocks(self, blocks: list[Any], adjoint: bool, adjoint_arg: bool) -> list[Any]:
        pairs = zip(self._operators, blocks, strict=True)
        return [operator.matmul(block, adjoint=adjoint, adjoint_arg=adjoint_arg) for operator, block in pairs]

    def _solve_blocks(self, blocks: list[Any], adjoint: bool, adjoint_arg: bool) -> list[Any]:
        pairs = zip(self._operators, blocks, strict=True)
        return [operator.solve(block, adjoint=adjoint, adjoint_arg=adjoint_arg) for operator, block in pairs]

    def _linop_adjoint(self) -> Any:
        return LinearOperatorBlockDiag([x.adjoint() for x in self._operators], **hints_of(self)._asdict())

    def _linop_inverse(self) -> Any:
        return LinearOperatorBlockDiag([x.inverse() for x in self._operators], **hints_of(self)._asdict())

    def _linop_cholesky(self) -> Any:
        factors = [operator.cholesky() for operator in self._operators]
        return LinearOperatorBlockDiag(factors, is_non_singular=True, is_square=True)

    def _to_dense(self) -> Any:
        blocks = with_common_batch([operator.to_dense() for operator in self._operators])
        widths = [dimension(operator, -1) for operator in self._operators]
        rows = []
        for i, block in enumerate(blocks):
            beside = [sum(widths[:i]), sum(widths[i + 1 :])]
            rows.append(pad(block, [*[[0, 0]] * (len(block.shape) - 1), beside]))
        return concat(rows, -2)

    def _assert_self_adjoint(self) -> Any:
        return all_checks([operator.assert_self_adjoint() for operator in self._operators])

    def _assert_positive_definite(self) -> Any:
        return all_checks([operator.assert_positive_definite() for operator in self._operators])
