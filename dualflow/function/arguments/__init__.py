"""Arguments in, a trace's key and placeholders out; results back to Python."""
