"""Options of exchanges, and strategies under their former names: ``df.distribute.experimental``."""

from typing import TYPE_CHECKING

from dualflow.core.namespace import publish as _publish

if TYPE_CHECKING:
    from dualflow.distribute.options import CommunicationImplementation as CommunicationImplementation
    from dualflow.distribute.options import CommunicationOptions as CommunicationOptions
    from dualflow.distribute.strategies import MultiWorkerMirroredStrategy as MultiWorkerMirroredStrategy
    from dualflow.distribute.strategy import ValueContext as ValueContext

_publish(
    globals(),
    lazy={
        "dualflow.distribute.options": "CommunicationImplementation CommunicationOptions",
        "dualflow.distribute.strategies": "MultiWorkerMirroredStrategy",
        "dualflow.distribute.strategy": "ValueContext",
    },
)
