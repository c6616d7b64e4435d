"""Python's built-in functions for symbolic tensors."""

from __future__ import annotations

import builtins
import functools
from collections.abc import Callable, Iterable
from typing import Any, Final

from dualflow.core import dispatch
from dualflow.core.dispatch import AbstractSource
from dualflow.core.dtypes import float32, int32
from dualflow.core.errors import DTypeError, OperatorNotAllowedInGraphError
from dualflow.function.autograph.branches import and_, or_
from dualflow.function.autograph.merge_values import condition_value, symbolic, truth
from dualflow.function.autograph.sequences import (
    LoopIterations,
    Progression,
    enumerated,
    iterations_of,
    zipped,
)
from dualflow.function.autograph.unpacking import items
from dualflow.function.errors import here
from dualflow.ops import positions
from dualflow.ops.arithmetic import maximum, minimum
from dualflow.ops.broadcasting import reduce_sum
from dualflow.ops.conversion import cast
from dualflow.ops.joining import stack, unstack
from dualflow.ops.reduction import argmax, argmin, reduce_all, reduce_any, reduce_max, reduce_min
from dualflow.ops.repetition import reverse
from dualflow.ops.shapes import shape
from dualflow.ops.sorting import argsort
from dualflow.ops.taking import gather


def _range(*limits: Any) -> Any:
    if all(symbolic(x) is None for x in limits):
        return range(*limits)
    return positions.range(*limits)


def _len(x: Any) -> Any:
    tensor = symbolic(x)
    if tensor is None:
        return len(x)
    sizes = tensor.get_shape()
    if not sizes:
        raise DTypeError("A tensor without axes has no len(); df.size(x) is its number of elements.")
    return shape(tensor)[0] if sizes[0] is None else sizes[0]


def _int(x: Any = 0, *base: Any, **named: Any) -> Any:
    tensor = symbolic(x)
    return int(x, *base, **named) if tensor is None else cast(tensor, int32)


def _open(file: Any, *options: Any, **named: Any) -> Any:
    if symbolic(file) is not None:
        raise DTypeError(
            f"open() needs a name, and {file!r} has none while the function is traced. Read the file with "
            f"df.io.read_file, or open it in a function for df.py_function.{here()}"
        )
    return open(file, *options, **named)


def _float(x: Any = 0.0) -> Any:
    tensor = symbolic(x)
    return float(x) if tensor is None else cast(tensor, float32)


def _bool(x: Any = False) -> Any:
    tensor = symbolic(condition_value(x))
    return bool(x) if tensor is None else truth(tensor, "bool()")


def _sum(x: Iterable[Any], /, start: Any = 0) -> Any:
    tensor = symbolic(x)
    return sum(items(x), start) if tensor is None else reduce_sum(tensor, 0) + start


def _extreme(
    python: Callable[..., Any],
    reduction: Callable[..., Any],
    pair: Callable[[Any, Any], Any],
    arg_reduction: Callable[..., Any],
) -> Callable[..., Any]:
    def extreme(*xs: Any, key: Any = None, **default: Any) -> Any:
        if key is None and len(xs) == 1 and symbolic(xs[0]) is not None:
            return reduction(symbolic(xs[0]), 0)
        values = tuple(items(xs[0])) if len(xs) == 1 else xs
        keys = values if key is None else tuple(map(key, values))
        if not values or all(symbolic(k) is None for k in keys):
            return python(values, key=key, **default)
        if key is None:
            return functools.reduce(pair, values)
        return gather(stack(values), arg_reduction(stack(keys), 0))

    return extreme


def _sorted(x: Iterable[Any], /, *, key: Any = None, reverse: bool = False) -> list[Any]:
    values = list(items(x))
    keys = values if key is None else [key(item) for item in values]
    if all(symbolic(k) is None for k in keys):
        return sorted(values, key=key, reverse=reverse)
    order = argsort(stack(keys), 0, "DESCENDING" if reverse else "ASCENDING", stable=True)
    return unstack(gather(stack(values), order))


def _reversed(x: Any) -> Any:
    iterations = iterations_of(x)
    if isinstance(iterations, Progression):
        last = iterations.start + (iterations.count - 1) * iterations.step
        return Progression(iterations.count, iterations.counter, last, -iterations.step, iterations.dtype)
    tensor = symbolic(x)
    return reversed(x) if tensor is None else reverse(tensor, [0])


def _map(function: Callable[..., Any], *xs: Any) -> Any:
    return map(function, *map(items, xs))


def _filter(function: Callable[..., Any] | None, x: Any) -> Any:
    for item in items(x):
        keep = item if function is None else function(item)
        if symbolic(keep) is not None:
            raise OperatorNotAllowedInGraphError(
                "filter() needs the truth value of a tensor, and the number of its items would be dynamic; "
                f"use df.boolean_mask, or a loop with an `if`.{here()}"
            )
        if keep:
            yield item


def _sequence(python: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x=(): python(items(x))


def _dict(x: Any = (), /, **named: Any) -> dict[Any, Any]:
    return dict(items(x) if isinstance(x, LoopIterations) else x, **named)


def _any(x: Iterable[Any]) -> Any:
    tensor = symbolic(x)
    if tensor is not None:
        return reduce_any(tensor, 0)
    result: Any = False
    for item in items(x):
        result = or_(result, functools.partial(_bool, item))
        if result is True:
            break
    return result


def _all(x: Iterable[Any]) -> Any:
    tensor = symbolic(x)
    if tensor is not None:
        return reduce_all(tensor, 0)
    result: Any = True
    for item in items(x):
        result = and_(result, functools.partial(_bool, item))
        if result is False:
            break
    return result


def _iter(x: Any, *sentinel: Any) -> Any:
    if isinstance(x, AbstractSource) and not dispatch.current().eager:
        return x.traced_iterator()
    return iter(x, *sentinel)


def _enumerate(x: Any, start: Any = 0) -> Any:
    if isinstance(x, AbstractSource):
        return x.enumerate(start)
    return enumerated(x, start) if _is_staged(x) else enumerate(x, start)


def _zip(*xs: Any, strict: bool = False) -> Any:
    if xs and all(isinstance(x, AbstractSource) for x in xs):
        return xs[0].zip(*xs)
    return zipped(xs) if any(map(_is_staged, xs)) else zip(*xs, strict=strict)


def _is_staged(x: Any) -> bool:
    return isinstance(x, LoopIterations) or symbolic(x) is not None


OVERLOADS: Final[dict[Any, Callable[..., Any]]] = {
    builtins.range: _range,
    builtins.len: _len,
    builtins.open: _open,
    builtins.int: _int,
    builtins.float: _float,
    builtins.bool: _bool,
    builtins.sum: _sum,
    builtins.min: _extreme(builtins.min, reduce_min, minimum, argmin),
    builtins.max: _extreme(builtins.max, reduce_max, maximum, argmax),
    builtins.sorted: _sorted,
    builtins.reversed: _reversed,
    builtins.map: _map,
    builtins.filter: _filter,
    builtins.list: _sequence(builtins.list),
    builtins.tuple: _sequence(builtins.tuple),
    builtins.dict: _dict,
    builtins.any: _any,
    builtins.all: _all,
    builtins.iter: _iter,
    builtins.enumerate: _enumerate,
    builtins.zip: _zip,
}
"""The functions that converted code calls instead of built-in functions."""
