"""Checks that branches agree, and that loop variables keep their dtype, shape and structure."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Final

from dualflow.core.errors import DTypeError, InvalidArgumentError, StructureError
from dualflow.core.records import NamedTuple
from dualflow.core.shape import Shape
from dualflow.core.spec import TensorSpec
from dualflow.core.tree import Structure
from dualflow.function.arguments.retracing import outline
from dualflow.function.errors import here


class ComparedPlaces(NamedTuple):
    """Two places in which a value must agree, and the advice of the errors if it does not.

    Attributes:
        first, second: descriptions of the places.
        dtype, shape, structure: the advice for each kind of error.
    """

    first: str
    second: str
    dtype: str
    shape: str
    structure: str


CASES: Final = ComparedPlaces(
    "in one branch",
    "in another",
    "cast one of them with df.cast",
    "give both one shape, or use each inside of its branch alone",
    "both must return the same types of lists, tuples and dicts, of the same lengths",
)
"""Any two branches."""
MAIN_AND_ELSE: Final = CASES._replace(first="in the main branch", second="in the else branch")
"""The branches of an ``if``."""
ITERATIONS: Final = ComparedPlaces(
    "before the loop",
    "after one iteration",
    "cast it with df.cast, before the loop or in it",
    "give it its final shape before the loop",
    "lists and dicts can't grow in a loop over tensors: collect rows in a df.TensorArray, or concatenate "
    "them",
)
"""A loop variable."""


def check_spec(
    where: ComparedPlaces,
    what: str,
    first: TensorSpec,
    second: TensorSpec,
    fits: Callable[[Shape, Shape], bool] = operator.eq,
    shape_advice: str = "",
) -> None:
    """Raise an error if the specs of a value in two places do not agree.

    Args:
        where: the two places.
        what: the name of the value in errors.
        first, second: its specs there.
        fits: whether the two shapes agree.
        shape_advice: a clause that is appended to the advice about shapes.

    Raises:
        DTypeError: the dtypes differ.
        InvalidArgumentError: the shapes don't agree.
    """
    if first.dtype is not second.dtype:
        raise DTypeError(
            f"{what} has dtype {first.dtype.name} {where.first}, but dtype {second.dtype.name} "
            f"{where.second}; {where.dtype}.{here()}"
        )
    if not fits(first.shape, second.shape):
        raise InvalidArgumentError(
            f"{what} has shape {first.shape} {where.first}, but shape {second.shape} {where.second}; "
            f"{where.shape}{shape_advice}.{here()}"
        )


def check_structure(where: ComparedPlaces, what: str, first: Structure, second: Structure) -> None:
    """Raise StructureError if the structures of a value in two places differ."""
    if first != second:
        raise StructureError(
            f"{what} has structure {outline(first)} {where.first}, but structure {outline(second)} "
            f"{where.second}; {where.structure}.{here()}"
        )


def check_loop_variables(
    before: Sequence[TensorSpec],
    after: Sequence[TensorSpec],
    fits: Callable[[Shape, Shape], bool] = operator.eq,
) -> None:
    """Compare the specs of the loop variables after one iteration with those before; errors number them."""
    for i, (old, new) in enumerate(zip(before, after, strict=True)):
        if old is not new:
            check_spec(ITERATIONS, f"Loop variable {i}", old, new, fits)
