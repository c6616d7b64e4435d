"""Find the products in a loop that one larger product before or behind it can replace.

:mod:`dualflow.graph.passes.batching` replaces them.
"""

from __future__ import annotations

from collections import Counter

from dualflow.core.records import NamedTuple, dataclass, field
from dualflow.graph.axes import is_view, row_major, sizes
from dualflow.graph.control_spec import LoopSpec, loop_of
from dualflow.graph.cost_model import CostModel
from dualflow.graph.ir import Graph, Node, Value
from dualflow.graph.scalar_functions import scalar_op_of
from dualflow.ops.broadcasting import REDUCE_SUM
from dualflow.ops.contraction import MATMUL
from dualflow.ops.op_kinds import Literal
from dualflow.scalar import ScalarOp

_DTYPES = "fd"


class Product(NamedTuple):
    """``node`` multiplies in each iteration the elements of ``row`` with ``b``, which no iteration changes.

    They are rows of ``width``, and ``b`` is on the right, transposed if ``transpose_b``.
    """

    node: Node
    row: Value
    b: Value
    width: int
    transpose_b: bool


class Sum(NamedTuple):
    """Carried value ``place`` is the sum of ``kept`` in each iteration, and takes on the others behind the
    loop.

    Attributes:
        products: pairs of values, and the number of products that each element of theirs adds up.
        folds: sums over axes of a value.
    """

    place: int
    kept: list[Value]
    products: list[tuple[Value, Value, int]]
    folds: list[Node]


@dataclass(slots=True)
class Batchable:
    """What of a loop can be one product.

    Attributes:
        node: the loop, whose number of iterations is known.
        room: how many bytes new stacks may still take.
        costs: say which products are faster together.
        before: products of rows of scanned inputs.
        behind: products that are rows of the result, by their place there.
        sums: carried sums of products.
        stacked: the values whose rows the loop has to keep for that.
    """

    node: Node
    room: int
    costs: CostModel
    before: list[Product] = field(default_factory=list)
    behind: dict[int, Product] = field(default_factory=dict)
    sums: list[Sum] = field(default_factory=list)
    stacked: list[Value] = field(default_factory=list)

    @property
    def loop(self) -> LoopSpec:
        return loop_of(self.node)

    @property
    def iterations(self) -> int:
        """The number of iterations."""
        iterations = self.loop.iterations
        assert iterations is not None, "the rows of what a condition ends are not counted"
        return iterations

    @property
    def body(self) -> Graph:
        return self.loop.body

    @property
    def carried(self) -> int:
        return self.loop.carried

    @property
    def rows(self) -> tuple[Value, ...]:
        """The rows of scanned inputs, inside."""
        return self.body.inputs[self.carried : self.loop.end]

    @property
    def rest(self) -> tuple[Value, ...]:
        return self.body.inputs[self.loop.end :]

    @property
    def any(self) -> bool:
        return bool(self.before or self.behind or self.sums)

    def find(self) -> None:
        """Fill the lists, those that need no stacks first."""
        readers = Counter(v for n in self.body.nodes for v in n.inputs)
        readers.update(self.body.outputs)
        for place, value in enumerate(self.body.outputs[self.carried :], self.carried):
            found = self._product(_only_view(value, readers).node) if readers[value] == 1 else None
            if found is not None and self._keeps(found.row):
                self.behind[place] = found
        taken = {p.node for p in self.behind.values()}
        for node in self.body.nodes:
            found = self._product(node) if node not in taken else None
            if found is not None and found.row in self.rows and self._takes(node.output):
                self.before.append(found)
        sums = [self._sum(i, readers) for i in range(self.carried)]
        self.sums = [s for s in map(self._with_folds, filter(None, sums)) if s.products or s.folds]

    def _product(self, node: Node | None) -> Product | None:
        if node is None or not _is_product(node) or not all(v.spec.size for v in node.inputs):
            return None
        a, b = node.inputs
        first, second = bool(node.attrs.get("transpose_a")), bool(node.attrs.get("transpose_b"))
        if not first and b.spec.rank == 2 and self._rests(b) and not self._rests(row_major(a)):
            return Product(node, row_major(a), b, sizes(a)[-1], second)
        column = a.spec.rank == b.spec.rank == 2 and sizes(node.output)[-1] == 1
        if column and self._rests(a) and not self._rests(row_major(b)):
            return Product(node, row_major(b), a, b.spec.size, not first)
        return None

    def _rests(self, value: Value) -> bool:
        """Whether ``value`` shows elements of what no iteration changes."""
        while value.node is not None and is_view(value.node):
            value = value.node.inputs[0]
        return value in self.rest or _is_literal(value)

    def _keeps(self, *values: Value) -> bool:
        """Whether there are stacks of ``values``, or there can be; then there will be."""
        new = [v for v in dict.fromkeys(values) if not self._kept(v)]
        if any(v in self.rest or _is_literal(v) for v in new) or not self._takes(*new):
            return False
        self.stacked += new
        return True

    def _kept(self, value: Value) -> bool:
        places = (i for i, v in enumerate(self.body.outputs) if v is value and i >= self.carried)
        return value in self.rows or value in self.stacked or any(i not in self.behind for i in places)

    def _takes(self, *values: Value) -> bool:
        """Take the memory for stacks of ``values``, if there is enough."""
        wanted = sum(v.spec.nbytes for v in values) * self.iterations
        enough = wanted <= self.room
        self.room -= wanted if enough else 0
        return enough

    def _sum(self, place: int, readers: Counter[Value]) -> Sum | None:
        """The sum that carried value ``place`` is, if it is one and no iteration looks at it."""
        before, after = self.body.inputs[place], self.body.outputs[place]
        if readers[before] != 1 or readers[after] != 1 or after.spec.dtype.char not in _DTYPES:
            return None
        leaves = _addends(after, readers)
        if before not in leaves or len(leaves) < 2:
            return None
        found = Sum(place, [], [], [])
        for leaf in leaves:
            node = leaf.node if readers[leaf] == 1 else None
            factors = _rows_multiplied(node, self.costs) if node is not None else None
            if factors is not None and self._keeps(*factors[:2]):
                found.products.append(factors)
            else:
                found.kept.append(leaf)
        return found

    def _with_folds(self, found: Sum) -> Sum:
        """``found``, where sums over axes of what is stacked anyway wait for the end as well."""
        nodes = {v: v.node for v in found.kept if v.node is not None and v.node.op is REDUCE_SUM}
        folds = {
            v: n
            for v, n in nodes.items()
            if not n.attrs["keepdims"] and n.inputs[0].spec.dtype is v.spec.dtype and self._kept(n.inputs[0])
        }
        kept = [v for v in found.kept if v not in folds]
        return Sum(found.place, kept, found.products, list(folds.values()))


def _is_product(node: Node) -> bool:
    return node.op is MATMUL and node.output.spec.dtype.char in _DTYPES


def _only_view(value: Value, readers: Counter[Value]) -> Value:
    """The value that ``value`` is a row-major view of and that nobody else reads."""
    while value.node is not None and row_major(value) is not value:
        if readers[value.node.inputs[0]] != 1:
            break
        value = value.node.inputs[0]
    return value


def _is_literal(value: Value) -> bool:
    return value.node is not None and isinstance(value.node.op.kind, Literal)


def _addends(value: Value, readers: Counter[Value]) -> list[Value]:
    """What ``value`` is the sum of, all of its own shape, where nobody else reads the sums between."""
    pending, leaves = [value], []
    while pending:
        at = pending.pop()
        node = at.node if readers[at] == 1 else None
        if (
            node is not None
            and scalar_op_of(node) is ScalarOp.ADD
            and all(v.spec == at.spec for v in node.inputs)
        ):
            pending += node.inputs
        else:
            leaves.append(at)
    return leaves


def _rows_multiplied(node: Node, costs: CostModel) -> tuple[Value, Value, int] | None:
    """``x`` and ``y`` where a product is ``x.T @ y`` of few rows, and their number."""
    if not _is_product(node) or any(v.spec.rank != 2 for v in node.inputs):
        return None
    x, y = node.inputs
    first, second = bool(node.attrs.get("transpose_a")), bool(node.attrs.get("transpose_b"))
    inner = sizes(x)[0 if first else 1]
    in_rows = inner > 0 and ((first and not second) or inner == 1)
    pays = inner <= costs.batched_rows or inner * node.output.spec.size <= costs.batched_work
    return (row_major(x), row_major(y), inner) if in_rows and pays and node.output.spec.size else None
