"""Whether variables can hold the values of a checkpoint, and values as what they hold."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from dualflow.core.errors import InvalidArgumentError
from dualflow.eager import initial_values, updates
from dualflow.eager.tensor import wrap
from dualflow.eager.variable import Variable
from dualflow.train.folder import Folder
from dualflow.train.object_graph import VALUE

_SHOWN: Final = 5


def misfit(folder: Folder, key: str, variable: Variable) -> str | None:
    """Why a variable can't hold the array ``key``; None if it can."""
    entry = folder.entries[key]
    if entry.dtype is variable.dtype and variable.shape.is_compatible_with(entry.shape):
        return None
    return (
        f"    {key.removesuffix(f'/{VALUE}')} is {entry.dtype.name} of shape {entry.shape}, and the variable "
        f"{variable.name} is {variable.dtype.name} of shape {variable.shape}"
    )


def refuse(folder: Folder, misfits: Collection[str], what: str) -> None:
    """Raise what is wrong with variables, if anything is; ``what`` says what became of them."""
    if misfits:
        lines = list(misfits)[:_SHOWN]
        more = [f"    and {len(misfits) - _SHOWN} more"] if len(misfits) > _SHOWN else []
        head = f"The checkpoint {folder.path} does not fit, and {what}:"
        raise InvalidArgumentError("\n".join([head, *lines, *more]))


def give(folder: Folder, values: Collection[tuple[Variable, str]]) -> None:
    """Let variables hold arrays of a checkpoint, which fit: all of them, or none if anything fails."""
    tensors = {key: wrap(folder.read(key)) for _, key in values}
    given: set[str] = set()
    before = [(v, updates.value_of(v)) for v, _ in values if not initial_values.is_new(v)]
    try:
        for variable, key in values:
            # two variables never share the memory that compiled code writes to
            updates.restore(variable, wrap(tensors[key]._array.copy()) if key in given else tensors[key])
            given.add(key)
    except BaseException:
        for variable, tensor in before:
            if tensor is not None:
                updates.restore(variable, tensor)
        raise
