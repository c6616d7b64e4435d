"""``v1.data``: ``df.data``, and the iterators of graphs."""

from __future__ import annotations

from typing import Any

import dualflow
from dualflow.compat.v1.iterators import make_initializable_iterator as make_initializable_iterator
from dualflow.compat.v1.iterators import make_one_shot_iterator as make_one_shot_iterator
from dualflow.core.namespace import ABSENT
from dualflow.core.namespace import publish as _publish


def _data_object(name: str) -> Any:
    return getattr(dualflow.data, name, ABSENT)


_publish(globals(), internal=("ABSENT", "Any"), others=dir(dualflow.data), fallback=_data_object)
