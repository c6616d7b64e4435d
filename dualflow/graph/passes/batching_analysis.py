"""Finds the matrix products in a loop that one larger product before or after the loop can replace.

:mod:`dualflow.graph.passes.loop_products` replaces them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from dualflow.core.records import NamedTuple, dataclass, field
from dualflow.graph.control_spec import LoopSpec, loop_of
from dualflow.graph.cost_model import CostModel
from dualflow.graph.ir import Graph, Node, Value
from dualflow.graph.scalar_functions import scalar_op_of
from dualflow.graph.views import is_view, row_major, sizes
from dualflow.ops.broadcasting import REDUCE_SUM
from dualflow.ops.contraction import MATMUL
from dualflow.ops.op_kinds import Literal
from dualflow.scalar import ScalarOp
from dualflow.sizes.symbolic_sizes import is_static

_DTYPES = "fd"


class Product(NamedTuple):
    """A matrix product ``row @ b`` in each iteration, with a loop invariant ``b``.

    Attributes:
        node: the product.
        row: its varying factor; its elements are rows of ``width``.
        b: the invariant.
        width: the size of the contracted axis.
        transpose_b: whether ``b`` is transposed.
    """

    node: Node
    row: Value
    b: Value
    width: int
    transpose_b: bool


class Sum(NamedTuple):
    """A carried sum, some of whose terms are added after the loop.

    Attributes:
        carried_index: its index among the carried values.
        kept: the terms that each iteration adds.
        products: factors ``x`` and ``y`` of the terms ``x.T @ y`` that are added after the loop, and the
            number of their rows.
        reductions: the terms ``reduce_sum(x)`` that are added after the loop.
    """

    carried_index: int
    kept: list[Value]
    products: list[tuple[Value, Value, int]]
    reductions: list[Node]


@dataclass(slots=True)
class Batchable:
    """The products of one loop that can be batched: :meth:`find` fills the lists.

    Attributes:
        node: the loop, whose trip count is static.
        budget: the bytes that new stacks may still take.
        costs: decides which products are faster batched.
        before: products of rows of scanned inputs, computed before the loop.
        after: products that are stacked outputs, computed after the loop, by output index.
        sums: carried sums of products.
        stacked: the values that the loop has to stack for this.
    """

    node: Node
    budget: int
    costs: CostModel
    before: list[Product] = field(default_factory=list)
    after: dict[int, Product] = field(default_factory=dict)
    sums: list[Sum] = field(default_factory=list)
    stacked: list[Value] = field(default_factory=list)

    @property
    def loop(self) -> LoopSpec:
        return loop_of(self.node)

    @property
    def iterations(self) -> int:
        """The number of iterations."""
        iterations = self.loop.iterations
        assert iterations is not None, "loops with a condition are not batched"
        return iterations

    @property
    def body(self) -> Graph:
        return self.loop.body

    @property
    def carried(self) -> int:
        return self.loop.carried

    @property
    def rows(self) -> Sequence[Value]:
        """The rows of scanned inputs in the body."""
        return self.loop.split_inputs(self.body.inputs).scanned

    @property
    def invariants(self) -> Sequence[Value]:
        return self.loop.split_inputs(self.body.inputs).invariants

    @property
    def any(self) -> bool:
        return bool(self.before or self.after or self.sums)

    def find(self) -> None:
        """Find the products, first those that need no new stacks."""
        uses = Counter(v for n in self.body.nodes for v in n.inputs)
        uses.update(self.body.outputs)
        for index, value in enumerate(self.body.outputs[self.carried :], self.carried):
            product = self._product(_only_view(value, uses).node) if uses[value] == 1 else None
            if product is not None and self._stack(product.row):
                self.after[index] = product
        taken = {p.node for p in self.after.values()}
        for node in self.body.nodes:
            product = self._product(node) if node not in taken else None
            if product is not None and product.row in self.rows and self._reserve(node.output):
                self.before.append(product)
        sums = [self._sum(i, uses) for i in range(self.carried)]
        self.sums = [s for s in map(self._with_reductions, filter(None, sums)) if s.products or s.reductions]

    def _product(self, node: Node | None) -> Product | None:
        if node is None or not _is_product(node) or not all(v.spec.size for v in node.inputs):
            return None
        a, b = node.inputs
        first, second = bool(node.attrs.get("transpose_a")), bool(node.attrs.get("transpose_b"))
        if not first and b.spec.rank == 2 and self._is_invariant(b) and not self._is_invariant(row_major(a)):
            return Product(node, row_major(a), b, sizes(a)[-1], second)
        column = a.spec.rank == b.spec.rank == 2 and sizes(node.output)[-1] == 1
        if column and self._is_invariant(a) and not self._is_invariant(row_major(b)):
            return Product(node, row_major(b), a, b.spec.size, not first)
        return None

    def _is_invariant(self, value: Value) -> bool:
        """Whether ``value`` is a loop invariant, or a view of one."""
        while value.node is not None and is_view(value.node):
            value = value.node.inputs[0]
        return value in self.invariants or _is_literal(value)

    def _stack(self, *values: Value) -> bool:
        """Stack ``values``, if the budget allows; returns whether the loop stacks all of them."""
        new = [v for v in dict.fromkeys(values) if not self._is_stacked(v)]
        if any(v in self.invariants or _is_literal(v) for v in new) or not self._reserve(*new):
            return False
        self.stacked += new
        return True

    def _is_stacked(self, value: Value) -> bool:
        indices = (i for i, v in enumerate(self.body.outputs) if v is value and i >= self.carried)
        return value in self.rows or value in self.stacked or any(i not in self.after for i in indices)

    def _reserve(self, *values: Value) -> bool:
        """Reserve memory for stacks of ``values``; returns whether the budget has enough."""
        nbytes = sum(v.spec.nbytes for v in values) * self.iterations
        enough = nbytes <= self.budget
        self.budget -= nbytes if enough else 0
        return enough

    def _sum(self, index: int, uses: Counter[Value]) -> Sum | None:
        """The carried value with index ``index`` as a sum; None if it is no sum, or an iteration reads it."""
        initial, output = self.body.inputs[index], self.body.outputs[index]
        if uses[initial] != 1 or uses[output] != 1 or output.spec.dtype.char not in _DTYPES:
            return None
        terms = _addends(output, uses)
        if initial not in terms or len(terms) < 2:
            return None
        carried_sum = Sum(index, [], [], [])
        for term in terms:
            node = term.node if uses[term] == 1 else None
            factors = _rows_multiplied(node, self.costs) if node is not None else None
            if factors is not None and self._stack(*factors[:2]):
                carried_sum.products.append(factors)
            else:
                carried_sum.kept.append(term)
        return carried_sum

    def _with_reductions(self, carried_sum: Sum) -> Sum:
        """``carried_sum`` with the reductions of stacked values moved after the loop, too."""
        nodes = {v: v.node for v in carried_sum.kept if v.node is not None and v.node.op is REDUCE_SUM}
        reductions = {
            v: n
            for v, n in nodes.items()
            if not n.attrs["keepdims"]
            and n.inputs[0].spec.dtype is v.spec.dtype
            and self._is_stacked(n.inputs[0])
        }
        kept = [v for v in carried_sum.kept if v not in reductions]
        return Sum(carried_sum.carried_index, kept, carried_sum.products, list(reductions.values()))


def _is_product(node: Node) -> bool:
    """Whether ``node`` is a matrix product of static sizes: memory and work decide whether it is batched."""
    is_product = node.op is MATMUL and node.output.spec.dtype.char in _DTYPES
    return is_product and all(is_static(v.spec.shape) for v in (*node.inputs, node.output))


def _only_view(value: Value, uses: Counter[Value]) -> Value:
    """The value that ``value`` is a reshape of, if nothing else reads it."""
    while value.node is not None and row_major(value) is not value:
        if uses[value.node.inputs[0]] != 1:
            break
        value = value.node.inputs[0]
    return value


def _is_literal(value: Value) -> bool:
    return value.node is not None and isinstance(value.node.op.kind, Literal)


def _addends(value: Value, uses: Counter[Value]) -> list[Value]:
    """The terms of the sum ``value``, through additions whose results nothing else reads."""
    pending, terms = [value], []
    while pending:
        current = pending.pop()
        node = current.node if uses[current] == 1 else None
        if (
            node is not None
            and scalar_op_of(node) is ScalarOp.ADD
            and all(v.spec == current.spec for v in node.inputs)
        ):
            pending += node.inputs
        else:
            terms.append(current)
    return terms


def _rows_multiplied(node: Node, costs: CostModel) -> tuple[Value, Value, int] | None:
    """``x``, ``y`` and their number of rows, if ``node`` is ``x.T @ y`` with few rows; else None."""
    if not _is_product(node) or any(v.spec.rank != 2 for v in node.inputs):
        return None
    x, y = node.inputs
    first, second = bool(node.attrs.get("transpose_a")), bool(node.attrs.get("transpose_b"))
    inner = sizes(x)[0 if first else 1]
    in_rows = inner > 0 and ((first and not second) or inner == 1)
    pays = inner <= costs.batched_rows or inner * node.output.spec.size <= costs.batched_work
    return (row_major(x), row_major(y), inner) if in_rows and pays and node.output.spec.size else None
