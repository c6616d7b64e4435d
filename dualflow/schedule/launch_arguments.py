"""The arguments of a kernel, collected while its statements are written."""

from __future__ import annotations

from typing import Any

import numpy as np

from dualflow.core.dtypes import as_dtype
from dualflow.core.records import dataclass, field
from dualflow.schedule.kernel import Argument
from dualflow.schedule.kernel_statements import LaunchParameter, Scalar
from dualflow.schedule.nest import NestOperand
from dualflow.sizes.size_scalars import SizeScalar


@dataclass(slots=True)
class LaunchArguments:
    """Collects the arguments that a kernel receives at each launch: buffers, strides and sizes.

    Equal buffers, parameters and scalars share an argument.
    """

    buffers: dict[Argument, int] = field(default_factory=dict)
    parameters: dict[tuple[object, int], LaunchParameter] = field(default_factory=dict)
    scalars: dict[object, tuple[Scalar, np.generic | SizeScalar]] = field(default_factory=dict)

    def buffer(self, argument: Argument) -> int:
        return self.buffers.setdefault(argument, len(self.buffers))

    def parameter(self, key: object, value: int) -> LaunchParameter:
        return self.parameters.setdefault((key, value), LaunchParameter(len(self.parameters)))

    def scalar(self, operand: NestOperand) -> Scalar:
        literal: Any = operand.literal
        scalar = self.scalars.get(operand)
        if scalar is None:
            scalar = self.scalars[operand] = Scalar(len(self.scalars), as_dtype(literal.dtype)), literal
        return scalar[0]
