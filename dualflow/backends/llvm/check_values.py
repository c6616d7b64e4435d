"""The values that a failed check reports: it writes scalars and small tensors to the parameter table."""

from __future__ import annotations

from typing import Any

import numpy as np

from dualflow.core.records import NamedTuple
from dualflow.graph.axes import sizes
from dualflow.graph.ir import Node

Array = np.ndarray[Any, Any]


class CheckValues(NamedTuple):
    """Where each input of a check but the first is written: the place of its first 8 bytes in the table.

    Calls of one graph share the table: of two that fail at the same time in two threads, each may tell the
    other's values.
    """

    places: tuple[int, ...]

    def arrays(self, node: Node, params: Array) -> list[Array]:
        """The inputs of ``node`` as they were when it failed."""
        found = []
        for place, value in zip(self.places, node.inputs[1:], strict=True):
            raw = params[place:].view(np.uint8)[: value.spec.nbytes]
            found.append(raw.copy().view(value.spec.dtype.dtype).reshape(sizes(value)))
        return found
