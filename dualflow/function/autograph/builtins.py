"""Python's built-in functions, of tensors whose values are not known yet."""

from __future__ import annotations

import builtins
import functools
from collections.abc import Callable, Iterable
from typing import Any, Final

from dualflow.core.dtypes import float32, int32
from dualflow.core.errors import DTypeError
from dualflow.function.autograph.branches import and_, or_
from dualflow.function.autograph.sequences import Turns, enumerated, zipped
from dualflow.function.autograph.values import symbolic, truth
from dualflow.ops import positions
from dualflow.ops.arithmetic import maximum, minimum
from dualflow.ops.broadcasting import reduce_sum
from dualflow.ops.conversion import cast
from dualflow.ops.reduction import reduce_all, reduce_any, reduce_max, reduce_min
from dualflow.ops.shapes import shape


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
    symbol = symbolic(x)
    return bool(x) if symbol is None else truth(symbol, "bool()")


def _sum(x: Iterable[Any], /, start: Any = 0) -> Any:
    symbol = symbolic(x)
    return sum(x, start) if symbol is None else reduce_sum(symbol, 0) + start


def _extreme(
    python: Callable[..., Any], reduction: Callable[..., Any], pair: Callable[[Any, Any], Any]
) -> Callable[..., Any]:
    def extreme(*xs: Any, **named: Any) -> Any:
        if named:
            return python(*xs, **named)
        if len(xs) == 1 and symbolic(xs[0]) is not None:
            return reduction(symbolic(xs[0]), 0)
        several = tuple(xs[0]) if len(xs) == 1 else xs
        if all(symbolic(x) is None for x in several):
            return python(several)
        return functools.reduce(pair, several)

    return extreme


def _any(x: Iterable[Any]) -> Any:
    symbol = symbolic(x)
    if symbol is not None:
        return reduce_any(symbol, 0)
    found: Any = False
    for item in x:
        found = or_(functools.partial(_itself, found), functools.partial(_bool, item))
        if found is True:
            break
    return found


def _all(x: Iterable[Any]) -> Any:
    symbol = symbolic(x)
    if symbol is not None:
        return reduce_all(symbol, 0)
    found: Any = True
    for item in x:
        found = and_(functools.partial(_itself, found), functools.partial(_bool, item))
        if found is False:
            break
    return found


def _itself(x: Any) -> Any:
    return x


def _enumerate(x: Any, start: Any = 0) -> Any:
    return enumerated(x, start) if _is_staged(x) else enumerate(x, start)


def _zip(*xs: Any, strict: bool = False) -> Any:
    return zipped(xs) if any(map(_is_staged, xs)) else zip(*xs, strict=strict)


def _is_staged(x: Any) -> bool:
    return isinstance(x, Turns) or symbolic(x) is not None


OVERLOADS: Final[dict[Any, Callable[..., Any]]] = {
    builtins.range: _range,
    builtins.len: _len,
    builtins.int: _int,
    builtins.float: _float,
    builtins.bool: _bool,
    builtins.sum: _sum,
    builtins.min: _extreme(builtins.min, reduce_min, minimum),
    builtins.max: _extreme(builtins.max, reduce_max, maximum),
    builtins.any: _any,
    builtins.all: _all,
    builtins.enumerate: _enumerate,
    builtins.zip: _zip,
}
"""By the built-in function: what converted code calls in its place."""
