"""``compare``: a function run eagerly beside the same function as a compiled graph."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dualflow.core import dispatch
from dualflow.core.dispatch import AbstractVariable
from dualflow.core.errors import DTypeError, FailedPreconditionError
from dualflow.core.tree import flatten
from dualflow.eager.engine import EAGER
from dualflow.function.buffers import gather
from dualflow.function.comparison import Comparison, Costs, Difference, Fused, Part
from dualflow.function.concrete import ConcreteFunction
from dualflow.function.decorator import Function, function
from dualflow.function.measure import Counting, State, best_times, functions_running, peak_bytes
from dualflow.function.method import BoundFunction
from dualflow.graph.ir import Node
from dualflow.graph.passes import optimise
from dualflow.native import compiler, threads
from dualflow.native.executable import KEPT_ARENA, Executable
from dualflow.native.plan import plan
from dualflow.native.program import Kernel, write

Array = np.ndarray[Any, Any]
_COST_RUNS = 3


def compare(f: Any, *args: Any, **kwargs: Any) -> Comparison:
    """Run ``f(*args, **kwargs)`` eagerly and as a compiled graph, and measure both.

    The function is called some hundred times each way, for about a second in all, or a few times if a call is
    long. Variables and random generators are put back afterwards, and before each measurement, so that comparing
    a training step trains nothing. What Python code does besides, such as printing or appending to a list, happens
    at each eager call; functions that ``f`` calls run eagerly too in these.

    Args:
        f: a :func:`dualflow.function`, or a plain function, which is made one.
        args: as for a call of ``f``.
        kwargs: likewise.

    Returns:
        The figures; print them for a table.

    Raises:
        DTypeError: ``f`` can't be called.
        FailedPreconditionError: called while a function is traced or a tape records.

    >>> import dualflow as df
    >>> report = compare(lambda x: df.reduce_sum(df.exp(x) * 2.0), df.ones([8]))
    >>> report.kernels, report.eager_ops, report.difference.agrees
    (1, {'exp': 1, 'multiply': 1, 'reduce_sum': 1}, True)
    """
    if dispatch.current() is not EAGER:
        raise FailedPreconditionError(
            "compare runs the function many times and can't be traced or recorded: call it outside of functions "
            "and tapes."
        )
    if not callable(f):
        raise DTypeError(f"compare takes a function and its arguments; {f!r} can't be called.")
    traced = f if isinstance(f, Function | BoundFunction) else function(f)
    concrete = traced.get_concrete_function(*args, **kwargs)
    inputs = traced.bind(args, kwargs).inputs
    variables = [*concrete.variables, *(x for x in inputs if isinstance(x, AbstractVariable))]
    state = State(concrete.graph, variables)
    try:
        return _Comparing(traced, concrete, inputs, state, args, kwargs).report()
    finally:
        state.restore()
