"""Arguments of a call: binding, the key of the trace that serves the call, and the reasons for new traces."""
