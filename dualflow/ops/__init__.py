"""What an op is: one record each, and the functions that users call.

``record`` defines the record and the registry, ``forms`` how a graph compiles an op, ``samples`` where it
may be tested and ``cases`` with what; most other modules define a family of ops.
"""
