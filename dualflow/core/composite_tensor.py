"""``CompositeTensor``: the base of values that are structures of tensors, such as ragged tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dualflow.core.api_dispatch import elementwise_rule
from dualflow.core.composite_rules import CompositeError
from dualflow.core.dispatch import AbstractComposite
from dualflow.core.registered_conversions import registered


class CompositeTensor(AbstractComposite):
    """A value of several tensors: a tree of them, by the method ``__tree__`` (:mod:`dualflow.core.tree`).

    A class of a program's own defines the property ``_type_spec`` instead, a
    :class:`~dualflow.core.type_spec.TypeSpec`.
    """

    __slots__ = ()

    @property
    def _type_spec(self) -> Any:
        raise NotImplementedError(f"{type(self).__name__} defines no _type_spec; every composite needs it.")

    def __tree__(self) -> tuple[Any, tuple[str, ...], list[Any]]:
        spec = self._type_spec
        tree: tuple[Any, tuple[str, ...], list[Any]] = spec._tree(spec._to_components(self))
        return tree

    def __as_tensor__(self) -> Any:
        tensor = registered(self)
        if tensor is not self:
            return tensor
        raise CompositeError(
            f"A {type(self).__name__} was passed where a tensor is required. Pass one of its tensors; or "
            "define what the function computes of it with df.experimental.dispatch_for_api.",
            self,
        )

    def __map_elements__(self, op: Any, inputs: Sequence[Any], attrs: dict[str, Any]) -> Any:
        rule = elementwise_rule(op, inputs, attrs)
        return self.__as_tensor__() if rule is None else rule()
