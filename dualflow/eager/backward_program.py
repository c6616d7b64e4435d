"""Backward programs: the NumPy kernels of a backward pass in order, as one function of arrays.

A backward pass is traced once, on tensors without values. A gradient rule that reads a value, or runs an op
that has an effect, ends the trace; such passes have no program. So a program depends on nothing but ops,
attributes, dtypes and shapes, and runs the kernels that the rules would run, on the same arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from enum import Enum
from functools import partial
from typing import Any, Final

import numpy as np

from dualflow.core.convert import Array
from dualflow.core.dispatch import Engine
from dualflow.core.dtypes import DType
from dualflow.core.exact_equality import exact_attrs
from dualflow.core.numpy_warnings import quiet
from dualflow.core.records import NamedTuple, compared_fields, dataclass
from dualflow.core.shape import Shape
from dualflow.core.spec import TensorSpec
from dualflow.eager.backward_source import (
    FIRST_LINE,
    BackwardFunction,
    BackwardStep,
    Returns,
    function_of,
    slot,
)
from dualflow.eager.engine import EAGER, explain
from dualflow.eager.tensor import EagerTensor, interned_shape, wrap
from dualflow.ops.broadcasting import BROADCAST_TO
from dualflow.ops.custom_vjp import CUSTOM
from dualflow.ops.op_kinds import View
from dualflow.ops.record import COMPILED_ABOVE, REGISTRY, Op

_OPS: Final = "dualflow.ops."
"""The modules whose functions and classes, as attributes, are rules without state."""
_PLAIN: Final = frozenset({bool, int, float, complex, str, type(None)})
_PLAIN_BASES: Final = (Enum, DType, np.dtype)
_ARITHMETIC: Final = (np.add, np.subtract, np.multiply, np.divide)
_SMALL: Final = 1 << 12
"""The number of elements up to which equal steps share a result, which is then kept until its last use."""
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


@dataclass(frozen=True, slots=True)
class BackwardProgram:
    """The kernels of a backward pass.

    A slot holds one array after another, so an array is released when the next one replaces it.

    Attributes:
        steps: the kernels in order.
        operands: the positions of the operands that a step reads, or which are results; they are in the first
            slots, and the constants that rules create in the next.
        returned: the operands that are results: the slot and the position of each.
        results: the slot of the gradient of each source; None for a source without one.
        separate: whether each source has a gradient, which is no operand and no other's.
        function: the steps as a function.
        large: whether a step has a large operand, and runs on the engine, which may have a compiled kernel.
    """

    steps: tuple[BackwardStep, ...]
    operands: tuple[int, ...]
    returned: tuple[tuple[int, int], ...]
    results: tuple[int | None, ...]
    separate: bool
    function: BackwardFunction
    large: bool

    def run(self, arrays: list[Any]) -> tuple[Any, ...]:
        """The arrays of ``results``; None for a source without a gradient.

        ``arrays`` has those of the operands, which are released after their last use.
        """
        try:
            return self.function(arrays) if self.large else quiet().run(self.function, arrays)
        except Exception as error:
            self._explain(error)
            raise

    def _explain(self, error: Exception) -> None:
        """Raise the error of the op whose kernel has failed, as the eager engine does."""
        frames = error.__traceback__
        while frames is not None and frames.tb_frame.f_code is not self.function.__code__:
            frames = frames.tb_next
        step = None if frames is None else self.steps[frames.tb_lineno - FIRST_LINE]
        if frames is not None and step is not None and step.op is not None:
            variables = {**self.function.__globals__, **frames.tb_frame.f_locals}
            explain(error, step.op, tuple([wrap(variables[slot(n)]) for n in step.inputs]), step.attrs)


class BackwardTrace(Engine):
    """Records the kernels of a backward pass on :class:`UnknownTensor`.

    Args:
        specs: of the operands of the pass.

    Attributes:
        operands: the tensors of the operands.
        is_valid: False after a rule has read a value.
    """

    __slots__ = ("_constants", "_count", "_results", "_scalars", "_steps", "is_valid", "operands")
    eager = True

    def __init__(self, specs: Sequence[TensorSpec]) -> None:
        self.operands = [UnknownTensor(self, i, spec) for i, spec in enumerate(specs)]
        self.is_valid = True
        self._count = len(specs)
        self._constants: dict[int, tuple[int, EagerTensor]] = {}
        self._steps: list[_TracedStep] = []
        self._results: dict[Hashable, tuple[UnknownTensor, ...]] = {}
        self._scalars: dict[int, int] = {}

    def run(self, op: Op, inputs: tuple[Any, ...], attrs: dict[str, Any]) -> Any:
        if op.effect is not None or not has_fixed_rules(op, attrs):
            raise NoProgramError
        numbers = self._unrepeated(op, inputs, tuple([self._number(x) for x in inputs]))
        key = op, numbers, exact_attrs(attrs)
        outputs = self._results.get(key) or self._new_step(op, inputs, numbers, attrs)
        if all(y.spec.size <= _SMALL for y in outputs):
            self._results[key] = outputs
        if op is BROADCAST_TO and not inputs[0].ndim:
            self._scalars[outputs[0].number] = numbers[0]
        return outputs[0] if op.outputs == 1 else outputs

    def _unrepeated(self, op: Op, inputs: tuple[Any, ...], numbers: tuple[int, ...]) -> tuple[int, ...]:
        """The numbers of the inputs of a step; arithmetic reads a scalar where an input is its repetition.

        NumPy's results have the same bits, as the other input has the shape of the result.
        """
        if op.kernel in _ARITHMETIC and inputs[0].spec.size <= _SMALL:
            (x, y), (first, second) = inputs, numbers
            if first in self._scalars and second not in self._scalars and y.shape == x.shape:
                return self._scalars[first], second
            if second in self._scalars and first not in self._scalars and x.shape == y.shape:
                return first, self._scalars[second]
        return numbers

    def _new_step(
        self, op: Op, inputs: tuple[Any, ...], numbers: tuple[int, ...], attrs: dict[str, Any]
    ) -> tuple[UnknownTensor, ...]:
        outputs = tuple([self._tensor(spec) for spec in op.specs([x.spec for x in inputs], attrs)])
        large = type(op.kind) is not View and any(x.spec.size > op.compiled_above for x in inputs)
        returns = _returns(op, outputs[0])
        self._steps.append(
            _TracedStep(op, numbers, tuple([y.number for y in outputs]), returns, attrs, large)
        )
        return outputs

    def composite(self, rule: Callable[..., Any], x: Any, attrs: dict[str, Any]) -> Any:
        first, first_number = len(self._steps), self._count
        result = rule(x, **attrs)
        if x.spec.size > COMPILED_ABOVE:
            if result.number < first_number:
                raise NoProgramError
            del self._steps[first:]
            self._results.clear()
            self._scalars.clear()
            numbers = (self._number(x),)
            self._steps.append(_TracedStep(rule, numbers, (result.number,), Returns.ARRAY, attrs, True))
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
        """The program of the steps so far, whose results are ``gradients``."""
        results = [None if g is None else self._number(g) for g in gradients]
        if not self.is_valid:
            raise NoProgramError
        reads = {n for s in self._steps for n in s.inputs}.union(results)
        self._steps = [s for s in self._steps if s.what is not BROADCAST_TO or s.outputs[0] in reads]
        reads = {n for s in self._steps for n in s.inputs}
        operands = [x.number for x in self.operands if x.number in reads or x.number in results]
        constants = {number: tensor._array for number, tensor in self._constants.values()}
        slots = _Slots([*operands, *constants])
        large = any(s.large for s in self._steps)
        steps = [
            _step(s, slots, dead, large)
            for s, dead in zip(self._steps, self._dead({*results, *constants}), strict=True)
        ]
        slots_of_results = tuple([None if n is None else slots.of[n] for n in results])
        function = function_of(steps, len(operands), list(constants.values()), slots_of_results)
        returned = tuple([(slots.of[n], n) for n in operands if n in results])
        separate = not returned and len({*results, None}) == len(results) + 1
        return BackwardProgram(
            tuple(steps), tuple(operands), returned, slots_of_results, separate, function, large
        )

    def _dead(self, kept: set[int | None]) -> list[list[int]]:
        """For each step the numbers that no later one reads; the next step has those of unread results."""
        last = {n: i for i, s in enumerate(self._steps) for n in s.inputs}
        for i, s in enumerate(self._steps, start=1):
            for n in s.outputs:
                last.setdefault(n, i)
        dead: list[list[int]] = [[] for _ in self._steps]
        for n, i in last.items():
            if n not in kept and i < len(dead):
                dead[i].append(n)
        return dead

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
        returns: what its kernel returns.
        attrs: its attributes.
        large: whether an input is large enough for a compiled kernel.
    """

    what: Op | Callable[..., Any]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    returns: Returns
    attrs: dict[str, Any]
    large: bool


def _returns(op: Op, output: UnknownTensor) -> Returns:
    """What the kernel of an op returns, whose first result is ``output``."""
    if op.outputs != 1:
        return Returns.SEVERAL
    return Returns.ARRAY if output.ndim else Returns.SCALAR


def spec_of(shape: tuple[int, ...], dtype: DType) -> TensorSpec:
    """A spec whose shape is the object that tensors of this shape have."""
    return TensorSpec.of(interned_shape(shape), dtype)


class _Slots:
    """The slots of numbered arrays; those of dead arrays are used again.

    Attributes:
        of: the slot of each array by its number.
        count: the number of slots.
    """

    def __init__(self, numbers: Sequence[int]) -> None:
        self.of = {n: i for i, n in enumerate(numbers)}
        self.count = len(numbers)
        self._free: list[int] = []

    def take(self, numbers: Sequence[int], dead: Sequence[int]) -> list[int]:
        """Find slots for new arrays, if possible those of dead ones; returns the other slots of these."""
        released = [self.of[n] for n in dead]
        for n in numbers:
            if released:
                self.of[n] = released.pop()
            elif self._free:
                self.of[n] = self._free.pop()
            else:
                self.of[n] = self.count
                self.count += 1
        self._free += released
        return released


def _step(traced: _TracedStep, slots: _Slots, dead: Sequence[int], large: bool) -> BackwardStep:
    """The step with its slots; in a ``large`` program each step has a context of its own."""
    what, numbers, results, returns, attrs, on_engine = traced
    op = None if on_engine or not isinstance(what, Op) else what
    kernel: Callable[..., Any] = partial(_on_engine, what, attrs) if op is None else op.kernel
    if large and op is not None:
        kernel = partial(_quietly, kernel)
    inputs = tuple([slots.of[n] for n in numbers])
    released = tuple(slots.take(results, dead))
    outputs = tuple([slots.of[n] for n in results])
    return BackwardStep(kernel, {} if op is None else attrs, inputs, outputs, released, returns, op)


def _on_engine(what: Op | Callable[..., Any], attrs: dict[str, Any], *arrays: Array) -> Any:
    """The result of an op or a composite function on the eager engine, which may have a compiled kernel."""
    tensors = tuple([wrap(a) for a in arrays])
    if isinstance(what, Op):
        result = EAGER.run(what, tensors, attrs)
    else:
        result = EAGER.composite(what, tensors[0], attrs)
    return [y._array for y in result] if type(result) is tuple else result._array


def _quietly(kernel: Callable[..., Any], *arrays: Array, **attrs: Any) -> Any:
    return quiet().run(kernel, *arrays, **attrs)
