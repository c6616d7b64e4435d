"""Assignment of a checkpoint's arrays to variables, and the checks before it."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from dualflow.core.errors import InvalidArgumentError
from dualflow.eager import initial_values, updates
from dualflow.eager.replicas import whole_value
from dualflow.eager.tensor import wrap
from dualflow.eager.variable import Variable
from dualflow.train.folder import Folder
from dualflow.train.object_graph import VALUE

_SHOWN: Final = 5


def mismatch_reason(folder: Folder, key: str, variable: Variable) -> str | None:
    """The reason why a variable can't hold the array ``key``; None if it can."""
    entry = folder.entries[key]
    whole = whole_value(variable)
    shape = variable.shape if whole is None else whole.shape
    if entry.dtype is variable.dtype and shape.is_compatible_with(entry.shape):
        return None
    return (
        f"    {key.removesuffix(f'/{VALUE}')} is {entry.dtype.name} of shape {entry.shape}, and the variable "
        f"{variable.name} is {variable.dtype.name} of shape {shape}"
    )


def raise_for_mismatches(folder: Folder, reasons: Collection[str], outcome: str) -> None:
    """Raise an InvalidArgumentError that lists ``reasons``, if any; ``outcome`` describes the variables."""
    if reasons:
        lines = list(reasons)[:_SHOWN]
        omitted = [f"    and {len(reasons) - _SHOWN} more"] if len(reasons) > _SHOWN else []
        head = f"The checkpoint {folder.path} does not fit, and {outcome}:"
        raise InvalidArgumentError("\n".join([head, *lines, *omitted]))


def assign_arrays(folder: Folder, values: Collection[tuple[Variable, str]]) -> None:
    """Assign arrays of a checkpoint to variables that they fit: to all of them, or to none after an error."""
    tensors = {key: wrap(folder.read(key)) for _, key in values}
    parts = {id(v): wrap(whole.own(tensors[key]._array)) for v, key in values if (whole := whole_value(v))}
    assigned: set[str] = set()
    before = [(v, updates.value_of(v)) for v, _ in values if not initial_values.is_new(v)]
    try:
        for variable, key in values:
            # variables never share a buffer, since compiled code writes to it
            array = wrap(tensors[key]._array.copy()) if key in assigned else tensors[key]
            updates.restore(variable, parts.get(id(variable), array))
            assigned.add(key)
    except BaseException:
        for variable, tensor in before:
            if tensor is not None:
                updates.restore(variable, tensor)
        raise
