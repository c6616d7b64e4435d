"""Fits the arguments of a call to the structure and the specs that a trace or an input signature has.

A list of numbers may stand where a tensor is wanted, so the structure that is wanted says what is a leaf.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from dualflow.core.convert import as_array
from dualflow.core.dispatch import AbstractTensor, AbstractVariable
from dualflow.core.errors import DTypeError
from dualflow.core.spec import TensorSpec
from dualflow.core.tree import Structure, flatten
from dualflow.eager.tensor import wrap
from dualflow.function.arguments.trace_key import Leaf, ObjectLeaf, TensorLeaf, ValueLeaf, VariableLeaf


def match_structure(wanted: Structure, value: Any) -> list[Any]:
    """The part of ``value`` at each leaf of ``wanted``; a list may stand for a tuple, and a tuple for a list.

    Raises:
        DTypeError: the structures differ.

    >>> from dualflow.core.tree import flatten
    >>> match_structure(flatten({"a": 0, "b": (0, None)})[1], {"a": [[1.0, 2.0]], "b": [3, None]})
    [[[1.0, 2.0]], 3]
    """
    found: list[Any] = []
    _collect(wanted, value, found)
    return found


def _collect(wanted: Structure, value: Any, found: list[Any]) -> None:
    if wanted.kind is None:
        found.append(value)
        return
    children = _children(wanted, value)
    if children is None or len(children) != len(wanted.children):
        raise DTypeError(
            f"{value!r} has not the structure of a {wanted.kind.__name__} with {wanted.leaves} leaves"
        )
    for child, part in zip(wanted.children, children, strict=True):
        _collect(child, part, found)


def _children(wanted: Structure, value: Any) -> Sequence[Any] | None:
    """The children of ``value`` if it is of ``wanted``'s kind."""
    kind = wanted.kind
    if kind is type(None):
        return [] if value is None else None
    if kind in (list, tuple):
        return value if type(value) in (list, tuple) else None
    if not isinstance(kind, type):
        found, structure = flatten(value)
        return found if structure == wanted else None
    if issubclass(kind, Mapping):
        same = isinstance(value, Mapping) and value.keys() == set(wanted.keys)
        return [value[k] for k in wanted.keys] if same else None
    return [getattr(value, k) for k in wanted.keys] if type(value) is kind else None


def match_tensors(
    leaves: Sequence[Leaf], names: Sequence[str], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> list[Any] | None:
    """A value for each leaf of a trace, of which the call gives the tensors only, one by one.

    Keywords are the names of arguments, or of their specs. Returns None if there are more or
    fewer values than tensors, or one is no tensor, array or number.
    """
    if not all(isinstance(x, _SINGLE) for x in (*args, *kwargs.values())):
        return None
    tensors = {i: leaf for i, leaf in enumerate(leaves) if isinstance(leaf, TensorLeaf | VariableLeaf)}
    known = {i: leaf.value for i, leaf in enumerate(leaves) if isinstance(leaf, ValueLeaf | ObjectLeaf)}
    given = dict(zip(tensors, args, strict=False))
    for i, leaf in tensors.items():
        for name in (names[i], leaf.spec.name or names[i]):
            if name in kwargs:
                given.setdefault(i, kwargs[name])
    if len(given) != len(tensors) or len(args) + len(kwargs) != len(tensors):
        return None
    return [given[i] if i in given else known[i] for i in range(len(leaves))]


_SINGLE: Final = (AbstractTensor, AbstractVariable, np.ndarray, np.generic, bool, int, float, complex)


def as_tensor(spec: TensorSpec, value: Any) -> Any:
    """``value``, a tensor, an array or Python's numbers, as a tensor of ``spec``; a TensorSpec stays one.

    Raises:
        DTypeError: a variable, or what has another dtype or shape and can't be converted.
    """
    if isinstance(value, AbstractVariable):
        raise DTypeError(f"Can not cast {value!r} to {spec!r}; pass its value, v.read_value()")
    tensor: Any = (
        value if isinstance(value, TensorSpec | AbstractTensor) else wrap(as_array(value, spec.dtype))
    )
    if not spec.is_compatible_with(tensor):
        raise DTypeError(f"Can not cast {TensorSpec.of(tensor.shape, tensor.dtype)!r} to {spec!r}")
    return tensor
