"""Fusion: which nodes become one loop nest, and which don't."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dualflow as df
from dualflow.graph.cost_model import CPU
from dualflow.graph.fused import FUSED, body_of
from dualflow.graph.interpret import evaluate
from dualflow.graph.ir import Graph, verify

Bodies = Callable[..., list[str]]


def spec(*shape: int, dtype: Any = df.float32) -> df.TensorSpec:
    return df.TensorSpec(shape, dtype)


MATRIX, SQUARE, VECTOR, ROW = spec(10, 20), spec(10, 10), spec(20), spec(10)


def optimised(function: Callable[..., Any], *specs: df.TensorSpec) -> Graph:
    graph: Graph = df.function(function).get_concrete_function(*specs).optimised_graph
    verify(graph)
    return graph


def kernels(function: Callable[..., Any], *specs: df.TensorSpec) -> list[str]:
    """The names of the loop nests that compute ``function``, in order."""
    return [node.attrs["body"].name for node in optimised(function, *specs).nodes if node.op is FUSED]


def layer_norm(x: Any, gain: Any, bias: Any) -> Any:
    mean = df.reduce_mean(x, -1, keepdims=True)
    variance = df.reduce_variance(x, -1, keepdims=True)
    return (x - mean) * df.rsqrt(variance + 1e-5) * gain + bias


# One nest


def test_a_chain_of_elements_is_one_nest_named_after_its_ops() -> None:
    assert kernels(lambda x: df.exp(df.sin(x) + 1.0), MATRIX) == ["sin+add+exp"]


@pytest.mark.parametrize("approximate", [False, True])
def test_gelu_is_one_nest(approximate: bool) -> None:
    assert len(kernels(lambda x: df.nn.gelu(x, approximate=approximate), MATRIX)) == 1


@pytest.mark.parametrize("axis", [0, 1])
def test_softmax_is_one_nest_with_both_of_its_reductions(axis: int) -> None:
    (name,) = kernels(lambda x: df.nn.softmax(x, axis=axis), MATRIX)
    assert name == "reduce_max+subtract+exp+reduce_sum+divide"


def test_layer_normalisation_is_one_nest() -> None:
    assert len(kernels(layer_norm, MATRIX, VECTOR, VECTOR)) == 1


def test_a_reduction_takes_in_what_it_reads_and_what_reads_it() -> None:
    assert kernels(lambda x: df.sqrt(df.reduce_sum(x * x)), MATRIX) == ["multiply+reduce_sum+sqrt"]


def test_several_reductions_over_the_same_axes_are_one_nest() -> None:
    assert len(kernels(lambda x: (df.reduce_sum(x, 1), df.reduce_max(x, 1), df.argmax(x, 1)), MATRIX)) == 1


def test_a_shared_value_is_computed_once_for_all_its_readers() -> None:
    (name,) = kernels(lambda x: (df.exp(x) + 1.0, df.exp(x) * 2.0), MATRIX)
    assert name == "exp+add+multiply"


def test_readers_of_one_argument_are_one_nest() -> None:
    assert kernels(lambda x: (df.exp(x), df.sin(x)), MATRIX) == ["exp+sin"]


def test_a_bias_broadcasts_inside_the_nest() -> None:
    assert kernels(lambda x, b: df.nn.relu(x * 2.0 + b), MATRIX, VECTOR) == ["multiply+add+relu"]


def test_an_argument_is_read_through_any_view() -> None:
    assert len(kernels(lambda x: df.exp(x) + df.transpose(x) + x[::-1] + x[:1], SQUARE)) == 1


def test_rows_gathered_from_an_argument_are_used_in_the_same_nest() -> None:
    picked = kernels(lambda x, i: df.exp(df.gather(x, i) + 1.0), MATRIX, spec(4, dtype=df.int32))
    assert picked == ["gather+add+exp"]


def test_a_dense_layer_is_a_product_and_a_nest() -> None:
    graph = optimised(lambda x, w, b: df.nn.relu(x @ w + b), MATRIX, spec(20, 5), spec(5))
    assert [n.op.name for n in graph.nodes] == ["matmul", "fused"]


def test_a_training_step_is_a_handful_of_nests() -> None:
    """784-128-10 with cross-entropy and descent: 5 products and what is between them."""
    rng = np.random.default_rng(0)
    shapes = [(784, 128), (128,), (128, 10), (10,)]
    variables = [df.Variable(rng.normal(size=s).astype(np.float32)) for s in shapes]

    def step(x: Any, y: Any) -> Any:
        w1, b1, w2, b2 = variables
        with df.GradientTape() as tape:
            logits = df.nn.relu(x @ w1 + b1) @ w2 + b2
            loss = df.reduce_mean(df.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits))
        for v, g in zip(variables, tape.gradient(loss, variables), strict=True):
            v.assign_sub(0.1 * g)
        return loss

    graph = optimised(step, spec(32, 784), spec(32, dtype=df.int32))
    products = [n.op.name for n in graph.nodes if n.op.name in ("matmul", "product_add")]
    assert len(products) == 5
    assert len([n for n in graph.nodes if n.op is FUSED]) <= 10


# More than one


def test_readers_of_a_whole_reduction_are_in_a_later_nest() -> None:
    assert kernels(lambda x: x - df.reduce_sum(x) * 2.0, MATRIX) == ["reduce_sum+multiply", "subtract"]


def test_reductions_over_different_axes_are_apart() -> None:
    assert kernels(lambda x: (df.reduce_sum(x, 0), df.reduce_sum(x, 1)), MATRIX) == ["reduce_sum"] * 2


def test_a_reduction_of_a_reduction_is_apart() -> None:
    assert kernels(lambda x: df.reduce_max(df.reduce_sum(x, 0)), MATRIX) == ["reduce_sum", "reduce_max"]


def test_a_computed_value_that_is_read_transposed_must_be_whole_first() -> None:
    names = kernels(lambda x: df.exp(x) + df.transpose(df.exp(x)), SQUARE)
    assert names == ["exp", "add"]


def test_a_computed_value_that_is_read_along_two_axes_must_be_whole_first() -> None:
    names = kernels(lambda x: df.sin(df.exp(x)[:, None] + df.exp(x)[None, :]), ROW)
    assert names == ["exp", "add+sin"]


def test_a_computed_value_that_is_picked_from_must_be_whole_first() -> None:
    names = kernels(lambda x, i: df.gather(df.exp(x), i) * 2.0, SQUARE, spec(10, dtype=df.int32))
    assert names == ["exp", "gather+multiply"]


def test_values_of_different_sizes_are_apart() -> None:
    assert kernels(lambda x, y: (df.exp(x), df.exp(y)), MATRIX, VECTOR) == ["exp", "exp"]


def test_ops_without_native_code_run_between_nests() -> None:
    graph = optimised(lambda x: df.exp(df.sort(df.exp(x))), VECTOR)
    assert [n.op.name for n in graph.nodes] == ["fused", "sort", "fused"]


def test_a_scan_is_a_nest_of_its_own() -> None:
    assert kernels(lambda x: df.exp(df.cumsum(df.exp(x))), MATRIX) == ["exp", "cumsum", "exp"]
    assert kernels(lambda x: (df.cumsum(x), df.cumsum(x, 1), df.exp(x)), MATRIX) == [
        "cumsum",
        "cumsum",
        "exp",
    ]
    assert kernels(lambda x: df.cumsum(df.zeros([40_000]) + df.range(4e4)), VECTOR)[-1] == "cumsum"


def test_the_order_of_lines_does_not_change_a_nest() -> None:
    def one(x: Any) -> Any:
        double = x + x
        square = x * x
        return double * (1.0 - square)

    def other(x: Any) -> Any:
        square = x * x
        double = x + x
        return double * (1.0 - square)

    assert kernels(one, VECTOR) == kernels(other, VECTOR)


@pytest.mark.parametrize("rows", [10, 100_000])
def test_a_cheap_value_is_computed_where_it_is_read_and_not_stored(rows: int) -> None:
    def both(x: Any, w: Any) -> Any:
        y = df.tanh(x)
        return y @ w, (y @ w) * (y * y)

    assert kernels(both, spec(rows, 20), spec(20, 20))[0] == "tanh"


def test_no_nest_is_left_over_whose_values_are_computed_where_they_are_read() -> None:
    def mean_and_slope(x: Any) -> Any:
        with df.GradientTape() as tape:
            tape.watch(x)
            mean = df.reduce_mean(df.reduce_sum(df.exp(x), 1))
        return mean, tape.gradient(mean, x)

    graph = optimised(mean_and_slope, df.TensorSpec([None, 3]))
    assert all(node.outputs for node in graph.nodes if node.op is FUSED)


@pytest.mark.llvm  # Numba's kernels hold no complex numbers
def test_complex_numbers_are_computed_with_by_parts() -> None:
    (name,) = kernels(lambda x: (x + x) * x, spec(10, dtype=df.complex64))
    assert name == "real_of+add_re+imag_of+add_im+multiply_re+multiply_im+joined"


@pytest.mark.llvm  # Numba's kernels hold no complex numbers
def test_only_the_parts_that_are_read_are_computed() -> None:
    assert kernels(lambda x: df.math.real(x + x), spec(10, dtype=df.complex64)) == ["real_of+add_re+real"]


def test_graphs_without_slices_are_unchanged() -> None:
    assert kernels(lambda x: df.sin(x), spec(10, dtype=df.complex64)) == []


def test_float16_is_cast_computed_in_float32_and_rounded_after_each_op() -> None:
    assert kernels(lambda x: (x + x) * x, spec(10, dtype=df.float16)) == ["cast+add+multiply"]


# Generated values


MANY = 20_000  # fewer positions are a constant


def test_a_value_made_of_positions_never_gets_memory_when_only_loops_read_it() -> None:
    function = df.function(lambda x: df.reduce_max(x * df.linspace(0.0, 1.0, MANY)))
    concrete = function.get_concrete_function(spec(MANY))
    assert len(concrete.optimised_graph.nodes) == 1
    plan = concrete.compiled.executable.plan
    assert (plan.inputs, plan.constants, plan.arena_bytes) == (1, (), 0)


def test_a_value_made_of_positions_gets_memory_when_a_view_shows_it() -> None:
    function = df.function(lambda x: x * df.linspace(0.0, 1.0, MANY)[::-1])
    plan = function.get_concrete_function(spec(MANY)).compiled.executable.plan
    assert plan.arena_bytes == pytest.approx(4 * MANY, abs=64)


# Sums in products


def test_a_product_takes_along_the_sum_it_feeds() -> None:
    graph = optimised(lambda x, y, c: c - 0.5 * (x @ y), SQUARE, SQUARE, SQUARE)
    (node,) = graph.nodes
    assert (node.op.name, node.attrs["scale"]) == ("product_add", -0.5)


def test_a_product_that_is_read_twice_takes_nothing_along() -> None:
    graph = optimised(lambda x: (x @ x + x, x @ x), SQUARE)
    assert [n.op.name for n in graph.nodes] == ["matmul", "fused"]


def test_a_product_added_to_itself_is_no_sum_to_take_along() -> None:
    def doubled(x: Any) -> Any:
        scaled = (x @ x) * 0.5
        return scaled + scaled

    graph = optimised(doubled, SQUARE)
    assert [n.op.name for n in graph.nodes] == ["matmul", "fused"]


def test_a_product_that_is_handed_back_takes_nothing_along() -> None:
    def both(x: Any) -> Any:
        product = x @ x
        return product, product + x

    graph = optimised(both, SQUARE)
    assert [n.op.name for n in graph.nodes] == ["matmul", "fused"]


# Always


def test_a_chain_longer_than_a_nest_may_be_is_several() -> None:
    def chain(x: Any) -> Any:
        for _ in range(CPU.max_ops + 10):
            x = df.sin(x)
        return x

    bodies = [body_of(n) for n in optimised(chain, VECTOR).nodes]
    assert [len(b.nodes) for b in bodies if b is not None] == [CPU.max_ops, 10]


def centred(x: Any) -> Any:
    return x - df.reduce_mean(x, 1, keepdims=True) + 0.1


def centred_columns(x: Any) -> Any:
    return df.tanh(x) - df.reduce_mean(x, 0, keepdims=True)


def added_softmax(x: Any) -> Any:
    return x + df.nn.softmax(x, axis=1)


@pytest.mark.parametrize("step", [centred, centred_columns, added_softmax])
@pytest.mark.parametrize("differentiate", [False, True])
def test_kernels_of_a_deep_chain_are_no_longer_than_those_of_a_shallow_one(
    step: Callable[[Any], Any], differentiate: bool
) -> None:
    def longest(depth: int) -> tuple[int, int]:
        """The most steps of a kernel, and the most runs of its reduced loops."""

        def chain(x: Any) -> Any:
            for _ in range(depth):
                x = step(x)
            return df.reduce_sum(x * x) if differentiate else x

        f = df.function(df.autodiff.grad(chain) if differentiate else chain)
        program = f.get_concrete_function(MATRIX).compiled.executable.program
        nests = [kernel.lowered_nest() for kernel in program.kernels]
        return max(len(nest.steps) for nest in nests), max(nest.stages for nest in nests)

    steps, stages = longest(40)
    assert steps <= longest(20)[0] < 40
    assert stages == CPU.max_stages


def test_a_product_of_a_product_is_not_stored_before_its_sum():
    def product(x: Any, y: Any) -> Any:
        return df.reduce_sum(x[:, :, None] * y[None], 1)

    f = df.function(lambda x: product(product(x, x) + 1, x))
    graph = f.get_concrete_function(spec(5, 5, dtype=df.int32)).optimised_graph
    assert [value.spec.shape for node in graph.nodes if node.op is FUSED for value in node.outputs] == [
        (5, 5)
    ] * 2


STEPS: list[Callable[[Any, Any], Any]] = [
    lambda x, y: x + y,
    lambda x, y: df.maximum(x, df.transpose(y)),
    lambda x, y: x - df.reduce_max(y, 0, keepdims=True),
    lambda x, y: x - df.reduce_sum(y, 1, keepdims=True),
    lambda x, y: x * df.reduce_sum(y),
    lambda x, y: df.gather(x, y[:, 0] % 4),
    lambda x, y: df.cumsum(x) + y,
    lambda x, y: x[::-1] + df.reshape(y, [-1])[:4],
    lambda x, y: df.concat([x[:2], y[2:]], 0),
]


@given(st.lists(st.tuples(st.sampled_from(STEPS), st.integers(0, 5), st.integers(0, 5)), max_size=25))
@settings(deadline=None)
def test_no_two_groups_wait_for_each_other(steps: list[tuple[Any, int, int]]) -> None:
    """The fused graph is in order and computes the same, whichever values are read again how much later."""

    def function(x: Any) -> list[Any]:
        values = [x]
        for step, i, j in steps:
            values.append(step(values[-1 - i % len(values)], values[-1 - j % len(values)]))
        return values[-3:]

    concrete = df.function(function).get_concrete_function(spec(4, 4, dtype=df.int32))
    verify(concrete.optimised_graph)
    x = np.arange(16, dtype=np.int32).reshape(4, 4)
    expected = evaluate(concrete.graph, [x])
    for actual, desired in zip(evaluate(concrete.optimised_graph, [x]), expected, strict=True):
        np.testing.assert_array_equal(actual, desired, strict=True)
