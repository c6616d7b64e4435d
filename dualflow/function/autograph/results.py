"""The kinds of values that calls of functions return which are not the user's, as far as they can be told."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from dualflow.function.autograph.kinds import HOLDER, PLAIN, TENSOR, UNKNOWN, Kind, Known, joined

_PACKAGE: Final = __name__.partition(".")[0]
_TELLING: Final = frozenset(
    {isinstance, issubclass, hasattr, callable, type, len, id, repr, str, print, format, hash, dir, vars}
)
"""Built-in functions whose results are no tensors, whatever they are given."""
_COMPUTING: Final = frozenset({abs, pow, divmod})
_ASKING: Final = frozenset({any, all, min, max, sorted})
"""Built-in functions that test what is in a list."""
_SEQUENCES: Final = frozenset({"list", "tuple", "Sequence", "Iterator", "dict"})
_PLAIN_RESULTS: Final = frozenset({"bool", "int", "float", "str", "None", "Shape", "DType"})


class Tested(Exception):
    """Python may want the value of a tensor here."""


def computed(parts: Sequence[Known]) -> Known:
    """What an operator makes of its operands."""
    kinds = [x.kind for x in parts]
    return TENSOR if Kind.TENSOR in kinds else Known(max(kinds, default=Kind.PLAIN))


def is_ours(x: Any) -> bool:
    """Whether a function or class is this package's."""
    return (getattr(x, "__module__", None) or "").partition(".")[0] == _PACKAGE


def of_built_in(callee: Any, given: Sequence[Known], *, loose: bool) -> Known:
    """The result of one of Python's functions and classes.

    Raises:
        Tested: it looks into what it is given.
    """
    if callee in _TELLING:
        return PLAIN
    if callee in _COMPUTING:
        return computed(given)
    if callee in (getattr, setattr, next, iter):
        return UNKNOWN
    limit = Kind.HOLDER if callee in _ASKING else Kind.TENSOR
    if loose or any(x.kind >= limit for x in given):
        raise Tested
    if callee is zip:
        return _sequence_of(*[x.elements() for x in given])
    if callee is enumerate:
        return _sequence_of(PLAIN, given[0].elements())
    if callee in (list, tuple, reversed) and len(given) == 1:
        return given[0]
    if callee in (list, dict, set) and not given:
        return HOLDER
    most = joined([Known(x.kind) for x in given])
    return TENSOR if callee is sum and most.kind is Kind.HOLDER else most


def of_container(method: str, owner: Known, given: Sequence[Known]) -> Known:
    """The result of a method of a list, dict or string that changes nothing."""
    if method == "items":
        return _sequence_of(PLAIN, owner.elements())
    if method in ("values", "copy"):
        return owner
    if method in ("format", "join", "keys"):
        return PLAIN
    return joined([owner.elements() if owner.kind is Kind.HOLDER else PLAIN, *given])


def of_library(callee: Any, given: Sequence[Known]) -> Known:
    """The result of another function that is not the user's; this package's say it in their annotations."""
    if not is_ours(callee):
        return UNKNOWN if any(x.kind is not Kind.PLAIN for x in given) else PLAIN
    told = str(getattr(callee, "__annotations__", {}).get("return", "")).partition("[")[0]
    if told in _PLAIN_RESULTS:
        return PLAIN
    return HOLDER if told in _SEQUENCES else TENSOR


def _sequence_of(*parts: Known) -> Known:
    """A sequence of tuples of such parts."""
    return Known(Kind.HOLDER, each=Known(Kind.HOLDER, parts=parts))
