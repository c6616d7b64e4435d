"""Where machine code stores the operands of a failed check, for the text of its error."""

from __future__ import annotations

from typing import Any

import numpy as np

from dualflow.core.records import NamedTuple
from dualflow.graph.ir import Node
from dualflow.graph.views import sizes

Array = np.ndarray[Any, Any]


class CheckValues(NamedTuple):
    """The indices in the parameter table at which a failed check stores its inputs, except the first.

    Calls of a graph share the table: if two fail concurrently, each may report the other's values.
    """

    indices: tuple[int, ...]

    def arrays(self, node: Node, params: Array) -> list[Array]:
        """The operands of the failed check ``node`` that its error shows: all inputs but the first."""
        inputs = []
        for index, value in zip(self.indices, node.inputs[1:], strict=True):
            raw = params[index:].view(np.uint8)[: value.spec.nbytes]
            inputs.append(raw.copy().view(value.spec.dtype.dtype).reshape(sizes(value)))
        return inputs
