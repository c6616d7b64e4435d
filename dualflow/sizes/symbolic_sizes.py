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
import math
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final, NoReturn, Protocol, TypeVar

from dualflow.core.digest import digest
from dualflow.core.records import NamedTuple
from dualflow.core.shape import UNKNOWN_RANK
from dualflow.sizes.size_bounds import FUNCTION_BOUNDS, Bounds
from dualflow.sizes.size_maths import NUMBERS, SizeMaths

TYPICAL: Final = 1024
"""The value assumed for a size variable in decisions that affect speed alone."""

_LONGEST_NAME: Final = 400
"""The longest text, in characters, that names the function of a size."""
_serial = itertools.count()
T = TypeVar("T")


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
        ...

    def less(self, x: int, y: int) -> bool:
        """Whether ``x < y`` in the call."""
        ...


SIZE_DECISIONS: Final[ContextVar[SizeDecisions | None]] = ContextVar("dualflow_size_decisions", default=None)


class SizeFactor(NamedTuple):
    """A factor of a term: a size variable, or a function of two other sizes.

    Attributes:
        name: identifies the factor, and orders factors. Of a function it is the text, or a digest of a long
            text, which would double with each function that has an expression in both operands.
        kind: "variable", or the name of the :class:`SizeMaths` function that is applied to ``parts``.
        parts: the function's operands: numbers and symbolic sizes.
        least, most: the bounds of a variable; None without one.
    """

    name: str
    kind: str = "variable"
    parts: tuple[int, ...] = ()
    least: int | None = None
    most: int | None = None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SizeFactor) and self.name == other.name

    def __hash__(self) -> int:
        return hash(self.name)

    def __lt__(self, other: tuple[Any, ...]) -> bool:
        """The order of terms: that of creation for variables, so that a trace has the same text at any time.

        >>> SizeFactor("n9") < SizeFactor("n10")
        True
        """
        return (len(self.name), self.name) < (len(other[0]), other[0])


SizeVariable = SizeFactor
"""The same type, as the name for factors of kind "variable" in signatures."""
Terms = Mapping[tuple[SizeFactor, ...], int]
"""A polynomial: the coefficient of each product of factors."""


if TYPE_CHECKING:
    _Size = int  # for type checkers a symbolic size is an int, as code that computes with sizes treats it
else:
    _Size = object


class SymInt(_Size):
    """A symbolic integer: an expression over size variables, made by :func:`size_variable` and arithmetic.

    >>> n = size_variable(least=0)
    >>> n * 2 + n == 3 * n, (n * 6) // 3 == 2 * n, n == 3
    (True, True, False)
    >>> n + 1 > 0
    True
    """

    __slots__ = ("_bounds", "_hash", "_variables", "terms")

    terms: Terms
    _bounds: Bounds
    _hash: int
    _variables: frozenset[SizeFactor]

    def __new__(cls, terms: Terms) -> SymInt:
        polynomial: SymInt = object.__new__(cls)
        polynomial.terms = terms
        polynomial._hash = hash(frozenset(terms.items()))
        return polynomial

    def __add__(self, other: int) -> int:
        return _sum(self, other, 1) if _is_size(other) else NotImplemented

    __radd__ = __add__

    def __sub__(self, other: int) -> int:
        return _sum(self, other, -1) if _is_size(other) else NotImplemented

    def __rsub__(self, other: int) -> int:
        return _sum(-self, other, 1) if _is_size(other) else NotImplemented

    def __neg__(self) -> int:
        return _polynomial({m: -c for m, c in self.terms.items()})

    def __pos__(self) -> int:
        return self

    def __mul__(self, other: int) -> int:
        if type(other) is int:
            return self if other == 1 else _polynomial({m: c * other for m, c in self.terms.items()})
        if not isinstance(other, SymInt):
            return NotImplemented
        product: dict[tuple[SizeFactor, ...], int] = {}
        for (a, x), (b, y) in itertools.product(self.terms.items(), other.terms.items()):
            monomial = tuple(sorted((*a, *b)))
            product[monomial] = product.get(monomial, 0) + x * y
        return _polynomial(product)

    __rmul__ = __mul__

    def __floordiv__(self, other: int) -> int:
        return _quotient(self, other) if _is_size(other) else NotImplemented

    def __rfloordiv__(self, other: int) -> int:
        return _quotient(other, self) if _is_size(other) else NotImplemented

    def __mod__(self, other: int) -> int:
        return _remainder(self, other) if _is_size(other) else NotImplemented

    def __rmod__(self, other: int) -> int:
        return _remainder(other, self) if _is_size(other) else NotImplemented

    def __eq__(self, other: object) -> bool:
        if isinstance(other, SymInt):
            if self._hash == other._hash and self.terms == other.terms:
                return True
        elif type(other) is not int:
            return False
        decisions = SIZE_DECISIONS.get()
        return decisions is not None and decisions.equal(self, other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
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
        shown = [
            "*".join([*([str(c)] if c != 1 or not m else []), *(a.name for a in m)])
            for m, c in self._in_order()
        ]
        return " + ".join(shown)

    def _in_order(self) -> list[tuple[tuple[SizeFactor, ...], int]]:
        return sorted(self.terms.items(), key=lambda term: [(len(f.name), f.name) for f in term[0]])

    def operands(self) -> Iterator[SymInt]:
        """The symbolic sizes that the functions in the terms are applied to."""
        for monomial in self.terms:
            for factor in monomial:
                for part in factor.parts:
                    if isinstance(part, SymInt):
                        yield part

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
            factor = pending[-1]
            operands = [] if factor in done else [x for x in factor.parts if isinstance(x, SymInt)]
            missing = [f for x in reversed(operands) for f in x._last_first() if f not in done]
            pending += missing
            if not missing:
                pending.pop()
                if factor not in done:
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
        return set(_once(value, "_variables", _polynomial_variables))
    if isinstance(value, tuple | list):
        return set().union(*map(size_variables, value)) if value else set()
    return size_variables(tuple(value.values())) if isinstance(value, dict) else set()


def _polynomial_variables(value: SymInt) -> frozenset[SizeFactor]:
    named = [factor for monomial in value.terms for factor in monomial if factor.kind == "variable"]
    return frozenset(named).union(*[x._variables for x in value.operands()])


def _once(value: SymInt, name: str, compute: Callable[[SymInt], T]) -> T:
    """The attribute ``name`` of ``value``, which ``compute`` computes once from those of its operands."""
    pending = [value]
    while pending:
        size = pending[-1]
        missing = [] if hasattr(size, name) else [x for x in size.operands() if not hasattr(x, name)]
        pending += missing
        if not missing:
            pending.pop()
            if not hasattr(size, name):
                setattr(size, name, compute(size))
    attribute: T = getattr(value, name)
    return attribute


def is_static(sizes: Iterable[object]) -> bool:
    """Whether all ``sizes`` are ints; False for an unknown rank."""
    return sizes is not UNKNOWN_RANK and all(type(d) is int for d in sizes)


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
    number: int = value.compute(lambda x: min(variable, x.most // 2) if x.most else variable, NUMBERS)
    return max(0, number)


def bounds(value: int) -> Bounds:
    """The lower and the upper bound of ``value``; None where there is none."""
    if not isinstance(value, SymInt):
        return value, value
    return _once(value, "_bounds", _polynomial_bounds)


def _polynomial_bounds(value: SymInt) -> Bounds:
    lower: int | None = 0
    upper: int | None = 0
    for monomial, coefficient in value.terms.items():
        low, high = _monomial_bounds(monomial)
        low, high = (low, high) if coefficient > 0 else (high, low)
        lower = None if lower is None or low is None else lower + coefficient * low
        upper = None if upper is None or high is None else upper + coefficient * high
    return lower, upper


def _monomial_bounds(monomial: Sequence[SizeFactor]) -> Bounds:
    if not monomial:
        return 1, 1
    if len(monomial) == 1:
        return _factor_bounds(monomial[0])
    factor_bounds = [_factor_bounds(a) for a in monomial]
    if any(low is None or low < 0 for low, _ in factor_bounds):
        return None, None
    highs = [high for _, high in factor_bounds if high is not None]
    lower = math.prod(low for low, _ in factor_bounds if low is not None)
    return lower, math.prod(highs) if len(highs) == len(factor_bounds) else None


def _factor_bounds(factor: SizeFactor) -> Bounds:
    if factor.kind == "variable":
        return factor.least, factor.most
    bounds_of_function = FUNCTION_BOUNDS.get(factor.kind)
    return (None, None) if bounds_of_function is None else bounds_of_function(*map(bounds, factor.parts))


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
    nonzero = {m: c for m, c in terms.items() if c}
    if not nonzero:
        return 0
    return nonzero[()] if len(nonzero) == 1 and () in nonzero else SymInt(nonzero)


def _sum(x: int, y: int, sign: int) -> int:
    total = dict(_terms(x))
    for monomial, c in _terms(y).items():
        total[monomial] = total.get(monomial, 0) + sign * c
    return _polynomial(total)


def size_function(kind: str, x: int, y: int) -> int:
    """The symbolic size that is the function ``kind`` of :class:`SizeMaths` applied to two sizes."""
    text = f"{kind}({x!r}, {y!r})"
    if len(text) > _LONGEST_NAME:
        text = f"{kind}({digest(text.encode()).hex()})"
    return SymInt({(SizeFactor(text, kind, (x, y)),): 1})


def _quotient(x: int, y: int) -> int:
    if not isinstance(x, SymInt) and not isinstance(y, SymInt):
        return x // y
    quotient, remainder = _divided(x, y)
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
    _, remainder = _divided(x, y)
    if remainder == 0 or (type(remainder) is int and type(y) is int):
        return remainder % y if remainder else 0
    return size_function("remainder", remainder, y)


def _divided(x: int, y: int) -> tuple[int, int]:
    """Quotient and remainder of polynomial division: the terms of ``x`` that ``y`` divides, and the others.

    The remainder of numbers is between 0 and ``y``.
    """
    divisor = _terms(y)
    if len(divisor) != 1:
        return (1, 0) if _terms(x) == divisor else (0, x)
    ((divisor_term, coefficient),) = divisor.items()
    quotient: dict[tuple[SizeFactor, ...], int] = {}
    remainder: dict[tuple[SizeFactor, ...], int] = {}
    for monomial, c in _terms(x).items():
        remaining = list(monomial)
        divides = all(_remove_if_present(remaining, factor) for factor in divisor_term)
        if divides and c % coefficient == 0:
            quotient[tuple(remaining)] = c // coefficient
        elif divides and not divisor_term and not monomial:
            quotient[()], remainder[()] = divmod(c, coefficient)
        else:
            remainder[monomial] = c
    return _polynomial(quotient), _polynomial(remainder)


def _remove_if_present(factors: list[SizeFactor], factor: SizeFactor) -> bool:
    """Remove one occurrence of ``factor``; returns whether there was one."""
    present = factor in factors
    if present:
        factors.remove(factor)
    return present


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
