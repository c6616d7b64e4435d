"""The start of a program by TensorFlow 1's name: ``v1.app.run``."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from dualflow.compat.v1.flags import absl_module
from dualflow.core.namespace import publish as _publish


def run(main: Callable[[list[str]], Any] | None = None, argv: Sequence[str] | None = None) -> NoReturn:
    """Parse the flags of the command line, call ``main``, and exit with its result as the status.

    Args:
        main: a function of the arguments that are no flags, the program's name first; by default the
            program's function ``main``.
        argv: the command line, by default the process's. Unknown flags are passed to ``main``.

    Raises:
        NotFoundError: Abseil is not installed: ``pip install absl-py``.
    """
    function = vars(sys.modules["__main__"])["main"] if main is None else main
    absl_module("app").run(
        function, argv=argv, flags_parser=lambda args: absl_module("flags").FLAGS(args, known_only=True)
    )
    sys.exit(0)


_publish(globals(), internal=("Any", "Callable", "NoReturn", "Sequence", "absl_module"))
