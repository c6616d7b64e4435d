"""The pass that inserts transfers: along each path, a step reads the value that was written last."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from required_tools import require_module

import dualflow as df
from dualflow.core.dtypes import float32
from dualflow.schedule.nest import Layout

require_module("pyopencl")

from dualflow.backends.opencl.steps import (  # noqa: E402  # they import pyopencl
    HostBranch,
    HostCall,
    HostLoop,
    HostOperand,
    KernelProgram,
    Launch,
    Step,
    Transfer,
    walk_steps,
)
from dualflow.backends.opencl.transfers import BOTH, DEVICE, HOST, Space, Spaces, TransferInsertion  # noqa: E402

BUFFERS = range(4)
NODE: Any = None
STATEMENT: Any = None
SCALAR = HostOperand(Layout(99, 0, ()), (), float32, False, False)
"""The number of a branch, in a buffer that the pass doesn't follow."""


def operand(buffer: int) -> HostOperand:
    return HostOperand(Layout(buffer, 0, (1,)), (3,), float32, True, True)


def launch(reads: set[int], writes: set[int]) -> Launch:
    return Launch(NODE, (), KernelProgram(""), (), 1, 64, frozenset(reads), frozenset(writes))


def host_call(reads: set[int], writes: set[int]) -> HostCall:
    return HostCall(NODE, "", tuple(map(operand, sorted(reads))), tuple(map(operand, sorted(writes))))


some_buffers = st.sets(st.sampled_from(BUFFERS), max_size=2)
calls = st.builds(launch, some_buffers, some_buffers) | st.builds(host_call, some_buffers, some_buffers)


def nested(steps: st.SearchStrategy[Step]) -> st.SearchStrategy[Step]:
    bodies = st.lists(steps, max_size=3).map(tuple)
    return st.builds(lambda *b: HostBranch(NODE, SCALAR, b), bodies, bodies) | st.builds(
        lambda test, body: HostLoop(NODE, STATEMENT, (), test, body, SCALAR), bodies, bodies
    )


programs = st.lists(st.recursive(calls, nested, max_leaves=6), max_size=6)


class Memory:
    """Versions of each buffer's copies, as a program with transfers moves them.

    Args:
        spaces: where each buffer has a valid copy at first.
    """

    def __init__(self, spaces: Mapping[int, Spaces]) -> None:
        self.written = dict.fromkeys(BUFFERS, 0)
        self.host = {b: 0 if Space.HOST in spaces[b] else None for b in BUFFERS}
        self.device = {b: 0 if Space.DEVICE in spaces[b] else None for b in BUFFERS}
        self.versions = 0

    def run(self, steps: Any, choose: Any) -> None:
        """Run ``steps``; ``choose(n)`` is the number of a branch, or whether a loop goes on."""
        for step in steps:
            match step:
                case Transfer():
                    source, target = (self.host, self.device) if step.to_device else (self.device, self.host)
                    target[step.buffer] = source[step.buffer]
                case Launch():
                    self.access(step.reads, step.writes, self.device)
                case HostCall():
                    reads, writes = ([x.layout.buffer for x in xs] for xs in (step.inputs, step.outputs))
                    self.access(reads, writes, self.host)
                case HostBranch():
                    self.run(step.branches[choose(2)], choose)
                case HostLoop():
                    self.run(step.test, choose)
                    while choose(2):
                        self.run(step.body, choose)
                        self.run(step.test, choose)

    def access(self, reads: Any, writes: Any, copies: Any) -> None:
        for buffer in reads:
            assert copies[buffer] == self.written[buffer], f"buffer {buffer} is out of date"
        for buffer in writes:
            self.versions += 1
            copies[buffer] = self.written[buffer] = self.versions


@given(
    programs,
    st.lists(st.integers(0, 1), max_size=12),
    st.fixed_dictionaries({b: st.sampled_from([HOST, DEVICE]) for b in BUFFERS}),
    st.fixed_dictionaries({b: st.sampled_from(Space) for b in BUFFERS}),
)
def test_each_step_reads_the_value_that_was_written_last(
    program: list[Step], choices: list[int], spaces: dict[int, Spaces], results: dict[int, Space]
) -> None:
    placed = TransferInsertion(dict.fromkeys(BUFFERS, 12), {}).with_transfers(program, spaces, results)
    memory, remaining = Memory(spaces), iter(choices)
    memory.run(placed, lambda n: next(remaining, 0))
    for buffer, space in results.items():
        copies = memory.host if space is Space.HOST else memory.device
        assert copies[buffer] == memory.written[buffer]


@given(st.lists(st.builds(launch, some_buffers, some_buffers), max_size=6))
def test_kernels_on_buffers_that_stay_on_the_device_need_no_transfer(program: list[Step]) -> None:
    placed = TransferInsertion(dict.fromkeys(BUFFERS, 12), {}).with_transfers(
        program, dict.fromkeys(BUFFERS, DEVICE), dict.fromkeys(BUFFERS, Space.DEVICE)
    )
    assert placed == tuple(program)


@given(programs)
def test_buffers_that_the_device_alone_uses_move_to_the_host_once_at_the_end(program: list[Step]) -> None:
    device_only = [step for step in walk_steps(program) if isinstance(step, Launch)]
    placed = TransferInsertion(dict.fromkeys(BUFFERS, 12), {}).with_transfers(
        device_only, dict.fromkeys(BUFFERS, BOTH), dict.fromkeys(BUFFERS, Space.HOST)
    )
    moved = [step.buffer for step in placed if isinstance(step, Transfer)]
    assert moved == sorted({buffer for step in device_only for buffer in step.writes})


def test_what_a_loop_only_reads_is_transferred_once_before_it() -> None:
    loop = HostLoop(NODE, STATEMENT, (), (), (launch({0}, {1}),), SCALAR)
    placed = TransferInsertion({0: 12, 1: 12}, {}).with_transfers([loop], {0: HOST, 1: BOTH}, {1: Space.HOST})
    assert [type(step) for step in placed] == [Transfer, HostLoop, Transfer]
    assert not any(isinstance(step, Transfer) for step in placed[1].body)  # type: ignore[union-attr]


def test_rows_of_a_stack_are_read_on_the_device() -> None:
    loop = HostLoop(NODE, STATEMENT, (), (), (launch({7}, {1}),), SCALAR)
    placed = TransferInsertion({0: 12, 1: 12}, {7: 0}).with_transfers([loop], {0: HOST, 1: BOTH}, {})
    assert placed[0] == Transfer(0, 12, True)


def test_a_value_between_two_host_calls_stays_on_the_host() -> None:
    f = df.function(lambda x: df.sort(df.sort(x), direction="DESCENDING"), backend="opencl")
    f(np.ones(5, np.float32))
    assert "no transfers (0 bytes)" in str(f.status()).partition("numpy:")[0]


def test_a_stack_of_branch_numbers_is_on_the_device_before_the_loop_that_reads_its_rows() -> None:
    stack, row = 0, 7
    number = HostOperand(Layout(row, 0, ()), (), float32, False, False)
    loop = HostLoop(NODE, STATEMENT, (), (), (HostBranch(NODE, number, ((), ())),), SCALAR)
    steps = TransferInsertion({stack: 12}, {row: stack}).with_transfers([loop], {stack: HOST}, {})
    assert steps[0] == Transfer(stack, 12, to_device=True)
