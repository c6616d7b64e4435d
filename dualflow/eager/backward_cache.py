"""The gradients of a tape, by the backward program of earlier tapes with the same structure.

The structure is all that a backward pass depends on but values: the ops, their attributes, which value each
input is, the dtypes and shapes of the values that no op of the tape computes, targets and sources.
"""

from __future__ import annotations

import functools
from collections.abc import Hashable, Sequence
from marshal import dumps
from typing import Any, Final

from dualflow.core import dispatch
from dualflow.core.exact_equality import exact_attrs
from dualflow.eager.backward_program import (
    BackwardProgram,
    BackwardTrace,
    NoProgramError,
    has_fixed_rules,
    spec_of,
)
from dualflow.eager.engine import EagerEngine
from dualflow.eager.tensor import EagerTensor, wrap
from dualflow.gradient.sweep import Records, sweep
from dualflow.ops.arithmetic import add
from dualflow.ops.complex_numbers import conj

OCCURRENCES: Final = 6
"""The number of a structure's pass that is traced, which takes as long as some ten passes by the rules."""
_MAX_RECORDS: Final = 2048
"""The number of records of the longest tape that has a program."""
_MAX_STRUCTURES: Final = 256
_MAX_STEPS: Final = 1 << 16
"""The number of steps of all programs, of a kilobyte each."""
_NO_PROGRAM: Final = object()
"""The entry of a structure whose backward pass can't be traced."""
_programs: Final[dict[Hashable, Any]] = {}
"""The program of each structure; before it is traced, how often it has occurred."""

Groups = Sequence[Sequence[Any]]
"""For each source, the tensors whose cotangents add up to its gradient."""


class _Pass:
    """A backward pass: its structure, and its operands.

    Attributes:
        key: the structure.
        operands: the tensors of the tape, then the targets that it has not computed, and the weights.
        numbers: the number of each operand that is no weight, by its id.
        weights: the numbers of the weights.
    """

    __slots__ = ("key", "numbers", "operands", "weights")

    def __init__(
        self, key: Hashable, operands: list[EagerTensor], numbers: dict[int, int], weights: list[int]
    ) -> None:
        self.key = key
        self.operands = operands
        self.numbers = numbers
        self.weights = weights


def gradients_of_groups(
    records: Records, targets: Sequence[Any], weights: Sequence[Any], groups: Groups
) -> list[Any]:
    """The gradient of the weighted targets for each source; None if the targets don't depend on it.

    The records are consumed.
    """
    gradients = _by_program(records, targets, weights, groups)
    return _swept(records, targets, weights, groups) if gradients is None else gradients


def _by_program(
    records: Records, targets: Sequence[Any], weights: Sequence[Any], groups: Groups
) -> list[Any] | None:
    """The gradients by a program, which consumes the records; None if there is none."""
    if type(dispatch.current()) is not EagerEngine or len(records) > _MAX_RECORDS:
        return None
    eager_pass = _eager_pass(records, targets, weights, groups)
    if eager_pass is None:
        return None
    program = _programs.get(eager_pass.key, 0)
    if type(program) is not BackwardProgram:
        program = _new_program(eager_pass, program, records, targets, groups)
        if program is None:
            return None
    records.clear()
    return _replayed(program, eager_pass.operands)


def _swept(records: Records, targets: Sequence[Any], weights: Sequence[Any], groups: Groups) -> list[Any]:
    cotangents = [conj(w) if w.dtype.is_complex else w for w in weights]
    source_cotangents = iter(sweep(records, targets, cotangents, [x for group in groups for x in group]))
    return [_gradient([next(source_cotangents) for _ in group]) for group in groups]


def _gradient(cotangents: list[Any]) -> Any:
    """The sum of cotangents, conjugated as TensorFlow's gradients are."""
    parts = [c for c in cotangents if c is not None]
    if not parts:
        return None
    total = functools.reduce(add, parts)
    return conj(total) if total.dtype.is_complex else total


def _eager_pass(
    records: Records, targets: Sequence[Any], weights: Sequence[Any], groups: Groups
) -> _Pass | None:
    """The backward pass over the records; None if one of its tensors isn't a plain eager one."""
    ops: list[Any] = []
    inputs_of_ops: list[int] = []
    leaves: list[Any] = []
    operands: list[EagerTensor] = []
    numbers: dict[int, int] = {}
    count = 0
    for op, inputs, outputs, attrs in records:
        ops.append(op)
        if attrs:
            ops.append(_attrs_key(attrs))
        for x in inputs:
            identity = id(x)
            if identity not in numbers:
                if type(x) is not EagerTensor:
                    return None
                numbers[identity] = count
                count += 1
                operands.append(x)
                array = x._array
                leaves.append(array.shape)
                leaves.append(array.dtype)
            inputs_of_ops.append(numbers[identity])
        inputs_of_ops.append(-1)
        for y in outputs:
            identity = id(y)
            if type(y) is not EagerTensor or identity in numbers:
                return None
            numbers[identity] = count
            count += 1
            operands.append(y)
    numbers_of_targets: list[int] = []
    numbers_of_weights: list[int] = []
    for target, weight in zip(targets, weights, strict=True):
        if type(target) is not EagerTensor or type(weight) is not EagerTensor:
            return None
        if id(target) not in numbers:
            numbers[id(target)] = len(operands)
            operands.append(target)
            leaves += (target._array.shape, target._array.dtype)
        numbers_of_targets.append(numbers[id(target)])
        numbers_of_weights.append(len(operands))
        operands.append(weight)
        leaves += (weight._array.shape, weight._array.dtype)
    sources: list[int | None] = []
    for group in groups:
        sources += map(numbers.get, map(id, group))
        sources.append(-1)
    key = tuple(ops), tuple(inputs_of_ops), tuple(leaves), tuple(numbers_of_targets), tuple(sources)
    return _Pass(key, operands, numbers, numbers_of_weights)


def _attrs_key(attrs: dict[str, Any]) -> Hashable:
    """A key of attributes by type and bits: their bytes if they are numbers, strings and tuples of these."""
    try:
        return dumps(attrs, _WITHOUT_REFERENCES)
    except ValueError:
        return exact_attrs(attrs)


_WITHOUT_REFERENCES: Final = 2
"""The version of marshal's format in which equal objects have equal bytes."""


def _new_program(
    eager_pass: _Pass, cached: Any, records: Records, targets: Sequence[Any], groups: Groups
) -> BackwardProgram | None:
    """The program of a pass whose structure has occurred often enough; None for others."""
    if cached is _NO_PROGRAM or not (cached or _have_fixed_rules(records)):
        return None
    entry = cached + 1
    program = None
    if entry >= OCCURRENCES:
        try:
            entry = program = _traced(eager_pass, records, targets, groups)
        except Exception:  # the pass is computed without a program, and raises the error of a rule
            entry = _NO_PROGRAM
    if not cached or program is not None:
        _make_space(0 if program is None else len(program.steps))
    _programs[eager_pass.key] = entry
    return program


def _have_fixed_rules(records: Records) -> bool:
    return all(has_fixed_rules(op, attrs) for op, _, _, attrs in records)


def _make_space(steps: int) -> None:
    """Remove the oldest entries until there is space for another structure, whose program has ``steps``."""
    entries = list(_programs.items())
    steps += sum(len(x.steps) for _, x in entries if type(x) is BackwardProgram)
    count = len(entries)
    for key, entry in entries:
        if count < _MAX_STRUCTURES and steps <= _MAX_STEPS:
            break
        _programs.pop(key, None)
        count -= 1
        steps -= len(entry.steps) if type(entry) is BackwardProgram else 0


def _traced(eager_pass: _Pass, records: Records, targets: Sequence[Any], groups: Groups) -> BackwardProgram:
    """The program of a pass, by a trace of its sweep.

    Raises:
        NoProgramError: a rule reads a value, or the shape of a result depends on values.
    """
    for op, inputs, outputs, attrs in records:
        if op.specs([x.spec for x in inputs], attrs) != tuple([y.spec for y in outputs]):
            raise NoProgramError
    trace = BackwardTrace([spec_of(x._array.shape, x.dtype) for x in eager_pass.operands])
    operands = trace.operands
    numbers = eager_pass.numbers

    def unknown(tensor: Any) -> Any:
        """The tensor of the trace; another object for a source that the tape doesn't use."""
        number = numbers.get(id(tensor))
        return object() if number is None else operands[number]

    with dispatch.using(trace):
        gradients = _swept(
            [(op, tuple(map(unknown, xs)), tuple(map(unknown, ys)), attrs) for op, xs, ys, attrs in records],
            [unknown(t) for t in targets],
            [operands[n] for n in eager_pass.weights],
            [[unknown(x) for x in group] for group in groups],
        )
    return trace.program(gradients)


def _replayed(program: BackwardProgram, operands: list[EagerTensor]) -> list[Any]:
    """The gradients that a program computes of the operands, which it releases after their last use."""
    arrays = [operands[n]._array for n in program.operands]
    if program.separate:
        operands.clear()
        return list(map(wrap, program.run(arrays)))
    tensors: dict[int | None, Any] = {None: None}
    tensors |= {slot: operands[operand] for slot, operand in program.returned}
    operands.clear()
    for slot, array in zip(program.results, program.run(arrays), strict=True):
        if slot not in tensors:
            tensors[slot] = wrap(array)
    return [tensors[slot] for slot in program.results]
