"""Branches and loops as If, Loop and Scan; size variables and checks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

import onnx

from dualflow.backends.onnx.element_types import INT64
from dualflow.backends.onnx.scan_node import body_graph, scan_node
from dualflow.backends.onnx.scope import Operand
from dualflow.backends.onnx.writer import GraphWriter, Rules
from dualflow.core.dtypes import bool_
from dualflow.core.shape import SCALAR
from dualflow.core.spec import TensorSpec
from dualflow.graph.control_spec import LoopResults, LoopSpec, branches_of, loop_of
from dualflow.graph.ir import Graph, Node
from dualflow.graph.symbolic_size_ops import BIND_SIZE, REQUIRE_SIZE, is_argument_size
from dualflow.ops.conversion import CAST
from dualflow.ops.op_kinds import Check, Cond, Loop
from dualflow.sizes.symbolic_sizes import variable_of


def _cond(w: GraphWriter, node: Node) -> list[Operand]:
    index, *operands = w.operands(node)
    branches, source = branches_of(node), node.inputs[0].node
    if (
        source is not None
        and source.op is CAST
        and len(branches) == 2
        and source.inputs[0].spec.dtype is bool_
    ):
        # index 0, the false branch, is the first one; _if takes the true branch first
        return _if(w, w.operand(source.inputs[0]), branches[::-1], operands)
    return _nested_ifs(w, index, 0, branches, operands)


def _nested_ifs(
    w: GraphWriter, index: Operand, first: int, branches: Sequence[Graph], operands: Sequence[Operand]
) -> list[Operand]:
    """The results of the branch ``index - first`` of ``branches``; of the last one for other indices."""
    if len(branches) == 1:
        return _inlined(w, branches[0], operands)
    is_first = w.scope.add("Equal", index, w.scope.constant(first, index.dtype), dtype=bool_)
    others = partial(_nested_ifs, index=index, first=first + 1, branches=branches[1:], operands=operands)
    return _if(w, is_first, branches, operands, others)


def _if(
    w: GraphWriter,
    condition: Operand,
    branches: Sequence[Graph],
    operands: Sequence[Operand],
    otherwise: Callable[[GraphWriter], list[Operand]] | None = None,
) -> list[Operand]:
    """The results of the first branch if the condition holds, else those of ``otherwise`` or the second."""
    then, other = GraphWriter(w.rules, w), GraphWriter(w.rules, w)
    specs = [v.spec for v in branches[0].outputs]
    results = _inlined(then, branches[0], operands)
    others = otherwise(other) if otherwise is not None else _inlined(other, branches[1], operands)
    other_specs = [_common_spec([b.outputs[i].spec for b in branches[1:]]) for i in range(len(specs))]
    return w.scope.add_node(
        "If",
        [condition],
        [spec.dtype for spec in specs],
        then_branch=body_graph(then, [], results, specs),
        else_branch=body_graph(other, [], others, other_specs),
    )


def _common_spec(specs: Sequence[TensorSpec]) -> TensorSpec:
    """The most specific spec that is compatible with all ``specs``."""
    shape = specs[0].shape
    for spec in specs[1:]:
        shape = shape.most_specific_compatible_shape(spec.shape)
    return TensorSpec.of(shape, specs[0].dtype)


def _inlined(w: GraphWriter, graph: Graph, operands: Sequence[Operand], carried: int = 0) -> list[Operand]:
    """The results of ``graph``, written into ``w``; the first ``carried`` operands are carried by a loop."""
    for i, (value, operand) in enumerate(zip(graph.inputs, operands, strict=True)):
        w.bind(value, operand, shadow=i < carried)
    w.write(graph)
    return [w.operand(v) for v in graph.outputs]


def _loop(w: GraphWriter, node: Node) -> list[Operand]:
    loop = loop_of(node)
    if loop.scanned and loop.condition is None and _is_scan(loop, node):
        return _scan(w, node, loop)
    return _write_loop(w, node, loop)


def _is_scan(loop: LoopSpec, node: Node) -> bool:
    """Whether the loop scans all rows and its states have static sizes, as ONNX's Scan requires."""
    rows = loop.split_inputs(node.inputs).scanned[0].spec.shape[0]
    scans_all_rows = loop.length is None or loop.length == rows
    return scans_all_rows and all(v.spec.shape.is_static for v in loop.split_inputs(loop.body.inputs).carried)


def _scan(w: GraphWriter, node: Node, loop: LoopSpec) -> list[Operand]:
    carried, scanned, invariants = loop.split_inputs(w.operands(node))

    def step(inner: GraphWriter, *operands: Operand) -> LoopResults[Operand]:
        return loop.split_results(_inlined(inner, loop.body, [*operands, *invariants], loop.carried))

    inputs = loop.split_inputs([v.spec for v in loop.body.inputs])
    rows = list(zip(inputs.scanned, scanned, strict=True))
    stacked = [v.spec for v in loop.stacked]
    return scan_node(w, step, inputs.carried, carried, rows, stacked, reverse=loop.reverse)


def _write_loop(w: GraphWriter, node: Node, loop: LoopSpec) -> list[Operand]:
    carried, _, invariants = loop.split_inputs(w.operands(node))
    count = _trip_count(w, node, loop)
    keep_going = None
    if loop.condition is not None:
        keep_going = _condition(w, loop.condition, [*carried, *invariants])
    specs = [v.spec for v in (*loop.split_inputs(loop.body.inputs).carried, *loop.stacked)]
    body = _loop_body(w, node, loop, count)
    outputs = w.scope.add_node("Loop", [count, keep_going, *carried], [s.dtype for s in specs], body=body)
    if not loop.reverse:
        return outputs
    results = loop.split_results(outputs)
    return [*results.carried, *[_reversed(w, x) for x in results.stacked]]


def _loop_body(w: GraphWriter, node: Node, loop: LoopSpec, count: Operand | None) -> onnx.GraphProto:
    """The graph of an iteration: its inputs are its number, the condition and the states.

    Its outputs are the next condition and states, and a row of each stacked result.
    """
    carried, scanned, invariants = loop.split_inputs(w.operands(node))
    inner = GraphWriter(w.rules, w)
    unique = w.scope.shared.unique
    iteration = Operand(unique("iteration"), INT64)
    keep_going_in = keep_going_out = Operand(unique("keep_going"), bool_)
    states = [Operand(unique("state"), x.dtype) for x in carried]
    row_index = iteration
    if loop.reverse:
        last = inner.scope.add("Sub", count, w.scope.constant(1, INT64))
        row_index = inner.scope.add("Sub", last, iteration)
    rows = [inner.scope.add("Gather", x, row_index, axis=0) for x in scanned]
    results = _inlined(inner, loop.body, [*states, *rows, *invariants], loop.carried)
    if loop.condition is not None:
        keep_going_out = _condition(
            inner, loop.condition, [*loop.split_results(results).carried, *invariants]
        )
    specs = [v.spec for v in loop.split_inputs(loop.body.inputs).carried]
    return body_graph(
        inner,
        [
            (iteration, TensorSpec.of(SCALAR, INT64)),
            (keep_going_in, TensorSpec.of(SCALAR, bool_)),
            *zip(states, specs, strict=True),
        ],
        [keep_going_out, *results],
        [TensorSpec.of(SCALAR, bool_), *specs, *[v.spec for v in loop.stacked]],
    )


def _condition(w: GraphWriter, graph: Graph, operands: Sequence[Operand]) -> Operand:
    """Write the graph of a loop's condition, in a scope of its own for sizes; returns its result."""
    (keep_going,) = _inlined(GraphWriter(w.rules, w, w.scope), graph, operands, len(operands))
    return keep_going


def _trip_count(w: GraphWriter, node: Node, loop: LoopSpec) -> Operand | None:
    """The operand of ONNX ``Loop`` for its maximum trip count; None for no limit."""
    if loop.length is not None:
        return w.sizes.scalar(loop.length)
    if not loop.scanned:
        return None
    rows = w.scope.add(
        "Shape", w.operand(loop.split_inputs(node.inputs).scanned[0]), dtype=INT64, start=0, end=1
    )
    return w.scope.add("Squeeze", rows, w.scope.ints(0))


def _reversed(w: GraphWriter, x: Operand) -> Operand:
    ints = w.scope.ints
    return w.scope.add("Slice", x, ints(-1), ints(-(2**63)), ints(0), ints(-1))


def _check(w: GraphWriter, node: Node) -> list[Operand]:
    """An assertion of the user's program."""
    error, (line, _) = node.attrs["error"], w.scope.label
    w.scope.require(w.operands(node)[0], f"{' '.join(error.static_message.split())} ({line})")
    return []


def _bind_size(w: GraphWriter, node: Node) -> list[Operand]:
    if is_argument_size(node):
        return []
    attrs = node.attrs
    variable = variable_of(attrs["size"])
    assert variable is not None, "a bound size is a size variable"
    if node.inputs:
        flat = w.scope.add("Reshape", w.operand(node.inputs[0]), w.scope.ints(-1))
        size = w.scope.cast(w.scope.add("Gather", flat, w.scope.ints(attrs["index"]), axis=0), INT64)
    else:
        size = w.sizes.as_vector(attrs["value"])
    w.sizes.bind(variable, size)
    if attrs["least"] is not None:
        minimum = w.scope.ints(attrs["least"])
        ok = w.scope.add("GreaterOrEqual", size, minimum, dtype=bool_)
        w.scope.require(ok, f"{attrs['needed_by']}: a size is negative")
    return []


def _require_size(w: GraphWriter, node: Node) -> list[Operand]:
    """A comparison of sizes; sizes that broadcast are compared by the ONNX op that broadcasts them."""
    if node.attrs["repeats"]:
        return []
    x, y = (w.sizes.as_vector(node.attrs[name]) for name in ("x", "y"))
    ok = w.scope.add("Equal", x, y, dtype=bool_)
    shapes = [tuple(shape) for shape in node.attrs["shapes"]]
    message = node.attrs["message"].format(*shapes)
    w.scope.require(ok, f"{node.attrs['needed_by']}: {message}" if node.attrs["needed_by"] else message)
    return []


RULES: Final[Rules] = {
    Cond: _cond,
    Loop: _loop,
    Check: _check,
    BIND_SIZE: _bind_size,
    REQUIRE_SIZE: _require_size,
}
