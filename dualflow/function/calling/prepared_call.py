"""The short way of a compiled graph that needs the interpreter, as one with host calls does.

Arguments that are tensors like the first call's go to the executable at once: nobody binds them to a
signature, looks for a trace or claims variables.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from dualflow.eager.tensor import EagerTensor, wrap
from dualflow.function.arguments.results import Packer
from dualflow.function.calling.array_ownership import gather
from dualflow.graph.compiled import Compiled
from dualflow.graph.ir import Graph


class Prepared(Protocol):
    """A compiled graph, as far as a prepared call has to know."""

    @property
    def executable(self) -> Compiled: ...
    @property
    def optimised(self) -> Graph: ...
    @property
    def captured(self) -> tuple[Any, ...]: ...
    @property
    def only_reads(self) -> bool: ...


def prepared_call(
    callee: Prepared,
    long_way: Callable[..., Any],
    pack: Packer | None = None,
    places: Sequence[int] | None = None,
    values: Sequence[Any] = (),
) -> Callable[..., Any]:
    """``callee`` as a function of positional values; see ``short_way`` in ``builtin_call.py``.

    It is ``long_way`` itself for graphs that change variables, or whose inputs have no one shape.
    """
    specs = [v.spec for v in callee.optimised.arguments]
    if not callee.only_reads or not all(type(d) is int for spec in specs for d in spec.shape):
        return long_way
    order = range(len(specs)) if places is None else places
    expected = [(i, spec.dtype.dtype, tuple(spec.shape)) for i, spec in zip(order, specs, strict=True)]
    fixed = [(i, x) for i, x in enumerate(values) if places is not None and i not in places]
    count = len(expected) + len(fixed)
    run, captured = callee.executable.run, callee.captured

    def call(*given: Any) -> Any:
        if len(given) != count:
            return long_way(*given)
        arrays = []
        for i, dtype, shape in expected:
            x = given[i]
            if type(x) is not EagerTensor:
                return long_way(*given)
            array = x._array
            if array.dtype is not dtype or array.shape != shape or not array.flags.c_contiguous:
                return long_way(*given)
            arrays.append(array)
        for i, value in fixed:
            if given[i] is not value:
                return long_way(*given)
        if captured:
            arrays += gather(captured)
        results = [wrap(x) for x in run(arrays)]
        return tuple(results) if pack is None else pack(results)

    return call
