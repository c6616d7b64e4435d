"""Variables that a traced function creates, which only its first call may do.

The variable is created at once with its initial value, which therefore can't depend on the function's
arguments. Then the function is traced again, and reads the variable from where its code has stored it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dualflow.core.dispatch import AbstractVariable
from dualflow.core.errors import InvalidArgumentError
from dualflow.eager.device_engine import eager_engine
from dualflow.eager.tensor import wrap
from dualflow.graph.ir import Origin


class VariableCreation:
    """The lines at which one function has created variables, and whether it may create more."""

    __slots__ = ("_name", "allowed", "sites")

    def __init__(self, name: str) -> None:
        self._name = name
        self.allowed = True
        self.sites: list[Origin | None] = []

    def create(self, variable: AbstractVariable, initial: np.ndarray[Any, Any], site: Origin | None) -> None:
        """Set the initial value of ``variable``.

        Raises:
            InvalidArgumentError: the function's first call is over.
        """
        if not self.allowed:
            raise InvalidArgumentError(self._refusal(site))
        eager_engine().create_variable(variable, wrap(initial))
        self.sites.append(site)

    def _refusal(self, site: Origin | None) -> str:
        earlier = "".join(f"\n  created on the first call: {s}" for s in dict.fromkeys(self.sites))
        return (
            "df.function only supports singleton df.Variables created on the first call. Make sure the "
            f"df.Variable is only created once or created outside df.function; {self._name!r} creates one "
            "each time it is traced. Keep it in an attribute and create it only while that is None."
            f"{earlier}\n  created again: {site}"
        )
