"""``df.tuple``: tensors of which each is ready after all have been computed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dualflow.core.tracebacks import entry
from dualflow.graph_mode.default_graph import recording_graph
from dualflow.graph_mode.placeholders import control_dependencies
from dualflow.ops.conversion import identity
from dualflow.ops.static import tensor_list


@entry
def tuple(
    tensors: Sequence[Any], control_inputs: Sequence[Any] | None = None, name: str | None = None
) -> list[Any]:
    """The tensors themselves, each after all have been computed; None stays None.

    Args:
        tensors: a list of tensors or None.
        control_inputs: tensors or operations of a graph to run first; eagerly and in traced functions they
            have run already.
        name: ignored; as in TensorFlow.

    Returns:
        A list of the tensors.

    Raises:
        DTypeError: an entry can't become a tensor.

    >>> import dualflow as df
    >>> df.tuple([df.constant(1), None])[0].numpy()
    np.int32(1)
    """
    entries = tensor_list(tensors, "tensors")
    first = [x for x in entries if x is not None] if recording_graph() else []
    with control_dependencies([*(control_inputs or ()), *first]):
        return [None if x is None else identity(x) for x in entries]
