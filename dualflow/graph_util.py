"""Graph definitions of TensorFlow 1's graphs: ``df.graph_util``."""

from typing import TYPE_CHECKING

from dualflow.core.namespace import publish as _publish

if TYPE_CHECKING:
    from dualflow.graph_mode.graph_def_import import import_graph_def as import_graph_def

_publish(globals(), lazy={"dualflow.graph_mode.graph_def_import": "import_graph_def"})
