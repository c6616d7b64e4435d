"""Hints: properties of a matrix that the caller states, or that follow from its construction."""

from __future__ import annotations

from typing import Any, Final, Literal, TypeVar

from dualflow.core.errors import InvalidArgumentError
from dualflow.core.records import NamedTuple

Hint = bool | None
"""True and False state that a matrix has a property, or lacks it; None states nothing."""
Property = Literal["is_non_singular", "is_self_adjoint", "is_positive_definite", "is_square"]
T = TypeVar("T", bound=type)

_ARGUMENTS: Final = """
        is_non_singular: a hint: whether the matrices are invertible; None for unknown.
        is_self_adjoint: a hint: whether they equal their conjugate transposes.
        is_positive_definite: a hint: whether ``x^H A x`` has a positive real part for each vector but 0.
        is_square: a hint: whether they have as many rows as columns.
        name: the name of the operator; None for one by its class or parts."""


class Hints(NamedTuple):
    """The four hints of an operator."""

    is_non_singular: Hint = None
    is_self_adjoint: Hint = None
    is_positive_definite: Hint = None
    is_square: Hint = None

    def implying(self, name: Property, value: bool, reason: str) -> Hints:
        """A copy of these hints in which one has the value that follows from the construction.

        Args:
            name: the hint.
            value: what follows.
            reason: why, as the beginning of the error's message.

        Raises:
            InvalidArgumentError: the caller stated the opposite.
        """
        stated = getattr(self, name)
        if stated is not None and bool(stated) is not value:
            raise InvalidArgumentError(f"{reason} Leave {name} out, or set it to {value}.")
        return self._replace(**{name: value})

    def completed(self) -> Hints:
        """A copy of these hints with all that they imply.

        Raises:
            InvalidArgumentError: two hints contradict each other.
        """
        hints = self
        if hints.is_positive_definite:
            hints = hints.implying(
                "is_non_singular", True, "A positive definite matrix is always non-singular."
            )
        if hints.is_non_singular:
            hints = hints.implying("is_square", True, "A non-singular matrix is always square.")
        if hints.is_self_adjoint:
            hints = hints.implying("is_square", True, "A self-adjoint matrix is always square.")
        return hints

    def shared_with(self, operator: Any, kind: str) -> Hints:
        """A copy of these hints with those of an operator that has the same properties.

        Args:
            operator: the other one.
            kind: how it is related, for errors: "inverse" or "adjoint".

        Raises:
            InvalidArgumentError: the caller stated the opposite of a hint of ``operator``.
        """
        hints = self
        for name in Hints._fields:
            value = getattr(operator, name)
            if value is not None:
                reason = f"An operator and its {kind} agree in {name}, which is {value} of {operator.name}."
                hints = hints.implying(name, bool(value), reason)  # type: ignore[arg-type]  # one of the four
        return hints


def hints_of(operator: Any) -> Hints:
    """The hints of an operator."""
    return Hints(*[getattr(operator, name) for name in Hints._fields])


def all_have(operators: Any, name: Property) -> bool:
    """Whether the hint is true for each operator."""
    return all(getattr(operator, name) for operator in operators)


def non_singular_product(a: Any, b: Any) -> Hint:
    """The hint ``is_non_singular`` of a product of square operators."""
    if a.is_non_singular is False or b.is_non_singular is False:
        return False
    return True if a.is_non_singular and b.is_non_singular else None


def self_adjoint_product(a: Any, b: Any) -> Hint:
    """The hint ``is_self_adjoint`` of a product of operators that commute."""
    if a.is_self_adjoint and b.is_self_adjoint:
        return True
    return False if {a.is_self_adjoint, b.is_self_adjoint} == {True, False} else None


def positive_definite_product(a: Any, b: Any) -> Hint:
    """The hint ``is_positive_definite`` of a product of operators that commute."""
    all_true = all_have((a, b), "is_positive_definite") and all_have((a, b), "is_self_adjoint")
    return True if all_true else None


def commuting_product(a: Any, b: Any) -> Hints:
    """The hints of a product of square operators that commute."""
    return Hints(
        non_singular_product(a, b), self_adjoint_product(a, b), positive_definite_product(a, b), True
    )


def product(a: Any, b: Any) -> Hints:
    """The hints of a product of any two operators."""
    is_square = _square_product(a, b)
    if is_square is False:
        return Hints(False, False, False, False)
    return Hints(non_singular_product(a, b) if is_square else None, is_square=is_square)


def _square_product(a: Any, b: Any) -> Hint:
    if a.is_square and b.is_square:
        return True
    if a.is_square is False and b.is_square is False:
        rows, columns = a.range_dimension, b.domain_dimension
        return None if rows is None or columns is None else bool(rows == columns)
    return False if None not in (a.is_square, b.is_square) else None


def documented_hints(cls: T) -> T:
    """A decorator that adds the hints and the name to the arguments in a class's docstring."""
    if cls.__doc__:  # python -OO removes docstrings
        head, arguments, following = cls.__doc__.partition("\n\n    Args:")
        first, blank, remaining = following.partition("\n\n")
        cls.__doc__ = f"{head}{arguments}{first}{_ARGUMENTS}{blank}{remaining}"
    return cls
