"""Products of all iterations of a loop at once: before the loop, or behind it over what the iterations made.

``x_t @ b`` of a row and of what no iteration changes is a row of ``x @ b``, and so is a row ``y_t @ b`` that
no iteration reads. ``s + x_0.T @ y_0 + x_1.T @ y_1 + ...`` is ``s + x.T @ y`` of the rows one below another.
So products of a few rows each become one of many, which is as fast as products get. Sums are rounded in
another order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dualflow.core.shape import Shape
from dualflow.graph.axes import row_major, sizes
from dualflow.graph.control import LOOP
from dualflow.graph.control_spec import loop_of
from dualflow.graph.cost_model import CPU, CostModel
from dualflow.graph.extract import ancestors
from dualflow.graph.ir import Graph, Node, Value
from dualflow.graph.passes.batching_analysis import Batchable, Product, Sum
from dualflow.graph.passes.bodies import inside_out
from dualflow.graph.passes.trimming import trim_control
from dualflow.graph.rewrite import Expansion, copied, expand, rebuilt, without
from dualflow.ops.arithmetic import add
from dualflow.ops.arrangement import RESHAPE
from dualflow.ops.contraction import MATMUL
from dualflow.ops.op_kinds import Loop
from dualflow.ops.record import Op


def batch_products(graph: Graph, room: int, costs: CostModel = CPU) -> Graph:
    """``graph`` whose loops leave to one product what is a part of it in each iteration.

    What a loop has to keep for that takes at most ``room`` bytes.
    """

    def batched(graph: Graph) -> Graph:
        found = expand(graph, lambda node: _without_products(node, room, costs), (Loop,))
        return found if found is graph else trim_control(found)

    return inside_out(batched)(graph)


def _without_products(node: Node, room: int, costs: CostModel) -> Expansion | None:
    if node.effect is not None:
        return None
    body, iterations = loop_of(node).body, loop_of(node).iterations
    values = [*node.inputs, *node.outputs, *body.inputs, *(v for n in body.nodes for v in n.outputs)]
    if type(iterations) is not int or iterations < 2 or not all(v.spec.shape.is_static for v in values):
        return None
    found = Batchable(node, room, costs)
    found.find()
    return _LoopRewriter(found).write() if found.any else None


class _LoopRewriter:
    """Writes a loop anew, and the nodes around it.

    ``outer`` has what stands outside for values of the body: what is carried in the first iteration, the
    stacks of which others are rows, and the rest.
    """

    def __init__(self, found: Batchable) -> None:
        self.found = found
        self.node = found.node
        self.nodes: list[Node] = []
        self.outer = dict(zip(found.body.inputs, self.node.inputs, strict=True))

    def write(self) -> Expansion:
        """The nodes, and the values of the loop's results."""
        found, carried = self.found, self.found.carried
        factors = {p.node: self._lifted(p.b) for p in (*found.before, *found.behind.values())}
        rows = [self._rows(p, factors[p.node], p.node.output) for p in found.before]
        loop = self._loop(rows)
        self.nodes.append(loop)
        kept = [i for i in range(carried, len(found.body.outputs)) if i not in found.behind]
        stacks = [*[found.body.outputs[i] for i in kept], *found.stacked]
        self.outer.update(zip(stacks, loop.outputs[carried:], strict=True))
        results = dict(zip([*range(carried), *kept], loop.outputs, strict=False))
        results |= {i: self._rows(p, factors[p.node], found.body.outputs[i]) for i, p in found.behind.items()}
        results |= {s.place: self._total(s, results[s.place]) for s in found.sums}
        return Expansion(self.nodes, [results[i] for i in range(len(found.body.outputs))])

    def _loop(self, rows: Sequence[Value]) -> Node:
        """The loop that also takes ``rows``, keeps what is to be stacked, and leaves the products out."""
        found, body = self.found, self.found.body
        end = found.loop.end
        new = [Value(p.node.output.spec) for p in found.before]
        moved = {p.node.output: v for p, v in zip(found.before, new, strict=True)}
        gone = {p.node for p in found.before}
        nodes = rebuilt(body.nodes, lambda node, _: without(node) if node in gone else None, moved)
        outputs = list(body.outputs)
        for s in found.sums:
            outputs[s.place], more = _sum([moved.get(v, v) for v in s.kept], outputs[s.place].node)
            nodes += more
        places = [i for i in range(len(outputs)) if i not in found.behind]
        results = [moved.get(v, v) for v in [*[outputs[i] for i in places], *found.stacked]]
        needed, _ = ancestors(results, ())
        iteration = Graph(
            body.name,
            (*body.inputs[:end], *new, *body.inputs[end:]),
            tuple([n for n in nodes if n in needed]),
            tuple(results),
        )
        attrs = {"loop": found.loop.another(body=iteration, scanned=found.loop.scanned + len(new))}
        inputs = (*self.node.inputs[:end], *rows, *self.node.inputs[end:])
        specs = LOOP.specs([v.spec for v in inputs], attrs)
        return Node(LOOP, inputs, attrs, specs, self.node.origin, self.node.also)

    def _lifted(self, value: Value) -> Value:
        """A view of what no iteration changes, outside."""
        chain: list[Node] = []
        at = value
        while at not in self.outer and at.node is not None and at.node not in chain:
            chain.append(at.node)
            at = at.node.inputs[0] if at.node.inputs else at
        self.nodes += copied(reversed(chain), self.outer)
        return self.outer[value]

    def _rows(self, found: Product, b: Value, like: Value) -> Value:
        """The products of all iterations, each in the shape of ``like``."""
        transposed = {"transpose_b": True} if found.transpose_b else {}
        flat = self._add(MATMUL, (self._flat(found.row, found.width), b), **transposed)
        return self._reshaped(flat, self.found.iterations, *sizes(like))

    def _total(self, found: Sum, result: Value) -> Value:
        """What is carried in the end, with what waited for it."""
        for x, y, rows in found.products:
            width, height = x.spec.size // max(rows, 1), y.spec.size // max(rows, 1)
            term = self._add(MATMUL, (self._flat(x, width), self._flat(y, height)), transpose_a=True)
            result = self._add(add.op, (result, term))
        for node in found.folds:
            axes = (0, *[axis + 1 for axis in node.attrs["axis"]])
            term = self._add(node.op, (self.outer[node.inputs[0]],), axis=axes, keepdims=False)
            result = self._add(add.op, (result, term))
        return result

    def _flat(self, value: Value, width: int) -> Value:
        """The rows of ``value`` in all iterations, one below another."""
        count = value.spec.size // max(width, 1) * self.found.iterations
        return self._reshaped(self.outer[row_major(value)], count, width)

    def _reshaped(self, value: Value, *shape: int) -> Value:
        return self._add(RESHAPE, (value,), shape=Shape(shape))

    def _add(self, op: Op, inputs: Sequence[Value], **attrs: Any) -> Value:
        specs = op.specs([v.spec for v in inputs], attrs)
        self.nodes.append(Node(op, inputs, attrs, specs, self.node.origin))
        return self.nodes[-1].output


def _sum(values: Sequence[Value], like: Node | None) -> tuple[Value, list[Node]]:
    """The sum of ``values``, and the nodes that make it, which the line of ``like`` asked for."""
    origin = None if like is None else like.origin
    nodes: list[Node] = []
    total = values[0]
    for value in values[1:]:
        nodes.append(Node(add.op, (total, value), {}, (total.spec,), origin))
        total = nodes[-1].output
    return total, nodes
