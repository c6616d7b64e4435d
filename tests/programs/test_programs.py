"""Random programs over sizes that are known only at run time: eager, compiled and called again they agree.

Each program is a script (``print(source(program))``) that a failure shows; it runs in a process of its own,
so that a crash is a failed example.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from program_generator.explore import faults_alone
from program_generator.records import Call, Input, Options, Program, Step
from program_generator.source import shape_of, source
from program_generator.strategies import dynamic_programs, programs
from program_generator.values import DynamicSize
from program_generator.worker import Died, Worker

TIMES = 1 if settings.default.derandomize else 100
"""How often as many examples run with ``--hypothesis-profile explore``."""
PROPERTY = settings(
    deadline=None,
    suppress_health_check=[
        HealthCheck.too_slow,
        HealthCheck.data_too_large,
        HealthCheck.function_scoped_fixture,
    ],
)
CHILDREN = list(Path("/proc/self/task").glob("*/children"))
EXAMPLES = 2 * settings.default.max_examples


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    with Worker() as process:
        yield process


def check(worker: Worker, program: Program) -> None:
    """Fail where the program does: by itself, or only after those that the same process ran before it."""
    text = source(program)
    try:
        faults = worker.check(text)
    except Died as error:
        faults = [str(error)]
    if not faults:
        return
    again = faults_alone(program)
    if again:
        pytest.fail("\n".join([*again, text]))
    history = "\n\n".join(worker.history)
    pytest.fail("\n".join([*faults, "only after these programs:", history]))


def child_processes() -> set[str]:
    return {pid for path in Path("/proc/self/task").glob("*/children") for pid in path.read_text().split()}


@given(programs())
@settings(PROPERTY, max_examples=EXAMPLES * TIMES)
def test_programs_agree(worker: Worker, program: Program) -> None:
    check(worker, program)


@given(programs(large=True))
@settings(PROPERTY, max_examples=EXAMPLES // 4 * TIMES)
def test_large_programs_agree_at_one_size_after_another(worker: Worker, program: Program) -> None:
    """Sizes around those from which eager ops are compiled."""
    check(worker, program)


@given(dynamic_programs())
@settings(PROPERTY, max_examples=EXAMPLES // 4 * TIMES)
def test_dynamic_programs_agree_at_ten_sizes(worker: Worker, program: Program) -> None:
    """One program serves the sizes 0, 1, 2, those around a vector's, and those around internal thresholds."""
    check(worker, program)


@pytest.mark.exhaustive
@given(dynamic_programs())
@settings(PROPERTY, max_examples=EXAMPLES)
def test_many_open_programs_agree_at_ten_sizes(worker: Worker, program: Program) -> None:
    check(worker, program)


@given(programs(large=True))
@settings(PROPERTY, max_examples=100)
def test_an_input_has_at_most_one_large_axis(program: Program) -> None:
    for call in program.calls:
        for x in program.inputs:
            assert math.prod(shape_of(x, call)) <= 16 * 262_145, x


@pytest.mark.skipif(not CHILDREN, reason="the system lists no child processes")
def test_checking_a_program_alone_leaves_no_process() -> None:
    before = child_processes()
    assert faults_alone(SHOWN["scattered rows, then fewer"]) == []
    assert child_processes() == before


N = DynamicSize("n0", 70_000)
ROWS = DynamicSize("n1", 200)
SHOWN = {
    "the gradient of a loop over as many elements as a mask holds": Program(
        "smooth",
        (Input("float32", (N,)),),
        (Step("masked_elements"), Step("repeated", k=1, body=(Step("element", k=5),))),
        (0,),
        (Call((5, 0), 5, 3), Call((7, 0), 3, 4)),
        Options("gradient"),
    ),
    "scattered rows, then fewer": Program(
        "whole",
        (Input("float64", (N, 1)),),
        (Step("scattered", k=16),),
        (0,),
        (Call((262_145, 0), 0, 3), Call((40_000, 0), 0, 4)),
    ),
    "softmax of rows of one element, then of more": Program(
        "smooth",
        (Input("float32", (N, ROWS)),),
        (Step("centred", j=1),),
        (0,),
        (Call((40_000, 1), 0, 3), Call((200, 200), 0, 4)),
    ),
}


@pytest.mark.parametrize("name", SHOWN)
def test_programs_that_once_failed(worker: Worker, name: str) -> None:
    check(worker, SHOWN[name])


def test_a_size_error_of_an_unused_result_is_no_fault(worker: Worker) -> None:
    program = """import numpy as np

import dualflow as df

state = []
options = {}
calls = [(np.ones(3, np.float32), np.int32(4))]


def run(a, n):
    b = a + df.ones([n])
    return (a * 2.0,)
"""
    assert worker.check(program) == []
