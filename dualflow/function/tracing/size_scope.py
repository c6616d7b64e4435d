"""The guards of a trace: decisions of Python code about dynamic sizes of the trace.

Sizes that differ between calls are dynamic in a trace. Python code reads them as
:class:`~dualflow.function.tracing.guarded_size.GuardedSize`: numbers that have the value of the call that is
traced. Where Python compares such a number or needs it as an int, the outcome is part of the trace. So the
scope of the trace records a guard: the comparison, its outcome, and the line. The trace serves the calls for
whose sizes all guards have the same outcome.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

from dualflow.core.dispatch import Engine
from dualflow.core.dtypes import DType, int32, int64
from dualflow.core.errors import DualflowError
from dualflow.function.tracing.guarded_size import GuardedShape, guarded
from dualflow.function.tracing.tracer import Tracer
from dualflow.graph.origin import caller
from dualflow.graph.size_guards import SizeGuard, SizeGuards
from dualflow.graph.symbolic_size_ops import Axis
from dualflow.ops.size_formulas import SIZE_FORMULA, SizeFormula
from dualflow.sizes.abstract_size import AbstractSizeScope, symbolic_sizes_enabled
from dualflow.sizes.size_functions import equal_for_all, less_for_all
from dualflow.sizes.symbolic_sizes import SizeVariable, SymInt, evaluate_size, size_variables

_INT32_END: Final = 1 << 31


class ExactSizesRequired(DualflowError):
    """The Python code of a trace needs a size for which no guard can be recorded."""


class SizeScope(AbstractSizeScope):
    """The dynamic sizes of a trace in progress, and the guards recorded so far.

    Args:
        tracer: what the trace is recorded with.
        arguments: its arguments.
        numbers: the sizes in the traced call, by the size variable of each dynamic axis of an argument.
        axes: the axis that each size variable is the size of.
        shape_of: returns the shape of a tensor of the trace; dynamic sizes are expressions in size variables,
            None where they depend on data; raises ExactSizesRequired if there are no such expressions.
        is_read: whether the shape of a tensor of the trace was read, or that of a value computed from it.
    """

    __slots__ = (
        "_arguments",
        "_axes",
        "_guards",
        "_is_read",
        "_numbers",
        "_shape_of",
        "_tensors",
        "closed",
        "error",
        "tracer",
    )

    def __init__(
        self,
        tracer: Engine,
        arguments: Sequence[Any],
        numbers: Mapping[SizeVariable, int],
        axes: Mapping[SizeVariable, Axis],
        shape_of: Callable[[Any], Sequence[int | None]],
        is_read: Callable[[Any], bool],
    ) -> None:
        self.tracer = tracer
        self._arguments = arguments
        self._numbers = numbers
        self._axes = axes
        self._tensors: dict[tuple[SymInt, DType], Any] = {}
        self._guards: dict[tuple[bool, int, int], SizeGuard] = {}
        self._shape_of = shape_of
        self._is_read = is_read
        self.closed = False
        self.error: ExactSizesRequired | None = None

    def tensor(self, size: SymInt) -> Any:
        """``size`` as an integer scalar of the trace, of the dtype that the number has by default."""
        in_range = self.number(size) < _INT32_END
        if not self.closed:
            guard = SizeGuard(equality=False, x=size, y=_INT32_END, outcome=in_range, origin=None)
            self._guards.setdefault((False, size, _INT32_END), guard)
        dtype = int32 if in_range else int64
        tensor = self._tensors.get((size, dtype))
        if tensor is None:
            axes = [(v, self._axes[v]) for v in sorted(size_variables(size))]
            indices = sorted({i for _, (i, _) in axes})
            formula = SizeFormula(size, tuple([(v, (indices.index(i), axis)) for v, (i, axis) in axes]))
            inputs = tuple([self._arguments[i] for i in indices])
            tensor = self.tracer.run(SIZE_FORMULA, inputs, {"formula": formula, "dtype": dtype})
            self._tensors[size, dtype] = tensor
        return tensor

    def python_shape(self, tensor: Any) -> GuardedShape:
        """The shape of ``tensor`` for Python code; None for sizes that depend on data.

        Raises:
            ExactSizesRequired: a size has no expression in the sizes of the trace's arguments.
        """
        sizes = self._sizes_of(tensor)
        return GuardedShape([None if size is None else guarded(size, self) for size in sizes])

    def require_unchanged(self, argument: Any, result: Any) -> None:
        """Raise an error if a size of ``argument`` was read, and ``result`` has other sizes.

        ``argument`` is an argument of a loop's body, and ``result`` its value for the next iteration.

        Raises:
            ExactSizesRequired: a size differs, or has no expression.
        """
        if self._is_read(argument) and self._sizes_of(argument) != self._sizes_of(result):
            self.error = self.error or ExactSizesRequired(
                f"Python code reads the shape of {argument.name!r}, a loop variable whose size changes."
            )
            raise self.error

    def _sizes_of(self, tensor: Any) -> Sequence[int | None]:
        try:
            return self._shape_of(tensor)
        except ExactSizesRequired as error:
            self.error = self.error or error  # the user's code might catch it
            raise

    def number(self, size: int) -> int:
        """The value of ``size`` in the traced call."""
        return evaluate_size(size, self._numbers)

    def equal(self, x: int, y: int) -> bool:
        """Whether ``x == y`` in the traced call; records a guard if other sizes can change the result."""
        decided = equal_for_all(x, y)
        if decided is not None:
            return decided
        return self._guarded(x, y, self.number(x) == self.number(y), equality=True)

    def less(self, x: int, y: int) -> bool:
        """Whether ``x < y`` in the traced call; records a guard if other sizes can change the result."""
        decided = less_for_all(x, y)
        if decided is not None:
            return decided
        return self._guarded(x, y, self.number(x) < self.number(y), equality=False)

    def exact(self, size: int, *, of_op: bool = False) -> int:
        """The value of ``size`` in the traced call; records a guard that fixes ``size`` to it."""
        number = self.number(size)
        variables = size_variables(size)
        if len(variables) == 1 and not self.closed:  # a guard on the axis itself marks it as fixed
            (variable,) = variables
            axis_size = SymInt({(variable,): 1})
            self._guarded(axis_size, self.number(axis_size), True, equality=True, of_op=of_op)
        else:
            self._guarded(size, number, True, equality=True, of_op=of_op)
        return number

    def finish(self) -> SizeGuards:
        """The guards of the trace."""
        return SizeGuards(dict(self._axes), tuple(self._guards.values()))

    def _guarded(self, x: int, y: int, outcome: bool, *, equality: bool, of_op: bool = False) -> bool:
        if not self.closed and (isinstance(x, SymInt) or isinstance(y, SymInt)):
            guard = SizeGuard(equality, x, y, outcome, caller(), of_op)
            self._guards.setdefault((equality, x, y), guard)
        return outcome


@contextmanager
def guarded_sizes(tracer: Tracer, scope: SizeScope | None) -> Iterator[None]:
    """A context in which Python code reads dynamic sizes of a trace as those of ``scope``, if it isn't None.

    After the block the scope is closed: sizes that Python code has kept are the numbers of the traced call.

    Raises:
        ExactSizesRequired: the code needed a size that has no expression, even if it caught the error.
    """
    if scope is None:
        yield
        return
    tracer.size_scope = scope
    if not symbolic_sizes_enabled:
        symbolic_sizes_enabled.append(tracer.name)
    try:
        yield
    finally:
        scope.closed = True
    if scope.error is not None:
        raise scope.error
