"""Templates: functions whose variables are created by the first call and reused by later ones."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary

from dualflow.compat.v1.scopes import (
    EagerVariableStore,
    VariableScope,
    VariableStore,
    store_here,
    variable_scope,
)
from dualflow.core.errors import InvalidArgumentError
from dualflow.graph.ir import Origin
from dualflow.graph.origin import caller
from dualflow.graph_mode import recording_graph


def make_template(
    name_: str,
    func_: Callable[..., Any],
    create_scope_now_: bool = False,
    unique_name_: str | None = None,
    custom_getter_: object = None,
    **kwargs: Any,
) -> Template:
    """``func_`` as a function whose variables are created by its first call and shared by all calls.

    The template has separate variables in each graph, and one set of eager variables.

    Args:
        name_: of the variable scope, with a number if it has been used.
        func_: a function that creates its variables with ``get_variable``.
        create_scope_now_: whether the scope's name is chosen now rather than by the first call.
        unique_name_: the name of the scope instead of ``name_``, without a number.
        custom_getter_: TensorFlow's, and ignored.
        kwargs: arguments of ``func_`` in every call.

    Raises:
        InvalidArgumentError: a later call creates a variable.

    >>> from dualflow.compat import v1
    >>> scale = v1.make_template("scale", lambda x: x * v1.get_variable("by", initializer=3.0))
    >>> float(scale(2.0)), float(scale(10.0)), [v.name for v in scale.variables]
    (6.0, 30.0, ['scale/by:0'])
    """
    return Template(name_, partial(func_, **kwargs) if kwargs else func_, unique_name_, create_scope_now_)


class Template:
    """The result of :func:`make_template`.

    Attributes:
        name: the requested name of the scope.
    """

    def __init__(
        self, name: str, function: Callable[..., Any], unique_name: str | None, create_scope_now: bool
    ) -> None:
        self.name = name
        self._function = function
        self._unique_name = unique_name
        self._eager = EagerVariableStore()
        self._scopes: WeakKeyDictionary[VariableStore, VariableScope] = WeakKeyDictionary()
        self._lines: WeakKeyDictionary[VariableStore, Origin | None] = WeakKeyDictionary()
        if create_scope_now:
            with self._with_store(), variable_scope(unique_name, name, auxiliary_name_scope=False) as scope:
                self._scopes[store_here()] = scope

    @property
    def var_scope(self) -> VariableScope | None:
        """The variable scope in the graph that is being built, or eagerly; None before the first call."""
        with self._with_store():
            return self._scopes.get(store_here())

    @property
    def variables(self) -> list[Any]:
        """The variables that calls have created in the graph that is being built, or eagerly."""
        with self._with_store():
            scope = self._scopes.get(store_here())
            return [] if scope is None else scope.global_variables()

    global_variables = variables

    @property
    def trainable_variables(self) -> list[Any]:
        """The variables among :attr:`variables` that optimizers update by default."""
        return [v for v in self.variables if v.trainable]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        with self._with_store():
            store = store_here()
            if store in self._lines:
                return self._call_again(store, args, kwargs)
            with variable_scope(self._scopes.get(store) or self._unique_name, self.name) as scope:
                self._scopes.setdefault(store, scope)
                result = self._function(*args, **kwargs)
            self._lines[store] = caller()
            return result

    def _call_again(self, store: VariableStore, args: Any, kwargs: Any) -> Any:
        """A call after the first one in this graph, or eagerly, which reuses its variables."""
        graph = recording_graph()
        before = 0 if graph is None else len(graph.engine.variables)
        try:
            with variable_scope(self._scopes[store], reuse=True):
                result = self._function(*args, **kwargs)
        except Exception as error:
            error.add_note(f"originally defined at the template's first call: {self._lines[store]}")
            raise
        if graph is not None and len(graph.engine.variables) > before:
            names = [v.name for v in graph.engine.variables[before:]]
            raise InvalidArgumentError(
                "New variable created when calling a template after the first time, perhaps you used "
                f"df.Variable when you meant df.compat.v1.get_variable: {names}. The first call was:\n  "
                f"{self._lines[store]}"
            )
        return result

    def _with_store(self) -> Any:
        """A context with a store of variables: eagerly the template's own."""
        return self._eager.as_default() if recording_graph() is None else nullcontext()
