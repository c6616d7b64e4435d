"""Batches matrix products in loops: one product of all iterations, before or after the loop.

For scanned ``x`` and invariant ``b``, ``x_t @ b`` is row ``t`` of ``x @ b``, which is computed before the
loop. A stacked output ``y_t @ b`` that no iteration reads is ``y @ b``, computed after the loop, which stacks
``y`` instead. A carried sum ``s + x_0.T @ y_0 + x_1.T @ y_1 + ...`` is ``s + x.T @ y``, computed after the
loop. One product of many rows is faster than many of few rows. Sums are rounded in another
order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dualflow.core.shape import Shape
from dualflow.graph.control_ops import LOOP
from dualflow.graph.control_spec import loop_of
from dualflow.graph.cost_model import CPU, CostModel
from dualflow.graph.extract import ancestors
from dualflow.graph.ir import Graph, Node, Value
from dualflow.graph.passes.batching_analysis import Batchable, Product, Sum
from dualflow.graph.passes.over_bodies import inside_out
from dualflow.graph.passes.trimming import trim_control
from dualflow.graph.rewrite import Expansion, copied, expand, rebuilt, removal
from dualflow.graph.views import row_major, sizes
from dualflow.ops.arithmetic import add
from dualflow.ops.arrangement import RESHAPE
from dualflow.ops.contraction import MATMUL
from dualflow.ops.op_kinds import Loop
from dualflow.ops.record import Op


def batch_products(graph: Graph, budget: int, costs: CostModel = CPU) -> Graph:
    """``graph`` with products of loop iterations batched to one product.

    The new stacks of a loop take at most ``budget`` bytes.
    """

    def batched(graph: Graph) -> Graph:
        rewritten = expand(graph, lambda node: _with_batched_products(node, budget, costs), (Loop,))
        return rewritten if rewritten is graph else trim_control(rewritten)

    return inside_out(batched)(graph)


def _with_batched_products(node: Node, budget: int, costs: CostModel) -> Expansion | None:
    if node.effect is not None:
        return None
    body, iterations = loop_of(node).body, loop_of(node).iterations
    values = [*node.inputs, *node.outputs, *body.inputs, *(v for n in body.nodes for v in n.outputs)]
    if type(iterations) is not int or iterations < 2 or not all(v.spec.shape.is_static for v in values):
        return None
    batchable = Batchable(node, budget, costs)
    batchable.find()
    return _LoopRewriter(batchable).write() if batchable.any else None


class _LoopRewriter:
    """Builds the new loop, and the products before and after it.

    Attributes:
        batchable: the products to batch.
        node: the loop.
        nodes: the new nodes.
        outer: for values of the body, the values outside of the loop: the initial value of a carried value,
            the stack of a row, an invariant.
    """

    def __init__(self, batchable: Batchable) -> None:
        self.batchable = batchable
        self.node = batchable.node
        self.nodes: list[Node] = []
        self.outer = dict(zip(batchable.body.inputs, self.node.inputs, strict=True))

    def write(self) -> Expansion:
        """The nodes, and the values that replace the loop's outputs."""
        batchable, carried = self.batchable, self.batchable.carried
        factors = {p.node: self._lifted(p.b) for p in (*batchable.before, *batchable.after.values())}
        rows = [self._rows(p, factors[p.node], p.node.output) for p in batchable.before]
        loop = self._loop(rows)
        self.nodes.append(loop)
        stacked_outputs = [i for i in range(carried, len(batchable.body.outputs)) if i not in batchable.after]
        stacks = [*[batchable.body.outputs[i] for i in stacked_outputs], *batchable.stacked]
        self.outer.update(zip(stacks, loop.outputs[carried:], strict=True))
        results = dict(zip([*range(carried), *stacked_outputs], loop.outputs, strict=False))
        results |= {
            i: self._rows(p, factors[p.node], batchable.body.outputs[i]) for i, p in batchable.after.items()
        }
        results |= {s.carried_index: self._total(s, results[s.carried_index]) for s in batchable.sums}
        return Expansion(self.nodes, [results[i] for i in range(len(batchable.body.outputs))])

    def _loop(self, rows: Sequence[Value]) -> Node:
        """The loop without the batched products: it scans ``rows``, and stacks operands of later products."""
        batchable, body = self.batchable, self.batchable.body
        end = batchable.loop.end
        new = [Value(p.node.output.spec) for p in batchable.before]
        replaced = {p.node.output: v for p, v in zip(batchable.before, new, strict=True)}
        removed = {p.node for p in batchable.before}
        nodes = rebuilt(body.nodes, lambda node, _: removal(node) if node in removed else None, replaced)
        outputs = list(body.outputs)
        for s in batchable.sums:
            kept = [replaced.get(v, v) for v in s.kept]
            outputs[s.carried_index], more = _sum(kept, outputs[s.carried_index].node)
            nodes += more
        indices = [i for i in range(len(outputs)) if i not in batchable.after]
        results = [replaced.get(v, v) for v in [*[outputs[i] for i in indices], *batchable.stacked]]
        needed, _ = ancestors(results, ())
        iteration = Graph(
            body.name,
            (*body.inputs[:end], *new, *body.inputs[end:]),
            tuple([n for n in nodes if n in needed]),
            tuple(results),
        )
        attrs = {
            "loop": batchable.loop.as_new_loop(body=iteration, scanned=batchable.loop.scanned + len(new))
        }
        inputs = (*self.node.inputs[:end], *rows, *self.node.inputs[end:])
        specs = LOOP.specs([v.spec for v in inputs], attrs)
        return Node(LOOP, inputs, attrs, specs, self.node.origin, self.node.merged_origins)

    def _lifted(self, value: Value) -> Value:
        """The value outside of the loop that an invariant of the body, or a view of one, has."""
        chain: list[Node] = []
        current = value
        while current not in self.outer and current.node is not None and current.node not in chain:
            chain.append(current.node)
            current = current.node.inputs[0] if current.node.inputs else current
        self.nodes += copied(reversed(chain), self.outer)
        return self.outer[value]

    def _rows(self, product: Product, b: Value, like: Value) -> Value:
        """The products of all iterations, each reshaped like ``like``."""
        transposed = {"transpose_b": True} if product.transpose_b else {}
        flat = self._add(MATMUL, (self._flat(product.row, product.width), b), **transposed)
        return self._reshaped(flat, self.batchable.iterations, *sizes(like))

    def _total(self, carried_sum: Sum, result: Value) -> Value:
        """The final carried sum: the loop's result, plus the batched products and reductions."""
        for x, y, rows in carried_sum.products:
            width, height = x.spec.size // max(rows, 1), y.spec.size // max(rows, 1)
            term = self._add(MATMUL, (self._flat(x, width), self._flat(y, height)), transpose_a=True)
            result = self._add(add.op, (result, term))
        for node in carried_sum.reductions:
            axes = (0, *[axis + 1 for axis in node.attrs["axis"]])
            term = self._add(node.op, (self.outer[node.inputs[0]],), axis=axes, keepdims=False)
            result = self._add(add.op, (result, term))
        return result

    def _flat(self, value: Value, width: int) -> Value:
        """The rows of ``value`` in all iterations, as one matrix."""
        count = value.spec.size // max(width, 1) * self.batchable.iterations
        return self._reshaped(self.outer[row_major(value)], count, width)

    def _reshaped(self, value: Value, *shape: int) -> Value:
        return self._add(RESHAPE, (value,), shape=Shape(shape))

    def _add(self, op: Op, inputs: Sequence[Value], **attrs: Any) -> Value:
        specs = op.specs([v.spec for v in inputs], attrs)
        self.nodes.append(Node(op, inputs, attrs, specs, self.node.origin))
        return self.nodes[-1].output


def _sum(values: Sequence[Value], like: Node | None) -> tuple[Value, list[Node]]:
    """The sum of ``values``, and the nodes that compute it, with the origin of ``like``."""
    origin = None if like is None else like.origin
    nodes: list[Node] = []
    total = values[0]
    for value in values[1:]:
        nodes.append(Node(add.op, (total, value), {}, (total.spec,), origin))
        total = nodes[-1].output
    return total, nodes
