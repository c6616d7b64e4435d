"""Graph in, machine code out: schedule, memory plan, element maths, emission, threads, object cache, executable."""
