"""Matches the arguments of a call against the structure and the specs of a trace or an input signature.

A list of numbers may be an argument for a tensor, so the expected structure determines what is a leaf.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from dualflow.core.convert import as_array
from dualflow.core.dispatch import AbstractTensor, AbstractVariable
from dualflow.core.errors import DTypeError
from dualflow.core.spec import TensorSpec
from dualflow.core.tree import Structure, open_branch
from dualflow.eager.tensor import wrap
from dualflow.function.arguments.trace_key import Leaf, ObjectLeaf, TensorLeaf, ValueLeaf, VariableLeaf


def match_structure(expected: Structure, value: Any) -> list[Any]:
    """The part of ``value`` at each leaf of ``expected``; a list matches a tuple, and a tuple a list.

    Raises:
        DTypeError: the structures differ.

    >>> from dualflow.core.tree import flatten
    >>> match_structure(flatten({"a": 0, "b": (0, None)})[1], {"a": [[1.0, 2.0]], "b": [3, None]})
    [[[1.0, 2.0]], 3]
    """
    leaves: list[Any] = []
    _collect(expected, value, leaves)
    return leaves


def match_arguments(expected: Structure, values: Mapping[str, Any]) -> list[Any]:
    """As :func:`match_structure` for the value of each parameter, whose name is in the error.

    Raises:
        DTypeError: the structures differ.
    """
    leaves: list[Any] = []
    for child, (name, value) in zip(expected.children, values.items(), strict=True):
        try:
            leaves += match_structure(child, value)
        except DTypeError as error:
            raise DTypeError(f"The argument {name}, {error}.") from None
    return leaves


def kind_serves(expected: Any, kind: Any) -> bool:
    """Whether a trace for a structure of kind ``expected`` serves ``kind``: the same, or a subtype."""
    return expected == kind or (hasattr(expected, "serves") and bool(expected.serves(kind)))


def _collect(expected: Structure, value: Any, leaves: list[Any]) -> None:
    if expected.kind is None:
        leaves.append(value)
        return
    children = _children(expected, value)
    if children is None or len(children) != len(expected.children):
        count = "1 leaf" if expected.leaves == 1 else f"{expected.leaves} leaves"
        raise DTypeError(f"{value!r} does not have the structure of a {expected.kind.__name__} with {count}")
    for child, part in zip(expected.children, children, strict=True):
        _collect(child, part, leaves)


def _children(expected: Structure, value: Any) -> Sequence[Any] | None:
    """The children of ``value`` if its kind is that of ``expected``, else None."""
    kind = expected.kind
    if kind is type(None):
        return [] if value is None else None
    if kind in (list, tuple):
        return value if type(value) in (list, tuple) else None
    if not isinstance(kind, type):
        branch = open_branch(value)
        if branch is None or branch[1] != expected.keys:
            return None
        return branch[2] if kind_serves(kind, branch[0]) else None
    if issubclass(kind, Mapping):
        same = isinstance(value, Mapping) and value.keys() == set(expected.keys)
        return [value[k] for k in expected.keys] if same else None
    return [getattr(value, k) for k in expected.keys] if type(value) is kind else None


def match_tensors(
    leaves: Sequence[Leaf], names: Sequence[str], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> list[Any] | None:
    """A value for each leaf of a trace, for a call that passes the tensors among the leaves one by one.

    Keywords are the names of leaves, or of their specs. Returns None if the numbers of arguments and tensors
    differ, or an argument is no tensor, array or number.
    """
    if not all(isinstance(x, _TENSOR_LIKE) for x in (*args, *kwargs.values())):
        return None
    tensors = {i: leaf for i, leaf in enumerate(leaves) if isinstance(leaf, TensorLeaf | VariableLeaf)}
    static = {i: leaf.value for i, leaf in enumerate(leaves) if isinstance(leaf, ValueLeaf | ObjectLeaf)}
    passed = dict(zip(tensors, args, strict=False))
    for i, leaf in tensors.items():
        for name in (names[i], leaf.spec.name or names[i]):
            if name in kwargs:
                passed.setdefault(i, kwargs[name])
    if len(passed) != len(tensors) or len(args) + len(kwargs) != len(tensors):
        return None
    return [passed[i] if i in passed else static[i] for i in range(len(leaves))]


_TENSOR_LIKE: Final = (AbstractTensor, AbstractVariable, np.ndarray, np.generic, bool, int, float, complex)


def as_tensor(spec: TensorSpec, value: Any) -> Any:
    """``value``, a tensor, an array or Python numbers, as a tensor of ``spec``; or a TensorSpec, as it is.

    Raises:
        DTypeError: ``value`` is a variable, or has another dtype or shape and can't be converted.
    """
    if isinstance(value, AbstractVariable):
        raise DTypeError(f"Can not cast {value!r} to {spec!r}; pass its value, v.read_value()")
    tensor: Any = (
        value if isinstance(value, TensorSpec | AbstractTensor) else wrap(as_array(value, spec.dtype))
    )
    if not spec.is_compatible_with(tensor):
        raise DTypeError(f"Can not cast {TensorSpec.of(tensor.shape, tensor.dtype)!r} to {spec!r}")
    return tensor
