"""Blocks of ``df.device`` in a traced function: each op runs on the device of its block."""

from __future__ import annotations

import copy
import pickle
import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from required_tools import require_module

import dualflow as df
from dualflow.compat import v1
from dualflow.core.device_names import CPU, GPU
from dualflow.graph.capabilities import KERNEL_DTYPES, Capabilities
from dualflow.graph.options import CompileOptions
from dualflow.graph.passes.pipeline import optimise

require_module("pyopencl")

from dualflow.backends.opencl.backend import build  # noqa: E402  # they import pyopencl
from dualflow.backends.opencl.capabilities import capabilities  # noqa: E402

X = df.constant(np.random.default_rng(0).normal(size=(5, 3)).astype(np.float32))
WHY = "it is in a block of df.device('/CPU:0')"


@pytest.fixture
def strict_placement() -> Iterator[None]:
    """No soft placement."""
    df.config.set_soft_device_placement(False)
    yield
    df.config.set_soft_device_placement(True)


def devices(results: Any) -> list[str]:
    """The device of each result: CPU or GPU."""
    return [{CPU: "CPU", GPU: "GPU"}[y.device] for y in results]


def status(function: Any) -> str:
    """The lines of the status about the function itself."""
    return str(function.status()).partition("in this process")[0]


def host_ops(function: Any) -> list[str]:
    """The ops that run on the host because of a block of the CPU, in order."""
    return re.findall(rf"numpy: (\w+) \({re.escape(WHY)}\)", status(function))


@df.function
def mixed(x):
    y = df.tanh(x) * 2.0
    with df.device("/CPU:0"):
        z = df.exp(y) + 1.0
    return z, df.reduce_sum(z * y, 0)


def test_a_block_of_the_cpu_in_a_function_on_the_device_runs_on_the_host() -> None:
    on_device, on_host = mixed(X.gpu()), mixed(X)
    assert devices(on_device) == ["CPU", "GPU"]
    mixed(X.gpu())
    assert host_ops(mixed) == ["exp", "add"]
    assert "1 transfer to the device (60 bytes), 1 transfer to the host (60 bytes)" in status(mixed)
    for y, expected in zip(on_device, on_host, strict=True):
        np.testing.assert_allclose(y.numpy(), expected.numpy(), rtol=1e-5)


def test_on_the_host_blocks_of_the_cpu_change_no_kernel() -> None:
    def plain(x):
        y = df.tanh(x) * 2.0
        z = df.exp(y) + 1.0
        return z, df.reduce_sum(z * y, 0)

    functions = mixed.python_function, plain
    graphs = [df.function(f).get_concrete_function(X.spec).optimised_graph for f in functions]
    with_blocks, without = (re.sub("   # .*|mixed|plain", "", str(graph)) for graph in graphs)
    assert with_blocks == without


def test_a_block_of_the_gpu_in_a_function_on_the_host_runs_on_the_device() -> None:
    @df.function
    def f(x):
        with df.device("/GPU:0"):
            y = df.tanh(x)
        with df.device("/CPU:0"):
            z = df.exp(y)
        return y, z

    for _ in range(3):
        assert devices(f(X)) == ["GPU", "CPU"]
    with df.device("/CPU:0"):  # the innermost block decides
        assert devices(f(X)) == ["GPU", "CPU"]
    assert host_ops(f) == ["exp"]


def test_the_innermost_block_decides_and_none_leaves_the_choice_to_the_function() -> None:
    @df.function
    def f(x):
        with df.device("/CPU:0"):
            a = df.exp(x)
            with df.device("/GPU:0"):
                b = df.sin(a)
            with df.device(None):
                c = df.cos(b)
            return df.tanh(c)

    assert devices([f(X.gpu())]) == ["CPU"]
    assert host_ops(f) == ["exp", "tanh"]


def test_equal_ops_of_two_devices_stay_two() -> None:
    @df.function
    def f(x):
        with df.device("/CPU:0"):
            a = df.exp(x)
        return a, df.exp(x)

    a, b = f(X.gpu())
    assert devices([a, b]) == ["CPU", "GPU"]
    np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-6)


def test_identity_in_a_block_is_a_copy_on_its_device() -> None:
    @df.function
    def f(x):
        with df.device("/CPU:0"):
            return df.identity(x * 1.0), df.reshape(x, [15])

    y, z = f(X.gpu())
    assert devices([y, z]) == ["CPU", "CPU"]
    assert y.numpy().tolist() == X.numpy().tolist()
    assert z.numpy().tolist() == X.numpy().reshape(15).tolist()


@pytest.mark.parametrize("inside", [True, False], ids=["tape inside", "tape outside"])
def test_a_gradient_runs_where_its_op_ran(inside: bool) -> None:
    def loss(x):
        with df.device("/CPU:0"):
            y = df.exp(x)
        return df.reduce_sum(df.sin(y))

    @df.function
    def gradient(x):
        with df.GradientTape() as tape:
            tape.watch(x)
            y = loss(x)
        return tape.gradient(y, x)

    x, f = X.gpu(), df.function(loss)
    if inside:
        result, expected = gradient(x), gradient(X)
    else:
        result, expected = (_gradient(f, argument) for argument in (x, X))
    assert result.device == CPU
    np.testing.assert_allclose(result.numpy(), expected.numpy(), rtol=1e-4, atol=1e-5)
    if inside:
        gradient(x)
        assert host_ops(gradient) == ["exp", "multiply"]


def _gradient(f: Any, x: Any) -> Any:
    with df.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    return tape.gradient(y, x)


def test_a_second_gradient_and_a_batch_keep_the_placement() -> None:
    def f(x):
        with df.device("/CPU:0"):
            return df.exp(2.0 * x)

    @df.function
    def second(x):
        with df.GradientTape() as outer:
            outer.watch(x)
            with df.GradientTape() as inner:
                inner.watch(x)
                y = f(x)
            slope = inner.gradient(y, x)
        return outer.gradient(slope, x)

    result = second(X.gpu())
    np.testing.assert_allclose(result.numpy(), 4 * np.exp(2 * X.numpy()), rtol=1e-4)
    assert set(host_ops(second)) <= {"exp", "multiply"}
    batched = df.function(lambda x: df.vectorized_map(f, x))
    assert devices([batched(X.gpu())]) == ["CPU"]


def test_branches_and_loops_with_a_block() -> None:
    @df.function
    def f(x):
        if df.reduce_sum(x) > 0.0:
            with df.device("/CPU:0"):
                y = df.exp(x)
        else:
            y = x
        for _ in df.range(3):
            with df.device("/CPU:0"):
                y = df.sin(y)
            y = y * 2.0
        return y

    for x in (df.abs(X), -df.abs(X)):
        np.testing.assert_allclose(f(x.gpu()).numpy(), f(x).numpy(), rtol=1e-5)


def test_a_function_that_is_called_in_a_block_of_another_one_runs_there() -> None:
    inner = df.function(lambda x: df.exp(x))

    @df.function
    def outer(x):
        with df.device("/CPU:0"):
            y = inner(x)
        return y, inner(x)

    for _ in range(2):
        assert devices(outer(X.gpu())) == ["CPU", "GPU"]
    assert devices([inner(X.gpu())]) == ["GPU"]


def test_random_numbers_of_a_block_are_those_of_the_host() -> None:
    def draw(x):
        with df.device("/CPU:0"):
            return df.random.normal([4], seed=3) + x[0, 0]

    results = []
    for x in (X.gpu(), X):
        df.random.set_seed(1)
        results.append(df.function(draw)(x).numpy())
    np.testing.assert_allclose(results[0], results[1], rtol=1e-5)


def test_sizes_that_are_known_at_run_time_only() -> None:
    @df.function(input_signature=[df.TensorSpec([None, 3])])
    def f(x):
        with df.device("/CPU:0"):
            y = df.reduce_sum(df.exp(x), 0)
        return y * 2.0

    for n in (5, 1, 0):
        np.testing.assert_allclose(f(X[:n].gpu()).numpy(), 2 * np.exp(X.numpy()[:n]).sum(0), rtol=1e-5)


@pytest.mark.parametrize("dtype", ["float16", "int8", "complex64", "bool", "float64"])
def test_dtypes(dtype: str) -> None:
    x = df.cast(df.constant([[1, 0, 1], [0, 1, 1]]), dtype)

    @df.function
    def f(x):
        with df.device("/CPU:0"):
            y = df.concat([x, x], 0)
        return df.transpose(y), y

    for y, expected in zip(f(x.gpu()), f(x), strict=True):
        assert y.dtype == expected.dtype
        assert y.numpy().tolist() == expected.numpy().tolist()


def test_a_failure_in_a_block_keeps_variables_and_names_the_line() -> None:
    with df.device("/GPU:0"):
        v = df.Variable([1.0, 2.0])

    @df.function
    def f(i):
        with df.device("/CPU:0"):
            picked = df.gather(v + 0.0, i)
        v.assign(picked)

    f(df.constant([1, 0]))
    with pytest.raises(df.errors.InvalidArgumentError, match="gather") as caught:
        f(df.constant([1, 7]))
    assert "picked = df.gather" in str(caught.value) or "in f" in "".join(caught.value.__notes__)
    assert (v.device, v.numpy().tolist()) == (GPU, [2.0, 1.0])


def test_copies_of_a_graph_keep_the_marks() -> None:
    graph = mixed.get_concrete_function(X.spec).graph
    marks = [node.device for node in graph.nodes]
    assert marks.count(CPU) == 3  # exp, the constant and add
    for copied in (copy.deepcopy(graph), pickle.loads(pickle.dumps(graph))):
        assert [node.device for node in copied.nodes] == marks


OPS = [
    df.exp,
    df.tanh,
    lambda x: x * 2.0,
    lambda x: x[::-1],
    lambda x: df.cumsum(x),
    lambda x: df.matmul(x, x),
]
SQUARE = df.constant(np.random.default_rng(1).uniform(-0.5, 0.5, (3, 3)).astype(np.float32))


@settings(max_examples=10, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from(OPS), st.sampled_from(["/CPU:0", "/GPU:0", None])), min_size=1, max_size=6
    )
)
def test_random_placements_change_no_result(program: list[tuple[Any, str | None]]) -> None:
    def f(x):
        for op, place in program:
            with df.device(place):
                x = df.tanh(op(x))
        return x

    placed = df.function(f)(SQUARE.gpu())
    last = program[-1][1]
    assert placed.device == (CPU if last == "/CPU:0" else GPU)
    np.testing.assert_allclose(placed.numpy(), f(SQUARE).numpy(), rtol=1e-4, atol=1e-5)


# Soft placement, and the log


@pytest.mark.usefixtures("strict_placement")
def test_without_soft_placement_an_op_without_device_code_in_a_block_is_an_error() -> None:
    @df.function
    def f(x):
        with df.device("/GPU:0"):
            return df.sort(x)

    with pytest.raises(df.errors.InvalidArgumentError, match=r"operation sort: .*NumPy sorts") as caught:
        f(X)
    assert "df.sort(x)" in str(caught.value)
    assert "set_soft_device_placement(True)" in str(caught.value)


@pytest.mark.parametrize("soft", [True, False])
def test_float64_without_the_extension_runs_on_the_host_or_is_an_error_that_names_it(soft: bool) -> None:
    @df.function
    def f(x):
        with df.device("/GPU:0"):
            return df.exp(x) * 2.0

    less = capabilities() & Capabilities(dtypes=KERNEL_DTYPES.replace("d", "").replace("D", ""))
    options = CompileOptions("opencl", capabilities=less, soft_placement=soft)
    x = np.arange(3.0)
    graph = optimise(f.get_concrete_function(df.TensorSpec([3], df.float64)).graph, options)
    if not soft:
        with pytest.raises(df.errors.InvalidArgumentError, match="lacks the extension cl_khr_fp64"):
            build(graph, options)
        return
    program = build(graph, options)
    np.testing.assert_allclose(program.run([x])[0], 2 * np.exp(x))
    assert "cl_khr_fp64" in program.parts[1].reason


@pytest.mark.usefixtures("strict_placement")
def test_without_soft_placement_ops_outside_of_blocks_and_effects_run_on_the_host() -> None:
    @df.function
    def f(x):
        with df.device("/GPU:0"):
            y = x * 2.0
            df.debugging.assert_less(y, 100.0)
        return df.sort(y)

    np.testing.assert_allclose(f(X).numpy(), np.sort(2 * X.numpy()), rtol=1e-6)


@pytest.mark.parametrize("soft", [True, False])
def test_a_session_allows_soft_placement(soft: bool, capsys: pytest.CaptureFixture[str]) -> None:
    with v1.Graph().as_default():
        x = v1.placeholder(df.float32, [3])
        with df.device("/gpu:0"):
            y = df.sort(x) * 2.0
        with df.device("/cpu:0"):
            z = y + 1.0
        config = v1.ConfigProto(allow_soft_placement=soft, log_device_placement=True)
        with v1.Session(config=config) as session:
            if not soft:
                with pytest.raises(df.errors.InvalidArgumentError, match="allow_soft_placement=True"):
                    session.run(z, {x: [3.0, 1.0, 2.0]})
                return
            assert session.run(z, {x: [3.0, 1.0, 2.0]}).tolist() == [3.0, 5.0, 7.0]
    log = capsys.readouterr().err.splitlines()
    assert [line for line in log if "constant" not in line] == [
        f"sort: (sort): {CPU}",
        f"multiply: (multiply): {GPU}",
        f"add: (add): {CPU}",
    ]


def test_the_log_has_what_a_call_of_a_function_runs_and_transfers(capsys: pytest.CaptureFixture[str]) -> None:
    x = X.gpu()
    df.debugging.set_log_device_placement(True)
    try:
        mixed(x)
    finally:
        df.debugging.set_log_device_placement(False)
    log = capsys.readouterr().err.splitlines()
    assert re.fullmatch(rf"Executed 2 kernels .*; 1 transfer .*60 bytes.* of mixed in device {GPU}", log[0])
    assert log[1:] == [f"Executed {op}: {WHY} of mixed in device {CPU}" for op in ("exp", "add")]
