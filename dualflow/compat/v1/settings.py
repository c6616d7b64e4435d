"""Settings of TensorFlow 1's sessions, which are accepted and ignored.

Memory is allocated on demand; ``DUALFLOW_NUM_THREADS`` sets the number of threads.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class GPUOptions:
    """TensorFlow's options for GPUs, which are ignored.

    >>> from dualflow.compat import v1
    >>> v1.GPUOptions(allow_growth=True).allow_growth
    True
    """

    per_process_gpu_memory_fraction: float = 0.0
    allow_growth: bool = False
    allocator_type: str = ""
    visible_device_list: str = ""


@dataclass(slots=True)
class OptimizerOptions:
    """TensorFlow's options for the optimisation of graphs, which are ignored."""

    do_common_subexpression_elimination: bool = True
    do_constant_folding: bool = True
    do_function_inlining: bool = True
    opt_level: int = 0
    global_jit_level: int = 0

    ON_1 = 1
    ON_2 = 2
    OFF = -1
    L0 = -1
    L1 = 0


@dataclass(slots=True)
class GraphOptions:
    """TensorFlow's options for graphs, which are ignored."""

    enable_bfloat16_sendrecv: bool = False
    infer_shapes: bool = False
    optimizer_options: OptimizerOptions = field(default_factory=OptimizerOptions)


@dataclass(slots=True)
class ConfigProto:
    """The configuration of TensorFlow's sessions, for ``Session(config=...)``.

    With ``log_device_placement`` a session prints each op with its device to stderr when it compiles the op.
    All else is accepted and ignored.

    >>> from dualflow.compat import v1
    >>> config = v1.ConfigProto(allow_soft_placement=True)
    >>> config.gpu_options.allow_growth = True
    >>> with v1.Graph().as_default(), v1.Session(config=config) as session:
    ...     print(session.run(v1.constant(1.0) + 1.0))
    2.0
    """

    device_count: dict[str, int] = field(default_factory=dict)
    intra_op_parallelism_threads: int = 0
    inter_op_parallelism_threads: int = 0
    allow_soft_placement: bool = False
    log_device_placement: bool = False
    gpu_options: GPUOptions = field(default_factory=GPUOptions)
    graph_options: GraphOptions = field(default_factory=GraphOptions)
