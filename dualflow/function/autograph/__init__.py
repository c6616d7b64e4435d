"""Python's own control flow over tensors, as nodes of the graph.

``@df.function`` converts a function when tracing it as it is fails on a tensor that Python wants a value of.
The source transformation is AutoGraph's, from the package ``diastatic-malt``, imported at the first
conversion; what the transformed code calls is in this package.
"""

from dualflow.function.autograph import experimental as experimental
from dualflow.function.autograph.marks import do_not_convert as do_not_convert
from dualflow.function.autograph.source import to_code as to_code
