"""One function over the rows of its arguments at once: its trace, op by op, on inputs with one more axis."""
