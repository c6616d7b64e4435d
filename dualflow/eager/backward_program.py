"""Backward programs: the NumPy kernels of a backward pass in order, on numbered arrays.

A backward pass is traced once, on tensors without values. A gradient rule that reads a value, or runs an op
that has an effect, ends the trace; such passes have no program. So a program depends on nothing but ops,
attributes, dtypes and shapes, and runs the kernels that the rules would run, on the same arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from functools import partial
from typing import Any, Final

import numpy as np

from dualflow.core.convert import Array, as_result
from dualflow.core.dispatch import Engine
from dualflow.core.dtypes import DType
from dualflow.core.numpy_warnings import quiet
from dualflow.core.records import NamedTuple, compared_fields, dataclass
from dualflow.core.shape import Shape
from dualflow.core.spec import TensorSpec
from dualflow.eager.engine import EAGER, explain
from dualflow.eager.kernel_slot import COMPILED_ABOVE
from dualflow.eager.tensor import EagerTensor, interned_shape, wrap
from dualflow.ops.custom_vjp import CUSTOM
from dualflow.ops.op_kinds import View
from dualflow.ops.record import REGISTRY, Op

_ndarray: Final = np.ndarray
_OPS: Final = "dualflow.ops."
"""The modules whose functions and classes, as attributes, are rules without state."""
_PLAIN: Final = frozenset({bool, int, float, complex, str, type(None)})
_PLAIN_BASES: Final = (Enum, DType, np.dtype)
_MAX_CONSTANT: Final = 256
"""The number of elements of the largest array that a program keeps."""


class NoProgramError(Exception):
    """A backward pass can't be traced: a rule reads a value, or runs an op that has an effect."""


def has_fixed_rules(op: Op, attrs: dict[str, Any]) -> bool:
    """Whether the gradient rules of an op are fixed: the op is registered, and its attributes are plain."""
    return (REGISTRY.get(op.name) is op or op is CUSTOM) and all(map(_is_plain, attrs.values()))


def _is_plain(value: Any) -> bool:
    """Whether an attribute is immutable data, or a rule of an op that captures only such data.

    NumPy's scalars are not, not even np.float64, which is a float: the bytes of a key have no type for them.
    """
    if type(value) in _PLAIN or isinstance(value, _PLAIN_BASES):
        return True
    if isinstance(value, tuple):
        return all(map(_is_plain, value))
    if isinstance(value, type(_is_plain)):
        return value.__module__.startswith(_OPS) and value.__closure__ is None
    if not type(value).__module__.startswith(_OPS):
        return False
    compared = compared_fields(type(value))
    return compared is not None and all(_is_plain(getattr(value, name)) for name in compared)


class UnknownTensor(EagerTensor):
    """A tensor of a backward trace: it has a shape and a dtype, and the number of an array, but no value."""

    __slots__ = ("_spec", "number", "trace")

    def __init__(self, trace: BackwardTrace, number: int, spec: TensorSpec) -> None:
        self.trace = trace
        self.number = number
        self._spec = spec

    @property
    def shape(self) -> Shape:  # type: ignore[override]  # as its base
        return self._spec.shape

    @property
    def dtype(self) -> DType:  # type: ignore[override]  # as its base
        return self._spec.dtype

    @property
    def spec(self) -> TensorSpec:  # type: ignore[override]  # as its base
        return self._spec

    @property
    def ndim(self) -> int:
        return len(self._spec.shape)

    @property
    def _array(self) -> Array:  # type: ignore[override]  # an attribute of its base
        self.trace.is_valid = False
        raise NoProgramError


class BackwardStep(NamedTuple):
    """One kernel of a program.

    Attributes:
        kernel: the kernel with its attributes.
        inputs: the numbers of its operands.
        single: whether its result is one array, no tuple of arrays.
        dead: the numbers of the arrays that no later step reads.
        op: the op, for error messages; None if its engine writes them.
        attrs: the attributes of the op.
    """

    kernel: Callable[..., Any]
    inputs: tuple[int, ...]
    single: bool
    dead: tuple[int, ...]
    op: Op | None
    attrs: dict[str, Any]


@dataclass(frozen=True, slots=True)
class BackwardProgram:
    """The kernels of a backward pass.

    Attributes:
        steps: the kernels in order.
        constants: the arrays that rules create; they are numbered after the operands.
        operands: the positions of the operands that a step reads, or which are results; they are numbered
            from 0.
        returned: the numbers of operands that are results.
        results: the number of the gradient of each source; None for a source without one.
        large: whether a step has a large operand, and runs on the engine, which may have a compiled kernel.
    """

    steps: tuple[BackwardStep, ...]
    constants: tuple[Array, ...]
    operands: tuple[int, ...]
    returned: tuple[int, ...]
    results: tuple[int | None, ...]
    large: bool

    def run(self, arrays: list[Array]) -> list[Array]:
        """All arrays after the steps; ``arrays``, those of the operands, is extended by them.

        Arrays are released after their last use.
        """
        if self.large:
            return self._run(arrays)
        results: list[Array] = quiet().run(self._run, arrays)
        return results

    def _run(self, arrays: list[Any]) -> list[Any]:
        arrays += self.constants
        step = None
        try:
            for step in self.steps:
                kernel, inputs, single, dead, _, _ = step
                if len(inputs) == 2:
                    a, b = inputs
                    result = kernel(arrays[a], arrays[b])
                elif len(inputs) == 1:
                    result = kernel(arrays[inputs[0]])
                else:
                    result = kernel(*[arrays[i] for i in inputs])
                for number in dead:
                    arrays[number] = None
                if type(result) is _ndarray:
                    arrays.append(result)
                elif single:
                    arrays.append(as_result(result))
                else:
                    arrays += [as_result(r) for r in result]
        except Exception as error:
            if step is not None and step.op is not None:
                explain(error, step.op, tuple([wrap(arrays[i]) for i in step.inputs]), step.attrs)
            raise
        return arrays


class BackwardTrace(Engine):
    """Records the kernels of a backward pass on :class:`UnknownTensor`.

    Args:
        specs: of the operands of the pass.

    Attributes:
        operands: the tensors of the operands.
        is_valid: False after a rule has read a value.
    """

    __slots__ = ("_constants", "_count", "_steps", "is_valid", "operands")
    eager = True

    def __init__(self, specs: Sequence[TensorSpec]) -> None:
        self.operands = [UnknownTensor(self, i, spec) for i, spec in enumerate(specs)]
        self.is_valid = True
        self._count = len(specs)
        self._constants: dict[int, tuple[int, EagerTensor]] = {}
        self._steps: list[_TracedStep] = []

    def run(self, op: Op, inputs: tuple[Any, ...], attrs: dict[str, Any]) -> Any:
        if op.effect is not None or not has_fixed_rules(op, attrs):
            raise NoProgramError
        numbers = tuple([self._number(x) for x in inputs])
        outputs = tuple([self._tensor(spec) for spec in op.specs([x.spec for x in inputs], attrs)])
        single = op.outputs == 1
        large = type(op.kind) is not View and any(x.spec.size > COMPILED_ABOVE for x in inputs)
        self._steps.append(_TracedStep(op, numbers, tuple([y.number for y in outputs]), single, attrs, large))
        return outputs[0] if single else outputs

    def composite(self, rule: Callable[..., Any], x: Any, attrs: dict[str, Any]) -> Any:
        first, first_number = len(self._steps), self._count
        result = rule(x, **attrs)
        if x.spec.size > COMPILED_ABOVE:
            if result.number < first_number:
                raise NoProgramError
            del self._steps[first:]
            numbers = (self._number(x),)
            self._steps.append(_TracedStep(rule, numbers, (result.number,), True, attrs, True))
        return result

    def generated(
        self, rule: Callable[..., Any], inputs: tuple[Any, ...], count: int, attrs: dict[str, Any]
    ) -> Any:
        raise NoProgramError

    def constant(self, array: Array) -> EagerTensor:
        return wrap(array)

    def shallow_copy(self, tensor: Any) -> UnknownTensor:
        return UnknownTensor(self, self._number(tensor), tensor.spec)

    def program(self, gradients: Sequence[Any]) -> BackwardProgram:
        """The program of the steps so far, whose results are ``gradients``; it has the operands' numbers."""
        results = [None if g is None else self._number(g) for g in gradients]
        if not self.is_valid:
            raise NoProgramError
        constants = [number for number, _ in self._constants.values()]
        last_reads = {n: i for i, s in enumerate(self._steps) for n in s.inputs}
        kept = {*results, *constants}
        operands = [x.number for x in self.operands if x.number in last_reads or x.number in kept]
        order = [*operands, *constants, *[n for s in self._steps for n in s.outputs]]
        place = {number: i for i, number in enumerate(order)}
        for i, s in enumerate(self._steps, start=1):
            for n in s.outputs:
                last_reads.setdefault(n, i)  # a result that no step reads
        dead: list[list[int]] = [[] for _ in range(len(self._steps) + 1)]
        for number, i in last_reads.items():
            if number not in kept:
                dead[i].append(place[number])
        large = any(s.large for s in self._steps)
        return BackwardProgram(
            tuple([_step(s, place, tuple(d), large) for s, d in zip(self._steps, dead, strict=False)]),
            tuple([tensor._array for _, tensor in self._constants.values()]),
            tuple(operands),
            tuple([place[n] for n in operands if n in kept]),
            tuple([None if n is None else place[n] for n in results]),
            large,
        )

    def _tensor(self, spec: TensorSpec) -> UnknownTensor:
        if not spec.shape.is_static:
            raise NoProgramError
        self._count += 1
        shape = tuple([n for n in spec.shape if n is not None])
        return UnknownTensor(self, self._count - 1, spec_of(shape, spec.dtype))

    def _number(self, tensor: Any) -> int:
        """The number of a tensor, which may be a constant that a rule has created."""
        if type(tensor) is UnknownTensor and tensor.trace is self:
            return tensor.number
        if type(tensor) is not EagerTensor or tensor._array.size > _MAX_CONSTANT:
            raise NoProgramError
        if id(tensor) not in self._constants:
            self._constants[id(tensor)] = self._count, tensor
            self._count += 1
        return self._constants[id(tensor)][0]


class _TracedStep(NamedTuple):
    """A step of a trace: an op or a composite function, the numbers of its inputs and outputs.

    Attributes:
        what: the op or function.
        inputs: the numbers of its operands.
        outputs: the numbers of its results.
        single: whether its result is no tuple.
        attrs: its attributes.
        large: whether an input is large enough for a compiled kernel.
    """

    what: Op | Callable[..., Any]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    single: bool
    attrs: dict[str, Any]
    large: bool


def spec_of(shape: tuple[int, ...], dtype: DType) -> TensorSpec:
    """A spec whose shape is the object that tensors of this shape have."""
    return TensorSpec.of(interned_shape(shape), dtype)


def _step(traced: _TracedStep, place: dict[int, int], dead: tuple[int, ...], large: bool) -> BackwardStep:
    """The step with final numbers; in a ``large`` program each step has a context of its own."""
    what, inputs, _, single, attrs, on_engine = traced
    operands = tuple([place[n] for n in inputs])
    if on_engine or not isinstance(what, Op):
        return BackwardStep(partial(_on_engine, what, attrs), operands, single, dead, None, attrs)
    kernel = partial(what.kernel, **attrs) if attrs else what.kernel
    if large:
        kernel = partial(_quietly, kernel)
    return BackwardStep(kernel, operands, single, dead, what, attrs)


def _on_engine(what: Op | Callable[..., Any], attrs: dict[str, Any], *arrays: Array) -> Any:
    """The result of an op or a composite function on the eager engine, which may have a compiled kernel."""
    tensors = tuple([wrap(a) for a in arrays])
    if isinstance(what, Op):
        result = EAGER.run(what, tensors, attrs)
    else:
        result = EAGER.composite(what, tensors[0], attrs)
    return [y._array for y in result] if type(result) is tuple else result._array


def _quietly(kernel: Callable[..., Any], *arrays: Array) -> Any:
    return quiet().run(kernel, *arrays)
