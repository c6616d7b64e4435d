"""AutoGraph: Python's control flow over tensors, converted to nodes of the graph.

``@df.function`` converts a function before its first trace, and each function that it calls before that call,
except functions of other packages and those marked :func:`do_not_convert`. So the Python code runs once in
each trace.

If a condition is no tensor, Python's statements run while tracing, as without conversion. If it is a tensor:

* ``if``, ``while``, ``for``, ``match``, ``and``, ``or``, ``not``, ``break``, ``continue``, ``return`` and the
  ``else`` of loops become conditionals and loops of the graph. The variables that a branch or an iteration
  assigns must be tensors or numbers, of one shape and dtype on all paths.
* A variable that is first assigned in a loop has no value if no iteration has run: reading it then is an
  ``UnassignedError``, which is an ``UnboundLocalError`` too.
* ``raise`` and ``assert`` act when the graph runs. The expression of the exception is evaluated then, with
  the values that its names have in that call; a tensor in an attribute of another object is shown as a
  symbolic tensor. A ``try`` inside of the branch catches the exception; a ``try`` around the condition is an
  error.
* Unpacking and comprehensions iterate over the rows of a tensor, if their number is static.
* ``print`` prints while tracing; :func:`dualflow.print` prints when the graph runs.

The conversion is a pipeline over the function's syntax tree; ``README.md`` has its steps and operators.
"""

from dualflow.core.namespace import publish as _publish
from dualflow.function.autograph import experimental as experimental
from dualflow.function.autograph.do_not_convert import do_not_convert as do_not_convert
from dualflow.function.autograph.source import to_code as to_code
from dualflow.function.autograph.to_graph import to_graph as to_graph
from dualflow.function.autograph.verbosity import set_verbosity as set_verbosity

__all__ = ["do_not_convert", "experimental", "set_verbosity", "to_code", "to_graph"]
_publish(globals())
