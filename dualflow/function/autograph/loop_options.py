"""``set_loop_options``: options of a loop, set in its body."""

from __future__ import annotations

from collections.abc import Sequence
from contextvars import ContextVar, Token
from typing import TYPE_CHECKING, Any, Final

from dualflow.core.dispatch import AbstractComposite
from dualflow.core.errors import InvalidArgumentError
from dualflow.core.shape import UNKNOWN_RANK, Shape, as_shape
from dualflow.core.tracebacks import entry
from dualflow.function.control.shape_invariants import (
    composite_invariants,
    is_array_invariant,
    matches_invariant,
)
from dualflow.function.errors import here
from dualflow.function.tracing.symbolic_tensor import SymbolicTensor
from dualflow.ops.static import static_int

if TYPE_CHECKING:
    from typing import SupportsInt


class LoopOptions:
    """The options that one trace of a body has set.

    Attributes:
        shapes: pairs of a tensor at the start of an iteration, and its shape in all iterations.
        max_iterations: the largest number of iterations; None for no limit.
    """

    def __init__(self) -> None:
        self.shapes: list[tuple[Any, Shape]] = []
        self.max_iterations: int | None = None

    def invariants(self, leaves: Sequence[Any]) -> list[Shape | None]:
        """The shape invariant of each carried leaf; None if there is none.

        Raises:
            InvalidArgumentError: there is an invariant for a tensor that is not carried.
        """
        shapes: list[Shape | None] = [None] * len(leaves)
        for x, shape in self.shapes:
            matches = [
                i for i, leaf in enumerate(leaves) if type(x) is SymbolicTensor and x._value is leaf._value
            ]
            if not matches:
                raise InvalidArgumentError(
                    f"set_loop_options has a shape for {x!r}, which is no variable of the loop at the start "
                    f"of an iteration; call it first in the body.{here()}"
                )
            shapes[matches[0]] = shape
        return shapes


_current: Final[ContextVar[LoopOptions | None]] = ContextVar("dualflow_loop_options", default=None)


class loop_options:
    """A context in which :func:`set_loop_options` sets ``options``; it does nothing if they are None."""

    __slots__ = ("_options", "_token")

    def __init__(self, options: LoopOptions | None) -> None:
        self._options = options

    def __enter__(self) -> None:
        self._token: Token[LoopOptions | None] = _current.set(self._options)

    def __exit__(self, *exc: object) -> None:
        _current.reset(self._token)


@entry
def set_loop_options(
    parallel_iterations: int | None = None,
    swap_memory: bool | None = None,
    maximum_iterations: SupportsInt | None = None,
    shape_invariants: Sequence[tuple[Any, Any]] | None = None,
) -> None:
    """Set options of the loop around this call, if it is a loop of the graph.

    It must be the first statement of the loop's body.

    Args:
        parallel_iterations: ignored: iterations run one after another.
        swap_memory: ignored.
        maximum_iterations: the largest number of iterations, a Python int.
        shape_invariants: pairs of a tensor, a RaggedTensor or a SparseTensor that iterations assign and its
            shape in all iterations, with None for sizes that change. A SparseTensor keeps its shape; the
            number of its elements changes.

    Raises:
        InvalidArgumentError: a tensor of an invariant is not carried by the loop, or does not have this shape
            before the loop or after an iteration.

    >>> import dualflow as df
    >>> @df.function
    ... def powers(n):
    ...     x = df.ones([1], df.int32)
    ...     for i in df.range(n):
    ...         df.autograph.experimental.set_loop_options(shape_invariants=[(x, [None])])
    ...         x = df.concat([x, x[-1:] * 2], 0)
    ...     return x
    >>> powers(df.constant(4)).numpy()
    array([ 1,  2,  4,  8, 16], dtype=int32)
    """
    options = _current.get()
    if options is None:
        return
    if maximum_iterations is not None:
        options.max_iterations = static_int(maximum_iterations, "maximum_iterations")
    for x, shape in shape_invariants or ():
        if isinstance(x, AbstractComposite):
            options.shapes += [(part, spec.shape) for part, spec in composite_invariants(x, shape)]
            continue
        if is_array_invariant(x, shape):
            continue
        invariant = as_shape(shape)
        options.shapes.append((x, Shape([None] * len(x.shape)) if invariant is UNKNOWN_RANK else invariant))


def check_invariant(name: str, before: Shape | None, after: Shape, invariant: Shape) -> None:
    """Check a variable's shapes ``before`` the loop and ``after`` an iteration against its invariant.

    Raises:
        InvalidArgumentError: one of them does not match.
    """
    for shape, when in ((before, "before the loop"), (after, "after one iteration")):
        if shape is not None and not matches_invariant(invariant, shape):
            raise InvalidArgumentError(
                f"{name!r} has shape {shape} {when}, which does not conform with the shape invariant "
                f"{invariant}; use None for the sizes that iterations change.{here()}"
            )
