"""How the values of replicas are combined: ``df.distribute.ReduceOp``."""

from __future__ import annotations

import enum

from dualflow.core.errors import InvalidArgumentError


class ReduceOp(enum.Enum):
    """The reduction of the values of replicas: their sum or their mean.

    >>> import dualflow as df
    >>> strategy = df.distribute.get_strategy()
    >>> strategy.reduce(df.distribute.ReduceOp.SUM, df.constant([1.0, 2.0]), axis=0).numpy()
    np.float32(3.0)
    """

    SUM = "SUM"
    MEAN = "MEAN"


def as_reduce_op(value: object) -> ReduceOp:
    """The :class:`ReduceOp` of a value or of its name.

    Raises:
        InvalidArgumentError: there is none.
    """
    if isinstance(value, ReduceOp):
        return value
    name = value.upper() if isinstance(value, str) else ""
    if name not in ReduceOp.__members__:
        raise InvalidArgumentError(
            f"reduce_op is df.distribute.ReduceOp.SUM or MEAN, or the name of one, not {value!r}."
        )
    return ReduceOp[name]
