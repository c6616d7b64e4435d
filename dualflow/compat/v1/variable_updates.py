"""TensorFlow 1's functions that change parts of a variable: ``v1.scatter_add`` and its like."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dualflow.core.errors import DTypeError
from dualflow.eager.variable import Variable
from dualflow.ops.creation import convert_to_tensor
from dualflow.ops.sparse.indexed_slices import IndexedSlices

if TYPE_CHECKING:
    from collections.abc import Callable

    from dualflow.core.argument_types import TensorLike

_DOC = """{what}

    Args:
        ref: a variable.
        indices: {indices}
        updates: {updates}
        use_locking: ignored; an update is one assignment.
        name: of the operation, in a graph.

    Returns:
        The new value of the variable: eagerly the variable, in a graph a tensor whose run makes the update.

    Raises:
        DTypeError: ``ref`` is no variable, or the updates have another dtype.
        InvalidArgumentError: an index is out of range, or the shapes don't match.

    >>> from dualflow.compat import v1
    >>> with v1.Graph().as_default(), v1.Session() as session:
    ...     v = v1.Variable([2.0, 6.0])
    ...     update = v1.{example}
    ...     session.run(v.initializer)
    ...     print(session.run(update))
    {result}
    """


def _variable(ref: Any, function: str) -> Any:
    if not isinstance(ref, Variable):
        raise DTypeError(
            f"{function} changes a variable, not {ref!r}; for a tensor, call df.tensor_scatter_nd_*."
        )
    return ref


def _of_slices(method: str, what: str, result: str) -> Callable[..., Any]:
    """The function that calls ``method`` of a variable with slices of its first axis."""

    def scatter(
        ref: TensorLike,
        indices: TensorLike,
        updates: TensorLike,
        use_locking: bool = False,
        name: str | None = None,
    ) -> Any:
        variable = _variable(ref, method)
        slices = IndexedSlices(convert_to_tensor(updates, variable.dtype), convert_to_tensor(indices))
        return getattr(variable, method)(slices)

    indices = "integers of any shape, of rows of the variable; None of them is out of range."
    updates = "a row for each index: a tensor of shape ``indices.shape + ref.shape[1:]``."
    return _described(scatter, method, what, indices, updates, f"{method}(v, [0], [4.0])", result)


def _of_points(method: str, what: str, result: str) -> Callable[..., Any]:
    """The function that calls ``method`` of a variable with points, each an index of several axes."""

    def scatter(
        ref: TensorLike,
        indices: TensorLike,
        updates: TensorLike,
        use_locking: bool = False,
        name: str | None = None,
    ) -> Any:
        variable = _variable(ref, method)
        return getattr(variable, method)(indices, convert_to_tensor(updates, variable.dtype))

    indices = "integers whose last axis are indices of elements or slices, as of :func:`dualflow.scatter_nd`."
    updates = "an element or slice for each of them."
    return _described(scatter, method, what, indices, updates, f"{method}(v, [[0]], [4.0])", result)


def _described(
    function: Any, name: str, what: str, indices: str, updates: str, example: str, result: str
) -> Callable[..., Any]:
    function.__name__ = function.__qualname__ = name
    function.__doc__ = _DOC.format(
        what=what, indices=indices, updates=updates, example=example, result=result
    )
    return function  # type: ignore[no-any-return]  # a function


scatter_add = _of_slices(
    "scatter_add", "Add to rows of a variable; all updates of one row are added.", "[6. 6.]"
)
scatter_sub = _of_slices(
    "scatter_sub", "Subtract from rows of a variable, all updates of one row.", "[-2.  6.]"
)
scatter_mul = _of_slices("scatter_mul", "Multiply rows of a variable, by all updates of one row.", "[8. 6.]")
scatter_div = _of_slices("scatter_div", "Divide rows of a variable, by all updates of one row.", "[0.5 6. ]")
scatter_min = _of_slices("scatter_min", "Set rows of a variable to the minimum with the updates.", "[2. 6.]")
scatter_max = _of_slices("scatter_max", "Set rows of a variable to the maximum with the updates.", "[4. 6.]")
scatter_update = _of_slices("scatter_update", "Replace rows of a variable.", "[4. 6.]")
scatter_nd_add = _of_points("scatter_nd_add", "Add to elements or slices of a variable.", "[6. 6.]")
scatter_nd_sub = _of_points("scatter_nd_sub", "Subtract from elements or slices of a variable.", "[-2.  6.]")
scatter_nd_update = _of_points("scatter_nd_update", "Replace elements or slices of a variable.", "[4. 6.]")
