"""Graph in, machine code out: kernels, memory plan, emission, threads, object cache, executable."""
