"""Dropout with other sources of random numbers: ``df.nn.experimental``."""

from typing import TYPE_CHECKING

from dualflow.core.namespace import publish as _publish

if TYPE_CHECKING:
    from dualflow.ops.neural.dropout import general_dropout as general_dropout
    from dualflow.ops.neural.dropout import stateless_dropout as stateless_dropout

_publish(globals(), lazy={"dualflow.ops.neural.dropout": "general_dropout stateless_dropout"})
