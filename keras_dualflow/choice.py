"""The backend that Keras will take.

Python may load this module when it starts: it imports nothing that is not loaded by then.
"""

from __future__ import annotations

import os

NAME = "dualflow"


def chosen() -> str:
    """The backend that Keras will take: ``KERAS_BACKEND``, else its settings file's; "" for its default."""
    named = os.environ.get("KERAS_BACKEND")
    if named:
        return named
    folder = os.environ.get("KERAS_HOME") or os.path.join(os.path.expanduser("~"), ".keras")
    path = os.path.join(folder, "keras.json")
    if not os.path.exists(path):
        return ""
    import json

    try:
        with open(path, encoding="utf-8") as file:
            settings = json.load(file)
    except ValueError:  # Keras ignores such a file, too
        return ""
    return str(settings.get("backend", "")) if isinstance(settings, dict) else ""
