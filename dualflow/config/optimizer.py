"""TensorFlow's switches of graph optimisation: ``df.config.optimizer``.

Every function is optimised and compiled; ``df.config.run_functions_eagerly(True)`` disables compilation.
"""

from typing import Any

from dualflow.core.errors import InvalidArgumentError
from dualflow.core.namespace import publish as _publish
from dualflow.core.tracebacks import entry


def get_jit() -> str:
    """``"autoclustering"``: TensorFlow's name for compiling what can be compiled.

    >>> import dualflow as df
    >>> df.config.optimizer.get_jit()
    'autoclustering'
    """
    return "autoclustering"


@entry
def set_jit(enabled: bool | str) -> None:
    """Has no effect: functions are always compiled.

    Raises:
        InvalidArgumentError: ``enabled`` is False: use ``df.config.run_functions_eagerly(True)``.
    """
    if not enabled:
        raise InvalidArgumentError(
            "Functions are always compiled; df.config.run_functions_eagerly(True) runs them as Python."
        )


def get_experimental_options() -> dict[str, Any]:
    """An empty dict: TensorFlow's optimiser, which has these options, doesn't exist here."""
    return {}


def set_experimental_options(options: dict[str, Any]) -> None:
    """Has no effect: TensorFlow's graph optimisations don't exist here.

    dualflow's own optimisations don't change results, so that none has to be switched off.

    >>> import dualflow as df
    >>> df.config.optimizer.set_experimental_options({"layout_optimizer": True})
    """


_publish(globals(), internal=("Any", "InvalidArgumentError", "entry"))
