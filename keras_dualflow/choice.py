"""The backend that Keras will choose.

Python may load this module when it starts, so it imports only modules that Python has loaded by then.
"""

from __future__ import annotations

import os

NAME = "dualflow"


def chosen_backend() -> str:
    """The backend that Keras will choose: ``KERAS_BACKEND``, else that of ``keras.json``, else ""."""
    variable = os.environ.get("KERAS_BACKEND")
    if variable:
        return variable
    folder = os.environ.get("KERAS_HOME") or os.path.join(os.path.expanduser("~"), ".keras")
    path = os.path.join(folder, "keras.json")
    if not os.path.exists(path):
        return ""
    import json

    try:
        with open(path, encoding="utf-8") as file:
            settings = json.load(file)
    except ValueError:  # Keras ignores such a file
        return ""
    return str(settings.get("backend", "")) if isinstance(settings, dict) else ""
