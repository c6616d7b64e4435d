"""The collective ops: sums, concatenations and sums of slices over the workers of a group.

Every worker runs the same ops in the same order; otherwise they would wait for one another without end. So
these ops have an effect, which keeps their order in compiled graphs.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol

from dualflow.core import dispatch
from dualflow.core.convert import Array
from dualflow.core.dtypes import DType, float32, int64
from dualflow.core.errors import DTypeError, InvalidArgumentError
from dualflow.core.shape import Shape
from dualflow.core.spec import TensorSpec
from dualflow.ops.arrangement import reshape
from dualflow.ops.broadcasting import reduce_sum
from dualflow.ops.conversion import cast
from dualflow.ops.creation import convert_to_tensor
from dualflow.ops.joining import concat, split
from dualflow.ops.op_kinds import Collective, CollectiveCall, Decompose, Opaque, SizeReader
from dualflow.ops.record import Effect, Op, register
from dualflow.ops.repetition import pad
from dualflow.ops.shapes import with_shape
from dualflow.ops.tensor_sizes import axis_size

if TYPE_CHECKING:
    from dualflow.ops.tensor import Tensor

_REASON: Final = "it exchanges data with other workers"


class ReplicaGroup(Protocol):
    """Workers that exchange arrays: each calls the same methods in the same order."""

    @property
    def size(self) -> int:
        """The number of workers."""
        ...

    @property
    def rank(self) -> int:
        """The number of this worker, from 0."""
        ...

    def all_reduce(self, array: Array) -> Array:
        """The sum of the workers' arrays, which have one shape."""
        ...

    def native(
        self, collective: Collective, dtype: DType, shape: tuple[int | None, ...]
    ) -> CollectiveCall | None:
        """The call by which machine code runs a collective on an input; None if there is none.

        A size of the input that is None is dynamic.
        """
        ...

    def row_counts(self, own: Array, rows: TensorSpec) -> Array:
        """The numbers of rows that the workers gather next, for this worker's own: vectors of int64.

        ``rows`` has the dtype and rank of the tensors of rows.
        """
        ...

    def all_gather(self, array: Array, counts: Array) -> Array:
        """The workers' arrays, concatenated along the first axis in the order of the ranks.

        ``counts`` has the number of rows of each.
        """
        ...

    def reduce_scatter_block(self, array: Array) -> Array:
        """This worker's block of the sum of the workers' arrays, of as many blocks as there are workers."""
        ...

    def all_gather_block(self, array: Array) -> Array:
        """The workers' arrays of one shape, concatenated along the first axis in the order of the ranks."""
        ...


def _native(collective: Collective) -> Opaque:
    """The kind of a collective: opaque, but called by machine code if the group has a native function."""

    def call(
        x: TensorSpec, group: ReplicaGroup, rows: TensorSpec | None = None, total: int | None = None
    ) -> CollectiveCall | None:
        spec = x if rows is None else rows
        shape = tuple([n if type(n) is int else None for n in spec.shape])
        return group.native(collective, spec.dtype, shape)

    return Opaque(_REASON, collective_call=call)


def _rows_of_all(
    x: TensorSpec, counts: TensorSpec, group: ReplicaGroup, total: int | None = None
) -> TensorSpec:
    return TensorSpec.of(Shape([total, *x.shape[1:]]), x.dtype)


def _of_computed_size(read: SizeReader, x: Any, counts: Any, group: ReplicaGroup) -> Any:
    """The rows of all workers, whose number the program computes from ``counts``."""
    (total,) = read(reduce_sum(counts), 0)
    return dispatch.current().apply(ALL_GATHER_ROWS, (x, counts), {"group": group, "total": total})


def _own_rows(g: Any, out: Any, x: Any, counts: Any, group: ReplicaGroup) -> Any:
    """The cotangent of this worker's rows, of which each worker's ``g`` has a part."""
    begin = reduce_sum(counts[: group.rank])
    rows = sum_over(g, group)[begin : begin + counts[group.rank]]
    return with_shape(rows, x.shape)


ALL_REDUCE: Final[Op] = register(
    Op(
        name="all_reduce",
        doc="The sum of the tensors of all workers of a group.",
        infer=lambda x, group: x,
        kernel=lambda x, group: group.all_reduce(x),
        kind=_native(Collective.ALL_REDUCE),
        vjp=(lambda g, out, x, group: sum_over(g, group),),
        effect=Effect.COLLECTIVE,
    )
)
ROW_COUNTS: Final[Op] = register(
    Op(
        name="row_counts",
        doc="The numbers of rows that the workers of a group gather next.",
        infer=lambda own, group, rows: TensorSpec.of(Shape([group.size]), int64),
        kernel=lambda own, group, rows: group.row_counts(own, rows),
        kind=_native(Collective.ROW_COUNTS),
        effect=Effect.COLLECTIVE,
    )
)
ALL_GATHER: Final[Op] = register(
    Op(
        name="all_gather",
        doc="The tensors of all workers of a group, concatenated along the first axis.",
        infer=_rows_of_all,
        kernel=lambda x, counts, group: group.all_gather(x, counts),
        kind=Decompose(_of_computed_size),
        vjp=(_own_rows, None),
        effect=Effect.COLLECTIVE,
        strings=True,
    )
)
ALL_GATHER_ROWS: Final[Op] = register(
    Op(
        name="all_gather_rows",
        doc="The tensors of all workers of a group, of ``total`` rows, concatenated along the first axis.",
        infer=_rows_of_all,
        kernel=lambda x, counts, group, total: group.all_gather(x, counts),
        kind=_native(Collective.ALL_GATHER_ROWS),
        effect=Effect.COLLECTIVE,
        strings=True,
    )
)
REDUCE_SCATTER_BLOCK: Final[Op] = register(
    Op(
        name="reduce_scatter_block",
        doc="This worker's block of the sum of the tensors of all workers of a group, of one block each.",
        infer=lambda x, group: TensorSpec.of(Shape([x.shape[0] // group.size, *x.shape[1:]]), x.dtype),
        kernel=lambda x, group: group.reduce_scatter_block(x),
        kind=_native(Collective.REDUCE_SCATTER),
        vjp=(lambda g, out, x, group: _apply(ALL_GATHER_BLOCK, (g,), group),),
        effect=Effect.COLLECTIVE,
    )
)
ALL_GATHER_BLOCK: Final[Op] = register(
    Op(
        name="all_gather_block",
        doc="The tensors of one shape of all workers of a group, concatenated along the first axis.",
        infer=lambda x, group: TensorSpec.of(Shape([x.shape[0] * group.size, *x.shape[1:]]), x.dtype),
        kernel=lambda x, group: group.all_gather_block(x),
        kind=_native(Collective.ALL_GATHER),
        vjp=(lambda g, out, x, group: _apply(REDUCE_SCATTER_BLOCK, (g,), group),),
        effect=Effect.COLLECTIVE,
    )
)


def sum_over(x: Any, group: ReplicaGroup) -> Tensor:
    """The sum of ``x`` over the workers of ``group``; floats of 16 and 8 bits are added as float32.

    Raises:
        DTypeError: bools or strings.
    """
    x = convert_to_tensor(x)
    wide = _added_as(x.dtype)
    if group.size == 1:
        return x
    if wide is x.dtype:  # without casts, which copy
        return _apply(ALL_REDUCE, (x,), group)
    return cast(_apply(ALL_REDUCE, (cast(x, wide),), group), x.dtype)


def sums_over(tensors: Iterable[Any], group: ReplicaGroup, bucket_bytes: int) -> list[Tensor]:
    """:func:`sum_over` of each tensor; tensors of one dtype share collectives of about ``bucket_bytes``.

    In a compiled graph the tensors are computed in the bucket, and the results are views of its sum.
    """
    values: list[Any] = [convert_to_tensor(x) for x in tensors]
    sums: list[Any] = [None] * len(values)
    for indices in _buckets(values, bucket_bytes):
        parts = [values[i] for i in indices]
        if len(parts) == 1:
            sums[indices[0]] = sum_over(parts[0], group)
            continue
        bucket = sum_over(concat([reshape(x, [-1]) for x in parts], 0), group)
        pieces = split(bucket, [x.shape.num_elements() for x in parts], 0)
        for i, x, piece in zip(indices, parts, pieces, strict=True):
            sums[i] = reshape(piece, x.shape)
    return sums


def gather_over(tensors: Sequence[Any], group: ReplicaGroup) -> list[Tensor]:
    """Each tensor joined with those of the other workers of ``group`` along the first axis.

    Tensors that are gathered together have one number of rows, which the workers exchange first.

    Raises:
        InvalidArgumentError: a tensor has no axes.
    """
    values: list[Any] = [convert_to_tensor(x) for x in tensors]
    for x in values:
        if not len(x.shape):
            raise InvalidArgumentError(
                f"Tensors are gathered along an axis, and {x.spec} has none: expand_dims(x, 0)."
            )
    if group.size == 1:
        return values
    first = values[0]
    own = reshape(cast(axis_size(first, 0, int64), int64), [1])
    counts = dispatch.current().apply(ROW_COUNTS, (own,), {"group": group, "rows": first.spec})
    return [_apply(ALL_GATHER, (x, counts), group) for x in values]


def block_sums_over(tensors: Sequence[Any], group: ReplicaGroup, bucket_bytes: int) -> list[Tensor]:
    """This worker's parts of the sums of tensors of static shapes over the workers of ``group``.

    The elements of each tensor, in a row, are divided into as many parts as there are workers, the last of
    them padded with zeros. Tensors of one dtype share collectives of about ``bucket_bytes``.

    Returns:
        A vector for each tensor, of :func:`part_size` elements.

    Raises:
        DTypeError: bools or strings.
    """
    values: list[Any] = [convert_to_tensor(x) for x in tensors]
    sums: list[Any] = [None] * len(values)
    for indices in _buckets(values, bucket_bytes):
        wide = [cast(values[i], _added_as(values[i].dtype)) for i in indices]
        lengths = [part_size(x.shape, group.size) for x in wide]
        rows = [_in_parts(x, n, group.size) for x, n in zip(wide, lengths, strict=True)]
        bucket = reshape(concat(rows, 1), [-1])
        own = _apply(REDUCE_SCATTER_BLOCK, (bucket,), group)
        for i, piece in zip(indices, split(own, lengths, 0), strict=True):
            sums[i] = cast(piece, values[i].dtype)
    return sums


def blocks_joined_over(
    parts: Sequence[Any], shapes: Sequence[Sequence[Any]], group: ReplicaGroup, bucket_bytes: int
) -> list[Tensor]:
    """The tensors of ``shapes`` whose parts the workers of ``group`` have; see :func:`block_sums_over`."""
    tensors: list[Any] = [None] * len(parts)
    for indices in _buckets(parts, max(1, bucket_bytes // group.size)):
        lengths = [parts[i].shape[0] for i in indices]
        bucket = _apply(ALL_GATHER_BLOCK, (concat([parts[i] for i in indices], 0),), group)
        rows = split(reshape(bucket, [group.size, sum(lengths)]), lengths, 1)
        for i, row in zip(indices, rows, strict=True):
            tensors[i] = reshape(reshape(row, [-1])[: math.prod(shapes[i])], shapes[i])
    return tensors


def part_size(shape: Sequence[Any], workers: int) -> int:
    """The number of elements of each part of a tensor, of static shape, that is divided among workers.

    >>> part_size([5, 2], 4)
    3
    """
    return -(-math.prod(shape) // workers)


def own_part(x: Any, group: ReplicaGroup) -> Tensor:
    """This worker's part of a tensor that all workers have: a vector."""
    x = convert_to_tensor(x)
    return _in_parts(x, part_size(x.shape, group.size), group.size)[group.rank]


def _in_parts(x: Any, length: int, workers: int) -> Tensor:
    """The elements of ``x`` as a matrix with a row for each worker, padded with zeros."""
    padding = length * workers - math.prod(x.shape)
    return reshape(pad(reshape(x, [-1]), [[0, padding]]) if padding else x, [workers, length])


def _apply(op: Op, inputs: tuple[Any, ...], group: ReplicaGroup) -> Any:
    return dispatch.current().apply(op, inputs, {"group": group})


def _added_as(dtype: DType) -> DType:
    """The dtype in which values of ``dtype`` are added."""
    if dtype.is_bool or dtype.is_string:
        raise DTypeError(f"Workers add numbers, and the tensor is of dtype {dtype.name}; cast it first.")
    return float32 if dtype.is_floating and dtype.size < 4 else dtype


def _buckets(values: Sequence[Any], bucket_bytes: int) -> list[list[int]]:
    """The positions of values that share a collective: of one dtype, in order; alone if a size is dynamic."""
    buckets: list[list[int]] = []
    open_buckets: dict[DType, tuple[list[int], int]] = {}
    for i, x in enumerate(values):
        if not x.shape.is_static:
            buckets.append([i])
            continue
        bucket, nbytes = open_buckets.get(x.dtype, ([], bucket_bytes))
        if nbytes >= bucket_bytes:
            bucket, nbytes = [], 0
            buckets.append(bucket)
        bucket.append(i)
        open_buckets[x.dtype] = bucket, nbytes + x.spec.nbytes
    return buckets
