"""Sparse jacobians: columns or rows without common elements are computed in one pass."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dualflow.core import tree
from dualflow.core.dispatch import TENSORS
from dualflow.core.errors import InvalidArgumentError
from dualflow.core.locks import imported
from dualflow.core.records import NamedTuple
from dualflow.core.spec import TensorSpec
from dualflow.core.tracebacks import entry
from dualflow.eager.derivatives import jvp, vjp
from dualflow.function.batching.vmap import vmap
from dualflow.function.dependence_pattern import pattern_of
from dualflow.function.traced_function import Function
from dualflow.ops.arrangement import reshape
from dualflow.ops.creation import convert_to_tensor
from dualflow.ops.scattering import gather_nd
from dualflow.ops.sparse.sparse_tensor import SparseTensor

if TYPE_CHECKING:
    from dualflow.core.argument_types import TensorLike

Array = np.ndarray[Any, Any]


class _Colouring(NamedTuple):
    """The groups of columns or rows of a jacobian that are computed in one pass each.

    Attributes:
        coordinates: the row and the column of each element that is computed, in order of rows.
        colours: the colour of each column, or row; those of one colour have no elements in a common row, or
            column.
        by_columns: whether columns are coloured, and computed in forward mode.
    """

    coordinates: Array
    colours: Array
    by_columns: bool

    @property
    def passes(self) -> int:
        """The number of passes: one for each colour."""
        return int(self.colours.max(initial=-1)) + 1


@entry
def sparse_jacobian(f: Callable[..., Any], pattern: TensorLike | None = None) -> Callable[..., SparseTensor]:
    """A function that computes the sparse jacobian of ``f`` with respect to its first argument.

    Columns that have no row in common are computed in one forward pass, or rows that have no column in
    common in one backward pass: a tridiagonal matrix takes 3 passes, whatever its size. All passes run as
    one batch. networkx colours columns or rows, whichever need fewer colours, greedily by degree. (Curtis,
    Powell and Reid, "On the estimation of sparse jacobian matrices", 1974; Gebremedhin, Manne and Pothen,
    "What color is your jacobian?", 2005.)

    Args:
        f: a function of tensors of static shape that returns one.
        pattern: the elements of the jacobian that may differ from 0: a matrix, a SparseTensor or a SciPy
            sparse array with a row for each element of the result and a column for each of the argument. It
            must have all of them: omitted ones are added to others. By default it is derived from the graph
            of ``f``, once for each shape of arguments. The result of an op with computed indices, or of a
            library call, is assumed to depend on all elements that the op reads.

    Returns:
        A function of the arguments of ``f`` that returns a SparseTensor of shape ``result.shape +
        argument.shape``, in row-major order; ``df.sparse.to_dense`` converts it to a tensor.

    Raises:
        InvalidArgumentError: raised by that function: sizes depend on data, or the pattern has another shape.

    >>> import dualflow as df
    >>> f = df.autodiff.sparse_jacobian(lambda x: x[1:] * x[:-1])
    >>> jacobian = f(df.constant([1.0, 2.0, 3.0, 4.0]))
    >>> df.sparse.to_dense(jacobian).numpy()
    array([[2., 1., 0., 0.],
           [0., 3., 2., 0.],
           [0., 0., 4., 3.]], dtype=float32)
    """
    colourings: dict[Hashable, tuple[_Colouring, tuple[int, ...]]] = {}

    @entry
    @functools.wraps(f)
    def computed(x: Any, *args: Any, **kwargs: Any) -> SparseTensor:
        x = convert_to_tensor(x)
        key = _kind([x, *tree.leaves((args, kwargs))])
        prepared = colourings.get(key) if key is not None else None
        if prepared is None:
            prepared = _prepared(f, pattern, x, args, kwargs)
        if key is not None:
            colourings[key] = prepared
        colouring, shape = prepared
        values = _values(lambda x: f(x, *args, **kwargs), x, colouring, shape)
        rows, columns = colouring.coordinates.T
        coordinates = np.hstack([_unravelled(rows, shape), _unravelled(columns, tuple(x.shape))])
        return SparseTensor(coordinates, values, (*shape, *x.shape))

    return computed


def _kind(leaves: Sequence[Any]) -> Hashable | None:
    """The key of a pattern: the specs of tensors, and other values; None if one of these has no hash."""
    kinds = [(x.shape, x.dtype) if isinstance(x, TENSORS) else (type(x), x) for x in leaves]
    unhashable = any(getattr(type(x), "__hash__", None) is None for x in leaves if not isinstance(x, TENSORS))
    return None if unhashable else tuple(kinds)


def _unravelled(coordinates: Array, shape: tuple[int, ...]) -> Array:
    """The multi-dimensional index of each flat index in ``coordinates``, one per row."""
    if not shape:
        return np.zeros((len(coordinates), 0), np.int64)
    return np.stack(np.unravel_index(coordinates, shape), -1).astype(np.int64)


def _prepared(
    f: Callable[..., Any], pattern: Any, x: Any, args: Sequence[Any], kwargs: dict[str, Any]
) -> tuple[_Colouring, tuple[int, ...]]:
    """The colouring of the jacobian, and the shape of the result of ``f``."""
    if not x.shape.is_static:
        raise InvalidArgumentError(f"A sparse jacobian needs an argument of static shape, not {x.shape}.")
    traced: Any = Function(lambda x: convert_to_tensor(f(x, *args, **kwargs)))
    graph = traced.get_concrete_function(TensorSpec(x.shape, x.dtype)).graph
    shape = graph.outputs[0].spec.shape
    if not shape.is_static:
        raise InvalidArgumentError(f"A sparse jacobian needs a result of static shape, not {shape}.")
    matrix = pattern_of(graph) if pattern is None else _matrix(pattern)
    expected = math.prod(shape), math.prod(x.shape)
    if matrix.shape != expected:
        raise InvalidArgumentError(
            f"The pattern of a jacobian has a row for each element of the result and a column for each of "
            f"the argument: shape {expected}, not {matrix.shape}."
        )
    return _coloured(matrix), tuple(shape)


def _matrix(pattern: Any) -> Any:
    """A user's pattern as a SciPy sparse array."""
    sparse = imported("scipy.sparse")
    if isinstance(pattern, SparseTensor):
        rows, columns = pattern.indices.numpy().T
        data = pattern.values.numpy() != 0
        return sparse.csr_array((data, (rows, columns)), tuple(pattern.shape))
    if sparse.issparse(pattern):
        return sparse.csr_array(pattern)
    array = np.asarray(pattern)
    if array.ndim != 2:
        raise InvalidArgumentError(f"The pattern of a jacobian is a matrix, not of shape {array.shape}.")
    return sparse.csr_array(array != 0)


def _coloured(pattern: Any) -> _Colouring:
    """A colouring of the columns, or of the rows if a row has more elements than any column."""
    bits = pattern.astype(np.int32)
    bits.eliminate_zeros()
    most_per_row, most_per_column = (int(bits.sum(axis=axis).max(initial=0)) for axis in (1, 0))
    by_columns = most_per_row <= most_per_column
    columns_or_rows = bits if by_columns else bits.T
    common = (columns_or_rows.T @ columns_or_rows).tocoo()
    networkx = imported("networkx")
    graph = networkx.Graph()
    graph.add_nodes_from(range(common.shape[0]))
    graph.add_edges_from(zip(common.row.tolist(), common.col.tolist(), strict=True))
    graph.remove_edges_from([(i, i) for i in range(common.shape[0])])
    colour_of = networkx.greedy_color(graph, strategy="largest_first")
    colours = np.array([colour_of[i] for i in range(common.shape[0])], np.int64)
    rows, columns = bits.nonzero()
    order = np.lexsort((columns, rows))
    return _Colouring(np.stack([rows[order], columns[order]], -1), colours, by_columns)


def _values(f: Callable[[Any], Any], x: Any, colouring: _Colouring, shape: tuple[int, ...]) -> Any:
    """The elements of the jacobian inside the pattern, by one jvp or vjp for each colour."""
    if not len(colouring.coordinates):
        return convert_to_tensor(np.zeros(0, x.dtype.dtype))
    one_hot = np.eye(colouring.passes, dtype=x.dtype.dtype)[:, colouring.colours]
    if colouring.by_columns:
        seeds = convert_to_tensor(one_hot.reshape(-1, *x.shape))
        rows = vmap(lambda seed: jvp(f, [x], [seed])[1])(seeds)
        at, colour = colouring.coordinates[:, 0], colouring.colours[colouring.coordinates[:, 1]]
    else:
        seeds = convert_to_tensor(one_hot.reshape(-1, *shape))
        rows = vmap(lambda seed: vjp(f, x)[1](seed)[0])(seeds)
        at, colour = colouring.coordinates[:, 1], colouring.colours[colouring.coordinates[:, 0]]
    return gather_nd(reshape(rows, [colouring.passes, -1]), np.stack([colour, at], -1))
