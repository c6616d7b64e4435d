"""The serializable part of a compiled program: all that its calls read, without graph, plan and text.

An executable runs an image. It is data that ``program_cache.py`` stores on disk, so that the next process
runs the program without the passes, the plan and the text of its kernels.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dualflow.core.records import NamedTuple
from dualflow.core.spec import TensorSpec
from dualflow.sizes.symbolic_sizes import SizeVariable

if TYPE_CHECKING:
    from dualflow.schedule.program_statements import CallRoutine

Array = np.ndarray[Any, Any]
OTHER_SIZES: Final = (1 << 63) - 1
"""The status of a call whose sizes this program doesn't support; another program runs it."""


class ProgramPart(NamedTuple):
    """A part of a program: a host call, or an entry, which is called with the parameters from ``at`` on."""

    entry: str | None
    at: int = 0
    host: CallRoutine | None = None


class ProgramImage(NamedTuple):
    """The data of a program that its calls read.

    A call passes machine code a table of buffers: the inputs, the constants, the outputs, the temporaries,
    the arena, and places for addresses that the code stores itself.

    Attributes:
        inputs: the number of inputs.
        constants: the arrays of constants.
        outputs: the specs of the outputs; sizes may be symbolic.
        temporaries: the specs of the arrays that host calls read or write.
        table_size: the number of entries of the table of buffers.
        computes_sizes: whether the program computes sizes while it runs.
        sized_by_arguments: whether a call computes all sizes from those of the arguments, before it runs.
        parts: the native parts and host calls, in order.
        params: the parameter table; see ``runtime/steps.ll`` for its first entries.
        functions: the names of the functions whose addresses are parameters, by index.
        arena_bytes: the size of the arena, workspaces included; symbolic if it depends on sizes of arguments.
        arena_param: the index of this size among the parameters then.
        size_function: the function that computes all parameters from the sizes of arguments, in a program
            whose sizes follow from these; else None.
        size_code: what this function executes; the table has its address.
        heavy: whether a call is, or may be, so long that it releases the GIL; also if it waits for workers.
        output_shapes: for each output the parameter indices of its sizes, if sizes are dynamic.
        temporary_shapes: the same for each temporary, if all sizes follow from those of arguments.
        standalone: the entry that copies the parameter table and allocates buffers for each call. None for a
            program with static sizes, and if the caller sets or reads sizes.
        size_params: the parameter index of each size variable. An image from the disk has none: only host
            calls and errors read them.
        input_sizes: the parameter indices of sizes of inputs' axes, which each call stores.
        block_sizes: the buffers that the code allocates, with the parameter indices of their bytes.
        memory_params: the indices of parameters that are the memory of the process divided by a number, with
            the number.
        uses_pool: whether a loop is parallel.
        collectives: whether a part runs a collective with other workers.
        records_collectives: whether an effect log has the results of all collectives that precede a failure;
            machine code records none.
        kernels: the number of kernels, for reports.
        products: the number of distinct functions for matrix products.
        tasks: the number of tasks that may run at the same time.
    """

    inputs: int
    constants: tuple[Array, ...]
    outputs: tuple[TensorSpec, ...]
    temporaries: tuple[TensorSpec, ...]
    table_size: int
    computes_sizes: bool
    sized_by_arguments: bool
    parts: tuple[ProgramPart, ...]
    params: Array
    functions: Mapping[int, str]
    arena_bytes: int
    arena_param: int | None
    size_function: str | None
    size_code: Array | None
    heavy: bool
    output_shapes: tuple[tuple[int, ...], ...]
    temporary_shapes: tuple[tuple[int, ...], ...]
    standalone: str | None
    size_params: Mapping[SizeVariable, int]
    input_sizes: Mapping[tuple[int, int], int]
    block_sizes: Mapping[int, int]
    memory_params: Mapping[int, int]
    uses_pool: bool
    collectives: bool
    records_collectives: bool
    kernels: int
    products: int
    tasks: int

    @property
    def first_output(self) -> int:
        """The index of the first output in the table of buffers."""
        return self.inputs + len(self.constants)

    @property
    def first_temporary(self) -> int:
        """The index of the first temporary in the table of buffers."""
        return self.first_output + len(self.outputs)

    @property
    def arena(self) -> int:
        """The index of the arena in the table of buffers."""
        return self.first_temporary + len(self.temporaries)
