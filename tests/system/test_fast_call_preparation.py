"""The thread that prepares the C fast call: calls go on, and the process may fork and end meanwhile."""

from __future__ import annotations

from typing import Any

import pytest

pytestmark = pytest.mark.llvm

HELD = """
import contextlib, json, os, signal, sys
import dualflow as df
from dualflow.core.locks import unforkable
from dualflow.function.calls.fast_paths import MIN_CALLS, Preparation

f = df.function(lambda x: x + 1.0)
x = df.constant([1.0, 2.0])

def python_calls():
    calls = []
    sys.setprofile(lambda frame, event, arg: calls.append(frame) if event == "call" else None)
    try:
        result = f(x)
    finally:
        sys.setprofile(None)
    return result.numpy().tolist(), len(calls)

held = contextlib.ExitStack()
held.enter_context(unforkable())  # the thread waits
for _ in range(MIN_CALLS + 5):
    f(x)
early = python_calls()
"""


def test_calls_are_checked_calls_until_a_thread_has_prepared_the_code(answer: Any) -> None:
    program = """
held.close()
Preparation.thread.join()
for _ in range(2):
    f(x)
print(json.dumps([early, python_calls()]))
"""
    (early, early_calls), (late, late_calls) = answer(HELD + program)
    assert early == late == [2.0, 3.0]
    assert late_calls < early_calls


def test_a_child_that_was_forked_meanwhile_prepares_the_code_itself(answer: Any) -> None:
    program = """
child = os.fork() if Preparation.thread.is_alive() else None
held.close()
if child == 0:
    signal.alarm(100)  # stops a child that hangs
    for _ in range(2):
        f(x)
    result, calls = python_calls()
    os._exit(0 if result == [2.0, 3.0] and calls < early[1] else 1)
print(json.dumps(os.waitpid(child, 0)[1]))
"""
    assert answer(HELD + program) == 0


def test_a_process_exits_cleanly_while_the_code_is_prepared(answer: Any) -> None:
    assert answer(HELD + "print(json.dumps(early[0])); held.close()") == [2.0, 3.0]
