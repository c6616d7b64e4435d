"""Choices and loops, by Python where the values are known and as nodes of the graph in a trace."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from keras.src.backend.common.symbolic_scope import in_symbolic_scope

import dualflow as df
from keras_dualflow.src.core.conversion import convert_to_tensor, is_tensor


def cond(pred: Any, true_fn: Callable[[], Any], false_fn: Callable[[], Any]) -> Any:
    """``true_fn()`` where ``pred`` holds, else ``false_fn()``; both return the same structure.

    While shapes are inferred, the first alone is looked at.
    """
    if in_symbolic_scope():
        return true_fn()
    if not is_tensor(pred):
        return true_fn() if pred else false_fn()
    return df.cond(_truth(pred), true_fn, false_fn)


def switch(index: Any, branches: Sequence[Callable[..., Any]], *operands: Any) -> Any:
    """``branches[index](*operands)``; an index beyond an end takes the branch at that end."""
    place = df.clip_by_value(convert_to_tensor(index, "int32"), 0, len(branches) - 1)
    return df.switch_case(place, [_bound(branch, operands) for branch in branches])


def while_loop(
    cond: Callable[..., Any],
    body: Callable[..., Any],
    loop_vars: Any,
    maximum_iterations: int | None = None,
) -> Any:
    """``loop_vars`` after as many turns of ``body`` as ``cond`` holds before."""
    several = isinstance(loop_vars, tuple | list)
    start = tuple(loop_vars) if several else (loop_vars,)

    def turn(*values: Any) -> Any:
        made = body(*values)
        return tuple(made) if isinstance(made, tuple | list) else (made,)

    def goes_on(*values: Any) -> Any:
        return _truth(convert_to_tensor(cond(*values)))

    found = df.while_loop(goes_on, turn, start, maximum_iterations=maximum_iterations)
    return tuple(found) if several else found[0]


def fori_loop(lower: Any, upper: Any, body_fun: Callable[[Any, Any], Any], init_val: Any) -> Any:
    """``init_val`` after ``body_fun(i, value)`` for each ``i`` from ``lower`` to before ``upper``."""
    return df.while_loop(
        lambda i, _: i < upper,
        lambda i, value: (i + 1, body_fun(i, value)),
        (convert_to_tensor(lower), init_val),
    )[1]


def _truth(pred: Any) -> Any:
    """A bool scalar of what is true where it is not 0."""
    tensor = convert_to_tensor(pred)
    return tensor if tensor.dtype is df.bool else df.cast(tensor, df.bool)


def _bound(branch: Callable[..., Any], operands: tuple[Any, ...]) -> Callable[[], Any]:
    return lambda: branch(*operands)
