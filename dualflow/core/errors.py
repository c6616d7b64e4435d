"""The few error classes of dualflow: each is also the built-in error that users already catch.

A message says what went wrong, with which shapes and dtypes, and what to do about it.
"""

from __future__ import annotations


class DualflowError(Exception):
    """Base of every error that dualflow raises on purpose.

    Programs may raise these themselves, with a message or with TensorFlow's three arguments.

    >>> import dualflow as df
    >>> df.errors.InvalidArgumentError(node_def=None, op=None, message="too long").message
    'too long'
    """

    node_def = op = None

    def __init__(self, *args: object, **kwargs: object) -> None:
        """``args`` is the message, or ``node_def, op, message``, of which only the message is kept."""
        if len(args) >= 3:
            args = args[2:]
        if "message" in kwargs:
            args = (kwargs["message"],)
        super().__init__(*args)

    @property
    def message(self) -> str:
        """What went wrong, and what to do about it."""
        return str(self.args[0]) if self.args else ""


class InvalidArgumentError(DualflowError, ValueError):
    """A value, shape or dtype that the operation can't take."""


class UnassignedError(InvalidArgumentError, UnboundLocalError):
    """A Python variable read that no turn of the loop which assigns it has assigned."""


class DTypeError(DualflowError, TypeError):
    """A Python object or dtype of the wrong kind."""


class OutOfRangeError(InvalidArgumentError, IndexError):
    """An index outside its axis."""


class FailedPreconditionError(DualflowError, RuntimeError):
    """A call at the wrong time: a tape used twice, a variable not initialised."""


class OperatorNotAllowedInGraphError(DualflowError, TypeError):
    """A symbolic tensor was used where Python needs a value now (``if``, ``for``, ``int()``)."""


class InaccessibleTensorError(DualflowError, TypeError, ValueError):
    """A symbolic tensor outlived the trace that made it."""


class ResourceExhaustedError(DualflowError, MemoryError):
    """An array too large for this machine."""


class NotFoundError(DualflowError, LookupError):
    """A name, file or op that does not exist."""


class MissingAttributeError(DualflowError, AttributeError):
    """A name that a namespace does not have, or an attribute that a tensor of another kind has.

    Python adds a guess of its own to a traceback only where ``name`` is None: then it fills that in itself.
    """

    def __init__(self, *args: object, name: str | None = None, **kwargs: object) -> None:
        """``name`` is the name that is missing, where the message says all there is to say of it."""
        super().__init__(*args, **kwargs)
        self.name = name


class MissingNameError(DualflowError, ImportError):
    """A name that ``from dualflow import name`` does not find."""


class InternalError(DualflowError, AssertionError):
    """A broken promise inside dualflow: please report it, with the message."""
