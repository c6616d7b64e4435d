"""Functions looked at from outside: run eagerly and compiled, compared, verified, measured and checked."""
