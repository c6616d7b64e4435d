"""The optimiser: passes over graphs, which ``pipeline`` runs in order."""
