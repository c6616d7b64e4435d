"""Python's control flow over tensors: the same source, eager and compiled, with the same results and errors.

A bouncing ball, a root by bisection, and a path up to its first leap: loops, branches, early returns, checks
and gradients, all in plain Python. Compiled loops over scalars are machine code.

    python examples/control_flow.py
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import dualflow as df


def bounces(height: Any, ratio: Any) -> Any:
    """The number of bounces above a millimetre, if each scales the height of the ball by ``ratio``."""
    assert 0.0 <= ratio < 1.0, "a ball that keeps its height never comes to rest"
    count = 0
    while height > 1e-3:
        height = height * ratio
        count += 1
    return count


def root(low: Any, high: Any, target: Any) -> Any:
    """The ``x`` with ``x * exp(x) == target``, by bisection."""
    if low * df.exp(low) > target:
        raise ValueError(f"{float(target):.1f} is left of the interval, which begins at {float(low):.1f}")
    iterations = 0
    while iterations < 60:
        middle = 0.5 * (low + high)
        if middle * df.exp(middle) > target:
            high = middle
        else:
            low = middle
        if high - low < 1e-6:
            break
        iterations += 1
    else:
        raise ArithmeticError("sixty halvings were not enough")
    return low


def path_length(points: Any, reach: Any) -> Any:
    """The length of the path through ``points``, up to the first step longer than ``reach``."""
    length = df.constant(0.0)
    last = points[0]
    for point in points[1:]:
        step = df.norm(point - last)
        if step > reach:
            return length
        length += step
        last = point
    return length


def described(number: Any) -> Any:
    """The sign of a number by ``match``, where -0 counts as 0."""
    match number:
        case 0:
            sign = 0
        case n if n > 0:
            sign = 1
        case _:
            sign = -1
    return sign


def slope(function: Callable[..., Any], x: Any, *others: Any) -> Any:
    """The derivative of ``function`` by its first argument."""
    with df.GradientTape() as tape:
        tape.watch(x)
        y = function(x, *others)
    return tape.gradient(y, x)


def both_ways(name: str, function: Callable[..., Any], *arguments: Any) -> None:
    """Print the result of a call in Python and compiled, which must be the same."""
    outcomes = []
    for call in (function, df.function(function)):
        try:
            outcomes.append(str(df.convert_to_tensor(call(*arguments)).numpy()))
        except (ArithmeticError, AssertionError, ValueError) as error:
            outcomes.append(f"{type(error).__name__}: {error}")
    now, compiled = outcomes
    if now != compiled:
        raise SystemExit(f"promise broken: {name} is {now} in Python, but {compiled} compiled")
    print(f"{name}: {now}")


def seconds(call: Callable[[], Any]) -> float:
    """The least time of five calls."""
    times = []
    for _ in range(5):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)


def main() -> None:
    both_ways("bounces of a lively ball", bounces, df.constant(2.0), df.constant(0.9))
    both_ways("bounces of a ball that never rests", bounces, df.constant(2.0), df.constant(1.5))
    both_ways("x with x exp(x) = 1", root, df.constant(0.0), df.constant(2.0), df.constant(1.0))
    both_ways("x with x exp(x) = -1", root, df.constant(0.0), df.constant(2.0), df.constant(-1.0))
    points = df.constant([[0.0, 0.0], [3.0, 4.0], [3.0, 5.0], [9.0, 5.0], [9.0, 6.0]])
    both_ways("a root in an endless interval", root, df.constant(0.0), df.constant(1e38), df.constant(1.0))
    both_ways("length of the path before a leap", path_length, points, df.constant(5.5))
    both_ways("length of the whole path", path_length, points, df.constant(10.0))
    both_ways("the sign of -7", described, df.constant(-7))

    compiled = df.function(path_length)
    now, later = (slope(f, points, df.constant(5.5)).numpy() for f in (path_length, compiled))
    if abs(now - later).max() > 1e-6:
        raise SystemExit("promise broken: the gradients differ")
    print(f"how it grows when the second point moves: {later[1]}")

    height, ratio = df.constant(2.0), df.constant(0.999)
    fast = df.function(bounces)
    iterations = int(fast(height, ratio))
    speedup = seconds(lambda: bounces(height, ratio)) / seconds(lambda: fast(height, ratio))
    print(f"{iterations} iterations over scalars, compiled: {speedup:.0f} times as fast as in Python")


if __name__ == "__main__":
    main()
