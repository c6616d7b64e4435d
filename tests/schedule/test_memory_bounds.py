"""Proofs of a program's memory bounds: valid programs pass, changed ones are refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import dualflow as df
from dualflow.backends.llvm.any_length import any_length
from dualflow.backends.llvm.backend import build
from dualflow.core import dispatch
from dualflow.errors import InternalError
from dualflow.graph.ir import Node, Value
from dualflow.graph.symbolic_size_ops import REQUIRE_SIZE
from dualflow.ops.masking import POSITIONS
from dualflow.ops.record import REGISTRY
from dualflow.schedule.access_bounds import access_bounds
from dualflow.schedule.element_ranges import ElementRange, at_least, check_view, fits, range_of_layout
from dualflow.schedule.lower import lower
from dualflow.schedule.memory_bounds import MemoryBounds
from dualflow.schedule.nest import Layout
from dualflow.schedule.plan import plan
from dualflow.schedule.planned import Plan
from dualflow.schedule.program_statements import (
    CallRoutine,
    LaunchNest,
    Multiply,
    RequireCondition,
    RunLoop,
    ScatterRows,
    Statement,
    nests_of,
    statements,
    walk_program,
)
from dualflow.schedule.select_kernel import kernel_launch
from dualflow.sizes.symbolic_sizes import size_variable

LANES = 16
M, V, BATCH = df.TensorSpec([6, 5]), df.TensorSpec([5]), df.TensorSpec([2, 5, 6])
PLACES, COUNT = df.TensorSpec([3], df.int32), df.TensorSpec([], df.int32)
ROWS = df.TensorSpec([40, 8, 8])
IMAGE, FILTER = df.TensorSpec([2, 9, 9, 16]), df.TensorSpec([3, 3, 16, 8])


def looped(x: Any, n: Any) -> Any:
    """A loop that stacks rows without knowing how many, and one that reads them backwards."""

    def slope(x: Any) -> Any:
        with df.GradientTape() as tape:
            tape.watch(x)
            _, y = df.while_loop(lambda i, y: i < n, lambda i, y: (i + 1, df.tanh(y)), (0, x))
        return tape.gradient(y, x)

    return slope(x)


def asserted(x: Any) -> Any:
    df.debugging.assert_positive(x)
    return x * 2.0


PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[df.TensorSpec, ...], type[Any]]] = {
    "a kernel": (lambda x: df.exp(x[::-1]), (M,), LaunchNest),
    "a product": (lambda x, y: df.matmul(x, y), (M, df.TensorSpec([5, 7])), Multiply),
    "a transposed product": (lambda x, y: df.matmul(x, y, transpose_a=True), (M, M), Multiply),
    "products": (lambda x, y: df.matmul(x, df.transpose(y, [0, 2, 1])), (BATCH, BATCH), Multiply),
    "windows": (lambda x, y: df.nn.conv2d(x, y, 1, "SAME"), (IMAGE, FILTER), Multiply),
    "a scatter": (
        lambda x, i, y: df.tensor_scatter_nd_update(x, i[:, None], y),
        (M, PLACES, df.TensorSpec([3, 5])),
        ScatterRows,
    ),
    "a check": (asserted, (V,), RequireCondition),
    "a loop": (looped, (V, COUNT), RunLoop),
    "rows": (lambda x, w: df.scan(lambda a, row: a + row @ w, x), (ROWS, df.TensorSpec([8, 8])), RunLoop),
    "a host call": (lambda x: df.linalg.inv(x[1:, :]), (df.TensorSpec([10, 9]),), CallRoutine),
}


def planned(name: str) -> Plan:
    function, specs, _ = PROGRAMS[name]
    graph = df.function(function).get_concrete_function(*specs).optimised_graph
    return plan(graph)


def check(layout: Plan, program: tuple[Statement, ...] | None = None) -> None:
    """Raise unless all accesses of a program are inside the buffers of ``layout``."""
    program = statements(layout) if program is None else program
    bounds = MemoryBounds(layout, program)
    bounds.check(program)
    for launch in (x for s in walk_program(program) for x in nests_of(s)):
        run = kernel_launch(lower(*launch), LANES)
        partials = (0, run.total * run.partial_size - 1)
        assert bounds.launched(launch, run, access_bounds(run.kernel), partials) == []
        if run.join is not None:
            bounds.launched(launch, run.join, access_bounds(run.join.kernel), partials)


def refuses(layout: Plan, program: tuple[Statement, ...] | None = None) -> bool:
    try:
        check(layout, program)
    except InternalError:
        return True
    return False


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_are_proved(name: str) -> None:
    layout = planned(name)
    assert any(isinstance(s, PROGRAMS[name][2]) for s in walk_program(statements(layout)))
    check(layout)


@pytest.mark.parametrize("name", PROGRAMS)
def test_smaller_buffers_are_refused(name: str) -> None:
    """Each input and output, and the arena, with one element less."""
    layout = planned(name)

    def less(spec: df.TensorSpec) -> df.TensorSpec:
        elements = spec.shape.num_elements()
        assert elements is not None
        return df.TensorSpec([elements - 1], spec.dtype)

    for kind in ("arguments", "outputs", "temporaries"):
        specs = getattr(layout, kind)
        for i, spec in enumerate(specs):
            if spec.shape.num_elements() and not (kind == "arguments" and name == "a check"):
                smaller = (*specs[:i], less(spec), *specs[i + 1 :])
                assert refuses(layout._replace(**{kind: smaller})), (kind, i)
    if layout.arena_bytes:
        assert refuses(layout._replace(arena_bytes=0))


def moved(layout: Layout, by: int) -> Layout:
    return layout._replace(offset=layout.offset + by)


@pytest.mark.parametrize("name", [n for n in PROGRAMS if n not in ("a loop", "rows")])
def test_operands_after_the_end_are_refused(name: str) -> None:
    layout = planned(name)
    program = statements(layout)
    sizes = {i: spec.shape.num_elements() for i, spec in enumerate(layout.arguments)}
    for at, statement in enumerate(program):
        for i, operand in enumerate(statement.inputs):
            if operand.buffer in sizes:
                inputs = (
                    *statement.inputs[:i],
                    moved(operand, sizes[operand.buffer] or 0),
                    *statement.inputs[i + 1 :],
                )
                other = statement._replace(inputs=inputs)
                assert refuses(layout, (*program[:at], other, *program[at + 1 :])), (at, i)


def only(name: str) -> tuple[Plan, Any]:
    """The one statement of the kind that a program is about."""
    layout = planned(name)
    (statement,) = [s for s in walk_program(statements(layout)) if isinstance(s, PROGRAMS[name][2])][:1]
    return layout, statement


def undecided(layout: Plan, statement: Any) -> list[ElementRange]:
    return MemoryBounds(layout, statements(layout)).undecided(statement)


CHANGED: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "more rows": ("a product", lambda s: s._replace(shape=(7, *s.shape[1:]))),
    "more columns": ("a product", lambda s: s._replace(shape=(s.shape[0], 8, s.shape[2]))),
    "a longer inner size": ("a product", lambda s: s._replace(shape=(*s.shape[:2], 6))),
    "longer rows": ("a product", lambda s: s._replace(matrices=(_longer(s.matrices[0]), *s.matrices[1:]))),
    "exchanged axes": (
        "a transposed product",
        lambda s: s._replace(shape=(6, 5, 5), matrices=(_longer(s.matrices[0]), *s.matrices[1:])),
    ),
    "more products": ("products", lambda s: s._replace(batch=(3,))),
    "more windows": ("windows", lambda s: s._replace(shape=(s.shape[0] + 9, *s.shape[1:]))),
    "more places": ("a scatter", lambda s: s._replace(indices=_with(s.indices, 4, 7))),
    "more positions": ("a scatter", lambda s: s._replace(indices=_with(s.indices, 1, 4))),
    "longer rows put": ("a scatter", lambda s: s._replace(indices=_with(s.indices, 2, 6))),
    "more iterations": ("a scatter", lambda s: s._replace(indices=_with(s.indices, 0, 2))),
    "a longer loop": ("rows", lambda s: s._replace(trip_count=s.trip_count._replace(limit=41))),
    "a loop without a number of iterations": (
        "rows",
        lambda s: s._replace(trip_count=s.trip_count._replace(limit=None)),
    ),
}


def _longer(matrix: Layout) -> Layout:
    return matrix._replace(strides=tuple(stride + 1 for stride in matrix.strides))


def _with(positions: Any, place: int, number: int) -> Any:
    table = positions.table
    return positions._replace(table=(*table[:place], number, *table[place + 1 :]))


@pytest.mark.parametrize(("name", "change"), CHANGED.values(), ids=CHANGED)
def test_changed_statements_are_refused(name: str, change: Callable[[Any], Any]) -> None:
    layout, statement = only(name)
    assert undecided(layout, statement) == []
    with pytest.raises(InternalError, match="is refused"):
        undecided(layout, change(statement))


def test_a_loop_reads_a_stack_only_as_often_as_the_loop_that_has_made_it() -> None:
    layout = planned("a loop")
    program = statements(layout)
    making, reading = [s for s in walk_program(program) if isinstance(s, RunLoop)]
    assert reading.trip_count.same_as == making.trip_count.loop
    MemoryBounds(layout, program).check((reading,))
    other = making._replace(memory=making.memory._replace(rows=()))
    changed = tuple([other if s is making else s for s in program])
    with pytest.raises(InternalError, match="iterations, but a stack of"):
        MemoryBounds(layout, changed).check((reading,))


@pytest.mark.skipif(df.config.get_backend() != "llvm", reason="only machine code serves any length")
def test_a_kernel_for_any_length_is_given_as_many_elements() -> None:
    f = df.function(lambda x, y, z: x * y + z)
    many, few, one = (np.arange(n, dtype=np.float32) for n in (900, 899, 1))
    executable = f.get_concrete_function(few, few, one[0]).compiled.executable
    kernel = any_length(executable)
    assert kernel is not None
    np.testing.assert_array_equal(kernel.run([many, many, one], (900,)), many * many)
    for arrays in ([few, many, one], [many, few, one]):
        with pytest.raises(InternalError, match="elements for 900"):
            kernel.run(arrays, (900,))


# Sizes that the program learns


@pytest.mark.skipif(df.config.get_backend() != "llvm", reason="only machine code finds positions")
@pytest.mark.parametrize("counts", [[True, True, False], [3, 0], [0, 1], [False, True]])
@pytest.mark.parametrize("size", [0, 2])
def test_positions_are_as_many_as_their_buffer_has(counts: list[int], size: int) -> None:
    """A count that is off by one writes nothing past the end, and stops the call."""
    f = df.function(lambda counts: dispatch.current().apply(POSITIONS, (counts,), {"size": size}))
    if sum(counts) == size:
        np.testing.assert_array_equal(f(df.constant(counts)), np.repeat(np.arange(len(counts)), counts))
        return
    with pytest.raises(InternalError, match="outside of its buffers"):
        f(df.constant(counts))


def test_a_view_shows_elements_of_what_it_is_a_view_of() -> None:
    x = Value(df.TensorSpec([6, 5]))
    view = Node(REGISTRY["reshape"], [x], {"shape": (30,)}, [df.TensorSpec([30])]).output
    whole = Layout(3, 64, (5, 1))
    check_view(view, Layout(3, 64, (1,)), x, whole)
    check_view(view, Layout(3, 93, (-1,)), x, whole)
    for other in (Layout(3, 65, (1,)), Layout(3, 63, (1,)), Layout(3, 92, (-1,))):
        with pytest.raises(InternalError, match="its source has elements 64 to 93"):
            check_view(view, other, x, whole)


def test_symbolic_spans_are_compared_term_by_term() -> None:
    n, m = size_variable(least=0), size_variable(least=0)
    whole = range_of_layout(Layout(0, 0, (m, 1)), (n, m), 4)
    assert whole is not None
    assert fits(whole, 4 * n * m)
    assert fits(whole._replace(first=whole.first + 1, last=whole.last + 1), 4 * n * m) is None
    assert fits(whole, 4 * n) is None
    assert at_least(n + 1, n)
    assert at_least(n, n + 1) is False
    assert at_least(n, m) is None


@pytest.mark.skipif(df.config.get_backend() != "llvm", reason="only machine code learns sizes")
def test_a_program_compares_what_symbols_do_not_decide() -> None:
    """Without the nodes that compare two sizes, a tensor that is too short ends the call by an error."""

    @df.function
    def f(x: Any, n: Any) -> Any:
        return df.tanh(x[x > 0.0]) * df.reverse(df.sqrt(df.range(df.cast(n, df.float32))), [0])

    x = np.arange(-3, 2000, dtype=np.float32)
    expected = f(df.constant(x), df.constant(1999))
    compiled = f.concrete_functions[0].compiled.executable
    nodes = tuple(node for node in compiled.graph.nodes if node.op is not REQUIRE_SIZE)
    assert len(nodes) < len(compiled.graph.nodes)
    executable = build(replace(compiled.graph, nodes=nodes), compiled.options)
    np.testing.assert_array_equal(executable.run([x, np.array(1999, np.int32)])[0], expected)
    for count in (0, 5, 1998):
        with pytest.raises(InternalError, match="elements outside of its buffers") as error:
            executable.run([x, np.array(count, np.int32)])
        assert "test_memory_bounds.py" in str(error.value)


@pytest.mark.skipif(df.config.get_backend() != "llvm", reason="only machine code learns sizes")
def test_the_proof_of_a_kernel_takes_few_steps_for_each_operand(lines_run: Any) -> None:
    count = 240
    f = df.function(
        lambda x: df.add_n([df.reduce_sum(df.tanh(x * (0.5 + i)), 0) for i in range(count)]),
        input_signature=[df.TensorSpec([None, 4])],
    )
    f(df.ones([3, 4]))
    layout = plan(f.concrete_functions[0].compiled.executable.graph)
    program = statements(layout)
    launches = [(s, kernel_launch(lower(*s), LANES)) for p in walk_program(program) for s in nests_of(p)]
    bounded = [(*launch, access_bounds(launch[1].kernel)) for launch in launches]
    bounds = MemoryBounds(layout, program)
    assert lines_run(lambda: [bounds.launched(*kernel, (0, 1 << 40)) for kernel in bounded]) < 500 * count
