"""Symbolic sizes: expressions over sizes that are known at run time, used in place of ints.

A :class:`SymInt` is a polynomial with integer coefficients over *factors*: size variables, which each run
binds to numbers, and quotients, maxima and the like of other expressions. It adds and multiplies as an int
does, so code that computes with sizes computes with symbolic sizes as well. Two symbolic sizes are equal
exactly if their polynomials are, and none equals a number: code for symbolic sizes is code for any size.
Comparisons are decided by the variables' lower bounds; a comparison that these can't decide, and a use that
requires a number, raises :class:`UndecidedSize`. Where :data:`SIZE_DECISIONS` has a value, it decides
comparisons by the sizes of one call, equality too: then the code is for the sizes with the same outcomes.
Expressions share operands, and are deep: no function walks them as trees, or recurses.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final, NoReturn, Protocol

from dualflow.core.digest import digest
from dualflow.core.shape import PLAIN_SIZES, UNKNOWN_RANK
from dualflow.sizes.polynomials import Terms, divided, product
from dualflow.sizes.size_bounds import FUNCTION_BOUNDS, Bounds, polynomial_bounds
from dualflow.sizes.size_maths import NUMBERS, SizeMaths

TYPICAL: Final = 1024
"""The value assumed for a size variable in decisions that affect speed alone."""

_LONGEST_NAME: Final = 400
"""The longest text, in characters, that names the function of a size."""
_serial = itertools.count()
_INT: Final = frozenset({int})


class UndecidedSize(Exception):
    """The error for a decision that needs the value of a symbolic size, which is known at run time only.

    Attributes:
        location: the op whose sizes are inferred, and the line of the user's program; "" outside of a graph.
    """

    location: str = ""


class SizeDecisions(Protocol):
    """Decides comparisons of symbolic sizes by the sizes of one call, and records the outcomes."""

    def equal(self, x: int, y: int) -> bool:
        """Whether ``x == y`` in the call."""

    def less(self, x: int, y: int) -> bool:
        """Whether ``x < y`` in the call."""


SIZE_DECISIONS: Final[ContextVar[SizeDecisions | None]] = ContextVar("dualflow_size_decisions", default=None)


class SizeFactor(str):
    """A factor of a term: a size variable, or a function of two other sizes.

    As a string it is its name, which identifies it: dicts of terms hash and compare names at the speed of C.

    Attributes:
        name: identifies the factor. Of a function it is the text, or a digest of a long text, which would
            double with each function that has an expression in both operands.
        kind: "variable", or the name of the :class:`SizeMaths` function that is applied to ``parts``.
        parts: the function's operands: numbers and symbolic sizes.
        least, most: the bounds of a variable; None without one.
        bounds: the bounds of the factor.
        operand_factors: the factors in the function's operands, from the last to the first.
        variables: the variables in the operands.
        order: the key by which factors are sorted: variables by creation, so that a trace has the same text
            at any time.

    >>> SizeFactor("n9") < SizeFactor("n10")
    True
    """

    __slots__ = ("bounds", "kind", "least", "most", "name", "operand_factors", "order", "parts", "variables")

    name: str
    kind: str
    parts: tuple[int, ...]
    least: int | None
    most: int | None
    bounds: Bounds
    operand_factors: tuple[SizeFactor, ...]
    variables: frozenset[SizeFactor]
    order: tuple[int, str]

    def __new__(
        cls,
        name: str,
        kind: str = "variable",
        parts: tuple[int, ...] = (),
        least: int | None = None,
        most: int | None = None,
    ) -> SizeFactor:
        factor = str.__new__(cls, name)
        factor.name, factor.kind, factor.parts, factor.least, factor.most = name, kind, parts, least, most
        factor.bounds = (least, most) if kind == "variable" else _function_bounds(kind, parts)
        operands = [x for x in parts if isinstance(x, SymInt)]
        factor.operand_factors = tuple([f for x in reversed(operands) for f in x._last_first()])
        factor.variables = frozenset().union(*map(_polynomial_variables, operands))
        factor.order = len(name), name
        return factor

    def __lt__(self, other: str) -> bool:
        return self.order < (len(other), other)

    def __reduce__(self) -> tuple[Any, ...]:
        return SizeFactor, (self.name, self.kind, self.parts, self.least, self.most)


SizeVariable = SizeFactor
"""The same type, as the name for factors of kind "variable" in signatures."""


if TYPE_CHECKING:
    _Size = int  # for type checkers a symbolic size is an int, as code that computes with sizes treats it
else:
    _Size = object


def _sum(x: SymInt, y: int) -> int:
    if type(y) is int and y == 0:
        return x
    terms = dict(x.terms)
    if isinstance(y, SymInt):
        for monomial, c in y.terms.items():
            terms[monomial] = terms.get(monomial, 0) + c
        return _polynomial(terms)
    constant = terms[()] = terms.get((), 0) + y
    return SymInt(terms) if constant else _polynomial(terms)


def _difference(x: SymInt, y: int) -> int:
    if not isinstance(y, SymInt):
        return _sum(x, -y)
    terms = dict(x.terms)
    for monomial, c in y.terms.items():
        terms[monomial] = terms.get(monomial, 0) - c
    return _polynomial(terms)


def _product(x: SymInt, y: int) -> int:
    if isinstance(y, SymInt):
        return _polynomial(product(x.terms, y.terms))
    if y == 1 or y == 0:
        return x if y else 0
    return SymInt({m: c * y for m, c in x.terms.items()})


def _operator(name: str, function: Callable[[SymInt, int], int]) -> Callable[[SymInt, int], int]:
    """The operator of :class:`SymInt` that computes ``function`` once for each pair of operands."""

    def operator(self: SymInt, other: int) -> Any:
        if type(other) is not int and not isinstance(other, SymInt):
            return NotImplemented
        result = self.results.get((name, other))
        if result is None:
            result = self.results[name, other] = function(self, other)
        return result

    return operator


class SymInt(_Size):
    """A symbolic integer: an expression over size variables, made by :func:`size_variable` and arithmetic.

    >>> n = size_variable(least=0)
    >>> n * 2 + n == 3 * n, (n * 6) // 3 == 2 * n, n == 3
    (True, True, False)
    >>> n + 1 > 0
    True
    """

    __slots__ = ("_bounds", "_hash", "_ordered", "_text", "_variables", "results", "terms")

    terms: Terms
    results: dict[tuple[str, int], int]
    """The results of functions of this size and a second operand, by the function's name and the operand."""
    # computed at the first use
    _bounds: Bounds
    _hash: int
    _ordered: list[tuple[tuple[SizeFactor, ...], int]]
    _text: str
    _variables: frozenset[SizeFactor]

    def __init__(self, terms: Terms) -> None:
        self.terms = terms
        self.results = {}

    __add__ = __radd__ = _operator("+", _sum)
    __sub__ = _operator("-", _difference)
    __rsub__ = _operator("subtract from", lambda x, y: -x + y)
    __mul__ = __rmul__ = _operator("*", _product)
    __floordiv__ = _operator("//", lambda x, y: _quotient(x, y))
    __rfloordiv__ = _operator("divide", lambda x, y: _quotient(y, x))

    def __neg__(self) -> int:
        return self * -1

    def __pos__(self) -> int:
        return self

    def __mod__(self, other: int) -> int:
        return _remainder(self, other) if _is_size(other) else NotImplemented

    def __rmod__(self, other: int) -> int:
        return _remainder(other, self) if _is_size(other) else NotImplemented

    def __eq__(self, other: object) -> bool:
        if type(other) is not int:
            if not isinstance(other, SymInt):
                return False
            if self is other or self.terms == other.terms:
                return True
        decisions = SIZE_DECISIONS.get()
        return decisions is not None and decisions.equal(self, other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        try:
            return self._hash
        except AttributeError:
            self._hash = hash(frozenset([(m, 3 * c) for m, c in self.terms.items()]))  # hash(-1) == hash(-2)
            return self._hash

    def __lt__(self, other: int) -> bool:
        return _decided_less(self, other) if _is_size(other) else NotImplemented

    def __gt__(self, other: int) -> bool:
        return _decided_less(other, self) if _is_size(other) else NotImplemented

    def __le__(self, other: int) -> bool:
        return not _decided_less(other, self) if _is_size(other) else NotImplemented

    def __ge__(self, other: int) -> bool:
        return not _decided_less(self, other) if _is_size(other) else NotImplemented

    def __bool__(self) -> bool:
        lower, upper = bounds(self)
        if (lower is not None and lower > 0) or (upper is not None and upper < 0):
            return True
        decisions = SIZE_DECISIONS.get()
        return self._undecided() if decisions is None else not decisions.equal(self, 0)

    def _undecided(self) -> NoReturn:
        raise UndecidedSize(f"the size {self!r} is known only at run time")

    def __index__(self) -> int:
        return self._undecided()

    __int__ = __float__ = __index__

    def __reduce__(self) -> tuple[Any, ...]:
        return SymInt, (dict(self.terms),)

    def __repr__(self) -> str:
        try:
            return self._text
        except AttributeError:
            shown = [
                "*".join([*([str(c)] if c != 1 or not m else []), *[f.name for f in m]])
                for m, c in self._in_order()
            ]
            self._text = " + ".join(shown)
            return self._text

    def _in_order(self) -> list[tuple[tuple[SizeFactor, ...], int]]:
        """The terms in an order that depends on names alone."""
        try:
            return self._ordered
        except AttributeError:
            terms = list(self.terms.items())
            if len(terms) > 1:
                terms.sort(key=lambda term: [f.order for f in term[0]])
            self._ordered = terms
            return terms

    def compute(
        self,
        bound: Callable[[SizeFactor], Any],
        maths: SizeMaths,
        computed: dict[SizeFactor, Any] | None = None,
    ) -> Any:
        """The polynomial's value for variables of the values ``bound``, by their operators and ``maths``.

        ``computed`` keeps the values of factors: pass one dict for several polynomials to compute each once.
        """
        computed = {} if computed is None else computed
        for factor in self.new_factors(computed):
            computed[factor] = _factor_value(factor, bound, maths, computed)
        return self._sum_of(computed)

    def new_factors(self, done: Container[SizeFactor]) -> Iterator[SizeFactor]:
        """The factors that are not ``done``, each after those of its operands; the caller adds each to it."""
        pending = self._last_first()
        while pending:
            factor = pending.pop()
            if factor in done:
                continue
            missing = [f for f in factor.operand_factors if f not in done]
            if missing:
                pending += factor, *missing
            else:
                yield factor

    def _last_first(self) -> list[SizeFactor]:
        return [factor for monomial, _ in reversed(self._in_order()) for factor in reversed(monomial)]

    def _sum_of(self, values: Mapping[SizeFactor, Any]) -> Any:
        """The value of the polynomial for the ``values`` of its factors."""
        total: Any = None
        for monomial, coefficient in self._in_order():
            product: Any = None
            for factor in monomial:
                product = values[factor] if product is None else product * values[factor]
            term = coefficient if product is None else product if coefficient == 1 else product * coefficient
            total = term if total is None else total + term
        return total


PLAIN_SIZES.add(SymInt)


def size_variable(least: int | None = None, most: int | None = None) -> SymInt:
    """A new size variable, with the bounds ``least`` and ``most``."""
    return SymInt({(SizeFactor(f"n{next(_serial)}", least=least, most=most),): 1})


def variable_of(size: int) -> SizeFactor | None:
    """The variable that ``size`` consists of; None if it is a number or another expression."""
    if not isinstance(size, SymInt) or len(size.terms) != 1:
        return None
    ((monomial, coefficient),) = size.terms.items()
    return monomial[0] if coefficient == 1 and len(monomial) == 1 and monomial[0].kind == "variable" else None


def size_variables(value: object) -> set[SizeFactor]:
    """The variables in ``value``: a symbolic size, or symbolic sizes in tuples, lists and dicts."""
    if isinstance(value, SymInt):
        return set(_polynomial_variables(value))
    variables: set[SizeFactor] = set()
    if isinstance(value, (tuple, list)):
        for x in value:
            if type(x) is not int:
                variables |= _polynomial_variables(x) if isinstance(x, SymInt) else size_variables(x)
        return variables
    return size_variables(tuple(value.values())) if isinstance(value, dict) else variables


def _polynomial_variables(value: SymInt) -> frozenset[SizeFactor]:
    try:
        return value._variables
    except AttributeError:
        factors = {factor for monomial in value.terms for factor in monomial}
        named = frozenset([factor for factor in factors if factor.kind == "variable"])
        value._variables = named.union(*[factor.variables for factor in factors if factor.kind != "variable"])
        return value._variables


def is_static(sizes: Iterable[object]) -> bool:
    """Whether all ``sizes`` are ints; False for an unknown rank."""
    return sizes is not UNKNOWN_RANK and _INT.issuperset(map(type, sizes))


def evaluate_size(value: int, bound: Mapping[SizeFactor, int]) -> int:
    """The number that ``value`` is for variables of the values ``bound``."""
    return value.compute(bound.__getitem__, NUMBERS) if isinstance(value, SymInt) else value


def bind_sizes(value: Any, bound: Mapping[SizeFactor, int]) -> Any:
    """``value``, an attribute of a node, with numbers in place of its symbolic sizes."""
    if isinstance(value, SymInt):
        return evaluate_size(value, bound)
    if isinstance(value, tuple) and size_variables(value):
        return getattr(type(value), "_make", type(value))(bind_sizes(x, bound) for x in value)
    return value


def typical(value: int, variable: int = TYPICAL) -> int:
    """An estimate of ``value`` for cost models, for variables of ``variable``, or of half of their bound."""
    if not isinstance(value, SymInt):
        return value
    result = value.results.get(("typical", variable))
    if result is None:
        number: int = value.compute(lambda x: min(variable, x.most // 2) if x.most else variable, NUMBERS)
        result = value.results["typical", variable] = max(0, number)
    return result


def bounds(value: int) -> Bounds:
    """The lower and the upper bound of ``value``; None where there is none."""
    if not isinstance(value, SymInt):
        return value, value
    try:
        return value._bounds
    except AttributeError:
        value._bounds = polynomial_bounds(value.terms)
        return value._bounds


def _function_bounds(kind: str, parts: tuple[int, ...]) -> Bounds:
    bounds_of_function = FUNCTION_BOUNDS.get(kind)
    return (None, None) if bounds_of_function is None else bounds_of_function(*map(bounds, parts))


def _factor_value(
    factor: SizeFactor,
    bound: Callable[[SizeFactor], Any],
    maths: SizeMaths,
    computed: dict[SizeFactor, Any],
) -> Any:
    if factor.kind == "variable":
        return bound(factor)
    parts = [x._sum_of(computed) if isinstance(x, SymInt) else x for x in factor.parts]
    return getattr(maths, factor.kind)(*parts)


def _is_size(x: object) -> bool:
    return isinstance(x, SymInt) or type(x) is int


def _terms(x: int) -> Terms:
    return x.terms if isinstance(x, SymInt) else {(): x}


def _polynomial(terms: Terms) -> int:
    if 0 in terms.values():
        terms = {m: c for m, c in terms.items() if c}
    if not terms:
        return 0
    return terms[()] if len(terms) == 1 and () in terms else SymInt(terms)


def size_function(kind: str, x: int, y: int) -> int:
    """The symbolic size that is the function ``kind`` of :class:`SizeMaths` applied to two sizes."""
    symbolic, key = (x, (kind, y)) if isinstance(x, SymInt) else (y, (f"{kind} of", x))
    if not isinstance(symbolic, SymInt):
        return _new_function(kind, x, y)
    result = symbolic.results.get(key)
    if result is None:
        result = symbolic.results[key] = _new_function(kind, x, y)
    return result


def _new_function(kind: str, x: int, y: int) -> int:
    text = f"{kind}({x!r}, {y!r})"
    if len(text) > _LONGEST_NAME:
        text = f"{kind}({digest(text.encode()).hex()})"
    return SymInt({(SizeFactor(text, kind, (x, y)),): 1})


def _quotient(x: int, y: int) -> int:
    if not isinstance(x, SymInt) and not isinstance(y, SymInt):
        return x // y
    quotient, remainder = map(_polynomial, divided(_terms(x), _terms(y)))
    if type(remainder) is int and (remainder == 0 or type(y) is int):
        return quotient + (remainder // y if remainder else 0)
    if isinstance(remainder, SymInt) and type(y) is int and y > 0 and _is_negative(remainder):
        return quotient - _quotient(y - 1 - remainder, y)  # -n // 2 is -((n + 1) // 2)
    return quotient + size_function("quotient", remainder, y)


def _is_negative(size: SymInt) -> bool:
    """Whether the leading coefficient, that of the first non-constant term, is negative."""
    return next(c for monomial, c in size._in_order() if monomial) < 0


def _remainder(x: int, y: int) -> int:
    if not isinstance(x, SymInt) and not isinstance(y, SymInt):
        return x % y
    remainder = _polynomial(divided(_terms(x), _terms(y))[1])
    if remainder == 0 or (type(remainder) is int and type(y) is int):
        return remainder % y if remainder else 0
    return size_function("remainder", remainder, y)


def is_less(x: int, y: int) -> bool:
    """Whether ``x`` is less than ``y`` in every run; False if in none.

    Raises:
        UndecidedSize: it is less in some runs, or the bounds can't decide.
    """
    low, high = bounds(x - y)
    if high is not None and high < 0:
        return True
    if low is not None and low >= 0:
        return False
    raise UndecidedSize(f"whether {x!r} is less than {y!r} is known only at run time")


def _decided_less(x: int, y: int) -> bool:
    """Whether ``x < y``: by the current SizeDecisions, which may record a guard, else by :func:`is_less`."""
    decisions = SIZE_DECISIONS.get()
    return is_less(x, y) if decisions is None else decisions.less(x, y)
