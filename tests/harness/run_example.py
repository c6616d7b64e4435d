"""Runs an example as a script, then reads back the texts of the graphs that it traced.

``python run_example.py EXAMPLE OPTION...`` prints what the example does, and a last line with their number.
"""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

from graph_texts import read_back

from dualflow.core.errors import InvalidArgumentError
from dualflow.function.trace_function import TRACE_LISTENERS
from dualflow.graph.ir import Graph


def main() -> None:
    graphs: list[Graph] = []
    TRACE_LISTENERS.append(lambda trace: graphs.append(trace.graph))
    del sys.argv[0]
    sys.path[0] = str(Path(sys.argv[0]).parent)
    try:
        runpy.run_path(sys.argv[0], run_name="__main__")
    except SystemExit as end:
        if end.code:
            raise
    for graph in graphs:
        try:
            read_back(graph)
        except InvalidArgumentError as error:
            if "can't be saved" not in str(error):
                raise
    print("graphs read back:", len(graphs))


if __name__ == "__main__":
    main()
