"""Python's own control flow over tensors, as nodes of the graph.

``@df.function`` converts a function before its first trace, and what that calls when it is called, but for
functions of other packages and those marked :func:`do_not_convert`. So the Python runs once in each trace.

Where a condition is no tensor, Python's statements are Python's: they run while tracing, once for each trace.
Where it is one:

* ``if``, ``while``, ``for``, ``match``, ``and``, ``or``, ``not``, ``break``, ``continue``, ``return`` and the
  ``else`` of loops become conditionals and loops of the graph. What a branch or an iteration assigns must be
  tensors or numbers, of one shape and dtype on all ways.
* A variable that a loop assigns first has no value where no iteration has run: to read it then is an
  ``UnassignedError``, which is an ``UnboundLocalError`` too. Where nothing reads it, nothing fails.
* ``raise`` and ``assert`` act when the graph runs. The exception is made then, by its own expression, from
  the values that its names have in that call; a tensor in an attribute of another object is shown as a
  symbol. A ``try`` inside of the branch catches it, one around the condition can't and is refused.
* Unpacking and comprehensions go through the rows of a tensor one by one, if their number is known.
* ``print`` prints while tracing; :func:`dualflow.print` prints when the graph runs.

The conversion is a pipeline over the function's syntax tree; ``README.md`` has its steps and operators.
"""

from dualflow.core.namespace import publish as _publish
from dualflow.function.autograph import experimental as experimental
from dualflow.function.autograph.do_not_convert import do_not_convert as do_not_convert
from dualflow.function.autograph.source import to_code as to_code

__all__ = ["do_not_convert", "experimental", "to_code"]
_publish(globals())
