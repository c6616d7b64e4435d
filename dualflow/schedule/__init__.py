"""Graph in, loop program out: what each kernel does, as plain statements without a machine in them."""
