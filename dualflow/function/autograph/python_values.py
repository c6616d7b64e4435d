"""Fast paths of the operators for plain Python values; other values import the modules for tensors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

from dualflow.core.locks import imported
from dualflow.function.autograph.loop_options import loop_options

if TYPE_CHECKING:
    from dualflow.function.autograph.assigned_variables import AssignedNames

_CONTAINERS: Final = frozenset({list, tuple, dict, set, frozenset, str, bytes, range})
_VALUES: Final = _CONTAINERS | {bool, int, float, complex, type(None)}
"""Types whose truth value Python computes."""
_ITERABLES: Final = _CONTAINERS | {
    *(type({}.keys()), type({}.values()), type({}.items()), zip, enumerate, reversed, map)
}
"""Types that Python iterates."""
_ON_CONTAINERS: Final = frozenset(
    {range, len, int, float, bool, list, tuple, dict, iter, enumerate, zip, reversed}
)
"""Built-in functions that read no element of a container."""
OVERLOADED: Final = _ON_CONTAINERS | {sum, min, max, sorted, map, filter, any, all, open}
"""Built-in functions that also take tensors."""
_BUILT_IN: Final = "dualflow.function.autograph.builtins"
_BRANCHES: Final = "dualflow.function.autograph.branches"
_LOOPS: Final = "dualflow.function.autograph.loops"
_UNPACKING: Final = "dualflow.function.autograph.unpacking"


def if_stmt(
    condition: Any,
    body: Callable[[], None],
    orelse: Callable[[], None] | None,
    names: AssignedNames,
    temporaries: Sequence[str],
) -> None:
    """``if condition: body() else: orelse()``"""
    if type(condition) not in _VALUES:
        imported(_BRANCHES).if_stmt(condition, body, orelse, names, temporaries)
    elif condition:
        body()
    elif orelse is not None:
        orelse()


def for_stmt(
    iterated: Any,
    extra_test: Callable[[], Any] | None,
    body: Callable[[Any], None],
    names: AssignedNames,
    temporaries: Sequence[str],
) -> None:
    """``for x in iterated: body(x)`` while ``extra_test()`` is true."""
    if extra_test is not None or type(iterated) not in _ITERABLES:
        imported(_LOOPS).for_stmt(iterated, extra_test, body, names, temporaries)
        return
    with loop_options(None):
        for x in iterated:
            body(x)


def overloaded(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """The result of a function of ``OVERLOADED``."""
    if function in _ON_CONTAINERS and all(type(x) in _ITERABLES or type(x) in _VALUES for x in args):
        return function(*args, **kwargs)
    return imported(_BUILT_IN).OVERLOADS[function](*args, **kwargs)


def if_exp(condition: Any, if_true: Callable[[], Any], if_false: Callable[[], Any], text: str) -> Any:
    """``if_true() if condition else if_false()``; ``text`` is the source of the condition."""
    if type(condition) in _VALUES:
        return if_true() if condition else if_false()
    return imported(_BRANCHES).if_exp(condition, if_true, if_false, text)


def and_(first: Any, second: Callable[[], Any]) -> Any:
    """``first and second()``; ``second`` is called only if it is needed."""
    if type(first) in _VALUES:
        return first and second()
    return imported(_BRANCHES).and_(first, second)


def or_(first: Any, second: Callable[[], Any]) -> Any:
    """``first or second()``; ``second`` is called only if it is needed."""
    if type(first) in _VALUES:
        return first or second()
    return imported(_BRANCHES).or_(first, second)


def not_(x: Any) -> Any:
    """``not x``"""
    return not x if type(x) in _VALUES else imported(_BRANCHES).not_(x)


def returned(value: Any, did_return: Any) -> Any:
    """The result of a function, whose flag ``did_return`` is whether a ``return`` was reached."""
    if did_return is True:
        return value
    return imported(_BRANCHES).returned(value, did_return)


def parts(x: Any) -> Any:
    """The iterable that ``a, b = x`` unpacks."""
    return x if type(x) in _ITERABLES else imported(_UNPACKING).parts(x)


def items(x: Any) -> Iterable[Any]:
    """The iterable of a comprehension over ``x``."""
    iterable: Iterable[Any] = x if type(x) in _ITERABLES else imported(_UNPACKING).items(x)
    return iterable
