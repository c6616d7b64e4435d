"""The C renderer: statements in, C11 source out."""
