"""Sounds in files: ``df.audio``."""

from typing import TYPE_CHECKING

from dualflow.core.namespace import publish as _publish

if TYPE_CHECKING:
    from dualflow.ops.files.sounds import decode_wav as decode_wav
    from dualflow.ops.files.sounds import encode_wav as encode_wav

_publish(globals(), lazy={"dualflow.ops.files.sounds": "decode_wav encode_wav"})
