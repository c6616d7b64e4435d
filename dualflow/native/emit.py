"""A loop nest becomes LLVM IR: one function that runs a range of its outermost loop.

    void kernel(ptr context, i64 lo, i64 hi, i64 slot)

``context`` holds three pointers: the buffer table, the parameters, the status word. Whatever depends on sizes
is read from the parameters, so the text depends on the nest's structure alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dualflow.native.element import ElementMaths
from dualflow.native.llvm import I64, PTR, VOID, Builder, Module, Type, Value
from dualflow.native.lower import stage_steps
from dualflow.native.nest import Access, Nest, Operand, Step, Store
from dualflow.native.registers import Registers
from dualflow.native.workspace import Workspace
from dualflow.ops.forms import Choice, Fold, Loop, Take

Carried = list[Value]
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
    messages: list[tuple[str, Any]] = field(default_factory=list)


class Emitter:
    """Emits one nest; ``code`` collects the run-time parameters of the whole graph."""

    def __init__(
        self, module: Module, nest: Nest, name: str, lanes: int, space: Workspace, code: Code
    ) -> None:
        self.module, self.nest, self.name, self.code, self.space = module, nest, name, code, space
        self.lanes = lanes if nest.vector is not None else 1
        self.masked_only = len(nest.steps) > MASKED_ONLY
        self.env: dict[Any, Value] = {}
        self.index: dict[int, Value] = {}
        self.mask: Value | None = None
        self.stage = 0
        self.slots: dict[object, int] = {}

    # Functions

    def emit(self) -> None:
        """Write the kernel, and for a nest that is one whole reduction the function that joins its blocks."""
        self._begin(self.name)
        _, self.lo, self.hi, self.slot = self.args
        self._steps_at(0, stage=0)
        if self.nest.whole:
            self._blocks()
        else:
            self._kept(0)
        self.b.ret()
        if self.nest.whole:
            self._begin(f"{self.name}.join")
            self._steps_at(0, stage=0)
            self._join()
            self.b.ret()

    def _begin(self, name: str) -> None:
        function = self.module.function(name, VOID, KERNEL_ARGS)
        self.b: Builder = function.builder
        self.args = function.args
        self.env, self.index, self.mask, self.stage = {}, {}, None, 0
        self.params: dict[object, Value] = {}
        self.m = ElementMaths(self.module, self.b, self, inline=not self.masked_only)
        self.registers = Registers(self.b, self.m)
        self.bufs = self.b.load(self.args[0], 0, PTR)
        self.table = self.b.load(self.args[0], 1, PTR)
        self.status = self.b.load(self.args[0], 2, PTR)
        self._declare_params()

    # Parameters: every function loads what it may need at its start.

    def _declare_params(self) -> None:
        nest = self.nest
        for i, loop in enumerate(nest.loops):
            self._param(("extent", i), loop.extent)
        for access in self._accesses():
            if access.buffer >= 0:
                self._param(("offset", access), access.offset)
            for i, stride in enumerate(access.strides):
                if stride and not (i == nest.vector and stride == 1):
                    self._param(("stride", access, i), stride)
        for step in nest.steps:
            if step.pick is not None:
                self._param(("pick", step, "extent"), step.pick.extent)
                self._param(("pick", step, "stride"), step.pick.stride)
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
        if key not in self.slots:
            self.slots[key] = len(self.code.params)
            self.code.params.append(number)
        self.params[key] = self.b.load(self.table, self.slots[key] * (8 // type.nbytes), type)

    def _accesses(self) -> list[Access]:
        found = [o.access for s in self.nest.steps for o in s.operands if o.access is not None]
        return list(dict.fromkeys([*found, *(s.access for s in self.nest.stores)]))

    # Loops

    def _kept(self, at: int) -> None:
        """The kept loops from ``at`` inwards."""
        if at == self.nest.kept:
            self._inside()
            return

        def body(carried: Carried) -> Carried:
            self._steps_at(at + 1, stage=0)
            self._kept(at + 1)
            return carried

        start, stop = (self.lo, self.hi) if at == 0 else (self._zero(), self.params["extent", at])
        self._loop(at, start, stop, [], body)

    def _zero(self) -> Value:
        return self.b.constant(I64, 0)

    def _loop(
        self, at: int, start: Value, stop: Value, carried: Carried, body: Callable[[Carried], Carried]
    ) -> Carried:
        """Run ``body`` for each index of loop ``at``.

        By lanes, the last ones masked, where it is the vector loop.
        """
        if at != self.nest.vector:
            return self._turns(at, start, stop, 1, carried, body, masked=False)
        if self.masked_only:
            return self._turns(at, start, stop, self.lanes, carried, body, masked=True)
        full = start + ((stop - start) & -self.lanes)
        carried = self._turns(at, start, full, self.lanes, carried, body, masked=False)
        return self._turns(at, full, stop, self.lanes, carried, body, masked=True)

    def _turns(
        self,
        at: int,
        start: Value,
        stop: Value,
        step: int,
        carried: Carried,
        body: Callable[[Carried], Carried],
        masked: bool,
    ) -> Carried:
        env, mask = dict(self.env), self.mask
        with self.b.loop(start, stop, step, carried) as loop:
            self.index[at] = loop.index
            if masked:
                self.mask = self.b.first_lanes(stop - loop.index, self.lanes)
            loop.next(*body(list(loop.carried)))
        self.env, self.mask = env, mask
        return list(loop.results)

    # Inside the kept loops

    def _inside(self) -> None:
        """All stages of the reduced loops for one turn of the kept ones, and the stores of both."""
        nest = self.nest
        self._stores(self._kept_stores(0))
        if len(nest.loops) == nest.kept:
            return
        extents = [self.params["extent", i] for i in range(nest.kept, len(nest.loops))]
        for stage in range(nest.stages):
            self._finish(stage, self._reduce(stage, self._zero(), extents[0]))

    def _kept_stores(self, stage: int) -> list[Store]:
        return [s for s in self.nest.stores if s.level <= self.nest.kept and s.stage == stage]

    def _folds(self, stage: int) -> list[Step]:
        return [s for s in self.nest.steps if s.folds and s.stage == stage]

    def _reduce(self, stage: int, start: Value, stop: Value) -> list[Carried]:
        """Run the reduced loops once, the first from ``start`` to ``stop``.

        The accumulators of the stage's folds.
        """
        self.stage = stage
        self.turn = stage_steps(self.nest, stage)
        folds = self._folds(stage)
        begun = [self._start(s, self.lanes) for s in folds]
        ends = self._reduced(self.nest.kept, start, stop, [v for acc in begun for v in acc])
        sizes = [len(acc) for acc in begun]
        accs = [ends[sum(sizes[:i]) : sum(sizes[: i + 1])] for i in range(len(sizes))]
        if self.nest.vector is not None and self.nest.vector >= self.nest.kept:
            accs = [self._across_lanes(s, acc) for s, acc in zip(folds, accs, strict=True)]
        return accs

    def _reduced(self, at: int, start: Value, stop: Value, carried: Carried) -> Carried:
        depth = len(self.nest.loops)

        def body(accs: Carried) -> Carried:
            if at + 1 < depth:
                for step in self.turn:
                    if step.level == at + 1:
                        self._compute(step)
                return self._reduced(at + 1, self._zero(), self.params["extent", at + 1], accs)
            return self._turn(accs)

        return self._loop(at, start, stop, carried, body)

    def _turn(self, accs: Carried) -> Carried:
        """The innermost body: values, stores, and one more element for every fold."""
        depth, position, after = len(self.nest.loops), 0, list(accs)
        for step in self.turn:
            if step.folds:
                size = len(self._start(step, self.lanes))
                after[position : position + size] = self._fold(step, accs[position : position + size])
                position += size
            elif step.level == depth:
                self._compute(step)
        self._stores([s for s in self.nest.stores if s.level > self.nest.kept and s.stage == self.stage])
        return after

    def _fold(self, step: Step, acc: Carried) -> Carried:
        form = step.node.op.form
        assert isinstance(form, Fold)
        value = self._operand(step.operands[0]).splat(self.lanes)
        taken = form.step(self.m, tuple(acc), value, self._reduced_index())
        cast = [new.cast(old.type) for new, old in zip(taken, acc, strict=True)]
        if self.mask is None or (self.nest.vector is not None and self.nest.vector < self.nest.kept):
            return cast
        return [self.mask.select(new, old) for new, old in zip(cast, acc, strict=True)]

    def _reduced_index(self) -> Value:
        """The element's place along the reduced loops, for each lane."""
        place: Value | None = None
        for i in range(self.nest.kept, len(self.nest.loops)):
            here = self.position(i)
            place = here if place is None else place * self.params["extent", i] + here
        return place.splat(self.lanes) if place is not None else self._zero()

    def _start(self, step: Step, lanes: int) -> Carried:
        form = step.node.op.form
        assert isinstance(form, Fold)
        dtype = step.node.inputs[0].spec.dtype
        return [self._typed(c, dtype.dtype).splat(lanes) for c in form.start(self.m, dtype)]

    def _typed(self, start: Any, dtype: np.dtype[Any]) -> Value:
        if isinstance(start, Value):
            return start
        own = start.dtype if isinstance(start, np.generic) else dtype
        return self.b.constant(Type.of_dtype(own), start.item() if isinstance(start, np.generic) else start)

    def _across_lanes(self, step: Step, acc: Carried) -> Carried:
        """The lanes of an accumulator joined, halves first."""
        form = step.node.op.form
        assert isinstance(form, Fold)
        lanes = self.lanes
        while lanes > 1:
            lanes //= 2
            halves = [tuple(self._lanes_from(v, at, lanes) for v in acc) for at in (0, lanes)]
            acc = [v.cast(half.type) for v, half in zip(form.merge(self.m, *halves), halves[0], strict=True)]
        return acc

    def _lanes_from(self, value: Value, start: int, count: int) -> Value:
        return value.lane(start) if count == 1 else value.shuffle(range(start, start + count))

    def _finish(self, stage: int, accs: Sequence[Carried]) -> None:
        """Bind the results of the stage's folds, then compute and store what waited for them."""
        for step, acc in zip(self._folds(stage), accs, strict=True):
            self._bind(step, step.node.op.form.finish(self.m, tuple(acc)))  # type: ignore[union-attr]  # a fold
        for step in self.nest.steps:
            if step.level <= self.nest.kept and step.stage == stage + 1:
                self._compute(step)
        self._stores(self._kept_stores(stage + 1))

    # One whole reduction, by blocks

    def _blocks(self) -> None:
        """Reduce blocks ``lo`` to ``hi`` of the first loop, each to its own partial results."""
        with self.b.loop(self.lo, self.hi) as loop:
            env = dict(self.env)
            start = loop.index * self.params["block"]
            end = start + self.params["block"]
            stop = (end < self.params["extent", 0]).select(end, self.params["extent", 0])
            for number, acc in enumerate(v for a in self._reduce(0, start, stop) for v in a):
                self.b.store(acc, self._partial(number), self._partial_index(loop.index, acc.type))
            self.env = env

    def _join(self) -> None:
        """Join the partial results in order, finish the folds, and store what belongs to no block."""
        self._stores(self._kept_stores(0))
        folds = self._folds(0)
        vector_lanes, self.lanes = self.lanes, 1
        begun = [self._start(s, self.lanes) for s in folds]
        with self.b.loop(0, self.params["blocks"], carried=[v for acc in begun for v in acc]) as loop:
            joined: Carried = []
            for step, acc in zip(folds, begun, strict=True):
                mine = loop.carried[len(joined) : len(joined) + len(acc)]
                part = [
                    self.b.load(
                        self._partial(len(joined) + i), self._partial_index(loop.index, v.type), v.type
                    )
                    for i, v in enumerate(acc)
                ]
                merged = step.node.op.form.merge(self.m, tuple(mine), tuple(part))  # type: ignore[union-attr]
                joined += [v.cast(old.type) for v, old in zip(merged, acc, strict=True)]
            loop.next(*joined)
        ends = list(loop.results)
        accs = []
        for acc in begun:
            accs.append(ends[: len(acc)])
            ends = ends[len(acc) :]
        self._finish(0, accs)
        self.lanes = vector_lanes

    def _partial(self, number: int) -> Value:
        return self.b.offset(self._workspace(), self.params["partial", number], Type("u", 8))

    def _partial_index(self, block: Value, type: Type) -> Value:
        return block * (8 // type.nbytes)

    def _workspace(self) -> Value:
        return self.b.load(self.bufs, self.space.buffer, PTR)

    # Values

    def _steps_at(self, level: int, stage: int) -> None:
        for step in self.nest.steps:
            if step.level == level and step.stage == stage and level <= self.nest.kept:
                self._compute(step)

    def _compute(self, step: Step) -> None:
        """Emit the value of a step, or read it back where an earlier stage has kept it."""
        value = step.node.output
        if value in self.nest.cached and step.stage < self.stage:
            self.env[value] = self.b.load(*self._cache(value), self._register(value).vector(self.lanes))
            return
        form = step.node.op.form
        if isinstance(form, Fold):
            element = self._operand(step.operands[0])
            begun = self._start(step, element.type.lanes)
            self._bind(step, form.finish(self.m, form.step(self.m, tuple(begun), element, self._zero())))
            return
        if isinstance(form, Take):
            self._bind(step, self._take(step))
            return
        self.m.step = step
        operands = [self._operand(o) for o in step.operands]
        if isinstance(form, Choice | Loop):
            self.env.update(zip(step.node.outputs, self.registers.values(step.node, operands), strict=True))
            return
        self._bind(step, form.code(self.m, *operands, **step.node.attrs))  # type: ignore[union-attr]  # element
        if value in self.nest.cached and step.level > self.nest.kept:
            self.b.store(self.env[value].splat(self.lanes), *self._cache(value))

    def _register(self, value: Any) -> Type:
        return Type.of_dtype(value.spec.dtype.dtype)

    def _bind(self, step: Step, result: Any) -> None:
        type = self._register(step.node.output)
        if not isinstance(result, Value):
            result = self.b.constant(type, result)
        self.env[step.node.output] = result.cast(type.vector(result.type.lanes))

    def _operand(self, operand: Operand) -> Value:
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

    # Memory

    def _pointer(self, access: Access) -> Value:
        return self.b.load(self.bufs, access.buffer, PTR)

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

    def _stores(self, stores: Sequence[Store]) -> None:
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

    def _cache(self, value: Any) -> tuple[Value, Value]:
        """Where a kept value of this turn lies: the row of this thread's slot."""
        number = self.nest.cached[value]
        start = self.params["cache", number] + self.slot * self.params["cache stride"]
        place: Value = self._zero()
        for i in range(self.nest.kept, len(self.nest.loops)):
            place = place * self.params["extent", i] + self.index[i]
        return self.b.offset(self._workspace(), start, Type("u", 8)), place

    def _take(self, step: Step) -> Value:
        """An element of the first operand, looked up along its picked axis.

        Outside it the check stops the graph.
        """
        params, indices = step.operands
        assert params.access is not None
        picked = self._operand(indices)
        picked = picked.cast(I64.vector(picked.type.lanes))
        extent, stride = self.params["pick", step, "extent"], self.params["pick", step, "stride"]
        inside = (picked >= 0) & (picked < extent)
        self.m.step = step
        self.m.check(inside, "an index is out of range for the axis it picks from")
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

    # Checks

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
            self.b.store(self.b.constant(I64, number), self.status, 0)
