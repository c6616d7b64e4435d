"""Inserts transfers: before each step, what it reads is where it runs.

A buffer outside the arena has a copy on the host, on the device, or on both. The pass follows the steps, and
inserts a transfer where the copy that a step needs is missing or out of date. After a step, the copy that it
has written is the only one. Where paths meet, a copy is valid if it is on all of them; if that leaves none,
the paths that lack it on the device transfer it. What a loop needs and doesn't write is transferred once,
before it.

The arena and the rows of stacks are on the device: a host call copies the bytes of its operands there and
back.
"""

from __future__ import annotations

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
    WriteNumbers,
    walk_steps,
)


class Space(Enum):
    """Where a copy of a buffer is."""

    HOST = "host"
    DEVICE = "device"


Spaces = frozenset[Space]
"""Where the valid copies of a buffer are."""
HOST: Spaces = frozenset([Space.HOST])
BOTH: Spaces = frozenset(Space)
"""Both; also of a buffer that nothing has been written to."""


class Placement:
    """Tracks whether the valid copy of each buffer is on the host or the device, and inserts transfers.

    Args:
        sizes: the bytes of each buffer that the pass follows.
        rows: for each row of a stack, the buffer with the stack.
    """

    def __init__(self, sizes: Mapping[int, int], rows: Mapping[int, int]) -> None:
        self._sizes, self._rows = sizes, rows

    def with_transfers(
        self, steps: Sequence[Step], spaces: Mapping[int, Spaces], results: Iterable[int]
    ) -> tuple[Step, ...]:
        """``steps`` with transfers; ``results`` are on the host at the end."""
        path = _Path(self, dict(spaces))
        path.follow(steps)
        for buffer in results:
            path.require(buffer, Space.HOST)
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
        """The buffers that a step itself reads and writes, and where."""
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
            case WriteNumbers():
                add(reads, step.target.buffer, Space.DEVICE)
                add(writes, step.target.buffer, Space.DEVICE)
            case HostCall():
                for operand in step.inputs:
                    add(reads, operand.layout.buffer, Space.HOST)
                for operand in step.outputs:
                    if not operand.whole:
                        add(reads, operand.layout.buffer, Space.HOST)
                    add(writes, operand.layout.buffer, Space.HOST)
        return reads, writes


class _Path:
    """The steps along one path of control, with transfers, and the places of the buffers after them."""

    def __init__(self, placement: Placement, spaces: dict[int, Spaces]) -> None:
        self.placement = placement
        self.spaces = spaces
        self.steps: list[Step] = []

    def follow(self, steps: Iterable[Step]) -> None:
        for step in steps:
            self._step(step)

    def require(self, buffer: int, space: Space) -> None:
        """Transfer a buffer unless it has a valid copy in ``space``."""
        if space not in self.spaces[buffer]:
            self.steps.append(self.placement.transfer(buffer, space))
            self.spaces[buffer] |= {space}

    def _step(self, step: Step) -> None:
        if isinstance(step, HostBranch):
            self._branch(step)
            return
        if isinstance(step, HostLoop):
            self._loop(step)
            return
        reads, writes = self.placement.accesses(step)
        for buffer, space in reads.items():
            self.require(buffer, space)
        self.steps.append(self._located(step))
        self.spaces.update({buffer: frozenset([space]) for buffer, space in writes.items()})

    def _located(self, step: Step) -> Step:
        """``step`` with the places of the values that the host reads where they are."""
        if isinstance(step, Require):
            reads = tuple([self._operand(x) for x in step.reads])
            return step._replace(condition=self._operand(step.condition), reads=reads)
        return step

    def _operand(self, operand: HostOperand) -> HostOperand:
        base = self.placement.base(operand.layout.buffer)
        on_host = base == operand.layout.buffer and Space.HOST in self.spaces[base]
        return operand._replace(on_host=on_host)

    def _branch(self, branch: HostBranch) -> None:
        number = self._operand(branch.number)
        paths = [self._inside(steps) for steps in branch.branches]
        self.spaces = _joined(paths)
        self.steps.append(branch._replace(number=number, branches=tuple([tuple(p.steps) for p in paths])))

    def _inside(self, steps: Iterable[Step]) -> _Path:
        path = _Path(self.placement, dict(self.spaces))
        path.follow(steps)
        return path

    def _loop(self, loop: HostLoop) -> None:
        self._hoist(walk_steps((*loop.test, *loop.body)))
        while True:
            test = self._inside(loop.test)
            condition = None if loop.condition is None else test._operand(loop.condition)
            body = test._inside(loop.body)
            entry = dict(self.spaces)
            joined = _joined([self, body])
            if joined == entry:
                break
            self.spaces = joined
        self.spaces = _joined([self, test])
        self.steps.append(loop._replace(test=tuple(test.steps), body=tuple(body.steps), condition=condition))

    def _hoist(self, steps: Iterable[Step]) -> None:
        """Transfer, before a loop, each buffer that its steps read in one space and write in no other."""
        read: dict[int, set[Space]] = {}
        written: dict[int, set[Space]] = {}
        for step in steps:
            reads, writes = self.placement.accesses(step)
            for buffer, space in reads.items():
                read.setdefault(buffer, set()).add(space)
            for buffer, space in writes.items():
                written.setdefault(buffer, set()).add(space)
        for buffer, spaces in read.items():
            for space in sorted(spaces, key=lambda space: space.value):
                if written.get(buffer, set()) <= {space}:
                    self.require(buffer, space)


def _joined(paths: Sequence[_Path]) -> dict[int, Spaces]:
    """The places of buffers where paths meet; without a common copy, each path has one on the device."""
    joined: dict[int, Spaces] = {}
    for buffer in paths[0].spaces:
        common = frozenset.intersection(*[path.spaces[buffer] for path in paths])
        if not common:
            for path in paths:
                path.require(buffer, Space.DEVICE)
            common = frozenset.intersection(*[path.spaces[buffer] for path in paths])
        joined[buffer] = common
    return joined
