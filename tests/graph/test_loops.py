"""Passes on loops: equal ones are merged, unused results dropped, and known iteration counts used."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import dualflow as df
from dualflow.core.spec import TensorSpec
from dualflow.graph.control_ops import LOOP
from dualflow.graph.control_spec import LoopSpec, loop_of
from dualflow.graph.interpret import evaluate
from dualflow.graph.ir import GraphBuilder, Node
from dualflow.graph.options import CompileOptions
from dualflow.graph.passes.dead_code import eliminate_dead_code
from dualflow.graph.passes.map_over_dynamic_stacks import loop_over_stacks
from dualflow.graph.passes.merge_loops import merge_loops
from dualflow.graph.passes.pipeline import SIMPLIFICATIONS, optimise
from dualflow.graph.passes.trimming import trim_control
from dualflow.graph.passes.trip_count import trip_count
from dualflow.graph.passes.unroll_trivial_loops import with_static_trip_counts
from dualflow.ops.op_kinds import Loop
from dualflow.ops.record import REGISTRY

T = 40
random = np.random.default_rng(3)
X = random.standard_normal(3).astype(np.float32)
XS = random.standard_normal((T, 3)).astype(np.float32)


def loops(graph):
    return [n for n in graph.nodes if isinstance(n.op.kind, Loop)]


def simplified(graph):
    return optimise(graph, CompileOptions(), passes=SIMPLIFICATIONS)


def looped(traced, iteration, specs, carried, scanned, length, *, test=None, reverse=False):
    """The graph of one loop: ``iteration`` of what is carried, rows and the rest, while ``test`` holds."""
    specs = [s if isinstance(s, TensorSpec) else TensorSpec(s) for s in specs]
    rows = [TensorSpec(s.shape[1:], s.dtype) for s in specs[carried : carried + scanned]]
    body = traced(iteration, *specs[:carried], *rows, *specs[carried + scanned :])
    condition = traced(test, *specs) if test is not None else None
    builder = GraphBuilder("looped")
    inputs = [builder.argument(s) for s in specs]
    attrs = {"loop": LoopSpec(body, carried, scanned, length, condition=condition, reverse=reverse)}
    return builder.finish(builder.add(LOOP, inputs, attrs).outputs)


# one for two


def test_the_gradient_of_a_loop_shares_its_run(traced, keeps):
    def f(xs, h):
        with df.GradientTape() as tape:
            tape.watch(h)
            y = df.foldl(lambda h, x: df.sin(h) * x, xs, h)
        return y, tape.gradient(y, h)

    before = traced(f, XS.shape, X.shape)
    after = eliminate_dead_code(keeps(merge_loops, before, XS, X))
    assert [len(loops(before)), len(loops(after))] == [3, 2], "there and back"


def test_loops_over_other_inputs_stay_two(traced, keeps):
    def f(xs, h):
        return [df.foldl(lambda h, x: df.sin(h) * x, xs, start) for start in (h, h + 1.0)]

    assert len(loops(keeps(merge_loops, traced(f, XS.shape, X.shape), XS, X))) == 2


def test_a_trimmed_loop_is_not_equal_to_the_original(traced, keeps):
    def f(xs, h):
        first, second = df.foldl(lambda a, x: (a[0] + x, a[1] * x), xs, (h, h))
        return first, second

    whole = traced(f, XS.shape, X.shape)
    (loop,) = loops(whole)
    copy = loop.with_inputs(loop.inputs)
    first, second = whole.outputs
    nodes = (*whole.nodes, copy)
    twice = whole.with_results([first, copy.outputs[second.index]], nodes=nodes)
    assert len(loops(keeps(merge_loops, keeps(trim_control, twice, XS, X), XS, X))) == 2


# an unneeded value


def test_unread_loop_variables_are_dropped(traced, keeps):
    def f(xs, h, unused):
        return df.foldl(lambda a, x: (a[0] * x, a[1] + x), xs, (h, unused))[0]

    (loop,) = loops(keeps(trim_control, traced(f, XS.shape, X.shape, X.shape), XS, X, X))
    assert (loop_of(loop).carried, len(loop.inputs)) == (1, 2)


def test_values_that_other_carried_values_need_are_carried(traced, keeps):
    def f(xs, h, other):
        return df.foldl(lambda a, x: (a[0] * x + a[1], a[1] + x), xs, (h, other))[0]

    (loop,) = loops(keeps(trim_control, traced(f, XS.shape, X.shape, X.shape), XS, X, X))
    assert loop_of(loop).carried == 2


def test_rows_that_nothing_reads_are_not_kept(traced, keeps):
    def f(xs, h):
        return df.scan(lambda a, x: (a[0] + x, a[0] * x), xs, (h, h))[0]

    (loop,) = loops(keeps(trim_control, traced(f, XS.shape, X.shape), XS, X))
    assert len(loop.outputs) - loop_of(loop).carried == 1


def test_unchanged_loop_variables_are_their_initial_values(traced, keeps):
    def f(xs, h, same):
        result, kept = df.foldl(lambda a, x: (a[0] * x + a[1], a[1]), xs, (h, same))
        return result, kept

    graph = keeps(trim_control, traced(f, XS.shape, X.shape, X.shape), XS, X, X)
    assert graph.outputs[1] is graph.inputs[2]
    assert loop_of(loops(graph)[0]).carried == 1


def test_unchanged_loop_variables_are_computed_before_the_loop(traced, keeps):
    def f(xs, h):
        first, _ = df.foldl(lambda a, x: (a[0] * x, a[1] + x), xs, (h, h))
        _, kept = df.foldl(lambda a, x: (a[0] + x, a[1]), xs, (h, first))
        return kept

    assert len(loops(keeps(simplified, traced(f, XS.shape, X.shape), XS, X))) == 1


def test_inputs_of_unneeded_values_are_removed_too(traced, keeps):
    def f(xs, h):
        a, b = df.foldl(lambda a, x: (df.sin(a[0]) * x, a[1] + x), xs, (h, h))
        return df.foldl(lambda a, x: (a[1] * x, a[1] + x), xs, (a * 2.0, b))[1]

    result = loops(keeps(trim_control, traced(f, XS.shape, X.shape), XS, X))
    assert [loop_of(loop).carried for loop in result] == [1, 1]


# known numbers of iterations


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize(("length", "left"), [(0, 0), (1, 0), (2, 1)])
def test_loops_of_zero_or_one_iteration_are_unrolled(traced, keeps, length, left, reverse):
    def iteration(a, b, x, c):
        return df.sin(a) * x, b + a, a * c, x

    specs = [3], [3], [length, 3], [3]
    for count in (length, None):
        graph = looped(traced, iteration, specs, 2, 1, count, reverse=reverse)
        assert len(loops(keeps(with_static_trip_counts, graph, X, X, XS[:length], X))) == left
        keeps(simplified, graph, X, X, XS[:length], X)


def test_effects_of_a_loop_without_iterations_never_happen(traced):
    graph = looped(traced, lambda a: a + df.random.normal([3]), [[3]], 1, 0, 0)
    assert not any(n.effect is not None for n in with_static_trip_counts(graph).nodes)


def test_a_condition_that_is_false_at_the_start_is_no_loop(traced, keeps):
    def f(x):
        return df.while_loop(lambda n, x: n * n < 4, lambda n, x: (n + 1, df.sin(x)), (2, x))

    assert not loops(keeps(simplified, traced(f, [3]), X))


def test_a_counter_takes_the_place_of_a_condition(traced, keeps):
    def f(x):
        return df.while_loop(lambda i, x: i < 7, lambda i, x: (i + 2, df.sin(x) + 0.5), (0, x))

    (loop,) = loops(keeps(simplified, traced(f, [3]), X))
    assert (loop_of(loop).condition, loop_of(loop).length) == (None, 4)


def test_the_most_iterations_end_a_counted_loop(traced, keeps):
    def f(x):
        return df.while_loop(
            lambda i, x: i < 7, lambda i, x: (i + 1, df.sin(x)), (0, x), maximum_iterations=5
        )

    (loop,) = loops(keeps(simplified, traced(f, [3]), X))
    assert loop_of(loop).length == 5


def test_the_backward_pass_has_the_number_of_iterations_as_well(traced, keeps):
    def f(x):
        with df.GradientTape() as tape:
            tape.watch(x)
            _, y = df.while_loop(lambda i, x: i < 7, lambda i, x: (i + 1, df.sin(x)), (0, x))
        return y, tape.gradient(y, x)

    graph = keeps(simplified, traced(f, [3]), X)
    assert [loop_of(n).length for n in loops(graph)] == [7, 7]
    assert all(v.spec.shape.is_static for n in loops(graph) for v in n.outputs)


def test_scalar_loops_stay_as_they_run_in_registers(traced, keeps):
    def f(x):
        return df.while_loop(lambda i, x: i < 7, lambda i, x: (i + 1, x * 0.5), (0, x))

    (loop,) = loops(keeps(simplified, traced(f, []), np.float32(3)))
    assert loop_of(loop).condition is not None


@pytest.mark.parametrize(("iterations", "counted"), [(10**6, True), (10**8, False)])
def test_stacks_that_would_fill_the_memory_grow_iteration_by_iteration(traced, iterations, counted):
    def iteration(i, x):
        return i + 1, df.sin(x), x

    specs = [TensorSpec([], "int32"), TensorSpec([4])]
    graph = looped(traced, iteration, specs, 2, 0, None, test=lambda i, x: i < iterations)
    (loop,) = loops(graph)
    zero = Node(REGISTRY["constant"], (), {"value": np.int32(0)[...]}, specs[:1])
    fed = loop.with_inputs([zero.output, graph.inputs[1]])
    (rewritten,) = loops(with_static_trip_counts(replace(graph, nodes=(zero, fed), outputs=fed.outputs)))
    assert (loop_of(rewritten).condition is None) is counted


def test_effects_of_a_loop_of_one_iteration_happen_once(traced):
    graph = looped(traced, lambda a, x: a + x * df.random.normal([3]), [[3], [1, 3]], 1, 1, 1)
    rewritten = with_static_trip_counts(graph)
    assert not loops(rewritten)
    assert sum(n.effect is not None for n in rewritten.nodes) == 1


@pytest.mark.parametrize("n", [0, 1, 5])
def test_python_loops_over_ranges_are_counted(n):
    @df.function
    def f(x):
        for i in df.range(n):
            x = df.sin(x) + df.cast(i, "float32")
        return x

    graph = simplified(f.get_concrete_function(TensorSpec([3])).graph)
    assert [loop_of(loop).length for loop in loops(graph)] == ([n] if n > 1 else [])


COUNTERS = {
    "up": ("int32", 0, 1, "less", 7, 7),
    "up to": ("int64", 0, 1, "less_equal", 7, 8),
    "by three": ("int32", 1, 3, "less", 8, 3),
    "down": ("int32", 9, -2, "greater", 0, 5),
    "down to": ("int64", 9, -3, "greater_equal", 0, 4),
    "until": ("int32", 2, 2, "not_equal", 8, 3),
    "none": ("int32", 7, 1, "less", 7, 0),
    "past it": ("int32", 1, 2, "not_equal", 8, None),
    "away": ("int32", 0, -1, "less", 7, None),
    "away from the bound": ("int32", 7, -1, "less_equal", 7, None),
    "stuck": ("int32", 0, 0, "less", 7, None),
    "to the last number": ("int32", 2**31 - 4, 1, "less", 2**31 - 1, 3),
    "over the last number": ("int32", 2**31 - 4, 4, "less_equal", 2**31 - 2, None),
    "narrow": ("int8", 0, 1, "less", 7, None),
    "floats": ("float32", 0, 1, "less", 7, None),
}


@pytest.mark.parametrize("mirrored", [False, True])
@pytest.mark.parametrize(
    ("dtype", "start", "step", "test", "bound", "count"), COUNTERS.values(), ids=COUNTERS
)
def test_trip_count(traced, dtype, start, step, test, bound, count, mirrored):
    compare = {
        "less": lambda i: i < bound,
        "less_equal": lambda i: i <= bound,
        "greater": lambda i: i > bound,
        "greater_equal": lambda i: i >= bound,
        "not_equal": lambda i: df.constant(bound, dtype) != i if mirrored else i != bound,
    }[test]
    spec = TensorSpec([], dtype)
    iteration = (lambda i: i + step) if mirrored else (lambda i: i - (-step))
    (loop,) = loops(looped(traced, iteration, [spec], 1, 0, None, test=compare))
    initial = np.array(start, dtype)
    assert trip_count(loop_of(loop), [initial]) == count
    assert trip_count(loop_of(loop), [None]) is None

    def ended(i, go):
        return iteration(i), compare(iteration(i))

    (loop,) = loops(looped(traced, ended, [spec, TensorSpec([], "bool")], 2, 0, None, test=lambda i, go: go))
    going = np.array(bool(evaluate(traced(compare, spec), [initial])[0]))
    assert trip_count(loop_of(loop), [initial, going]) == count
    assert trip_count(loop_of(loop), [initial, None]) is None


def test_a_bound_that_iterations_change_counts_nothing(traced):
    specs = [TensorSpec([], "int32")] * 2
    graph = looped(traced, lambda i, n: (i + 1, n - 1), specs, 2, 0, None, test=lambda i, n: i < n)
    assert trip_count(loop_of(loops(graph)[0]), [np.int32(0), np.int32(9)]) is None


def test_a_condition_with_effects_counts_nothing(traced):
    def test(i):
        df.print(i)
        return i < 3

    graph = looped(traced, lambda i: i + 1, [TensorSpec([], "int32")], 1, 0, None, test=test)
    assert trip_count(loop_of(loops(graph)[0]), [np.int32(0)]) is None


def test_readers_of_rows_with_a_static_count_get_the_count(traced):
    def iteration(i, x):
        return i + 1, df.sin(x), x

    specs = [TensorSpec([], "int32"), TensorSpec([4])]
    graph = looped(traced, iteration, specs, 2, 0, None, test=lambda i, x: i < 10**7)
    (loop,) = loops(graph)
    zero = Node(REGISTRY["constant"], (), {"value": np.int32(0)[...]}, specs[:1])
    fed = loop.with_inputs([zero.output, graph.inputs[1]])
    body = traced(lambda row: df.stack([row] * 9), [4])
    reader = Node(LOOP, [fed.outputs[2]], {"loop": LoopSpec(body, 0, 1, None)}, [TensorSpec([None, 9, 4])])
    whole = replace(graph, nodes=(zero, fed, reader), outputs=reader.outputs)
    assert [loop_of(n).length for n in loops(with_static_trip_counts(whole))] == [10**7, 10**7]


def test_passes_keep_the_loops_choice_of_residuals(traced):
    def iteration(i, x, unused, w):
        return i + 1, df.sin(x) * df.exp(w), unused + x, x

    specs = [TensorSpec([], "int32"), TensorSpec([3]), TensorSpec([3]), TensorSpec([3])]
    graph = looped(traced, iteration, specs, 3, 0, None, test=lambda i, x, unused, w: i < 5)
    (loop,) = loops(graph)
    zero = Node(REGISTRY["constant"], (), {"value": np.int32(0)[...]}, specs[:1])
    attrs = {"loop": replace(loop_of(loop), recompute=True)}
    fed = Node(loop.op, [zero.output, *graph.inputs[1:]], attrs, loop.specs)
    (rewritten,) = loops(simplified(replace(graph, nodes=(zero, fed), outputs=fed.outputs[1:2])))
    assert (loop_of(rewritten).length, loop_of(rewritten).carried, loop_of(rewritten).recompute) == (
        5,
        1,
        True,
    )
    assert len(loop_of(rewritten).body.nodes) == 2, "sin and the product"


@pytest.mark.parametrize(("first", "second"), [(1, 3), (3, 1), (3, 3), (0, 1)])
def test_values_of_dynamic_sizes_broadcast_where_they_are_no_stacks_of_one_loop(
    first: int, second: int
) -> None:
    vector = df.TensorSpec([None])
    graph = df.function(lambda x, y: x * y + x).get_concrete_function(vector, vector).graph
    x, y = np.arange(first) + 2.0, np.arange(second) + 1.0
    (result,) = evaluate(loop_over_stacks(graph), [x.astype(np.float32), y.astype(np.float32)])
    np.testing.assert_array_equal(result, x * y + x)
