"""Memory: the peak of a call, and that nothing remains after it.

Resident memory is the kernel's own count, of a process that does nothing else.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads and resets Linux's peak of memory")

MIB = 1 << 20
METER = """
import gc, json, re
import numpy as np
import dualflow as df

def resident(field="VmRSS"):
    with open("/proc/self/status") as file:
        return 1024 * int(re.search(field + r":\\s+(\\d+)", file.read()).group(1))

def forget_the_peak():
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")

def peak_of(call):
    gc.collect()
    forget_the_peak()
    before = resident()
    result = call()
    return resident("VmHWM") - before

def growth_of(call, warm=1500, count=10_000):
    # The smaller of two rounds: now and then the interpreter makes a table of its own anew.
    for _ in range(warm):
        call()
    gc.collect()
    sizes = [resident()]
    for _ in range(2):
        for _ in range(count):
            call()
        gc.collect()
        sizes.append(resident())
    return min(sizes[1] - sizes[0], sizes[2] - sizes[1])
"""

CHAIN = """
@df.function
def chain(x):
    y = df.sin(x) * 0.5 + 1.0
    y = df.tanh(y * y) - x
    return df.sigmoid(df.maximum(y, 0.25)) * 2.0 + df.abs(x)

small = df.constant(np.ones(1000, np.float32))
chain(small), chain(small)
large = df.constant(np.ones(16 << 20, np.float32))
"""


def test_a_fused_chain_takes_its_input_and_its_output(forked_answer: Callable[..., Any]) -> None:
    """Ten ops over 64 MiB: no intermediate ever exists."""
    first, again = forked_answer(
        METER + CHAIN + "print(json.dumps([peak_of(lambda: chain(large)), peak_of(lambda: chain(large))]))"
    )
    both = 128 * MIB
    assert 63 * MIB <= first <= 64 * MIB + 0.1 * both  # the system counts pages in batches
    assert 63 * MIB <= again <= 64 * MIB + 0.1 * both


def test_the_gradient_of_a_fused_chain_takes_its_input_and_its_output(
    forked_answer: Callable[..., Any],
) -> None:
    program = """
@df.function
def slope(x):
    with df.GradientTape() as tape:
        tape.watch(x)
        y = df.reduce_sum(df.tanh(df.sin(x) * 0.5 + 1.0) * x)
    return tape.gradient(y, x)

slope(small), slope(small)
print(json.dumps(peak_of(lambda: slope(large))))
"""
    assert forked_answer(METER + CHAIN + program) <= 64 * MIB + 0.1 * 128 * MIB


def test_a_whole_reduction_takes_next_to_nothing(forked_answer: Callable[..., Any]) -> None:
    program = """
norm = df.function(lambda x: df.sqrt(df.reduce_sum(df.square(x - 1.0))), sizes="exact")
norm(df.ones([1 << 20]))  # compiles the kernels of large tensors
print(json.dumps(peak_of(lambda: norm(large))))
"""
    assert forked_answer(METER + CHAIN + program) <= MIB


@pytest.mark.llvm  # Numba's programs write a new value, which the variable then takes
@pytest.mark.parametrize("disabled", ["", "c_fast_call"])
def test_a_variable_is_updated_without_another_copy(forked_answer: Callable[..., Any], disabled: str) -> None:
    program = """
def step_of(v):
    return df.function(lambda x: v.assign_sub(0.1 * df.sin(x), read_value=False))

other = step_of(df.Variable(np.ones(1 << 20, np.float32)))
other(df.ones([1 << 20])), other(df.ones([1 << 20]))  # the code of fast calls is compiled
step = step_of(v := df.Variable(np.ones(16 << 20, np.float32)))
step(large)
print(json.dumps(peak_of(lambda: step(large))))
"""
    assert forked_answer(METER + CHAIN + program, DUALFLOW_DISABLE=disabled) <= MIB


CALLS = {
    "a function of tensors": """
f = df.function(lambda x: (df.exp(x), [x + 1.0, {"sum": df.reduce_sum(x)}]))
call = lambda: f(x)
""",
    "a function of arrays and numbers": """
f = df.function(lambda x, n: x * n)
array = np.ones(1000, np.float32)
call = lambda: (f(array, 2), f(array, n=3))
""",
    "variables, assigned and read": """
v, w = df.Variable(x), df.Variable(x)
@df.function
def f(x):
    old = v.value()
    v.assign(w * 0.5)
    w.assign(old + x)
    return old, df.reduce_sum(w)
call = lambda: f(x)
""",
    "a variable with a reader": """
v = df.Variable(x)
f = df.function(lambda x: v.assign_add(x).value())
call = lambda: (f(x), v.value(), v.numpy())
""",
    "a gradient inside": """
v = df.Variable(x)
@df.function
def f(x):
    with df.GradientTape() as tape:
        y = df.reduce_sum(df.tanh(x * v))
    return tape.gradient(y, v)
call = lambda: f(x)
""",
    "a tape around": """
v = df.Variable(x)
f = df.function(lambda x: df.reduce_sum(df.tanh(x * v)))
def call():
    with df.GradientTape() as tape:
        y = f(x)
    return tape.gradient(y, v)
""",
    "intermediates in the arena": """
m = df.constant(np.ones((40, 40), np.float32))
f = df.function(lambda m: df.exp(m @ m) @ m)
call = lambda: f(m)
""",
    "parts in NumPy": """
f = df.function(lambda x: df.reduce_sum(df.sort(x * 2.0)))
call = lambda: f(x)
""",
    "an error at run time": """
f = df.function(lambda x, i: df.gather(x * 2.0, i))
far = df.constant([3, 5000])
def call():
    try:
        f(x, far)
    except df.errors.OutOfRangeError:
        return
    raise AssertionError("5000 is out of range")
""",
}


@pytest.mark.exhaustive
@pytest.mark.parametrize("what", CALLS)
def test_ten_thousand_calls_leave_memory_as_it_was(forked_answer: Callable[..., Any], what: str) -> None:
    """A reference kept at each call would be 4 MB of arrays, or half a megabyte of the smallest objects."""
    program = METER + "x = df.constant(np.ones(1000, np.float32))" + CALLS[what]
    assert forked_answer(program + "print(json.dumps(growth_of(call)))") < MIB / 4


def test_traces_go_with_their_function(forked_answer: Callable[..., Any]) -> None:
    """Machine code, graphs and tables: 200 functions later the process is as large as it was."""
    program = """
x = df.constant(np.ones(1000, np.float32))
def call():
    f = df.function(lambda x: df.reduce_sum(df.exp(x) * x))
    return f(x), f(x), f(x)
print(json.dumps(growth_of(call, warm=50, count=200)))
"""
    assert forked_answer(METER + program) < MIB


def test_short_memory_is_an_error_that_names_the_function(forked_answer: Callable[..., Any]) -> None:
    """In the first call, and in a repeated one, which goes another way; with memory back, all is well."""
    program = """
import resource
x = df.constant(np.ones(16 << 20, np.float32))

def reported(f):
    resource.setrlimit(resource.RLIMIT_AS, (resident("VmSize") + (16 << 20), -1))
    try:
        f(x)
    except df.errors.ResourceExhaustedError as error:
        return str(error)
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (-1, -1))

first = df.function(lambda x: (x * 2.0, x + 1.0), name="first")
first(df.ones([3]))  # what compiling needs is there
repeated = df.function(lambda x: (x * 2.0, x + 1.0), name="repeated")
held = repeated(x), repeated(x)  # what is freed would be there for the next call
print(json.dumps([reported(first), reported(repeated), float(repeated(x)[0][0])]))
"""
    first, repeated, value = forked_answer(METER + program)
    assert first.startswith("first needs more memory than there is")
    assert repeated.startswith("repeated needs more memory than there is")
    assert value == 2.0


def test_compilations_leaves_nothing(forked_answer: Callable[..., Any]) -> None:
    """Each of another text: of a kilobyte that LLVM kept of each, these would leave 600 KiB."""
    program = """
from dualflow.backends.llvm.runtime import jit
count = 0
def call():
    global count
    count += 1
    text = f"define double @scaled(double %x) {{ %y = fmul double %x, {count}.0  ret double %y }}"
    jit.compile_text(text, ["scaled"], {})
print(json.dumps(growth_of(call, warm=300, count=600)))
"""
    assert forked_answer(METER + program, DUALFLOW_CACHE_DIR="") < MIB / 4


def test_forgotten_traces_are_freed(forked_answer: Callable[..., Any]) -> None:
    """But for the lines of ``explain()``, of which the latest 256 are kept."""
    program = """
f = df.function(lambda x, n: df.reduce_sum(df.exp(x) * n))
count = 0
def call():
    global count
    count += 1
    f(df.constant(np.ones(10 + count, np.float32)), count)
    if count % 20 == 0:
        f.clear_cache()
print(json.dumps(growth_of(call, warm=400, count=300)))
"""
    assert forked_answer(METER + program) < MIB
