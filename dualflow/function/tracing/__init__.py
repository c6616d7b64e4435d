"""Python in, graph out: the tracing engine, its symbols, what a trace captures, taped and for other sizes."""
