"""Traces: recorded requests, read from the files of public data sets and of one's own."""

from simcore.workload.traces.formats import FORMATS, Columns, TraceFormat
from simcore.workload.traces.reading import Trace, read_trace

__all__ = ["FORMATS", "Columns", "Trace", "TraceFormat", "read_trace"]
