"""Python in, graph out: the tracing engine, its symbols, and what a trace captures, creates and returns."""
