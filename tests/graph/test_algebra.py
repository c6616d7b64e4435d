"""Algebraic identities: each is applied where it holds, and changes no bit of any value."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from op_cases import check_each

import dualflow as df
from dualflow.core import dispatch
from dualflow.core.dtypes import ALL
from dualflow.core.errors import DTypeError, InvalidArgumentError
from dualflow.core.spec import TensorSpec
from dualflow.gradient.custom import CUSTOM
from dualflow.graph.interpret import evaluate
from dualflow.graph.ir import verify
from dualflow.graph.passes.algebra import RULES, simplify_algebra
from dualflow.graph.passes.dead_code import eliminate_dead_code
from dualflow.ops.broadcasting import broadcast_like
from dualflow.ops.record import REGISTRY
from dualflow.ops.taking import SCATTER_ONTO

FLOATS = np.array(
    [0.0, -0.0, 1.0, -1.0, 1.5, 3.0e38, -3.0e38, 1e-45, -1e-45, 1e-38, np.inf, -np.inf, np.nan], np.float32
)
INTEGERS = np.array([0, 1, -1, 2, 7, -(2**31), 2**31 - 1], np.int32)
X, N = TensorSpec(FLOATS.shape), TensorSpec(INTEGERS.shape, "int32")

POSITIONS = [0, 4, 1, 1, 0, 2, 2, 2, 4, 4, 4, 1, 0]


def onto(tensor, rows):
    return dispatch.current().apply(SCATTER_ONTO, (tensor, df.constant(POSITIONS), rows), {"axis": 0})


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
    "scatter onto zeros": (lambda x: onto(df.zeros([5]), x), X, ["constant", "scatter_add"]),
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
    "broadcast to the shape of another tensor": (
        lambda x: broadcast_like(x, df.reshape(df.stack([x, df.exp(x)]), [2, 13])),
        X,
        ["broadcast_to"],
    ),
    "broadcast to an equal shape": (lambda x: broadcast_like(x, df.exp(x)), X, []),
    "negative broadcast": (lambda x: -df.broadcast_to(x, [2, 13]), X, ["negative", "broadcast_to"]),
    "two transposes": (lambda x: df.transpose(df.transpose(df.reshape(x, [1, 13]))), X, ["reshape"]),
    "maximum over one": (lambda x: df.reduce_max(df.reshape(x, [13, 1]), 1), X, []),
    "sum over one": (lambda x: df.reduce_sum(df.reshape(x, [13, 1]), 1), X, ["constant", "add"]),
    "integer sum over one": (lambda n: df.reduce_sum(df.reshape(n, [7, 1]), 1), N, []),
}

KEPT = {
    "scatter onto negative zeros": (lambda x: onto(df.constant([-0.0] * 5), x), X),
    "x + 0.0 makes -0.0 zero": (lambda x: x + 0.0, X),
    "x - -0.0 likewise": (lambda x: x - -0.0, X),
    "x * 0 may be nan": (lambda x: x * 0.0, X),
    "x / 3 is no product": (lambda x: x / 3.0, X),
    "a divisor made of sizes is a parameter of the code": (lambda x: x / 8.0, X),
    "pow(x, 0.5) is no root at -inf": (lambda x: df.pow(x, 0.5), X),
    "float products do not regroup": (lambda x: x * 3.0 * 5.0, X),
    "float sums do not regroup": (lambda x: x + 3.0 + 5.0, X),
    "bfloat16 rounds int32": (lambda n: df.cast(df.cast(n, "bfloat16"), "float32"), N),
    "float32 rounds int32": (lambda n: df.cast(df.cast(n, "float32"), "int32"), N),
    "int16 cuts int32": (lambda n: df.cast(df.cast(n, "int16"), "int32"), N),
    "a complex product mixes parts": (lambda z: z * 1.0, TensorSpec([2], "complex64")),
}


PARTS = (0.0, -0.0, 1.0, -1.0, 0.1, -3.7, 2.5e4, 6e-8, np.inf, -np.inf, np.nan)
SPECIAL = {
    "b": np.array([True, False]),
    "i": np.array([0, 1, -1, 2, 7, 100, -100, -(2**7), 2**7 - 1, -(2**31), 2**31 - 1, -(2**63), 2**63 - 1]),
    "u": np.array([0, 1, 2, 7, 2**7, 2**8 - 1, 2**31, 2**31 + 5, 2**32 - 1, 2**64 - 1], np.uint64),
    "f": np.array([*PARTS, 3e38, -3e38, 1e-45, -1e-45, 1.7e308]),
    "c": np.array([complex(a, b) for a in PARTS for b in PARTS]),
}
DTYPES = [t.name for t in ALL]
ZEROS = (0, 0.0, -0.0, 0j, complex(-0.0, -0.0), complex(-0.0, 0.0), complex(0.0, -0.0))
NUMBERS = (*ZEROS, 1, 1.0, -1, -1.0, 1 + 0j, -1 + 0j, 2, 2.0, True, False)
WITH_A_NUMBER = (df.add, df.subtract, df.multiply, df.divide, df.pow)
WITH_ITSELF = {
    "x + -y": lambda x, y: x + -y,
    "-x + y": lambda x, y: -x + y,
    "x - -y": lambda x, y: x - -y,
    "-x * -y": lambda x, y: -x * -y,
    "-x / -y": lambda x, y: -x / -y,
    "--x": lambda x, y: -df.negative(x),
    "x + 2 + 3": lambda x, y: x + 2 + 3,
    "x * 3 * 5": lambda x, y: x * 3 * 5,
    "sum over one": lambda x, y: df.reduce_sum(x[None], 0),
    "sum over none": lambda x, y: df.reduce_sum(x, []),
    "product over one": lambda x, y: df.reduce_prod(x[None], 0),
    "maximum over one": lambda x, y: df.reduce_max(x[None], 0),
    "minimum over one": lambda x, y: df.reduce_min(x[None], 0),
    "any over one": lambda x, y: df.reduce_any(x[None], 0),
    "all over one": lambda x, y: df.reduce_all(x[None], 0),
}


def special(dtype):
    """The special values of a dtype's kind that the dtype has."""
    with np.errstate(all="ignore"):
        values = SPECIAL[np.dtype(dtype).kind]
        return np.unique(values.astype(dtype)) if values.dtype.kind in "iu" else values.astype(dtype)


def simplified(graph):
    verify(graph)
    simple = eliminate_dead_code(simplify_algebra(graph))
    verify(simple)
    return simple


def argument(spec):
    return {"f": FLOATS, "i": INTEGERS, "c": np.array([complex(np.inf, 0), 1 + 2j], np.complex64)}[
        spec.dtype.kind
    ]


def same_bits(x, y):
    """Equal to the bit, except that any nan is a nan."""
    if x.dtype != y.dtype or x.shape != y.shape:
        return False
    if x.dtype.kind == "c":
        return same_bits(x.real, y.real) and same_bits(x.imag, y.imag)
    if x.dtype.kind != "f":
        return x.tobytes() == y.tobytes()
    nan = np.isnan(x)
    return np.array_equal(nan, np.isnan(y)) and x[~nan].tobytes() == y[~nan].tobytes()


def unchanged(graph, *arrays):
    """Whether the simplified graph gives what ``graph`` gives."""
    (before,), (after,) = evaluate(graph, arrays), evaluate(simplified(graph), arrays)
    return same_bits(before, after)


@pytest.mark.parametrize("op", WITH_A_NUMBER)
def test_no_number_next_to_a_special_value_changes_it(traced, op):
    def check(case):
        dtype, number = case
        x = special(dtype)
        for function in (lambda x: op(x, number), lambda x: op(number, x)):
            try:
                graph = traced(function, TensorSpec(x.shape, dtype))
                assert unchanged(graph, x)
            except (DTypeError, InvalidArgumentError):
                continue

    check_each(itertools.product(DTYPES, NUMBERS), check)


@pytest.mark.parametrize("case", WITH_ITSELF)
def test_no_pair_of_special_values_changes(traced, case):
    def check(dtype):
        x = special(dtype)
        pairs = np.repeat(x, x.size), np.tile(x, x.size)
        try:
            graph = traced(WITH_ITSELF[case], *[TensorSpec(a.shape, dtype) for a in pairs])
        except DTypeError:
            return
        assert unchanged(graph, *pairs)

    check_each(DTYPES, check)


@pytest.mark.parametrize("source", DTYPES)
def test_no_chain_of_casts_changes_a_special_value(traced, source):
    x = special(source)

    def check(dtypes):
        between, target = dtypes
        graph = traced(lambda x: df.cast(df.cast(x, between), target), TensorSpec(x.shape, source))
        assert unchanged(graph, x)

    check_each(itertools.product(DTYPES, DTYPES), check)


@pytest.mark.parametrize("case", SIMPLER)
def test_an_identity_applies(traced, case):
    function, spec, ops = SIMPLER[case]
    assert [n.op.name for n in simplified(traced(function, spec)).nodes] == ops


@pytest.mark.parametrize("case", [*SIMPLER, *KEPT])
def test_no_value_changes(traced, case):
    function, spec = (SIMPLER.get(case) or KEPT[case])[:2]
    assert unchanged(traced(function, spec), argument(spec))


@pytest.mark.parametrize("case", KEPT)
def test_identities_of_real_numbers_do_not_apply_to_floats(traced, case):
    function, spec = KEPT[case]
    graph = eliminate_dead_code(traced(function, spec))
    assert len(simplified(graph).nodes) == len(graph.nodes)


def test_an_identity_that_broadcasts_keeps_the_shape(traced):
    graph = simplified(traced(lambda x: x * df.ones([4, 13]), X))
    assert [n.op.name for n in graph.nodes] == ["broadcast_to"]


def test_custom_gradients_are_removed_without_a_backward_pass(traced):
    @df.custom_gradient
    def clip(x):
        return df.minimum(x, 1.0), lambda g: g

    assert "custom_gradient" not in {n.op.name for n in simplified(traced(clip, X)).nodes}


def test_every_rule_reports_its_algebra_and_is_for_an_op_that_exists():
    for op, rules in RULES.items():
        assert op is REGISTRY.get(op.name, CUSTOM)
        assert all(rule.__doc__ for rule in rules)


def test_a_tensor_of_which_only_the_shape_is_used_is_not_computed():
    """The gradient of a mean is repeated to the shape of the mean's operand, here with a dynamic size."""
    gradient = df.function(df.autodiff.grad(lambda x: df.reduce_mean(df.sign(x) + x)))
    graph = gradient.get_concrete_function(df.TensorSpec([None, 3])).optimised_graph
    assert {"sign", "broadcast_like"}.isdisjoint(names_inside(graph))
    for n in (0, 1, 2, 33):
        np.testing.assert_array_equal(
            gradient(df.ones([n, 3])), np.full([n, 3], 1 / max(3 * n, 1), np.float32)
        )


@pytest.mark.parametrize("sizes", [(1, 5), (5, 5), (5, 1), (1, 1), (0, 1), (1, 0)])
def test_dynamic_sizes_of_which_either_may_be_one_broadcast_as_eagerly(sizes):
    compiled = df.function(broadcast_like, input_signature=[df.TensorSpec([None])] * 2)
    x, like = (df.range(n, dtype=df.float32) for n in sizes)
    np.testing.assert_array_equal(compiled(x, like), broadcast_like(x, like))


def names_inside(graph):
    """The names of the ops of a graph and of its fused nodes."""
    inside = [node for fused in graph.nodes for _, body in fused.bodies for node in body.nodes]
    return {node.op.name for node in (*graph.nodes, *inside)}
