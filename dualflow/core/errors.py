"""dualflow's error classes: each is a subclass of the built-in error that users catch.

A message has what went wrong, with which shapes and dtypes, and what to do about it.
"""

from __future__ import annotations


class DualflowError(Exception):
    """Base of every error that dualflow raises on purpose.

    Programs may raise these themselves, with a message or with TensorFlow's three arguments.

    Attributes:
        node_def: what TensorFlow's first argument was; None for errors that dualflow raises.
        op: what its second argument was; None for errors that dualflow raises.
        error_code: TensorFlow's number of the kind of error, such as ``df.errors.INVALID_ARGUMENT``.

    >>> import dualflow as df
    >>> error = df.errors.InvalidArgumentError(node_def=None, op=None, message="too long")
    >>> error.message, error.error_code == df.errors.INVALID_ARGUMENT
    ('too long', True)
    """

    error_code: object = 2
    node_def: object = None
    op: object = None

    def __init__(self, *args: object, **kwargs: object) -> None:
        """``args`` is the message, or ``node_def, op, message`` and optionally ``error_code``."""
        if len(args) >= 3:
            kwargs = dict(zip(("node_def", "op", "message", "error_code"), args, strict=False)) | kwargs
            args = ()
        for name in ("node_def", "op", "error_code"):
            if kwargs.get(name) is not None:
                setattr(self, name, kwargs[name])
        super().__init__(*((kwargs["message"],) if "message" in kwargs else args))

    @property
    def message(self) -> str:
        """What went wrong, and what to do about it."""
        return str(self.args[0]) if self.args else ""


class InvalidArgumentError(DualflowError, ValueError):
    """An invalid value, shape or dtype."""

    error_code = 3


class UnassignedError(InvalidArgumentError, UnboundLocalError):
    """A read of a Python variable that is assigned only in a loop that ran zero iterations."""


class GradientCheckError(DualflowError, AssertionError):
    """A derivative differs from the numerical one."""

    error_code = 13


class NotRestoredError(DualflowError, AssertionError):
    """A checkpoint doesn't match the objects that it was restored into, as an assertion required."""

    error_code = 9


class DTypeError(DualflowError, TypeError):
    """An argument of the wrong Python type or dtype."""

    error_code = 3


class UnsupportedValueError(DTypeError, ValueError):
    """A value without a counterpart of the other kind: None as a tensor, a vector as a Python number."""


class StructureError(InvalidArgumentError, TypeError):
    """Values whose nested structures differ, as those of a loop variable; TensorFlow raises a TypeError."""


class OutOfRangeError(InvalidArgumentError, IndexError):
    """An index outside its axis."""

    error_code = 11


class FailedPreconditionError(DualflowError, RuntimeError):
    """A call at the wrong time: a tape used twice, a variable not initialised."""

    error_code = 9


class OperatorNotAllowedInGraphError(DualflowError, TypeError):
    """A symbolic tensor was used where Python needs a value now (``if``, ``for``, ``int()``)."""

    error_code = 3


class InaccessibleTensorError(DualflowError, TypeError, ValueError):
    """A symbolic tensor outlived the trace that made it."""


class ResourceExhaustedError(DualflowError, MemoryError):
    """An array too large for this machine."""

    error_code = 8


class NotFoundError(DualflowError, LookupError):
    """A name, file or op that does not exist."""

    error_code = 5


class MissingAttributeError(DualflowError, AttributeError):
    """A name that a namespace does not have, or an attribute that only other kinds of tensors have.

    If ``name`` is None, Python sets it and adds a suggestion to the traceback.
    """

    def __init__(self, *args: object, name: str | None = None, **kwargs: object) -> None:
        """``name`` is the missing name; None lets Python add a suggestion."""
        super().__init__(*args, **kwargs)
        self.name = name


class MissingNameError(DualflowError, ImportError):
    """A name that ``from dualflow import name`` does not find."""

    def __init__(self, *args: object, name: str | None = None, **kwargs: object) -> None:
        """``name`` is the name that is missing."""
        super().__init__(*args, **kwargs)
        self.name = name


class MissingModuleError(MissingNameError, ModuleNotFoundError):
    """A module of TensorFlow without an equivalent here."""


class InternalError(DualflowError, AssertionError):
    """A violated invariant inside dualflow: please report it, with the message."""

    error_code = 13
