"""A compiled graph as pseudo-code that a person can read: every loop, load, fold, store and call, in order.

    def softmax(x: float32[4, 100]):
        # k0: reduce_max, subtract, exp, reduce_sum, divide
        for i in range(4):
            r0 = -inf
            for j in lanes(100, 16):               # pass 1 of 3
                r0 = reduce_max(r0, x[100*i + j])  # model.py:3

``lanes(n, k)`` counts from 0 to n - 1, k numbers at a time; the last ones are masked. ``x[100*i + j]`` is an
element of the buffer ``x`` by its place in memory, so the strides stand beside the loops. A fold such as
``r0 = reduce_max(r0, x)`` takes one more element; after the loop ``r0`` is its result. ``kept0`` is a row
that a later pass reads back instead of computing it again.

Everything is read off the loop nests that were emitted: given the ops as functions of numbers and the buffers
as flat arrays, the kernels run as the Python that they look like.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

from dualflow.backends.llvm.executable import Executable
from dualflow.backends.llvm.kernel_text import WIDTH, KernelText, Row, call_text, lines_of
from dualflow.backends.llvm.product.product import TRANSPOSED, Matrix, routine
from dualflow.graph.compiled import CompiledPart, PartKind
from dualflow.graph.control_spec import loop_of
from dualflow.graph.ir import Graph, Node, Value
from dualflow.ops.forms import Scatter
from dualflow.schedule.assembly import pieces
from dualflow.schedule.naming import Memory
from dualflow.schedule.nest import Layout, contiguous_strides
from dualflow.schedule.operands import CallKind, readable
from dualflow.schedule.plan import PlannedBody, PlannedCall, Turns


def kernels(executable: Executable) -> str:
    """The calls of a compiled graph in order, each kernel with its loops; the module says how to read them.

    Args:
        executable: what :func:`dualflow.backends.llvm.backend.build` returns.
    """
    return "\n".join(str(row).rstrip() for row in _program(executable))


def _program(executable: Executable) -> Iterator[Row]:
    listing = _Listing(executable)
    yield from _head(executable.graph, listing.memory)
    yield from _summary(executable)
    yield from listing.calls(executable.plan.calls, 1)
    yield Row(0, "")
    yield Row(1, f"return {', '.join(listing.memory.outputs)}".rstrip())


class _Listing:
    """The calls of a graph, those inside choices and loops further to the right."""

    def __init__(self, executable: Executable) -> None:
        self.executable = executable
        self.memory = Memory(executable.graph, executable.plan)
        self.emitted = iter(executable.program.kernels)
        self.reports = iter([part for part in executable.parts if part.kind is not PartKind.NATIVE])

    def calls(self, calls: Sequence[PlannedCall], depth: int, again: bool = False) -> Iterator[Row]:
        before = ""
        for call in calls:
            self.memory.define(call, again)
            loops = list(islice(self.emitted, _loop_nests(call)))
            starts = call.turns is not None and bool(call.turns.start)
            if loops or (not starts and (call.kind != before or call.kind is CallKind.CONTROL)):
                yield Row(0, "")
            before = call.kind
            if call.turns is not None:
                yield from self._loop(call, call.turns, depth)
            elif call.kind is CallKind.CONTROL:
                yield from self._choice(call, depth)
            elif call.kind is CallKind.CHECK:
                holds = _whole(self.memory, call.inputs[0], call.node.inputs[0])
                yield Row(depth, f"if not {holds}: raise {call.node.attrs['error']}", lines_of(call.node))
            elif call.kind is CallKind.ASSEMBLY:
                yield Row(
                    depth, f"# {call.node.op.name}: {_plural(len(loops), 'piece')}", lines_of(call.node)
                )
            for kernel in loops:
                for row in KernelText(kernel, self.memory, self.executable).rows():
                    yield row._replace(depth=row.depth + depth - 1)
            if call.kind is CallKind.HOST:
                yield _host(call, self.memory, next(self.reports))._replace(depth=depth)
            elif call.kind is CallKind.SCATTER:
                yield _scatter(call, self.memory)._replace(depth=depth)
            elif call.kind is CallKind.BOUNDS:
                yield _bounds(call, self.memory)._replace(depth=depth)
            elif call.kind is CallKind.MOVE:
                yield _move(call, self.memory)._replace(depth=depth)
            elif _is_product(call):
                yield _product(call, self.memory, self.executable.plan.inputs)._replace(depth=depth)

    def _choice(self, call: PlannedCall, depth: int) -> Iterator[Row]:
        index = _whole(self.memory, call.inputs[0], call.node.inputs[0])
        *branches, last = call.blocks
        for i, block in enumerate(branches):
            word = "elif" if i else "if"
            yield Row(depth, f"{word} {index} == {i}:", lines_of(call.node) if not i else "")
            yield from self._block(block, depth + 1)
        yield Row(depth, "else:" if branches else "if True:")
        yield from self._block(last, depth + 1)

    def _loop(self, call: PlannedCall, turns: Turns, depth: int) -> Iterator[Row]:
        """A loop: what it carries is copied to where it is carried; its rows move."""
        yield from self.calls(turns.start, depth, again=True)
        loop, turn = loop_of(call.node), f"t{turns.counter}"
        count = str(loop.length) if turns.counted is None else f"turns of t{turns.counted}"
        if loop.condition is not None:
            most = "" if loop.length is None else f", at most {loop.length} times"
            yield Row(depth, f"while True:  # {turn} counts the turns{most}", lines_of(call.node))
            yield from self.calls(call.blocks[0].calls, depth + 1, again=True)
            test = loop.condition.outputs[0]
            yield Row(depth + 1, f"if not {_whole(self.memory, call.blocks[0].results[0], test)}: break")
        else:
            order = f"reversed(range({count}))" if loop.reverse else f"range({count})"
            yield Row(depth, f"for {turn} in {order}:", lines_of(call.node))
        for row in turns.rows:
            stack, offset = self.memory.find(row.stack, row.itemsize)
            first = offset * row.itemsize // max(row.nbytes, 1)
            at = f"{first} + {turn}" if first else turn
            yield Row(depth + 1, f"{self.memory.name(row.slot)} = {stack}[{at}]")
        yield from self._block(call.blocks[-1], depth + 1)

    def _block(self, block: PlannedBody, depth: int) -> Iterator[Row]:
        yield from self.calls(block.calls, depth, again=True) if block.calls else [Row(depth, "pass")]


def _loop_nests(call: PlannedCall) -> int:
    """How many kernels a call runs; a product that adds to what lies elsewhere copies that first."""
    if call.kind is CallKind.PRODUCT:
        return int(call.inputs[2:] not in ((), call.outputs))
    if call.kind is CallKind.SCATTER:
        return int(len(call.inputs) == 2 or call.inputs[:1] != call.outputs)
    return len(pieces(call)) if call.kind is CallKind.ASSEMBLY else int(call.kind is CallKind.KERNEL)


def _is_product(call: PlannedCall) -> bool:
    """Whether matrices are multiplied: not for a result without elements."""
    return call.kind is CallKind.PRODUCT and call.node.output.spec.nbytes > 0


def _summary(executable: Executable) -> Iterator[Row]:
    """How many calls there are, and the memory beside inputs and outputs."""
    program, calls = executable.program, list(executable.plan.walk())
    numbers = [
        _plural(len(program.kernels), "kernel"),
        _plural(sum(map(_is_product, calls)), "matrix product"),
        _plural(sum(call.kind is CallKind.HOST for call in calls), "host call"),
    ]
    yield Row(1, f"# {', '.join(numbers)}")
    if program.arena_bytes:
        held = "values v0, v1, ..., kept rows, partial results"
        yield Row(1, f"# arena of {program.arena_bytes:,} bytes: {held}")
    for i, constant in enumerate(executable.plan.constants):
        yield Row(1, f"# c{i}: {constant.dtype}{list(constant.shape)}, a constant")


def _head(graph: Graph, memory: Memory) -> Iterator[Row]:
    updated = {u.input for u in graph.updates}
    kinds = [""] * len(graph.arguments)
    kinds += ["variable" if c.variable else "captured tensor" for c in graph.captures]
    given, notes = [], []
    for name, kind, value in zip(memory.inputs, kinds, graph.inputs, strict=True):
        given.append(f"{name}: {value.spec}")
        notes.append(f"{kind}, updated".lstrip(", ") if value in updated else kind)
    line = f"def {graph.name}({', '.join(given)}):"
    if len(line) <= WIDTH and not any(notes):
        yield Row(0, line)
        return
    yield Row(0, f"def {graph.name}(")
    for item, note in zip(given, notes, strict=True):
        yield Row(1, f"{item},", note)
    yield Row(0, "):")


def _host(call: PlannedCall, memory: Memory, part: CompiledPart) -> Row:
    """A call of NumPy or Python between native parts."""
    node = call.node
    given = [_whole(memory, layout, v) for layout, v in zip(call.inputs, node.inputs, strict=True)]
    made = [_whole(memory, layout, v) for layout, v in zip(call.outputs, node.outputs, strict=True)]
    result = f"{', '.join(made)} = " if made else ""
    return Row(1, f"{result}{part.kind}.{call_text(node, given)}", _joined(part.reason, lines_of(node)))


def _scatter(call: PlannedCall, memory: Memory) -> Row:
    """Rows that go where integers say; what lies there has been written by the kernel before."""
    form, node = call.node.op.form, call.node
    assert isinstance(form, Scatter)
    where, rows = (_whole(memory, a, v) for a, v in zip(call.inputs[-2:], node.inputs[-2:], strict=True))
    sign = "+=" if form.add else "="
    return Row(1, f"{_whole(memory, call.outputs[0], node.output)}[{where}] {sign} {rows}", lines_of(node))


def _bounds(call: PlannedCall, memory: Memory) -> Row:
    """A look at the integers of a scatter, before anything is written."""
    node: Node = call.node.attrs["scatter"]
    where = _whole(memory, call.inputs[0], call.node.inputs[0])
    return Row(1, f"check {where}: positions of {node.op.name}", lines_of(node))


def _move(call: PlannedCall, memory: Memory) -> Row:
    """Memory copied as it lies."""
    value = call.node.output
    source, target = (_whole(memory, layout, value) for layout in (*call.inputs, *call.outputs))
    return Row(1, f"{target} = {source}", lines_of(call.node))


def _product(call: PlannedCall, memory: Memory, inputs: int) -> Row:
    """A matrix product, which reads a transposed operand as it lies, and may add to what is there."""
    node, (out,) = call.node, call.outputs
    flips = [bool(node.attrs.get(name)) for name in ("transpose_a", "transpose_b")]
    names, sizes = [], []
    for value, layout, flip in zip(node.inputs, call.inputs, flips, strict=False):
        *batch, rows, columns = _sizes(value)
        names.append(_matrix(memory, layout, rows, columns, flip, value.spec.dtype.size))
        sizes.append("x".join(map(str, (*batch, columns, rows) if flip else (*batch, rows, columns))))
    scale = node.output.spec.dtype.dtype.type(node.attrs.get("scale", 1.0))
    target = memory.find(out, node.output.spec.dtype.size)[0]
    sign = "+=" if len(call.inputs) > 2 else "="
    factor = "" if scale == 1.0 else f"{scale} * "
    multiply = routine(node.output.spec.dtype.char)
    in_place = "in place" if out.buffer < inputs else ""
    note = _joined(" @ ".join(sizes), in_place, lines_of(node))
    return Row(1, f"{target} {sign} {factor}{multiply}({', '.join(names)})", note)


def _matrix(memory: Memory, layout: Layout, rows: int, columns: int, flip: bool, itemsize: int) -> str:
    """An operand of a product: what lies in memory, ``.T`` where that is read transposed."""
    name, offset = memory.find(layout, itemsize)
    if not readable(layout.strides, rows, columns):
        view = f"as_strided({name}[{offset}:], {(rows, columns)}, {layout.strides[-2:]})"
        return f"{view}.T" if flip else view
    reading = Matrix.of(layout, rows, columns)
    lies_transposed = reading.order == TRANSPOSED
    parts = [f"{offset}:"] if offset else []
    if reading.leading != max(rows if lies_transposed else columns, 1):
        parts.append(f"ld={reading.leading}")
    return name + (f"[{', '.join(parts)}]" if parts else "") + (".T" if flip != lies_transposed else "")


def _sizes(value: Value) -> tuple[int, ...]:
    return tuple(value.spec.shape)  # type: ignore[arg-type]  # sizes are static here


def _joined(*parts: str) -> str:
    return ", ".join(filter(None, parts))


def _whole(memory: Memory, layout: Layout, value: Value) -> str:
    """A whole value where it lies; a view by its shape and its strides in elements."""
    name, offset = memory.find(layout, value.spec.dtype.size)
    base = f"{name}[{offset}:]" if offset else name
    if layout.strides == contiguous_strides(value.spec.shape):
        return base
    return f"as_strided({base}, {tuple(value.spec.shape)}, {layout.strides})"


def _plural(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"
