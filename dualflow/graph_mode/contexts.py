"""Queries about the current context: eager execution, a traced function, or an explicit graph."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from dualflow.core import dispatch, naming
from dualflow.core.composite_tensor import CompositeTensor
from dualflow.core.dispatch import TENSORS, AbstractComposite, AbstractTensor, AbstractVariable
from dualflow.core.spec import TensorSpec
from dualflow.core.tracebacks import entry
from dualflow.eager.device_engine import eager_engine
from dualflow.function.tracing.symbolic_tensor import SymbolicTensor
from dualflow.function.tracing.tracer import Tracer
from dualflow.graph_mode.graph_engine import GraphEngine
from dualflow.ops.creation import convert_to_tensor

if TYPE_CHECKING:
    from dualflow.core.argument_types import TensorLike


def is_tensor(x: TensorLike) -> bool:
    """Whether ``x`` is a tensor, a variable, a SparseTensor or IndexedSlices.

    >>> import dualflow as df
    >>> df.is_tensor(df.constant(1)), df.is_tensor(df.Variable(1)), df.is_tensor(1)
    (True, True, False)
    """
    return isinstance(x, (*TENSORS, AbstractComposite))


def is_symbolic_tensor(tensor: TensorLike) -> bool:
    """Whether ``tensor`` is symbolic: its value is known when a traced function or a graph runs.

    >>> import dualflow as df
    >>> df.is_symbolic_tensor(df.constant(1))
    False
    """
    return isinstance(tensor, SymbolicTensor)


def inside_function() -> bool:
    """Whether a function is being traced, so that ops are recorded.

    >>> import dualflow as df
    >>> df.inside_function(), bool(df.function(df.inside_function)())
    (False, True)
    """
    engine = dispatch.current().innermost
    return isinstance(engine, Tracer) and not isinstance(engine, GraphEngine)


@contextmanager
def init_scope() -> Iterator[None]:
    """A context whose ops run eagerly, even in a function that is being traced; no tape records them.

    In an explicit graph they are added to the graph.

    >>> import dualflow as df
    >>> @df.function
    ... def f(x):
    ...     with df.init_scope():
    ...         table = df.constant([1.0, 2.0]).numpy()
    ...     return x * table
    >>> f(df.constant(3.0)).numpy()
    array([3., 6.], dtype=float32)
    """
    engine: Any = dispatch.current().innermost
    while isinstance(engine, Tracer) and engine.outer is not None:
        engine = engine.outer
    with dispatch.using(engine if isinstance(engine, GraphEngine) else eager_engine()):
        yield


def get_static_value(tensor: TensorLike, partial: bool = False) -> Any:
    """The value of a tensor as a NumPy array or scalar, if it is known while a function is traced; else None.

    Where sizes are dynamic because calls differ, those of the traced call are known, and the trace serves
    only calls with these sizes.

    Args:
        tensor: a tensor; other objects are returned unchanged.
        partial: ignored, since values are never known in part.

    >>> import dualflow as df
    >>> df.get_static_value(df.constant([1, 2]))
    array([1, 2], dtype=int32)
    """
    if isinstance(tensor, AbstractVariable):
        return None
    if not isinstance(tensor, AbstractTensor):
        return tensor
    symbolic: Any = tensor
    value = symbolic.python_value() if isinstance(tensor, SymbolicTensor) else symbolic.static_value()
    return value if value is None or value.ndim else value[()]


def get_current_name_scope() -> str:
    """The open name scopes, joined by ``/``; empty if there are none.

    >>> import dualflow as df
    >>> with df.name_scope("a"), df.name_scope("b"):
    ...     df.get_current_name_scope()
    'a/b'
    """
    return naming.prefix().removesuffix("/")


@entry
def type_spec_from_value(value: TensorLike) -> Any:
    """The spec of a value: a TensorSpec, or that of an extension type or another composite.

    Raises:
        DTypeError: ``value`` can't be converted to a tensor.

    >>> import dualflow as df
    >>> df.type_spec_from_value([1.0, 2.0])
    TensorSpec(shape=(2,), dtype=tf.float32, name=None)
    """
    if isinstance(value, CompositeTensor):
        return value._type_spec
    return TensorSpec.from_tensor(convert_to_tensor(value))
