"""Inspect a compiled function: its graph, its values op by op, the origin of a nan, differences.

Nothing here needs a terminal. With one, ``newton.debug(x)`` opens pdb on the function's own lines.

    python examples/debugging.py [--out PICTURE]
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import dualflow as df
from dualflow.debugging import Step


@df.function
def newton(x):
    """The square root of x, by Newton's steps from 1."""
    root = df.ones_like(x)
    while df.reduce_max(df.abs(root * root - x)) > 1e-4:
        root = 0.5 * (root + x / root)
    return root


def the_graph(picture: Path) -> None:
    """As text, with your line of each op, and as a picture."""
    concrete = newton.get_concrete_function(df.TensorSpec([2]))
    print(concrete.graph)
    concrete.graph.draw(picture)
    print(f"drawn: {picture.name}, {picture.stat().st_size > 0}")


def op_by_op() -> None:
    """The trace evaluated with NumPy: each op with its line and its outputs, iteration by iteration."""
    iterations = count(1)

    def show(step: Step) -> None:
        if step.op == "divide":
            print(f"iteration {next(iterations)}, line {step.origin.line}: {step}")

    answer = newton.debug(df.constant([2.0, 9.0]), step=show)
    print("answer", answer.numpy())


def where_the_nan_comes_from() -> None:
    """The result is nan; with checks enabled, the first op that computes one raises an error."""

    @df.function
    def entropy(p):
        weights = p / df.reduce_sum(p)
        return -df.reduce_sum(weights * df.math.log(weights))

    p = df.constant([1.0, 0.0, 3.0])
    print("entropy", entropy(p).numpy())
    with numerics_checked():
        try:
            entropy(p)
        except df.errors.InvalidArgumentError as error:
            print("because", error)


@contextmanager
def numerics_checked() -> Iterator[None]:
    df.debugging.enable_check_numerics()
    try:
        yield
    finally:
        df.debugging.disable_check_numerics()


def python_and_graph() -> None:
    """A Python value is a constant of the graph, so that its calls do not count; ``verify`` finds it."""
    calls = count(1)

    @df.function
    def decayed(x):
        rate = 1.0 / next(calls)
        return df.exp(-x) * rate

    print(df.verify(newton, df.constant([2.0, 9.0])))
    print(df.verify(decayed, df.ones([3])))


def all_native() -> None:
    """A strict function raises an error for ops that would not run as machine code."""

    @df.function(strict=True)
    def noisy(x):
        return x + df.random.normal([3])

    try:
        noisy(df.zeros([3]))
    except df.errors.FailedPreconditionError as error:
        print(error)


def main() -> None:
    parser = argparse.ArgumentParser(description="See inside a compiled function.")
    parser.add_argument("--out", type=Path, metavar="PICTURE", help="keep the drawing: .svg, .png or .pdf")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        the_graph(options.out or Path(folder) / "newton.svg")
    for show in (op_by_op, where_the_nan_comes_from, python_and_graph, all_native):
        print()
        show()


if __name__ == "__main__":
    main()
