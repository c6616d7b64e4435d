"""Gradients of recorded ops, by one reverse sweep that serves the tape and the graph."""
