"""The base of operators that are built from a list of operators: a product, a block diagonal matrix."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

from dualflow.core.tracebacks import entry
from dualflow.linear_operators.linear_operator import LinearOperator
from dualflow.linear_operators.parameters import as_operators
from dualflow.linear_operators.property_hints import Hints


class OperatorSequence(LinearOperator):
    """The base of operators whose constructor takes a list of operators of one dtype."""

    _described: ClassVar[str]
    """What the operators are a list for, in errors."""
    _separator: ClassVar[str]
    """The text between the names of the operators in the name of the whole."""
    _operators: list[Any]

    @entry
    def __init__(
        self,
        operators: Iterable[LinearOperator],
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool | None = None,
        name: str | None = None,
    ) -> None:
        stated = Hints(is_non_singular, is_self_adjoint, is_positive_definite, is_square)
        self._operators = as_operators(operators, self._described)
        name = name or self._separator.join(operator.name for operator in self._operators)
        parameters = {"operators": self._operators, **stated._asdict(), "name": name}
        hints = self._implied_hints(stated)
        super().__init__(self._operators[0].dtype, **hints._asdict(), name=name, parameters=parameters)

    def _implied_hints(self, stated: Hints) -> Hints:
        """The hints that the caller states, and those that follow from the operators."""
        return stated

    @property
    def operators(self) -> list[LinearOperator]:
        """The operators, in the order of the argument."""
        return self._operators

    @property
    def _composite_tensor_fields(self) -> tuple[str, ...]:
        return ("operators",)

    @property
    def _experimental_parameter_ndims_to_matrix_ndims(self) -> dict[str, Any]:
        return {"operators": [0] * len(self._operators)}
