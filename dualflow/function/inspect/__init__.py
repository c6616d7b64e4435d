"""Tools that run a function eagerly and compiled: ``compare``, ``verify``, and checks of numerics."""
