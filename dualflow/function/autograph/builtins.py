"""Python's built-in functions, of tensors whose values are not known yet."""

from __future__ import annotations

import builtins
import functools
from collections.abc import Callable, Iterable
from typing import Any, Final

from dualflow.core.dispatch import AbstractSource
from dualflow.core.dtypes import float32, int32
from dualflow.core.errors import DTypeError, OperatorNotAllowedInGraphError
from dualflow.function.autograph.branches import and_, or_
from dualflow.function.autograph.merge_values import symbolic, tested, truth
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
    symbol = symbolic(x)
    if symbol is None:
        return len(x)
    if not symbol.shape:
        raise DTypeError("A tensor without axes has no len(); df.size(x) is its number of elements.")
    return shape(symbol)[0] if symbol.shape[0] is None else symbol.shape[0]


def _int(x: Any = 0, *base: Any, **named: Any) -> Any:
    symbol = symbolic(x)
    return int(x, *base, **named) if symbol is None else cast(symbol, int32)


def _float(x: Any = 0.0) -> Any:
    symbol = symbolic(x)
    return float(x) if symbol is None else cast(symbol, float32)


def _bool(x: Any = False) -> Any:
    symbol = symbolic(tested(x))
    return bool(x) if symbol is None else truth(symbol, "bool()")


def _sum(x: Iterable[Any], /, start: Any = 0) -> Any:
    symbol = symbolic(x)
    return sum(items(x), start) if symbol is None else reduce_sum(symbol, 0) + start


def _extreme(
    python: Callable[..., Any],
    reduction: Callable[..., Any],
    pair: Callable[[Any, Any], Any],
    place: Callable[..., Any],
) -> Callable[..., Any]:
    def extreme(*xs: Any, key: Any = None, **default: Any) -> Any:
        if key is None and len(xs) == 1 and symbolic(xs[0]) is not None:
            return reduction(symbolic(xs[0]), 0)
        several = tuple(items(xs[0])) if len(xs) == 1 else xs
        keys = several if key is None else tuple(map(key, several))
        if not several or all(symbolic(k) is None for k in keys):
            return python(several, key=key, **default)
        if key is None:
            return functools.reduce(pair, several)
        return gather(stack(several), place(stack(keys), 0))

    return extreme


def _sorted(x: Iterable[Any], /, *, key: Any = None, reverse: bool = False) -> list[Any]:
    several = list(items(x))
    keys = several if key is None else [key(item) for item in several]
    if all(symbolic(k) is None for k in keys):
        return sorted(several, key=key, reverse=reverse)
    order = argsort(stack(keys), 0, "DESCENDING" if reverse else "ASCENDING", stable=True)
    return unstack(gather(stack(several), order))


def _reversed(x: Any) -> Any:
    iterations = iterations_of(x)
    if isinstance(iterations, Progression):
        last = iterations.start + (iterations.count - 1) * iterations.step
        return Progression(iterations.count, iterations.counter, last, -iterations.step, iterations.dtype)
    symbol = symbolic(x)
    return reversed(x) if symbol is None else reverse(symbol, [0])


def _map(function: Callable[..., Any], *xs: Any) -> Any:
    return map(function, *map(items, xs))


def _filter(function: Callable[..., Any] | None, x: Any) -> Any:
    for item in items(x):
        wanted = item if function is None else function(item)
        if symbolic(wanted) is not None:
            raise OperatorNotAllowedInGraphError(
                "filter() asks for the truth of a tensor, and how many items are left would be known only "
                f"when it runs; use df.boolean_mask, or a loop with an `if`.{here()}"
            )
        if wanted:
            yield item


def _sequence(python: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x=(): python(items(x))


def _any(x: Iterable[Any]) -> Any:
    symbol = symbolic(x)
    if symbol is not None:
        return reduce_any(symbol, 0)
    found: Any = False
    for item in items(x):
        found = or_(found, functools.partial(_bool, item))
        if found is True:
            break
    return found


def _all(x: Iterable[Any]) -> Any:
    symbol = symbolic(x)
    if symbol is not None:
        return reduce_all(symbol, 0)
    found: Any = True
    for item in items(x):
        found = and_(found, functools.partial(_bool, item))
        if found is False:
            break
    return found


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
    builtins.any: _any,
    builtins.all: _all,
    builtins.enumerate: _enumerate,
    builtins.zip: _zip,
}
"""By the built-in function: what converted code calls in its place."""
