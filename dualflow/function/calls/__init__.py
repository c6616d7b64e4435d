"""How a trace is called: compiled at the first call, by a fast path later, under tapes, after failures."""
