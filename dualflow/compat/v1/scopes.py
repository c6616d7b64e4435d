"""Variables by name: ``get_variable`` creates a variable, or returns it from a store if the scope reuses.

Each graph has a store. Eagerly there is none unless an ``EagerVariableStore`` or a template is active, and
every ``get_variable`` creates a variable.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from contextvars import ContextVar
from enum import Enum
from typing import TYPE_CHECKING, Any, Final

from dualflow.compat.v1.initializers import GlorotUniform, Zeros
from dualflow.core import dispatch
from dualflow.core.dtypes import as_dtype, float32
from dualflow.core.errors import FailedPreconditionError, InvalidArgumentError
from dualflow.core.shape import as_shape
from dualflow.core.tracebacks import entry
from dualflow.graph.ir import Origin
from dualflow.graph.origin import caller
from dualflow.graph_mode import VariableV1, name_scope, recording_graph
from dualflow.graph_mode.default_graph import enclosing_graph, outside_of_bodies

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
    ) -> None:
        self.name = name
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
        auxiliary_name_scope: whether the block is a name scope of ops too.
        values, caching_device, partitioner, custom_getter, use_resource: TensorFlow's, and ignored.

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
        caching_device, partitioner, validate_shape, use_resource, custom_getter: TensorFlow's, and ignored.

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
    scope, store = get_variable_scope(), store_here()
    has_store = store is not _NO_STORE
    full = _scoped_name(scope, name)
    if scope.reuse and not has_store:
        raise FailedPreconditionError(
            "When eager execution is enabled variable reuse is only supported when an EagerVariableStore is "
            "active or inside of a template: with EagerVariableStore().as_default(). Or hold variables in an "
            "object."
        )
    if has_store and full in store.variables:
        return _reuse_variable(store, full, scope, shape, dtype)
    if scope.reuse is True:
        raise InvalidArgumentError(
            f"Variable {full} does not exist, or was not created with "
            "df.compat.v1.get_variable(). Did you mean to set "
            "reuse=df.compat.v1.AUTO_REUSE in VarScope?"
        )
    with outside_of_bodies():
        variable = _create_variable(
            full, scope, shape, dtype, initializer, trainable, collections, constraint
        )
        if has_store:
            store.variables[full], store.lines[full] = variable, caller()
        penalty = scope.regularizer if regularizer is None else regularizer
        graph = recording_graph()
        if penalty is not None and graph is not None:
            with graph.name_scope(None), graph.name_scope(f"{full}/Regularizer"):
                graph.add_to_collection(REGULARIZATION_LOSSES, penalty(variable))
        return variable


def _reuse_variable(store: VariableStore, full: str, scope: VariableScope, shape: Any, dtype: Any) -> Any:
    variable = store.variables[full]
    if not scope.reuse:
        raise InvalidArgumentError(
            f"Variable {full} already exists, disallowed. Did you mean to set reuse=True or "
            f"reuse=df.compat.v1.AUTO_REUSE in VarScope? Originally defined at:\n  {store.lines[full]}"
        )
    if shape is not None and as_shape(shape) != variable.shape:
        raise InvalidArgumentError(
            f"Trying to share variable {full}, but specified shape {as_shape(shape)} and found shape "
            f"{variable.shape}. Originally defined at:\n  {store.lines[full]}"
        )
    if dtype is not None and as_dtype(dtype) is not variable.dtype:
        raise InvalidArgumentError(
            f"Trying to share variable {full}, but specified dtype {as_dtype(dtype).name} and found dtype "
            f"{variable.dtype.name}. Originally defined at:\n  {store.lines[full]}"
        )
    return variable


def _create_variable(
    full: str,
    scope: VariableScope,
    shape: Any,
    dtype: Any,
    initializer: Any,
    trainable: bool | None,
    collections: Any,
    constraint: Any,
) -> Any:
    value_dtype = scope.dtype if dtype is None else as_dtype(dtype)
    first = scope.initializer if initializer is None else initializer
    if first is None:
        first = GlorotUniform() if value_dtype.is_inexact and not value_dtype.is_complex else Zeros()
    if isinstance(first, type):
        first = first()
    sizes = None if shape is None else as_shape(shape)
    if not callable(first):
        if sizes is not None:
            raise InvalidArgumentError(
                f"If initializer is a constant, do not specify shape: variable {full}."
            )
        value, value_dtype = first, dtype
    elif sizes is None or not sizes.is_static:
        raise InvalidArgumentError(
            f"Shape of a new variable ({full}) must be fully defined, but instead was "
            f"{'not given' if sizes is None else sizes}."
        )
    else:
        free_block = dispatch.current().no_control_dependencies()
        with free_block, name_scope(""), name_scope(f"{full}/Initializer"):
            value = first(tuple(sizes), dtype=value_dtype)

    with name_scope(""):
        return VariableV1(
            value,
            trainable,
            collections,
            name=full,
            dtype=value_dtype,
            constraint=scope.constraint if constraint is None else constraint,
        )


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
