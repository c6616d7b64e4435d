"""``Module``: the base of objects that own variables."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from dualflow.core.composite_tensor import CompositeTensor
from dualflow.core.naming import prefix
from dualflow.core.tree import leaves
from dualflow.eager.scope import name_scope as eager_name_scope
from dualflow.eager.variable import Variable

_LEFT_OUT: Final = "_left_out_of_checkpoints"


class _NoDependency:
    """Marks a value whose attribute checkpoints leave out."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value


class Module:
    """The base of models and layers: collects the variables of its attributes and submodules.

    Attributes are searched in the order of their names, lists and tuples in order, dicts by sorted key; a
    variable or module that is reached twice is listed once.

    Args:
        name: the module's name, by default the class name in snake_case.

    >>> import dualflow as df
    >>> class Line(df.Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.w, self.b = df.Variable(5.0, name="w"), df.Variable(10.0, name="b")
    >>> [v.name for v in Line().trainable_variables]
    ['b:0', 'w:0']
    """

    _TF_MODULE_IGNORED_PROPERTIES: frozenset[str] = frozenset()
    """The names of attributes that are not searched; TensorFlow's name, which libraries extend."""

    def __init__(self, name: str | None = None) -> None:
        self._name = _snake_case(type(self).__name__) if name is None else name
        self._scope_name = f"{prefix()}{self._name}/"

    @property
    def name(self) -> str:
        """The module's name."""
        return getattr(self, "_name", None) or _snake_case(type(self).__name__)

    @property
    def name_scope(self) -> eager_name_scope:
        """``with self.name_scope:`` prefixes the names of variables with the module's name.

        The prefix includes the scopes that were open when the module was created.
        """
        return eager_name_scope(getattr(self, "_scope_name", f"{self.name}/"))

    @staticmethod
    def with_name_scope(method: Callable[..., Any]) -> Callable[..., Any]:
        """Decorator of a method that creates variables: runs it in :attr:`name_scope`.

        >>> import dualflow as df
        >>> class Layer(df.Module):
        ...     @df.Module.with_name_scope
        ...     def __call__(self, x):
        ...         self.w = df.Variable(2.0, name="w")
        ...         return self.w * x
        >>> layer = Layer()
        >>> float(layer(3.0)), layer.w.name
        (6.0, 'layer/w:0')
        """

        @functools.wraps(method)
        def within(self: Module, *args: Any, **kwargs: Any) -> Any:
            with self.name_scope:
                return method(self, *args, **kwargs)

        return within

    @property
    def variables(self) -> tuple[Variable, ...]:
        """The variables of this module and of its submodules."""
        return tuple(self._flatten(predicate=lambda x: isinstance(x, Variable)))

    @property
    def trainable_variables(self) -> tuple[Variable, ...]:
        """The trainable ones among :attr:`variables`."""
        return tuple(v for v in self.variables if v.trainable)

    @property
    def non_trainable_variables(self) -> tuple[Variable, ...]:
        """The non-trainable ones among :attr:`variables`."""
        return tuple(v for v in self.variables if not v.trainable)

    @property
    def submodules(self) -> tuple[Module, ...]:
        """The modules in this one's attributes, and in theirs."""
        return tuple(self._flatten(predicate=lambda x: isinstance(x, Module)))

    def _no_dependency(self, value: Any) -> Any:
        """``value`` for an attribute that checkpoints leave out: ``self.table = self._no_dependency(table)``.

        TensorFlow Probability's name for parameters that other attributes hold as well.
        """
        return _NoDependency(value)

    def __setattr__(self, name: str, value: Any) -> None:
        if type(value) is _NoDependency:
            self.__dict__[_LEFT_OUT] = self.__dict__.get(_LEFT_OUT, frozenset()) | {name}
            value = value.value
        elif name in self.__dict__.get(_LEFT_OUT, ()):
            self.__dict__[_LEFT_OUT] -= {name}
        super().__setattr__(name, value)

    def _trackable_children(self) -> Mapping[str, Any]:
        """The module's attributes, for checkpoints."""
        left_out = vars(self).get(_LEFT_OUT)
        if not left_out:
            return vars(self)
        return {name: value for name, value in vars(self).items() if name not in {*left_out, _LEFT_OUT}}

    def _flatten(self, predicate: Callable[[Any], bool]) -> Iterator[Any]:
        """The objects in this module, then in its submodules, that satisfy ``predicate``."""
        visited = {id(self)}
        modules = [self]
        for module in modules:
            for x in _values(module):
                if id(x) in visited:
                    continue
                visited.add(id(x))
                if predicate(x):
                    yield x
                if isinstance(x, Module):
                    modules.append(x)


def _values(module: Module) -> Iterator[Any]:
    """The variables, modules and other leaves in a module's attributes."""
    attributes = vars(module)
    for name in sorted(attributes.keys() - module._TF_MODULE_IGNORED_PROPERTIES):
        yield from _leaves(attributes[name])


def _leaves(value: Any) -> Iterator[Any]:
    """The leaves of nested lists, tuples, dicts and composites; what occurs twice is visited once."""
    pending, visited = [value], set()
    while pending:
        item = pending.pop()
        if isinstance(item, CompositeTensor) and not isinstance(item, Module):
            if id(item) not in visited:
                visited.add(id(item))
                pending.extend(reversed(leaves(item)))
        elif isinstance(item, list | tuple | Mapping):
            if id(item) not in visited:
                visited.add(id(item))
                children = [item[k] for k in _ordered(item)] if isinstance(item, Mapping) else list(item)
                pending.extend(reversed(children))
        else:
            yield item


def _ordered(mapping: Mapping[Any, Any]) -> list[Any]:
    try:
        return sorted(mapping)
    except TypeError:
        return list(mapping)


def _snake_case(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()
