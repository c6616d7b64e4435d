"""Gradients of loops: as those of the same Python, run now, of the first and second order."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import dualflow as df
from dualflow.backends.runtime import switches
from dualflow.core.errors import InvalidArgumentError
from dualflow.function import options
from dualflow.graph.control_spec import loop_of

Tensors = tuple[Any, ...]
_generator = np.random.default_rng(0)
X = _generator.normal(size=(3, 4)).astype(np.float32)
W = (0.5 * _generator.normal(size=(4, 4))).astype(np.float32)
ROWS = _generator.normal(size=(40, 3, 4)).astype(np.float32)


def while_(x: Any, w: Any) -> Any:
    """As long as a counter is small."""
    start = (df.constant(0), x)
    return df.while_loop(lambda i, h: i < 5, lambda i, h: (i + 1, df.tanh(h @ w)), start)[1]


def until(x: Any, w: Any) -> Any:
    """The number of iterations depends on the data."""

    def body(i: Any, h: Any) -> Any:
        return i + 1, 0.7 * df.tanh(h @ w)

    return df.while_loop(lambda i, h: df.reduce_sum(h * h) > 0.1, body, (df.constant(0), x))[1]


def limited(x: Any, w: Any) -> Any:
    """The number of iterations depends on the data, with a maximum."""

    def body(h: Any) -> Any:
        return df.tanh(h @ w)

    return df.while_loop(lambda h: df.reduce_sum(h * h) > 0.0, body, x, maximum_iterations=4)


def never(x: Any, w: Any) -> Any:
    """Not once."""
    return df.while_loop(lambda h: df.reduce_sum(h) > 1e9, lambda h: df.tanh(h @ w), x) * w[0]


def nested(x: Any, w: Any) -> Any:
    """A loop whose number of iterations differs between iterations of another."""

    def body(i: Any, h: Any) -> Any:
        inner = (df.constant(0), h)
        _, k = df.while_loop(lambda j, k: j < i, lambda j, k: (j + 1, 1.1 * df.sin(k)), inner)
        return i + 1, df.tanh(k @ w)

    return df.while_loop(lambda i, h: i < 4, body, (df.constant(0), x))[1]


def branching(x: Any, w: Any) -> Any:
    """A conditional in each iteration."""

    def body(i: Any, h: Any) -> Any:
        even = df.equal(i % 2, 0)
        return i + 1, df.cond(even, lambda: df.tanh(h @ w), lambda: df.sin(h) * w[0])

    return df.while_loop(lambda i, h: i < 4, body, (df.constant(0), x))[1]


def swapping(x: Any, w: Any) -> Any:
    """Values that change places."""

    def body(i: Any, a: Any, b: Any) -> Any:
        return i + 1, b @ w, df.tanh(a)

    _, a, b = df.while_loop(lambda i, a, b: i < 5, body, (df.constant(0), x, 2 * x))
    return a * b


def scalars(x: Any, w: Any) -> Any:
    """Numbers that a kernel holds in registers."""
    start = (df.constant(0), x[0, 0])
    return df.while_loop(lambda i, h: i < 5, lambda i, h: (i + 1, df.sin(h) * w[0, 0] + h), start)[1]


def scanning(x: Any, w: Any) -> Any:
    """Rows of data, and what is carried past them."""
    return df.scan(lambda h, row: df.tanh(h @ w + row), df.constant(ROWS), x)


def scanning_back(x: Any, w: Any) -> Any:
    """From the last row to the first."""
    return df.scan(lambda h, row: df.tanh(h @ w + row), df.constant(ROWS), x, reverse=True)


def mapping(x: Any, w: Any) -> Any:
    """Rows on their own."""
    return df.map_fn(lambda row: df.tanh(row * x @ w), df.constant(ROWS))


def scanning_in_a_scan(x: Any, w: Any) -> Any:
    """Stacks of stacks."""

    def step(h: Any, row: Any) -> Any:
        inner = df.scan(lambda a, b: 0.5 * df.tanh(0.5 * a * b) + 0.1 * h[0], df.constant(ROWS[:, 0]), row[0])
        return df.stack([inner[-1]] * 3) @ w

    return df.scan(step, df.constant(ROWS), x)


def indexing(x: Any, w: Any) -> Any:
    """Rows picked by the loop's counter, results written into an array."""
    rows = df.constant(ROWS) * x
    array = df.TensorArray(df.float32, 40, element_shape=[3, 4])

    def body(i: Any, h: Any, array: Any) -> Any:
        h = df.tanh(h @ w + rows[i])
        return i + 1, h, array.write(i, h)

    start = (df.constant(0), df.zeros([3, 4]), array)
    return df.while_loop(lambda i, h, array: i < 40, body, start)[2].stack()


LOOPS: list[Callable[..., Any]] = [
    while_,
    until,
    limited,
    never,
    nested,
    branching,
    swapping,
    scalars,
    scanning,
    scanning_back,
    mapping,
    scanning_in_a_scan,
    indexing,
]


def loss(loop: Callable[..., Any], *inputs: Any) -> Any:
    return df.reduce_sum(loop(*inputs) ** 2)


def first_and_second(function: Callable[..., Any], *inputs: Any) -> list[Any]:
    """A function's value, its gradients, and those of the sum of their squares."""
    with df.GradientTape() as outer:
        outer.watch(inputs)
        with df.GradientTape() as inner:
            inner.watch(inputs)
            value = function(*inputs)
        first = inner.gradient(value, inputs, unconnected_gradients="zero")
        length = sum(df.reduce_sum(g * g) for g in first)
    return [value, *first, *outer.gradient(length, inputs, unconnected_gradients="zero")]


def assert_alike(result: Any, expected: Any) -> None:
    for x, y in zip(result, expected, strict=True):
        np.testing.assert_allclose(x, y, rtol=2e-4, atol=2e-5 * max(1.0, float(np.abs(y).max())))


@pytest.fixture(params=LOOPS, ids=lambda loop: loop.__name__)
def loop(request: pytest.FixtureRequest) -> Callable[..., Any]:
    result: Callable[..., Any] = request.param
    return result


def test_tapes_inside_of_a_function(loop: Callable[..., Any]) -> None:
    def both(*inputs: Any) -> list[Any]:
        return first_and_second(lambda *arguments: loss(loop, *arguments), *inputs)

    inputs = df.constant(X), df.constant(W)
    assert_alike(df.function(both)(*inputs), both(*inputs))


def test_tapes_around_a_function(loop: Callable[..., Any]) -> None:
    inputs = df.constant(X), df.constant(W)
    compiled = df.function(lambda *arguments: loss(loop, *arguments))
    result = first_and_second(compiled, *inputs)
    assert_alike(result, first_and_second(lambda *arguments: loss(loop, *arguments), *inputs))


def test_a_gradient_runs_natively(loop: Callable[..., Any]) -> None:
    def gradient(*inputs: Any) -> Any:
        with df.GradientTape() as tape:
            tape.watch(inputs)
            value = loss(loop, *inputs)
        return tape.gradient(value, inputs, unconnected_gradients="zero")

    step = df.function(gradient)
    step(df.constant(X), df.constant(W))
    assert {part.kind for part in step.get_concrete_function(df.constant(X), df.constant(W)).parts} == {
        "native"
    }


@pytest.fixture
def little_memory() -> Iterator[None]:
    df.config.set_loop_memory(300)
    yield
    df.config.set_loop_memory(None)


@pytest.mark.usefixtures("little_memory")
def test_iterations_that_are_computed_again(loop: Callable[..., Any]) -> None:
    def both(*inputs: Any) -> list[Any]:
        return first_and_second(lambda *arguments: loss(loop, *arguments), *inputs)

    inputs = df.constant(X), df.constant(W)
    assert_alike(df.function(both)(*inputs), both(*inputs))


@pytest.mark.skipif(bool(switches.checked_side()), reason="each intermediate has memory of its own")
def test_memory_grows_with_the_square_root_of_the_iterations() -> None:
    def arena(iterations: int) -> int:
        def gradient(rows: Any, w: Any) -> Any:
            with df.GradientTape() as tape:
                tape.watch(w)
                value = df.reduce_sum(df.foldl(lambda h, x: df.tanh(h @ w) * x, rows, df.ones([8, 8])))
            return tape.gradient(value, w)

        specs = df.TensorSpec((iterations, 8, 8)), df.TensorSpec((8, 8))
        concrete = df.function(gradient).get_concrete_function(*specs)
        plan: int = concrete.compiled.executable.plan.arena_bytes
        return plan

    all_kept = arena(10_000)
    df.config.set_loop_memory(1 << 16)
    try:
        few, many = arena(100), arena(10_000)
    finally:
        df.config.set_loop_memory(None)
    assert many < all_kept / 20
    assert many < 20 * few


def test_a_limit_of_memory_is_positive() -> None:
    with pytest.raises(InvalidArgumentError, match="positive"):
        df.config.set_loop_memory(0)


def test_the_forward_loop_runs_once() -> None:
    def gradient(x: Any, w: Any) -> Any:
        with df.GradientTape() as tape:
            tape.watch(w)
            value = loss(scanning, x, w)
        return value, tape.gradient(value, w)

    step = df.function(gradient).get_concrete_function(df.constant(X), df.constant(W))
    loops = [node for node in step.optimised_graph.nodes if node.op.name == "loop"]
    assert [loop_of(node).reverse for node in loops] == [False, True]


def test_loop_invariant_residuals_are_stored_once() -> None:
    """Only the carried matrix of each iteration is kept, not the weights nor values of them alone."""

    def gradient(x: Any, w: Any) -> Any:
        with df.GradientTape() as tape:
            tape.watch(x)
            value = loss(
                lambda x, w: df.scan(lambda h, row: h @ (w * w) + row, df.constant(ROWS), x)[-1], x, w
            )
        return tape.gradient(value, x)

    step = df.function(gradient).get_concrete_function(df.constant(X), df.constant(W))
    kept = [
        v for n in step.optimised_graph.nodes if n.op.name == "loop" for v in n.outputs if v.spec.rank == 3
    ]
    assert all(v.spec.shape != (40, 4, 4) for v in kept)


def test_the_third_order() -> None:
    def derivative(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
        def slope(x: Any) -> Any:
            with df.GradientTape() as tape:
                tape.watch(x)
                y = f(x)
            return tape.gradient(y, x)

        return slope

    def f(x: Any) -> Any:
        return df.while_loop(lambda i, h: i < 4, lambda i, h: (i + 1, df.sin(h) * x), (df.constant(0), x))[1]

    third = derivative(derivative(derivative(f)))
    x = df.constant([0.7, 0.3])
    assert_alike([df.function(third)(x)], [third(x)])


def test_random_numbers_over_rows_are_drawn_first_and_have_a_gradient() -> None:
    def gradient(x: Any, w: Any) -> Any:
        with df.GradientTape() as tape:
            tape.watch(w)
            state = df.foldl(lambda h, row: df.nn.dropout(df.tanh(h @ w + row), 0.5), df.constant(ROWS), x)
            value = df.reduce_sum(state * state)
        return value, tape.gradient(value, w)

    results = []
    for function in (gradient, df.function(gradient)):
        df.random.set_seed(3)
        results.append(function(df.constant(X), df.constant(W)))
    assert_alike(results[1], results[0])


@pytest.fixture
def _little_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stacks of 64 KiB at most, on the host or on the device that keeps them."""
    if df.config.get_backend() == "opencl":
        from dualflow.backends.opencl.devices import current_device  # it imports pyopencl

        monkeypatch.setattr(current_device().memory, "largest", 1 << 16)
    monkeypatch.setattr(options, "available_bytes", lambda: 1 << 16)


@pytest.mark.usefixtures("_little_memory")
def test_memory_that_does_not_suffice_is_an_error() -> None:
    @df.function
    def gradient(x: Any, n: Any) -> Any:
        with df.GradientTape() as tape:
            tape.watch(x)
            y = df.while_loop(lambda i, h: i < n, lambda i, h: (i + 1, df.sin(h)), (df.constant(0), x))[1]
        return tape.gradient(y, x)

    assert gradient(df.constant(X), df.constant(1000)).shape == (3, 4)
    with pytest.raises(df.errors.ResourceExhaustedError, match="maximum_iterations"):
        gradient(df.constant(X), df.constant(100_000))
    assert gradient(df.constant(X), df.constant(1000)).shape == (3, 4)


def _grown(x: Any) -> Any:
    y = x
    for _ in df.range(df.cast(x[0], df.int32)):
        df.autograph.experimental.set_loop_options(shape_invariants=[(y, df.TensorShape([None]))])
        y = df.concat([y, df.sin(y)], 0)
    return df.reduce_sum(y * y)


def _shrunk(x: Any) -> Any:
    y, total = x, df.constant(0.0)
    while df.shape(y)[0] > 1:
        df.autograph.experimental.set_loop_options(shape_invariants=[(y, df.TensorShape([None]))])
        total = total + df.reduce_prod(y)
        y = y[1:] * y[:-1]
    return total


@pytest.mark.parametrize("function", [_grown, _shrunk])
@pytest.mark.parametrize("inside", [True, False])
def test_a_loop_whose_carried_tensor_changes_its_size_has_a_gradient(
    function: Callable[[Any], Any], inside: bool
) -> None:
    def gradient(f: Callable[[Any], Any], x: Any) -> Any:
        with df.GradientTape() as tape:
            tape.watch(x)
            y = f(x)
        return tape.gradient(y, x)

    for values in ([2.25, 0.75, 0.5], [0.25, 3.0, 1.5]):
        x = df.constant(values)
        compiled = df.function(lambda x: gradient(function, x)) if inside else df.function(function)
        result = compiled(x) if inside else gradient(compiled, x)
        np.testing.assert_allclose(result, gradient(function, x), rtol=1e-5)


def test_rows_of_several_sizes_make_no_stack() -> None:
    @df.function
    def stacked(n: Any) -> Any:
        return df.map_fn(
            lambda i: df.range(i), df.range(n), fn_output_signature=df.TensorSpec([None], df.int32)
        )

    with pytest.raises(df.errors.InvalidArgumentError, match=r"differ in size: \(0,\) and \(1,\).*Pad"):
        stacked(df.constant(3))


def test_no_gradient_flows_through_stop_gradient_of_a_range() -> None:
    @df.function
    def gradient(w: Any) -> Any:
        with df.GradientTape() as tape:
            tape.watch(w)
            total = w * 0.0
            for x in df.stop_gradient(df.range(5.0) * w):
                total += x * x
        return total, tape.gradient(total, w)

    assert [float(x) for x in gradient(df.constant(2.0))] == [120.0, 0.0]
