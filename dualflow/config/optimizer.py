"""TensorFlow's switches of graph optimisation: ``df.config.optimizer``.

Every function is optimised and compiled; ``df.config.run_functions_eagerly`` is the switch to run none.
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
    """Let functions be compiled, as they always are.

    Raises:
        InvalidArgumentError: ``enabled`` is False: use ``df.config.run_functions_eagerly(True)``.
    """
    if not enabled:
        raise InvalidArgumentError(
            "Functions are always compiled; df.config.run_functions_eagerly(True) runs them as Python."
        )


def get_experimental_options() -> dict[str, Any]:
    """The options of the optimiser that are set: none, as there are none to set."""
    return {}


def set_experimental_options(options: dict[str, Any]) -> None:
    """Choose among TensorFlow's graph optimisations, of which there are none here: nothing changes.

    None of this project's changes a result, so that there is nothing to switch off.

    >>> import dualflow as df
    >>> df.config.optimizer.set_experimental_options({"layout_optimizer": True})
    """


_publish(globals(), internal=("Any", "InvalidArgumentError", "entry"))
