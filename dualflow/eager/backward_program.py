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
from dualflow.eager.tensor import EagerTensor, interned_shape, wrap
from dualflow.ops.custom_vjp import CUSTOM
from dualflow.ops.op_kinds import View
from dualflow.ops.record import COMPILED_ABOVE, REGISTRY, Op

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
        first: the slot of its first operand.
        second: that of its second operand; ``_ONE`` if it has one operand, ``_GENERAL`` if it has none, more
            than two, or several results.
        output: the slot of its first result, which may be that of an operand.
        released: the slots of arrays that no later step reads, but for those that its results replace.
        inputs: the slots of all operands.
        outputs: the slots of all results.
        single: whether its result is one array, no tuple of arrays.
        op: the op, for error messages; None if its engine writes them.
        attrs: the attributes of the op.
    """

    kernel: Callable[..., Any]
    first: int
    second: int
    output: int
    released: tuple[int, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    single: bool
    op: Op | None
    attrs: dict[str, Any]


_ONE: Final = -1
_GENERAL: Final = -2


@dataclass(frozen=True, slots=True)
class BackwardProgram:
    """The kernels of a backward pass.

    A slot holds one array after another, so an array is released when the next one replaces it.

    Attributes:
        steps: the kernels in order.
        operands: the positions of the operands that a step reads, or which are results; they are in the first
            slots.
        initial: what is in the other slots at first: the constants that rules create, then None.
        returned: the slots of operands that are results.
        results: the slot of the gradient of each source; None for a source without one.
        large: whether a step has a large operand, and runs on the engine, which may have a compiled kernel.
    """

    steps: tuple[BackwardStep, ...]
    operands: tuple[int, ...]
    initial: tuple[Array | None, ...]
    returned: tuple[int, ...]
    results: tuple[int | None, ...]
    large: bool

    def run(self, arrays: list[Any]) -> None:
        """Run the steps; ``arrays`` has the operands, and then the results in their slots.

        Arrays are released after their last use.
        """
        arrays += self.initial
        if self.large:
            self._run(arrays)
        else:
            quiet().run(self._run, arrays)

    def _run(self, arrays: list[Any]) -> None:
        step = None
        try:
            for step in self.steps:
                kernel, first, second, output, released, inputs, outputs, single, _, _ = step
                if second >= 0:
                    result = kernel(arrays[first], arrays[second])
                elif second == _ONE:
                    result = kernel(arrays[first])
                else:
                    result = kernel(*[arrays[i] for i in inputs])
                    if not single:
                        for slot, part in zip(outputs, result, strict=True):
                            arrays[slot] = as_result(part)
                        result = arrays[output]
                arrays[output] = result if type(result) is _ndarray else as_result(result)
                for slot in released:
                    arrays[slot] = None
        except Exception as error:
            if step is not None and step.op is not None:
                explain(error, step.op, tuple([wrap(arrays[i]) for i in step.inputs]), step.attrs)
            raise


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
        large = type(op.kind) is not View and any(x.spec.size > op.compiled_above for x in inputs)
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
        """The program of the steps so far, whose results are ``gradients``."""
        results = [None if g is None else self._number(g) for g in gradients]
        if not self.is_valid:
            raise NoProgramError
        reads = {n for s in self._steps for n in s.inputs}
        operands = [x.number for x in self.operands if x.number in reads or x.number in results]
        constants = [number for number, _ in self._constants.values()]
        slots = _Slots([*operands, *constants])
        large = any(s.large for s in self._steps)
        steps = [
            _step(s, slots, dead, large)
            for s, dead in zip(self._steps, self._dead({*results, *constants}), strict=True)
        ]
        initial = [tensor._array for _, tensor in self._constants.values()]
        return BackwardProgram(
            tuple(steps),
            tuple(operands),
            (*initial, *[None] * (slots.count - len(operands) - len(initial))),
            tuple([slots.of[n] for n in operands if n in results]),
            tuple([None if n is None else slots.of[n] for n in results]),
            large,
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
    what, numbers, results, single, attrs, on_engine = traced
    op = None if on_engine or not isinstance(what, Op) else what
    kernel: Callable[..., Any]
    if op is None:
        kernel = partial(_on_engine, what, attrs)
    else:
        kernel = partial(op.kernel, **attrs) if attrs else op.kernel
        if large:
            kernel = partial(_quietly, kernel)
    inputs = tuple([slots.of[n] for n in numbers])
    released = tuple(slots.take(results, dead))
    outputs = tuple([slots.of[n] for n in results])
    first, second = (*inputs, _ONE, _ONE)[:2] if single and 0 < len(inputs) < 3 else (_GENERAL, _GENERAL)
    return BackwardStep(kernel, first, second, outputs[0], released, inputs, outputs, single, op, attrs)


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
