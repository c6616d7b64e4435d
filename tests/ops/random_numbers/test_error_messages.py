"""Errors of ``df.random``: each states the rejected input and what to do."""

from __future__ import annotations

from error_cases import ErrorCases

import dualflow as df
from dualflow.core import dispatch
from dualflow.core.errors import DTypeError, InvalidArgumentError
from dualflow.core.spec import TensorSpec
from dualflow.ops.record import REGISTRY

random = df.random
V, C = df.ones([3]), df.constant([1j])
DIRECT = {"inferred", "run"}  # cases that call no public function


def inferred(name, *specs, **attrs):
    """The error of an op's spec rule for inputs of these shapes and dtypes."""
    return REGISTRY[name].specs([TensorSpec(*spec) for spec in specs], attrs)


def run(name, *inputs, **attrs):
    """What an op makes of these values."""
    return dispatch.current().apply(REGISTRY[name], inputs, attrs)


@df.function
def integers_between(low, high):
    return random.uniform([4], low, high, df.int32)


CASES = {
    "gamma numbers of less than 0": (
        lambda: random.gamma([2], -1.0),
        InvalidArgumentError,
        "alpha of 0 or more",
        "not -1.0",
    ),
    "Poisson numbers of less than 0": (
        lambda: random.poisson([2], -1.0),
        InvalidArgumentError,
        "a mean from 0",
        "not ",
    ),
    "Poisson numbers of a word": (
        lambda: random.poisson([2], "a"),
        DTypeError,
        "lam is of numbers",
        "df.cast",
    ),
    "a scalar to shuffle": (
        lambda: random.shuffle(3),
        InvalidArgumentError,
        "one axis or more",
        r"the shape is \(\)",
    ),
    "gamma numbers of integers": (
        lambda: random.gamma([2], df.constant(2)),
        DTypeError,
        "alpha is of floats, not int32",
        "df.cast",
    ),
    "logits of no classes": (
        lambda: random.categorical(df.ones([2, 0]), 3),
        InvalidArgumentError,
        "draws from 1 class or more",
        r"float32\[2, 0\] has none",
    ),
    "ints between tensors of no range": (
        lambda: integers_between(df.constant(5), df.constant(3)),
        InvalidArgumentError,
        "the run has others",
        "minval < maxval",
    ),
    "random ints": (
        lambda: random.normal([2], dtype=df.int32),
        DTypeError,
        "floats, not int32",
        "df.random.uniform",
    ),
    "ints without an end": (
        lambda: random.uniform([2], dtype=df.int32),
        InvalidArgumentError,
        "needs maxval",
        "never drawn",
    ),
    "ints of no range": (
        lambda: random.uniform([2], 3, 3, df.int32),
        InvalidArgumentError,
        "not 3 and 3",
        "minval < maxval",
    ),
    "categories": (
        lambda: random.categorical(V, 2),
        InvalidArgumentError,
        "float logits",
        r"\(rows, classes\)",
    ),
    "stateless ints of a normal distribution": (
        lambda: random.stateless_normal([2], (1, 2), dtype=df.int32),
        DTypeError,
        "are floats, not int32",
        "df.random.uniform",
    ),
    "stateless integers without an end": (
        lambda: random.stateless_uniform([2], (1, 2), dtype=df.int32),
        InvalidArgumentError,
        "uniform of int32 needs maxval",
        "minval=None too",
    ),
    "stateless integers from an empty range": (
        lambda: random.stateless_uniform([2], (1, 2), 3, 3, df.int32),
        InvalidArgumentError,
        "minval < maxval",
        "not 3 and 3",
    ),
    "stateless integers between vectors": (
        lambda: random.stateless_uniform([2], (1, 2), [0, 1], 3, df.int32),
        InvalidArgumentError,
        r"one number each, not of shapes \(2,\) and \(\)",
        "one number each",
    ),
    "a seed of three": (
        lambda: random.stateless_uniform([2], (1, 2, 3)),
        InvalidArgumentError,
        r"two integers, of shape \[2\], not \(1, 2, 3\)",
        "two integers",
    ),
    "a seed of floats": (
        lambda: random.stateless_uniform([2], (1.0, 2.0)),
        DTypeError,
        "two integers, not",
        "df.cast",
    ),
    "another algorithm": (
        lambda: random.stateless_uniform([2], (1, 2), alg="threefry"),
        InvalidArgumentError,
        "no algorithm 'threefry'",
        "use 'philox'",
    ),
    "stateless categories of a vector": (
        lambda: random.stateless_categorical(V, 2, (1, 2)),
        InvalidArgumentError,
        r"\(rows, classes\)",
        "reshape",
    ),
    "bounds of normal numbers": (
        lambda: random.stateless_parameterized_truncated_normal([2], (1, 2), 0.0, 1.0, 3.0, 2.0),
        InvalidArgumentError,
        "is below its largest",
        "check the parameters",
    ),
    "a counter that is no integer": (
        lambda: inferred("philox", ([], df.float32), ([], df.int64), ([], df.int64), count=1),
        DTypeError,
        "integers, not float32",
        "df.cast",
    ),
    "words at a counter that is no integer": (
        lambda: run("philox", 1.0, 0, 0, count=1),
        DTypeError,
        "integers, not float32",
        "df.cast",
    ),
    "truncated numbers at a counter that is no integer": (
        lambda: run("philox_truncated_normal", 1.0, 0, 0, count=1, dtype=df.float32),
        DTypeError,
        "integers, not float32",
        "df.cast",
    ),
    "numbers sampled at a counter that is no integer": (
        lambda: run("philox_sampled", 1.0, 0, 0, V, kind="gamma", dtype=df.float32),
        DTypeError,
        "integers, not float32",
        "df.cast",
    ),
    "several counters": (
        lambda: inferred("philox", ([2], df.int64), ([], df.int64), ([], df.int64), count=1),
        InvalidArgumentError,
        "one number each",
        "not of",
    ),
    "complex parameters": (
        lambda: random.stateless_poisson([1], (1, 2), C),
        DTypeError,
        "real parameters, not complex128",
        "df.cast",
    ),
}


ASKED_DIRECTLY = [case for case, (call, *_) in CASES.items() if DIRECT & {*call.__code__.co_names}]


class TestErrorMessages(ErrorCases):
    cases = CASES
    internal = ASKED_DIRECTLY
    raised_in = ("ops/random_numbers/*.py",)
