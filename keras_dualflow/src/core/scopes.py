"""Name scopes and device scopes."""

from __future__ import annotations

from typing import Any

from keras.src.backend.common.name_scope import name_scope as name_scope

import dualflow as df


def device_scope(device_name: str) -> Any:
    """A context manager for a device with Keras's name, such as ``"cpu:0"``."""
    return df.device(device_name)
