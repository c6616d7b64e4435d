"""Conditionals and loops: Python's for Python values, nodes of the graph for tensors in a trace."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from keras.src.backend.common.symbolic_scope import in_symbolic_scope

import dualflow as df
from keras_dualflow.src.core.conversion import convert_to_tensor, is_tensor


def cond(pred: Any, true_fn: Callable[[], Any], false_fn: Callable[[], Any]) -> Any:
    """``true_fn()`` if ``pred`` is true, else ``false_fn()``; both return the same structure.

    Shape inference uses the first one only.
    """
    if in_symbolic_scope():
        return true_fn()
    if not is_tensor(pred):
        return true_fn() if pred else false_fn()
    return df.cond(_truth(pred), true_fn, false_fn)


def switch(index: Any, branches: Sequence[Callable[..., Any]], *operands: Any) -> Any:
    """``branches[index](*operands)``, with the index clipped to the range of the branches."""
    clipped = df.clip_by_value(convert_to_tensor(index, "int32"), 0, len(branches) - 1)
    return df.switch_case(clipped, [_bound(branch, operands) for branch in branches])


def while_loop(
    cond: Callable[..., Any],
    body: Callable[..., Any],
    loop_vars: Any,
    maximum_iterations: int | None = None,
) -> Any:
    """The final values of ``loop_vars = body(*loop_vars)``, repeated while ``cond(*loop_vars)`` is true."""
    is_sequence = isinstance(loop_vars, tuple | list)
    start = tuple(loop_vars) if is_sequence else (loop_vars,)

    def iteration(*values: Any) -> Any:
        result = body(*values)
        return tuple(result) if isinstance(result, tuple | list) else (result,)

    def condition(*values: Any) -> Any:
        return _truth(convert_to_tensor(cond(*values)))

    final = df.while_loop(condition, iteration, start, maximum_iterations=maximum_iterations)
    return tuple(final) if is_sequence else final[0]


def fori_loop(lower: Any, upper: Any, body_fun: Callable[[Any, Any], Any], init_val: Any) -> Any:
    """``init_val`` after ``body_fun(i, value)`` for each ``i`` from ``lower`` to before ``upper``."""
    return df.while_loop(
        lambda i, _: i < upper,
        lambda i, value: (i + 1, body_fun(i, value)),
        (convert_to_tensor(lower), init_val),
    )[1]


def _truth(pred: Any) -> Any:
    """A scalar as a bool tensor; numbers other than 0 are true."""
    tensor = convert_to_tensor(pred)
    return tensor if tensor.dtype is df.bool else df.cast(tensor, df.bool)


def _bound(branch: Callable[..., Any], operands: tuple[Any, ...]) -> Callable[[], Any]:
    return lambda: branch(*operands)
