"""Eager execution: immediate results, gradients, Python control flow, errors with advice.

python examples/eager_basics.py
"""

from __future__ import annotations

import numpy as np

import dualflow as df


def values() -> None:
    """An op runs when it is called; its result converts to NumPy arrays and Python numbers."""
    x = df.constant([[1.0, 2.0], [3.0, 4.0]])
    y = x @ x + 1
    print(y)
    print("a row:", y[0].numpy(), " its type for NumPy:", np.asarray(y).dtype, " mean by NumPy:", np.mean(y))
    print("a number for Python:", float(df.reduce_sum(y)))


def gradients() -> None:
    """A tape records the ops in its block; nested tapes compute gradients of gradients."""
    x = df.constant(3.0)
    with df.GradientTape() as outer:
        outer.watch(x)
        with df.GradientTape() as inner:
            inner.watch(x)
            y = x**3
        slope = inner.gradient(y, x)
    curvature = outer.gradient(slope, x)
    print(f"x ** 3 at 3: value {float(y)}, slope {float(slope)}, curvature {float(curvature)}")


def fit() -> None:
    """A model is Python: variables, a loop, and a step down the gradient."""
    df.random.set_seed(0)
    inputs = df.random.normal([200])
    outputs = inputs * 3.0 + 2.0 + df.random.normal([200], stddev=0.1)
    weight, bias = df.Variable(0.0), df.Variable(0.0)
    for step in range(61):
        with df.GradientTape() as tape:
            loss = df.reduce_mean((inputs * weight + bias - outputs) ** 2)
        if step % 20 == 0:
            print(
                f"step {step:2}: loss {float(loss):.4f}, weight {float(weight):.2f}, bias {float(bias):.2f}"
            )
        slopes = tape.gradient(loss, [weight, bias])
        for variable, slope in zip((weight, bias), slopes, strict=True):
            variable.assign_sub(0.1 * slope)


def control_flow() -> None:
    """``if`` and ``while`` may test tensors, and a debugger may stop anywhere."""
    n = df.constant(27)
    steps = 0
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps += 1
    print("27 takes", steps, "Collatz steps to 1")


def own_gradient() -> None:
    """A function may define its own gradient: here a numerically stable log(1 + exp(x))."""

    @df.custom_gradient
    def log1pexp(x: df.Tensor) -> tuple[df.Tensor, object]:
        e = df.exp(x)
        return df.math.log(1 + e), lambda upstream: upstream * (1 - 1 / (1 + e))

    x = df.constant(100.0)
    with df.GradientTape() as tape:
        tape.watch(x)
        y = log1pexp(x)
    print("the slope of log(1 + exp(x)) at 100:", float(tape.gradient(y, x)))


def errors() -> None:
    """An error is raised at the line of the mistake, with the arguments and the remedy."""
    mistakes = {
        "df.matmul of [2, 3] and [2, 3]": lambda: df.matmul(df.ones([2, 3]), df.ones([2, 3])),
        "df.add of int32 and a list of strings": lambda: df.add(df.constant(1), ["one"]),
        "df.constant of a ragged list": lambda: df.constant([[1, 2], [3]]),
        "a tape that is used twice": used_twice,
    }
    for what, make in mistakes.items():
        try:
            make()
        except df.errors.DualflowError as error:
            print(f"{what}\n    {type(error).__name__}: {error}")
        else:
            raise AssertionError(f"{what} was accepted")


def used_twice() -> None:
    x = df.constant(1.0)
    with df.GradientTape() as tape:
        tape.watch(x)
        y = x * x
    tape.gradient(y, x)
    tape.gradient(y, x)


def main() -> None:
    for section in (values, gradients, fit, control_flow, own_gradient, errors):
        print(f"\n== {section.__name__.replace('_', ' ')}: {section.__doc__}")
        section()


if __name__ == "__main__":
    main()
