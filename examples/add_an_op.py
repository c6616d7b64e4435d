"""Add an op in one place: hypot(x, y), the length of the vector (x, y), without overflow.

One record contains everything that the engines need: they run the op eagerly, differentiate it to any order,
compile it into fused machine code, and test it. No other file of dualflow contains its name.

    python examples/add_an_op.py
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import dualflow as df
from dualflow.ops.elementwise import as_real_float, elementwise
from dualflow.ops.samples import reals
from dualflow.ops.testing.cases import cases


def element(m: Any, x: Any, y: Any) -> Any:
    """One element: ``big * sqrt(1 + (small / big) ** 2)``, whose squares stay below 1."""
    x, y = m.abs(x), m.abs(y)
    big, small = m.maximum(x, y), m.minimum(x, y)
    ratio = m.where(m.equal(big, small), 1, small / big)
    return m.where(m.isinf(x) | m.isinf(y), math.inf, big * m.sqrt(1 + ratio * ratio))


hypot = elementwise(
    "hypot",
    """``sqrt(x ** 2 + y ** 2)``, without overflow.""",
    dtype=as_real_float,  # integers become floats, complex numbers are errors
    eager=np.hypot,  # the eager kernel
    code=element,  # the compiled code: m emits vector instructions
    vjp=(lambda g, out, x, y: g * x / out, lambda g, out, x, y: g * y / out),  # ops: of any order
    samples=(reals(0.5, 50), reals(-50, -0.5)),  # the inputs of tests
    cost=12,  # the work of an element, in additions
)


def runs_now() -> None:
    """As any other op: it broadcasts, promotes dtypes, converts arguments, and explains errors."""
    print("hypot(3, [4, 0]) =", hypot(3, [4, 0]).numpy())
    x = df.constant([1e20, 3e30])
    print("sqrt(x * x + x * x) =", df.sqrt(x * x + x * x).numpy(), "   hypot(x, x) =", hypot(x, x).numpy())
    try:
        hypot(df.ones([2]), df.ones([3]))
    except df.errors.InvalidArgumentError as error:
        print("an error:", error)


def has_gradients() -> None:
    """To the second order: the gradient rule consists of ops, so that an outer tape records it."""
    x, y = df.constant(3.0), df.constant(4.0)
    with df.GradientTape() as outer:
        outer.watch(x)
        with df.GradientTape() as inner:
            inner.watch([x, y])
            length = hypot(x, y)
        slopes = inner.gradient(length, [x, y])
    curvature = outer.gradient(slopes[0], x)
    print(f"slopes at (3, 4): {[float(s) for s in slopes]}, curvature along x: {float(curvature):.4f}")


def compiles() -> None:
    """Into the machine code of the graph around it, fused with its neighbours."""

    @df.function
    def mean_length(x: df.Tensor, y: df.Tensor) -> df.Tensor:
        return df.reduce_mean(hypot(x - 1.0, y + 1.0))

    rng = np.random.default_rng(0)
    x, y = (df.constant(rng.normal(size=100_000).astype(np.float32)) for _ in range(2))
    expected = np.hypot(x.numpy() - 1, y.numpy() + 1).mean()
    print(f"mean length {float(mean_length(x, y)):.5f}, by NumPy {expected:.5f}")
    print(mean_length.status())


def passes_the_op_matrix() -> None:
    """The test of every op of dualflow, on inputs drawn from the record's samples.

    For each dtype, broadcast and memory layout, empty arrays, inf and nan, it compares compiled code with the
    eager kernel. The gradient is compared with differences.
    """
    count = 0
    for case in cases(hypot.op):
        expected = hypot(*case.inputs).numpy()
        compiled = df.function(hypot)(*case.inputs).numpy()
        assert compiled.dtype == expected.dtype
        assert compiled.shape == expected.shape
        np.testing.assert_allclose(
            compiled, expected, rtol=4 * np.finfo(compiled.dtype).eps, err_msg=str(case)
        )
        count += 1

    x, y = (df.constant(np.linspace(low, low + 40, 50)) for low in (0.5, -41.0))
    with df.GradientTape() as tape:
        tape.watch([x, y])
        total = df.reduce_sum(hypot(x, y))
    step = 1e-6
    for slope, shift in zip(tape.gradient(total, [x, y]), [(step, 0), (0, step)], strict=True):
        ahead, behind = (hypot(x + s * shift[0], y + s * shift[1]).numpy() for s in (1, -1))
        np.testing.assert_allclose(slope.numpy(), (ahead - behind) / (2 * step), rtol=1e-6)
    print(f"{count} cases agree between eager and compiled code, and both gradients with differences")


def main() -> None:
    for section in (runs_now, has_gradients, compiles, passes_the_op_matrix):
        print(f"\n== {section.__name__.replace('_', ' ')}: {(section.__doc__ or '').splitlines()[0]}")
        section()


if __name__ == "__main__":
    main()
