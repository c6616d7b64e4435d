"""The size from which one way of running a function is faster than another, by times at several sizes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

from dualflow.core.records import NamedTuple


class SizeTimes(NamedTuple):
    """The times of a call at one size: that of the arguments in bytes, and the seconds of both ways."""

    nbytes: int
    first: float
    second: float


def pays_from(times: Sequence[SizeTimes]) -> float | None:
    """The bytes of arguments from which on the second way is faster than the first; None if it never is.

    Between two sizes both times are powers of the size, which are straight lines on logarithmic axes.

    >>> pays_from([SizeTimes(100, 1.0, 4.0), SizeTimes(1600, 16.0, 4.0)])
    400.0
    """
    ordered = sorted(times)
    if not ordered or ordered[-1].second >= ordered[-1].first:
        return None
    size = float(ordered[0].nbytes)
    for small, large in pairwise(ordered):
        if small.second >= small.first and large.second < large.first:
            size = _crossing(small, large)
    return size


def _crossing(small: SizeTimes, large: SizeTimes) -> float:
    """The size between two at which both ways take the same time."""
    before, after = math.log(small.second / small.first), math.log(large.second / large.first)
    return float(small.nbytes * (large.nbytes / small.nbytes) ** (before / (before - after)))
