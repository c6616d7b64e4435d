"""The parameter table of a program: the integers that its machine code reads."""

from __future__ import annotations

from collections.abc import Sequence

from dualflow.backends.llvm.runtime.ir_source import IrSource
from dualflow.backends.llvm.steps import HEADER, LINK, StepKind
from dualflow.core.records import dataclass, field
from dualflow.sizes.size_scalars import SizeScalar
from dualflow.sizes.symbolic_sizes import SizeVariable

Parameter = int | SizeScalar
"""An integer, a symbolic size, or a scalar of sizes."""


@dataclass(slots=True, eq=False)
class ParameterTable:
    """Integers by index: the records of steps, sizes, and addresses of functions.

    Attributes:
        params: the integers; a symbolic size or a scalar of sizes until a call stores its value; 0 for an
            address.
        functions: the functions whose addresses are in the table, by index.
        size_params: the index of each size variable.
        input_sizes: the index of the size of an axis of an input, by the numbers of the input and the axis.
        block_sizes: the index of the allocated bytes of each buffer of dynamic size, by buffer.
    """

    params: list[Parameter] = field(default_factory=lambda: [*HEADER])
    functions: dict[int, IrSource] = field(default_factory=dict)
    size_params: dict[SizeVariable, int] = field(default_factory=dict)
    input_sizes: dict[tuple[int, int], int] = field(default_factory=dict)
    block_sizes: dict[int, int] = field(default_factory=dict)

    def append(self, value: Parameter) -> int:
        """Append a parameter; returns its index."""
        self.params.append(value)
        return len(self.params) - 1

    def extend(self, values: Sequence[Parameter]) -> int:
        """Append parameters; returns the index of the first."""
        self.params.extend(values)
        return len(self.params) - len(values)

    def size_param(self, variable: SizeVariable) -> int:
        """The index of a size variable."""
        if variable not in self.size_params:
            self.size_params[variable] = self.append(0)
        return self.size_params[variable]

    def input_size_param(self, axis: tuple[int, int]) -> int:
        """The index of the parameter in which each call stores the size of an input's axis."""
        if axis not in self.input_sizes:
            self.input_sizes[axis] = self.append(0)
        return self.input_sizes[axis]

    def block_size_param(self, buffer: int) -> int:
        """The index of the parameter with the allocated bytes of a buffer of dynamic size."""
        if buffer not in self.block_sizes:
            self.block_sizes[buffer] = self.append(0)
        return self.block_sizes[buffer]

    def begin_steps(self) -> int:
        """Begin a step list; returns the index of its head, 0 for the first list."""
        index = len(self.params)
        return self.extend([index, 0]) if index > len(HEADER) else 0

    def append_step(self, before: int, kind: StepKind, values: Sequence[Parameter]) -> int:
        """Append a step after the head or step at index ``before``; returns its index."""
        index = self.extend([kind, 0, *values])
        self.params[before + LINK] = index - before
        return index
