"""Op kinds: what the compiler reads of an op record. It decides by the kind, never by the name of an op."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from enum import Enum
from typing import Any, Final, Protocol

from dualflow.core.errors import InvalidArgumentError
from dualflow.core.records import NamedTuple
from dualflow.core.shape import Shape


class Elementwise(NamedTuple):
    """An elementwise op: each output element depends on one element of each input, which broadcast.

    Attributes:
        code: ``code(m, *elements, **attrs)``, written with Python operators and the maths namespace ``m``.
            ``m.index(axis)`` is the element's position in the output, ``m.check(ok, message)`` stops the
            program if ``ok`` is false, ``m.dtype(x)`` is the :class:`DType` of an element. With NumPy arrays
            and ``m = dualflow.ops.maths_reference``, it is the reference implementation.
        cost: the work of one element in additions.
        error: the class of the error that a check raises; set if the code checks inputs other than integers.
        depends_on_precision: whether the precision of the dtype affects a result other than by rounding, as
            in ``nextafter``: float32 can't replace float16 then.
        parts: whether the code only splits complex elements into parts, or joins parts.
    """

    code: Callable[..., Any]
    cost: float = 1.0
    error: type[InvalidArgumentError] | None = None
    depends_on_precision: bool = False
    parts: bool = False


class Reduce(NamedTuple):
    """A reduction over ``attrs["axis"]``, a sorted tuple; ``attrs["keepdims"]`` keeps these axes, of size 1.

    The accumulator is a tuple of elements.

    Attributes:
        start: ``start(m, dtype)`` returns the initial accumulator, the neutral value.
        step: ``step(m, accumulator, x, index)`` returns the accumulator with another element. ``index`` is
            the element's position along the reduced axes if ``needs_position``, else None.
        merge: ``merge(m, accumulator, accumulator)`` combines two accumulators.
        finish: ``finish(m, accumulator)`` returns the result, which is cast to the op's dtype.
        rounds: whether a step of floats rounds. Then blocks of elements are reduced and their accumulators
            merged, so that the error hardly grows with the number of elements.
        needs_position: whether ``step`` reads ``index``.
    """

    start: Callable[..., tuple[Any, ...]]
    step: Callable[..., tuple[Any, ...]]
    merge: Callable[..., tuple[Any, ...]]
    finish: Callable[..., Any]
    rounds: bool = False
    needs_position: bool = False


class Scan(NamedTuple):
    """A cumulative reduction along ``attrs["axis"]``, an int: its result after each element.

    ``attrs["reverse"]`` runs from the last element to the first. With ``attrs["exclusive"]``, the result of
    an element excludes it, and the reduction is ``exclusive``, which may have another initial accumulator.
    """

    inclusive: Reduce
    exclusive: Reduce


class View(NamedTuple):
    """The input's elements in another layout: ``view(array, **attrs)`` is a NumPy view or a ValueError.

    A ``sliding`` view has windows over the axes between the first and the last: ``attrs["size"]``,
    ``attrs["strides"]`` and ``attrs["dilations"]`` have an entry for each of these axes. In the result, the
    axes that count the windows are followed by the axes of a window.
    """

    view: Callable[..., Any]
    sliding: bool = False


class CopyPieces(NamedTuple):
    """An output that consists of copies of parts of the inputs, such as of concat and pad.

    ``pieces(out, *inputs, **attrs)`` returns ``(destination, source)`` pairs of views of equal shape, which
    together cover ``out``; a source may be a Python number. They are copied in order: where two overlap, the
    later one overwrites the earlier one. The NumPy kernel and the compiler both call it. ``is_pad``: the op
    pads its one input with ``attrs["value"]``, by ``attrs["paddings"]`` before and after each axis.
    """

    pieces: Callable[..., list[tuple[Any, Any]]]
    is_pad: bool = False


class Gather(NamedTuple):
    """Elements of input 0 at the indices of input 1 along ``attrs["axis"]``.

    The first ``attrs["batch_dims"]`` axes of both inputs, by default none, are batch axes.
    """


class RepeatIndices(NamedTuple):
    """The index ``i`` of each element of input 0, ``x[i]`` times, in order; a bool counts as 0 or 1.

    The result has ``attrs["size"]`` elements.
    """


class SizeVector(NamedTuple):
    """The integers ``attrs["values"]``, which are sizes."""


class SizeReader(Protocol):
    """The parameter ``read`` of ``Decompose.resolve``: integer tensors as sizes, and checks of sizes.

    Sizes are numbers or symbolic sizes (:mod:`dualflow.sizes.symbolic_sizes`). A requirement that equal
    expressions don't satisfy becomes a check that the program does at run time. The implementation is
    :class:`dualflow.function.calls.size_inference.SizeInference`.
    """

    def __call__(self, tensor: Any, least: int | None = None) -> list[int]:
        """The elements of an integer tensor, as expressions of sizes.

        Unless ``least`` is None they become sizes, which the program checks not to be negative.
        """
        ...

    def computed_size(self, scalar: Any) -> int:
        """The value of an integer scalar as a size, which equals only itself; also in :meth:`deciding`."""
        ...

    def sizes(self, values: Sequence[int]) -> list[int]:
        """``values`` as sizes; the program checks that none is negative."""
        ...

    def require_size(self, x: Any, new_size: int, size: int) -> Any:
        """The vector ``x`` of ``size`` elements as one of ``new_size``; the program checks their equality."""
        ...

    def require_shape(
        self, x: Any, shape: Shape | Sequence[int], message: str, *, repeats: bool = False
    ) -> Any:
        """``x`` with ``shape``, which must be equal to its own; with ``repeats`` a size of ``x`` may be 1.

        ``message`` is that of the error, in which {0} and {1} are replaced by the shapes.
        """
        ...

    def require_first(self, x: Any, shape: Sequence[int], message: str) -> Any:
        """The first element of ``x`` along each axis of size 1 in ``shape``; other sizes must be equal."""
        ...

    def deciding(self) -> AbstractContextManager[None]:
        """A context in which the sizes of a call decide comparisons, which become guards of the program."""
        ...


class Decompose(NamedTuple):
    """An op that a trace replaces by other ops; the integers that it reads become symbolic sizes.

    ``resolve(read, *inputs, **attrs)`` calls these ops and returns the result, or a tuple of results, where
    ``read`` is a :class:`SizeReader`.
    """

    resolve: Callable[..., Any]


class OperandAttributes(NamedTuple):
    """The attributes of an op whose integers may come from operands.

    Attributes:
        sizes: attributes that hold sizes, which aren't negative; the op's ``infer`` takes None for a size.
        bounds: attributes that hold other integers; its ``infer`` takes an
            :class:`~dualflow.ops.operand_attributes.OperandInteger` for an integer.
        resolve: ``resolve(read, *inputs, **attrs)`` applies the op for integers that are known at run time;
            ``read`` is a :class:`SizeReader`. None if it is enough to replace the operands by attributes.
        least: the lower bound of ``sizes``, which the program checks; None if ``resolve`` does.
    """

    sizes: tuple[str, ...] = ()
    bounds: tuple[str, ...] = ()
    resolve: Callable[..., Any] | None = None
    least: int | None = 0


class Scatter(NamedTuple):
    """Writes slices of the last input, in order, to the positions in the integer input before it.

    A position is an index along ``attrs["axis"]``. Without this attribute, positions are index vectors along
    the last axis of the integer input, as in ``scatter_nd``.

    Attributes:
        onto: whether slices are written to a copy of the first input; otherwise to zeros.
        join: "put" to replace elements; "add", "multiply", "maximum" or "minimum" to combine them with the
            old ones; None if ``attrs["join"]`` has it.
    """

    onto: bool
    join: str | None


class MatMul(NamedTuple):
    """Matrix product over the last two axes; leading axes broadcast.

    The attributes ``transpose_a`` and ``transpose_b``, by default False, first swap the last two axes of an
    input.

    Attributes:
        of_integers: whether the backend multiplies matrices of integers, too; a pass sets it for such ones.
    """

    of_integers: bool = False


class Literal(NamedTuple):
    """A value known while tracing, in ``attrs["value"]``."""


class Collective(Enum):
    """What workers exchange; the numbers are those of ``backends/llvm/runtime/collective.ll``."""

    ALL_REDUCE = 0
    """Each gets the sum."""
    REDUCE_SCATTER = 1
    """Each gets a block of the sum."""
    ALL_GATHER = 2
    """Each gets the blocks of all, which have one size."""
    ALL_GATHER_ROWS = 3
    """Each gets the rows of all, whose numbers a second operand has."""
    ROW_COUNTS = 4
    """Each gets the numbers of rows of all."""


class CollectiveCall(NamedTuple):
    """A call of the MPI library from machine code: a collective with other workers.

    Attributes:
        collective: what is exchanged, which decides the arguments of the function.
        function: the address of ``int f(const void *in, void *out, int count, datatype, operation,
            communicator)``; or, of a gather, of ``int f(const void *in, int count, datatype, void *out, int
            count, datatype, communicator)``; or, of a gather of rows, of the same with two vectors of ints in
            place of the second count, which are counts and positions.
        datatype, operation, communicator: handles of the library; a gather has no operation.
        progress: the address of the counters of collectives.
        signature: the number of the op, dtype and shape, which the monitor compares between workers; if sizes
            are dynamic, machine code stores their numbers, too.
        part_bytes: a sum is exchanged in parts of that many bytes.
        count_error: the library's error code for more elements than an int counts.
        error: called after the function has returned another number than 0; returns the error.
        spans: ``spans(start)`` returns the text, begin and end of each collective since a time.
        precedes_failure: whether the program may fail after the collective, whose result isn't recorded then.
    """

    collective: Collective
    function: int
    datatype: int
    operation: int
    communicator: int
    progress: int
    signature: int
    part_bytes: int
    count_error: int
    error: Callable[[], Exception]
    spans: Callable[[int], Sequence[tuple[str, int, int]]]
    precedes_failure: bool = False


AddNode = Callable[..., Any]
"""``add(op, inputs, attrs)`` adds a node to a graph, and returns its value."""


class Opaque(NamedTuple):
    """An op that runs as its NumPy or Python kernel also inside a compiled function.

    Attributes:
        reason: the reason, for reports.
        fourier: ``fourier(x, **attrs)`` returns, for the spec of the input, whether the op is the Fourier
            transform of long rows (the inverse one if ``attrs["kind"]`` is "ifft"). Some backends have code
            for it.
        compare_sizes: ``compare_sizes(*inputs, **attrs)`` compares the sizes that decide whether the op has
            code, for the specs of inputs with symbolic sizes. The outcomes become guards of the program: it
            is compiled as for static sizes, and serves the calls with the same outcomes.
        collective_call: ``collective_call(x, **attrs)`` returns, for the spec of the input, the
            :class:`CollectiveCall` by which machine code runs the op, or None.
        lowering: ``lowering(add, *inputs, **attrs)`` adds nodes with kernels for values of a graph, and
            returns the value of the last; None if the op stays a host call.
        drawn_singly: whether a draw of shape ``attrs["shape"]`` has the same numbers as that many draws of
            one number.
        placed_op: the op that runs on the host of a device since a block of ``df.device("/CPU:0")`` calls it;
            None for an op that is opaque itself.
    """

    reason: str
    fourier: Callable[..., bool] | None = None
    collective_call: Callable[..., CollectiveCall | None] | None = None
    lowering: Callable[..., Any] | None = None
    compare_sizes: Callable[..., object] | None = None
    drawn_singly: bool = False
    placed_op: Any = None


class Cond(NamedTuple):
    """The results of one of several graphs: see :class:`dualflow.graph.control_spec.CondSpec`."""


class Loop(NamedTuple):
    """A graph that runs repeatedly: see :class:`dualflow.graph.control_spec.LoopSpec`."""


CONTROL: Final = (Cond, Loop)
"""The kinds of branches and loops, whose nodes have bodies."""


class Check(NamedTuple):
    """Raises an error unless input 0, a bool scalar, is true; it has no results.

    ``attrs["error"](arrays)``, called with the other inputs, returns the exception to raise. Its message
    without values of inputs is ``attrs["error"].static_message``.
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
    | CollectiveCall
    | Opaque
)
