"""Calls of a trace: compilation at the first call, fast paths, calls under tapes, failed calls."""
