"""The short way from a call to the machine code: no interpreter between the arguments and the kernels.

It serves calls with tensors and with Python values that are the objects of earlier calls (True, None, a small
number), of a graph that is one native part; every other call takes the long way. Other graphs, and all where
this process's objects are not laid out as expected, have prepared calls (``prepared_call.py``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Protocol

from dualflow.backends.llvm.executable import Executable
from dualflow.backends.llvm.runtime.fastcall import (
    ArraySpec,
    Descriptor,
    Fixed,
    VariableSlots,
    VariableUse,
    builtin,
    probe,
    variable_slots,
)
from dualflow.core.dispatch import AbstractVariable
from dualflow.core.records import replace
from dualflow.core.spec import TensorSpec
from dualflow.eager.tensor import EagerTensor
from dualflow.eager.updates import borrowable
from dualflow.eager.variable import Variable
from dualflow.function.arguments.results import Packer
from dualflow.function.calling.prepared_call import prepared_call
from dualflow.graph.compiled import Compiled
from dualflow.graph.ir import Graph, Node


class Callee(Protocol):
    """A compiled graph, as far as a built-in call of it has to know; see ``compiled_graph.py``."""

    @property
    def executable(self) -> Compiled: ...
    @property
    def optimised(self) -> Graph: ...
    @property
    def captured(self) -> tuple[Any, ...]: ...
    @property
    def written(self) -> tuple[int, ...]: ...
    @property
    def only_reads(self) -> bool: ...
    def failed(
        self, node: Node, make: Callable[[], BaseException] | None, arguments: Sequence[Any]
    ) -> None: ...


def short_way(
    callee: Callee,
    long_way: Callable[..., Any],
    pack: Packer | None = None,
    places: Sequence[int] | None = None,
    values: Sequence[Any] = (),
) -> Callable[..., Any]:
    """``callee`` as a function of positional values; what it can't serve goes to ``long_way``.

    ``pack`` puts the results into a structure; without it they are a tuple. Calls look like ``values``, of
    which those at ``places`` are the inputs; without ``places`` all values are.
    """
    executable = callee.executable
    if not isinstance(executable, Executable):
        return prepared_call(callee, long_way, pack, places, values)
    layout = probe(EagerTensor)
    slots = variable_slots(Variable)

    def fail(number: int, *given: Any) -> None:
        make = partial(executable.failure, number) if number > 0 else None
        callee.failed(
            executable.failing(number), make, given if places is None else [given[i] for i in places]
        )

    descriptor = None if layout is None or slots is None else _descriptor(callee, slots, pack, fail)
    if descriptor is not None and places is not None:
        number = {place: i for i, place in enumerate(places)}
        arguments = [number[i] if i in number else Fixed(x) for i, x in enumerate(values)]
        descriptor = replace(descriptor, arguments=arguments)
    if layout is None or descriptor is None:
        return prepared_call(callee, long_way, pack, places, values)
    return builtin(layout, descriptor, long_way)


def _descriptor(
    callee: Callee, slots: VariableSlots, pack: Packer | None, fail: Callable[..., object]
) -> Descriptor | None:
    """What the entry code needs; None where the graph needs more than it does."""
    executable = callee.executable
    assert isinstance(executable, Executable), "only it has a built-in call"
    plan, program = executable.plan, executable.program
    variables = [c for c in callee.captured if isinstance(c, AbstractVariable)]
    tensors = callee.captured[len(variables) :]
    graph = callee.optimised
    count = len(graph.arguments)
    simple = (
        len(program.parts) == 1
        and (not plan.sized or program.whole is not None)
        and program.parts[0].entry is not None
        and not plan.temporaries
        and all(i >= count for i in callee.written)
        and all(type(t) is EagerTensor and t._array.flags.c_contiguous for t in tensors)
    )
    if not simple:
        return None
    if program.heavy:
        for i in callee.written:
            borrowable(variables[i - count])
    return Descriptor(
        name=graph.name,
        kernel=executable.entry(program.whole or program.parts[0].entry or ""),
        inputs=[_array_spec(v.spec) for v in graph.arguments],
        variables=[
            VariableUse(v, _array_spec(value.spec), count + i in callee.written)
            for i, (v, value) in enumerate(zip(variables, graph.inputs[count:], strict=False))
        ],
        constants=[*(t._array for t in tensors), *plan.constants],
        outputs=[_array_spec(spec) for spec in plan.outputs],
        params=executable.params,
        arena=executable.call_memory(),
        heavy=program.heavy,
        result=pack.form if pack is not None else "tuple",
        on_error=fail,
        pack=pack.make if pack is not None else None,
        slots=slots,
        keep=(executable, *tensors),
    )


def _array_spec(spec: TensorSpec) -> ArraySpec:
    return ArraySpec(spec.dtype.dtype, tuple(spec.shape))  # type: ignore[arg-type]  # compiled graphs are static
