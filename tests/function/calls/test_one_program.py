"""Functions with dynamic sizes: one program serves all sizes of their arguments."""

from __future__ import annotations

import gc
import sys
import threading
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dualflow as df
from dualflow.backends.runtime import switches
from dualflow.function.calls import shape_variants

SIZES = (0, 1, 2, 31, 32, 33, 64, 257, 1000, 5000)
WEIGHTS = np.random.default_rng(0).standard_normal((8, 16)).astype(np.float32)


def spec(*sizes: int | None) -> df.TensorSpec:
    return df.TensorSpec(sizes, df.float32)


def normalised(x: Any) -> Any:
    centred = x - df.reduce_mean(x, -1, keepdims=True)
    return centred / df.sqrt(df.reduce_mean(centred * centred, -1, keepdims=True) + 1e-3)


def slope(x: Any) -> Any:
    with df.GradientTape() as tape:
        tape.watch(x)
        y = df.reduce_sum(df.nn.softmax(df.tanh(x @ WEIGHTS))[:, :3] ** 2)
    return tape.gradient(y, x)


def added_until_large(x: Any) -> Any:
    y = x
    while df.reduce_sum(df.abs(y)) < 100.0 and df.size(y) > 0:
        y = y + x
    return y


def symmetric(x: Any) -> Any:
    return df.matmul(x, x, transpose_a=True) + df.eye(8)


def sorted_slope(x: Any) -> Any:
    with df.GradientTape() as tape:
        tape.watch(x)
        y = df.reduce_sum(df.sort(df.tanh(x), 0) * df.cast(df.range(len(x)), df.float32)[:, None])
    return tape.gradient(y, x)


def positive(x: Any) -> Any:
    return df.numpy_function(lambda array: array[array > 0.0], [x], df.TensorSpec([None], df.float32))


def halved(x: Any) -> Any:
    for _ in df.range(2):
        df.autograph.experimental.set_loop_options(shape_invariants=[(x, df.TensorShape([None]))])
        x = df.py_function(lambda tensor: tensor[: len(tensor) // 2], [x], df.TensorSpec([None], df.float32))
    return x * 2.0


def slope_of_a_python_call(x: Any) -> Any:
    with df.GradientTape() as tape:
        tape.watch(x)
        y = df.exp(df.py_function(lambda tensor: tensor[1:] * tensor[:-1], [df.sin(x)], df.float32))
    return tape.gradient(y, x)


HAS_OWN_SIZE: dict[str, tuple[Callable[..., Any], tuple[int | None, ...]]] = {
    "a host call whose result has a size of its own": (
        lambda x: df.reduce_sum(df.unique(df.floor(x))[0]) + df.cumsum(x),
        (None,),
    ),
    "a Python call whose result has a size of its own": (lambda x: df.exp(positive(x * 2.0)), (None,)),
    "a Python call in a branch": (
        lambda x: df.cond(df.reduce_sum(x) > 0.0, lambda: positive(x), lambda: x) + 1.0,
        (None,),
    ),
    "a Python call in a loop": (halved, (None,)),
    "the gradient of a Python call": (slope_of_a_python_call, (None,)),
}
HOST_CALLS: dict[str, tuple[Callable[..., Any], tuple[int | None, ...]]] = {
    "a host call alone": (lambda x: df.sort(x), (None,)),
    "a host call of an input and nothing else": (lambda x: df.argsort(x, axis=0), (None, 8)),
    "host calls between kernels": (
        lambda x: df.gather(df.tanh(x), df.argsort(df.exp(x[:, 0]))) * 2.0,
        (None, 8),
    ),
    "a host call of views": (lambda x: df.sort(df.transpose(x)[::-1], 1) + 1.0, (None, 8)),
    "a host call with sizes as attributes": (lambda x: df.math.top_k(x + 1.0, 3)[0], (None, 8)),
    "the gradient of a host call": (sorted_slope, (None, 8)),
    "a Fourier transform of real numbers": (
        lambda x: df.abs(df.signal.rfft(x)) + df.reduce_sum(df.signal.irfft(df.complex(x, x)), -1, True),
        (8, None),
    ),
    "a Fourier transform": (lambda x: df.math.real(df.signal.fft(df.complex(x, x * 0.5))), (None, 8)),
    "a factored matrix": (lambda x: df.linalg.inv(symmetric(x)), (None, 8)),
    **HAS_OWN_SIZE,
}
PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[int | None, ...]]] = {
    "elementwise": (df.nn.gelu, (None,)),
    "an argument as it is": (lambda x: x, (None,)),
    "an argument that is not used": (lambda x: df.exp(df.constant([1.0, 2.0])), (None,)),
    "a sum": (df.reduce_sum, (None,)),
    "sums of columns": (lambda x: df.reduce_sum(x, 0), (None, 8)),
    "sums of rows": (lambda x: df.reduce_sum(x, 1), (8, None)),
    "softmax of short rows": (df.nn.softmax, (None, 8)),
    "softmax of rows": (df.nn.softmax, (8, None)),
    "normalised rows": (normalised, (None, 8)),
    "a matrix product": (lambda x: df.tanh(x @ WEIGHTS), (None, 8)),
    "a product over the dynamic axis": (lambda x: df.matmul(x, x, transpose_a=True), (None, 8)),
    "a scan": (lambda x: df.cumsum(x), (None,)),
    "a gradient": (slope, (None, 8)),
    "a loop": (added_until_large, (None,)),
    "views": (lambda x: df.concat([x[::-1], df.transpose(df.transpose(x))[1:], x * 2.0], 0), (None, 8)),
    "gathered": (lambda x: df.gather(df.constant(WEIGHTS), df.cast(df.abs(x), df.int32) % 8), (None,)),
    **HOST_CALLS,
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_gives_at_every_size_what_eager_calls_give(name: str) -> None:
    program, shape = PROGRAMS[name]
    compiled = df.function(program, input_signature=[spec(*shape)])
    rng = np.random.default_rng(1)
    for n in SIZES:
        x = df.constant(rng.standard_normal([n if d is None else d for d in shape]).astype(np.float32))
        np.testing.assert_allclose(compiled(x), program(x), rtol=2e-5, atol=2e-5 * max(1.0, n**0.5))
    assert compiled.experimental_get_tracing_count() == 1


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.llvm) if name in HAS_OWN_SIZE else name for name in PROGRAMS],
)  # Numba has no programs for sizes that depend on data
def test_all_sizes_have_one_program(name: str) -> None:
    program, shape = PROGRAMS[name]
    compiled = df.function(program, input_signature=[spec(*shape)])
    for n in SIZES:
        compiled(df.ones([n if d is None else d for d in shape]))
    (trace,) = compiled.concrete_functions
    assert len(trace._specialisations) == 1


@pytest.mark.parametrize("name", PROGRAMS)
def test_results_do_not_depend_on_the_sizes_of_earlier_calls(name: str) -> None:
    program, shape = PROGRAMS[name]
    rng = np.random.default_rng(2)
    inputs = {
        n: rng.standard_normal([n if d is None else d for d in shape]).astype(np.float32) for n in SIZES
    }
    results = []
    for order in (SIZES, SIZES[::-1]):
        compiled = df.function(program, input_signature=[spec(*shape)])
        results.append({n: compiled(df.constant(inputs[n])).numpy().tobytes() for n in order})
    assert results[0] == results[1]


def test_an_argument_is_returned_next_to_values_whose_sizes_depend_on_data() -> None:
    f = df.function(lambda x: (x, df.boolean_mask(x, x > 0.0), x * 2.0), input_signature=[spec(None)])
    for n in (3, 1, 8, 0, 5):
        x = np.arange(n, dtype=np.float32) - 2.0
        for result, expected in zip(f(df.constant(x)), (x, x[x > 0], x * 2), strict=True):
            np.testing.assert_array_equal(result, expected)


@pytest.mark.llvm  # Numba's programs are functions of Python
@pytest.mark.skipif(bool(switches.checked_side()), reason="calls whose memory is checked are not C calls")
def test_a_call_of_a_new_size_runs_no_python() -> None:
    weights = df.Variable(WEIGHTS)
    target = df.Variable(np.zeros(16, np.float32))

    @df.function(input_signature=[spec(None, 8), spec(None)])
    def step(x: Any, y: Any) -> Any:
        with df.GradientTape() as tape:
            loss = df.reduce_mean((df.reduce_sum(df.tanh(x @ weights) * target, 1) - y) ** 2)
        gradient = tape.gradient(loss, weights)
        weights.assign_sub(0.1 * gradient)
        return loss

    arguments = [
        (df.constant(np.ones((n, 8), np.float32)), df.constant(np.ones(n, np.float32))) for n in SIZES
    ]
    for n in (5, 6, 7):
        step(df.constant(np.ones((n, 8), np.float32)), df.constant(np.ones(n, np.float32)))
    called: list[str] = []
    sys.setprofile(lambda frame, event, _: called.append(frame.f_code.co_name) if event == "call" else None)
    try:
        for x, y in arguments[1:]:
            step(x, y)
    finally:
        sys.setprofile(None)
    assert set(called) == {"__call__"}, "Function.__call__, and then machine code"


@pytest.mark.llvm
@pytest.mark.llvm  # about its C fast call
@pytest.mark.skipif(bool(switches.checked_side()), reason="calls whose memory is checked are not C calls")
def test_a_failed_check_reports_the_values_of_its_call() -> None:
    @df.function(input_signature=[spec(None)])
    def root(x: Any) -> Any:
        total = df.reduce_sum(x)
        if total < 0.0:
            raise ValueError(f"the sum is {float(total)}")
        return df.sqrt(total)

    for n in (2, 3, 4):
        root(df.constant(np.ones(n, np.float32)))
    x, called = df.constant(np.ones(5, np.float32)), list[str]()
    sys.setprofile(lambda frame, event, _: called.append(frame.f_code.co_name) if event == "call" else None)
    try:
        root(x)
    finally:
        sys.setprofile(None)
    assert called == ["__call__"]
    for n in (1, 5, 2):
        with pytest.raises(ValueError, match=f"the sum is -{n}.0"):
            root(df.constant(-np.ones(n, np.float32)))


def test_axes_of_equal_and_of_different_sizes_have_programs_of_their_own() -> None:
    add = df.function(lambda x, y: x + y, input_signature=[spec(None), spec(None)])
    for n, m in ((3, 3), (1, 3), (4, 4), (3, 1), (1, 1), (5, 1), (6, 6), (0, 0), (0, 1)):
        x, y = np.arange(n, dtype=np.float32), np.ones(m, np.float32)
        np.testing.assert_array_equal(add(df.constant(x), df.constant(y)), x + y)
    (trace,) = add.concrete_functions
    assert len(trace._specialisations) == 2


@pytest.mark.llvm
def test_sizes_choose_the_program_whatever_calls_there_were_before() -> None:
    def served(*calls: tuple[int, int]) -> int:
        add = df.function(lambda x, y: df.reduce_sum(x) + df.reduce_sum(y), input_signature=[spec(None)] * 2)
        for n, m in calls:
            assert float(add(*[df.constant(np.ones(k, np.float32)) for k in (n, m)])) == n + m
        return len(add.concrete_functions[0]._specialisations)

    assert served((2, 3), (3, 4), (5, 6), (4, 4)) == served((4, 4), (5, 5), (6, 6), (2, 3)) == 2
    assert served((2, 3), (3, 4), (5, 6), (6, 5)) == served((4, 4), (5, 5), (0, 0)) == 1


@pytest.mark.llvm
def test_the_latest_programs_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shape_variants, "MAX_PROGRAMS", 2)
    total = df.function(
        lambda x, y, z: df.reduce_sum(x) + df.reduce_sum(y) + df.reduce_sum(z),
        input_signature=[spec(None)] * 3,
    )
    for sizes in ((2, 2, 2), (2, 2, 3), (2, 3, 2), (4, 5, 6), (5, 5, 5), (1, 1, 2)):
        assert float(total(*[df.ones([n]) for n in sizes])) == sum(sizes)
    assert len(total.concrete_functions[0]._specialisations) == 2


@pytest.mark.parametrize("n", [2, 3, 5])
def test_sizes_that_do_not_fit_raise_the_error_of_the_op(n: int) -> None:
    product = df.function(lambda x, y: df.exp(x) @ y, input_signature=[spec(None, None), spec(None, 3)])
    product(df.ones([2, 4]), df.ones([4, 3]))
    product(df.ones([3, 4]), df.ones([4, 3]))
    with pytest.raises(df.errors.InvalidArgumentError, match="matmul") as compiled:
        product(df.ones([n, n]), df.ones([4, 3]))
    with pytest.raises(df.errors.InvalidArgumentError) as eager:
        df.ones([n, n]) @ df.ones([4, 3])
    assert str(compiled.value).splitlines()[0] == str(eager.value).splitlines()[0]


def test_nothing_is_assigned_if_sizes_do_not_fit() -> None:
    total = df.Variable(0.0)

    @df.function(input_signature=[spec(None), spec(None)])
    def add(x: Any, y: Any) -> Any:
        total.assign_add(df.reduce_sum(x))
        return x + y

    for n in (2, 3):
        add(df.ones([n]), df.ones([n]))
    for _ in range(2):
        with pytest.raises(df.errors.InvalidArgumentError):
            add(df.ones([2]), df.ones([3]))
    assert float(total) == 5.0


@pytest.mark.parametrize("shape", [(1 << 40, 0), (1 << 23, 0)])
def test_values_larger_than_memory_raise_an_error(shape: tuple[int, int]) -> None:
    @df.function(input_signature=[spec(None, None)])
    def pairs(x: Any) -> Any:
        rows = df.exp(df.reduce_sum(x, 1))
        return rows[:, None] @ rows[None, :]

    np.testing.assert_allclose(pairs(df.ones([3, 2])), np.full((3, 3), np.exp(4.0)), rtol=1e-6)
    for _ in range(3):
        with pytest.raises(df.errors.ResourceExhaustedError):
            pairs(df.constant(np.empty(shape, np.float32)))


def test_threads_call_one_program_with_different_sizes() -> None:
    @df.function(input_signature=[spec(None, 8)])
    def apply(x: Any) -> Any:
        hidden = df.tanh(x @ WEIGHTS)
        return df.nn.softmax(df.sort(hidden @ df.transpose(df.constant(WEIGHTS)), 1))

    rng = np.random.default_rng(3)
    inputs = [df.constant(rng.standard_normal((n, 8)).astype(np.float32)) for n in (3, 70, 700, 7000, 20_000)]
    expected = [apply(x).numpy() for x in inputs]
    wrong: list[int] = []

    def call(first: int) -> None:
        for i in range(first, first + 40):
            at = i % len(inputs)
            if not np.array_equal(apply(inputs[at]).numpy(), expected[at]):
                wrong.append(at)

    threads = [threading.Thread(target=call, args=(i,)) for i in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@pytest.mark.llvm
def test_the_memory_of_calls_ends_with_the_function() -> None:
    def largest_call() -> None:
        # A product keeps the intermediate value out of kernels: it is in the arena.
        f = df.function(
            lambda x: df.exp(x @ WEIGHTS) @ df.transpose(WEIGHTS), input_signature=[spec(None, 8)]
        )
        for n in (10, 20, 1000, 50_000, 7):
            f(df.constant(np.ones((n, 8), np.float32)))

    largest_call()
    gc.collect()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        largest_call()
        gc.collect()
        assert tracemalloc.get_traced_memory()[0] - before < 1 << 20
    finally:
        tracemalloc.stop()


def test_variables_and_python_values_next_to_dynamic_sizes() -> None:
    scale = df.Variable(2.0)
    f = df.function(lambda x, k, flag: x * scale * k if flag else x, reduce_retracing=True)
    for n in (2, 3, 4, 5, 6):
        x = np.arange(n, dtype=np.float32)
        np.testing.assert_array_equal(f(df.constant(x), 3.0, True), x * 6.0)
        np.testing.assert_array_equal(f(df.constant(x), 3.0, False), x)
    scale.assign(1.0)
    np.testing.assert_array_equal(f(df.ones([9]), 3.0, True), np.full(9, 3.0))


def descent(x: Any, first: Any, second: Any) -> Any:
    with df.GradientTape() as tape:
        tape.watch([first, second])
        y = df.tanh(df.tanh(x @ first) @ second)
        loss = df.reduce_sum(y * y)
    slopes = tape.gradient(loss, [first, second])
    return [w - 0.01 * slope for w, slope in zip([first, second], slopes, strict=True)]


@pytest.mark.llvm
def test_a_training_step_has_the_same_kernels_for_static_and_for_dynamic_batches() -> None:
    """So the first call with a second size compiles none."""
    f = df.function(descent)
    names = []
    for batch in (32, None):
        concrete = f.get_concrete_function(spec(batch, 64), spec(64, 64), spec(64, 8))
        compiled = concrete.compiled
        executable = compiled._symbolic_program.executable if batch is None else compiled.executable
        names.append(set(executable.image.functions.values()))
    assert names[0] == names[1]
