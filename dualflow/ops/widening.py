"""Ops on narrow floats, computed in float32 and rounded to nearest even, op by op; and ops on strings.

A narrow float is one of the package ml_dtypes: bfloat16, and those of 8 bits, which are for storage. What
is recorded, differentiated and compiled is the cast, the op in float32 and the cast back; so eager and
compiled code round at the same places, and no op handles narrow floats itself. Strings are accepted by ops
that only move elements, and by ops whose record has ``strings=True``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from dualflow.core.dtypes import float32
from dualflow.core.errors import DTypeError
from dualflow.ops.op_kinds import CopyPieces, Gather, Literal, View

if TYPE_CHECKING:
    from dualflow.core.dispatch import Engine
    from dualflow.core.dtypes import DType
    from dualflow.ops.record import Op

_MOVES: Final = (CopyPieces, Literal, Gather, View)


def is_dtype_agnostic(op: Op) -> bool:
    """Whether an op only moves elements, or passes them to Python, so that it supports every dtype."""
    return isinstance(op.kind, _MOVES) or op.effect is not None or op.outputs is None


def widens(op: Op) -> bool:
    """Whether an op computes narrow floats in float32."""
    return not is_dtype_agnostic(op) and op.name != "cast"


def reject_strings(op: Op, inputs: tuple[Any, ...]) -> None:
    """Raise an error if some inputs are strings, unless the op takes them.

    Raises:
        DTypeError: the op computes with numbers only.
    """
    if op.strings or is_dtype_agnostic(op):
        return
    raise DTypeError(
        f"{op.name}({', '.join(str(x.spec) for x in inputs)}): {op.name} doesn't support strings; "
        "see df.strings, or convert them with df.strings.to_number."
    )


def run_widened(op: Op, cast: Op, inputs: tuple[Any, ...], attrs: dict[str, Any], engine: Engine) -> Any:
    """Run an op, some of whose inputs are narrow floats, in float32, and cast the results back.

    Raises:
        DTypeError: floats of 8 bits, which no op computes with.
    """

    def converted(x: Any, dtype: DType) -> Any:
        return x if x.dtype is dtype else engine.apply(cast, (x,), {"dtype": dtype})

    for x in inputs:
        if x.dtype.narrow and x.dtype.size == 1:
            raise DTypeError(
                f"{op.name} does not compute with {x.dtype.name}, in which numbers are stored; cast it to "
                "bfloat16 or float32 with df.cast first."
            )
    specs = op.specs([x.spec for x in inputs], attrs)
    wide = tuple([converted(x, float32) if x.dtype.narrow else x for x in inputs])
    outputs = engine.apply(op, wide, attrs)
    results = [
        converted(y, spec.dtype) if spec.dtype.narrow else y
        for y, spec in zip(outputs if isinstance(outputs, tuple) else (outputs,), specs, strict=True)
    ]
    return tuple(results) if isinstance(outputs, tuple) else results[0]
