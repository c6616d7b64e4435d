"""Block lower triangular matrices of operators."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from dualflow.core.errors import InvalidArgumentError
from dualflow.core.tracebacks import entry
from dualflow.linear_operators.blocks import BlockOperator
from dualflow.linear_operators.linear_operator import LinearOperator
from dualflow.linear_operators.parameters import as_operators, dimension, with_common_batch
from dualflow.linear_operators.property_hints import Hints, all_have, documented_hints
from dualflow.ops.arrangement import matrix_transpose
from dualflow.ops.joining import concat
from dualflow.ops.repetition import pad


@documented_hints
@entry
class LinearOperatorBlockLowerTriangular(BlockOperator):
    """Block matrices of operators on and below the diagonal. Solutions are computed block by block.

    ``matmul``, ``solve`` and their like take a list of blocks as well, and then return one.

    Args:
        operators: a list of rows of blocks: one operator, then two, and so on, of one dtype. Those on the
            diagonal, the last of each row, are square.

    Raises:
        InvalidArgumentError: a row has too few or too many blocks, or sizes don't fit; or a hint contradicts
            what follows from those of the blocks.
        DTypeError: the dtypes differ, or a block is no operator.

    >>> import dualflow as df
    >>> a, b = df.linalg.LinearOperatorDiag([2.0]), df.linalg.LinearOperatorFullMatrix([[1.0]])
    >>> df.linalg.LinearOperatorBlockLowerTriangular([[a], [b, a]]).to_dense().numpy().tolist()
    [[2.0, 0.0], [1.0, 2.0]]
    """

    @entry
    def __init__(
        self,
        operators: Iterable[Iterable[LinearOperator]],
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool | None = None,
        name: str = "LinearOperatorBlockLowerTriangular",
    ) -> None:
        stated = Hints(is_non_singular, is_self_adjoint, is_positive_definite, is_square)
        self._operators = [as_operators(row, "a row of blocks") for row in operators]
        as_operators(self._all_operators(), "a block lower triangular operator")
        self._diagonal = [row[-1] for row in self._operators]
        self._check_sizes()
        hints = stated.implying("is_square", True, "A block lower triangular operator is always square.")
        if all_have(self._diagonal, "is_non_singular"):
            reason = "All blocks of the diagonal are non-singular, hence the matrix is."
            hints = hints.implying("is_non_singular", True, reason)
        if any(operator.is_non_singular is False for operator in self._diagonal):
            reason = "A block of the diagonal is singular, hence the matrix is."
            hints = hints.implying("is_non_singular", False, reason)
        parameters = {"operators": self._operators, **stated._asdict(), "name": name}
        super().__init__(self._diagonal[0].dtype, **hints._asdict(), name=name, parameters=parameters)

    def _check_sizes(self) -> None:
        for i, row in enumerate(self._operators):
            if len(row) != i + 1:
                raise InvalidArgumentError(f"operators[{i}] has {i + 1} blocks, not {len(row)}.")
            if row[-1].is_square is False:
                raise InvalidArgumentError(
                    f"The block operators[{i}][-1] of the diagonal is square, not of shape {row[-1].shape}."
                )
            for j, block in enumerate(row):
                expected = self._diagonal[i].range_dimension, self._diagonal[j].domain_dimension
                actual = block.range_dimension, block.domain_dimension
                pairs = zip(expected, actual, strict=True)
                if any(None not in pair and pair[0] != pair[1] for pair in pairs):
                    raise InvalidArgumentError(
                        f"The block operators[{i}][{j}] has {expected[0]} rows and {expected[1]} columns, "
                        f"as the blocks of the diagonal require, not {actual[0]} and {actual[1]}."
                    )

    def _all_operators(self) -> list[Any]:
        return [block for row in self._operators for block in row]

    @property
    def operators(self) -> list[list[LinearOperator]]:
        """The rows of blocks."""
        return self._operators

    @property
    def _composite_tensor_fields(self) -> tuple[str, ...]:
        return ("operators",)

    @property
    def _experimental_parameter_ndims_to_matrix_ndims(self) -> dict[str, Any]:
        return {"operators": [[0] * len(row) for row in self._operators]}

    def _apply_blocks(self, blocks: list[Any], adjoint: bool, adjoint_arg: bool) -> list[Any]:
        results: list[Any] = [None] * len(blocks)
        for i, row in enumerate(self._operators):
            for j, operator in enumerate(row):
                source, target = (i, j) if adjoint else (j, i)
                part = operator.matmul(blocks[source], adjoint=adjoint, adjoint_arg=adjoint_arg)
                results[target] = part if results[target] is None else results[target] + part
        return results

    def _solve_blocks(self, blocks: list[Any], adjoint: bool, adjoint_arg: bool) -> list[Any]:
        """The solution by substitution: forwards, or backwards for the adjoint."""
        sides = [matrix_transpose(x, conjugate=True) if adjoint_arg else x for x in blocks]
        count = len(blocks)
        for i in reversed(range(count)) if adjoint else range(count):
            sides[i] = self._diagonal[i].solve(sides[i], adjoint=adjoint)
            for k in range(i) if adjoint else range(i + 1, count):
                block = self._operators[i][k] if adjoint else self._operators[k][i]
                sides[k] = sides[k] - block.matmul(sides[i], adjoint=adjoint)
        return sides

    def _to_dense(self) -> Any:
        dense = iter(with_common_batch([block.to_dense() for block in self._all_operators()]))
        widths = [dimension(operator, -1) for operator in self._diagonal]
        rows = []
        for i, row in enumerate(self._operators):
            joined = concat([next(dense) for _ in row], -1)
            rows.append(pad(joined, [*[[0, 0]] * (len(joined.shape) - 1), [0, sum(widths[i + 1 :])]]))
        return concat(rows, -2)
