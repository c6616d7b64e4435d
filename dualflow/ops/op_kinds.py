"""How a graph compiles an op: the kinds of ops.

The compiler reads only the kind, never for the name of an op.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dualflow.core.errors import InvalidArgumentError
from dualflow.core.records import NamedTuple


class Elementwise(NamedTuple):
    """An elementwise op: each output element depends on one element of each input, which broadcast.

    ``code(m, *elements, **attrs)`` is written with Python operators and the maths namespace ``m``; given
    NumPy arrays and ``m = dualflow.ops.maths_reference`` it is the reference.
    ``m.index(axis)`` is the element's position in the output, ``m.check(ok, message)`` stops the program
    when ``ok`` is false, ``m.dtype(x)`` is the :class:`DType` of an element. ``cost`` is the work of one
    element in additions. ``error`` is what a check raises: given where the code checks more than integers.
    ``own_digits``: whether a result depends on how many digits its dtype has, other than by rounding;
    ``parts``: whether the code takes complex elements apart, or joins them, as loops hold them.
    """

    code: Callable[..., Any]
    cost: float = 1.0
    error: type[InvalidArgumentError] | None = None
    own_digits: bool = False
    parts: bool = False


class Reduce(NamedTuple):
    """A reduction over ``attrs["axis"]``, a sorted tuple of axes that ``attrs["keepdims"]`` keeps, as size 1.

    The accumulator is a tuple of elements. ``start(m, dtype)`` begins it with the neutral value,
    ``step(m, acc, x, index)`` takes one more element, ``merge(m, acc, acc)`` joins two accumulators,
    ``finish(m, acc)`` is the result, which is cast to the op's dtype. ``index`` is the element's position
    along the reduced axes where the fold is ``placed``; other folds must not look at it. Where a step of
    floats ``rounds``, elements are folded in blocks that are merged, so that the error hardly grows with
    their number.
    """

    start: Callable[..., tuple[Any, ...]]
    step: Callable[..., tuple[Any, ...]]
    merge: Callable[..., tuple[Any, ...]]
    finish: Callable[..., Any]
    rounds: bool = False
    placed: bool = False


class Scan(NamedTuple):
    """A cumulative reduction along ``attrs["axis"]``, an int: its result after each element.

    ``attrs["reverse"]`` goes from the end. Where ``attrs["exclusive"]`` is set, each element is left out of
    its own result, and ``exclusive`` is the fold: the two may begin with other values.
    """

    inclusive: Reduce
    exclusive: Reduce


class View(NamedTuple):
    """The input's elements in another layout: ``view(array, **attrs)`` is a NumPy view or a ValueError.

    A ``sliding`` view shows windows over the axes between the first and the last: ``attrs["size"]``,
    ``attrs["strides"]`` between them and ``attrs["dilations"]`` between their elements, for each such axis.
    The axes of the windows come after those that count them.
    """

    view: Callable[..., Any]
    sliding: bool = False


class CopyPieces(NamedTuple):
    """An output that consists of copies of parts of the inputs, such as of concat and pad.

    ``pieces(out, *inputs, **attrs)`` returns ``(destination, source)`` pairs of views of equal shape, which
    together cover ``out``; a source may be a Python number. They are copied in order: where two overlap, the
    later one stays. The NumPy kernel and the compiler both read it. What ``surrounds`` is its one input with
    ``attrs["value"]`` around it, ``attrs["paddings"]`` before and after each axis.
    """

    pieces: Callable[..., list[tuple[Any, Any]]]
    surrounds: bool = False


class Gather(NamedTuple):
    """Elements of input 0 picked along ``attrs["axis"]`` by the integers of input 1.

    The first ``attrs["batch_dims"]`` axes of both, none where it is left out, belong together.
    """


class RepeatIndices(NamedTuple):
    """The index of each element of input 0, in order, repeated as often as the element: a bool is 0 or 1.

    There are ``attrs["size"]`` of them.
    """


class SizeVector(NamedTuple):
    """The integers ``attrs["values"]``, which are sizes."""


class Decompose(NamedTuple):
    """An op that is replaced by other ops, for which integers computed by the program become symbolic sizes.

    ``resolve(read, *inputs, **attrs)`` returns what those make of the inputs, or a tuple of results.
    ``read(tensor, least)`` returns the elements of a tensor of integers, for attributes: numbers, or symbolic
    sizes that the program reads there (:mod:`dualflow.core.symbolic_sizes`), none of them below ``least``
    unless that is None.
    """

    resolve: Callable[..., Any]


class Scatter(NamedTuple):
    """Writes slices of the last input, in order, to the positions in the integer input before it.

    Each names a place on ``attrs["axis"]``; or, where there is no such attribute, the integers' last axis has
    one for each of the first axes. They go ``onto`` the first input or onto zeros. ``join`` is the update:
    "put" to replace the elements there, or the function that combines them, one of "add",
    "multiply", "maximum" and "minimum"; None if the attribute of this name has it.
    """

    onto: bool
    join: str | None


class MatMul(NamedTuple):
    """Matrix product of the last two axes, the leading ones broadcast.

    The attributes ``transpose_a`` and ``transpose_b``, False where they are left out, swap the last two
    axes of an input first.
    """


class Literal(NamedTuple):
    """A value known while tracing, in ``attrs["value"]``."""


class Opaque(NamedTuple):
    """Runs as its NumPy or Python kernel also inside a compiled function, for the reason given.

    ``fourier(x, **attrs)`` reads the shape of the one input, and returns whether the op is the Fourier
    transform, or the inverse one for the ``attrs["kind"]`` "ifft", of long rows: some backends have code for
    that. Where it is ``drawn_singly``, a draw of the shape ``attrs["shape"]`` results in the numbers of as
    many draws of one.
    """

    reason: str
    fourier: Callable[..., bool] | None = None
    drawn_singly: bool = False


class Cond(NamedTuple):
    """The results of one of several graphs: see :class:`dualflow.graph.control_spec.CondSpec`."""


class Loop(NamedTuple):
    """A graph that runs again and again: see :class:`dualflow.graph.control_spec.LoopSpec`."""


class Check(NamedTuple):
    """Raises an error unless input 0, a bool scalar, is true; it has no results.

    ``attrs["error"](arrays)`` makes the exception that is raised, of the other inputs; its message without
    values of inputs is ``attrs["error"].static_message``.
    """


OpKind = (
    Cond
    | Loop
    | Check
    | Elementwise
    | Reduce
    | Scan
    | View
    | CopyPieces
    | Gather
    | RepeatIndices
    | SizeVector
    | Decompose
    | Scatter
    | MatMul
    | Literal
    | Opaque
)
