"""``df.debugging.enable_check_numerics``: finds the op that produces a nan or an infinity.

An engine checks the outputs of each op. While it is current, traced functions run op by op on it, so that
their calls are checked by the same code, without further traces or kernels. While disabled, the engine is not
current and costs nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from dualflow.core import dispatch
from dualflow.core.delegating_engine import DelegatingEngine
from dualflow.core.dispatch import Engine
from dualflow.core.errors import FailedPreconditionError, InvalidArgumentError
from dualflow.core.spec import TensorSpec
from dualflow.core.tracebacks import entry
from dualflow.eager.engine import EAGER
from dualflow.eager.tensor import wrap
from dualflow.graph.interpret import observed, run_node
from dualflow.graph.ir import Node, Origin
from dualflow.graph.origin import caller
from dualflow.ops.op_kinds import CONTROL
from dualflow.ops.record import Op

Array = np.ndarray[Any, Any]


@entry
def enable_check_numerics(stack_height_limit: int = 30, path_length_limit: int = 50) -> None:
    """Raise an error at the first op that computes a nan or an infinity from finite inputs.

    The error has the op, the user's line and the first such element. It applies to eager code and traced
    functions, including branches, loops and gradients. While it is enabled, calls of traced functions run op
    by op from the existing traces, at the speed of eager code. Nothing is compiled again, and after
    :func:`disable_check_numerics` calls are as fast as before. Ops with an input that is not finite are not
    checked.

    It applies to the current thread (or task) until it is disabled. Enabling it again has no effect. Sessions
    of explicit graphs are not checked, nor are computations in Python functions that ops call.

    Args:
        stack_height_limit: ignored: the error has the user's line.
        path_length_limit: ignored: the error has the whole path of the file.

    Raises:
        FailedPreconditionError: called while a function is traced or a tape records.

    >>> import dualflow as df
    >>> df.debugging.enable_check_numerics()
    >>> df.function(lambda x: df.sqrt(x) + 1.0)(df.constant([4.0, -1.0]))
    Traceback (most recent call last):
    ...
    dualflow.core.errors.InvalidArgumentError: sqrt(float32[2]) computed nan at [1] of float32[2], from ...
    >>> df.debugging.disable_check_numerics()
    """
    _switch(EAGER, CHECKING)


@entry
def disable_check_numerics() -> None:
    """Disable the check of :func:`enable_check_numerics`; no effect if it is not enabled.

    Raises:
        FailedPreconditionError: called while a function is traced or a tape records.

    >>> import dualflow as df
    >>> df.debugging.disable_check_numerics()
    """
    _switch(CHECKING, EAGER)


class CheckingEngine(DelegatingEngine):
    """The eager engine, with a check of the outputs of each op."""

    __slots__ = ()

    def run(self, op: Op, inputs: tuple[Any, ...], attrs: dict[str, Any]) -> Any:
        arrays = [x._array for x in inputs]
        if isinstance(op.kind, CONTROL):  # their kernels evaluate bodies, whose ops are checked
            with observed(_checked_node):
                result = tuple([wrap(np.asarray(a)) for a in op.kernel(*arrays, **attrs)])
        else:
            result = super().run(op, inputs, attrs)
        tensors = result if isinstance(result, tuple) else (result,)
        _check(op, arrays, [t._array for t in tensors], caller())
        return result


CHECKING: Final = CheckingEngine(EAGER)


def _switch(old: Engine, new: Engine) -> None:
    current = dispatch.current()
    if current is old:
        dispatch.switch(new)
    elif current is not new:
        raise FailedPreconditionError(
            "enable_check_numerics and disable_check_numerics can't be called while a function is traced or "
            "a tape records; call them before."
        )


def _checked_node(node: Node, arrays: Sequence[Array]) -> Sequence[Array]:
    outputs = run_node(node, arrays)
    _check(node.op, arrays, outputs, node.origin)
    return outputs


def _check(op: Op, inputs: Sequence[Array], outputs: Sequence[Array], origin: Origin | None) -> None:
    """Raise an error for the first element of ``outputs`` that is not finite, if ``inputs`` are finite."""
    for array in outputs:
        if not _finite(array) and all(map(_finite, inputs)):
            specs = ", ".join(str(_spec(x)) for x in inputs)
            where = f"\n  {origin}" if origin is not None else ""
            raise InvalidArgumentError(f"{op.name}({specs}) computed {_first(array, inputs)}{where}")


def _finite(array: Array) -> bool:
    return array.dtype.kind not in "fc" or bool(np.isfinite(array).all())


def _first(array: Array, inputs: Sequence[Array]) -> str:
    """The first element that is not finite, with the input elements at its index if the shapes broadcast."""
    index = tuple(int(i) for i in np.unravel_index(np.argmin(np.isfinite(array)), array.shape))
    position = f" at {list(index)} of {_spec(array)}" if index else ""
    try:
        sources = [str(np.broadcast_to(x, array.shape)[index]) for x in inputs]
    except ValueError:
        sources = []
    origin = f", from {' and '.join(sources)}" if sources else ", from finite inputs"
    return f"{array[index]}{position}{origin}"


def _spec(array: Array) -> TensorSpec:
    return wrap(array).spec
