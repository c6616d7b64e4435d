"""Functions over sequences that loop over their steps."""
