"""Functions looked at from outside: run eagerly and compiled, and compared, verified, measured and checked."""
