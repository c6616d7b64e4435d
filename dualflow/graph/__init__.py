"""Graph in, graph out: the IR, its verifier and printer, and the passes that improve it."""

from dualflow.graph.ir import TEXT
from dualflow.graph.printer import text

TEXT.fill(text)
