"""``first_call="interpret"``: NumPy runs calls while a thread compiles, and compiled code runs those after.

A compile waits where this thread holds ``unforkable``; so within it every call is one that NumPy runs.
"""

from __future__ import annotations

import copy
import re
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dualflow as df
from dualflow.core.errors import InternalError
from dualflow.core.locks import unforkable
from dualflow.function.calls.first_calls import BackgroundCompile
from dualflow.sizes.symbolic_sizes import UndecidedSize

pytestmark = pytest.mark.skipif(df.config.get_backend() == "numpy", reason="nothing is compiled there")

X = np.linspace(-4.0, 4.0, 60, dtype=np.float32).reshape(6, 10)


def gelu(x: Any) -> Any:
    return 0.5 * x * (1.0 + df.tanh(0.7978845608 * (x + 0.044715 * x * x * x)))


def halved(x: Any) -> Any:
    while df.reduce_sum(x * x) > 1.0:
        x = x / 2.0
    return x


def chosen(x: Any) -> Any:
    if df.reduce_sum(x) > 100.0:
        return df.exp(x)
    return df.math.log1p(df.abs(x))


def gathered(x: Any) -> Any:
    return {"rows": df.gather(x, [2, 0]), "sum": (df.reduce_sum(x, 0), df.argmax(x, 1))}


def selected(x: Any) -> Any:
    return df.exp(df.boolean_mask(x, x > 0.0))


def product(x: Any) -> Any:
    return df.nn.softmax(df.matmul(x, x, transpose_b=True))


PROGRAMS = [gelu, halved, chosen, gathered, selected, product]


def bits(result: Any) -> list[bytes]:
    return [np.asarray(leaf).tobytes() for leaf in df.nest.flatten(result)]


@pytest.mark.parametrize("program", PROGRAMS)
def test_calls_give_numpys_digits_until_it_is_compiled_and_the_defaults_after(
    program: Callable[[Any], Any],
) -> None:
    x = df.constant(X)
    f = df.function(program, first_call="interpret")
    with unforkable():
        before = [bits(f(x)) for _ in range(3)]
    assert f.wait_until_compiled()
    after = [bits(f(x)) for _ in range(3)]
    assert before == [bits(df.function(program, backend="numpy")(x))] * 3
    assert after == [bits(df.function(program)(x))] * 3


def test_until_it_is_compiled_the_digits_are_those_of_eager_code() -> None:
    f = df.function(gelu, first_call="interpret")
    with unforkable():
        assert bits(f(X)) == bits(gelu(df.constant(X)))


def test_explain_reports_up_to_which_call_numpy_ran() -> None:
    f = df.function(gelu, first_call="interpret", name="gelu")
    with unforkable():
        f(X), f(X)
        report = f.explain()
        assert not f.wait_until_compiled(timeout=0.0)
    assert (
        "<ConcreteFunction gelu(x: float32[6, 10])> runs through NumPy while a thread compiles it" in report
    )
    f.wait_until_compiled()
    f(X)
    assert re.search(r"gelu.*ran through NumPy up to call 2, and is compiled since", f.explain())


def test_a_function_that_is_compiled_first_has_nothing_to_wait_for_and_nothing_to_report() -> None:
    f = df.function(gelu, name="gelu")
    assert f.wait_until_compiled()
    f(X)
    assert f.wait_until_compiled()
    assert "NumPy" not in f.explain()


def test_a_taped_call_of_dynamic_sizes_is_interpreted_first() -> None:
    def program(x: df.Tensor, n: df.Tensor) -> df.Tensor:
        return df.reduce_sum(x * x) * df.cast(df.range(n), df.float32)

    specs = [df.TensorSpec([None]), df.TensorSpec([], df.int32)]
    f = df.function(program, first_call="interpret", input_signature=specs)
    gradients = []
    for size in (3, 5, 0):
        x = df.range(size, dtype=df.float32)
        with df.GradientTape() as tape:
            tape.watch(x)
            y = df.reduce_sum(f(x, 4))
        gradients.append(tape.gradient(y, x).numpy().tolist())
    assert gradients == [[0.0, 12.0, 24.0], [0.0, 12.0, 24.0, 36.0, 48.0], []]


@pytest.mark.parametrize(("error", "is_interpreted"), [(UndecidedSize, True), (InternalError, False)])
def test_a_call_that_begins_before_the_compile_ends_without_a_program_is_interpreted(
    error: type[Exception], is_interpreted: bool
) -> None:
    """Its caller has seen the thread run. Any other error is raised by the compile of that call."""

    class Uncompiled:
        def compile(self) -> None:
            raise error("no program")

    uncompiled = Uncompiled()
    graph = df.function(lambda x: x + 1.0).get_concrete_function(df.TensorSpec([3])).graph
    background = BackgroundCompile(graph, uncompiled.compile)
    background.start()
    background.wait(None)
    assert (background.executable_for_call() is not None) == is_interpreted


def test_each_new_shape_is_interpreted_first() -> None:
    f = df.function(gelu, first_call="interpret", sizes="exact")
    with unforkable():
        f(X), f(X[:2])
    f.wait_until_compiled()
    f(X), f(X[:2])
    matches = re.findall(r"float32\[(\d), 10\]\)> ran through NumPy up to call (\d)", f.explain())
    assert matches == [("6", "1"), ("2", "2")]


@pytest.mark.parametrize(
    "options", [{}, {"reduce_retracing": True}, {"input_signature": [df.TensorSpec([None, 10])]}]
)
def test_dynamic_sizes_are_interpreted_until_their_program_is_compiled(options: dict[str, Any]) -> None:
    f = df.function(gelu, first_call="interpret", **options)
    with unforkable():
        before = [bits(f(X[:n])) for n in (1, 2, 3)]
    f.wait_until_compiled()
    assert before == [bits(gelu(df.constant(X[:n]))) for n in (1, 2, 3)]
    g = df.function(gelu)
    assert [bits(f(X[:n])) for n in (1, 2, 3)] == [bits(g(X[:n])) for n in (1, 2, 3)]
    traces, explained = f.experimental_get_tracing_count(), f.explain()
    assert [bits(f(X[:n])) for n in (0, 4, 5)] == [bits(g(X[:n])) for n in (0, 4, 5)]
    assert (f.experimental_get_tracing_count(), f.explain()) == (traces, explained)


def test_each_call_of_any_thread_updates_a_variable_once() -> None:
    total = df.Variable(0)

    @df.function(first_call="interpret")
    def add(n: Any) -> Any:
        return total.assign_add(n)

    def work() -> None:
        for _ in range(50):
            add(df.constant(1))

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert add.wait_until_compiled()
    assert add(df.constant(0)).numpy() == 150
    assert add.cache_info().misses == 1


def test_variables_hold_the_same_on_both_sides_of_the_switch() -> None:
    v = df.Variable([1.0, 2.0])

    @df.function(first_call="interpret")
    def step(x: Any) -> Any:
        v.assign(v * 2.0 + x)
        return v - x

    result, expected = [], []
    with unforkable():
        result += [step(df.constant(1.0)).numpy() for _ in range(2)]
    step.wait_until_compiled()
    result += [step(df.constant(1.0)).numpy() for _ in range(2)]
    w = np.float32([1.0, 2.0])
    for _ in range(4):
        w = w * 2 + 1
        expected.append(w - 1)
    np.testing.assert_array_equal(result, expected)
    np.testing.assert_array_equal(v, w)


@pytest.mark.parametrize("draw", ["generator", "stateful"])
def test_random_numbers_go_on_where_the_interpreted_calls_have_ended(draw: str) -> None:
    generator = df.random.Generator.from_seed(7)

    def numbers(first_call: Any) -> list[Any]:
        generator.reset_from_seed(7)
        df.random.set_seed(7)
        f = df.function(
            lambda: generator.uniform([4]) if draw == "generator" else df.random.uniform([4], seed=3),
            first_call=first_call,
        )
        with unforkable():
            results = [f().numpy(), f().numpy()]
        f.wait_until_compiled()
        return [*results, f().numpy(), f().numpy()]

    np.testing.assert_array_equal(numbers("interpret"), numbers("compile"))


def test_gradients_of_tapes_are_the_same_before_and_after() -> None:
    w = df.Variable(X[:, :1].copy())
    f = df.function(lambda x: df.reduce_sum(df.tanh(x * w) ** 2.0), first_call="interpret")

    def gradient() -> Any:
        with df.GradientTape() as tape:
            loss = f(df.constant(X))
        return tape.gradient(loss, w).numpy()

    with unforkable():
        before = gradient()
    assert f.wait_until_compiled()
    after = gradient()
    y = np.tanh(np.float64(X) * X[:, :1])
    expected = np.sum(2 * y * (1 - y * y) * X, 1, keepdims=True)
    np.testing.assert_allclose(before, expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(after, expected, rtol=1e-4, atol=1e-5)


def test_a_failing_call_leaves_the_same_before_and_after() -> None:
    v = df.Variable(0.0)

    @df.function(first_call="interpret")
    def checked(x: Any) -> Any:
        v.assign_add(1.0)
        df.debugging.assert_positive(x, message="needs more")
        v.assign_add(10.0)
        return x

    good, bad = df.constant(1.0), df.constant(-1.0)
    with unforkable():
        checked(good)
        with pytest.raises(df.errors.InvalidArgumentError, match="needs more"):
            checked(bad)
    checked.wait_until_compiled()
    checked(good)
    with pytest.raises(df.errors.InvalidArgumentError, match="needs more"):
        checked(bad)
    assert v.numpy() == 24.0


def test_a_method_and_a_copy_are_interpreted_first_too() -> None:
    class Model:
        @df.function(first_call="interpret")
        def call(self, x: Any) -> Any:
            return df.exp(x)

    model = Model()
    copied = copy.deepcopy(model.call)
    with unforkable():
        model.call(X), copied(X)
        assert "while a thread compiles it" in model.call.explain()
        assert "while a thread compiles it" in copied.explain()
    assert model.call.wait_until_compiled()
    assert copied.wait_until_compiled()


def test_modules_requested_together_are_compiled_together() -> None:
    """Looking at the compiled program waits for it, and calls after that run it."""
    f = df.function(gelu, first_call="interpret", name="gelu")
    f(X)
    assert "native" in f.status()
    assert bits(f(X)) == bits(df.function(gelu)(X))


def test_a_nested_function_is_part_of_the_one_that_calls_it() -> None:
    inner = df.function(gelu, first_call="interpret")
    outer = df.function(lambda x: inner(x) + 1.0)
    assert bits(outer(X)) == bits(df.function(lambda x: gelu(x) + 1.0)(X))
    assert "NumPy" not in inner.explain()
