"""Choices and loops over scalars, written as branches and loops over registers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from dualflow.backends.llvm.element import ElementMaths
from dualflow.backends.llvm.runtime.interrupts import ask, clock
from dualflow.backends.llvm.text import BOOL, I64, Builder, Module, Type, Value
from dualflow.graph.ir import Graph, Node
from dualflow.ops.forms import Choice, Element, Literal, Loop, View
from dualflow.schedule.nest import Step

TURNS = 1 << 16
"""After so many turns a loop looks whether a signal has come; a power of two."""


class Registers:
    """Writes the graphs inside choices and loops into the function that ``builder`` fills."""

    def __init__(
        self,
        module: Module,
        builder: Builder,
        maths: ElementMaths,
        status: Value,
        stopped: Callable[[Node], int],
    ) -> None:
        """``stopped(loop)`` is a number for the status where a signal ends ``loop``."""
        self._module, self._b, self._m, self._status = module, builder, maths, status
        self._stopped = stopped
        self._outermost: Node | None = None

    def values(self, node: Node, operands: Sequence[Value]) -> list[Value]:
        """The results of a node on scalars."""
        form = node.op.form
        if isinstance(form, Choice):
            index, *rest = operands
            return self._choose(index, node.attrs["branches"], rest)
        if isinstance(form, Loop):
            return self._loop(node, operands)
        if isinstance(form, Literal):
            literal = node.attrs["value"].reshape(-1)[0]
            return [self._b.constant(_register(node.output), literal.item())]
        if isinstance(form, View):
            return [operands[0]]
        assert isinstance(form, Element), f"{node} is no scalar code"
        self._m.step = Step(node, (), (), folds=False, level=0, stage=0)
        result = form.code(self._m, *operands, **node.attrs)
        if not isinstance(result, Value):
            result = self._b.constant(_register(node.output), result)
        return [result.cast(_register(node.output))]

    def _run(self, graph: Graph, operands: Sequence[Value]) -> list[Value]:
        known = dict(zip(graph.inputs, operands, strict=True))
        for node in graph.nodes:
            found = self.values(node, [known[v] for v in node.inputs])
            known.update(zip(node.outputs, found, strict=True))
        return [known[v] for v in graph.outputs]

    def _choose(self, index: Value, branches: Sequence[Graph], operands: Sequence[Value]) -> list[Value]:
        first, *others = branches
        if not others:
            return self._run(first, operands)
        return self._b.if_else(
            index.eq(0),
            lambda: self._run(first, operands),
            lambda: self._choose(index - 1, others, operands),
        )

    def _loop(self, node: Node, operands: Sequence[Value]) -> list[Value]:
        limit: int | None = node.attrs["length"]
        count = len(node.outputs)
        rest = list(operands[count:])
        b, last = self._b, clock(self._b)
        outer, self._outermost = self._outermost, self._outermost or node
        stopped = self._stopped(self._outermost)
        fine = b.constant(BOOL, True)
        with b.while_loop([*operands[:count], b.constant(I64, 0), fine]) as loop:
            *carried, turns, alive = loop.carried
            (goes_on,) = self._run(node.attrs["condition"], [*carried, *rest])
            loop.test(goes_on & alive if limit is None else goes_on & alive & (turns < limit))
            after = self._run(node.attrs["body"], [*carried, *rest])

            def ask_python() -> list[Value]:
                ask(self._module, b, last, self._status, stopped)
                return [b.load(self._status, 0, I64).eq(0)]

            (alive,) = b.if_else((turns & (TURNS - 1)).eq(TURNS - 1), ask_python, lambda: [fine])
            loop.next(*after, turns + 1, alive)
        self._outermost = outer
        return list(loop.results[:count])


def _register(value: Any) -> Type:
    return Type.of_dtype(value.spec.dtype.dtype)
