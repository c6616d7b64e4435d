"""Identities: each applies where it should, and leaves every value as it was, to the bit."""

from __future__ import annotations

import numpy as np
import pytest

import dualflow as df
from dualflow.core.spec import TensorSpec
from dualflow.gradient.custom import CUSTOM
from dualflow.graph.interpret import evaluate
from dualflow.graph.ir import verify
from dualflow.graph.passes.algebra import RULES, simplify_algebra
from dualflow.graph.passes.dead_code import eliminate_dead_code
from dualflow.ops.record import REGISTRY

FLOATS = np.array(
    [0.0, -0.0, 1.0, -1.0, 1.5, 3.0e38, -3.0e38, 1e-45, -1e-45, 1e-38, np.inf, -np.inf, np.nan], np.float32
)
INTEGERS = np.array([0, 1, -1, 2, 7, -(2**31), 2**31 - 1], np.int32)
X, N = TensorSpec(FLOATS.shape), TensorSpec(INTEGERS.shape, "int32")

SIMPLER = {
    "x * 1": (lambda x: x * 1.0, X, []),
    "x * ones": (lambda x: x * df.ones([13]), X, []),
    "x * -1": (lambda x: -1.0 * x, X, ["negative"]),
    "-x * -y": (lambda x: -x * -df.exp(x), X, ["exp", "multiply"]),
    "x / 1": (lambda x: x / 1.0, X, []),
    "x + -0.0": (lambda x: x + -0.0, X, []),
    "n + 0": (lambda n: n + 0, N, []),
    "x + -y": (lambda x: x + -df.exp(x), X, ["exp", "subtract"]),
    "-y + x": (lambda x: -df.exp(x) + x, X, ["exp", "subtract"]),
    "x - 0": (lambda x: x - 0.0, X, []),
    "x - -y": (lambda x: x - -df.exp(x), X, ["exp", "add"]),
    "--x": (lambda x: df.negative(df.negative(x)), X, []),
    "n + 2 + 3": (lambda n: n + 2 + 3, N, ["constant", "add"]),
    "n * 3 * 5": (lambda n: n * 3 * 5, N, ["constant", "multiply"]),
    "pow(x, 1)": (lambda x: df.pow(x, 1.0), X, []),
    "pow(x, 2)": (lambda x: df.pow(x, 2.0), X, ["multiply"]),
    "identity": (lambda x: df.identity(x), X, []),
    "stop_gradient": (lambda x: df.stop_gradient(x), X, []),
    "cast to its own dtype": (lambda x: df.cast(df.cast(x, "float64"), "float32"), X, []),
    "cast through a wider one": (lambda n: df.cast(df.cast(n, "int64"), "int16"), N, ["cast"]),
    "integer through float64": (lambda n: df.cast(df.cast(n, "float64"), "float32"), N, ["cast"]),
    "reshape and back": (lambda x: df.reshape(df.reshape(x, [13, 1]), [13]), X, []),
    "expand and squeeze": (lambda x: df.squeeze(df.expand_dims(x, 0), 0), X, []),
    "reshape to its own shape": (lambda x: df.reshape(x, [-1]), X, []),
    "broadcast to its own shape": (lambda x: df.broadcast_to(x, [13]), X, []),
    "two broadcasts": (
        lambda x: df.broadcast_to(df.broadcast_to(x, [2, 13]), [3, 2, 13]),
        X,
        ["broadcast_to"],
    ),
    "two transposes": (lambda x: df.transpose(df.transpose(df.reshape(x, [1, 13]))), X, ["reshape"]),
    "maximum over one": (lambda x: df.reduce_max(df.reshape(x, [13, 1]), 1), X, []),
    "sum over one": (lambda x: df.reduce_sum(df.reshape(x, [13, 1]), 1), X, ["constant", "add"]),
    "integer sum over one": (lambda n: df.reduce_sum(df.reshape(n, [7, 1]), 1), N, []),
}

KEPT = {
    "x + 0.0 makes -0.0 zero": (lambda x: x + 0.0, X),
    "x - -0.0 likewise": (lambda x: x - -0.0, X),
    "x * 0 may be nan": (lambda x: x * 0.0, X),
    "x / 3 is no product": (lambda x: x / 3.0, X),
    "a divisor made of sizes is a parameter of the code": (lambda x: x / 8.0, X),
    "pow(x, 0.5) is no root at -inf": (lambda x: df.pow(x, 0.5), X),
    "float products do not regroup": (lambda x: x * 3.0 * 5.0, X),
    "float sums do not regroup": (lambda x: x + 3.0 + 5.0, X),
    "float32 rounds int32": (lambda n: df.cast(df.cast(n, "float32"), "int32"), N),
    "int16 cuts int32": (lambda n: df.cast(df.cast(n, "int16"), "int32"), N),
    "a complex product mixes parts": (lambda z: z * 1.0, TensorSpec([2], "complex64")),
}


def simplified(graph):
    verify(graph)
    simple = eliminate_dead_code(simplify_algebra(graph))
    verify(simple)
    return simple


def argument(spec):
    return FLOATS if spec.dtype == "float32" else INTEGERS


def same_bits(x, y):
    """Equal to the bit, except that any nan is a nan."""
    nan = np.isnan(x) if x.dtype.kind == "f" else np.zeros(x.shape, bool)
    return (
        x.dtype == y.dtype
        and x.shape == y.shape
        and np.where(nan, 0, x).tobytes()
        == np.where(np.isnan(y) if y.dtype.kind == "f" else nan, 0, y).tobytes()
        and (not nan.any() or np.array_equal(nan, np.isnan(y)))
    )


@pytest.mark.parametrize("case", SIMPLER)
def test_an_identity_applies(traced, case):
    function, spec, ops = SIMPLER[case]
    assert [n.op.name for n in simplified(traced(function, spec)).nodes] == ops


@pytest.mark.parametrize("case", [*SIMPLER, *KEPT])
def test_no_value_changes(traced, case):
    function, spec = (SIMPLER.get(case) or KEPT[case])[:2]
    graph = traced(function, spec)
    x = argument(spec) if spec.dtype.kind != "c" else np.array([complex(np.inf, 0), 1 + 2j], np.complex64)
    (before,), (after,) = evaluate(graph, [x]), evaluate(simplified(graph), [x])
    if spec.dtype.kind == "c":
        assert np.array_equal(before, after, equal_nan=True)
    else:
        assert same_bits(before, after)


@pytest.mark.parametrize("case", KEPT)
def test_what_holds_only_of_real_numbers_does_not_apply(traced, case):
    function, spec = KEPT[case]
    graph = eliminate_dead_code(traced(function, spec))
    assert len(simplified(graph).nodes) == len(graph.nodes)


def test_an_identity_that_broadcasts_keeps_the_shape(traced):
    graph = simplified(traced(lambda x: x * df.ones([4, 13]), X))
    assert [n.op.name for n in graph.nodes] == ["broadcast_to"]


def test_a_custom_gradients_values_stand_for_themselves(traced):
    @df.custom_gradient
    def clip(x):
        return df.minimum(x, 1.0), lambda g: g

    assert "custom_gradient" not in {n.op.name for n in simplified(traced(clip, X)).nodes}


def test_every_rule_says_its_algebra_and_is_for_an_op_that_exists():
    for op, rules in RULES.items():
        assert op in {*REGISTRY, CUSTOM.name}
        assert all(rule.__doc__ for rule in rules)
