"""Switches between the behaviour of TensorFlow 1 and 2, for the whole process."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from types import FrameType
from typing import Final

from dualflow.compat.v1.dimension import Dimension
from dualflow.core.shape import set_size_class
from dualflow.eager.device_engine import DeviceBlock
from dualflow.eager.tensor import EagerTensor
from dualflow.eager.variable import Variable
from dualflow.graph_mode import disable_eager_execution, enable_eager_execution

_INTERNAL: Final = frozenset({"dualflow", "keras", "keras_dualflow", "numpy"})
"""Packages whose code takes integers for sizes."""


def disable_v2_behavior() -> None:
    """Build graphs instead of running ops, as :func:`disable_eager_execution`, with sizes as dimensions.

    Raises:
        FailedPreconditionError: inside a graph's block, a tape or a traced function.
    """
    disable_eager_execution()
    disable_v2_tensorshape()


def enable_v2_behavior() -> None:
    """Run ops eagerly, with sizes as integers: the default.

    Raises:
        FailedPreconditionError: inside a graph's block, a tape or a traced function.
    """
    enable_eager_execution()
    enable_v2_tensorshape()


def disable_v2_tensorshape() -> None:
    """Let items of shapes be :class:`Dimension` objects in the program: ``x.shape[0].value``.

    The code of dualflow, Keras and NumPy still gets integers and None.
    """
    set_size_class(Dimension, _is_internal)


def enable_v2_tensorshape() -> None:
    """Let items of shapes be integers and None: the default.

    >>> from dualflow.compat import v1
    >>> v1.enable_v2_tensorshape()
    >>> v1.TensorShape([3, None])[0]
    3
    """
    set_size_class(None, _is_internal)


def enable_resource_variables() -> None:
    """Does nothing: all variables are resource variables, whose reads are ordered with their assignments."""


def disable_resource_variables() -> None:
    """Does nothing: there are no variables of references."""


def resource_variables_enabled() -> bool:
    """True: all variables are resource variables."""
    return True


def enable_control_flow_v2() -> None:
    """Does nothing: branches and loops always are functions."""


def control_flow_v2_enabled() -> bool:
    """True: branches and loops always are functions."""
    return True


def colocate_with(op: object, ignore_existing: bool = False) -> AbstractContextManager[None]:
    """A block on the device of a tensor or variable; of a symbolic tensor or an operation, without effect.

    Args:
        op: the tensor or variable.
        ignore_existing: ignored.
    """
    return DeviceBlock(op.device) if isinstance(op, EagerTensor | Variable) else nullcontext()


def _is_internal(frame: FrameType) -> bool:
    return frame.f_globals.get("__name__", "").partition(".")[0] in _INTERNAL
