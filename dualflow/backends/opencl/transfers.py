"""Inserts transfers: before each step, what it reads is where it runs.

This is a forward dataflow analysis, and the rewrite that it decides. The state is the memory spaces (host,
device) in which each buffer outside the arena has a valid copy. A step whose operand has none where it runs
gets a transfer before it; after the step, the copy that it has written is the only one. Where paths meet, the
state is the intersection; if that is empty for a buffer, the paths without a copy on the device transfer it.
The state at the start of a loop is iterated to a fixed point. What a loop reads in one space, and writes in
no other, is transferred once, before it.

The arena and the rows of stacks are on the device: a host call copies the bytes of its operands there and
back.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum

from dualflow.backends.opencl.steps import (
    CopyOnDevice,
    HostBranch,
    HostCall,
    HostLoop,
    HostOperand,
    Launch,
    Require,
    Step,
    Transfer,
    WriteSizes,
    bodies_of,
    walk_steps,
)


class Space(Enum):
    """A memory space, in which a buffer may have a copy."""

    HOST = "host"
    DEVICE = "device"


Spaces = frozenset[Space]
"""The memory spaces in which a buffer has a valid copy."""
HOST: Spaces = frozenset([Space.HOST])
DEVICE: Spaces = frozenset([Space.DEVICE])
BOTH: Spaces = frozenset(Space)
"""Both; also of a buffer that nothing has been written to."""


class TransferInsertion:
    """Tracks in which memory spaces each buffer has a valid copy, and inserts transfers.

    Args:
        sizes: the bytes of each buffer that the pass follows.
        rows: for each row of a stack, the buffer with the stack.
    """

    def __init__(self, sizes: Mapping[int, int], rows: Mapping[int, int]) -> None:
        self._sizes, self._rows = sizes, rows

    def with_transfers(
        self, steps: Sequence[Step], spaces: Mapping[int, Spaces], results: Mapping[int, Space]
    ) -> tuple[Step, ...]:
        """``steps`` with transfers; at the end each of ``results`` has a valid copy in its space."""
        path = _Path(self, dict(spaces))
        path.follow(steps)
        for buffer, space in results.items():
            path.require(buffer, space)
        return tuple(path.steps)

    def base(self, buffer: int) -> int | None:
        """The buffer that the pass follows and that contains ``buffer``; None if it is on the device."""
        while buffer in self._rows:
            buffer = self._rows[buffer]
        return buffer if buffer in self._sizes else None

    def transfer(self, buffer: int, to: Space) -> Transfer:
        """The transfer of a buffer."""
        return Transfer(buffer, self._sizes[buffer], to is Space.DEVICE)

    def accesses(self, step: Step) -> tuple[dict[int, Space], dict[int, Space]]:
        """The buffers that a step itself reads and writes, and where.

        A step that writes a part of a buffer needs the rest, so what it writes is read too. :class:`Require`
        and :class:`HostBranch` read rows of stacks on the device, and other buffers in either space: see
        :meth:`_Path._with_operand_spaces`.
        """
        reads: dict[int, Space] = {}
        writes: dict[int, Space] = {}

        def add(accesses: dict[int, Space], buffer: int, space: Space) -> None:
            base = self.base(buffer)
            if base is not None:
                accesses[base] = Space.DEVICE if buffer in self._rows else space

        match step:
            case Launch():
                for buffer in (*step.reads, *step.writes):
                    add(reads, buffer, Space.DEVICE)
                for buffer in step.writes:
                    add(writes, buffer, Space.DEVICE)
            case CopyOnDevice():
                for buffer in (step.source.buffer, step.target.buffer):
                    add(reads, buffer, Space.DEVICE)
                add(writes, step.target.buffer, Space.DEVICE)
            case WriteSizes():
                add(reads, step.target.buffer, Space.DEVICE)
                add(writes, step.target.buffer, Space.DEVICE)
            case HostCall():
                for operand in step.inputs:
                    add(reads, operand.layout.buffer, Space.HOST)
                for operand in step.outputs:
                    if not operand.whole:
                        add(reads, operand.layout.buffer, Space.HOST)
                    add(writes, operand.layout.buffer, Space.HOST)
            case Require():
                self._add_rows(reads, (step.condition, *step.reads))
            case HostBranch():
                self._add_rows(reads, (step.number,))
        return reads, writes

    def _add_rows(self, reads: dict[int, Space], operands: Iterable[HostOperand]) -> None:
        """Add the stacks of which ``operands`` are rows: the host reads rows from the device."""
        for operand in operands:
            base = self.base(operand.layout.buffer)
            if base is not None and operand.layout.buffer in self._rows:
                reads[base] = Space.DEVICE


class _Path:
    """The steps along one path of control, with transfers, and the memory spaces of buffers after them."""

    def __init__(self, insertion: TransferInsertion, spaces: dict[int, Spaces]) -> None:
        self.insertion = insertion
        self.spaces = spaces
        self.steps: list[Step] = []

    def follow(self, steps: Iterable[Step]) -> None:
        for step in steps:
            self._step(step)

    def require(self, buffer: int, space: Space) -> None:
        """Transfer a buffer unless it has a valid copy in ``space``."""
        if space not in self.spaces[buffer]:
            self.steps.append(self.insertion.transfer(buffer, space))
            self.spaces[buffer] |= {space}

    def _step(self, step: Step) -> None:
        if isinstance(step, HostBranch):
            self._branch(step)
            return
        if isinstance(step, HostLoop):
            self._loop(step)
            return
        reads, writes = self.insertion.accesses(step)
        for buffer, space in reads.items():
            self.require(buffer, space)
        self.steps.append(self._with_operand_spaces(step))
        self.spaces.update({buffer: frozenset([space]) for buffer, space in writes.items()})

    def _with_operand_spaces(self, step: Step) -> Step:
        """``step``; the operands that its host code reads have the memory space of their valid copy."""
        if isinstance(step, Require):
            reads = tuple([self._operand(x) for x in step.reads])
            return step._replace(condition=self._operand(step.condition), reads=reads)
        return step

    def _operand(self, operand: HostOperand) -> HostOperand:
        base = self.insertion.base(operand.layout.buffer)
        on_host = base == operand.layout.buffer and Space.HOST in self.spaces[base]
        return operand._replace(on_host=on_host)

    def _branch(self, branch: HostBranch) -> None:
        for buffer, space in self.insertion.accesses(branch)[0].items():
            self.require(buffer, space)
        number = self._operand(branch.number)
        paths = [self._inside(steps) for steps in branch.branches]
        self.spaces = _merge_paths(paths)
        self.steps.append(branch._replace(number=number, branches=tuple([tuple(p.steps) for p in paths])))

    def _inside(self, steps: Iterable[Step]) -> _Path:
        path = _Path(self.insertion, dict(self.spaces))
        path.follow(steps)
        return path

    def _loop(self, loop: HostLoop) -> None:
        """Plan the transfers of a loop, until all iterations begin with the same valid copies."""
        self._hoist(walk_steps((*loop.test, *loop.body)))
        while True:
            test = self._inside(loop.test)
            condition = None if loop.condition is None else test._operand(loop.condition)
            body = test._inside(loop.body)
            entry = dict(self.spaces)
            # transfers that the merge adds to ``self`` come before the loop, those of ``body`` at its end
            meet = _merge_paths([self, body])
            if meet == entry:
                break
            self.spaces = meet
        self.spaces = _merge_paths([self, test])
        self.steps.append(loop._replace(test=tuple(test.steps), body=tuple(body.steps), condition=condition))

    def _hoist(self, steps: Iterable[Step]) -> None:
        """Transfer, before a loop, each buffer that its steps read in one space and write in no other."""
        read: dict[int, set[Space]] = {}
        written: dict[int, set[Space]] = {}
        for step in steps:
            reads, writes = self.insertion.accesses(step)
            for buffer, space in reads.items():
                read.setdefault(buffer, set()).add(space)
            for buffer, space in writes.items():
                written.setdefault(buffer, set()).add(space)
        for buffer, spaces in read.items():
            for space in sorted(spaces, key=lambda space: space.value):
                if written.get(buffer, set()) <= {space}:
                    self.require(buffer, space)


def _merge_paths(paths: Sequence[_Path]) -> dict[int, Spaces]:
    """Merge the states of paths, in place; returns the memory spaces in which all have a valid copy.

    Where they share no valid copy of a buffer, each path without a copy on the device gets a transfer to it.
    """
    meet: dict[int, Spaces] = {}
    for buffer in paths[0].spaces:
        common = frozenset.intersection(*[path.spaces[buffer] for path in paths])
        if not common:
            for path in paths:
                path.require(buffer, Space.DEVICE)
            common = frozenset.intersection(*[path.spaces[buffer] for path in paths])
        meet[buffer] = common
    return meet


def transfers_of(steps: Iterable[Step]) -> tuple[list[Transfer], list[Transfer]]:
    """The transfers that a call makes once, and those of each iteration of a loop.

    They include the operands that a host call copies itself. Conditions, of one element, are left out.
    """
    once: list[Transfer] = []
    repeated: list[Transfer] = []
    for step in steps:
        match step:
            case Transfer():
                once.append(step)
            case HostCall():
                once += [_copied(x, to_device=False) for x in step.inputs if not x.on_host]
                once += [_copied(x, to_device=True) for x in step.outputs if not x.on_host]
            case HostBranch() | HostLoop():
                for body in bodies_of(step):
                    inner, inner_repeated = transfers_of(body)
                    repeated += inner_repeated
                    (repeated if isinstance(step, HostLoop) else once).extend(inner)
    return once, repeated


def _copied(operand: HostOperand, *, to_device: bool) -> Transfer:
    """The transfer of the elements of an operand whose buffer is on the device."""
    nbytes = operand.dtype.size * math.prod(size or 0 for size in operand.shape)
    return Transfer(operand.layout.buffer, nbytes, to_device)
