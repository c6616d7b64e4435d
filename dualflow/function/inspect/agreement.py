"""Compares the outcomes of an eager and a compiled call."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dualflow.core.records import dataclass
from dualflow.core.tree import Structure

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class Difference:
    """The difference of results and updated variables.

    Attributes:
        largest: the largest absolute difference of two elements; infinite between nan and a number.
        relative: the largest difference relative to the largest magnitude in its array.
        reason: why they don't agree; empty if they do. Floats agree if ``relative`` is at most the square
            root of the dtype's epsilon (3e-4 for float32), other values if they are equal.
    """

    largest: float
    relative: float
    reason: str = ""

    @property
    def agrees(self) -> bool:
        return not self.reason


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """The results of one call, flattened, and the variables after it."""

    structure: Structure
    results: list[Array]
    variables: list[Array]


def compared(eager: Outcome, graph: Outcome) -> Difference:
    """The difference of two outcomes of the same call.

    >>> from dualflow.core.tree import LEAF
    >>> one, other = (Outcome(LEAF, [np.float32([x, 4.0])], []) for x in (1.0, 1.5))
    >>> compared(one, other)
    Difference(largest=0.5, relative=0.125, reason='result 0 differs by more than 3.5e-04')
    """
    if eager.structure != graph.structure:
        return Difference(math.inf, math.inf, "the results have another structure")
    largest = relative = 0.0
    reason = ""
    for kind in ("results", "variables"):
        for i, (a, b) in enumerate(zip(getattr(eager, kind), getattr(graph, kind), strict=True)):
            name = f"{kind[:-1]} {i}"
            if a.shape != b.shape or a.dtype != b.dtype:
                both = f"{a.dtype}{list(a.shape)} and {b.dtype}{list(b.shape)}"
                return Difference(math.inf, math.inf, f"{name} is {both}")
            absolute, relative_error = distance(a, b)
            largest, relative = max(largest, absolute), max(relative, relative_error)
            if relative_error > tolerance(a.dtype) and not reason:
                reason = f"{name} differs by more than {tolerance(a.dtype):.1e}"
    return Difference(largest, relative, reason)


def agree(a: Array, b: Array) -> bool:
    """Whether two arrays have the same shape and dtype, and elements within the tolerance of the dtype."""
    return a.shape == b.shape and a.dtype == b.dtype and distance(a, b)[1] <= tolerance(a.dtype)


def distance(a: Array, b: Array) -> tuple[float, float]:
    """The largest difference of two elements, absolute and relative to the largest magnitude."""
    if not a.size:
        return 0.0, 0.0
    differences, magnitude = _distances(a, b)
    largest = float(differences.max())
    if not largest:
        return 0.0, 0.0
    return largest, largest / magnitude if magnitude else math.inf


def first_mismatch(a: Array, b: Array) -> tuple[int, ...] | None:
    """The index of the first elements whose difference exceeds the tolerance; None if there are none."""
    if not a.size:
        return None
    differences, magnitude = _distances(a, b)
    exceeds = differences > tolerance(a.dtype) * magnitude
    return tuple(int(i) for i in np.unravel_index(np.argmax(exceeds), a.shape)) if exceeds.any() else None


def _distances(a: Array, b: Array) -> tuple[Array, float]:
    """The differences of the elements, infinite between nan and a number; the largest magnitude of ``a``.

    Different strings, which have no magnitude, are infinitely far apart.
    """
    if a.dtype.kind == "O":
        return np.where(a == b, 0.0, math.inf), 0.0
    wide = np.complex128 if a.dtype.kind == "c" else np.float64
    x, y = a.astype(wide), b.astype(wide)
    with np.errstate(all="ignore"):
        same = (a == b) | (np.isnan(x) & np.isnan(y))
        differences = np.where(same, 0.0, np.abs(x - y))
        magnitude = float(np.abs(np.where(np.isfinite(x), x, 0)).max())
    return np.nan_to_num(differences, nan=math.inf, posinf=math.inf), magnitude


def tolerance(dtype: np.dtype[Any]) -> float:
    """The relative error that a different order of rounding may cause; 0 for integers and bools."""
    return math.sqrt(np.finfo(dtype).eps) if dtype.kind in "fc" else 0.0
