"""Functions over the rows of tensors: one after another, or all at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from keras.src import tree

import dualflow as df
from keras_dualflow.src.core.conversion import convert_to_tensor


def map(f: Callable[[Any], Any], xs: Any) -> Any:
    """The results of ``f`` for each row of ``xs``, stacked."""
    return scan(lambda _, x: ((), f(x)), (), xs)[1]


def vectorized_map(function: Callable[[Any], Any], elements: Any) -> Any:
    """The results of ``function`` for each row of ``elements``, stacked; rows don't know of each other."""
    return df.vectorized_map(function, tree.map_structure(convert_to_tensor, elements))


def scan(
    f: Callable[[Any, Any], tuple[Any, Any]],
    init: Any,
    xs: Any = None,
    length: int | None = None,
    reverse: bool = False,
    unroll: int | bool = 1,
) -> tuple[Any, Any]:
    """Carry a value through the rows of ``xs``: ``carry, y = f(carry, row)``; the last carry and all ys.

    Raises:
        TypeError: ``f`` can't be called.
        ValueError: neither rows nor a length, or ``unroll`` is no positive integer.
    """
    if not callable(f):
        raise TypeError(f"`f` should be a callable. Received: f={f}")
    if not isinstance(unroll, bool) and (not isinstance(unroll, int) or unroll < 1):
        raise ValueError(f"`unroll` must be an positive integer or boolean. Received: unroll={unroll}")
    if xs is None and length is None:
        raise ValueError("Got no `xs` to scan over and `length` not provided.")
    raise NotImplementedError


def associative_scan(f: Callable[[Any, Any], Any], elems: Any, reverse: bool = False, axis: int = 0) -> Any:
    """``f`` of all elements up to each along ``axis``, for an ``f`` that may be applied in any grouping."""
    raise NotImplementedError
