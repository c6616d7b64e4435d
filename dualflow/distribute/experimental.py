"""Options of collectives, and strategies under their former names: ``df.distribute.experimental``."""

from typing import TYPE_CHECKING

from dualflow.core.namespace import publish as _publish

if TYPE_CHECKING:
    from dualflow.distribute.extended import ValueContext as ValueContext
    from dualflow.distribute.options import CommunicationImplementation as CommunicationImplementation
    from dualflow.distribute.options import CommunicationOptions as CommunicationOptions
    from dualflow.distribute.strategies import CentralStorageStrategy as CentralStorageStrategy
    from dualflow.distribute.strategies import MultiWorkerMirroredStrategy as MultiWorkerMirroredStrategy
    from dualflow.distribute.strategies import TPUStrategy as TPUStrategy

_publish(
    globals(),
    lazy={
        "dualflow.distribute.options": "CommunicationImplementation CommunicationOptions",
        "dualflow.distribute.strategies": "CentralStorageStrategy MultiWorkerMirroredStrategy TPUStrategy",
        "dualflow.distribute.extended": "ValueContext",
    },
)
