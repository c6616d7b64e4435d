"""A loop nest becomes LLVM IR: one function that runs a range of its outermost loop.

    void kernel(ptr context, i64 lo, i64 hi, i64 slot)

``context`` holds three pointers: the buffer table, the parameters, the status word. Whatever depends on sizes
is read from the parameters, so the text depends on the nest's structure alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice
from typing import Any

import numpy as np

from dualflow.backends.llvm.emit_base import Frame
from dualflow.backends.llvm.text import Type, Value
from dualflow.ops.forms import Choice, Fold, Loop, Take
from dualflow.schedule.blocking import JOIN, rounds
from dualflow.schedule.lower import stage_steps
from dualflow.schedule.nest import Step, Store

Carried = list[Value]


class Emitter(Frame):
    """Emits one nest; ``code`` collects the run-time parameters of the whole graph."""

    # Functions

    def emit(self) -> None:
        """Write the kernel, and for a nest that is one whole reduction the function that joins its blocks."""
        self.begin(self.name)
        self._steps_at(0, stage=0)
        if self.nest.whole:
            self._blocks()
        else:
            self._kept(0)
        self.b.ret()
        if self.nest.whole:
            self.begin(f"{self.name}.join")
            self._steps_at(0, stage=0)
            self._join()
            self.b.ret()

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

        start, stop = (self.lo, self.hi) if at == 0 else (self.zero(), self.params["extent", at])
        self._loop(at, start, stop, [], body)

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
        self.write(self._kept_stores(0))
        if len(nest.loops) == nest.kept:
            return
        extents = [self.params["extent", i] for i in range(nest.kept, len(nest.loops))]
        for stage in range(nest.stages):
            self._finish(stage, self._reduce(stage, self.zero(), extents[0]))

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
        accs = self._apart(folds, self._reduced(self.nest.kept, start, stop, self._begun(folds)))
        if self.nest.vector is not None and self.nest.vector >= self.nest.kept:
            accs = [self._across_lanes(s, acc) for s, acc in zip(folds, accs, strict=True)]
        return accs

    def _begun(self, folds: Sequence[Step]) -> Carried:
        return [v for step in folds for v in self._start(step, self.lanes)]

    def _apart(self, folds: Sequence[Step], values: Carried) -> list[Carried]:
        """The accumulators of each fold, of those that stand one behind another."""
        rest = iter(values)
        return [list(islice(rest, len(self._start(step, self.lanes)))) for step in folds]

    def _merged(self, folds: Sequence[Step], left: Carried, right: Carried) -> Carried:
        pairs = zip(folds, self._apart(folds, left), self._apart(folds, right), strict=True)
        return [v for step, a, b in pairs for v in self._merge(step, a, b)]

    def _merge(self, step: Step, left: Carried, right: Carried) -> Carried:
        form = step.node.op.form
        assert isinstance(form, Fold)
        merged = form.merge(self.m, tuple(left), tuple(right))
        return [new.cast(old.type) for new, old in zip(merged, left, strict=True)]

    def _reduced(self, at: int, start: Value, stop: Value, carried: Carried) -> Carried:
        """The stage's accumulators after loop ``at``."""

        def body(accs: Carried) -> Carried:
            if at + 1 == len(self.nest.loops):
                return self._turn(accs)
            for step in self.turn:
                if step.level == at + 1:
                    self._compute(step)
            return self._reduced(at + 1, self.zero(), self.params["extent", at + 1], accs)

        def run(start: Value, stop: Value, accs: Carried) -> Carried:
            return self._loop(at, start, stop, accs, body)

        return self._by_blocks(at, start, stop, carried, run)

    def _by_blocks(
        self,
        at: int,
        start: Value,
        stop: Value,
        carried: Carried,
        run: Callable[[Value, Value, Carried], Carried],
        level: int = 0,
    ) -> Carried:
        """``run`` for each block of loop ``at``, whose accumulators begin anew and are merged in order."""
        folds = self._folds(self.stage)
        if level == len(self.blocks.get(at, ())) or not any(map(rounds, folds)):
            return run(start, stop, carried)
        size = self.params["turns", at, level]
        with self.b.loop(start, stop, size, carried) as loop:
            end = loop.index + size
            end = (end < stop).select(end, stop)
            part = self._by_blocks(at, loop.index, end, self._begun(folds), run, level + 1)
            loop.next(*self._merged(folds, list(loop.carried), part))
        return list(loop.results)

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
        self.write([s for s in self.nest.stores if s.level > self.nest.kept and s.stage == self.stage])
        return after

    def _fold(self, step: Step, acc: Carried) -> Carried:
        form = step.node.op.form
        assert isinstance(form, Fold)
        value = self.operand(step.operands[0]).splat(self.lanes)
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
        return place.splat(self.lanes) if place is not None else self.zero()

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
        lanes = self.lanes
        while lanes > 1:
            lanes //= 2
            acc = self._merge(step, *([self._lanes_from(v, at, lanes) for v in acc] for at in (0, lanes)))
        return acc

    def _lanes_from(self, value: Value, start: int, count: int) -> Value:
        return value.lane(start) if count == 1 else value.shuffle(range(start, start + count))

    def _finish(self, stage: int, accs: Sequence[Carried]) -> None:
        """Bind the results of the stage's folds, then compute and store what waited for them."""
        for step, acc in zip(self._folds(stage), accs, strict=True):
            self.bind(step, step.node.op.form.finish(self.m, tuple(acc)))  # type: ignore[union-attr]  # a fold
        for step in self.nest.steps:
            if step.level <= self.nest.kept and step.stage == stage + 1:
                self._compute(step)
        self.write(self._kept_stores(stage + 1))

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
        self.write(self._kept_stores(0))
        folds = self._folds(0)
        vector_lanes, self.lanes = self.lanes, 1

        def run(start: Value, stop: Value, accs: Carried) -> Carried:
            with self.b.loop(start, stop, carried=accs) as loop:
                parts = [self._load_partial(i, loop.index, v.type) for i, v in enumerate(loop.carried)]
                loop.next(*self._merged(folds, list(loop.carried), parts))
            return list(loop.results)

        begun, blocks = self._begun(folds), self.params["blocks"]
        accs = self._apart(folds, self._by_blocks(JOIN, self.zero(), blocks, begun, run))
        self._finish(0, accs)
        self.lanes = vector_lanes

    def _load_partial(self, number: int, block: Value, type: Type) -> Value:
        return self.b.load(self._partial(number), self._partial_index(block, type), type)

    def _partial(self, number: int) -> Value:
        return self.b.offset(self.memory(), self.params["partial", number], Type("u", 8))

    def _partial_index(self, block: Value, type: Type) -> Value:
        return block * (8 // type.nbytes)

    # Values

    def _steps_at(self, level: int, stage: int) -> None:
        for step in self.nest.steps:
            if step.level == level and step.stage == stage and level <= self.nest.kept:
                self._compute(step)

    def _compute(self, step: Step) -> None:
        """Emit the value of a step, or read it back where an earlier stage has kept it."""
        value = step.node.output
        if value in self.nest.cached and step.stage < self.stage:
            self.env[value] = self.b.load(*self.cache(value), self.register(value).vector(self.lanes))
            return
        form = step.node.op.form
        if isinstance(form, Fold):
            element = self.operand(step.operands[0])
            begun = self._start(step, element.type.lanes)
            self.bind(step, form.finish(self.m, form.step(self.m, tuple(begun), element, self.zero())))
            return
        if isinstance(form, Take):
            self.bind(step, self.take(step))
            return
        self.m.step = step
        operands = [self.operand(o) for o in step.operands]
        if isinstance(form, Choice | Loop):
            self.env.update(zip(step.node.outputs, self.registers.values(step.node, operands), strict=True))
            return
        self.bind(step, form.code(self.m, *operands, **step.node.attrs))  # type: ignore[union-attr]  # element
        if value in self.nest.cached and step.level > self.nest.kept:
            self.b.store(self.env[value].splat(self.lanes), *self.cache(value))
