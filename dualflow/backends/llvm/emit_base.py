"""What all parts of an emitted nest share: parameters, the loops' indices, values and memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from dualflow.backends.llvm.check_values import Kept
from dualflow.backends.llvm.element import ElementMaths
from dualflow.backends.llvm.failures import note_failure
from dualflow.backends.llvm.scalar_control import Registers
from dualflow.backends.llvm.text import I64, PTR, VOID, Builder, Module, Type, Value
from dualflow.schedule.blocking import block_sizes
from dualflow.schedule.nest import Access, Nest, Operand, Step, Store
from dualflow.schedule.workspace import Workspace

KERNEL_ARGS = [("context", PTR), ("lo", I64), ("hi", I64), ("slot", I64)]
MASKED_ONLY = 96
"""From so many steps on, rows have one masked loop instead of a full loop and a masked tail.

Half the code.
"""


@dataclass(slots=True)
class Code:
    """What the emitted functions need at run time.

    Integers for the parameter table, and checks that may fail.
    """

    params: list[int] = field(default_factory=list)
    messages: list[tuple[str | Kept, Any]] = field(default_factory=list)


class Frame:
    """A function being written for a nest.

    Attributes:
        env: the values known at this point, by graph value or access.
        index: the index of each loop that we are inside of.
        mask: the live lanes, None where all are.
        stage: which pass of the reduced loops is written.
        params: the run-time parameters, loaded at the function's start.
    """

    def __init__(
        self, module: Module, nest: Nest, name: str, lanes: int, space: Workspace, code: Code
    ) -> None:
        self.module, self.nest, self.name, self.code, self.space = module, nest, name, code, space
        self.lanes = lanes if nest.vector is not None else 1
        self.blocks = block_sizes(nest, space, self.lanes)
        self.masked_only = len(nest.steps) > MASKED_ONLY
        self.env: dict[Any, Value] = {}
        self.index: dict[int, Value] = {}
        self.mask: Value | None = None
        self.stage = 0
        self._slots: dict[object, int] = {}

    def begin(self, name: str) -> None:
        function = self.module.function(name, VOID, KERNEL_ARGS)
        self.b: Builder = function.builder
        self.args = function.args
        _, self.lo, self.hi, self.slot = function.args
        self.env, self.index, self.mask, self.stage = {}, {}, None, 0
        self.params: dict[object, Value] = {}
        self.pointers: dict[int, Value] = {}
        self.m = ElementMaths(self.module, self.b, self, inline=not self.masked_only)
        self.bufs = self.b.load(self.args[0], 0, PTR)
        self.table = self.b.load(self.args[0], 1, PTR)
        self.status = self.b.load(self.args[0], 2, PTR)
        self.registers = Registers(self.module, self.b, self.m, self.status, self._stopped)
        self._declare_params()

    def _stopped(self, loop: Any) -> int:
        """The number of the message for a signal that ends ``loop``."""
        self.code.messages.append(("a signal has come", loop))
        return len(self.code.messages)

    def _declare_params(self) -> None:
        nest = self.nest
        for i, loop in enumerate(nest.loops):
            self._param(("extent", i), loop.extent)
        for access in self._accesses():
            if access.buffer >= 0:
                self._param(("offset", access), access.offset)
                if access.buffer not in self.pointers:
                    self.pointers[access.buffer] = self.b.load(self.bufs, access.buffer, PTR)
            for i, stride in enumerate(access.strides):
                if stride and not (i == nest.vector and stride == 1):
                    self._param(("stride", access, i), stride)
        for step in nest.steps:
            if step.pick is not None:
                self._param(("pick", step, "extent"), step.pick.extent)
                self._param(("pick", step, "stride"), step.pick.stride)
        for i, sizes in self.blocks.items():
            for level, size in enumerate(sizes):
                self._param(("turns", i, level), size)
        for key, number in self.space.params():
            self._param(key, number)
        if not self.masked_only:
            self._declare_literals()

    def _declare_literals(self) -> None:
        """Numbers are parameters too: many come from sizes, as a mean's divisor does."""
        for operand in (o for s in self.nest.steps for o in s.operands if o.literal is not None):
            literal: Any = operand.literal
            if literal.dtype.kind != "b":
                type = Type.of_dtype(literal.dtype)
                bits = int.from_bytes(literal.tobytes().ljust(8, b"\0"), "little", signed=True)
                self._param(("literal", operand), bits, type)

    def _param(self, key: object, number: int, type: Type = I64) -> None:
        if key in self.params:
            return
        if key not in self._slots:
            self._slots[key] = len(self.code.params)
            self.code.params.append(number)
        self.params[key] = self.b.load(self.table, self._slots[key] * (8 // type.nbytes), type)

    def _accesses(self) -> list[Access]:
        found = [o.access for s in self.nest.steps for o in s.operands if o.access is not None]
        return list(dict.fromkeys([*found, *(s.access for s in self.nest.stores)]))

    def zero(self) -> Value:
        return self.b.constant(I64, 0)

    def register(self, value: Any) -> Type:
        return Type.of_dtype(value.spec.dtype.dtype)

    def bind(self, step: Step, result: Any) -> None:
        type = self.register(step.node.output)
        if not isinstance(result, Value):
            result = self.b.constant(type, result)
        self.env[step.node.output] = result.cast(type.vector(result.type.lanes))

    def operand(self, operand: Operand) -> Value:
        if operand.made is not None:
            return self.env[operand.made]
        if operand.access is not None:
            if operand.access not in self.env:
                self.env[operand.access] = self._load(operand.access)
            return self.env[operand.access]
        found = self.params.get(("literal", operand))
        literal: Any = operand.literal
        return self.b.constant(Type.of_dtype(literal.dtype), literal.item()) if found is None else found

    def position(self, loop: int) -> Value:
        """The index of a loop, for each lane where it is the vector loop."""
        index = self.index[loop]
        if loop != self.nest.vector or self.lanes == 1:
            return index
        return index.splat(self.lanes) + self.b.iota(I64.vector(self.lanes))

    def _pointer(self, access: Access) -> Value:
        return self.pointers[access.buffer]

    def _place(self, access: Access) -> Value:
        """The element's index in its buffer, without the vector loop's lanes."""
        place = self.params["offset", access]
        for i, stride in enumerate(access.strides):
            if stride:
                step = self.params.get(("stride", access, i))
                place = place + (self.index[i] if step is None else self.index[i] * step)
        return place

    def _lane_steps(self, access: Access) -> Value | None:
        """How far apart lanes are where that is not 1 (a vector of offsets); None for neighbours."""
        vector = self.nest.vector
        if vector is None or access.strides[vector] == 1:
            return None
        return self.b.iota(I64.vector(self.lanes)) * self.params["stride", access, vector]

    def _follows(self, access: Access) -> bool:
        vector = self.nest.vector
        return vector is not None and self.lanes > 1 and access.strides[vector] != 0

    def _load(self, access: Access) -> Value:
        type, pointer, place = Type.of_dtype(access.dtype.dtype), self._pointer(access), self._place(access)
        if not self._follows(access):
            return self.b.load(pointer, place, type)
        steps = self._lane_steps(access)
        if steps is None:
            return self.b.load(pointer, place, type.vector(self.lanes), self.mask)
        return self.b.gather(pointer, steps + place, type.vector(self.lanes), self.mask)

    def write(self, stores: Sequence[Store]) -> None:
        for store in stores:
            self._store(self.env[store.value], store.access)

    def _store(self, value: Value, access: Access) -> None:
        pointer, place = self._pointer(access), self._place(access)
        if not self._follows(access):
            self.b.store(value, pointer, place)
            return
        steps = self._lane_steps(access)
        value = value.splat(self.lanes)
        if steps is None:
            self.b.store(value, pointer, place, self.mask)
        else:
            self.b.scatter(value, pointer, steps + place, self.mask)

    def memory(self) -> Value:
        return self.b.load(self.bufs, self.space.buffer, PTR)

    def cache(self, value: Any) -> tuple[Value, Value]:
        """Where a kept value of this turn lies: the row of this thread's slot."""
        number = self.nest.cached[value]
        start = self.params["cache", number] + self.slot * self.params["cache stride"]
        place: Value = self.zero()
        for i in range(self.nest.kept, len(self.nest.loops)):
            place = place * self.params["extent", i] + self.index[i]
        return self.b.offset(self.memory(), start, Type("u", 8)), place

    def take(self, step: Step) -> Value:
        """An element of the first operand, looked up along its picked axis.

        Outside it the check stops the graph.
        """
        params, indices = step.operands
        assert params.access is not None
        picked = self.operand(indices)
        picked = picked.cast(I64.vector(picked.type.lanes))
        extent, stride = self.params["pick", step, "extent"], self.params["pick", step, "stride"]
        inside = (picked >= 0) & (picked < extent)
        self.m.step = step
        self.m.check(
            inside, "an index is out of range for the axis it picks from; it is 0 to its size less 1."
        )
        place = self._place(params.access) + picked * stride
        type = Type.of_dtype(params.access.dtype.dtype)
        pointer = self._pointer(params.access)
        if place.type.lanes == 1 and not self._follows(params.access):
            with_inside = [
                *self.b.if_else(
                    inside,
                    lambda: [self.b.load(pointer, place, type.memory)],
                    lambda: [self.b.constant(type.memory, 0)],
                )
            ]
            return with_inside[0].cast(type)
        lanes = self.lanes
        inside = inside.splat(lanes) if self.mask is None else inside.splat(lanes) & self.mask
        steps = self._lane_steps(params.access) if self._follows(params.access) else None
        if steps is None and self._follows(params.access):
            if place.type.lanes == 1:
                return self.b.load(pointer, place, type.vector(lanes), inside)
            steps = self.b.iota(I64.vector(lanes))
        where = place.splat(lanes) if steps is None else place.splat(lanes) + steps
        return self.b.gather(pointer, where, type.vector(lanes), inside)

    def fail_unless(self, ok: Value, message: str, step: Step) -> None:
        """Note in the status word that a check failed, unless it holds in every live lane."""
        if ok.text == "true":
            return
        self.code.messages.append((message, step.node))
        number = len(self.code.messages)
        failed = ~ok
        if self.mask is not None and ok.type.lanes == self.lanes:
            failed = failed & self.mask
        with self.b.if_then(failed.any()):
            note_failure(self.b, self.status, self.b.constant(I64, number))
