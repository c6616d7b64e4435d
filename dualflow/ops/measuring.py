"""The shape of a tensor as an integer tensor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from dualflow.core import dispatch
from dualflow.core.dtypes import DType, int32
from dualflow.core.records import dataclass
from dualflow.core.shape import Shape
from dualflow.core.size_functions import substitute
from dualflow.core.spec import TensorSpec
from dualflow.core.symbolic_sizes import SizeVariable, SymInt, is_static
from dualflow.ops.op_kinds import Decompose, SizeVector
from dualflow.ops.record import REGISTRY, Op, register
from dualflow.ops.samples import Domain, Sample

SIZES = register(
    Op(
        name="sizes",
        doc="""The integers ``values``.""",
        infer=lambda values, dtype: TensorSpec.of(Shape([len(values)]), dtype),
        kernel=lambda values, dtype: np.array(values, dtype.dtype),
        kind=SizeVector(),
        samples=(Sample((), {"values": (2, 3), "dtype": int32}),),
    )
)


def _known_shape(read: Any, x: Any, dtype: DType) -> Any:
    engine, sizes = dispatch.current(), tuple(x.shape)
    if is_static(sizes):
        return engine.constant(np.array(sizes, dtype.dtype))
    return engine.apply(SIZES, (), {"values": sizes, "dtype": dtype})


SHAPE = register(
    Op(
        name="shape",
        doc="""The sizes of ``x``, if they are known at run time only.""",
        infer=lambda x, dtype: TensorSpec.of(Shape([len(x.shape)]), dtype),
        kernel=lambda x, dtype: np.array(x.shape, dtype.dtype),
        kind=Decompose(_known_shape),
        strings=True,
        samples=(Sample((Domain(-50, 50, "fib", (2, 3)),), {"dtype": int32}),),
    )
)


def sizes_of(x: Any, dtype: DType = int32) -> Any:
    """The sizes of the tensor ``x`` as a tensor of one axis."""
    engine = dispatch.current()
    if x.shape.is_static:
        return engine.constant(np.array(x.shape, dtype.dtype))
    return engine.apply(SHAPE, (x,), {"dtype": dtype})


@dataclass(frozen=True, slots=True)
class SizeFormula:
    """A number that is computed from sizes of the inputs of a node.

    Attributes:
        size: the expression, in size variables.
        axes: for each size variable the number of the input, and the axis, that it is the size of.
    """

    size: SymInt
    axes: tuple[tuple[SizeVariable, tuple[int, int]], ...]

    def of(self, shapes: Sequence[Sequence[Any]]) -> int:
        """The number, or the expression of symbolic sizes, for inputs of these shapes."""
        return substitute(self.size, {v: shapes[place][axis] for v, (place, axis) in self.axes})

    def __repr__(self) -> str:
        where = ", ".join(f"{v.name} = axis {axis} of input {place}" for v, (place, axis) in self.axes)
        return f"{self.size!r} with {where}"


def _known_number(read: Any, *inputs: Any, formula: SizeFormula, dtype: DType) -> Any:
    engine = dispatch.current()
    number = formula.of([tuple(x.shape) for x in inputs])
    if type(number) is int:
        return engine.constant(np.array(number, dtype.dtype))
    vector = engine.apply(SIZES, (), {"values": (number,), "dtype": dtype})
    return engine.apply(REGISTRY["reshape"], (vector,), {"shape": Shape(())})


SIZE_FORMULA: Final = Op(
    name="size_formula",
    doc="""The integer scalar that ``formula`` computes from the sizes of the inputs.""",
    infer=lambda *inputs, formula, dtype: TensorSpec.of(Shape(()), dtype),
    kernel=lambda *arrays, formula, dtype: np.array(formula.of([x.shape for x in arrays]), dtype.dtype),
    kind=Decompose(_known_number),
    strings=True,
)
