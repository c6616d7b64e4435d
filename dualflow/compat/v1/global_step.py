"""The global step, a variable that counts training steps: one per graph, and one for eager execution."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from dualflow.compat.v1.initializers import Zeros
from dualflow.compat.v1.scopes import VariableScope, get_variable, variable_scope
from dualflow.core import dispatch
from dualflow.core.dispatch import TENSORS
from dualflow.core.dtypes import int64
from dualflow.core.errors import DTypeError, InvalidArgumentError
from dualflow.eager.engine import EAGER
from dualflow.graph_mode import GLOBAL_VARIABLES, ExplicitGraph, VariableV1, recording_graph

if TYPE_CHECKING:
    from dualflow.core.argument_types import TensorLike
    from dualflow.graph_mode.session import Session

GLOBAL_STEP: Final = "global_step"


class _EagerGlobalStep:
    """The global step of eager execution, which all threads share.

    It is a class attribute, which functions assign without a ``global`` statement.
    """

    variable: Any = None


def get_global_step(graph: ExplicitGraph | None = None) -> Any:
    """The global step of the graph, or eagerly that of the process; None if it has not been created.

    >>> from dualflow.compat import v1
    >>> with v1.Graph().as_default():
    ...     v1.train.get_global_step() is None
    True
    """
    owner = graph or recording_graph()
    return _EagerGlobalStep.variable if owner is None else next(iter(owner.get_collection(GLOBAL_STEP)), None)


def create_global_step(graph: ExplicitGraph | None = None) -> Any:
    """A new variable ``global_step`` of int64, for ``minimize(loss, global_step=...)`` to count up.

    Raises:
        InvalidArgumentError: it exists already.

    >>> from dualflow.compat import v1
    >>> with v1.Graph().as_default():
    ...     v1.train.create_global_step().name
    'global_step:0'
    """
    owner = graph or recording_graph()
    if get_global_step(owner) is not None:
        raise InvalidArgumentError('"global_step" already exists: get_or_create_global_step() returns it.')
    if owner is None:
        with dispatch.using(EAGER):
            _EagerGlobalStep.variable = VariableV1(0, dtype=int64, trainable=False, name=GLOBAL_STEP)
        return _EagerGlobalStep.variable
    collections = [GLOBAL_VARIABLES, GLOBAL_STEP]
    with owner.as_default(), owner.name_scope(None), _root_scope():
        return get_variable(GLOBAL_STEP, [], int64, Zeros(), trainable=False, collections=collections)


def _root_scope() -> Any:
    """A context manager that leaves all variable scopes."""
    return variable_scope(VariableScope(), auxiliary_name_scope=False)


def get_or_create_global_step(graph: ExplicitGraph | None = None) -> Any:
    """The global step of the graph, which is created if there is none.

    >>> from dualflow.compat import v1
    >>> with v1.Graph().as_default(), v1.Session() as session:
    ...     w, steps = v1.Variable(1.0), v1.train.get_or_create_global_step()
    ...     train = v1.train.GradientDescentOptimizer(0.1).minimize(w * w, global_step=steps)
    ...     session.run(v1.global_variables_initializer())
    ...     session.run(train)
    ...     print(v1.train.global_step(session, steps))
    1
    """
    step = get_global_step(graph)
    return create_global_step(graph) if step is None else step


def global_step(sess: Session, global_step_tensor: TensorLike) -> int:
    """The value of the global step in a session, as a Python int."""
    return int(sess.run(global_step_tensor))


def assert_global_step(global_step_tensor: TensorLike) -> None:
    """Raise unless ``global_step_tensor`` may be a global step: one integer.

    Args:
        global_step_tensor: a variable or tensor.

    Raises:
        DTypeError: it is of another type, or no integer.
        InvalidArgumentError: it has axes.

    >>> from dualflow.compat import v1
    >>> v1.train.assert_global_step(v1.Variable(0))
    """
    tensor: Any = global_step_tensor
    if not isinstance(tensor, TENSORS) or not tensor.dtype.is_integer:
        raise DTypeError(
            f'Existing "global_step" must be a variable or tensor of one integer, not {tensor!r}.'
        )
    if tensor.shape.rank:
        raise InvalidArgumentError(f'Existing "global_step" is not scalar: its shape is {tensor.shape}.')
