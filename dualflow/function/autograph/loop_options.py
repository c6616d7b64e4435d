"""What the body of a loop says of the loop."""

from __future__ import annotations

from collections.abc import Sequence
from contextvars import ContextVar, Token
from typing import Any, Final

from dualflow.core.errors import InvalidArgumentError
from dualflow.core.shape import UNKNOWN_RANK, Shape, as_shape
from dualflow.core.tracebacks import entry
from dualflow.function.control.shape_invariants import matches_invariant
from dualflow.function.errors import here
from dualflow.function.tracing.symbolic_tensor import SymbolicTensor
from dualflow.ops.static import static_int


class LoopOptions:
    """What one trace of a body has said.

    Attributes:
        shapes: tensors as they are at the start of an iteration, and the shapes that they have in all
        iterations.
        most: the most iterations; None for any number.
    """

    def __init__(self) -> None:
        self.shapes: list[tuple[Any, Shape]] = []
        self.most: int | None = None

    def invariants(self, leaves: Sequence[Any]) -> list[Shape | None]:
        """The shape that each carried leaf has in all iterations; None where nothing was said.

        Raises:
            InvalidArgumentError: something was said of what is not carried.
        """
        found: list[Shape | None] = [None] * len(leaves)
        for x, shape in self.shapes:
            at = [i for i, leaf in enumerate(leaves) if type(x) is SymbolicTensor and x._value is leaf._value]
            if not at:
                raise InvalidArgumentError(
                    f"set_loop_options is given the shape of {x!r}, which is no variable of the loop as it "
                    f"is when an iteration starts; call it first in the body.{here()}"
                )
            found[at[0]] = shape
        return found


_noted: Final[ContextVar[LoopOptions | None]] = ContextVar("dualflow_loop_options", default=None)


class noting:
    """``with noting(options):`` what is said of a loop belongs to ``options``; to none if it is None."""

    __slots__ = ("_options", "_token")

    def __init__(self, options: LoopOptions | None) -> None:
        self._options = options

    def __enter__(self) -> None:
        self._token: Token[LoopOptions | None] = _noted.set(self._options)

    def __exit__(self, *exc: object) -> None:
        _noted.reset(self._token)


@entry
def set_loop_options(
    parallel_iterations: Any = None,
    swap_memory: Any = None,
    maximum_iterations: Any = None,
    shape_invariants: Any = None,
) -> None:
    """Say of the loop around this call how it runs: where it is a loop of the graph; else this does nothing.

    It stands first in the loop's body.

    Args:
        parallel_iterations: ignored: iterations run one after another.
        swap_memory: ignored.
        maximum_iterations: the most iterations, a Python int.
        shape_invariants: pairs of a tensor that iterations assign and its shape in all iterations, with None
            for sizes that change.

    Raises:
        InvalidArgumentError: a shape of a tensor that the loop does not carry, or that it has not before the
            loop or after an iteration.

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
    options = _noted.get()
    if options is None:
        return
    if maximum_iterations is not None:
        options.most = static_int(maximum_iterations, "maximum_iterations")
    for x, shape in shape_invariants or ():
        known = as_shape(shape)
        options.shapes.append((x, Shape([None] * len(x.shape)) if known is UNKNOWN_RANK else known))


def check_invariant(name: str, before: Shape | None, after: Shape, invariant: Shape) -> None:
    """Refuse an invariant that a variable's shape ``before`` the loop, or ``after`` an iteration, is none of.

    Raises:
        InvalidArgumentError: it says which.
    """
    for shape, when in ((before, "before the loop"), (after, "after one iteration")):
        if shape is not None and not matches_invariant(invariant, shape):
            raise InvalidArgumentError(
                f"{name!r} has shape {shape} {when}, which does not conform with the shape invariant "
                f"{invariant}; leave open the sizes that iterations change, as None.{here()}"
            )
