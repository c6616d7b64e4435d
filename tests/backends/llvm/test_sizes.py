"""Programs for all sizes: a new size only needs a new parameter table, no new machine code."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dualflow as df
from dualflow.backends.llvm.compile_graph import planned
from dualflow.backends.llvm.executable import Executable
from dualflow.backends.llvm.program import write
from dualflow.core.records import replace

Function = Callable[..., Any]


def layer_norm(x: Any, gain: Any) -> Any:
    mean = df.reduce_mean(x, -1, keepdims=True)
    return (x - mean) * df.rsqrt(df.reduce_variance(x, -1, keepdims=True) + 1e-5) * gain


def cross_entropy(logits: Any, labels: Any) -> Any:
    losses = df.nn.softmax_cross_entropy_with_logits(labels=labels, logits=logits)
    return df.reduce_mean(losses)


def attention(q: Any, k: Any) -> Any:
    return df.nn.softmax(df.matmul(q, k, transpose_b=True) * 0.1) @ k


FUNCTIONS: dict[str, tuple[Function, Callable[[int, int], list[tuple[int, ...]]]]] = {
    "gelu": (df.nn.gelu, lambda n, m: [(n, m)]),
    "softmax": (df.nn.softmax, lambda n, m: [(n, m)]),
    "softmax of columns": (lambda x: df.nn.softmax(x, axis=0), lambda n, m: [(n, m)]),
    "layer norm": (layer_norm, lambda n, m: [(n, m), (m,)]),
    "mean": (df.reduce_mean, lambda n, m: [(n, m)]),
    "sum of squares": (lambda x: df.reduce_sum(x * x), lambda n, m: [(n * m,)]),
    "variance of columns": (lambda x: df.reduce_variance(x, 0), lambda n, m: [(n, m)]),
    "cross-entropy": (cross_entropy, lambda n, m: [(n, m), (n, m)]),
    "dense": (lambda x, w, b: df.nn.relu(x @ w + b), lambda n, m: [(n, m), (m, n), (n,)]),
    "attention": (attention, lambda n, m: [(2, n, m), (2, n, m)]),
    "concat": (lambda x, y: df.concat([x, y], 0) * 2.0, lambda n, m: [(n, m), (m, m)]),
    "shifted": (lambda x: x[1:] - x[:-1], lambda n, m: [(n, m)]),
    "transposed": (lambda x: df.transpose(x) + 1.0, lambda n, m: [(n, m)]),
    "flattened": (lambda x: df.exp(df.reshape(x, [-1])), lambda n, m: [(n, m)]),
    "padded": (lambda x: df.pad(x, [[1, 2], [0, 1]]), lambda n, m: [(n, m)]),
    "outer": (lambda x, y: x[:, None] * y[None, :], lambda n, m: [(n,), (m,)]),
    "whole and rows": (lambda x: x - df.reduce_max(x) + df.reduce_sum(x, 1, True), lambda n, m: [(n, m)]),
}


def arrays(shapes: list[tuple[int, ...]]) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    return [rng.uniform(-1, 1, shape).astype(np.float32) for shape in shapes]


def executables(function: Any) -> list[Executable]:
    return [c.compiled.executable for c in function.concrete_functions]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_another_size_runs_the_code_of_the_first(name: str) -> None:
    python, shapes = FUNCTIONS[name]
    compiled = df.function(python, sizes="exact")
    # a nest of shorter rows has no tiles, and narrower vectors where the row length is the dynamic size
    few = 17 if name in ("transposed", "cross-entropy", "dense", "attention") else 7
    many = 200 if name == "padded" else 2000  # a larger pad fills only what is around
    for n, m in ((32, 20), (48, 30), (few, 33), (64, many)):
        inputs = [df.constant(a) for a in arrays(shapes(n, m))]
        np.testing.assert_allclose(compiled(*inputs), python(*inputs), rtol=1e-4, atol=1e-5)
    first, *others = executables(compiled)
    for other in others:  # products of other sizes call other routines
        new = set(other.program.sources) - set(first.program.sources)
        assert all(source.name.startswith("df_gemm_") for source in new)
        assert new or other.reused


def training_step(sizes: str) -> Any:
    rng = np.random.default_rng(0)
    shapes = [(20, 16), (16,), (16, 10), (10,)]
    variables = [df.Variable(rng.uniform(-0.3, 0.3, s).astype(np.float32)) for s in shapes]

    @df.function(sizes=sizes)
    def step(x: Any, y: Any) -> Any:
        w1, b1, w2, b2 = variables
        with df.GradientTape() as tape:
            logits = df.nn.relu(x @ w1 + b1) @ w2 + b2
            loss = df.reduce_mean(df.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits))
        for v, g in zip(variables, tape.gradient(loss, variables), strict=True):
            v.assign_sub(0.1 * g)
        return loss

    return step


def batch(size: int) -> tuple[df.Tensor, df.Tensor]:
    return df.ones([size, 20]), df.constant(np.arange(size) % 10)


def test_a_training_step_runs_the_code_of_the_first_batch_size() -> None:
    step = training_step("exact")
    for size in (32, 48, 100, 7):
        step(*batch(size))
    assert [e.reused for e in executables(step)][1:] == [True, True, True]


@pytest.mark.parametrize("sizes", [(128, 127), (256, 9)])
def test_a_training_step_for_all_sizes_runs_the_kernels_of_the_first_batch_size(
    sizes: tuple[int, int],
) -> None:
    programs = []
    for mode in ("exact", "automatic"):
        step = training_step(mode)
        for size in sizes:
            step(*batch(size))
        concrete = step.concrete_functions[0]
        programs.append(concrete.compiled_for(batch(sizes[0])).executable.program)
    static, symbolic = (set(program.sources) for program in programs)
    assert symbolic <= static


def test_bits_do_not_depend_on_the_sizes_of_earlier_calls() -> None:
    """Small sizes and large ones have programs with different kernels, whichever was compiled first."""

    def python(x: Any) -> tuple[Any, Any]:
        return df.reduce_sum(x, 0), df.reduce_mean(x)

    (first, second), results = (df.function(python) for _ in range(2)), []
    for compiled, order in ((first, (3, 200, 256, 257, 600)), (second, (4, 600, 257, 256, 200))):
        by_size = {n: compiled(df.constant(arrays([(n, 40)])[0])) for n in order}
        results.append([[x.numpy().tobytes() for x in by_size[n]] for n in (200, 256, 257, 600)])
    assert results[0] == results[1]


def test_functions_apart_share_the_code_of_equal_programs() -> None:
    one, two = (df.function(lambda x: df.sin(x) * 3.25 + x) for _ in range(2))
    one(df.constant(arrays([(5, 6)])[0]))
    two(df.constant(arrays([(50, 7)])[0]))
    assert executables(one)[0].libraries == executables(two)[0].libraries


@given(st.lists(st.tuples(st.integers(0, 70), st.integers(1, 70)), min_size=1, max_size=4))
@settings(deadline=None, max_examples=40)
def test_any_sizes_through_one_function(sizes: list[tuple[int, int]]) -> None:
    """Whichever comes first, also empty and of size 1, no size runs code that another one needs."""

    def python(x: Any, row: Any) -> tuple[Any, ...]:
        centred = x - df.reduce_mean(x, 1, keepdims=True) * row
        return centred, df.reduce_sum(centred, 0), df.reduce_sum(df.abs(x)), df.matmul(x, x, transpose_b=True)

    compiled = df.function(python)
    for n, m in sizes:
        inputs = [df.constant(a) for a in arrays([(n, m), (m,)])]
        for result, expected in zip(compiled(*inputs), python(*inputs), strict=True):
            np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-4, strict=True)


def positive_rows(x: Any) -> Any:
    return df.boolean_mask(x, df.reduce_sum(x, 1) > 0.0) * 2.0


def doubled_until_large(x: Any) -> Any:
    while df.shape(x)[0] < 100:
        x = df.concat([x, x + 1.0], 0)
    return x


def pairs(x: Any) -> Any:
    return x[:, None, :] * x[None, :, :]


@pytest.mark.parametrize("python", [df.nn.softmax, pairs, positive_rows, doubled_until_large])
def test_code_is_the_same_whatever_memory_the_process_has(python: Function) -> None:
    """So the next process loads it from disk, although less memory is available there."""
    inputs = [df.constant(a) for a in arrays([(5, 3)])]
    compiled = df.function(python, input_signature=[df.TensorSpec([None, 3])])
    executable = compiled.get_concrete_function().compiled_for(inputs).executable
    few, many = (
        write(planned(executable.graph, options), options)
        for options in (replace(executable.options, memory=gigabytes << 30) for gigabytes in (1, 2))
    )
    assert few.sources == many.sources
    assert few.image.params.tolist() != many.image.params.tolist()
