"""The program of a plan: one statement for each call, which decides what the call implies."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import pytest
from numpy.lib.stride_tricks import as_strided

import dualflow as df
from dualflow.graph.ir import Value
from dualflow.graph.views import sizes
from dualflow.schedule.lower import lower
from dualflow.schedule.nest import Layout
from dualflow.schedule.operands import CallKind
from dualflow.schedule.plan import plan
from dualflow.schedule.planned import Plan
from dualflow.schedule.program_statements import (
    PRODUCT_IN_REGISTERS,
    CallRoutine,
    CheckBounds,
    ChooseBranch,
    CopyMemory,
    FusedProduct,
    LaunchNest,
    LaunchPieces,
    Multiply,
    RequireCondition,
    RunLoop,
    ScatterRows,
    Statement,
    nests_of,
    statements,
    walk_program,
)

SPEC = df.TensorSpec((6, 6))
ROWS = df.TensorSpec((50, 6))
ROW = df.TensorSpec((6,))
BATCH = df.TensorSpec((2, 6, 6))
COUNT = df.TensorSpec((), df.int32)
FEW = df.TensorSpec((3,))
PLACES = df.TensorSpec((3,), df.int32)


def planned(function: Callable[..., Any], *specs: df.TensorSpec) -> Plan:
    graph = df.function(function).get_concrete_function(*specs).optimised_graph
    return plan(graph)


def program(function: Callable[..., Any], *specs: df.TensorSpec) -> tuple[Statement, ...]:
    return statements(planned(function, *specs))


def only(kind: type[Any], listed: Iterable[Statement]) -> Any:
    """The one statement of a kind."""
    (statement,) = [s for s in listed if isinstance(s, kind)]
    return statement


def looped(body: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """``body(i, x)`` for i below n."""
    return lambda x, n: df.while_loop(
        lambda i, h: i < n, lambda i, h: (i + 1, body(i, h)), (df.constant(0), x)
    )[1]


def with_gradient(function: Callable[..., Any]) -> Callable[..., Any]:
    def run(x: Any, *others: Any) -> Any:
        with df.GradientTape() as tape:
            tape.watch(x)
            y = function(x, *others)
        return tape.gradient(y, x)

    return run


def stepped(x: Any) -> Any:
    """A sum along rows, each of which an iteration reads."""
    return df.scan(lambda total, row: total * 0.5 + row, x)


# Straight lines


def test_a_kernel_is_a_launch() -> None:
    (statement,) = program(lambda x: df.tanh(x) + 1.0, SPEC)
    assert isinstance(statement, LaunchNest)
    assert nests_of(statement) == (statement,)


def test_statements_come_in_the_order_of_the_plan() -> None:
    steps = program(lambda x: df.reduce_sum(df.tanh(x @ x)), SPEC)
    assert [type(s) for s in steps] == [Multiply, LaunchNest]


def test_pieces_of_an_output_are_launches_to_parts_of_its_place() -> None:
    pieces = only(LaunchPieces, program(lambda x, y: df.concat([x, y], 1), SPEC, SPEC))
    assert [p.inputs for p in pieces.pieces] == [(layout,) for layout in pieces.inputs]
    (out,) = pieces.outputs
    assert [p.outputs for p in pieces.pieces] == [
        (out,),
        (Layout(out.buffer, out.offset + 6, out.strides),),
    ]


def test_ops_without_native_code_run_their_numpy_kernel() -> None:
    assert only(CallRoutine, program(df.linalg.det, df.TensorSpec([9, 9]))).kind is CallKind.HOST


def test_a_copy_of_elements_that_no_loop_holds_is_one_of_memory() -> None:
    names, v = df.constant(["a", "b"]), df.Variable(df.constant(["c", "d"]))
    assert any(isinstance(s, CopyMemory) for s in program(lambda: v.assign(names, read_value=False)))


# Products


def test_matrices_have_the_layout_of_their_product() -> None:
    product = only(
        Multiply,
        program(
            lambda x, y: df.matmul(x, y, transpose_a=True),
            df.TensorSpec((4, 3)),
            df.TensorSpec((4, 5)),
        ),
    )
    assert product.shape == (3, 5, 4)
    assert [m.strides for m in product.matrices] == [(1, 3), (5, 1), (5, 1)]


def test_a_matrix_that_a_batch_shares_has_no_stride_along_it() -> None:
    product = only(Multiply, program(lambda x, y: x @ y, BATCH, SPEC))
    assert product.batch == (2,)
    assert [m.strides for m in product.matrices] == [(36, 6, 1), (0, 6, 1), (36, 6, 1)]
    assert product.multiplications == 2 * 6**3


def test_a_product_of_no_matrices_is_empty() -> None:
    empty = only(Multiply, program(lambda x, y: x @ y, df.TensorSpec((0, 6)), SPEC))
    assert empty.is_empty
    assert not only(Multiply, program(lambda x: x @ x, SPEC)).is_empty


def test_the_addend_of_a_product_is_first_copied_to_the_output_buffer() -> None:
    product = only(Multiply, program(lambda x, y: y + x @ x, SPEC, SPEC))
    assert product.accumulate
    assert product.onto is not None
    assert product.onto.inputs == product.inputs[2:]
    assert product.onto.outputs == product.outputs
    assert nests_of(product) == (product.onto,)


def test_a_product_added_to_a_variable_is_added_in_its_place() -> None:
    v = df.Variable(np.zeros((6, 6), np.float32))
    product = only(Multiply, program(lambda x: v.assign_add(x @ x, read_value=False), SPEC))
    assert product.accumulate
    assert product.onto is None
    assert nests_of(product) == ()


# Scatters


def test_rows_are_put_onto_zeros() -> None:
    scatter = only(ScatterRows, program(lambda i, x: df.scatter_nd(i[:, None], x, [9]), PLACES, FEW))
    assert scatter.onto is not None
    assert scatter.onto.inputs == ()
    assert scatter.onto.outputs == scatter.outputs
    assert not scatter.checked


def test_rows_are_put_onto_a_copy_of_what_is_read_later() -> None:
    scatter = only(
        ScatterRows,
        program(lambda x, i, y: df.tensor_scatter_nd_update(x, i[:, None], y), ROW, PLACES, FEW),
    )
    assert scatter.onto is not None
    assert scatter.onto.inputs == scatter.inputs[:1]


def test_the_integers_of_a_scatter_onto_a_variable_are_looked_at_before_it() -> None:
    v = df.Variable(np.zeros(6, np.float32))
    steps = program(lambda i, y: v.scatter_nd_update(i[:, None], y), PLACES, FEW)
    check, scatter = only(CheckBounds, steps), only(ScatterRows, steps)
    assert steps.index(check) < steps.index(scatter)
    assert check.scatter is scatter.node
    assert check.indices == scatter.indices
    assert scatter.checked
    assert scatter.onto is None


# Checks, conditionals and loops


def test_an_assertion_reads_what_its_error_reports() -> None:
    def function(x: Any) -> Any:
        df.debugging.assert_positive(x)
        return x + 1.0

    steps = program(function, ROW)
    required = only(RequireCondition, steps)
    layout, value = required.condition
    assert layout == required.inputs[0]
    assert value.spec.dtype is df.bool
    assert [place for place, _ in required.reads] == list(required.inputs[1:])


def test_a_cond_has_its_branches_in_order() -> None:
    def function(n: Any, x: Any) -> Any:
        return df.switch_case(n, [lambda: x @ x, lambda: df.sin(x), lambda: df.concat([x, x], 0)[3:9]])

    cond = only(ChooseBranch, program(function, COUNT, SPEC))
    assert cond.number[0] == cond.inputs[0]
    kinds = [{type(s) for s in branch} for branch in cond.branches]
    assert Multiply in kinds[0]
    assert kinds[1] == {LaunchNest}
    assert len(kinds) == 3


def test_a_condition_ends_a_loop_of_unknown_length() -> None:
    loop = only(RunLoop, program(looped(lambda i, h: df.tanh(h @ h)), SPEC, COUNT))
    assert (loop.trip_count.limit, loop.trip_count.same_as, loop.backwards) == (None, None, False)
    layout, value = loop.condition
    assert any(layout in s.outputs for s in loop.test)
    assert value.spec.dtype is df.bool
    fused = only(FusedProduct, loop.body)
    assert fused.product.node.op.name == "matmul"
    assert not loop.memory.rows


def test_an_epilogue_reads_the_product_and_writes_the_outputs() -> None:
    fused = only(FusedProduct, program(lambda x, y: df.tanh(x @ x) + y, SPEC, SPEC))
    product, epilogue = fused.product, fused.epilogue
    assert product.matrices[2] == epilogue.inputs[0] == Layout(PRODUCT_IN_REGISTERS, 0, (6, 1))
    assert (product.inputs, epilogue.inputs[1:]) == (fused.inputs[:2], fused.inputs[2:])
    assert epilogue.outputs == fused.outputs
    assert lower(*epilogue).loops


def test_a_loop_over_rows_has_their_number() -> None:
    loop = only(RunLoop, program(stepped, ROWS))
    assert loop.trip_count.limit in (49, 50)
    assert loop.condition is None
    assert loop.test == ()
    assert not loop.backwards
    assert not any(row.grows for row in loop.memory.rows)


def test_a_gradient_takes_the_iterations_that_there_were_from_the_last_to_the_first() -> None:
    function = with_gradient(looped(lambda i, h: df.sin(h) * h))
    forward, backward = [s for s in program(function, SPEC, COUNT) if isinstance(s, RunLoop)]
    assert forward.growable
    assert forward.growable_bytes == sum(row.nbytes for row in forward.growable)
    assert not forward.backwards
    assert backward.backwards
    assert backward.trip_count.same_as == forward.trip_count.loop
    assert backward.trip_count.limit is None
    read = {row.stack.buffer for row in backward.memory.rows}
    assert read >= {row.stack.buffer for row in forward.growable} & {x.buffer for x in backward.inputs}


# Properties of every program


def a_step_of_training(x: Any) -> Any:
    v, b = TRAINED
    with df.GradientTape() as tape:
        h = df.nn.relu(x @ v + b)
        loss = df.reduce_mean(df.concat([h, x], 1) ** 2)
    for variable, gradient in zip(TRAINED, tape.gradient(loss, TRAINED), strict=True):
        variable.assign_sub(gradient * 0.1)
    return loss


TRAINED = (df.Variable(np.ones((6, 6), np.float32)), df.Variable(np.ones(6, np.float32)))
PROGRAMS: dict[str, tuple[Callable[..., Any], Sequence[df.TensorSpec]]] = {
    "kernels and products": (lambda x: df.reduce_sum(df.tanh(x @ x) @ df.transpose(x), 0), [SPEC]),
    "pieces": (lambda x: df.pad(df.concat([x, df.sin(x) @ x], 1), [[1, 2], [0, 3]]), [SPEC]),
    "a sum of products": (lambda x, y: df.exp(y) + x @ y + y @ x, [SPEC, SPEC]),
    "windows": (
        lambda x, w: df.nn.conv2d(x, w, 1, "SAME"),
        [df.TensorSpec((1, 6, 6, 2)), df.TensorSpec((3, 3, 2, 3))],
    ),
    "scatter": (
        lambda x, i, y: df.tensor_scatter_nd_add(df.sin(x), i[:, None], y) * 2.0,
        [ROW, PLACES, FEW],
    ),
    "host calls": (lambda x: df.exp(df.linalg.det(df.sin(x)) + x), [SPEC]),
    "training": (a_step_of_training, [SPEC]),
    "cond": (lambda n, x: df.cond(n > 0, lambda: x @ x, lambda: df.sin(x)) + 1.0, [COUNT, SPEC]),
    "loop": (looped(lambda i, h: df.tanh(h @ h) + h), [SPEC, COUNT]),
    "loop over rows": (stepped, [ROWS]),
    "gradient of a loop": (with_gradient(looped(lambda i, h: df.sin(h) @ h)), [SPEC, COUNT]),
    "gradient of rows": (with_gradient(stepped), [ROWS]),
    "conditional in a loop": (
        looped(lambda i, h: df.cond(i > 2, lambda: h @ h, lambda: df.concat([h[1:], h[:1]], 0))),
        [SPEC, COUNT],
    ),
}


class Memory:
    """Which elements of which buffers have been written."""

    def __init__(self, whole: Iterable[int]) -> None:
        self.whole = set(whole)
        self.bytes: dict[int, set[int]] = {}

    def copy(self) -> Memory:
        other = Memory(self.whole)
        other.bytes = {buffer: set(written) for buffer, written in self.bytes.items()}
        return other

    def write(self, layout: Layout, value: Value) -> None:
        self.bytes.setdefault(layout.buffer, set()).update(places(layout, value))

    def holds(self, layout: Layout, value: Value) -> bool:
        if layout.buffer in self.whole:
            return True
        return self.bytes.get(layout.buffer, set()).issuperset(places(layout, value))


def places(layout: Layout, value: Value) -> list[int]:
    """The bytes at which the elements of a value begin; the rows of a stack that grows are taken as one."""
    if None in value.spec.shape or None in layout.strides:
        return [0]
    count = 1 + sum((d - 1) * s for d, s in zip(sizes(value), layout.strides, strict=True) if s > 0)
    low = sum((d - 1) * s for d, s in zip(sizes(value), layout.strides, strict=True) if s < 0)
    numbers = np.arange(low, max(count, 1))
    view = as_strided(numbers[-low:], sizes(value), [s * numbers.itemsize for s in layout.strides])
    return ((view.reshape(-1) + layout.offset) * value.spec.dtype.size).tolist()


def follow(steps: Sequence[Statement], memory: Memory) -> None:
    """Go through a program; whatever is read must have been written."""
    for statement in steps:
        node = statement.node
        operands = list(zip(statement.inputs, node.inputs, strict=True))
        outputs = list(zip(statement.outputs, node.outputs, strict=True))
        assert all(memory.holds(*x) for x in operands), f"{node.op.name} reads what is not there"
        if isinstance(statement, ChooseBranch):
            for branch in statement.branches:
                own = memory.copy()
                follow(branch, own)
                assert all(own.holds(*x) for x in outputs), "a branch leaves an output out"
        elif isinstance(statement, RunLoop):
            follow_loop(statement, memory)
        else:
            for launch in nests_of(statement):
                if launch is not statement:
                    follow([launch], memory)
        for x in outputs:
            memory.write(*x)


def follow_loop(loop: RunLoop, memory: Memory) -> None:
    follow(loop.start, memory)
    own = memory.copy()
    taken = [row for row in loop.memory.rows if row.stack in loop.inputs]
    own.whole |= {row.buffer for row in taken}
    follow(loop.test, own)
    if loop.condition is not None:
        assert own.holds(*loop.condition)
    follow(loop.body, own)
    stacked = {row.buffer for row in loop.memory.rows if row not in taken}
    assert stacked <= {buffer for buffer, written in own.bytes.items() if written}, "a row is left out"


@pytest.mark.parametrize("name", PROGRAMS)
def test_each_call_of_a_plan_is_one_statement(name: str) -> None:
    function, specs = PROGRAMS[name]
    program_layout = planned(function, *specs)
    calls, steps = list(program_layout.walk()), list(walk_program(statements(program_layout)))
    assert [s.node for s in steps] == [c.node for c in calls]
    assert [(s.inputs, s.outputs) for s in steps] == [(c.inputs, c.outputs) for c in calls]


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_read_value_has_been_written(name: str) -> None:
    function, specs = PROGRAMS[name]
    program_layout = planned(function, *specs)
    follow(statements(program_layout), Memory(range(program_layout.first_output)))


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_output_is_written(name: str) -> None:
    function, specs = PROGRAMS[name]
    program_layout = planned(function, *specs)
    written = {layout.buffer for s in walk_program(statements(program_layout)) for layout in s.outputs}
    assert written >= set(range(program_layout.first_output, program_layout.first_temporary))


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_scatter_or_product_begins_where_it_ends(name: str) -> None:
    function, specs = PROGRAMS[name]
    for statement in walk_program(program(function, *specs)):
        if isinstance(statement, Multiply | ScatterRows) and statement.onto is not None:
            assert statement.onto.outputs == statement.outputs
