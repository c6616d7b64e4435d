"""Buffer assignment: variables in their own buffers, fresh outputs, one arena, views without memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dualflow as df
from dualflow.backends.llvm.executable import Executable
from dualflow.core import dispatch
from dualflow.graph.symbolic_size_ops import REQUIRE_SIZE, binds_or_checks_size
from dualflow.ops.op_kinds import Opaque
from dualflow.ops.record import Op
from dualflow.schedule.operands import CallKind

N = 6
SPEC = df.TensorSpec((N, N))
ECHO = Op(
    name="echo",
    doc="Its input itself, by way of NumPy.",
    infer=lambda x: x,
    kernel=lambda x: x,
    kind=Opaque("to see what becomes of a result that is an input"),
)


def numbers(*shape: int) -> np.ndarray:
    return np.random.default_rng(shape).normal(size=shape).astype(np.float32)


def variable(*shape: int) -> Any:
    return df.Variable(numbers(*(shape or (N, N))))


def executable(function: Callable[..., Any], *specs: df.TensorSpec) -> Executable:
    compiled: Executable = df.function(function).get_concrete_function(*specs).compiled.executable
    return compiled


def kinds(function: Callable[..., Any], *specs: df.TensorSpec) -> list[str]:
    """The calls of a graph: kernel, product, assembly or host."""
    return [call.kind for call in executable(function, *specs).plan.calls]


def address(v: Any) -> int:
    """Where a variable's elements are now."""
    array: int = v._tensor._array.__array_interface__["data"][0]
    return array


def agrees(function: Callable[..., Any], *variables: Any, calls: int = 3) -> None:
    """Compiled calls change the variables and return the same as Python."""
    initial = [v.numpy().copy() for v in variables]
    expected = []
    for _ in range(calls):
        expected += [np.array(x) for x in [*function(), *(v.numpy() for v in variables)]]
    for v, value in zip(variables, initial, strict=True):
        v.assign(value)
    compiled, results = df.function(function), []
    for _ in range(calls):
        results += [np.array(x) for x in [*compiled(), *(v.numpy() for v in variables)]]
    for a, b in zip(results, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


# A variable is updated in its own buffer


def test_an_update_element_by_element_is_one_kernel() -> None:
    v = variable()
    assert kinds(lambda x: v.assign(v * 0.9 + x * v, read_value=False), SPEC) == ["kernel"]


def test_an_update_leaves_the_value_where_it_is() -> None:
    v = variable()
    step = df.function(lambda x: v.assign_add(x, read_value=False))
    x = df.constant(numbers(N, N))
    step(x)
    before = address(v)
    step(x)
    step(x)
    assert address(v) == before


def test_a_product_is_added_to_a_variable_in_place() -> None:
    v = variable()

    def descend(x: Any) -> None:
        v.assign_sub(0.1 * (x @ x))

    assert kinds(descend, SPEC) == ["product"]


def test_rows_are_scattered_in_place_after_a_check_of_their_indices() -> None:
    v = variable()

    def descend(i: Any, rows: Any) -> None:
        v.scatter_nd_add(i, rows)

    places, rows = df.TensorSpec((3, 1), df.int32), df.TensorSpec((3, N))
    assert kinds(descend, places, rows) == ["bounds", "scatter"]


def test_an_update_waits_for_what_may_fail() -> None:
    """It stays in place: nothing is copied, since nothing that may fail depends on it."""
    v, w = variable(), variable(N)

    def step(x: Any, i: Any) -> Any:
        v.assign_sub(0.1 * (x @ x))
        w.assign_add(df.gather(w, i))

    calls = executable(step, SPEC, df.TensorSpec((N,), df.int32)).plan.calls
    assert [c.kind for c in calls] == ["kernel", "product", "kernel"]
    assert [c.outputs[0].buffer < 4 for c in calls] == [False, True, True]


def test_updates_that_may_fail_are_copied_to_the_variable_last() -> None:
    v = variable()
    places = df.TensorSpec((N,), df.int32)
    assert kinds(lambda i: v.assign(df.gather(v, i), read_value=False), places) == ["kernel", "kernel"]


def test_complex_variables_are_written_by_machine_code() -> None:
    v = df.Variable(numbers(3).astype(np.complex64))
    assert kinds(lambda: v.assign(df.sin(df.reverse(v, [0])), read_value=False)) == ["host", "kernel"]


def test_a_value_other_code_still_holds_is_not_written_over() -> None:
    v = variable()
    step = df.function(lambda: v.assign_add(v, read_value=False))
    step()
    held = v.value()
    then = held.numpy().copy()
    step()
    np.testing.assert_array_equal(held.numpy(), then)
    np.testing.assert_array_equal(v.numpy(), 2 * then)


def test_an_array_other_code_still_holds_is_not_written_over() -> None:
    v = variable()
    step = df.function(lambda: v.assign_add(v, read_value=False))
    step()
    held = np.asarray(v)[1:]
    then = held.copy()
    step()
    np.testing.assert_array_equal(held, then)


# A copy is made where the old value is still needed: each of these answers and changes what Python would


def swapped(v: Any, w: Any) -> tuple[Any, ...]:
    old = v.value()
    v.assign(w)
    w.assign(old)
    return ()


def rotated(v: Any, w: Any) -> tuple[Any, ...]:
    old = v.value()
    v.assign(w * 2.0)
    w.assign(old + 1.0)
    return (old, v.value())


def own_transpose(v: Any, w: Any) -> tuple[Any, ...]:
    v.assign(df.transpose(v))
    return ()


def own_transpose_added(v: Any, w: Any) -> tuple[Any, ...]:
    v.assign(v + df.transpose(v))
    return ()


def own_reverse(v: Any, w: Any) -> tuple[Any, ...]:
    v.assign(v[::-1] * 2.0)
    return ()


def own_part(v: Any, w: Any) -> tuple[Any, ...]:
    v.assign(v - v[:1])
    return ()


def own_rows_centred(v: Any, w: Any) -> tuple[Any, ...]:
    v.assign(v - df.reduce_mean(v, 1, keepdims=True))
    return ()


def own_columns_centred(v: Any, w: Any) -> tuple[Any, ...]:
    v.assign(v - df.reduce_mean(v, 0, keepdims=True))
    return ()


def own_elements_picked(v: Any, w: Any) -> tuple[Any, ...]:
    v.assign(df.gather(v, [5, 4, 3, 2, 1, 0]))
    return ()


def own_product(v: Any, w: Any) -> tuple[Any, ...]:
    v.assign(v @ v * 0.1)
    return ()


def own_product_added(v: Any, w: Any) -> tuple[Any, ...]:
    v.assign(v + 0.1 * (v @ w))
    return ()


def old_value_handed_back(v: Any, w: Any) -> tuple[Any, ...]:
    old = v.value()
    v.assign_add(w)
    return (old,)


def view_of_old_value_handed_back(v: Any, w: Any) -> tuple[Any, ...]:
    old = v.value()
    v.assign_add(w)
    return (old[1:, ::-1],)


def new_value_handed_back(v: Any, w: Any) -> tuple[Any, ...]:
    v.assign_add(w)
    return (v.value(), df.transpose(v))


def old_value_used_later(v: Any, w: Any) -> tuple[Any, ...]:
    old = v.value()
    v.assign(v * 2.0)
    return (df.cumsum(old), v @ old)


def one_value_for_two(v: Any, w: Any) -> tuple[Any, ...]:
    new = v * 0.5 + w
    v.assign(new)
    w.assign(new)
    return (new,)


def views_of_one_value_for_two(v: Any, w: Any) -> tuple[Any, ...]:
    new = v * 0.5 + w
    v.assign(df.transpose(new))
    w.assign(new[::-1])
    return (new,)


def value_of_the_other(v: Any, w: Any) -> tuple[Any, ...]:
    v.assign(df.reduce_sum(w, 0) + v)
    w.assign(v * 0.5)
    return ()


def a_constant(v: Any, w: Any) -> tuple[Any, ...]:
    v.assign(df.ones((N, N)))
    w.assign(v + w)
    return (v.value(),)


def a_part(v: Any, w: Any) -> tuple[Any, ...]:
    v[1].assign(w[2])
    w[:, 0].assign(v[:, 1])
    return ()


def by_way_of_numpy(v: Any, w: Any) -> tuple[Any, ...]:
    v.assign(df.sort(v) * 0.5)
    w.assign(df.sort(w))
    return ()


UPDATES = [
    swapped,
    rotated,
    own_transpose,
    own_transpose_added,
    own_reverse,
    own_part,
    own_rows_centred,
    own_columns_centred,
    own_elements_picked,
    own_product,
    own_product_added,
    old_value_handed_back,
    view_of_old_value_handed_back,
    new_value_handed_back,
    old_value_used_later,
    one_value_for_two,
    views_of_one_value_for_two,
    value_of_the_other,
    a_constant,
    a_part,
    by_way_of_numpy,
]


@pytest.mark.parametrize("update", UPDATES, ids=lambda f: f.__name__)
def test_an_update_changes_what_python_would(update: Callable[..., Any]) -> None:
    v, w = df.Variable(numbers(N, N)), df.Variable(numbers(N, N) + 1)
    agrees(lambda: update(v, w), v, w)


def test_an_update_of_its_own_row_and_whole_sums() -> None:
    v, w = variable(N), df.Variable(np.float32(2.0))

    def update() -> tuple[Any, ...]:
        total = df.reduce_sum(v * w)
        w.assign(total * 0.1)
        v.assign(v - df.reduce_max(v) * w)
        return (total,)

    agrees(update, v, w)


def test_an_update_in_a_dtype_without_loops_is_kept() -> None:
    v = df.Variable(np.array([1 + 2j, 3 - 1j], np.complex64))

    def update() -> tuple[Any, ...]:
        old = v.value()
        v.assign(v * 1j)
        return (old, v.value())

    agrees(update, v)


# Outputs are fresh


def test_an_argument_handed_back_is_a_copy() -> None:
    x = df.constant(numbers(N))
    y = df.function(lambda x: x)(x)
    assert not np.shares_memory(np.asarray(x), np.asarray(y))


def test_outputs_of_two_calls_are_apart() -> None:
    f = df.function(lambda x: (x + 1.0, df.ones(3), x[::-1]))
    x = df.constant(numbers(N))
    for a, b in zip(f(x), f(x), strict=True):
        assert not np.shares_memory(np.asarray(a), np.asarray(b))


def test_one_value_handed_back_twice_is_two_arrays() -> None:
    def twice(x: Any) -> tuple[Any, Any]:
        y = x + 1.0
        return y, y

    a, b = df.function(twice)(df.constant(numbers(N)))
    assert not np.shares_memory(np.asarray(a), np.asarray(b))


def test_the_value_of_a_variable_handed_back_stays_as_it_was() -> None:
    v = variable()
    step = df.function(lambda: v.assign_add(v).value())
    first = step()
    then = first.numpy().copy()
    step()
    step()
    np.testing.assert_array_equal(first.numpy(), then)


def test_a_result_of_numpy_that_is_its_input_is_copied() -> None:
    v = variable()

    def old_by_way_of_numpy() -> Any:
        old = dispatch.current().apply(ECHO, (v.value(),), {})
        v.assign_add(v)
        return old

    then = v.numpy().copy()
    np.testing.assert_array_equal(df.function(old_by_way_of_numpy)().numpy(), then)


# Sizes


def test_sizes_of_arguments_are_compared_before_the_first_call() -> None:
    """So the calls that may run concurrently are those of static sizes."""
    dynamic = df.TensorSpec([None, N])
    nodes = [call.node for call in executable(lambda x, y, z: x @ z @ z + y, *[dynamic] * 3).plan.calls]
    first = [binds_or_checks_size(node) for node in nodes]
    assert first == sorted(first, reverse=True)
    assert {REQUIRE_SIZE} < {node.op for node in nodes}


# Memory


def test_views_take_neither_calls_nor_memory() -> None:
    plan = executable(lambda x: df.reduce_sum(df.transpose(df.reshape(x, (4, 9)))[1:, ::2] + 1.0), SPEC).plan
    assert [call.kind for call in plan.calls] == ["kernel"]
    assert plan.arena_bytes == 0


def test_a_view_reads_the_buffer_of_what_it_shows() -> None:
    (call,) = executable(lambda x: df.transpose(x)[1:] * 2.0, SPEC).plan.calls
    (layout,) = call.inputs
    assert (layout.buffer, layout.offset, layout.strides) == (0, 1, (1, N))


def test_a_view_that_strides_cannot_express_is_copied_first() -> None:
    plan = executable(lambda x: df.reshape(df.transpose(x), (4, 9)) * 2.0, SPEC).plan
    assert [call.kind for call in plan.calls] == ["kernel", "kernel"]


def test_the_arena_is_used_again_when_values_are_dead() -> None:
    def chain(x: Any) -> Any:
        for _ in range(20):
            x = x @ x
        return x

    spec = df.TensorSpec((64, 64))
    assert executable(chain, spec).plan.arena_bytes == 2 * 64 * 64 * 4


def test_a_value_in_use_keeps_its_place() -> None:
    def residual(x: Any) -> Any:
        early = x @ x
        late = early
        for _ in range(5):
            late = late @ x
        return late @ early

    x = df.constant(numbers(N, N))
    np.testing.assert_allclose(df.function(residual)(x).numpy(), residual(x).numpy(), rtol=1e-4)


def test_returned_values_are_computed_in_the_output_buffer() -> None:
    plan = executable(lambda x: (df.exp(x), x @ x, df.concat([x, x], 0)), SPEC).plan
    assert sorted(call.kind for call in plan.calls) == ["assembly", "kernel", "product"]
    assert plan.arena_bytes == 0


MATRICES: dict[str, Callable[[Any], Any]] = {
    "itself": lambda x: x,
    "transposed": df.transpose,
    "rows backwards": lambda x: x[::-1],
    "columns backwards": lambda x: x[:, ::-1],
    "every other row": lambda x: x[::2],
    "every other column": lambda x: x[:, ::2],
    "one column": lambda x: x[:, 1:2],
    "one row": lambda x: x[2:3],
    "a part": lambda x: x[1:4, 2:5],
    "one row repeated": lambda x: df.broadcast_to(x[0], (4, N)),
    "none": lambda x: x[:0],
}


@pytest.mark.parametrize("view", MATRICES.values(), ids=MATRICES.keys())
def test_products_read_any_view(view: Callable[[Any], Any]) -> None:
    """BLAS reads rows or columns of neighbours; other views are copied first."""

    def both(x: Any) -> tuple[Any, Any]:
        m = view(x)
        return df.matmul(m, m, transpose_b=True), df.matmul(m, m, transpose_a=True)

    x = df.constant(numbers(N, N))
    for result, expected in zip(df.function(both)(x), both(x), strict=True):
        np.testing.assert_allclose(result.numpy(), expected.numpy(), rtol=1e-5, atol=1e-5)


def test_a_reshaped_result_is_computed_in_the_results_buffer() -> None:
    assert kinds(lambda x: df.reshape(x @ x, [-1]), SPEC) == ["product"]
    assert kinds(lambda x: df.reshape(x + 1.0, [N, 2, N // 2]), SPEC) == ["kernel"]
    assert kinds(lambda x: df.reshape(df.transpose(x + 1.0), [-1]), SPEC) == ["kernel"]
    assert kinds(lambda x: df.transpose(x @ x), SPEC) == ["product", "kernel"]
    assert kinds(lambda x: df.reshape(df.transpose(x @ x), [-1]), SPEC) == ["product", "kernel"]
    assert kinds(lambda x: (x @ x)[::2], SPEC) == ["product", "kernel"]
    assert kinds(lambda x: (x @ x)[1:], SPEC) == ["product"]


def test_two_results_that_differ_in_shape_alone() -> None:
    def f(x: Any) -> Any:
        y = x @ x
        return df.reshape(y, [-1]), y, df.reshape(y, [2, -1])

    x = numbers(N, N)
    for result, expected in zip(df.function(f)(x), f(df.constant(x)), strict=True):
        np.testing.assert_allclose(result, expected, rtol=1e-5)


@pytest.mark.parametrize("shape", [[3], [3, 1, 1], [1, 3, 1]])
def test_a_branch_may_hand_back_a_sum_under_another_shape(shape: list[int]) -> None:
    """The sum is made where the conditional's result lies, with the strides of its own shape."""

    @df.function
    def f(x: Any, first: Any) -> Any:
        return df.cond(
            first,
            lambda: df.reshape(df.reduce_sum(x, 0, keepdims=True), shape),
            lambda: df.reshape(x[0], shape),
        )

    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    assert f(x, df.constant(True)).numpy().ravel().tolist() == [3, 5, 7]
    assert f(x, df.constant(False)).numpy().ravel().tolist() == [0, 1, 2]


def test_a_row_of_a_loop_may_be_a_sum_under_another_shape() -> None:
    rows = df.function(lambda x: df.map_fn(lambda r: df.reshape(df.reduce_sum(r, 0, keepdims=True), [3]), x))
    x = np.arange(12, dtype=np.float32).reshape(2, 2, 3)
    assert rows(x).numpy().tolist() == x.sum(1).tolist()


def test_a_kernel_writes_in_the_order_in_which_its_result_is_read() -> None:
    def f(x: Any) -> Any:
        y = df.exp(df.reshape(x, [2, 3, N]))
        return df.reshape(df.transpose(y, [1, 0, 2]), [N, N]) @ x

    assert kinds(f, SPEC) == ["kernel", "product"]
    x = numbers(N, N)
    expected = np.exp(x).reshape(2, 3, N).transpose(1, 0, 2).reshape(N, N) @ x
    np.testing.assert_allclose(df.function(f)(x), expected, rtol=1e-5)


@pytest.mark.parametrize("perm", [[0, 2, 1, 3], [2, 0, 1, 3]])
def test_results_with_symbolic_sizes_are_written_in_the_order_in_which_they_are_read(perm: list[int]) -> None:
    def f(x: Any) -> Any:
        joined = df.reshape(df.transpose(df.exp(x), perm), [-1, N])
        return joined, df.reshape(df.transpose(x + 1.0, perm), [-1, N]) @ df.ones([N, 2])

    g = df.function(f, input_signature=[df.TensorSpec([None, 2, 3, N])])
    for size in (2, 0, 1, 5):
        x = df.constant(numbers(size, 2, 3, N))
        for result, expected in zip(g(x), f(x), strict=True):
            np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-6)
    calls = g.concrete_functions[0].compiled.executable.plan.calls
    assert sorted(c.kind for c in calls if c.kind is not CallKind.MEASURE) == ["kernel", "product"]


@pytest.mark.parametrize(
    "view",
    [
        lambda x: df.tile(x, [2, 1, 3, 1]),
        lambda x: df.reshape(df.transpose(x, [0, 2, 1, 3]), [-1, N]),
        lambda x: df.reshape(df.transpose(x, [3, 0, 1, 2]), [N, -1]),
        lambda x: df.repeat(x, 3, 0),
        lambda x: df.reshape(x[:, :1], [-1, 3 * N]),
    ],
    ids=["tiles", "swapped", "last first", "repeated", "a part"],
)
def test_a_result_that_is_a_view_of_an_argument_of_symbolic_size_is_one_copy(view: Any) -> None:
    g = df.function(lambda x: (view(x), x + 1.0), input_signature=[df.TensorSpec([None, 2, 3, N])])
    for size in (2, 0, 1, 5, 300):
        x = df.constant(numbers(size, 2, 3, N))
        np.testing.assert_array_equal(g(x)[0], view(x))
    calls = g.concrete_functions[0].compiled.executable.plan.calls
    assert [c.kind for c in calls if c.kind is not CallKind.MEASURE] == ["kernel", "kernel"]


@pytest.mark.parametrize(
    "other",
    [
        lambda y: y,
        lambda y: df.reshape(y, [-1]),
        lambda y: df.reduce_sum(y, 0),
        lambda y: df.linalg.inv(df.reshape(y, [N, N])),
        lambda y: df.reshape(df.transpose(y, [2, 0, 1]), [-1]),
    ],
    ids=["itself", "in order", "a sum", "by NumPy", "another order"],
)
def test_another_reader_of_a_permuted_layout(other: Callable[[Any], Any]) -> None:
    def f(x: Any) -> Any:
        y = df.exp(df.reshape(x, [2, 3, N]))
        return df.reshape(df.transpose(y, [1, 0, 2]), [-1]) * 2.0, other(y)

    def g(x: Any) -> Any:
        y = df.exp(df.reshape(x, [2, 3, N]))
        return df.reshape(df.transpose(y, [1, 0, 2]), [-1]), other(y)

    x = numbers(N, N)
    for function in (f, g):
        for result, expected in zip(df.function(function)(x), function(df.constant(x)), strict=True):
            np.testing.assert_allclose(result, expected, rtol=1e-4)


def test_a_result_that_repeats_what_a_kernel_makes() -> None:
    result = df.function(lambda x: df.broadcast_to(df.exp(x), [3, 1, N]))(numbers(1, N))
    np.testing.assert_allclose(result, np.broadcast_to(np.exp(numbers(1, N)), [3, 1, N]), rtol=1e-6)
    ones = df.function(lambda x: df.broadcast_to(x * 7.0, [3, 1, 1]))(np.ones((1, 1), np.float32))
    np.testing.assert_array_equal(ones, np.full((3, 1, 1), 7.0))


def test_a_result_under_another_shape_of_what_numpy_copies() -> None:
    x = np.arange(24).reshape(2, 3, 4).astype(np.complex64)
    result = df.function(lambda x: df.reshape(df.transpose(x, [1, 0, 2]), [3, 8]))(x)
    np.testing.assert_array_equal(result, x.transpose(1, 0, 2).reshape(3, 8))
