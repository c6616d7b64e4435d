"""Variables by name: ``get_variable`` creates a variable, or returns it from a store if the scope reuses.

Each graph has a store. Eagerly there is none unless an ``EagerVariableStore`` or a template is active, and
every ``get_variable`` creates a variable.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from contextvars import ContextVar
from enum import Enum
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from dualflow.compat.v1.variable_creation import create_variable, existing_variable
from dualflow.core.dtypes import as_dtype, float32
from dualflow.core.errors import FailedPreconditionError, InvalidArgumentError
from dualflow.core.tracebacks import entry
from dualflow.graph.ir import Origin
from dualflow.graph.origin import caller
from dualflow.graph_mode import get_default_graph, name_scope, recording_graph
from dualflow.graph_mode.default_graph import enclosing_graph, outside_of_bodies
from dualflow.ops.static import dtype_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from dualflow.core.argument_types import DTypeLike, ShapeLike, TensorLike

REGULARIZATION_LOSSES: Final = "regularization_losses"


class Reuse(Enum):
    """Whether ``get_variable`` reuses variables or creates them."""

    AUTO = "reuse existing variables, create the others"

    def __bool__(self) -> bool:
        return True


AUTO_REUSE: Final = Reuse.AUTO


class VariableScope:
    """A prefix of variables' names, and defaults for ``get_variable``.

    Attributes:
        name: the prefix, without a ``/`` at its end.
        original_name_scope: the name scope of ops that it was opened with.
        reuse: False to create variables, True to reuse existing ones, ``AUTO_REUSE`` for either.
        initializer: the default initializer.
        regularizer: the default regularizer.
        constraint: the default constraint.
        dtype: the default dtype.
        custom_getter: called by ``get_variable`` in place of the getter, which is its first argument.
    """

    def __init__(
        self,
        name: str = "",
        reuse: bool | Reuse = False,
        initializer: TensorLike | Callable[..., Any] | None = None,
        regularizer: Callable[..., Any] | None = None,
        constraint: Callable[..., Any] | None = None,
        dtype: DTypeLike = float32,
        original_name_scope: str = "",
        custom_getter: Callable[..., Any] | None = None,
    ) -> None:
        self.name = name
        self.custom_getter = custom_getter
        self.reuse = reuse
        self.initializer = initializer
        self.regularizer = regularizer
        self.constraint = constraint
        self.dtype = as_dtype(dtype)
        self.original_name_scope = original_name_scope

    @property
    def caching_device(self) -> None:
        """None: a read of a variable is not copied to another device."""

    def set_caching_device(self, caching_device: object) -> None:
        """Does nothing: a read of a variable is not copied to another device.

        Args:
            caching_device: a device, or a function of an operation.
        """

    @property
    def partitioner(self) -> None:
        """None: a variable is not divided into parts."""

    def set_partitioner(self, partitioner: Callable[..., Any] | None) -> None:
        """Does nothing: a variable is not divided into parts.

        Args:
            partitioner: a function of shape and dtype.
        """

    def set_custom_getter(self, custom_getter: Callable[..., Any] | None) -> None:
        """Let ``get_variable`` call ``custom_getter`` in this scope."""
        self.custom_getter = custom_getter

    def set_initializer(self, initializer: TensorLike | Callable[..., Any] | None) -> None:
        """Replace the default initializer."""
        self.initializer = initializer

    def set_regularizer(self, regularizer: Callable[..., Any] | None) -> None:
        """Replace the default regularizer."""
        self.regularizer = regularizer

    def set_dtype(self, dtype: DTypeLike) -> None:
        """Replace the default dtype."""
        self.dtype = as_dtype(dtype)

    def get_collection(self, name: str) -> list[Any]:
        """The values of a collection of the default graph whose names are in this scope."""
        return get_default_graph().get_collection(name, f"{self.name}/" if self.name else None)

    def reuse_variables(self) -> None:
        """Make ``get_variable`` reuse variables, and create none."""
        self.reuse = True

    def get_variable(self, name: str, *args: Any, **kwargs: Any) -> Any:
        """:func:`get_variable` in this scope."""
        with variable_scope(self, auxiliary_name_scope=False):
            return get_variable(name, *args, **kwargs)

    def global_variables(self) -> list[Any]:
        """The variables that ``get_variable`` has created in this scope."""
        prefix = f"{self.name}/" if self.name else ""
        return [v for name, v in store_here().variables.items() if name.startswith(prefix)]

    def trainable_variables(self) -> list[Any]:
        """The variables among :meth:`global_variables` that optimizers update by default."""
        return [v for v in self.global_variables() if v.trainable]

    def __repr__(self) -> str:
        return f"<variable scope {self.name!r} reuse={self.reuse}>"


class VariableStore:
    """Variables by their full names, with the lines that created them.

    Attributes:
        variables: by name.
        lines: the lines of the program that created them, by name.
        opened: the number of times each scope has been opened since its outer scope was.
        root: the outermost scope.
    """

    def __init__(self) -> None:
        self.variables: dict[str, Any] = {}
        self.lines: dict[str, Origin | None] = {}
        self.opened: dict[str, int] = {}
        self.root = VariableScope()

    def open(self, name: str) -> None:
        """Record that the scope ``name`` is opened."""
        self.opened[name] = self.opened.get(name, 0) + 1

    def close(self, name: str) -> None:
        """Reset the numbers of the scopes inside ``name``."""
        for inner in self.opened:
            if inner.startswith(f"{name}/"):
                self.opened[inner] = 0

    def unused(self, name: str) -> str:
        """``name``, or the first ``name_1``, ``name_2``, ... that has not been opened."""
        count = 0
        unused = name
        while self.opened.get(unused, 0):
            count += 1
            unused = f"{name}_{count}"
        return unused


class EagerVariableStore:
    """A store with which ``get_variable`` can reuse variables eagerly.

    >>> from dualflow.compat import v1
    >>> store = v1.EagerVariableStore()
    >>> with store.as_default(), v1.variable_scope("layer", reuse=v1.AUTO_REUSE):
    ...     first, again = v1.get_variable("w", [2]), v1.get_variable("w", [2])
    >>> first is again, first.name
    (True, 'layer/w:0')
    """

    def __init__(self) -> None:
        self.store = VariableStore()

    @contextmanager
    def as_default(self) -> Iterator[EagerVariableStore]:
        """A context that uses this store."""
        token = _eager_store.set(self.store)
        try:
            yield self
        finally:
            _eager_store.reset(token)

    def variables(self) -> list[Any]:
        """The variables of the store, sorted by name."""
        return [self.store.variables[name] for name in sorted(self.store.variables)]

    def trainable_variables(self) -> list[Any]:
        """The variables among :meth:`variables` that optimizers update by default."""
        return [v for v in self.variables() if v.trainable]


def get_variable_scope() -> VariableScope:
    """The scope of the innermost ``variable_scope`` block, in the graph that is being built or eagerly.

    >>> from dualflow.compat import v1
    >>> with v1.variable_scope("layer"):
    ...     v1.get_variable_scope()
    <variable scope 'layer' reuse=False>
    """
    store = store_here()
    innermost = _innermost.get()
    if innermost is not None and innermost[0] is store:
        return innermost[1]
    return VariableScope() if store is _NO_STORE else store.root


@contextmanager
def variable_scope(
    name_or_scope: str | VariableScope | None,
    default_name: str | None = None,
    values: TensorLike | None = None,
    initializer: TensorLike | Callable[..., Any] | None = None,
    regularizer: Callable[..., Any] | None = None,
    caching_device: object = None,
    partitioner: object = None,
    custom_getter: Callable[..., Any] | None = None,
    reuse: bool | Reuse | None = None,
    dtype: DTypeLike | None = None,
    use_resource: bool | None = None,
    constraint: Callable[..., Any] | None = None,
    auxiliary_name_scope: bool = True,
) -> Iterator[VariableScope]:
    """A context in which names of ``get_variable``, and of ops, begin with ``name/``.

    Args:
        name_or_scope: a name, in the open scope, or a scope to enter again.
        default_name: the name if ``name_or_scope`` is None, with a number if it has been used.
        initializer, regularizer, constraint, dtype: defaults of ``get_variable``; those of the outer scope
            by default.
        reuse: True to reuse existing variables, ``AUTO_REUSE`` to create missing ones; by default as in the
            outer scope.
        custom_getter: a function that ``get_variable`` calls with the getter and its arguments, by name, and
            with the full ``name``; its result is the variable. The getter calls that of the outer scope.
        auxiliary_name_scope: whether the block is a name scope of ops too.
        values, caching_device, partitioner, use_resource: TensorFlow's, and ignored.

    Raises:
        InvalidArgumentError: no name, or ``reuse=True`` with a default name.

    >>> from dualflow.compat import v1
    >>> def layer(x):
    ...     with v1.variable_scope("layer", reuse=v1.AUTO_REUSE):
    ...         return x * v1.get_variable("w", [])
    >>> with v1.Graph().as_default():
    ...     y = layer(1.0) + layer(2.0)
    ...     [v.name for v in v1.global_variables()]
    ['layer/w:0']
    """
    store, around = store_here(), get_variable_scope()
    if name_or_scope is None:
        if default_name is None:
            raise InvalidArgumentError("If default_name is None then name_or_scope is required")
        if reuse is True:
            raise InvalidArgumentError("reuse=True cannot be used without a name_or_scope")
        full, outer, op_scope_name = store.unused(_scoped_name(around, default_name)), around, default_name
    elif isinstance(name_or_scope, VariableScope):
        full, outer, op_scope_name = name_or_scope.name, name_or_scope, name_or_scope.name.rpartition("/")[2]
    else:
        full, outer, op_scope_name = _scoped_name(around, name_or_scope), around, name_or_scope
    with ExitStack() as stack:
        scope = VariableScope(
            full,
            reuse or outer.reuse,
            outer.initializer if initializer is None else initializer,
            outer.regularizer if regularizer is None else regularizer,
            outer.constraint if constraint is None else constraint,
            outer.dtype if dtype is None else dtype,
            stack.enter_context(
                name_scope(op_scope_name) if auxiliary_name_scope and op_scope_name else nullcontext("")
            ),
            _around(custom_getter, outer.custom_getter),
        )
        counts = dict(store.opened)
        token = _innermost.set((store, scope))
        if store is not _NO_STORE:
            store.open(full)
        try:
            yield scope
        finally:
            _innermost.reset(token)
            if isinstance(name_or_scope, VariableScope):
                store.opened = counts
            else:
                store.close(full)


def _around(inner: Callable[..., Any] | None, outer: Callable[..., Any] | None) -> Callable[..., Any] | None:
    """A custom getter that calls ``inner`` with a getter that calls ``outer``; if only one exists, that."""
    if inner is None or outer is None:
        return inner or outer
    return lambda getter, *args, **kwargs: inner(partial(outer, getter), *args, **kwargs)


@entry
def get_variable(
    name: str,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
    initializer: TensorLike | Callable[..., Any] | None = None,
    regularizer: Callable[..., Any] | None = None,
    trainable: bool | None = None,
    collections: str | Sequence[str] | None = None,
    caching_device: object = None,
    partitioner: object = None,
    validate_shape: bool = True,
    use_resource: bool | None = None,
    custom_getter: Callable[..., Any] | None = None,
    constraint: Callable[..., Any] | None = None,
    synchronization: object = None,
    aggregation: object = None,
) -> Any:
    """The variable ``name`` of the open variable scope, which is created or reused by the scope's ``reuse``.

    Args:
        name: the name in the scope.
        shape: of a new variable, with static sizes; an existing variable must have it.
        dtype: by default the scope's, which is float32 by default.
        initializer: a function of shape and dtype, such as ``zeros_initializer()``, or the value, for which
            the shape is omitted. By default the scope's, else Glorot's uniform numbers; zeros for integers
            and bools.
        regularizer: a function of the new variable, whose result is added to the graph's collection
            ``REGULARIZATION_LOSSES``.
        trainable: whether optimizers update it by default.
        collections: the names of the graph's collections to add it to.
        constraint: a function that optimizers apply to the value after each update.
        custom_getter: called in place of that of the scope; see :func:`variable_scope`.
        caching_device, partitioner, validate_shape, use_resource, synchronization, aggregation: TensorFlow's,
            and ignored.

    Raises:
        InvalidArgumentError: the variable exists and may not be reused, or does not exist and must be
            reused; it has another shape or dtype; a new one has no shape.
        FailedPreconditionError: eagerly, variables are to be reused, but there is no store.

    >>> from dualflow.compat import v1
    >>> with v1.Graph().as_default(), v1.Session() as session:
    ...     w = v1.get_variable("w", [2, 2], initializer=v1.ones_initializer())
    ...     session.run(w.initializer)
    ...     print(w.name, session.run(w).tolist())
    w:0 [[1.0, 1.0], [1.0, 1.0]]
    """
    scope = get_variable_scope()
    full = _scoped_name(scope, name)
    chosen = custom_getter or scope.custom_getter
    if chosen is None:
        return _get_variable(
            full, shape, dtype, initializer, regularizer, None, trainable, collections, constraint
        )
    first = scope.initializer if initializer is None else initializer
    if dtype is None:
        dtype = scope.dtype if first is None or callable(first) else dtype_of(first)
    return chosen(
        getter=_get_variable,
        name=full,
        shape=shape,
        dtype=as_dtype(dtype),
        initializer=first,
        regularizer=scope.regularizer if regularizer is None else regularizer,
        reuse=scope.reuse,
        trainable=trainable,
        collections=collections,
        caching_device=caching_device,
        partitioner=partitioner,
        validate_shape=validate_shape,
        use_resource=use_resource,
        constraint=constraint,
        synchronization=synchronization,
        aggregation=aggregation,
    )


def _get_variable(
    name: str,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
    initializer: TensorLike | Callable[..., Any] | None = None,
    regularizer: Callable[..., Any] | None = None,
    reuse: bool | Reuse | None = None,
    trainable: bool | None = None,
    collections: str | Sequence[str] | None = None,
    constraint: Callable[..., Any] | None = None,
    **ignored: object,
) -> Any:
    """The variable of the full name ``name``: the getter of a custom getter."""
    scope, store = get_variable_scope(), store_here()
    reuse = scope.reuse if reuse is None else reuse
    has_store = store is not _NO_STORE
    if reuse and not has_store:
        raise FailedPreconditionError(
            "When eager execution is enabled variable reuse is only supported when an EagerVariableStore is "
            "active or inside of a template: with EagerVariableStore().as_default(). Or hold variables in an "
            "object."
        )
    if has_store and name in store.variables:
        return existing_variable(store.variables[name], store.lines[name], name, reuse, shape, dtype)
    if reuse is True:
        raise InvalidArgumentError(
            f"Variable {name} does not exist, or was not created with "
            "df.compat.v1.get_variable(). Did you mean to set "
            "reuse=df.compat.v1.AUTO_REUSE in VarScope?"
        )
    with outside_of_bodies():
        variable = create_variable(name, scope, shape, dtype, initializer, trainable, collections, constraint)
        if has_store:
            store.variables[name], store.lines[name] = variable, caller()
        penalty = scope.regularizer if regularizer is None else regularizer
        graph = recording_graph()
        if penalty is not None and graph is not None:
            with graph.name_scope(None), graph.name_scope(f"{name}/Regularizer"):
                loss = penalty(variable)
            if loss is not None:
                graph.add_to_collection(REGULARIZATION_LOSSES, loss)
        return variable


def _scoped_name(scope: VariableScope, name: str) -> str:
    return f"{scope.name}/{name}" if scope.name else name


def store_here() -> VariableStore:
    """The store of the graph that is being built, or the eager one."""
    graph = enclosing_graph()
    if graph is None:
        return _eager_store.get() or _NO_STORE
    stores: list[VariableStore] = graph.engine.collections.setdefault(_STORE, [VariableStore()])
    return stores[0]


_STORE: Final = "variable_store"
_eager_store: Final[ContextVar[VariableStore | None]] = ContextVar("dualflow_variables", default=None)
_innermost: Final[ContextVar[tuple[VariableStore, VariableScope] | None]] = ContextVar(
    "dualflow_variable_scope", default=None
)
_NO_STORE: Final = VariableStore()
"""An empty store, which is used eagerly without an :class:`EagerVariableStore`."""
