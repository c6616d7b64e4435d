"""Graph in, graph out: the IR, its verifier and printer, and the passes that improve it."""
