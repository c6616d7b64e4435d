"""Jacobians of which most elements are 0, in as few passes as columns or rows have to be told apart."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Hashable, Sequence
from typing import Any

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
from dualflow.function.decorator import Function
from dualflow.function.dependence_pattern import pattern_of
from dualflow.ops.arrangement import reshape
from dualflow.ops.creation import convert_to_tensor
from dualflow.ops.scattering import gather_nd
from dualflow.ops.sparse.sparse_tensor import SparseTensor

Array = np.ndarray[Any, Any]


class _Colouring(NamedTuple):
    """How a jacobian is computed.

    Attributes:
        places: the row and the column of each element that is computed, in order of rows.
        colours: for each column, or row, its colour: no two of a colour have an element in the same place.
        by_columns: whether columns are coloured, and passes go forward.
    """

    places: Array
    colours: Array
    by_columns: bool

    @property
    def passes(self) -> int:
        """How many passes there are."""
        return int(self.colours.max(initial=-1)) + 1


@entry
def sparse_jacobian(f: Callable[..., Any], pattern: Any = None) -> Callable[..., SparseTensor]:
    """A function that computes the jacobian of ``f`` for its first argument, where most elements are 0.

    Columns that have no row in common are computed in one forward pass, or rows that have no column in
    common in one backward pass: a tridiagonal matrix takes 3 passes, whatever its size. All passes are taken
    at once. networkx colours columns or rows, whichever are less crowded, greedily, the most crowded first.
    (Curtis, Powell and Reid, "On the estimation of sparse jacobian matrices", 1974; Gebremedhin, Manne and
    Pothen, "What color is your jacobian?", 2005.)

    Args:
        f: takes tensors of static shape, and returns one.
        pattern: which elements of the jacobian may differ from 0: a matrix, a SparseTensor or a SciPy sparse
            array with a row for each element of the result and a column for each of the argument. It has
            to have all of them: what it leaves out goes to others. By default it is read off the
            graph of ``f``, once for each shape of arguments; what reads elements by computed indices, or
            runs as a call of a library, is taken to depend on all that it reads.

    Returns:
        A function of the arguments of ``f`` that returns a SparseTensor of shape ``result.shape +
        argument.shape``, in order; ``df.sparse.to_dense`` makes a tensor of it.

    Raises:
        InvalidArgumentError: by that function: sizes that are not known, or a pattern of another size.

    >>> import dualflow as df
    >>> f = df.autodiff.sparse_jacobian(lambda x: x[1:] * x[:-1])
    >>> found = f(df.constant([1.0, 2.0, 3.0, 4.0]))
    >>> df.sparse.to_dense(found).numpy()
    array([[2., 1., 0., 0.],
           [0., 3., 2., 0.],
           [0., 0., 4., 3.]], dtype=float32)
    """
    known: dict[Hashable, tuple[_Colouring, tuple[int, ...]]] = {}

    @entry
    @functools.wraps(f)
    def computed(x: Any, *args: Any, **kwargs: Any) -> SparseTensor:
        x = convert_to_tensor(x)
        key = _kind([x, *tree.leaves((args, kwargs))])
        found = known.get(key) if key is not None else None
        if found is None:
            found = _prepared(f, pattern, x, args, kwargs)
        if key is not None:
            known[key] = found
        colouring, shape = found
        values = _values(lambda x: f(x, *args, **kwargs), x, colouring, shape)
        rows, columns = colouring.places.T
        places = np.hstack([_unravelled(rows, shape), _unravelled(columns, tuple(x.shape))])
        return SparseTensor(places, values, (*shape, *x.shape))

    return computed


def _kind(leaves: Sequence[Any]) -> Hashable | None:
    """What a pattern depends on: specs of tensors, values of others; None where one has no hash."""
    kinds = [(x.shape, x.dtype) if isinstance(x, TENSORS) else (type(x), x) for x in leaves]
    unhashable = any(getattr(type(x), "__hash__", None) is None for x in leaves if not isinstance(x, TENSORS))
    return None if unhashable else tuple(kinds)


def _unravelled(places: Array, shape: tuple[int, ...]) -> Array:
    """The indices of elements that are numbered in order: a row for each."""
    if not shape:
        return np.zeros((len(places), 0), np.int64)
    return np.stack(np.unravel_index(places, shape), -1).astype(np.int64)


def _prepared(
    f: Callable[..., Any], pattern: Any, x: Any, args: Sequence[Any], kwargs: dict[str, Any]
) -> tuple[_Colouring, tuple[int, ...]]:
    """How the jacobian is computed, and the shape of the result of ``f``."""
    if not x.shape.is_static:
        raise InvalidArgumentError(f"A sparse jacobian needs an argument of static shape, not {x.shape}.")
    traced: Any = Function(lambda x: convert_to_tensor(f(x, *args, **kwargs)))
    graph = traced.get_concrete_function(TensorSpec(x.shape, x.dtype)).graph
    shape = graph.outputs[0].spec.shape
    if not shape.is_static:
        raise InvalidArgumentError(f"A sparse jacobian needs a result of static shape, not {shape}.")
    found = pattern_of(graph) if pattern is None else _matrix(pattern)
    wanted = math.prod(shape), math.prod(x.shape)
    if found.shape != wanted:
        raise InvalidArgumentError(
            f"The pattern of a jacobian has a row for each element of the result and a column for each of "
            f"the argument: shape {wanted}, not {found.shape}."
        )
    return _coloured(found), tuple(shape)


def _matrix(pattern: Any) -> Any:
    """The pattern that a user gives, as a SciPy sparse array."""
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
    """Columns or rows coloured, of which fewer meet in one place."""
    bits = pattern.astype(np.int32)
    bits.eliminate_zeros()
    crowded = [int(bits.sum(axis=axis).max(initial=0)) for axis in (1, 0)]
    by_columns = crowded[0] <= crowded[1]
    sides = bits if by_columns else bits.T
    meeting = (sides.T @ sides).tocoo()
    networkx = imported("networkx")
    graph = networkx.Graph()
    graph.add_nodes_from(range(meeting.shape[0]))
    graph.add_edges_from(zip(meeting.row.tolist(), meeting.col.tolist(), strict=True))
    graph.remove_edges_from([(i, i) for i in range(meeting.shape[0])])
    found = networkx.greedy_color(graph, strategy="largest_first")
    colours = np.array([found[i] for i in range(meeting.shape[0])], np.int64)
    rows, columns = bits.nonzero()
    order = np.lexsort((columns, rows))
    return _Colouring(np.stack([rows[order], columns[order]], -1), colours, by_columns)


def _values(f: Callable[[Any], Any], x: Any, colouring: _Colouring, shape: tuple[int, ...]) -> Any:
    """The elements of the jacobian at the places of the pattern."""
    if not len(colouring.places):
        return convert_to_tensor(np.zeros(0, x.dtype.dtype))
    one_hot = np.eye(colouring.passes, dtype=x.dtype.dtype)[:, colouring.colours]
    if colouring.by_columns:
        seeds = convert_to_tensor(one_hot.reshape(-1, *x.shape))
        rows = vmap(lambda seed: jvp(f, [x], [seed])[1])(seeds)
        at, colour = colouring.places[:, 0], colouring.colours[colouring.places[:, 1]]
    else:
        seeds = convert_to_tensor(one_hot.reshape(-1, *shape))
        rows = vmap(lambda seed: vjp(f, x)[1](seed)[0])(seeds)
        at, colour = colouring.places[:, 1], colouring.colours[colouring.places[:, 0]]
    return gather_nd(reshape(rows, [colouring.passes, -1]), np.stack([colour, at], -1))
