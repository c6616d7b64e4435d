"""Tracing of Python functions: the engine, symbolic tensors, captured values, created variables, results."""
