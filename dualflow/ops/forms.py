"""How a graph compiles an op: the forms a record can take.

The compiler asks only for the form, never for the name of an op.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from dualflow.core.errors import InvalidArgumentError


@dataclass(frozen=True, slots=True)
class Element:
    """One element of the output from one element of each input, which broadcast: fusable.

    ``code(m, *elements, **attrs)`` is written with Python operators and the maths namespace ``m``; given
    NumPy arrays and ``m = dualflow.ops.maths_reference`` it is the reference.
    ``m.index(axis)`` is the element's position in the output, ``m.check(ok, message)`` stops the program
    when ``ok`` is false, ``m.dtype(x)`` is the :class:`DType` of an element. ``cost`` is the work of one
    element in additions. ``error`` is what a check raises: given where the code checks more than integers.
    """

    code: Callable[..., Any]
    cost: float = 1.0
    error: type[InvalidArgumentError] | None = None


@dataclass(frozen=True, slots=True)
class Fold:
    """A reduction over ``attrs["axis"]``, a sorted tuple of axes that ``attrs["keepdims"]`` keeps, as size 1.

    The accumulator is a tuple of elements. ``start(m, dtype)`` begins it with the neutral value,
    ``step(m, acc, x, index)`` takes one more element whose position along the reduced axes is ``index``,
    ``merge(m, acc, acc)`` joins two accumulators, ``finish(m, acc)`` is the result, which is cast to the
    op's dtype. Where a step of floats ``rounds``, elements are folded in blocks that are merged, so that
    the error hardly grows with their number.
    """

    start: Callable[..., tuple[Any, ...]]
    step: Callable[..., tuple[Any, ...]]
    merge: Callable[..., tuple[Any, ...]]
    finish: Callable[..., Any]
    rounds: bool = False


@dataclass(frozen=True, slots=True)
class View:
    """The input's elements under another shape: ``view(array, **attrs)`` is a NumPy view or a ValueError."""

    view: Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Assemble:
    """An output put together from copies of its inputs.

    ``pieces(out, *inputs, **attrs)`` returns ``(destination, source)`` pairs of views of equal shape, which
    together cover ``out``; a source may be a Python number. They are copied in order: where two overlap, the
    later one stays. The NumPy kernel and the compiler both read it.
    """

    pieces: Callable[..., list[tuple[Any, Any]]]


@dataclass(frozen=True, slots=True)
class Take:
    """Elements of input 0 picked along ``attrs["axis"]`` by the integers of input 1.

    The first ``attrs["batch_dims"]`` axes of both, none where it is left out, belong together.
    """


@dataclass(frozen=True, slots=True)
class Positions:
    """The places of the elements of input 0, in order, each as often as it says: of a bool once or never.

    There are ``attrs["size"]`` of them.
    """


@dataclass(frozen=True, slots=True)
class Sizes:
    """The integers ``attrs["values"]``, which are sizes."""


@dataclass(frozen=True, slots=True)
class Sized:
    """An op that is other ops, once the integers that decide its sizes are known as sizes.

    ``resolve(read, *inputs, **attrs)`` returns what those make of the inputs. ``read(tensor, least)`` returns
    the elements of a tensor of integers, for attributes: numbers, or extents that the program reads there
    (:mod:`dualflow.core.extent`), none of them below ``least`` where that is no None.
    """

    resolve: Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Scatter:
    """Slices of the last input put, in order, to positions that the integers before it name.

    Each names a place on ``attrs["axis"]``; or, where there is no such attribute, the integers' last axis has
    one for each of the first axes. They go ``onto`` the first input or onto zeros, and are added to what is
    there, or take its place.
    """

    onto: bool
    add: bool


@dataclass(frozen=True, slots=True)
class Contraction:
    """Matrix product of the last two axes, the leading ones broadcast.

    The attributes ``transpose_a`` and ``transpose_b``, False where they are left out, swap the last two
    axes of an input first.
    """


@dataclass(frozen=True, slots=True)
class Literal:
    """A value known while tracing, in ``attrs["value"]``."""


@dataclass(frozen=True, slots=True)
class Opaque:
    """Runs as its NumPy or Python kernel also inside a compiled function, for the reason given."""

    reason: str


@dataclass(frozen=True, slots=True)
class Choice:
    """The results of one of several graphs: see :class:`dualflow.graph.control_spec.ChoiceSpec`."""


@dataclass(frozen=True, slots=True)
class Loop:
    """A graph that runs again and again: see :class:`dualflow.graph.control_spec.LoopSpec`."""


@dataclass(frozen=True, slots=True)
class Check:
    """Stops the program unless input 0, a bool scalar, holds; it has no results.

    ``attrs["error"](arrays)`` makes the exception that is raised, of the other inputs.
    """


Form = (
    Choice
    | Loop
    | Check
    | Element
    | Fold
    | View
    | Assemble
    | Take
    | Positions
    | Sizes
    | Sized
    | Scatter
    | Contraction
    | Literal
    | Opaque
)
