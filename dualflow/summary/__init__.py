"""Summaries for TensorBoard: ``df.summary``, files of events that a program writes while it runs."""

from typing import TYPE_CHECKING

from dualflow.core.namespace import publish as _publish

if TYPE_CHECKING:
    from dualflow.summary import experimental as experimental
    from dualflow.summary.defaults import record_if as record_if
    from dualflow.summary.defaults import should_record_summaries as should_record_summaries
    from dualflow.summary.graphs import graph as graph
    from dualflow.summary.graphs import trace_export as trace_export
    from dualflow.summary.graphs import trace_off as trace_off
    from dualflow.summary.graphs import trace_on as trace_on
    from dualflow.summary.writer import SummaryWriter as SummaryWriter
    from dualflow.summary.writer import create_file_writer as create_file_writer
    from dualflow.summary.writer import create_noop_writer as create_noop_writer
    from dualflow.summary.writing import audio as audio
    from dualflow.summary.writing import flush as flush
    from dualflow.summary.writing import histogram as histogram
    from dualflow.summary.writing import image as image
    from dualflow.summary.writing import scalar as scalar
    from dualflow.summary.writing import text as text

_publish(
    globals(),
    modules=("experimental",),
    lazy={
        "dualflow.summary": "experimental",
        "dualflow.summary.defaults": "record_if should_record_summaries",
        "dualflow.summary.graphs": "graph trace_export trace_off trace_on",
        "dualflow.summary.writer": "SummaryWriter create_file_writer create_noop_writer",
        "dualflow.summary.writing": "audio flush histogram image scalar text",
    },
)
