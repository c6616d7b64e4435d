"""A kernel's statements as a Python function, line by line."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dualflow.backends.llvm.maths.namespace import Maths
from dualflow.backends.llvm.text import I64, Type, Value
from dualflow.backends.numba.parameters import Parameter, names
from dualflow.backends.numba.support import HEADER, Support
from dualflow.backends.numba.values import Lines, SourceBuilder, SourceValue, type_name
from dualflow.core.dtypes import DType, as_dtype
from dualflow.graph.ir import Node
from dualflow.ops.forms import Element, Fold
from dualflow.schedule import loop_program as lp
from dualflow.schedule.loop_program import Kernel, LoopKind, Number, Place, Register, Statement

_INDEX = as_dtype("int64")
ASKED_TURNS = 1 << 16
"""After so many turns a loop over scalars asks whether a signal has come."""


@dataclass(frozen=True, slots=True)
class KernelSource:
    """A kernel as source.

    Attributes:
        support: the functions that it calls, as source.
        lines: the lines of its body.
        parameters: what it takes, ``lo`` and ``hi`` first.
        checks: what each number in ``status`` means, with the node it belongs to.
        nodes: which lines begin a node's code.
    """

    support: Support
    lines: tuple[str, ...]
    parameters: tuple[Parameter, ...]
    checks: tuple[tuple[str, Node], ...]
    nodes: tuple[tuple[int, Node], ...]

    def function(self, name: str) -> str:
        """The kernel alone, as a function of that name."""
        head = f"def {name}({names(self.parameters)}):"
        return "\n".join(['@njit(error_model="numpy", cache=True)', head, *self.lines, ""])

    def shared(self, name: str) -> str:
        """A function that shares the kernel's range between threads, in chunks."""
        rest = names(self.parameters[2:])
        return f"""
@njit(parallel=True, error_model="numpy", nogil=True, cache=True)
def {name}_parallel(total, chunk, {rest}):
    for part in prange((total + chunk - 1) // chunk):
        {name}(part * chunk, min(total, part * chunk + chunk), {rest})
"""

    def file(self, name: str) -> str:
        """A whole file with the kernel in both forms."""
        return "\n".join([HEADER, *self.support.pieces(), self.function(name), self.shared(name)])


def source(kernel: Kernel) -> KernelSource:
    """``kernel`` as Python source."""
    return _Writer(kernel).source()


class _ElementMaths(Maths):
    """The maths namespace of element code in a kernel: its numbers are constants, and it knows its place."""

    node: Node
    positions: tuple[int | None, ...]

    def __init__(self, writer: _Writer) -> None:
        super().__init__(writer.support)  # type: ignore[arg-type]  # support functions stand for the module
        self._writer = writer

    def cast(self, x: Value | float, target: DType) -> Value:
        """The same number in another dtype; a Python number becomes a constant."""
        if isinstance(x, Value):
            return super().cast(x, target)
        return self._writer.builder.constant(Type.of_dtype(target.dtype), x)

    def index(self, axis: int) -> Value:
        """The element's position along an axis of the output, an int64."""
        loop = self.positions[axis]
        builder = self._writer.builder
        return builder.constant(I64, 0) if loop is None else builder.named(I64, f"i64(i{loop})")

    def check(self, ok: Value, message: str) -> None:
        """Stop the graph with ``message`` unless ``ok`` holds."""
        self._writer.fail_unless(ok.text, message, self.node)


class _Accumulator(SourceValue):
    """What a fold carries along lanes: floats may be added to it in another order."""

    __slots__ = ()

    def __add__(self, other: Any) -> Value:
        if self.type.kind != "f":
            return super().__add__(other)
        call = f"{self.emitter.support.primitive('plus')}({self.text}, {self._other(other).text})"
        return self.emitter.expression(self.type, call)


class _Writer:
    """Writes one kernel.

    Attributes:
        kind: of the loop that is being written.
    """

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.support = Support()
        self.lines = Lines()
        self.builder = SourceBuilder(self.lines, self.support)
        self.maths = _ElementMaths(self)
        self.checks: list[tuple[str, Node]] = []
        self.dtypes = list(kernel.buffers)
        self.kind = LoopKind.SERIAL
        self.nodes: list[tuple[int, Node]] = []

    def source(self) -> KernelSource:
        kernel = self.kernel
        self._statements(kernel.body)
        if not self.lines.text:
            self.lines.add("pass")
        parameters = (
            Parameter("lo", _INDEX),
            Parameter("hi", _INDEX),
            *(Parameter(f"x{i}", dtype, array=True) for i, dtype in enumerate(kernel.buffers)),
            *(Parameter(f"c{i}", dtype) for i, dtype in enumerate(kernel.scalars)),
            *(Parameter(f"n{i}", _INDEX) for i in range(kernel.numbers)),
            Parameter("status", _INDEX, array=True),
        )
        return KernelSource(
            self.support, tuple(self.lines.text), parameters, tuple(self.checks), tuple(self.nodes)
        )

    def fail_unless(self, ok: str, message: str, node: Node) -> None:
        """Note in the status that a check failed, unless another one has before."""
        if ok == "True":
            return
        self.checks.append((message, node))
        with self.lines.block(f"if not {ok} and not status[0]:"):
            self.lines.add(f"status[0] = {len(self.checks)}")

    # Statements

    def _statements(self, statements: Sequence[Statement]) -> None:
        for statement in statements:
            node: Node | None = getattr(statement, "node", None)
            if node is not None:
                self.nodes.append((len(self.lines.text), node))
            _WRITERS[type(statement)](self, statement)

    def _for(self, loop: lp.For) -> None:
        begin, end = (self._bound(x) for x in (loop.begin, loop.end))
        span = end if begin == "0" else f"{begin}, {end}"
        outer, self.kind = self.kind, loop.kind
        with self.lines.block(f"for {_index(loop.loop)} in range({span}):"):
            self._statements(loop.body)
        self.kind = outer

    def _bound(self, bound: lp.Bound) -> str:
        if isinstance(bound, lp.Edge):
            return f"{'end' if bound.end else 'begin'}{_block(bound.loop, bound.level)}"
        return f"n{bound.place}" if isinstance(bound, Number) else bound.value

    def _blocks(self, blocks: lp.Blocks) -> None:
        begin, end = self._bound(blocks.begin), self._bound(blocks.end)
        here, size = _block(blocks.loop, blocks.level), f"n{blocks.size.place}"
        with self.lines.block(f"for begin{here} in range({begin}, {end}, {size}):"):
            self.lines.add(f"end{here} = min(begin{here} + {size}, {end})")
            self._statements(blocks.body)

    def _shares(self, shares: lp.Shares) -> None:
        here, size = _block(shares.loop, lp.SHARE), f"n{shares.size.place}"
        with self.lines.block(f"for {_index(lp.SHARE)} in range(lo, hi):"):
            self.lines.add(f"begin{here} = {_index(lp.SHARE)} * {size}")
            self.lines.add(f"end{here} = min(begin{here} + {size}, n{shares.extent.place})")
            self._statements(shares.body)

    def _let(self, let: lp.Let) -> None:
        form = let.node.op.form
        assert isinstance(form, Element)
        self.maths.node, self.maths.positions = let.node, let.positions
        operands = [self._operand(o) for o in let.operands]
        self._bind(let.register, form.code(self.maths, *operands, **let.node.attrs))

    def _bind(self, register: Register, result: Any) -> None:
        """Give the register its value; a line that has just made the value names the register instead."""
        value, name = self._typed(result, register.dtype), f"r{register.number}"
        if not self.lines.rename(value.text, name):
            self.lines.add(f"{name} = {value.text}")

    def _typed(self, result: Any, dtype: DType) -> Value:
        type = Type.of_dtype(dtype.dtype)
        if isinstance(result, Value):
            return result.cast(type)
        number = result.item() if isinstance(result, np.generic | np.ndarray) else result
        return self.builder.constant(type, number)

    def _load(self, load: lp.Load) -> None:
        self.lines.add(f"r{load.register.number} = {self._element(load.place)}")

    def _store(self, store: lp.Store) -> None:
        value = self._typed(self._operand(store.value), self.dtypes[store.place.buffer])
        self.lines.add(f"{self._element(store.place)} = {value.text}")

    def _bounds(self, bounds: lp.Bounds) -> None:
        index, inside = f"r{bounds.register.number}", f"r{bounds.inside.number}"
        self.lines.add(f"{index} = i64({self._operand(bounds.position).text})")
        self.lines.add(f"{inside} = 0 <= {index} < n{bounds.extent.place}")
        message = "an index is out of range for the axis it picks from; it is 0 to its size less 1."
        self.fail_unless(inside, message, bounds.node)

    def _guarded(self, guarded: lp.Guarded) -> None:
        register = guarded.load.register
        zero = self.builder.constant(Type.of_dtype(register.dtype.dtype), 0).text
        element = self._element(guarded.load.place)
        self.lines.add(f"r{register.number} = {element} if r{guarded.inside.number} else {zero}")

    def _row(self, row: lp.Row) -> None:
        length = " * ".join(f"n{n.place}" for n in row.length)
        self.dtypes.append(row.dtype)
        self.lines.add(f"x{row.buffer} = np.empty({length}, {type_name(Type.of_dtype(row.dtype.dtype))})")

    # Folds

    def _fold_start(self, fold: lp.FoldStart) -> None:
        form, dtype = _fold(fold.node), fold.node.inputs[0].spec.dtype
        for register, start in zip(fold.accumulator, form.start(self.maths, dtype), strict=True):
            self._bind(register, start)

    def _fold_step(self, fold: lp.FoldStep) -> None:
        accumulator = tuple([self._accumulator(r) for r in fold.accumulator])
        value = self._operand(fold.value)
        taken = _fold(fold.node).step(self.maths, accumulator, value, self._place_in(fold.index))
        self._assign(fold.accumulator, taken)

    def _accumulator(self, register: Register) -> SourceValue:
        """What a fold carries around the present loop."""
        if self.kind is not LoopKind.LANES:
            return self._register(register)
        return _Accumulator(self.builder, Type.of_dtype(register.dtype.dtype), f"r{register.number}")

    def _place_in(self, index: Sequence[tuple[int, Number]]) -> Value:
        """The position along the reduced loops."""
        (loop, _), *rest = index
        text = f"i{loop}"
        for inner, extent in rest:
            text = f"({text}) * n{extent.place} + i{inner}"
        return self.builder.named(I64, f"i64({text})")

    def _assign(self, registers: Sequence[Register], values: Sequence[Any]) -> None:
        typed = [self._typed(v, r.dtype).text for v, r in zip(values, registers, strict=True)]
        left = ", ".join(f"r{r.number}" for r in registers)
        self.lines.add(f"{left} = {', '.join(typed)}")

    def _fold_merge(self, fold: lp.FoldMerge) -> None:
        mine, other = (tuple(map(self._register, r)) for r in (fold.accumulator, fold.other))
        self._assign(fold.accumulator, _fold(fold.node).merge(self.maths, mine, other))

    def _fold_across(self, fold: lp.FoldAcross) -> None:
        """Lanes are Numba's: an accumulator has one element."""

    def _fold_finish(self, fold: lp.FoldFinish) -> None:
        accumulator = tuple(map(self._register, fold.accumulator))
        self._bind(fold.register, _fold(fold.node).finish(self.maths, accumulator))

    def _single(self, single: lp.Single) -> None:
        form, dtype = _fold(single.node), single.node.inputs[0].spec.dtype
        element = self._operand(single.value)
        start = form.start(self.maths, dtype)
        begun = tuple([self._typed(x, _as_carried(x, dtype)) for x in start])
        self._bind(
            single.register,
            form.finish(self.maths, form.step(self.maths, begun, element, self.builder.constant(I64, 0))),
        )

    # Choices and loops over scalars

    def _choose(self, choose: lp.Choose) -> None:
        found = self._chosen(self._operand(choose.index), choose.branches)
        for register, value in zip(choose.registers, found, strict=True):
            self._bind(register, value)

    def _chosen(self, index: Value, branches: Sequence[lp.Branch]) -> list[Value]:
        first, *others = branches
        if not others:
            return self._branch(first)
        test = index.eq(0) if index.type.kind != "b" else ~index
        return self.builder.if_else(
            test,
            lambda: self._branch(first),
            lambda: self._chosen(index.cast(I64) - 1, others),
        )

    def _branch(self, branch: lp.Branch) -> list[Value]:
        self._statements(branch.body)
        return [self._operand(o) for o in branch.results]

    def _repeat(self, repeat: lp.Repeat) -> None:
        self._assign(repeat.registers, [self._operand(o) for o in repeat.starts])
        turns, lines = self.lines.name(), self.lines
        lines.add(f"{turns} = 0")
        with lines.block(
            "while True:" if repeat.limit is None else f"while {turns} < n{repeat.limit.place}:"
        ):
            (goes_on,) = self._branch(repeat.condition)
            with lines.block(f"if not {goes_on.text}:"):
                lines.add("break")
            signalled = self.support.primitive("signalled")
            with lines.block(f"if {turns} % {ASKED_TURNS} == {ASKED_TURNS - 1} and {signalled}():"):
                lines.add("status[0] = -1")
                lines.add("break")
            self._assign(repeat.registers, self._branch(repeat.body))
            lines.add(f"{turns} += 1")

    # Operands and memory

    def _register(self, register: Register) -> SourceValue:
        return self.builder.named(Type.of_dtype(register.dtype.dtype), f"r{register.number}")

    def _operand(self, operand: lp.Operand) -> SourceValue:
        if isinstance(operand, Register):
            return self._register(operand)
        if isinstance(operand, lp.Scalar):
            return self.builder.named(Type.of_dtype(operand.dtype.dtype), f"c{operand.place}")
        return self.builder.constant(Type.of_dtype(operand.value.dtype), operand.value.item())

    def _element(self, place: Place) -> str:
        terms = [f"n{place.offset.place}"] if place.offset is not None else []
        for loop, stride in place.terms:
            terms.append(_index(loop) if stride is None else f"{_index(loop)} * n{stride.place}")
        if place.picked is not None:
            position, stride = place.picked
            terms.append(f"r{position.number} * n{stride.place}")
        return f"x{place.buffer}[u({' + '.join(terms) or '0'})]"


def _index(loop: int) -> str:
    return "share" if loop == lp.SHARE else f"i{loop}"


def _block(loop: int, level: int) -> str:
    """What tells the variables of a block from those of others."""
    name = "_share" if loop == lp.SHARE else str(loop)
    return name if level == lp.SHARE else f"{name}_{level}"


def _fold(node: Node) -> Fold:
    form = node.op.form
    assert isinstance(form, Fold)
    return form


def _as_carried(start: Any, dtype: DType) -> DType:
    """The dtype of one of the values that a fold carries, given its start."""
    return as_dtype(start.dtype) if isinstance(start, np.generic | np.ndarray) else dtype


_WRITERS: dict[type, Callable[[_Writer, Any], None]] = {
    lp.For: _Writer._for,
    lp.Blocks: _Writer._blocks,
    lp.Shares: _Writer._shares,
    lp.Let: _Writer._let,
    lp.Choose: _Writer._choose,
    lp.Repeat: _Writer._repeat,
    lp.Load: _Writer._load,
    lp.Store: _Writer._store,
    lp.Bounds: _Writer._bounds,
    lp.Guarded: _Writer._guarded,
    lp.FoldStart: _Writer._fold_start,
    lp.FoldStep: _Writer._fold_step,
    lp.FoldMerge: _Writer._fold_merge,
    lp.FoldAcross: _Writer._fold_across,
    lp.FoldFinish: _Writer._fold_finish,
    lp.Single: _Writer._single,
    lp.Row: _Writer._row,
}
