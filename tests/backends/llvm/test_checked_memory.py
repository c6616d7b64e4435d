"""The checked-memory mode: a wrong access is reported with kernel, op, line and buffer.

Programs are made wrong by replacing integers in the table that their code reads: how often a loop runs, where
in a buffer it begins, which buffer it is.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from forked_programs import run_forked

import dualflow as df
from dualflow.backends.runtime import switches
from dualflow.core.errors import InvalidArgumentError

SOURCE_ROOT = Path(df.__file__).parents[1]
SIDES = ("end", "begin")

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the checked mode is for Linux")

WRONG = """
import gc
import numpy as np
import dualflow as df
from dualflow.backends.llvm.any_length import AnyLength
from dualflow.backends.llvm.executable import Executable
from dualflow.graph.fused import body_of
from dualflow.schedule.select_kernel import kernel_launch

ITERATIONS, CHUNK, NUMBERS = 3, 4, 5

def only(kind):
    (instance,) = [x for x in gc.get_objects() if isinstance(x, kind)]
    return instance

def step_of(executable, op):
    "The place of the step that computes an op."
    kernels = [step for step in executable.program.steps if step.kind.name == "KERNEL"]
    (step,) = [s for s in kernels if op in [n.op.name for n in getattr(body_of(s.node), "nodes", ())]]
    return step.address

def iterations(executable, op, more):
    for field in (ITERATIONS, CHUNK):
        executable.params[step_of(executable, op) + field] += more

def buffer_place(executable, op, number):
    "Where the table has the number of a kernel's buffer; the first element's index is the next integer."
    nests = [(kernel.lowered_nest(), kernel.lanes) for kernel in executable.program.kernels]
    ((nest, lanes),) = [x for x in nests if op in [step.node.op.name for step in x[0].steps]]
    run = kernel_launch(nest, lanes)
    first = step_of(executable, op) + NUMBERS + len(run.parameters) + len(run.scalars)
    return first + 2 * (number % len(run.buffers))
"""

PROGRAM = (
    WRONG
    + """
@df.function(sizes="exact")
def doubled(x):
    return df.exp(x) * 2.0  # here

x = df.ones([1000])
doubled(x)
code = only(Executable)
"""
)


def run(program: str, tmp_path: Path, side: str, *options: str) -> subprocess.CompletedProcess[str]:
    """A process of its own that runs ``program`` in the checked mode; without, where ``side`` is empty."""
    environment = {"PYTHONPATH": str(SOURCE_ROOT), switches.CHECK_MEMORY: side}
    path = tmp_path / "program.py"
    path.write_text(program, encoding="utf-8")
    settings = {n: v for n, v in os.environ.items() if n != "PYTHONFAULTHANDLER"} | environment
    if not options:
        return run_forked([str(path)], env=settings)
    command = [sys.executable, *options, str(path)]
    return subprocess.run(command, env=settings, capture_output=True, text=True, timeout=300)


def fault(program: str, tmp_path: Path, side: str, *options: str) -> str:
    """What a program that ends by a memory fault prints to stderr."""
    done = run(program, tmp_path, side, *options)
    assert done.returncode in (-signal.SIGSEGV, -signal.SIGBUS), (done.returncode, done.stdout, done.stderr)
    return done.stderr


def printed(program: str, tmp_path: Path, side: str) -> str:
    done = run(program, tmp_path, side)
    assert done.returncode == 0, done.stderr
    return done.stdout


def line_of(program: str, mark: str = "# here") -> int:
    (number,) = [i for i, line in enumerate(program.splitlines(), start=1) if mark in line]
    return number


WRONG_ACCESSES = {
    "one iteration too many": ("end", "iterations(code, 'exp', 1)", "input 0, float32[1000]"),
    "an input from its second element on": (
        "end",
        "code.params[buffer_place(code, 'exp', 0) + 1] += 1",
        "input 0",
    ),
    "an input from before its first element on": (
        "begin",
        "code.params[buffer_place(code, 'exp', 0) + 1] -= 1",
        "input 0",
    ),
    "a result from its second element on": (
        "end",
        "code.params[buffer_place(code, 'exp', 1) + 1] += 1",
        "an output",
    ),
    "a result before its first element": (
        "begin",
        "code.params[buffer_place(code, 'exp', 1) + 1] -= 1",
        "an output",
    ),
    "a write to an input": ("end", "code.params[buffer_place(code, 'exp', 1)] = 0", "input 0, float32[1000]"),
}


@pytest.mark.parametrize("name", WRONG_ACCESSES)
def test_a_wrong_access_ends_with_the_kernel_the_op_the_line_and_the_buffer(
    name: str, tmp_path: Path
) -> None:
    side, change, buffer = WRONG_ACCESSES[name]
    program = f"{PROGRAM}\n{change}\ndoubled(x)"
    output = fault(program, tmp_path, side)
    kernel, first, second, *_ = output.strip().splitlines()
    assert re.fullmatch(
        r"dualflow: memory fault in machine code, while kernel_\w+ computes "
        r"fused\(exp, (constant, )?multiply\) -> float32\[1000\] in graph 'doubled'",
        kernel,
    ), output
    assert first == f'File "{tmp_path / "program.py"}", line {line_of(program)}, in doubled', output
    assert re.fullmatch(r"at address 0x[0-9a-f]{16}", second), output
    assert f"\nof {buffer}" in output


@pytest.mark.parametrize(
    ("side", "change"),
    [("begin", "iterations(code, 'exp', 1)"), ("end", "code.params[buffer_place(code, 'exp', 1) + 1] -= 1")],
)
def test_a_write_next_to_a_buffer_on_its_other_side_is_an_error(
    side: str, change: str, tmp_path: Path
) -> None:
    done = run(f"{PROGRAM}\n{change}\ndoubled(x)", tmp_path, side)
    assert done.returncode == 1
    assert "InternalError: the machine code of 'doubled' has written next to an output" in done.stderr


@pytest.mark.parametrize("side", SIDES)
def test_unwritten_memory_keeps_the_fill_pattern(side: str, tmp_path: Path) -> None:
    program = (
        f"{PROGRAM}\niterations(code, 'exp', -1)\nprint(*map(hex, doubled(x).numpy()[-2:].view(np.uint32)))"
    )
    written, missing = printed(program, tmp_path, side).split()
    assert written == "0x40adf854"
    assert missing == "0x7ff57ff5"


def test_a_dead_intermediate_of_another_call_is_never_read_as_a_value(tmp_path: Path) -> None:
    """Each call has new memory: an intermediate that isn't computed doesn't keep an old value."""
    program = (
        WRONG
        + """
@df.function(sizes="exact")
def sums(x):
    return df.cumsum(df.sort(df.exp(x)) * 2.0)  # a host call stands between two kernels

x = df.ones([100])
print(np.isnan(sums(x).numpy()).any())
iterations(only(Executable), 'exp', -1)
print(np.isnan(sums(x).numpy()).any())
"""
    )
    assert printed(program, tmp_path, "end").split() == ["False", "True"]


def test_scalars_of_sizes_have_their_values(tmp_path: Path) -> None:
    """The checked mode binds sizes while the program runs, as programs whose sizes depend on data do."""
    program = """
import dualflow as df

@df.function(input_signature=[df.TensorSpec([None]), df.TensorSpec([None], "float64")])
def sums(x, y):
    n, m = (df.cast(df.shape(z)[0], z.dtype) for z in (x, y))
    return df.reduce_mean(x), x / (0.5 - n), y * (2.0 * -m), n + 1.0

for n in (2, 4):
    print(*[r.numpy().tolist() for r in sums(df.ones([n]), df.ones([1], "float64"))])
"""
    lines = ["1.0 [-0.6666666865348816, -0.6666666865348816] [-2.0] 3.0"]
    lines.append(f"1.0 {[-0.2857142984867096] * 4} [-2.0] 5.0")
    assert printed(program, tmp_path, "end").splitlines() == lines


def test_the_handler_that_was_there_before_still_runs(tmp_path: Path) -> None:
    output = fault(
        f"{PROGRAM}\niterations(code, 'exp', 1)\ndoubled(x)", tmp_path, "end", "-X", "faulthandler"
    )
    assert output.index("dualflow: memory fault") < output.index("Fatal Python error: Segmentation fault")


def test_freed_memory_is_protected(tmp_path: Path) -> None:
    program = """
import ctypes
import numpy as np
from dualflow.backends.llvm.runtime import checked_memory
checked_memory.symbols()
memory = checked_memory.empty((10,), np.dtype(np.float64), "a buffer")
address = memory.ctypes.data
print(hex(memory.view(np.uint64)[0]))
del memory
ctypes.string_at(address, 1)
"""
    output = fault(program, tmp_path, "end")
    assert "dualflow: memory fault outside machine code" in output
    assert re.search(r"of a buffer, float64\[10\] \(80 bytes from 0x\w+ on\), which is freed", output), output


LOOP = (
    WRONG
    + """
@df.function(sizes="exact")
def powers(x, n):
    rows = df.TensorArray(df.float32, size=0, dynamic_size=True)
    for i in df.range(n):
        x = df.tanh(x) + x  # here
        rows = rows.write(i, x)
    return rows.stack()

x = df.ones([1000])
powers(x, df.constant(100))
code = only(Executable)
"""
)


def test_a_fault_in_a_loop_names_the_op_of_its_body(tmp_path: Path) -> None:
    program = f"{LOOP}\niterations(code, 'tanh', 1)\npowers(x, df.constant(100))"
    output = fault(program, tmp_path, "end")
    assert re.search(r"computes fused\(tanh, add\) -> float32\[1000\] in graph 'powers'", output), output
    assert f"line {line_of(program)}, in powers" in output


def test_a_fault_in_another_thread_names_its_kernel(tmp_path: Path) -> None:
    """A loop that threads share; the last chunk is too long, whichever thread runs it."""
    program = (
        PROGRAM.replace("1000", "3_000_000")
        + "code.params[step_of(code, 'exp') + ITERATIONS] += 1\ndoubled(x)"
    )
    output = fault(program, tmp_path, "end")
    assert "float32[3000000] in graph 'doubled'" in output
    assert f"line {line_of(program)}, in doubled" in output


@pytest.mark.parametrize(("side", "step"), [("end", 1), ("begin", -1)])
def test_a_fault_where_sizes_are_learnt_names_its_kernel(side: str, step: int, tmp_path: Path) -> None:
    program = (
        WRONG
        + f"""
@df.function(sizes="exact")
def positive(x):
    return df.exp(x[x > 0.0])  # here

x = df.constant(np.arange(-50.0, 50.0, dtype=np.float32))
positive(x)
code = only(Executable)
code.params[buffer_place(code, 'exp', -1) + 1] += {step}
positive(x)
"""
    )
    output = fault(program, tmp_path, side)
    assert f"line {line_of(program)}, in positive" in output
    assert "of memory of a dynamic size" in output


@pytest.mark.parametrize(("side", "step"), [("end", 1), ("begin", -1)])
def test_a_fault_of_a_large_eager_op_of_any_length_names_it(side: str, step: int, tmp_path: Path) -> None:
    program = (
        WRONG
        + f"""
df.exp(df.range(40_000.0))
code = only(AnyLength)
code._params[buffer_place(only(Executable), 'exp', 0) + 1] += {step}
df.exp(df.range(50_000.0))
"""
    )
    output = fault(program, tmp_path, side)
    assert "in graph 'exp'" in output
    assert "of input 0, float32[50000]" in output


SAME = """
import hashlib, os, threading
import numpy as np
import dualflow as df

rng = np.random.default_rng(0)
results = []

def note(*tensors):
    results.extend(np.asarray(t).tobytes() for t in tensors)

w = df.Variable(rng.normal(size=(64, 32)).astype(np.float32))

@df.function(sizes="exact")
def step(x):
    with df.GradientTape() as tape:
        loss = df.reduce_mean(df.tanh(x @ w) ** 2)
    w.assign_sub(0.1 * tape.gradient(loss, w))
    return loss

@df.function(sizes="exact")
def summed(x):
    rows = df.nn.softmax(x), df.reduce_max(x, axis=1), df.reduce_mean(x, axis=1)
    return df.reduce_sum(x), df.reduce_sum(x, axis=0), df.cumsum(x), *rows

@df.function(sizes="exact")
def halvings(x):
    count = 0
    while df.reduce_max(x) > 1.0:
        x = x / 2.0
        count += 1
    return x, count

@df.function(sizes="exact")
def grown(x, n):
    with df.GradientTape() as tape:
        tape.watch(x)
        positive = x[x > 0.0]
        for _ in df.range(n):
            positive = df.tanh(positive) * 0.6
    return positive, tape.gradient(positive, x)

@df.function(sizes="exact")
def stacked(x, n):
    rows = df.TensorArray(df.float32, size=0, dynamic_size=True)
    for i in df.range(n):
        x = x * 0.5
        rows = rows.write(i, x)
    return rows.stack(), df.where(x > 0.0)

@df.function(sizes="exact")
def checked(x):
    w.assign_add(df.ones([64, 32]))
    df.debugging.assert_less(df.reduce_max(x), 100.0, message="too large")
    return df.gather(x, df.cast(x[0], df.int32))

@df.function(sizes="exact")
def by_host(x):
    return df.linalg.det(x @ df.transpose(x)) * 2.0

for rows in (1, 7, 64, 500):
    x = df.constant(rng.normal(size=(rows, 64)).astype(np.float32))
    note(step(x), *summed(x), *halvings(df.abs(x) * 10.0), *grown(x, df.constant(rows)))
    note(*stacked(x, df.constant(70 + rows % 5)), df.exp(x), df.nn.softmax(x))
note(w.numpy(), *summed(df.constant(rng.normal(size=(3000, 301)))))
for dtype in ("float16", "int8", "uint16", "complex64", "bool"):
    x = df.cast(df.constant(rng.normal(size=(33, 17)) * 3), dtype)
    note(*df.function(lambda x: (df.transpose(x), df.concat([x, x], 1), x[1:, ::-2], df.equal(x, x)))(x))
note(by_host(df.constant(rng.normal(size=(5, 9)).astype(np.float32))))
for bad in (np.full((2, 64), 200.0), np.full((2, 64), 50.0)):
    try:
        checked(df.constant(bad.astype(np.float32)))
    except Exception as error:
        note(np.frombuffer(type(error).__name__.encode(), np.uint8), w.numpy())
long = [df.constant(rng.normal(size=40_000 + i).astype(np.float32)) for i in range(4)]
for x in long:
    note(df.exp(x) + 1.0, df.reduce_sum(x))
sums = [None] * 4
def work(i):
    total = df.function(lambda x: df.reduce_sum(df.exp(x) * x), sizes="exact")
    sums[i] = [total(long[i]).numpy() for _ in range(5)]
threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
[t.start() for t in threads]
[t.join() for t in threads]
note(*sums)
reader, writer = os.pipe()
if os.fork() == 0:
    os.write(writer, step(df.constant(rng.normal(size=(500, 64)).astype(np.float32))).numpy().tobytes())
    os._exit(0)
results.append(os.read(reader, 4))
os.wait()
for content in results:
    print(hashlib.sha256(content).hexdigest())
"""


@pytest.mark.exhaustive
def test_results_are_the_same_to_the_bit(tmp_path: Path) -> None:
    """Compiled functions of all kinds, with buffers at any multiple of an element's size."""
    expected = printed(SAME, tmp_path, "")
    assert len(expected.split()) >= 100
    for side in SIDES:
        assert printed(SAME, tmp_path, side) == expected


@pytest.mark.parametrize("side", SIDES)
def test_info_reports_that_the_mode_is_on(side: str, tmp_path: Path) -> None:
    output = printed("import dualflow as df\ndf.show_config()", tmp_path, side)
    assert re.search(
        rf"^checked memory  on \(buffers {side} (at|after) protected pages\)$", output, re.MULTILINE
    )
    assert f"C fast call     off ({switches.CHECK_MEMORY}={side}: calls go through ctypes)" in output
    assert "checked memory" not in printed("import dualflow as df\ndf.show_config()", tmp_path, "")


def test_another_value_is_refused() -> None:
    with pytest.raises(
        InvalidArgumentError, match=r"DUALFLOW_CHECK_MEMORY='both': it is end \(or 1\), begin"
    ):
        switches.side_of("both")


def test_numba_code_cannot_call_a_checked_graph(tmp_path: Path) -> None:
    program = """
import dualflow as df
f = df.function(lambda x: x + 1.0, sizes="exact")
try:
    f.get_concrete_function(df.TensorSpec([3])).njit()
except df.errors.InvalidArgumentError as error:
    print(error)
"""
    assert "while DUALFLOW_CHECK_MEMORY is set" in printed(program, tmp_path, "end")


def test_programs_with_guards_serve_all_sizes_for_which_these_hold(tmp_path: Path) -> None:
    program = """
import dualflow as df
import numpy as np
@df.function
def ordered(x):
    return df.cumsum(df.exp(x)) if x.shape[0] > 3 else -x

for n in (4, 5, 6, 2, 9, 3, 7):
    x = df.constant(np.arange(n, dtype=np.float32))
    np.testing.assert_allclose(ordered(x), np.cumsum(np.exp(x)) if n > 3 else -x, rtol=1e-5)
print([len(trace._specialisations) for trace in ordered.concrete_functions])
"""
    assert printed(program, tmp_path, "end") == "[1, 1, 1]\n"
