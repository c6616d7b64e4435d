"""TensorFlow 1's way: graphs that are built first, and sessions that run parts of them."""

from dualflow.function.session.construct import Variable as Variable
from dualflow.function.session.construct import assign as assign
from dualflow.function.session.construct import assign_add as assign_add
from dualflow.function.session.construct import assign_sub as assign_sub
from dualflow.function.session.construct import control_dependencies as control_dependencies
from dualflow.function.session.construct import global_variables as global_variables
from dualflow.function.session.construct import global_variables_initializer as global_variables_initializer
from dualflow.function.session.construct import gradients as gradients
from dualflow.function.session.construct import group as group
from dualflow.function.session.construct import no_op as no_op
from dualflow.function.session.construct import placeholder as placeholder
from dualflow.function.session.construct import trainable_variables as trainable_variables
from dualflow.function.session.construct import variables_initializer as variables_initializer
from dualflow.function.session.graph import Graph as Graph
from dualflow.function.session.graph import Operation as Operation
from dualflow.function.session.graph import get_default_graph as get_default_graph
from dualflow.function.session.graph import reset_default_graph as reset_default_graph
from dualflow.function.session.growth import GraphGrowthWarning as GraphGrowthWarning
from dualflow.function.session.session import Session as Session
