"""The C fast call of a compiled graph: a C function that passes tensors to machine code.

It serves graphs that are one native part. The values of a call are tensors, and Python values that are the
same objects as in earlier calls (True, None, a small number). Other graphs, and processes whose objects have
another memory layout than expected, have checked calls (``checked_call.py``).
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from dualflow.backends.llvm.executable import Executable
from dualflow.backends.llvm.runtime.fastcall import (
    ArraySpec,
    Descriptor,
    Fixed,
    VariableSlots,
    VariableUse,
    builtin,
    entry_library,
    probe,
    variable_slots,
)
from dualflow.core.spec import TensorSpec
from dualflow.eager.tensor import EagerTensor
from dualflow.eager.updates import borrowable
from dualflow.eager.variable import Variable
from dualflow.function.arguments.results import Packer
from dualflow.function.calls.call_form import CallForm, refuse
from dualflow.graph.compiled import Compiled
from dualflow.graph.ir import Node
from dualflow.sizes.symbolic_sizes import is_static

Fail = Callable[[Node, Callable[[], BaseException] | None, Sequence[Any], bool], None]


def c_call(
    executable: Compiled, form: CallForm | None, pack: Packer | None, fail: Fail
) -> Callable[..., Any] | None:
    """``executable`` as a C function of a call's values; None if the C code can't call it.

    Args:
        executable: a compiled graph.
        form: which of the values are its inputs; None for all, in order.
        pack: puts the results into a structure; without it they are a tuple.
        fail: called after a failure with the failing node, a function that returns the error, the inputs, and
            whether collectives are recorded; raises the error. See ``CompiledGraph.finish_failed_call``.
    """
    if not isinstance(executable, Executable):
        return None
    layout, slots = probe(EagerTensor), variable_slots(Variable)
    if layout is None or slots is None or not _is_callable_from_c(executable):
        return None
    return builtin(layout, _descriptor(executable, form, pack, fail, slots), refuse)


def prepare_c_calls() -> None:
    """Compile the code of all C fast calls, or load it from the disk, if this process can run it."""
    layout = probe(EagerTensor)
    if layout is not None:
        entry_library(layout)


def _is_callable_from_c(executable: Executable) -> bool:
    """Whether the entry code can call the graph: one function of machine code, on buffers it can provide."""
    inputs, image = executable.inputs, executable.image
    tensors = [c.source for c in inputs.captures if not c.variable]
    return (
        executable.is_one_native_part
        # each call needs a parameter table of its own where it computes sizes
        and (not image.computes_sizes or image.standalone is not None)
        # variables that are arguments can't be updated in place; captured arrays are read as they are
        and not any(i < len(inputs.arguments) for i in inputs.updated)
        and all(is_static(spec.shape) for spec in inputs.capture_specs)
        and all(type(t) is EagerTensor and t._array.flags.c_contiguous for t in tensors)
    )


def _descriptor(
    executable: Executable, form: CallForm | None, pack: Packer | None, fail: Fail, slots: VariableSlots
) -> Descriptor:
    """The description of a compiled graph that the C code reads at each call."""
    inputs, image = executable.inputs, executable.image
    uses = [
        VariableUse(capture.source, _array_spec(spec), number in inputs.updated)
        for number, (capture, spec) in enumerate(
            zip(inputs.captures, inputs.capture_specs, strict=True), start=len(inputs.arguments)
        )
        if capture.variable
    ]
    tensors = [c.source for c in inputs.captures if not c.variable]
    if image.heavy:
        for use in uses:
            if use.updated:
                borrowable(use.holder)

    def on_error(number: int, table: int, *values: Any) -> None:
        arguments = values if form is None else [values[i] for i in form.argument_indices]
        params = np.array((ctypes.c_int64 * len(image.params)).from_address(table), np.int64)
        make = partial(executable.failure, number, params) if number > 0 else None
        fail(executable.failing(number), make, arguments, image.records_collectives)

    return Descriptor(
        name=inputs.name,
        kernel=executable.entry(image.standalone or image.parts[0].entry or ""),
        inputs=[_input_spec(i, spec, image.input_sizes) for i, spec in enumerate(inputs.arguments)],
        variables=uses,
        constants=[*(t._array for t in tensors), *image.constants],
        outputs=[_output_spec(i, spec, image.output_shapes) for i, spec in enumerate(image.outputs)],
        params=executable.params,
        arena=executable.call_memory(),
        heavy=image.heavy,
        result=pack.form if pack is not None else "tuple",
        on_error=on_error,
        pack=pack.make if pack is not None else None,
        slots=slots,
        keep=(executable, *tensors),
        arguments=None if form is None else _arguments(form),
        sizes=0 if image.size_function is None else executable.entry(image.size_function),
        arena_place=image.arena_param or 0,
    )


def _arguments(form: CallForm) -> list[int | Fixed]:
    """For each value of a call, its index among the inputs, or the Python object that it must be."""
    by_index: dict[int, int | Fixed] = {index: i for i, index in enumerate(form.argument_indices)}
    by_index |= {x.argument_index: Fixed(x.value) for x in form.fixed}
    return [by_index[i] for i in range(form.arity)]


def _input_spec(number: int, spec: TensorSpec, indices: Mapping[tuple[int, int], int]) -> ArraySpec:
    """The shape and dtype of an input.

    ``indices`` are the parameters of symbolic sizes, by input and axis.
    """
    axes = [(number, axis) for axis in range(spec.rank)]
    pairs = zip(axes, spec.shape, strict=True)
    shape = [_encoded_parameter(indices[axis]) if axis in indices else d for axis, d in pairs]
    return ArraySpec(spec.dtype.dtype, tuple(shape))  # type: ignore[arg-type]  # no size is dynamic


def _output_spec(number: int, spec: TensorSpec, indices: Sequence[Sequence[int]]) -> ArraySpec:
    """The shape and dtype of an output.

    ``indices`` are the parameters of symbolic sizes, by output and axis.
    """
    if is_static(spec.shape):
        return _array_spec(spec)
    pairs = zip(spec.shape, indices[number], strict=True)
    shape = [d if type(d) is int else _encoded_parameter(index) for d, index in pairs]
    return ArraySpec(spec.dtype.dtype, tuple(shape))


def _encoded_parameter(index: int) -> int:
    """The negative number by which :class:`ArraySpec` refers to a size in a launch parameter."""
    return -1 - index


def _array_spec(spec: TensorSpec) -> ArraySpec:
    return ArraySpec(spec.dtype.dtype, tuple(spec.shape))  # type: ignore[arg-type]  # compiled graphs are static
