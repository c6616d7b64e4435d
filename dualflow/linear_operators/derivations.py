"""Operators derived from others: adjoints, inverses, Cholesky factors, products and solutions.

A product of operators that hold diagonals, for example, is such an operator again. Which one it is depends on
both classes, so that the rules stand here, most specific first, rather than in the classes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from dualflow.core.errors import InvalidArgumentError
from dualflow.linear_operators.adjoint_and_inverse import LinearOperatorAdjoint, LinearOperatorInversion
from dualflow.linear_operators.blocks import LinearOperatorBlockDiag
from dualflow.linear_operators.composition import LinearOperatorComposition
from dualflow.linear_operators.dense import LinearOperatorLowerTriangular
from dualflow.linear_operators.derivation_slots import ADJOINT, CHOLESKY, INVERSE, PRODUCT, SOLUTION
from dualflow.linear_operators.diagonal import LinearOperatorDiag, LinearOperatorScaledIdentity
from dualflow.linear_operators.identities import LinearOperatorIdentity, LinearOperatorZeros
from dualflow.linear_operators.linear_operator import LinearOperator
from dualflow.linear_operators.parameters import common_batch, common_batch_tensor, dimension
from dualflow.linear_operators.property_hints import (
    commuting_product,
    hints_of,
    non_singular_product,
    product,
    self_adjoint_product,
)
from dualflow.ops.linear_algebra.cholesky import cholesky as cholesky_factor

Rule = Callable[[Any, Any], LinearOperator]
Rules = tuple[tuple[type[LinearOperator], type[LinearOperator], Rule], ...]


@ADJOINT.fill
def adjoint(operator: Any) -> LinearOperator:
    """The adjoint, whose hints are those of the operator."""
    return LinearOperatorAdjoint(operator, **hints_of(operator)._asdict())


@INVERSE.fill
def inverse(operator: Any) -> LinearOperator:
    """The inverse, whose hints are those of the operator."""
    return LinearOperatorInversion(operator, **hints_of(operator)._asdict())


@CHOLESKY.fill
def cholesky(operator: Any) -> LinearOperator:
    """The Cholesky factor of the dense matrix."""
    return LinearOperatorLowerTriangular(
        cholesky_factor(operator.to_dense()), is_non_singular=True, is_self_adjoint=False, is_square=True
    )


@PRODUCT.fill
def product_of(left: Any, right: Any) -> LinearOperator:
    """The product by the first rule for both classes, or else a composition."""
    rule = _rule(_PRODUCTS, left, right)
    if rule is not None:
        return rule(left, right)
    return LinearOperatorComposition([left, right], **product(left, right)._asdict())


@SOLUTION.fill
def solution_of(left: Any, right: Any) -> LinearOperator:
    """``inverse(left) @ right`` by the first rule for both classes, or else a composition."""
    rule = _rule(_SOLUTIONS, left, right)
    if rule is not None:
        return rule(left, right)
    return LinearOperatorComposition([LinearOperatorInversion(left), right], **product(left, right)._asdict())


def _rule(rules: Rules, left: Any, right: Any) -> Rule | None:
    for left_class, right_class, rule in rules:
        if isinstance(left, left_class) and isinstance(right, right_class):
            return rule
    return None


def _by_identity(operator: Any, identity: Any, factors: list[Any]) -> LinearOperator:
    """The product of an operator and an identity: the operator, unless the identity extends its batch."""
    result: LinearOperator = operator
    if identity.batch_shape.rank:
        batch = common_batch(factors)
        if not batch.is_fully_defined() or batch != operator.batch_shape:
            result = LinearOperatorComposition(factors, **hints_of(operator)._asdict())
    return result


def _right(left: Any, right: Any) -> LinearOperator:
    return _by_identity(right, left, [left, right])


def _left(left: Any, right: Any) -> LinearOperator:
    return _by_identity(left, right, [left, right])


def _left_inverse(left: Any, right: Any) -> LinearOperator:
    return _left(left.inverse(), right)


def _zeros(left: Any, right: Any) -> LinearOperator:
    """The product with zeros: zeros of its shape."""
    batch: Any = common_batch([left, right])
    if not batch.is_fully_defined():
        batch = common_batch_tensor([left, right])
    is_square = product(left, right).is_square
    rows, columns = dimension(left, -2), dimension(right, -1)
    return LinearOperatorZeros(
        rows, columns, batch, left.dtype, is_self_adjoint=is_square, is_square=is_square
    )


def _diag(left: Any, right: Any, diagonal: Any) -> LinearOperator:
    return LinearOperatorDiag(diagonal, **commuting_product(left, right)._asdict())


def _scaled(left: Any, right: Any, multiplier: Any) -> LinearOperator:
    size = left.domain_dimension
    size = left.domain_dimension_tensor() if size is None else size
    return LinearOperatorScaledIdentity(size, multiplier, **commuting_product(left, right)._asdict())


def _lower(left: Any, right: Any, matrix: Any) -> LinearOperator:
    """The lower triangular operator ``matrix``, a product of a triangular and a diagonal operator.

    A triangular factor that is self-adjoint is diagonal, too, so that both commute.
    """
    return LinearOperatorLowerTriangular(
        matrix,
        is_non_singular=non_singular_product(left, right),
        is_self_adjoint=self_adjoint_product(left, right),
        is_square=True,
    )


def _of_blocks(method: str) -> Rule:
    """The block diagonal operator of the products, or solutions, of the blocks."""

    def rule(left: Any, right: Any) -> LinearOperator:
        if len(left.operators) != len(right.operators):
            raise InvalidArgumentError(
                f"Block diagonal operators of {len(left.operators)} and {len(right.operators)} blocks are "
                "not combined block by block; give them as many, or use to_dense() of one."
            )
        pairs = zip(left.operators, right.operators, strict=True)
        blocks = [getattr(a, method)(b) for a, b in pairs]
        return LinearOperatorBlockDiag(
            blocks, is_non_singular=non_singular_product(left, right), is_square=True
        )

    return rule


_PRODUCTS: Final[Rules] = (
    (LinearOperatorIdentity, LinearOperator, _right),
    (LinearOperatorZeros, LinearOperator, _zeros),
    (LinearOperator, LinearOperatorIdentity, _left),
    (LinearOperator, LinearOperatorZeros, _zeros),
    (LinearOperatorDiag, LinearOperatorDiag, lambda a, b: _diag(a, b, a.diag * b.diag)),
    (
        LinearOperatorDiag,
        LinearOperatorScaledIdentity,
        lambda a, b: _diag(a, b, a.diag * b.multiplier[..., None]),
    ),
    (
        LinearOperatorScaledIdentity,
        LinearOperatorDiag,
        lambda a, b: _diag(a, b, b.diag * a.multiplier[..., None]),
    ),
    (
        LinearOperatorScaledIdentity,
        LinearOperatorScaledIdentity,
        lambda a, b: _scaled(a, b, a.multiplier * b.multiplier),
    ),
    (
        LinearOperatorDiag,
        LinearOperatorLowerTriangular,
        lambda a, b: _lower(a, b, a.diag[..., None] * b.to_dense()),
    ),
    (
        LinearOperatorLowerTriangular,
        LinearOperatorDiag,
        lambda a, b: _lower(a, b, a.to_dense() * b.diag[..., None, :]),
    ),
    (LinearOperatorBlockDiag, LinearOperatorBlockDiag, _of_blocks("matmul")),
)
"""The rules for products: the classes of both operators, and the product. The first that fits applies."""

_SOLUTIONS: Final[Rules] = (
    (LinearOperatorIdentity, LinearOperator, _right),
    (LinearOperator, LinearOperatorIdentity, _left_inverse),
    (LinearOperatorDiag, LinearOperatorDiag, lambda a, b: _diag(a, b, b.diag / a.diag)),
    (
        LinearOperatorDiag,
        LinearOperatorScaledIdentity,
        lambda a, b: _diag(a, b, b.multiplier[..., None] / a.diag),
    ),
    (
        LinearOperatorScaledIdentity,
        LinearOperatorDiag,
        lambda a, b: _diag(a, b, b.diag / a.multiplier[..., None]),
    ),
    (
        LinearOperatorScaledIdentity,
        LinearOperatorScaledIdentity,
        lambda a, b: _scaled(a, b, b.multiplier / a.multiplier),
    ),
    (
        LinearOperatorDiag,
        LinearOperatorLowerTriangular,
        lambda a, b: _lower(a, b, b.to_dense() / a.diag[..., None]),
    ),
    (LinearOperatorBlockDiag, LinearOperatorBlockDiag, _of_blocks("solve")),
)
"""The rules for solutions, the inverse of the first operator times the second."""
