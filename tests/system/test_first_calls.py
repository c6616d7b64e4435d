"""``first_call="interpret"`` in processes that fork, end, or can't compile."""

from __future__ import annotations

from typing import Any

import pytest

pytestmark = pytest.mark.llvm

SLOW = """
import json, os, signal, sys
import dualflow as df
from dualflow.core.locks import unforkable

@df.function(first_call="interpret")
def f(x):
    for i in range(60):
        x = df.tanh(x) * (1.0 + i) + df.reduce_sum(df.exp(-x * x))
    return x

x = df.constant([0.1, 0.2])
"""


def test_a_process_exits_cleanly_during_a_background_compile(answer: Any) -> None:
    assert len(answer(SLOW + "print(json.dumps(f(x).numpy().tolist()))")) == 2


def test_a_child_that_was_forked_meanwhile_compiles_for_itself(answer: Any) -> None:
    program = """
with unforkable():
    f(x)
    child = os.fork()
if child == 0:
    signal.alarm(100)  # stops a child that hangs
    f(x)
    done = f.wait_until_compiled()
    f(x)
    os._exit(0 if done and "is compiled since" in f.explain() else 1)
print(json.dumps([os.waitpid(child, 0)[1], f.wait_until_compiled()]))
"""
    assert answer(SLOW + program) == [0, True]


def test_the_call_after_a_compile_that_fails_raises_its_error(answer: Any) -> None:
    program = """
from dualflow.backends.llvm.runtime import llvm_version_check
llvm_version_check.LLVM = 20  # as if kernels were written for it
messages = []
with unforkable():
    f(x)
f.wait_until_compiled()
for _ in range(2):
    try:
        f(x)
    except df.errors.FailedPreconditionError as error:
        messages.append("kernels are written for LLVM 20" in str(error))
print(json.dumps(messages))
"""
    assert answer(SLOW + program) == [True, True]
