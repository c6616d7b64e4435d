"""Whether an eager and a compiled call have the same outcome."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dualflow.core.records import dataclass
from dualflow.core.tree import Structure
from dualflow.function.inspect.compare_report import Difference

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """What one call did: its results, flattened, and the variables after it."""

    structure: Structure
    results: list[Array]
    variables: list[Array]


def compared(eager: Outcome, graph: Outcome) -> Difference:
    """How far two outcomes of the same call are apart, and why they don't agree if they don't.

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
            apart, share = distance(a, b)
            largest, relative = max(largest, apart), max(relative, share)
            if share > tolerance(a.dtype) and not reason:
                reason = f"{name} differs by more than {tolerance(a.dtype):.1e}"
    return Difference(largest, relative, reason)


def agree(a: Array, b: Array) -> bool:
    """Whether two arrays have one shape and dtype, and elements that are as near as the dtype allows."""
    return a.shape == b.shape and a.dtype == b.dtype and distance(a, b)[1] <= tolerance(a.dtype)


def distance(a: Array, b: Array) -> tuple[float, float]:
    """The largest difference of two elements, and the same as a share of the largest magnitude."""
    if not a.size:
        return 0.0, 0.0
    apart, magnitude = _distances(a, b)
    largest = float(apart.max())
    if not largest:
        return 0.0, 0.0
    return largest, largest / magnitude if magnitude else math.inf


def first_apart(a: Array, b: Array) -> tuple[int, ...] | None:
    """Where the first elements stand that are too far apart; None if none are."""
    if not a.size:
        return None
    apart, magnitude = _distances(a, b)
    far = apart > tolerance(a.dtype) * magnitude
    return tuple(int(i) for i in np.unravel_index(np.argmax(far), a.shape)) if far.any() else None


def _distances(a: Array, b: Array) -> tuple[Array, float]:
    """How far each two elements are apart, nan and a number infinitely; the largest magnitude of ``a``."""
    wide = np.complex128 if a.dtype.kind == "c" else np.float64
    x, y = a.astype(wide), b.astype(wide)
    with np.errstate(all="ignore"):
        same = (a == b) | (np.isnan(x) & np.isnan(y))
        apart = np.where(same, 0.0, np.abs(x - y))
        magnitude = float(np.abs(np.where(np.isfinite(x), x, 0)).max())
    return np.nan_to_num(apart, nan=math.inf, posinf=math.inf), magnitude


def tolerance(dtype: np.dtype[Any]) -> float:
    """What rounding in another order may amount to; nothing for integers and bools."""
    return math.sqrt(np.finfo(dtype).eps) if dtype.kind in "fc" else 0.0
