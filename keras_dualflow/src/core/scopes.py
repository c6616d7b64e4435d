"""Blocks that name what is made in them, or say where it is."""

from __future__ import annotations

from typing import Any

from keras.src.backend.common.name_scope import name_scope as name_scope

import dualflow as df


def device_scope(device_name: str) -> Any:
    """``with device_scope("cpu:0"):``, by Keras's names of devices."""
    return df.device(device_name)
