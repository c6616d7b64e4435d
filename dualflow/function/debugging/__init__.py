"""``f.debug``: the trace of a call, run op by op with real values, for pdb or a function of one's own."""
