"""Sizes that only a run tells, as expressions that stand in the place of numbers.

An :class:`Extent` is a polynomial with integer coefficients over *atoms*: symbols, to each of which the run
gives a number, and quotients, maxima and the like of other expressions. It adds and multiplies as an int
does, so what computes with sizes computes with extents. Two extents are equal exactly if their polynomials
are, so an extent equals no number: code for extents is code for any size. Asking whether one is less than
another is decided by what is known of the symbols; what can't be decided, and what wants a number, raises
:class:`UndecidedSize`.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple, NoReturn, Protocol

TYPICAL: Final = 1024
"""The number that a symbol is taken for where a choice of speed alone depends on it."""

_serial = itertools.count()


class UndecidedSize(Exception):
    """What was asked of a size depends on the run."""


class Atom(NamedTuple):
    """What a polynomial is made of.

    Attributes:
        name: tells atoms apart, and orders them.
        kind: "symbol", or the name of the :class:`SizeMaths` function that is applied to ``parts``.
        parts: numbers and extents.
        least: a number that it is never below; None for any.
    """

    name: str
    kind: str = "symbol"
    parts: tuple[int, ...] = ()
    least: int | None = None


Terms = Mapping[tuple[Atom, ...], int]


class SizeMaths(Protocol):
    """What computes the functions of atoms, for numbers or for what a program computes them with."""

    def quotient(self, x: Any, y: Any) -> Any:
        """``x // y``; 0 where ``y`` is 0."""

    def remainder(self, x: Any, y: Any) -> Any:
        """``x % y``; 0 where ``y`` is 0."""

    def largest(self, x: Any, y: Any) -> Any:
        """The larger one."""

    def smallest(self, x: Any, y: Any) -> Any:
        """The smaller one."""

    def from_end(self, x: Any, size: Any) -> Any:
        """``x``, a position counted from the end if it is negative, counted from the front."""

    def filled_in(self, x: Any, rest: Any) -> Any:
        """``x``, but ``rest`` where it is -1."""

    def met(self, x: Any, y: Any) -> Any:
        """``x``, but ``y`` where it is 1: the size of an axis on which both meet."""

    def repeating(self, stride: Any, size: Any) -> Any:
        """``stride``, but 0 where ``size`` is 1: the one element is repeated."""


if TYPE_CHECKING:
    _Size = int  # whatever computes with sizes takes an extent for one
else:
    _Size = object


class Extent(_Size):
    """A size, or another integer, that only the run tells; made by :func:`symbol` and arithmetic.

    >>> n = symbol(least=0)
    >>> n * 2 + n == 3 * n, (n * 6) // 3 == 2 * n, n == 3
    (True, True, False)
    >>> n + 1 > 0
    True
    """

    __slots__ = ("_hash", "terms")

    terms: Terms
    _hash: int

    def __new__(cls, terms: Terms) -> Extent:
        made: Extent = object.__new__(cls)
        made.terms = terms
        made._hash = hash(frozenset(terms.items()))
        return made

    def __add__(self, other: int) -> int:
        return _sum(self, other, 1) if _is_size(other) else NotImplemented

    __radd__ = __add__

    def __sub__(self, other: int) -> int:
        return _sum(self, other, -1) if _is_size(other) else NotImplemented

    def __rsub__(self, other: int) -> int:
        return _sum(-self, other, 1) if _is_size(other) else NotImplemented

    def __neg__(self) -> int:
        return _made({m: -c for m, c in self.terms.items()})

    def __pos__(self) -> int:
        return self

    def __mul__(self, other: int) -> int:
        if not _is_size(other):
            return NotImplemented
        found: dict[tuple[Atom, ...], int] = {}
        for (a, x), (b, y) in itertools.product(self.terms.items(), _terms(other).items()):
            monomial = tuple(sorted((*a, *b)))
            found[monomial] = found.get(monomial, 0) + x * y
        return _made(found)

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
        return isinstance(other, Extent) and self._hash == other._hash and self.terms == other.terms

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return self._hash

    def __lt__(self, other: int) -> bool:
        return is_less(self, other) if _is_size(other) else NotImplemented

    def __gt__(self, other: int) -> bool:
        return is_less(other, self) if _is_size(other) else NotImplemented

    def __le__(self, other: int) -> bool:
        return not is_less(other, self) if _is_size(other) else NotImplemented

    def __ge__(self, other: int) -> bool:
        return not is_less(self, other) if _is_size(other) else NotImplemented

    def __bool__(self) -> bool:
        least, most = bounds(self)
        if (least is not None and least > 0) or (most is not None and most < 0):
            return True
        return self._undecided()

    def _undecided(self) -> NoReturn:
        raise UndecidedSize(f"the size {self!r} is known only when it runs")

    def __index__(self) -> int:
        return self._undecided()

    __int__ = __float__ = __index__

    def __reduce__(self) -> tuple[Any, ...]:
        return Extent, (dict(self.terms),)

    def __repr__(self) -> str:
        shown = [
            "*".join([*([str(c)] if c != 1 or not m else []), *(a.name for a in m)])
            for m, c in self._in_order()
        ]
        return " + ".join(shown)

    def _in_order(self) -> list[tuple[tuple[Atom, ...], int]]:
        return sorted(self.terms.items(), key=lambda term: term[0])

    def atoms(self) -> Iterator[Atom]:
        """The atoms of the polynomial, and those of their parts."""
        for monomial in self.terms:
            for atom in monomial:
                yield atom
                for part in atom.parts:
                    if isinstance(part, Extent):
                        yield from part.atoms()

    def compute(self, known: Callable[[Atom], Any], maths: SizeMaths) -> Any:
        """The polynomial over the values that ``known`` has for symbols, by their operators and ``maths``."""
        total: Any = None
        for monomial, factor in self._in_order():
            product: Any = None
            for atom in monomial:
                value = _atom_value(atom, known, maths)
                product = value if product is None else product * value
            term = factor if product is None else product if factor == 1 else product * factor
            total = term if total is None else total + term
        return total


def _shown(monomial: Sequence[Atom], factor: int) -> str:
    return "*".join([*([str(factor)] if factor != 1 or not monomial else []), *(a.name for a in monomial)])


def symbol(least: int | None = None) -> Extent:
    """A new symbol, which is never below ``least`` if that is given."""
    return Extent({(Atom(f"n{next(_serial)}", least=least),): 1})


def symbol_of(extent: int) -> Atom | None:
    """The symbol that ``extent`` is; None if it is a number, or computed."""
    if not isinstance(extent, Extent) or len(extent.terms) != 1:
        return None
    ((monomial, factor),) = extent.terms.items()
    return monomial[0] if factor == 1 and len(monomial) == 1 and monomial[0].kind == "symbol" else None


def symbols(value: object) -> set[Atom]:
    """The symbols in ``value``: an extent, or extents somewhere in tuples, lists, dicts and slices."""
    if isinstance(value, Extent):
        return {a for a in value.atoms() if a.kind == "symbol"}
    if isinstance(value, tuple | list):
        return set().union(*map(symbols, value)) if value else set()
    return symbols(tuple(value.values())) if isinstance(value, dict) else set()


def is_fixed(sizes: Iterable[object]) -> bool:
    """Whether every one of ``sizes`` is a number."""
    return all(type(d) is int for d in sizes)


def number_of(value: int, known: Mapping[Atom, int]) -> int:
    """``value`` where symbols have the values ``known``."""
    return value.compute(known.__getitem__, NUMBERS) if isinstance(value, Extent) else value


def with_numbers(value: Any, known: Mapping[Atom, int]) -> Any:
    """``value``, an attribute of a node, with numbers in the place of its extents."""
    if isinstance(value, Extent):
        return number_of(value, known)
    if isinstance(value, tuple) and symbols(value):
        return type(value)(with_numbers(x, known) for x in value)
    return value


def typical(value: int) -> int:
    """A number like those that ``value`` may have, for choices of speed alone."""
    return max(0, value.compute(lambda atom: TYPICAL, NUMBERS)) if isinstance(value, Extent) else value


def may_be_negative(value: int) -> bool:
    """Whether ``value`` is less than 0 in some run."""
    if type(value) is int:
        return value < 0
    least, _ = bounds(value)
    return least is None or least < 0


def bounds(value: int) -> tuple[int | None, int | None]:
    """Numbers that ``value`` is never below, and never above; None where there is none."""
    if not isinstance(value, Extent):
        return value, value
    least: int | None = 0
    most: int | None = 0
    for monomial, factor in value.terms.items():
        low, high = _monomial_bounds(monomial)
        low, high = (low, high) if factor > 0 else (high, low)
        least = None if least is None or low is None else least + factor * low
        most = None if most is None or high is None else most + factor * high
    return least, most


def _monomial_bounds(monomial: Sequence[Atom]) -> tuple[int | None, int | None]:
    if not monomial:
        return 1, 1
    if len(monomial) == 1:
        return _atom_bounds(monomial[0])
    found = [_atom_bounds(a) for a in monomial]
    if any(low is None or low < 0 for low, _ in found):
        return None, None
    highs = [high for _, high in found if high is not None]
    least = math.prod(low for low, _ in found if low is not None)
    return least, math.prod(highs) if len(highs) == len(found) else None


def _atom_bounds(atom: Atom) -> tuple[int | None, int | None]:
    if atom.kind == "symbol":
        return atom.least, None
    (low, high), (other_low, other_high) = map(bounds, atom.parts)
    if atom.kind == "largest":
        lows, highs = [x for x in (low, other_low) if x is not None], (high, other_high)
        return max(lows, default=None), None if None in highs else max(highs)  # type: ignore[type-var]  # no None
    if atom.kind == "smallest":
        given, highs_known = (low, other_low), [x for x in (high, other_high) if x is not None]
        return None if None in given else min(given), min(highs_known, default=None)  # type: ignore[type-var]  # no None
    if atom.kind == "met" and low is not None and other_low is not None:
        return min(low, other_low), None
    if atom.kind == "repeating" and low is not None and low >= 0:
        return 0, high
    if atom.kind == "quotient" and low is not None and low >= 0 and other_low is not None and other_low >= 0:
        return 0, high
    if atom.kind == "remainder" and other_low is not None and other_low >= 0:
        return 0, None if other_high is None else max(other_high - 1, 0)
    return None, None


class _Numbers:
    """The functions of atoms for Python's numbers."""

    def quotient(self, x: int, y: int) -> int:
        return x // y if y else 0

    def remainder(self, x: int, y: int) -> int:
        return x % y if y else 0

    largest = staticmethod(max)
    smallest = staticmethod(min)

    def from_end(self, x: int, size: int) -> int:
        return x + size if x < 0 else x

    def filled_in(self, x: int, rest: int) -> int:
        return rest if x == -1 else x

    def met(self, x: int, y: int) -> int:
        return y if x == 1 else x

    def repeating(self, stride: int, size: int) -> int:
        return 0 if size == 1 else stride


NUMBERS: Final[SizeMaths] = _Numbers()


def _atom_value(atom: Atom, known: Callable[[Atom], Any], maths: SizeMaths) -> Any:
    if atom.kind == "symbol":
        return known(atom)
    parts = [x.compute(known, maths) if isinstance(x, Extent) else x for x in atom.parts]
    return getattr(maths, atom.kind)(*parts)


def _is_size(x: object) -> bool:
    return isinstance(x, Extent) or type(x) is int


def _terms(x: int) -> Terms:
    return x.terms if isinstance(x, Extent) else {(): x}


def _made(terms: Terms) -> int:
    kept = {m: c for m, c in terms.items() if c}
    if not kept:
        return 0
    return kept[()] if len(kept) == 1 and () in kept else Extent(kept)


def _sum(x: int, y: int, factor: int) -> int:
    found = dict(_terms(x))
    for monomial, c in _terms(y).items():
        found[monomial] = found.get(monomial, 0) + factor * c
    return _made(found)


def applied(kind: str, x: int, y: int) -> int:
    """The extent that the function ``kind`` of :class:`SizeMaths` makes of two sizes."""
    return Extent({(Atom(f"{kind}({x!r}, {y!r})", kind, (x, y)),): 1})


def _quotient(x: int, y: int) -> int:
    if not isinstance(x, Extent) and not isinstance(y, Extent):
        return x // y
    whole, rest = _divided(x, y)
    if rest == 0 or (type(rest) is int and type(y) is int):
        return whole + (rest // y if rest else 0)
    return whole + applied("quotient", rest, y)


def _remainder(x: int, y: int) -> int:
    if not isinstance(x, Extent) and not isinstance(y, Extent):
        return x % y
    _, rest = _divided(x, y)
    if rest == 0 or (type(rest) is int and type(y) is int):
        return rest % y if rest else 0
    return applied("remainder", rest, y)


def _divided(x: int, y: int) -> tuple[int, int]:
    """``x`` as a multiple of ``y``, where its terms are, and the terms that are none.

    Among numbers, the rest is between 0 and ``y``.
    """
    divisor = _terms(y)
    if len(divisor) != 1:
        return (1, 0) if x == y else (0, x)
    ((by, factor),) = divisor.items()
    whole: dict[tuple[Atom, ...], int] = {}
    rest: dict[tuple[Atom, ...], int] = {}
    for monomial, c in _terms(x).items():
        left = list(monomial)
        inside = all(_removed(left, atom) for atom in by)
        if inside and c % factor == 0:
            whole[tuple(left)] = c // factor
        elif inside and not by and not monomial:
            whole[()], rest[()] = divmod(c, factor)
        else:
            rest[monomial] = c
    return _made(whole), _made(rest)


def _removed(atoms: list[Atom], atom: Atom) -> bool:
    found = atom in atoms
    if found:
        atoms.remove(atom)
    return found


def is_less(x: int, y: int) -> bool:
    """Whether ``x`` is less than ``y`` in every run, or in none.

    Raises:
        UndecidedSize: runs differ in that.
    """
    low, high = bounds(x - y)
    if high is not None and high < 0:
        return True
    if low is not None and low >= 0:
        return False
    raise UndecidedSize(f"whether {x!r} is less than {y!r} is known only when it runs")
