"""Functions without a signature: calls that differ in sizes share a trace, guarded by Python's decisions."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dualflow as df

SIZES = (3, 4, 0, 1, 2, 31, 32, 33, 100, 5)


def values(*shape: int) -> df.Tensor:
    return df.constant(np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32))


def traces_for(
    function: Callable[..., Any], shapes: list[tuple[int, ...]], **options: Any
) -> df.types.experimental.GenericFunction:
    """The traced function, whose results for tensors of ``shapes`` are those of ``function``."""
    traced = df.function(function, **options)
    for shape in shapes:
        x = values(*shape)
        computed, expected = df.nest.flatten(traced(x)), df.nest.flatten(function(x))
        for result, reference in zip(computed, expected, strict=True):
            assert result.dtype == reference.dtype
            np.testing.assert_allclose(result.numpy(), reference.numpy(), rtol=1e-5, atol=1e-6)
    return traced


def rows(sizes: tuple[int, ...] = SIZES) -> list[tuple[int, ...]]:
    return [(n, 3) for n in sizes]


def mean(x: Any) -> Any:
    return df.reduce_sum(x, 0) / (x.shape[0] + 1)


def scaled(x: Any) -> Any:
    return x * (0.5 * (x.shape[0] + 2)) + (x.shape[0] - 1) * 0.25


def reshaped(x: Any) -> Any:
    count, width = x.shape
    return df.reshape(x, [width, count]), df.reshape(df.reshape(x, [count * width]), (-1, width))


def concatenated(x: Any) -> Any:
    y = df.concat([x, x[1:]], 0)
    return df.ones(y.shape) * y.shape[0], df.range(y.shape[0]), df.zeros(y.shape[:1].concatenate([2]))


def halves(x: Any) -> Any:
    middle = x.shape[0] // 2
    return x[:middle], x[middle:]


def counted(x: Any) -> Any:
    return x * len(x), df.constant(x.shape), df.stack([x.shape[0], 7]), df.constant(x.shape[0], df.float64)


def looped(x: Any) -> Any:
    total, i = df.zeros([3]), df.constant(0)
    while i < x.shape[0]:
        total = total + x[i]
        i = i + 1
    return total


def chosen(x: Any) -> Any:
    return x * x.shape[0] if df.reduce_sum(x) > 0 else x - x.shape[0]


def ranked(x: Any) -> Any:
    x.shape.assert_is_compatible_with([None, 3])
    assert isinstance(x.shape[0], int)
    assert x.shape.rank == 2
    assert x.shape[0] >= 0
    return x + 1.0


@pytest.mark.parametrize("function", [mean, scaled, reshaped, concatenated, halves, counted])
def test_code_that_computes_with_sizes_is_traced_once_for_batches_of_all_sizes(
    function: Callable[..., Any],
) -> None:
    assert traces_for(function, rows()).experimental_get_tracing_count() == 1


@pytest.mark.parametrize("function", [looped, chosen, ranked])
def test_code_with_control_flow_or_effects_is_traced_twice_for_all_sizes(
    function: Callable[..., Any],
) -> None:
    assert traces_for(function, rows()).experimental_get_tracing_count() == 2


@pytest.mark.parametrize("function", [mean, scaled, reshaped, concatenated, halves, counted])
def test_other_axes_than_the_first_are_traced_twice_for_all_sizes(function: Callable[..., Any]) -> None:
    shapes = [(3, n) for n in SIZES if n > 0]  # an axis of -1 next to one of 0 has no size
    assert traces_for(function, shapes).experimental_get_tracing_count() == 2


def test_a_comparison_of_a_size_has_a_trace_for_each_outcome() -> None:
    def doubled_if_long(x: Any) -> Any:
        return x * 2.0 if x.shape[0] > 31 else x

    traced = traces_for(doubled_if_long, rows())
    assert traced.experimental_get_tracing_count() == 2


def test_guards_hold_on_the_fast_path() -> None:
    def doubled_if_long(x: Any) -> Any:
        return x * 2.0 if x.shape[0] > 4 else x

    traced = traces_for(doubled_if_long, rows())
    for _ in range(3):
        for n in (4, 5, 4, 5, 5, 4):
            x = values(n, 3)
            np.testing.assert_array_equal(traced(x).numpy(), doubled_if_long(x).numpy())
    assert traced.experimental_get_tracing_count() <= 4


def test_equal_and_unequal_sizes_of_two_arguments_are_distinguished() -> None:
    @df.function
    def joined(x: Any, y: Any) -> Any:
        return x + y if x.shape == y.shape else df.concat([x, y], 0)

    for n, m in ((2, 2), (3, 3), (3, 4), (5, 5), (4, 3), (6, 6), (7, 1)):
        x, y = values(n, 3), values(m, 3)
        expected = x + y if n == m else df.concat([x, y], 0)
        np.testing.assert_array_equal(joined(x, y).numpy(), expected.numpy())


@pytest.mark.filterwarnings("ignore::dualflow.function.errors.RetracingWarning")
@pytest.mark.parametrize(
    "read",
    [
        lambda n: sum(range(n)),
        lambda n: len("x" * n),
        lambda n: sum([0.5] * n) + math.sqrt(n),
        lambda n: int(f"{n}"),
        lambda n: {3: 1}.get(n, 0),
        lambda n: hash(n) % 7,
        lambda n: n & 1,
        lambda n: np.arange(50)[n],
        lambda n: round(1.0 / (n + 1), 2),
        lambda n: divmod(n, 4)[0] ** 2 if n else 0,
    ],
)
def test_a_size_that_python_needs_as_a_number_is_exact(read: Callable[[int], float]) -> None:
    traces_for(lambda x: x * float(read(x.shape[0])), rows((3, 4, 5, 0, 1, 4, 3, 9)))


def test_an_axis_that_python_needs_as_a_number_is_fixed_and_others_stay_open() -> None:
    def unrolled(x: Any) -> Any:
        total = df.zeros([x.shape[0]])
        for i in range(x.shape[1]):
            total = total + x[:, i] * i
        return total

    traced = traces_for(unrolled, [(2, 3), (4, 5), (6, 5), (7, 5), (8, 3), (9, 3), (1, 5), (3, 3)])
    assert traced.experimental_get_tracing_count() <= 4


@pytest.mark.parametrize(
    "function",
    [
        lambda x: df.add_n(df.unstack(x)) * 2.0,
        lambda x: sum(row * row for row in x),
        lambda x: df.stack(list(x)[::-1]),
        lambda x: df.stack([row * float(i) for i, row in enumerate(x)]),
        lambda x: df.stack([a * b for a, b in zip(x, x[::-1], strict=False)]),
        lambda x: df.stack([a + i * b for i, (a, b) in enumerate(zip(x, x[::2], strict=False))]),
    ],
    ids=["unstacked", "summed", "reversed", "enumerated", "zipped", "enumerated pairs"],
)
def test_an_axis_that_python_unpacks_is_fixed_and_others_stay_open(function: Callable[..., Any]) -> None:
    traced = traces_for(function, [(3, 4), (3, 5), (2, 6), (2, 7), (3, 8), (2, 9), (2, 3)])
    assert traced.experimental_get_tracing_count() <= 4
    assert "(test_automatic_sizes.py:" in traced.explain()


def test_a_pattern_matches_the_rows_of_a_dynamic_axis_as_those_of_a_static_one() -> None:
    def rows_of(x: Any) -> Any:
        match x:
            case [first, second]:
                return first, second
            case _:
                return x

    traced, exact = df.function(rows_of), df.function(rows_of, sizes="exact")
    for n in (3, 4, 2, 5, 2):
        for result, expected in zip(traced(values(n, n)), exact(values(n, n)), strict=True):
            np.testing.assert_array_equal(result, expected)


def halved_while_large(x: Any) -> Any:
    y = x
    while df.reduce_sum(df.abs(y)) > 1.0:
        y = y * 0.5 / (y.shape[0] + 1)
    return y


def summed_rows(x: Any) -> Any:
    total = df.zeros_like(x)
    for row in x:
        total = total + row * total.shape[0]
    return total


BODIES: dict[str, Callable[[Any], Any]] = {
    "map_fn": lambda x: df.map_fn(lambda column: column * column.shape[0], df.transpose(x)),
    "scan": lambda x: df.scan(lambda s, column: s / (s.shape[0] + 1) + column, df.transpose(x)),
    "foldl": lambda x: df.foldl(lambda s, column: s * column.shape[0] + column, df.transpose(x)),
    "while_loop": lambda x: df.while_loop(
        lambda i, y: i < df.shape(y)[1], lambda i, y: (i + 1, y + y.shape[0]), (df.constant(0), x)
    )[1],
    "while": halved_while_large,
    "for": summed_rows,
    "a loop in a loop": lambda x: df.map_fn(
        lambda column: df.scan(lambda s, c: s + c * column.shape[0], column, 0.0), df.transpose(x)
    ),
    "vmap": lambda x: df.autodiff.vmap(lambda column: column * column.shape[0], 1)(x),
    "vmap of dynamic rows": lambda x: df.vectorized_map(lambda row: row[:, None] * row.shape[0], x),
}


@pytest.mark.parametrize("name", BODIES)
def test_sizes_inside_of_bodies_of_loops_are_dynamic(name: str) -> None:
    assert traces_for(BODIES[name], rows()).experimental_get_tracing_count() == 2


def test_a_loop_variable_without_a_provably_constant_size_has_a_trace_for_each_shape() -> None:
    def interleaved(x: Any) -> Any:
        for _ in df.range(2):
            x = df.concat([x[::2], x[1::2]], 0) * x.shape[0]
        return x

    assert "Sizes can't be dynamic" in traces_for(interleaved, rows((3, 4, 5, 1))).explain()


def test_sizes_of_captured_tensors_inside_of_branches_are_open() -> None:
    def branched(x: Any) -> Any:
        return df.cond(df.reduce_sum(x) > 0, lambda: x * x.shape[0], lambda: x + x.shape[0])

    assert traces_for(branched, rows()).experimental_get_tracing_count() == 2


def test_a_function_inside_reads_the_sizes_of_the_outer_call() -> None:
    @df.function
    def inner(x: Any) -> Any:
        return x / (x.shape[0] + 1)

    traced = traces_for(lambda x: inner(x) + inner(df.concat([x, x], 0))[: x.shape[0]], rows())
    assert traced.experimental_get_tracing_count() == 2


@pytest.mark.filterwarnings("ignore::dualflow.function.errors.RetracingWarning")  # of the eager calls
def test_a_size_that_is_passed_to_another_function_stays_open() -> None:
    @df.function
    def scaled_by(x: Any, n: int) -> Any:
        return x * n + df.cast(df.range(n)[-1], x.dtype)

    @df.function
    def counted_to(n: int) -> Any:
        return df.range(n)

    def passed(x: Any) -> Any:
        return scaled_by(df.ones([3]), x.shape[0]), scaled_by(x, n=x.shape[0]), counted_to(x.shape[0] + 1)

    assert traces_for(passed, rows((3, 4, 1, 2, 31, 5))).experimental_get_tracing_count() == 2


def test_exact_sizes_have_a_trace_for_each_shape() -> None:
    traced = traces_for(mean, rows((3, 4, 5, 3)), sizes="exact")
    assert traced.experimental_get_tracing_count() == 3


def test_a_concrete_function_has_the_sizes_that_it_was_requested() -> None:
    traced = traces_for(mean, rows())
    concrete = traced.get_concrete_function(df.TensorSpec([77, 3]))
    assert concrete.inputs[0].shape == (77, 3)


def test_reduce_retracing_reads_none_as_in_tensorflow() -> None:
    sizes = []

    @df.function(reduce_retracing=True)
    def f(x: Any) -> Any:
        sizes.append(x.shape[0])
        return x + 1.0

    for n in (2, 3, 4):
        f(values(n))
    assert sizes == [2, None]


def test_a_wrong_call_has_the_error_of_its_own_shapes() -> None:
    @df.function
    def product(x: Any) -> Any:
        return df.matmul(x, df.ones([3, 2]))

    product(values(2, 3))
    with pytest.raises(df.errors.InvalidArgumentError) as raised:
        product(values(2, 4))
    assert raised.value.__context__ is None
    assert product(values(5, 3)).shape == (5, 2)


def test_a_size_that_is_kept_is_the_number_of_its_trace() -> None:
    kept: list[Any] = []

    @df.function
    def f(x: Any) -> Any:
        kept.extend([x.shape[0], 1.0 / x.shape[0], x.shape])
        return x + x.shape[0]

    for n in (2, 3, 4):
        f(values(n))
    size, inverse, shape = kept[3:]
    assert (int(size), float(inverse), list(shape)) == (3, 1 / 3, [3])
    results: list[tuple[Any, Any]] = [
        (df.zeros([size]), df.zeros([3])),
        (df.zeros(shape), df.zeros([3])),
        (df.range(size), df.range(3)),
        (df.stack([size, 2]), df.stack([3, 2])),
        (df.ones([5])[:size] * size * inverse, df.ones([3])),
        (df.constant(size, df.float64), df.constant(3, df.float64)),
        (df.function(lambda x: df.zeros([size]) + x * inverse)(3.0), df.ones([3])),
    ]
    for result, expected in results:
        assert result.dtype == expected.dtype
        np.testing.assert_array_equal(result.numpy(), expected.numpy())


def test_gradients_are_those_of_the_sizes_of_the_call() -> None:
    def slope(x: Any) -> Any:
        with df.GradientTape() as tape:
            tape.watch(x)
            y = df.reduce_sum(df.tanh(x) ** 2) / (x.shape[0] + 1)
        return tape.gradient(y, x)

    assert traces_for(slope, rows()).experimental_get_tracing_count() == 1


def test_variables_are_updated_by_calls_of_all_sizes() -> None:
    total = df.Variable(0.0)

    @df.function
    def add(x: Any) -> Any:
        total.assign_add(df.reduce_sum(x) / x.shape[0])
        return total + 0.0

    for n in (1, 2, 3, 4):
        add(df.fill([n], 2.0))
    assert total.numpy() == 8.0
    assert add.experimental_get_tracing_count() == 2


def test_explain_lists_the_guards_with_their_lines() -> None:
    def doubled_if_long(x: Any) -> Any:
        return x * 2.0 if x.shape[0] > 31 else x

    text = traces_for(doubled_if_long, rows()).explain()
    assert "1. at call 1: x: float32[?, 3]" in text
    assert "x.shape[0] <= 31 (test_automatic_sizes.py:" in text
    assert "x.shape[0] > 31 (test_automatic_sizes.py:" in text
    assert "because x.shape[0] <= 31 does not hold" in text


def test_threads_call_one_function_with_different_sizes() -> None:
    traced = df.function(lambda x: x * 2.0 if x.shape[0] > 20 else x + 1.0)
    failures: list[int] = []

    def call(first: int) -> None:
        for n in range(first, 40, 4):
            x = values(n, 2)
            expected = x * 2.0 if n > 20 else x + 1.0
            if not np.array_equal(traced(x).numpy(), expected.numpy()):
                failures.append(n)

    threads = [threading.Thread(target=call, args=(first,)) for first in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_other_values_of_sizes_are_errors() -> None:
    with pytest.raises(df.errors.InvalidArgumentError, match="no sizes='open'"):
        df.function(lambda x: x, sizes="open")  # type: ignore[arg-type]


NUMBERS = st.deferred(
    lambda: st.one_of(
        st.sampled_from(["n", "m", "1", "2", "3", "7"]),
        st.tuples(NUMBERS, st.sampled_from(["+", "-", "*", "//", "%"]), NUMBERS).map(
            lambda t: f"({' '.join(t)})"
        ),
    )
)
CONDITIONS = st.tuples(NUMBERS, st.sampled_from(["<", "<=", ">", ">=", "==", "!="]), NUMBERS).map(" ".join)


@settings(max_examples=30, deadline=None)
@given(condition=CONDITIONS, factor=NUMBERS, count=NUMBERS)
def test_random_decisions_about_sizes_are_those_of_eager_code(
    condition: str, factor: str, count: str
) -> None:
    source = (
        "def f(x):\n"
        "    n, m = x.shape\n"
        f"    y = x * ({factor}) if {condition} else x - ({factor})\n"
        f"    return y, df.zeros([abs({count}) % 50]), df.constant({factor}, df.float64)\n"
    )
    scope: dict[str, Any] = {"df": df}
    exec(source, scope)
    eager, traced = scope["f"], df.function(scope["f"], autograph=False)
    for shape in ((3, 2), (4, 2), (1, 2), (31, 5), (32, 2), (2, 2), (33, 3)):
        x = values(*shape)
        try:
            expected = eager(x)
        except ZeroDivisionError:
            with pytest.raises(ZeroDivisionError):
                traced(x)
            continue
        for result, reference in zip(traced(x), expected, strict=True):
            assert result.dtype == reference.dtype
            np.testing.assert_array_equal(result.numpy(), reference.numpy())
