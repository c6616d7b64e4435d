"""TensorFlow 1's functions of sparse tensors, strings and dtypes that version 2 has no name for."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from dualflow.compat.v1.collection import GraphKeys
from dualflow.compat.v1.scopes import get_variable
from dualflow.core.dtypes import int32
from dualflow.core.errors import InvalidArgumentError
from dualflow.function.debugging.assertions import check_numerics
from dualflow.graph_mode import no_op, recording_graph
from dualflow.numpy.distinct import isin
from dualflow.ops.arithmetic import maximum
from dualflow.ops.arrangement import expand_dims
from dualflow.ops.broadcasting import broadcast_to
from dualflow.ops.comparison import greater, logical_not
from dualflow.ops.conversion import cast
from dualflow.ops.creation import convert_to_tensor, fill
from dualflow.ops.linear_algebra.norms import norm
from dualflow.ops.masking import boolean_mask
from dualflow.ops.ragged.creation import boolean_mask as ragged_mask
from dualflow.ops.scattering import tensor_scatter_nd_update
from dualflow.ops.selection import where
from dualflow.ops.shapes import shape as shape_of
from dualflow.ops.shapes import size
from dualflow.ops.sparse.pairs import add as v2_add
from dualflow.ops.sparse.sparse_tensor import SparseTensor
from dualflow.ops.taking import gather
from dualflow.ops.text.letters import length
from dualflow.ops.text.patterns import regex_replace
from dualflow.ops.text.splitting import bytes_split
from dualflow.ops.text.splitting import split as v2_split

if TYPE_CHECKING:
    from dualflow.core.argument_types import DTypeLike, IntsLike, TensorLike
    from dualflow.graph_mode import Operation
    from dualflow.ops.tensor import Tensor


def batch_gather(params: TensorLike, indices: TensorLike, name: str | None = None) -> Tensor:
    """Elements of ``params`` by the last axis of ``indices``; the axes before it are those of a batch.

    >>> from dualflow.compat import v1
    >>> v1.batch_gather([[1, 2, 3], [4, 5, 6]], [[0, 1], [2, 2]]).numpy().tolist()
    [[1, 2], [6, 6]]
    """
    indices = convert_to_tensor(indices)
    return gather(params, indices, batch_dims=len(indices.shape) - 1)


class ListDiff(NamedTuple):
    """What :func:`setdiff1d` returns: ``out``, the elements, and ``idx``, their indices."""

    out: Tensor
    idx: Tensor


def setdiff1d(
    x: TensorLike, y: TensorLike, index_dtype: DTypeLike = int32, name: str | None = None
) -> ListDiff:
    """The elements of a vector that are not in another, in their order, and their indices.

    >>> from dualflow.compat import v1
    >>> elements, indices = v1.setdiff1d([4, 1, 3, 1], [3])
    >>> elements.numpy().tolist(), indices.numpy().tolist()
    ([4, 1, 1], [0, 1, 3])
    """
    x = convert_to_tensor(x)
    kept = logical_not(isin(x, y))
    return ListDiff(boolean_mask(x, kept), cast(where(kept)[:, 0], index_dtype))


def clip_by_average_norm(t: TensorLike, clip_norm: TensorLike, name: str | None = None) -> Tensor:
    """``t``, scaled so that its L2 norm, divided by its number of elements, is at most ``clip_norm``.

    >>> from dualflow.compat import v1
    >>> v1.clip_by_average_norm([3.0, 4.0], 1.25).numpy()
    array([1.5, 2. ], dtype=float32)
    """
    t = convert_to_tensor(t)
    return t * clip_norm / maximum(norm(t) / cast(size(t), t.dtype), clip_norm)


def verify_tensor_all_finite(
    t: TensorLike | None = None,
    msg: str = "",
    name: str | None = None,
    x: TensorLike | None = None,
    message: str | None = None,
) -> Tensor:
    """:func:`dualflow.debugging.check_numerics` of ``t`` or ``x``, with the message ``msg`` or ``message``.

    >>> from dualflow.compat import v1
    >>> v1.verify_tensor_all_finite([1.0], "a weight").numpy().tolist()
    [1.0]
    """
    tensor: Any = t if x is None else x
    return check_numerics(tensor, message or msg)


def executing_eagerly_outside_functions() -> bool:
    """Whether ops run, or are traced for functions, rather than added to an explicit graph.

    >>> from dualflow.compat import v1
    >>> v1.executing_eagerly_outside_functions()
    True
    >>> with v1.Graph().as_default():
    ...     v1.executing_eagerly_outside_functions()
    False
    """
    return recording_graph() is None


def tables_initializer(name: str = "init_all_tables") -> Operation | None:
    """An operation that does nothing, since lookup tables have their values from the start; eagerly None.

    >>> from dualflow.compat import v1
    >>> v1.tables_initializer()
    """
    return no_op(name=name)


def sparse_add(
    a: TensorLike | SparseTensor,
    b: TensorLike | SparseTensor,
    threshold: TensorLike | None = None,
    thresh: TensorLike | None = None,
) -> Any:
    """:func:`dualflow.sparse.add`; ``thresh`` is an older name for ``threshold``.

    >>> from dualflow.compat import v1
    >>> one = v1.SparseTensor([[0]], [1.0], [2])
    >>> v1.sparse_add(one, one).values.numpy().tolist()
    [2.0]
    """
    smallest = thresh if threshold is None else threshold
    return v2_add(a, b, 0 if smallest is None else smallest)


def sparse_to_dense(
    sparse_indices: TensorLike,
    output_shape: IntsLike,
    sparse_values: TensorLike,
    default_value: TensorLike = 0,
    validate_indices: bool = True,
    name: str | None = None,
) -> Tensor:
    """A tensor of ``output_shape`` with ``sparse_values`` at ``sparse_indices``.

    Args:
        sparse_indices: an index, a vector of indices of a vector, or a matrix with an index of every axis in
            each row.
        output_shape: the sizes.
        sparse_values: a value for each index, or one for all.
        default_value: the value of other elements.
        validate_indices: ignored: the order of the indices is arbitrary.
        name: ignored; as in TensorFlow.

    >>> from dualflow.compat import v1
    >>> v1.sparse_to_dense([1, 3], [5], 1.0).numpy().tolist()
    [0.0, 1.0, 0.0, 1.0, 0.0]
    """
    indices, values = convert_to_tensor(sparse_indices), convert_to_tensor(sparse_values)
    while len(indices.shape) < 2:
        indices = expand_dims(indices, -1 if len(indices.shape) else 0)
    if not len(values.shape):
        values = broadcast_to(values, shape_of(indices)[:1])
    return tensor_scatter_nd_update(fill(output_shape, cast(default_value, values.dtype)), indices, values)


_SPARSE: Final = "SparseTensor"
_RAGGED: Final = "RaggedTensor"


def string_split(
    source: TensorLike,
    sep: str | None = None,
    skip_empty: bool = True,
    delimiter: str = " ",
    result_type: str = _SPARSE,
    name: str | None = None,
) -> Any:
    """The parts of each string between delimiters.

    Args:
        source: a vector of strings.
        sep: an older name for ``delimiter``.
        skip_empty: whether empty parts are left out.
        delimiter: each of its bytes is a delimiter; without any, each byte of a string is a part.
        result_type: "SparseTensor" or "RaggedTensor".
        name: ignored; as in TensorFlow.

    Raises:
        InvalidArgumentError: another ``result_type``.

    >>> from dualflow.compat import v1
    >>> v1.string_split(["hello world", "a  b"]).values.numpy().tolist()
    [b'hello', b'world', b'a', b'b']
    """
    delimiters = delimiter if sep is None else sep
    if not delimiters:
        return _typed(bytes_split(source), result_type)
    first = delimiters[0]
    text = source if len(delimiters) == 1 else regex_replace(source, f"[{re.escape(delimiters)}]", first)
    parts = v2_split(text, first)
    if skip_empty:
        parts = ragged_mask(parts, parts.with_flat_values(greater(length(parts.flat_values), 0)))
    return _typed(parts, result_type)


def strings_split(
    input: TensorLike | None = None,
    sep: str | None = None,
    maxsplit: int = -1,
    result_type: str = _SPARSE,
    source: TensorLike | None = None,
    name: str | None = None,
) -> Any:
    """:func:`dualflow.strings.split` of a string or a vector of them, as a SparseTensor.

    Args:
        input: a string, which is a vector of one, or strings.
        sep, maxsplit: as of :func:`dualflow.strings.split`.
        result_type: "SparseTensor" or "RaggedTensor".
        source: an older name for ``input``.
        name: ignored; as in TensorFlow.

    Raises:
        InvalidArgumentError: another ``result_type``.

    >>> from dualflow.compat import v1
    >>> v1.strings.split(["hello world", "a"]).dense_shape.numpy().tolist()
    [2, 2]
    """
    strings: Any = source if input is None else input
    text = convert_to_tensor(strings)
    if not len(text.shape):
        text = expand_dims(text, 0)
    return _typed(v2_split(text, sep, maxsplit), result_type)


def _typed(ragged: Any, result_type: str) -> Any:
    if result_type not in (_SPARSE, _RAGGED):
        raise InvalidArgumentError(f"result_type is {_SPARSE!r} or {_RAGGED!r}, not {result_type!r}.")
    return ragged.to_sparse() if result_type == _SPARSE else ragged


def convert_to_tensor_or_sparse_tensor(
    value: TensorLike | SparseTensor, dtype: DTypeLike | None = None, name: str | None = None
) -> Tensor | SparseTensor:
    """A SparseTensor itself, and anything else as a tensor.

    >>> from dualflow.compat import v1
    >>> v1.convert_to_tensor_or_sparse_tensor([1]).numpy().tolist()
    [1]
    """
    return value if isinstance(value, SparseTensor) else convert_to_tensor(value, dtype)


def get_local_variable(name: str, *args: Any, **kwargs: Any) -> Any:
    """:func:`get_variable` of the same arguments, of a variable that is local and not trainable.

    >>> from dualflow.compat import v1
    >>> with v1.Graph().as_default():
    ...     count = v1.get_local_variable("count", [], initializer=v1.zeros_initializer())
    ...     v1.local_variables() == [count], v1.trainable_variables()
    (True, [])
    """
    collections = [*(kwargs.pop("collections", None) or ()), GraphKeys.LOCAL_VARIABLES]
    return get_variable(name, *args, **{**kwargs, "trainable": False, "collections": collections})
