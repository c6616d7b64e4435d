"""Linear operators as trees of their tensors, for functions, loops, gradients and structures of values."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from dualflow.core import tree
from dualflow.core.dispatch import TENSORS, AbstractComposite
from dualflow.core.records import dataclass
from dualflow.core.spec import TensorSpec
from dualflow.core.type_spec import TreeSpec
from dualflow.linear_operators.property_hints import Hints
from dualflow.ops.static import static_value


@dataclass(frozen=True, slots=True)
class OperatorStructure:
    """A linear operator without its tensors: the class, and the arguments that are no tensors."""

    operator_class: type[Any]
    static: tuple[tuple[str, Any], ...]

    @property
    def __name__(self) -> str:
        return self.operator_class.__name__

    def __call__(self, **fields: Any) -> Any:
        """The operator that is built from these tensors; from anything else an :class:`OperatorSpec`."""
        if all(isinstance(leaf, TENSORS) for leaf in tree.leaves(fields)):
            return self.operator_class(**dict(self.static), **fields)
        return OperatorSpec(self, tuple(fields), tuple(fields.values()))


class OperatorSpec(TreeSpec):
    """The spec of a linear operator: its structure, and a spec for each of its tensors.

    Attributes:
        structure: the class, and the arguments that are no tensors, hints among them.
        names: the names of the arguments that hold tensors.
        fields: a spec for each, or a list of specs.
    """

    __slots__ = ("fields", "names", "structure")

    def __init__(self, structure: OperatorStructure, names: tuple[str, ...], fields: tuple[Any, ...]) -> None:
        self.structure, self.names, self.fields = structure, names, fields

    @property
    def value_type(self) -> type[Any]:
        """The class of the operators that it describes."""
        return self.structure.operator_class

    def __tree__(self) -> tuple[Any, tuple[str, ...], list[Any]]:
        return self.structure, self.names, list(self.fields)

    def _serialize(self) -> tuple[Any, ...]:
        leaves, structure = tree.flatten(list(self.fields))
        return self.structure, self.names, structure, tuple(leaves)

    def __repr__(self) -> str:
        fields = [f"{name}={field!r}" for name, field in zip(self.names, self.fields, strict=True)]
        static = [f"{name}={value!r}" for name, value in self.structure.static if value is not None]
        return f"{self.structure.__name__}Spec({', '.join([*fields, *static])})"


def spec_of(operator: Any) -> Any:
    """The spec of an operator."""
    return tree.map_structure(lambda x: TensorSpec(x.shape, x.dtype), operator)


def branch_of(operator: Any) -> tuple[OperatorStructure, tuple[str, ...], list[Any]] | None:
    """An operator as a branch of a tree: its structure, and the names and values of its children.

    None if its class doesn't name the arguments to rebuild it from: then it is a leaf.
    """
    names = operator._composite_tensor_fields
    if not names:
        return None
    prefers_static = operator._composite_tensor_prefer_static_fields
    values = {name: _argument(operator, name, name in prefers_static) for name in names}
    branches = {name: value for name, value in values.items() if _is_branch(value)}
    static = [(name, _hashable(value)) for name, value in values.items() if name not in branches]
    hints = [(name, getattr(operator, f"_{name}", None)) for name in Hints._fields]
    structure = OperatorStructure(type(operator), (*static, *hints))
    return structure, tuple(branches), list(branches.values())


def _argument(operator: Any, name: str, prefers_static: bool) -> Any:
    """An argument of the constructor: the attribute of its name, or the entry of ``parameters``."""
    for source in (f"_{name}", name):
        if hasattr(operator, source):
            value = getattr(operator, source)
            break
    else:
        value = operator.parameters[name]
    if prefers_static and isinstance(value, TENSORS):
        array = static_value(value)
        value = value if array is None else array
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else value


def _is_branch(value: Any) -> bool:
    """Whether an argument consists of tensors, or of operators, which may have none."""
    leaves = tree.leaves(value)
    if leaves:
        return all(isinstance(leaf, TENSORS) for leaf in leaves)
    parts = value if isinstance(value, list | tuple) else [value]
    return bool(parts) and all(isinstance(part, AbstractComposite) for part in parts)


def _hashable(value: Any) -> Any:
    is_sequence = isinstance(value, Iterable) and not isinstance(value, str)
    return tuple(_hashable(x) for x in value) if is_sequence else value
