"""Variables by name: ``get_variable`` creates them once in a store and finds them again where a scope says
so.

Each graph has a store. Eagerly there is none unless an ``EagerVariableStore`` or a template is active, and
every ``get_variable`` creates.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from contextvars import ContextVar
from enum import Enum
from typing import Any, Final

from dualflow.compat.v1.initializers import GlorotUniform, Zeros
from dualflow.core import dispatch
from dualflow.core.dtypes import as_dtype, float32
from dualflow.core.errors import FailedPreconditionError, InvalidArgumentError
from dualflow.core.shape import as_shape
from dualflow.core.tracebacks import entry
from dualflow.graph.ir import Origin
from dualflow.graph.origin import caller
from dualflow.graph_mode import VariableV1, graph_recording, name_scope
from dualflow.graph_mode.default_graph import enclosing_graph, outside_of_bodies

REGULARIZATION_LOSSES: Final = "regularization_losses"


class Reuse(Enum):
    """Whether ``get_variable`` finds variables or creates them."""

    AUTO = "finds those that are there, creates the others"

    def __bool__(self) -> bool:
        return True


AUTO_REUSE: Final = Reuse.AUTO


class VariableScope:
    """A prefix of variables' names, and what ``get_variable`` does inside of it.

    Attributes:
        name: the prefix, without a ``/`` at its end.
        original_name_scope: the scope of ops' names that it was opened with.
        reuse: False to create, True to find, ``AUTO_REUSE`` to do either.
        initializer: the default initializer.
        regularizer: the default regularizer.
        constraint: the default constraint.
        dtype: the default dtype.
    """

    def __init__(
        self,
        name: str = "",
        reuse: bool | Reuse = False,
        initializer: Any = None,
        regularizer: Any = None,
        constraint: Any = None,
        dtype: Any = float32,
        original_name_scope: str = "",
    ) -> None:
        self.name = name
        self.reuse = reuse
        self.initializer = initializer
        self.regularizer = regularizer
        self.constraint = constraint
        self.dtype = as_dtype(dtype)
        self.original_name_scope = original_name_scope

    def reuse_variables(self) -> None:
        """Let ``get_variable`` find variables from now on, and create none."""
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
        """Those of :meth:`global_variables` that optimizers change by themselves."""
        return [v for v in self.global_variables() if v.trainable]

    def __repr__(self) -> str:
        return f"<variable scope {self.name!r} reuse={self.reuse}>"


class VariableStore:
    """Variables by their full names, with the lines that created them.

    Attributes:
        variables: by name.
        lines: that created them.
        opened: how often each scope has been opened since the one around it was.
        root: the scope around all.
    """

    def __init__(self) -> None:
        self.variables: dict[str, Any] = {}
        self.lines: dict[str, Origin | None] = {}
        self.opened: dict[str, int] = {}
        self.root = VariableScope()

    def open(self, name: str) -> None:
        """Note that the scope ``name`` begins."""
        self.opened[name] = self.opened.get(name, 0) + 1

    def close(self, name: str) -> None:
        """Let the scopes inside of ``name`` be numbered from the start when it is opened again."""
        for inner in self.opened:
            if inner.startswith(f"{name}/"):
                self.opened[inner] = 0

    def unused(self, name: str) -> str:
        """``name``, or the first ``name_1``, ``name_2``, ... that has not been opened."""
        count = 0
        found = name
        while self.opened.get(found, 0):
            count += 1
            found = f"{name}_{count}"
        return found


class EagerVariableStore:
    """Lets ``get_variable`` find variables again where ops run now.

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
        """The block that uses this store."""
        token = _eager_store.set(self.store)
        try:
            yield self
        finally:
            _eager_store.reset(token)

    def variables(self) -> list[Any]:
        """What has been created, by name."""
        return [self.store.variables[name] for name in sorted(self.store.variables)]

    def trainable_variables(self) -> list[Any]:
        """Those of :meth:`variables` that optimizers change by themselves."""
        return [v for v in self.variables() if v.trainable]


def get_variable_scope() -> VariableScope:
    """The scope of the innermost ``variable_scope`` block, in the graph that is being built or eagerly.

    >>> from dualflow.compat import v1
    >>> with v1.variable_scope("layer"):
    ...     v1.get_variable_scope()
    <variable scope 'layer' reuse=False>
    """
    store = store_here()
    found = _innermost.get()
    if found is not None and found[0] is store:
        return found[1]
    return VariableScope() if store is _UNKEPT else store.root


@contextmanager
def variable_scope(
    name_or_scope: str | VariableScope | None,
    default_name: str | None = None,
    values: Any = None,
    initializer: Any = None,
    regularizer: Any = None,
    caching_device: Any = None,
    partitioner: Any = None,
    custom_getter: Any = None,
    reuse: bool | Reuse | None = None,
    dtype: Any = None,
    use_resource: bool | None = None,
    constraint: Any = None,
    auxiliary_name_scope: bool = True,
) -> Iterator[VariableScope]:
    """The block in which ``get_variable`` puts ``name/`` before names; ops' names get that scope too.

    Args:
        name_or_scope: a name, in the scope that is open, or a scope to enter again.
        default_name: the name if there is no other, with a number where it has been used.
        initializer, regularizer, constraint, dtype: defaults of ``get_variable``; by default those around.
        reuse: True to find variables that are there, ``AUTO_REUSE`` to create the others; by default as
            around.
        auxiliary_name_scope: whether ops' names get a scope.
        values, caching_device, partitioner, custom_getter, use_resource: ignored.

    Raises:
        InvalidArgumentError: no name at all, or ``reuse=True`` under a name that is made up.

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
        full, outer, named = store.unused(_joined(around, default_name)), around, default_name
    elif isinstance(name_or_scope, VariableScope):
        full, outer, named = name_or_scope.name, name_or_scope, name_or_scope.name.rpartition("/")[2]
    else:
        full, outer, named = _joined(around, name_or_scope), around, name_or_scope
    with ExitStack() as stack:
        scope = VariableScope(
            full,
            reuse or outer.reuse,
            outer.initializer if initializer is None else initializer,
            outer.regularizer if regularizer is None else regularizer,
            outer.constraint if constraint is None else constraint,
            outer.dtype if dtype is None else dtype,
            stack.enter_context(name_scope(named) if auxiliary_name_scope and named else nullcontext("")),
        )
        counts = dict(store.opened)
        token = _innermost.set((store, scope))
        if store is not _UNKEPT:
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
    shape: Any = None,
    dtype: Any = None,
    initializer: Any = None,
    regularizer: Any = None,
    trainable: bool | None = None,
    collections: Any = None,
    caching_device: Any = None,
    partitioner: Any = None,
    validate_shape: bool = True,
    use_resource: bool | None = None,
    custom_getter: Any = None,
    constraint: Any = None,
) -> Any:
    """The variable ``name`` of the open variable scope, new or found as the scope's ``reuse`` says.

    Args:
        name: in the scope.
        shape: of a new variable; every size must be known. A found one must have it.
        dtype: float32, or the scope's, by default.
        initializer: a function of shape and dtype, as ``zeros_initializer()``, or the value itself, which
            needs no shape. By default the scope's, else Glorot's uniform numbers; zeros for integers and
            bools.
        regularizer: a function of the new variable, whose result joins the graph's collection of
            ``REGULARIZATION_LOSSES``.
        trainable: whether optimizers change it by themselves.
        collections: the names of the graph's collections to put it in.
        constraint: a function that optimizers apply to the value after each update.
        caching_device, partitioner, validate_shape, use_resource, custom_getter: ignored.

    Raises:
        InvalidArgumentError: the variable is there and may not be used again, or is not there and has to be;
            it has another shape or dtype; a new one has no shape.
        FailedPreconditionError: eagerly, variables are to be found where no store keeps them.

    >>> from dualflow.compat import v1
    >>> with v1.Graph().as_default(), v1.Session() as session:
    ...     w = v1.get_variable("w", [2, 2], initializer=v1.ones_initializer())
    ...     session.run(w.initializer)
    ...     print(w.name, session.run(w).tolist())
    w:0 [[1.0, 1.0], [1.0, 1.0]]
    """
    scope, store = get_variable_scope(), store_here()
    kept = store is not _UNKEPT
    full = _joined(scope, name)
    if scope.reuse and not kept:
        raise FailedPreconditionError(
            "When eager execution is enabled variable reuse is only supported when an EagerVariableStore is "
            "active or inside of a template: with EagerVariableStore().as_default(). Keep variables in an "
            "object instead."
        )
    if kept and full in store.variables:
        return _found(store, full, scope, shape, dtype)
    if scope.reuse is True:
        raise InvalidArgumentError(
            f"Variable {full} does not exist, or was not created with "
            "df.compat.v1.get_variable(). Did you mean to set "
            "reuse=df.compat.v1.AUTO_REUSE in VarScope?"
        )
    with outside_of_bodies():
        made = _created(full, scope, shape, dtype, initializer, trainable, collections, constraint)
        if kept:
            store.variables[full], store.lines[full] = made, caller()
        penalty = scope.regularizer if regularizer is None else regularizer
        graph = graph_recording()
        if penalty is not None and graph is not None:
            with graph.name_scope(None), graph.name_scope(f"{full}/Regularizer"):
                graph.add_to_collection(REGULARIZATION_LOSSES, penalty(made))
        return made


def _found(store: VariableStore, full: str, scope: VariableScope, shape: Any, dtype: Any) -> Any:
    found = store.variables[full]
    if not scope.reuse:
        raise InvalidArgumentError(
            f"Variable {full} already exists, disallowed. Did you mean to set reuse=True or "
            f"reuse=df.compat.v1.AUTO_REUSE in VarScope? Originally defined at:\n  {store.lines[full]}"
        )
    if shape is not None and as_shape(shape) != found.shape:
        raise InvalidArgumentError(
            f"Trying to share variable {full}, but specified shape {as_shape(shape)} and found shape "
            f"{found.shape}. Originally defined at:\n  {store.lines[full]}"
        )
    if dtype is not None and as_dtype(dtype) is not found.dtype:
        raise InvalidArgumentError(
            f"Trying to share variable {full}, but specified dtype {as_dtype(dtype).name} and found dtype "
            f"{found.dtype.name}. Originally defined at:\n  {store.lines[full]}"
        )
    return found


def _created(
    full: str,
    scope: VariableScope,
    shape: Any,
    dtype: Any,
    initializer: Any,
    trainable: bool | None,
    collections: Any,
    constraint: Any,
) -> Any:
    wanted = scope.dtype if dtype is None else as_dtype(dtype)
    first = scope.initializer if initializer is None else initializer
    if first is None:
        first = GlorotUniform() if wanted.is_inexact and not wanted.is_complex else Zeros()
    if isinstance(first, type):
        first = first()
    sizes = None if shape is None else as_shape(shape)
    if not callable(first):
        if sizes is not None:
            raise InvalidArgumentError(
                f"If initializer is a constant, do not specify shape: variable {full}."
            )
        value, wanted = first, dtype
    elif sizes is None or not sizes.is_static:
        raise InvalidArgumentError(
            f"Shape of a new variable ({full}) must be fully defined, but instead was "
            f"{'not given' if sizes is None else sizes}."
        )
    else:
        unordered = dispatch.current().unordered()
        with unordered, name_scope(""), name_scope(f"{full}/Initializer"):
            value = first(tuple(sizes), dtype=wanted)

    with name_scope(""):
        return VariableV1(
            value,
            trainable,
            collections,
            name=full,
            dtype=wanted,
            constraint=scope.constraint if constraint is None else constraint,
        )


def _joined(scope: VariableScope, name: str) -> str:
    return f"{scope.name}/{name}" if scope.name else name


def store_here() -> VariableStore:
    """The store of the graph that is being built, or the eager one."""
    graph = enclosing_graph()
    if graph is None:
        return _eager_store.get() or _UNKEPT
    kept: list[VariableStore] = graph.engine.collections.setdefault(_STORE, [VariableStore()])
    return kept[0]


_STORE: Final = "variable_store"
_eager_store: Final[ContextVar[VariableStore | None]] = ContextVar("dualflow_variables", default=None)
_innermost: Final[ContextVar[tuple[VariableStore, VariableScope] | None]] = ContextVar(
    "dualflow_variable_scope", default=None
)
_UNKEPT: Final = VariableStore()
"""Stands for the eager store where there is none: it stays empty."""
