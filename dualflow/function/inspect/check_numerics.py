"""Where a nan or an infinity comes from: ``df.debugging.enable_check_numerics``.

An engine of its own looks at what each op makes. While it is current, traced functions run op by op on it, as
in a trace, so calls of them are checked by the same code, and no trace or kernel has to exist
twice. Switched off, the engine is not there, and nothing is asked or paid.
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
from dualflow.ops.op_kinds import Cond, Loop
from dualflow.ops.record import Op

Array = np.ndarray[Any, Any]


@entry
def enable_check_numerics(stack_height_limit: int = 30, path_length_limit: int = 50) -> None:
    """From now on, the first op that makes a nan or an infinity out of finite inputs is an error.

    It names the op, your line, and the first such element, in eager code and in traced functions alike, their
    branches, loops and gradients included. Calls of traced functions then run op by op, from the traces that
    there are, as slowly as eager code: nothing is compiled anew, and after :func:`disable_check_numerics`
    everything is as fast as before. What is not finite because an input wasn't goes through.

    It holds for this thread (or task) until it is disabled; doing so twice is doing it once. Sessions of
    explicit graphs are not checked, nor is what Python functions called by ops do inside.

    Args:
        stack_height_limit: ignored: one line is named, the user's.
        path_length_limit: ignored: the file's name is told in full.

    Raises:
        FailedPreconditionError: called while a function is traced or a tape records.

    >>> import dualflow as df
    >>> df.debugging.enable_check_numerics()
    >>> df.function(lambda x: df.sqrt(x) + 1.0)(df.constant([4.0, -1.0]))
    Traceback (most recent call last):
    ...
    dualflow.core.errors.InvalidArgumentError: sqrt(float32[2]) made nan at [1] of float32[2], from -1.0 ...
    >>> df.debugging.disable_check_numerics()
    """
    _switch(EAGER, CHECKING)


@entry
def disable_check_numerics() -> None:
    """Check no more, after :func:`enable_check_numerics`; without it, nothing happens.

    Raises:
        FailedPreconditionError: called while a function is traced or a tape records.

    >>> import dualflow as df
    >>> df.debugging.disable_check_numerics()
    """
    _switch(CHECKING, EAGER)


class CheckingEngine(DelegatingEngine):
    """The eager engine, with a look at what each op makes."""

    __slots__ = ()

    def run(self, op: Op, inputs: tuple[Any, ...], attrs: dict[str, Any]) -> Any:
        arrays = [x._array for x in inputs]
        if isinstance(op.kind, Cond | Loop):  # their kernels evaluate bodies, where the check must reach
            with observed(_checked_node):
                made = tuple([wrap(np.asarray(a)) for a in op.kernel(*arrays, **attrs)])
        else:
            made = super().run(op, inputs, attrs)
        tensors = made if isinstance(made, tuple) else (made,)
        _check(op, arrays, [t._array for t in tensors], caller())
        return made


CHECKING: Final = CheckingEngine(EAGER)


def _switch(old: Engine, new: Engine) -> None:
    current = dispatch.current()
    if current is old:
        dispatch.switch(new)
    elif current is not new:
        raise FailedPreconditionError(
            "Checks of numerics are switched on and off outside of traced functions and of tapes, for all "
            "that runs after it; call it before."
        )


def _checked_node(node: Node, arrays: Sequence[Array]) -> Sequence[Array]:
    outputs = run_node(node, arrays)
    _check(node.op, arrays, outputs, node.origin)
    return outputs


def _check(op: Op, inputs: Sequence[Array], outputs: Sequence[Array], origin: Origin | None) -> None:
    """Raise for the first element of ``outputs`` that is not finite, unless one of ``inputs`` isn't."""
    for array in outputs:
        if not _finite(array) and all(map(_finite, inputs)):
            given = ", ".join(str(_spec(x)) for x in inputs)
            where = f"\n  {origin}" if origin is not None else ""
            raise InvalidArgumentError(f"{op.name}({given}) made {_first(array, inputs)}{where}")


def _finite(array: Array) -> bool:
    return array.dtype.kind not in "fc" or bool(np.isfinite(array).all())


def _first(array: Array, inputs: Sequence[Array]) -> str:
    """The first element that is not finite, and those that it was made of, as far as shapes tell."""
    at = tuple(int(i) for i in np.unravel_index(np.argmin(np.isfinite(array)), array.shape))
    place = f" at {list(at)} of {_spec(array)}" if at else ""
    try:
        sources = [str(np.broadcast_to(x, array.shape)[at]) for x in inputs]
    except ValueError:
        sources = []
    known = f", from {' and '.join(sources)}" if sources else ", from finite inputs"
    return f"{array[at]}{place}{known}"


def _spec(array: Array) -> TensorSpec:
    return wrap(array).spec
