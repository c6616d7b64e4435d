"""Variables of explicit graphs: sessions hold their values, and assignments are ops."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from dualflow.core.errors import FailedPreconditionError, InvalidArgumentError
from dualflow.core.naming import prefix, scoped
from dualflow.core.tracebacks import entry
from dualflow.core.warning import called_by_user
from dualflow.eager.variable import Variable
from dualflow.graph_mode.default_graph import get_default_graph, recording_graph
from dualflow.graph_mode.default_session import session_for
from dualflow.graph_mode.graph import ExplicitGraph
from dualflow.graph_mode.graph_engine import GLOBAL_VARIABLES, TRAINABLE_VARIABLES
from dualflow.graph_mode.names import check_name
from dualflow.graph_mode.operation import Operation

if TYPE_CHECKING:
    from collections.abc import Callable

    from dualflow.core.argument_types import DTypeLike, ShapeLike, TensorLike


@contextmanager
def name_scope(
    name: str | None, default_name: str | None = None, values: TensorLike | None = None
) -> Iterator[str]:
    """A context in which the names of ops and of variables begin with ``name/``.

    In a graph a name that is taken gets a number; see :meth:`Graph.name_scope`. Eagerly only variables have
    names. ``get_variable`` uses variable scopes instead.

    Args:
        name: of the scope; one that ends in ``/`` enters that scope again; ``""`` leaves all scopes.
        default_name: the name if ``name`` is None.
        values: TensorFlow's, and ignored.

    >>> from dualflow.compat import v1
    >>> with v1.Graph().as_default(), v1.name_scope("layer") as scope:
    ...     print(scope, v1.placeholder(v1.float32, [], name="x").name)
    layer/ layer/x:0
    """
    name = default_name if name is None else name
    graph = recording_graph()
    if graph is not None:
        with scoped(""), graph.name_scope(name) as scope:
            yield scope
        return
    with scoped(check_name(name, prefix()) if name else "") as scope:
        yield scope


class VariableV1(Variable):
    """A variable with TensorFlow 1's arguments.

    In a graph each session has a value of it, which is uninitialised at first: see
    :func:`global_variables_initializer`. Eagerly it is a :class:`dualflow.Variable`.

    Args:
        initial_value: a tensor, what converts to one, or a function that returns it.
        trainable: whether optimizers update it by default.
        collections: the names of the graph's collections to add it to, by default that of all variables.
        name: the name; in a graph it is made unique, and begins with the open scopes.
        dtype: of the values.
        constraint: a function that optimizers apply to the value after each update.
        shape: of the values, by default the initial value's.

    The other arguments are TensorFlow's, and ignored.

    >>> from dualflow.compat import v1
    >>> with v1.Graph().as_default(), v1.Session() as session:
    ...     w = v1.Variable([1.0, 2.0], name="w")
    ...     session.run(w.initializer)
    ...     print(w.name, w.eval())
    w:0 [1. 2.]
    """

    def __init__(
        self,
        initial_value: TensorLike | Callable[[], Any] | None = None,
        trainable: bool | None = None,
        collections: Sequence[str] | None = None,
        validate_shape: bool = True,
        caching_device: object = None,
        name: str | None = None,
        variable_def: object = None,
        dtype: DTypeLike | None = None,
        expected_shape: TensorLike | None = None,
        import_scope: object = None,
        constraint: Callable[..., Any] | None = None,
        use_resource: bool | None = None,
        synchronization: object = None,
        aggregation: object = None,
        shape: ShapeLike | None = None,
    ) -> None:
        graph = recording_graph()
        if graph is not None and name is not None:
            check_name(name, graph.engine.open.names.scope)
        super().__init__(initial_value, trainable, name=name, dtype=dtype, shape=shape, constraint=constraint)
        self._graph = graph
        if graph is not None and collections is not None:
            graph.engine.collections[GLOBAL_VARIABLES].pop()
            graph.engine.collect(self, collections)

    @property
    def graph(self) -> ExplicitGraph:
        """The graph that the variable belongs to.

        Raises:
            FailedPreconditionError: it was created eagerly.
        """
        if self._graph is None:
            raise FailedPreconditionError(
                f"{self.name} belongs to no graph: it was created eagerly, and has a value."
            )
        return self._graph

    def __eq__(self, other: object) -> Any:
        return self is other if self._is_compared_by_identity() else super().__eq__(other)

    def __ne__(self, other: object) -> Any:
        return self is not other if self._is_compared_by_identity() else super().__ne__(other)

    def _is_compared_by_identity(self) -> bool:
        return self._graph is not None and called_by_user(sys._getframe(2))

    def __hash__(self) -> int:  # type: ignore[override]  # as a graph's tensors: such variables may be keys of feeds
        return id(self) if self._graph is not None else super().__hash__()

    @property
    def op(self) -> Operation:
        """The operation that reads the value at the start of a run."""
        return self.graph.get_operation_by_name(self._name)

    @property
    def initializer(self) -> Any:
        """The operation that assigns the initial value; None for an eager variable."""
        return None if self._graph is None else self._graph.engine.initializer_of(self)

    @property
    def initial_value(self) -> Any:
        """The tensor that the initializer assigns; it can be read before the variable is initialised.

        Raises:
            FailedPreconditionError: the variable was created eagerly.
        """
        return self.graph.engine.initializer_of(self).inputs[0]

    def initialized_value(self) -> Any:
        """:attr:`initial_value`, for the initial values of other variables."""
        return self.initial_value

    def eval(self, session: object = None) -> Any:
        """The value in ``session``, or in the default session; eagerly the current value."""
        if self._graph is None:
            return self.numpy()
        return session_for(session, self._graph, "evaluate a variable using `eval()`").run(self)

    def load(self, value: TensorLike, session: object = None) -> None:
        """Set the value in ``session``, or in the default session, without adding an op.

        Raises:
            InvalidArgumentError: ``value`` has another shape, or there is no session.
        """
        if self._graph is None:
            self.assign(value)
            return
        initializer = self.initializer
        feeds = {initializer.inputs[0]: value}
        session_for(session, self._graph, "load a variable").run(initializer, feeds)


@entry
def assign(
    ref: Variable,
    value: TensorLike,
    validate_shape: bool = True,
    use_locking: bool = False,
    name: str | None = None,
) -> Any:
    """``ref.assign(value)``: in a graph, an op that assigns in the runs that fetch it.

    >>> from dualflow.compat import v1
    >>> with v1.Graph().as_default(), v1.Session() as session:
    ...     w = v1.Variable(1.0)
    ...     change = v1.assign(w, 5.0)
    ...     session.run(w.initializer)
    ...     print(session.run(w), session.run(change), session.run(w))
    1.0 5.0 5.0
    """
    return ref.assign(value)


@entry
def assign_add(ref: Variable, value: TensorLike, use_locking: bool = False, name: str | None = None) -> Any:
    """``ref.assign_add(value)``; see :func:`assign`.

    >>> from dualflow.compat import v1
    >>> w = v1.Variable(1.0)
    >>> float(v1.assign_add(w, 2.0))
    3.0
    """
    return ref.assign_add(value)


@entry
def assign_sub(ref: Variable, value: TensorLike, use_locking: bool = False, name: str | None = None) -> Any:
    """``ref.assign_sub(value)``; see :func:`assign`.

    >>> from dualflow.compat import v1
    >>> w = v1.Variable(1.0)
    >>> float(v1.assign_sub(w, 2.0))
    -1.0
    """
    return ref.assign_sub(value)


def global_variables(scope: str | None = None) -> list[Any]:
    """The variables of the default graph whose names begin with ``scope``, in the order of their creation.

    >>> from dualflow.compat import v1
    >>> with v1.Graph().as_default():
    ...     w, count = v1.Variable(1.0, name="w"), v1.Variable(0, trainable=False, name="count")
    ...     print([v.name for v in v1.global_variables()], [v.name for v in v1.trainable_variables()])
    ['w:0', 'count:0'] ['w:0']
    """
    return get_default_graph().get_collection(GLOBAL_VARIABLES, scope)


def trainable_variables(scope: str | None = None) -> list[Any]:
    """The variables among :func:`global_variables` that optimizers update by default.

    >>> from dualflow.compat import v1
    >>> with v1.Graph().as_default():
    ...     w = v1.Variable(1.0, trainable=False)
    ...     v1.trainable_variables()
    []
    """
    return get_default_graph().get_collection(TRAINABLE_VARIABLES, scope)


@entry
def variables_initializer(var_list: Sequence[Any], name: str = "init") -> Operation | None:
    """The operation that assigns the initial values of the variables in ``var_list``; eagerly None.

    Raises:
        InvalidArgumentError: a variable belongs to another graph.

    >>> from dualflow.compat import v1
    >>> with v1.Graph().as_default():
    ...     v1.variables_initializer([v1.Variable(1.0)])
    <tf.Operation 'init' type=NoOp>
    """
    graph = recording_graph()
    engine = None if graph is None else graph.engine
    pairs = [] if engine is None else zip(engine.variables, engine.initial, strict=True)
    nodes = {id(v): node for v, node in pairs}
    foreign = [v for v in var_list if id(v) not in nodes and getattr(v, "_graph", None) is not graph]
    if foreign:
        owner = "a graph that is being built" if graph is None else "this graph"
        raise InvalidArgumentError(
            f"{foreign[0]!r} is not a variable of {owner}: create its initializer in the block of the graph "
            "that it belongs to."
        )
    return None if engine is None else engine.group(name, [nodes[id(v)] for v in var_list])


def global_variables_initializer() -> Operation | None:
    """The operation that assigns the initial values of the variables that the default graph has so far.

    >>> from dualflow.compat import v1
    >>> with v1.Graph().as_default(), v1.Session() as session:
    ...     w = v1.Variable(3.0)
    ...     session.run(v1.global_variables_initializer())
    ...     print(session.run(w))
    3.0
    """
    return variables_initializer(global_variables())
