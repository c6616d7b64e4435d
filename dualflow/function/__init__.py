"""``@function``: traces a Python function, compiles the graph, and runs it."""

from dualflow.function.concrete import ConcreteFunction as ConcreteFunction
from dualflow.function.decorator import function as function
from dualflow.function.errors import CapturedValueWarning as CapturedValueWarning
from dualflow.function.errors import FrozenDrawWarning as FrozenDrawWarning
from dualflow.function.errors import RecursiveTraceError as RecursiveTraceError
from dualflow.function.errors import RetracingWarning as RetracingWarning
from dualflow.function.errors import SymbolicValueError as SymbolicValueError
from dualflow.function.run_eagerly import functions_run_eagerly as functions_run_eagerly
from dualflow.function.run_eagerly import run_functions_eagerly as run_functions_eagerly
from dualflow.function.traced_function import Function as Function
from dualflow.function.tracing.symbolic_tensor import SymbolicTensor as SymbolicTensor
