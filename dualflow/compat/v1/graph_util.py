"""Functions of graph definitions: ``v1.graph_util``."""

from dualflow.core.namespace import publish as _publish
from dualflow.graph_mode import convert_variables_to_constants as convert_variables_to_constants
from dualflow.graph_mode import extract_sub_graph as extract_sub_graph
from dualflow.graph_mode import import_graph_def as import_graph_def

_publish(globals())
