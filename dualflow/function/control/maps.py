"""``map_fn``, ``scan``, ``foldl`` and ``foldr``: functions over slices along the first axis."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from dualflow.core import dispatch
from dualflow.core.dispatch import TENSORS
from dualflow.core.dtypes import as_dtype, int32, int64
from dualflow.core.errors import InvalidArgumentError
from dualflow.core.shape import Shape
from dualflow.core.spec import TensorSpec
from dualflow.core.tracebacks import entry
from dualflow.core.tree import LEAF, Structure, flatten, unflatten
from dualflow.function.control.control_flow import while_loop, without_gradient
from dualflow.function.control.postponed_calls import postponable
from dualflow.function.control.scan_loop import Tensors, scan_loop
from dualflow.function.control.tensor_array import TensorArray
from dualflow.function.control.trace_bodies import inner_tracer
from dualflow.function.tracing.tracer import tracing
from dualflow.ops.arrangement import expand_dims
from dualflow.ops.checks import required
from dualflow.ops.conversion import cast
from dualflow.ops.creation import convert_to_tensor
from dualflow.ops.equal_sizes import with_rows_of
from dualflow.ops.joining import concat, stack
from dualflow.ops.positions import range as count_up
from dualflow.ops.ragged.ragged_rows import RaggedRows
from dualflow.ops.ragged.ragged_tensor import RaggedTensor
from dualflow.ops.shapes import size
from dualflow.ops.taking import gather
from dualflow.ops.tensor_sizes import sizes_of

if TYPE_CHECKING:
    from dualflow.core.argument_types import DTypeLike, TensorLike

_UNEQUAL: Final = "elems must have equal first sizes, but one has shape {1}, another {0}."
_NO_ROWS: Final = "elems has no rows, so that there is no first value; give an initializer."


@entry
@postponable
def map_fn(
    fn: Callable[[Any], Any],
    elems: object,
    dtype: DTypeLike | None = None,
    parallel_iterations: int | None = None,
    back_prop: bool = True,
    swap_memory: bool = False,
    infer_shape: bool = True,
    name: str | None = None,
    fn_output_signature: object = None,
) -> Any:
    """The results of ``fn`` for the slices of ``elems`` along the first axis, stacked.

    Args:
        fn: a function of one slice, in the structure of ``elems``.
        elems: a tensor or a structure of tensors with equal first sizes, among which may be RaggedTensors.
        fn_output_signature: the dtypes (or :class:`dualflow.TensorSpec`) of the results of ``fn``, in their
            structure; those of ``elems`` by default. Without it, the results for a RaggedTensor of vectors
            are vectors of any length.
        dtype: the older name of ``fn_output_signature``.
        back_prop: whether gradients flow through it.

    The other arguments are TensorFlow's, and ignored; slices are processed in order.

    Returns:
        Tensors in the structure of the results of ``fn``, whose first size is that of ``elems``. If that is
        0, ``fn`` is traced for the shapes of its results, unless each has a TensorSpec. The vectors for a
        RaggedTensor without ``fn_output_signature`` are the rows of a RaggedTensor.

    Raises:
        InvalidArgumentError: a scalar among ``elems``, first sizes that differ, or a result of another
            structure, dtype or shape than declared; a RaggedTensor in a structure, or of more than two axes,
            without ``fn_output_signature``.

    >>> import dualflow as df
    >>> df.map_fn(lambda row: row * row[0], df.constant([[1, 2], [3, 4]])).numpy().tolist()
    [[1, 2], [9, 12]]
    """
    signature = fn_output_signature if fn_output_signature is not None else dtype
    if _has_ragged(elems):
        mapped = _map_vectors(fn, elems) if signature is None else _map_ragged(fn, elems, signature)
        return mapped if back_prop else without_gradient(mapped)
    rows, structure, length = _rows(elems)
    if signature is None:
        declared, declared_structure = [TensorSpec.of(x.shape[1:], x.dtype) for x in rows], structure
        shaped = [False] * len(rows)
    else:
        entries, declared_structure = flatten(signature)
        shaped = [isinstance(e, TensorSpec) for e in entries]
        declared = [e if isinstance(e, TensorSpec) else TensorSpec((), as_dtype(e)) for e in entries]

    def step(carry: Tensors, row: Tensors) -> tuple[Tensors, Tensors]:
        flat = _flat(fn(unflatten(structure, row)), declared_structure)
        return [], [_declared(y, spec, sh) for y, spec, sh in zip(flat, declared, shaped, strict=True)]

    results = declared if all(shaped) else None
    _, stacks = scan_loop(step, [], rows, length, reverse=False, output_specs=results)
    stacked = unflatten(declared_structure.batched(length), stacks)
    return stacked if back_prop else without_gradient(stacked)


def _is_ragged(x: Any) -> bool:
    return isinstance(x, RaggedRows)


def _has_ragged(elems: Any) -> bool:
    return not _is_numbers(elems) and any(map(_is_ragged, flatten(elems, _is_ragged)[0]))


def _map_ragged(fn: Callable[[Any], Any], elems: Any, signature: Any) -> Any:
    """``map_fn`` for a structure with ragged tensors: ``fn`` gets the rows at their indices."""
    flat, structure = flatten(elems, _is_ragged)

    def of_rows(rows: Sequence[Any]) -> Any:
        pairs = zip(flat, rows, strict=True)
        return fn(unflatten(structure.unbatched(), [x[row] if _is_ragged(x) else row for x, row in pairs]))

    rows = [count_up(_row_count(x)) if _is_ragged(x) else x for x in flat]
    return map_fn(of_rows, rows, fn_output_signature=signature)


def _row_count(x: Any) -> Any:
    """The number of rows of a ragged tensor, an int if it is static."""
    return cast(x.nrows(), int32) if x.shape[0] is None else x.shape[0]


def _map_vectors(fn: Callable[[Any], Any], elems: Any) -> Any:
    """The vectors that ``fn`` returns for the rows of a RaggedTensor of vectors, as another one."""
    if not _is_ragged(elems) or len(elems.shape) != 2:
        raise InvalidArgumentError(
            "Without fn_output_signature, map_fn takes a RaggedTensor alone and of two axes; declare it."
        )
    if dispatch.current().eager:
        results = [_vector(fn(elems[i])) for i in range(int(elems.nrows()))]
        if not results:
            return elems
        return RaggedTensor.from_row_lengths(concat(results, 0), stack([size(x, int64) for x in results], 0))
    tracer, count = inner_tracer("map_fn"), _row_count(elems)
    with tracing(tracer):
        dtype = _vector(fn(elems[count_up(1)[0]])).dtype

    def step(i: Any, values: Any, lengths: Any) -> tuple[Any, Any, Any]:
        vector = _vector(fn(elems[i]))
        return i + 1, values.write(i, vector), lengths.write(i, size(vector, int64))

    arrays = (
        TensorArray(dtype, count, infer_shape=False, element_shape=Shape([None])),
        TensorArray(int64, count, element_shape=[]),
    )
    _, values, lengths = while_loop(lambda i, *_: i < count, step, (0, *arrays))
    return RaggedTensor.from_row_lengths(values.concat(), lengths.stack())


def _vector(result: Any) -> Any:
    tensor: Any = convert_to_tensor(result)
    if len(tensor.shape) != 1:
        raise InvalidArgumentError(
            f"map_fn's function returned {tensor.spec}, not a vector, for a row of a RaggedTensor; declare "
            "it with fn_output_signature."
        )
    return tensor


def map_sequentially(fn: Callable[[Any], Any], elems: Any) -> Any:
    """As :func:`map_fn`, but ``fn`` may return any structure."""
    rows, structure, length = _rows(elems)
    result_structures: list[Structure] = []

    def step(carry: Tensors, row: Tensors) -> tuple[Tensors, Tensors]:
        flat, returned = flatten(fn(unflatten(structure, row)))
        result_structures.append(returned)
        if returned != result_structures[0]:
            raise InvalidArgumentError("The function must return the same structure for each row.")
        return [], [convert_to_tensor(y) for y in flat]

    _, stacks = scan_loop(step, [], rows, length, reverse=False)
    return unflatten(result_structures[0].batched(length), stacks)


@entry
@postponable
def scan(
    fn: Callable[[Any, Any], Any],
    elems: object,
    initializer: TensorLike | Callable[..., Any] | None = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    infer_shape: bool = True,
    reverse: bool = False,
    name: str | None = None,
) -> Any:
    """The values of ``acc = fn(acc, row)`` after each row of ``elems``, stacked.

    Args:
        fn: a function of the accumulated value and the next row, which returns the next value, of the same
            structure, shapes and dtypes.
        elems: a tensor or a structure of tensors with equal first sizes.
        initializer: the initial value; by default the first row, which then is the first result.
        reverse: whether to begin with the last row; the results are in the order of the rows.
        back_prop: whether gradients flow through it.

    The other arguments are TensorFlow's, and ignored.

    Raises:
        InvalidArgumentError: a scalar among ``elems``, first sizes that differ, no rows and no initializer,
            or a value that changes its structure or shape.
        DTypeError: a value that changes its dtype.

    >>> import dualflow as df
    >>> df.scan(lambda acc, x: acc + x, df.constant([1, 2, 3])).numpy()
    array([1, 3, 6], dtype=int32)
    """
    rows, structure, length = _rows(elems)
    start, carried, remaining = _begin(initializer, rows, structure, reverse)

    def step(carry: Tensors, row: Tensors) -> tuple[Tensors, Tensors]:
        value = _next(fn, carry, carried, row, structure)
        return value, value

    count = None if length is None else length - (initializer is None)
    _, stacks = scan_loop(
        step, start, remaining, count, reverse=reverse, output_specs=[x.spec for x in start]
    )
    if initializer is None:
        stacks = [_joined(x, first, reverse) for x, first in zip(stacks, start, strict=True)]
    stacked = unflatten(carried.batched(length), stacks)
    return stacked if back_prop else without_gradient(stacked)


@entry
@postponable
def foldl(
    fn: Callable[[Any, Any], Any],
    elems: object,
    initializer: TensorLike | Callable[..., Any] | None = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    name: str | None = None,
) -> Any:
    """The last value of ``acc = fn(acc, row)`` over the rows of ``elems``; see :func:`scan`.

    >>> import dualflow as df
    >>> int(df.foldl(lambda acc, x: 10 * acc + x, df.constant([1, 2, 3])))
    123
    """
    final = _fold(fn, elems, initializer, reverse=False)
    return final if back_prop else without_gradient(final)


@entry
@postponable
def foldr(
    fn: Callable[[Any, Any], Any],
    elems: object,
    initializer: TensorLike | Callable[..., Any] | None = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    name: str | None = None,
) -> Any:
    """The last value of ``acc = fn(acc, row)`` from the last row to the first; see :func:`scan`.

    >>> import dualflow as df
    >>> int(df.foldr(lambda acc, x: 10 * acc + x, df.constant([1, 2, 3])))
    321
    """
    final = _fold(fn, elems, initializer, reverse=True)
    return final if back_prop else without_gradient(final)


def _fold(fn: Callable[[Any, Any], Any], elems: Any, initializer: Any, *, reverse: bool) -> Any:
    rows, structure, length = _rows(elems)
    start, carried, remaining = _begin(initializer, rows, structure, reverse)

    def step(carry: Tensors, row: Tensors) -> tuple[Tensors, Tensors]:
        return _next(fn, carry, carried, row, structure), []

    count = None if length is None else length - (initializer is None)
    return unflatten(carried, scan_loop(step, start, remaining, count, reverse=reverse, output_specs=[])[0])


def _rows(elems: Any) -> tuple[Tensors, Structure, int | None]:
    """The tensors of ``elems``, the structure of a slice, and their first size, None if it is dynamic."""
    flat, structure = flatten(elems) if not _is_numbers(elems) else ([elems], LEAF)
    tensors: list[Any] = [convert_to_tensor(x) for x in flat]
    if not tensors or any(not x.shape for x in tensors):
        raise InvalidArgumentError(
            "elems must be 1+ dimensional tensors, not scalars, as the function is applied to their rows."
        )
    lengths = {n for x in tensors if (n := x.shape[0]) is not None}
    if len(lengths) > 1:
        shown = [x.shape[0] for x in tensors]
        raise InvalidArgumentError(f"elems must have equal first sizes, not {shown}.")
    length = lengths.pop() if lengths else None
    return _with_equal_first_sizes(tensors), structure.unbatched(), length


def _with_equal_first_sizes(tensors: Tensors) -> Tensors:
    """The tensors, whose dynamic first sizes become that of the first of static size, or of the first one.

    A tensor of another size is an error at run time.
    """
    like = next((x for x in tensors if x.shape[0] is not None), tensors[0])
    return [x if x is like or x.shape[0] is not None else with_rows_of(x, like, _UNEQUAL) for x in tensors]


def _is_numbers(elems: Any) -> bool:
    """Whether ``elems`` is a list of plain numbers, which is one tensor rather than a structure."""
    return isinstance(elems, list | tuple) and bool(elems) and all(isinstance(x, int | float) for x in elems)


def _begin(
    initializer: Any, rows: Tensors, structure: Structure, reverse: bool
) -> tuple[Tensors, Structure, Tensors]:
    """The initial value, its structure, and the remaining rows."""
    if initializer is not None:
        flat, carried = flatten(initializer)
        return [convert_to_tensor(x) for x in flat], carried, rows
    if rows[0].shape[0] == 0:
        raise InvalidArgumentError(_NO_ROWS)
    first, others = (-1, slice(None, -1)) if reverse else (0, slice(1, None))
    return [_first_row(x, first) for x in rows], structure, [x[others] for x in rows]


def _first_row(x: Any, index: int) -> Any:
    """Row 0 or -1 of ``x``; an error if there is none."""
    if x.shape[0] is not None:
        return x[index]
    count = sizes_of(x, int64)[0]
    return gather(x, required(count - 1 if index else convert_to_tensor(0, int64), count > 0, _NO_ROWS))


def _next(
    fn: Callable[[Any, Any], Any], carry: Tensors, carried: Structure, row: Tensors, structure: Structure
) -> Tensors:
    value = fn(unflatten(carried, carry), unflatten(structure, row))
    return [
        convert_to_tensor(x, dtype_hint=c.dtype) for x, c in zip(_flat(value, carried), carry, strict=True)
    ]


def _joined(stacked: Any, first: Any, reverse: bool) -> Any:
    one = expand_dims(first, 0)
    return concat([stacked, one] if reverse else [one, stacked], 0)


def _flat(value: Any, expected: Structure) -> Sequence[Any]:
    """The leaves of a function's result; if one tensor is expected, a list of numbers is a leaf."""
    flat, structure = flatten(value)
    if expected == LEAF and not any(isinstance(x, TENSORS) for x in flat):
        return [value]
    if structure != expected:
        raise InvalidArgumentError(
            f"The function returned {value!r}, which has not the expected structure; declare another one as "
            "fn_output_signature of map_fn."
        )
    return flat


def _declared(value: Any, spec: TensorSpec, shaped: bool) -> Any:
    tensor: Any = convert_to_tensor(value, dtype_hint=spec.dtype)
    if tensor.dtype is not spec.dtype or (shaped and not spec.is_compatible_with(tensor)):
        expected = str(spec) if shaped else spec.dtype.name
        raise InvalidArgumentError(
            f"map_fn's function returned {tensor.spec}, not {expected}; declare it with fn_output_signature."
        )
    return tensor
