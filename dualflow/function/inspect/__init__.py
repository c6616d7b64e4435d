"""Looking inside: compare, verify, debug, numerics, status."""
