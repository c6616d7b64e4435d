"""TensorFlow 1's graphs, which are built first, and sessions, which run parts of them."""

from dualflow.graph_mode.default_graph import disable_eager_execution as disable_eager_execution
from dualflow.graph_mode.default_graph import enable_eager_execution as enable_eager_execution
from dualflow.graph_mode.default_graph import get_default_graph as get_default_graph
from dualflow.graph_mode.default_graph import recording_graph as recording_graph
from dualflow.graph_mode.default_graph import reset_default_graph as reset_default_graph
from dualflow.graph_mode.graph import ExplicitGraph as ExplicitGraph
from dualflow.graph_mode.graph_def import GraphDef as GraphDef
from dualflow.graph_mode.graph_def import NodeDef as NodeDef
from dualflow.graph_mode.graph_def_files import (
    convert_variables_to_constants as convert_variables_to_constants,
)
from dualflow.graph_mode.graph_def_files import extract_sub_graph as extract_sub_graph
from dualflow.graph_mode.graph_def_files import write_graph as write_graph
from dualflow.graph_mode.graph_def_import import import_graph_def as import_graph_def
from dualflow.graph_mode.graph_engine import GLOBAL_VARIABLES as GLOBAL_VARIABLES
from dualflow.graph_mode.graph_engine import TRAINABLE_VARIABLES as TRAINABLE_VARIABLES
from dualflow.graph_mode.growth_warning import GraphGrowthWarning as GraphGrowthWarning
from dualflow.graph_mode.operation import Operation as Operation
from dualflow.graph_mode.placeholders import control_dependencies as control_dependencies
from dualflow.graph_mode.placeholders import group as group
from dualflow.graph_mode.placeholders import no_op as no_op
from dualflow.graph_mode.placeholders import placeholder as placeholder
from dualflow.graph_mode.placeholders import placeholder_with_default as placeholder_with_default
from dualflow.graph_mode.placeholders import sparse_placeholder as sparse_placeholder
from dualflow.graph_mode.run_metadata import RunMetadata as RunMetadata
from dualflow.graph_mode.run_metadata import RunOptions as RunOptions
from dualflow.graph_mode.session import InteractiveSession as InteractiveSession
from dualflow.graph_mode.session import Session as Session
from dualflow.graph_mode.session import get_default_session as get_default_session
from dualflow.graph_mode.symbolic_gradients import gradients as gradients
from dualflow.graph_mode.variables import VariableV1 as VariableV1
from dualflow.graph_mode.variables import assign as assign
from dualflow.graph_mode.variables import assign_add as assign_add
from dualflow.graph_mode.variables import assign_sub as assign_sub
from dualflow.graph_mode.variables import global_variables as global_variables
from dualflow.graph_mode.variables import global_variables_initializer as global_variables_initializer
from dualflow.graph_mode.variables import name_scope as name_scope
from dualflow.graph_mode.variables import trainable_variables as trainable_variables
from dualflow.graph_mode.variables import variables_initializer as variables_initializer
