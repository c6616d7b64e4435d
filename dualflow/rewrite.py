"""Rewrites of graphs: ``df.rewrite``."""

from typing import TYPE_CHECKING

from dualflow.core.namespace import publish as _publish

if TYPE_CHECKING:
    from dualflow.graph.ir import Graph as Graph
    from dualflow.graph.ir import Node as Node
    from dualflow.graph.ir import Value as Value
    from dualflow.graph.user_rewrites import Rewrite as Rewrite
    from dualflow.rewrites.batch_norm import fold_batch_norm as fold_batch_norm
    from dualflow.rewrites.definition import graph_pass as graph_pass
    from dualflow.rewrites.definition import rule as rule
    from dualflow.rewrites.equation import equation as equation
    from dualflow.rewrites.freeze import freeze as freeze
    from dualflow.rewrites.registration import disable as disable
    from dualflow.rewrites.registration import disabled as disabled
    from dualflow.rewrites.registration import enable as enable
    from dualflow.rewrites.registration import register as register
    from dualflow.rewrites.registration import registered as registered
    from dualflow.rewrites.registration import unregister as unregister

_publish(
    globals(),
    lazy={
        "dualflow.graph.ir": "Graph Node Value",
        "dualflow.graph.user_rewrites": "Rewrite",
        "dualflow.rewrites.batch_norm": "fold_batch_norm",
        "dualflow.rewrites.definition": "graph_pass rule",
        "dualflow.rewrites.equation": "equation",
        "dualflow.rewrites.freeze": "freeze",
        "dualflow.rewrites.registration": "disable disabled enable register registered unregister",
    },
)
