"""One kernel as rows of pseudo-code, in the order in which the emitter writes it."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from textwrap import wrap
from typing import Any, NamedTuple

import numpy as np

from dualflow.backends.llvm.entry import EmittedKernel
from dualflow.backends.llvm.executable import Executable
from dualflow.core.spec import TensorSpec
from dualflow.graph.ir import Node, Value
from dualflow.ops import maths_reference
from dualflow.ops.forms import Fold, Take
from dualflow.schedule.blocking import JOIN, block_sizes, rounds
from dualflow.schedule.lower import stage_steps
from dualflow.schedule.naming import Memory, subscript
from dualflow.schedule.nest import Access, NestOperand, NestStep, NestStore
from dualflow.schedule.workspace import workspace

WIDTH = 100
"""Columns that a line keeps to where it can."""

_NOTES = 56
Inside = Callable[[int, str, str], Iterator["Row"]]
_LOOPS = "ijkpqst"


class Row(NamedTuple):
    """One line: how deep it stands, its code, and a note to the right of it."""

    depth: int
    code: str
    note: str = ""

    def __str__(self) -> str:
        code = "    " * self.depth + self.code
        return f"{code:<{_NOTES}}  # {self.note}" if self.note else code


class KernelText:
    """One kernel, in the order in which the emitter writes it."""

    def __init__(self, kernel: EmittedKernel, memory: Memory, executable: Executable) -> None:
        self.nest, self.name, self.memory = kernel.nest, kernel.name, memory
        self.lanes = kernel.lanes if kernel.nest.vector is not None else 1
        self.space = workspace(kernel.nest, kernel.lanes)
        blocks = block_sizes(self.nest, self.space, self.lanes)
        extents = {i: loop.extent for i, loop in enumerate(self.nest.loops)} | {JOIN: self.space.blocks}
        self.several = {i: [s for s in sizes if s < extents[i]] for i, sizes in blocks.items()}
        self.inputs = executable.plan.inputs
        self.checks: dict[Node, list[str]] = {}
        for message, node in executable.program.messages:
            if isinstance(message, str):
                self.checks.setdefault(node, []).append(message)
        self.registers: dict[Value, str] = {}
        self.said = ""

    def rows(self) -> Iterator[Row]:
        ops = Counter(step.node.op.name for step in self.nest.steps)
        title = ", ".join(name if n == 1 else f"{name} (x{n})" for name, n in ops.items())
        for line in wrap(f"{self.name}: {title}", WIDTH - 6):
            yield Row(1, f"# {line}")
        yield from self._steps_at(0, 1)
        yield from self._blocks() if self.nest.whole else self._kept(0)

    # Loops

    def _kept(self, at: int) -> Iterator[Row]:
        depth = at + 1
        if at == self.nest.kept:
            yield from self._inside(depth)
            return
        yield Row(depth, f"for {_loop(at)} in {self._range(at)}:")
        yield from self._steps_at(at + 1, depth + 1)
        yield from self._kept(at + 1)

    def _range(self, at: int, begin: str = "0", end: str = "") -> str:
        end = end or str(self.nest.loops[at].extent)
        count = end if begin == "0" else f"{begin}, {end}"
        return f"lanes({count}, {self.lanes})" if at == self.nest.vector else f"range({count})"

    def _inside(self, depth: int) -> Iterator[Row]:
        nest = self.nest
        yield from self._stores([s for s in nest.stores if s.level <= nest.kept and s.stage == 0], depth)
        for stage in range(nest.stages if len(nest.loops) > nest.kept else 0):
            yield from self._starts(stage, depth)
            yield from self._reduced(nest.kept, stage, depth)
            yield from self._finish(stage, depth)

    def _reduced(self, at: int, stage: int, depth: int, begin: str = "0", end: str = "") -> Iterator[Row]:
        """Loop ``at`` from ``begin`` to ``end``."""

        def turns(depth: int, begin: str, end: str) -> Iterator[Row]:
            return self._turns(at, stage, depth, begin, end)

        return self._by_blocks(
            at, _loop(at), stage, depth, (begin, end or f"{self.nest.loops[at].extent}"), turns
        )

    def _by_blocks(
        self,
        at: int,
        name: str,
        stage: int,
        depth: int,
        limits: tuple[str, str],
        inside: Inside,
        level: int = 0,
    ) -> Iterator[Row]:
        """``inside`` for each block of a long loop, with folds begun anew and then merged."""
        sizes, folds = self.several.get(at, ()), self._folds(stage)
        if level == len(sizes) or not any(map(rounds, folds)):
            yield from inside(depth, *limits)
            return
        block, size, (begin, end) = f"{name}{level}", sizes[level], limits
        yield Row(
            depth, f"for {block} in range({begin}, {end}, {size}):", "blocks, so that errors don't add up"
        )
        registers = [self._register(step.node.output) for step in folds]
        for register in registers:
            yield Row(depth + 1, f"{register}_{block} = {register}")
        yield from self._starts(stage, depth + 1)
        last = f"min({block} + {size}, {end})"
        yield from self._by_blocks(at, name, stage, depth + 1, (block, last), inside, level + 1)
        for step, register in zip(folds, registers, strict=True):
            merged = f"{step.node.op.name}.merge({register}_{block}, {register})"
            yield Row(depth + 1, f"{register} = {merged}")

    def _turns(self, at: int, stage: int, depth: int, begin: str, end: str) -> Iterator[Row]:
        nest = self.nest
        note = f"pass {stage + 1} of {nest.stages}" if nest.stages > 1 and at == nest.kept else ""
        yield Row(depth, f"for {_loop(at)} in {self._range(at, begin, end)}:", note)
        steps = stage_steps(nest, stage)
        innermost = at + 1 == len(nest.loops)
        for step in steps:
            if step.level == at + 1 and (innermost or not step.folds):
                yield from self._step(step, stage, depth + 1)
        if not innermost:
            yield from self._reduced(at + 1, stage, depth + 1)
            return
        stores = [s for s in nest.stores if s.level > nest.kept and s.stage == stage]
        yield from self._stores(stores, depth + 1)

    def _starts(self, stage: int, depth: int) -> Iterator[Row]:
        for step in self._folds(stage):
            yield Row(depth, f"{self._register(step.node.output)} = {_tuple(_start(step))}")

    def _finish(self, stage: int, depth: int) -> Iterator[Row]:
        """The results of the folds of ``stage``, and what waited for them."""
        kept = self.nest.kept
        for step in self._folds(stage):
            if len(_start(step)) > 1:
                register = self._register(step.node.output)
                yield Row(depth, f"{register} = {step.node.op.name}.result({register})")
        for step in self.nest.steps:
            if step.level <= kept and step.stage == stage + 1:
                yield from self._step(step, stage + 1, depth)
        stores = [s for s in self.nest.stores if s.level <= kept and s.stage == stage + 1]
        yield from self._stores(stores, depth)

    def _blocks(self) -> Iterator[Row]:
        """One whole reduction: blocks of the first loop give partial results, which are joined in order."""
        block, blocks, folds = self.space.block, self.space.blocks, self._folds(0)
        end = f"min({block}*b + {block}, {self.nest.loops[0].extent})"
        yield Row(1, f"for b in range({blocks}):", "blocks, so that the result doesn't depend on threads")
        yield from self._starts(0, 2)
        yield from self._reduced(0, 0, 2, f"{block}*b", end)
        for i, step in enumerate(folds):
            yield Row(2, f"partial{i}[b] = {self._register(step.node.output)}")
        yield from self._starts(0, 1)
        yield from self._by_blocks(JOIN, "b", 0, 1, ("0", str(blocks)), self._joined)
        yield from self._stores(
            [s for s in self.nest.stores if s.level <= self.nest.kept and s.stage == 0], 1
        )
        yield from self._finish(0, 1)

    def _joined(self, depth: int, begin: str, end: str) -> Iterator[Row]:
        yield Row(depth, f"for b in range({end if begin == '0' else f'{begin}, {end}'}):")
        for i, step in enumerate(self._folds(0)):
            register = self._register(step.node.output)
            yield Row(depth + 1, f"{register} = {step.node.op.name}.merge({register}, partial{i}[b])")

    def _folds(self, stage: int) -> list[NestStep]:
        return [s for s in self.nest.steps if s.folds and s.stage == stage]

    # Steps

    def _steps_at(self, level: int, depth: int) -> Iterator[Row]:
        for step in self.nest.steps:
            if step.level == level and step.stage == 0 and level <= self.nest.kept:
                yield from self._step(step, 0, depth)

    def _step(self, step: NestStep, stage: int, depth: int) -> Iterator[Row]:
        node = step.node
        register = ", ".join(map(self._register, node.outputs))
        kept = self.nest.cached.get(node.output)
        row = "" if kept is None else f"kept{kept}[{self._row_place()}]"
        if kept is not None and step.stage < stage:
            yield Row(depth, f"{register} = {row}")
            return
        for message in dict.fromkeys(self.checks.get(node, ())):
            yield Row(depth, f"# stops the call if {message}")
        yield Row(depth, f"{register} = {self._expression(step)}", self._note(node))
        if kept is not None and step.level > self.nest.kept:
            yield Row(depth, f"{row} = {register}")

    def _expression(self, step: NestStep) -> str:
        node = step.node
        if isinstance(node.op.form, Take):
            params, indices = step.operands
            assert params.access is not None
            assert step.pick is not None
            return self._element(params.access, [(step.pick.stride, self._operand(indices))])
        operands = [self._operand(o) for o in step.operands]
        if isinstance(node.op.form, Fold):
            return self._fold(step, operands[0])
        if not operands:
            operands = ["0" if a is None else _loop(a) for a in step.own]
        return call_text(node, operands)

    def _fold(self, step: NestStep, element: str) -> str:
        """One more element, with its place where the fold carries more than a number."""
        name, start, register = step.node.op.name, _start(step), self._register(step.node.output)
        taken = f"{name}({register if step.folds else _tuple(start)}, {element}"
        if len(start) == 1:
            return taken + ")"
        return f"{taken}, {self._row_place()})" if step.folds else f"{name}.result({taken}, 0))"

    def _note(self, node: Node) -> str:
        """The user's lines where they differ from those said last."""
        where = lines_of(node)
        news = where if where != self.said else ""
        self.said = where or self.said
        return news

    def _operand(self, operand: NestOperand) -> str:
        if operand.made is not None:
            return self._register(operand.made)
        return shown(operand.literal) if operand.access is None else self._element(operand.access)

    def _register(self, value: Value) -> str:
        return self.registers.setdefault(value, f"r{len(self.registers)}")

    # Memory

    def _stores(self, stores: Sequence[NestStore], depth: int) -> Iterator[Row]:
        for store in stores:
            note = "in place" if store.access.buffer < self.inputs else ""
            yield Row(depth, f"{self._element(store.access)} = {self._register(store.value)}", note)

    def _element(self, access: Access, picked: Sequence[tuple[int, str]] = ()) -> str:
        name, offset = self.memory.find(access, access.dtype.size)
        terms = [(stride, _loop(i)) for i, stride in enumerate(access.strides)]
        return f"{name}[{subscript([*picked, *terms], offset)}]"

    def _row_place(self) -> str:
        place = ""
        for i in range(self.nest.kept, len(self.nest.loops)):
            outer = f"({place})" if " " in place else place
            place = f"{outer}*{self.nest.loops[i].extent} + {_loop(i)}" if place else _loop(i)
        return place


def _loop(at: int) -> str:
    return _LOOPS[at] if at < len(_LOOPS) else f"i{at}"


def _start(step: NestStep) -> list[str]:
    """The numbers that a fold carries, as it begins."""
    form = step.node.op.form
    assert isinstance(form, Fold)
    return [shown(x) for x in form.start(maths_reference, step.node.inputs[0].spec.dtype)]


def _tuple(items: Sequence[str]) -> str:
    return items[0] if len(items) == 1 else f"({', '.join(items)})"


def call_text(node: Node, operands: Sequence[str]) -> str:
    """The op with its operands and attributes; what it makes stands where it is stored."""
    attrs = [f"{k}={shown(v)}" for k, v in node.attrs.items() if not isinstance(v, TensorSpec)]
    return f"{node.op.name}({', '.join([*operands, *attrs])})"


def shown(value: Any) -> str:
    """A literal or attribute in a few characters."""
    if isinstance(value, np.ndarray | np.generic):
        return str(value.reshape(-1)[0]) if value.size == 1 else f"array{list(value.shape)}"
    name = getattr(value, "name", None)
    text = name if isinstance(name, str) else str(value)
    return type(value).__name__ if " at 0x" in text else text


def lines_of(node: Node) -> str:
    """The user's lines behind a node."""
    origins = [o for o in (node.origin, *node.also) if o is not None]
    return ", ".join(dict.fromkeys(f"{os.path.basename(o.file)}:{o.line}" for o in origins))
