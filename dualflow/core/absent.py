"""What to say of a name that a public namespace doesn't have: TensorFlow's names, and what to use instead."""

from __future__ import annotations

import difflib
import re
import sys
from collections.abc import Iterator
from functools import cache
from typing import Final

_NAMESPACES: Final = ("math", "nn", "linalg", "random", "bitwise", "config", "debugging")

_INSTEAD: Final = """
tf
    Print -> print
    Session InteractiveSession Graph GraphKeys Operation placeholder placeholder_with_default get_variable
        get_variable_scope variable_scope make_template global_variables trainable_variables
        global_variables_initializer variables_initializer get_default_graph get_default_session
        reset_default_graph control_dependencies group no_op assign assign_add assign_sub add_to_collection
        get_collection disable_eager_execution disable_v2_behavior initializers layers constant_initializer
        glorot_normal_initializer glorot_uniform_initializer ones_initializer random_normal_initializer
        random_uniform_initializer truncated_normal_initializer zeros_initializer ConfigProto GPUOptions
        GraphOptions OptimizerOptions Dimension dimension_value dimension_at_index local_variables
        local_variables_initializer py_func
        -> compat.v1.*
    GradientDescentOptimizer AdamOptimizer MomentumOptimizer -> compat.v1.train.*
    initialize_all_variables -> compat.v1.global_variables_initializer
    initialize_variables -> compat.v1.variables_initializer
    accumulate_n -> add_n
    all any max mean min prod sum std -> reduce_*
    amax -> reduce_max
    amin -> reduce_min
    var -> reduce_variance
    logsumexp -> reduce_logsumexp
    arange -> range
    arccos -> acos
    arccosh -> acosh
    arcsin -> asin
    arcsinh -> asinh
    arctan -> atan
    arctan2 -> atan2
    arctanh -> atanh
    arg_max -> argmax
    arg_min -> argmin
    array tensor -> constant
    asarray as_tensor -> convert_to_tensor
    astype to_double to_float to_int32 to_int64 to_complex64 -> cast
    clip -> clip_by_value
    concatenate hstack vstack -> concat
    detach no_grad no_gradient -> stop_gradient
    diag matrix_diag tensor_diag -> linalg.diag
    diag_part matrix_diag_part tensor_diag_part -> linalg.diag_part
    matrix_band_part -> linalg.band_part
    adjoint -> linalg.matrix_transpose
    swapaxes permute -> transpose
    div truediv realdiv -> divide
    div_no_nan -> math.divide_no_nan
    dot -> tensordot
    mm -> matmul
    empty -> zeros
    floor_div -> floordiv
    floormod -> mod
    full -> fill
    lin_space -> linspace
    mul scalar_mul -> multiply
    neg -> negative
    power -> pow
    sub -> subtract
    set_diag -> where
    multinomial -> random.categorical
    random_gamma -> random.gamma
    random_normal randn -> random.normal
    random_poisson -> random.poisson
    random_shuffle -> random.shuffle
    random_uniform rand -> random.uniform
    set_random_seed -> random.set_seed
    tensor_scatter_add -> tensor_scatter_nd_add
    tensor_scatter_update -> tensor_scatter_nd_update
    variable -> Variable
    where_v2 -> where
    grad -> GradientTape
    jit -> function
    cross_entropy softmax_cross_entropy_with_logits_v2 -> nn.softmax_cross_entropy_with_logits
    AggregationMethod RunOptions VariableAggregation
        VariableSynchronization = there is nothing to choose here; leave the argument out
    RunMetadata profiler = df.compare measures a function, and a function's status() tells how it runs
    app = call main() at the end of the program
    flags = use argparse
    logging get_logger = use Python's logging
    enable_eager_execution enable_v2_behavior = ops run at once, as in TensorFlow 2; leave the call out
    enable_resource_variables disable_resource_variables enable_control_flow_v2 disable_control_flow_v2
        enable_tensor_equality disable_tensor_equality enable_v2_tensorshape disable_v2_tensorshape
        = things are as in TensorFlow 2; leave the call out
    gradients = use df.GradientTape, or df.compat.v1.gradients in an explicit graph
    hessians = take df.GradientTape().jacobian of a gradient
    recompute_grad = gradients of loops compute again what is too large to keep; see df.config.set_loop_memory
    init_scope = create variables before the function is traced
    is_tensor = use isinstance(x, (df.Tensor, df.Variable))
    strided_slice = index the tensor, as x[1:5:2]
    random_crop = slice the tensor at a random place
    Assert assert_equal assert_greater assert_greater_equal assert_less assert_less_equal assert_positive
        assert_non_negative assert_rank assert_shapes assert_all_finite check_numerics assert_near
        = use assert, or if and raise, which functions compile
    inverse inv solve matrix_inverse matrix_solve cholesky qr svd det eigh eig lstsq pinv slogdet expm lu
        = linear solvers and decompositions are not in this version; NumPy's take tensors, without a gradient
    bfloat16 = use df.float16 or df.float32
    IndexedSlices = gradients of gathers are dense tensors
    SparseTensor sparse sparse_placeholder = tensors are dense; df.scatter_nd makes one of indices and values
    RaggedTensor ragged = rows have one length; pad them, and mask them with df.sequence_mask
    string strings as_string = tensors hold numbers; keep strings in Python
    lookup = tensors hold numbers; keep a table in a Python dict
    keras = Keras is not in this version; write the model as a df.Module with the functions of df.nn
    optimizers = Keras is not in this version; df.compat.v1.train has optimizers, which minimize functions
    losses = Keras is not in this version; df.nn has cross entropies, and df.reduce_mean takes the mean
    metrics = Keras is not in this version; keep counts in variables
    train = saving is not in this version; optimizers are in df.compat.v1.train
    experimental = what is here has no experimental name
    VERSION GIT_VERSION COMPILER_VERSION -> version.*
    estimator Estimator = write the training loop, with df.GradientTape or df.compat.v1.train
    data = input pipelines are not in this version; loop over slices of NumPy arrays
    saved_model train.Checkpoint = saving is not in this version; keep variables' .numpy() with numpy.savez
    io gfile = files are read and written by Python and NumPy
    image = image functions are not in this version; those of PIL and SciPy take arrays
    signal fft ifft fft2d = Fourier transforms are not in this version; those of numpy.fft take tensors
    summary = event files are not in this version; df.print prints from inside of functions
    distribute tpu = a program runs in one process, on the CPU; leave the strategy out
    feature_column = prepare the columns with NumPy
    contrib = TensorFlow 2 has none either; df.eager is what contrib.eager was
    lite xla = every df.function is compiled for this machine
    unique unique_with_counts = the size of the result depends on values; use numpy.unique on the tensor
math
    accumulate_n -> add_n
    div -> divide
nn
    dynamic_rnn static_rnn raw_rnn bidirectional_dynamic_rnn rnn_cell
        = write a step as a function of tensors, and loop with df.scan, or with for in a df.function
random
    get_seed = give the functions their seed
    split = use df.random.Generator.split
compat.v1.train
    Saver Checkpoint CheckpointManager latest_checkpoint get_checkpoint_state import_meta_graph
        checkpoint_exists = checkpoints are not in this version; keep session.run(variables) with numpy.savez
    MonitoredSession MonitoredTrainingSession SingularMonitoredSession -> compat.v1.Session
    ExponentialMovingAverage = assign a variable of your own decay * average + (1 - decay) * value
    exponential_decay cosine_decay piecewise_constant piecewise_constant_decay polynomial_decay
        inverse_time_decay natural_exp_decay = give the optimizer a function that returns the rate
    Coordinator QueueRunner start_queue_runners batch shuffle_batch = feed NumPy arrays to session.run
train
    Checkpoint CheckpointManager latest_checkpoint
        = saving is not in this version; keep variables' .numpy() with numpy.savez
"""
"""Names of TensorFlow, NumPy and PyTorch, by the namespace that is asked for them; those of "tf" serve all.
After ``->`` is the place in this package, where ``*`` is the name itself; after ``=`` is advice."""

_ELSEWHERE: Final = """
tf
    CriticalSection DeviceSpec IndexedSlicesSpec NoneTensorSpec OptionalSpec RaggedTensorSpec
    RegisterGradient SparseTensorSpec TensorArraySpec TypeSpec approx_top_k audio autodiff
    batch_to_space bitcast broadcast_dynamic_shape broadcast_static_shape check_pinned conv
    conv2d_backprop_filter_v2 conv2d_backprop_input_v2 dtensor dtypes dynamic_partition
    dynamic_stitch edit_distance eigvals experimental extract_volume_patches fftnd fingerprint
    get_current_name_scope get_static_value grad_pass_through graph_util guarantee_const
    histogram_fixed_width histogram_fixed_width_bins identity_n ifftnd import_graph_def
    inside_function irfftnd is_symbolic_tensor load_library load_op_library losses make_ndarray
    make_tensor_proto matrix_square_root metrics mlir nest nondifferentiable_batch_function
    optimizers parallel_stack qint16 qint32 qint8 quantization queue quint16 quint8
    ragged_fill_empty_rows ragged_fill_empty_rows_grad random_index_shuffle raw_ops
    register_tensor_conversion_function required_space_to_batch_paddings resource reverse_sequence
    rfftnd saturate_cast searchsorted security sets shape_n space_to_batch space_to_batch_nd
    sysconfig tensor_scatter_nd_max tensor_scatter_nd_min tensor_scatter_nd_sub test timestamp tools
    train truncatediv tuple type_spec_from_value types unravel_index variable_creator_scope variant
    version
math
    angle approx_max_k approx_min_k bessel_i0 bessel_i0e bessel_i1 bessel_i1e betainc bincount
    confusion_matrix cumprod cumulative_logsumexp digamma erfcinv erfinv igamma igammac in_top_k
    invert_permutation is_non_decreasing is_strictly_increasing lbeta lgamma ndtri nextafter
    polygamma polyval reciprocal_no_nan segment_max segment_mean segment_min segment_prod
    segment_sum sobol_sample special unsorted_segment_max unsorted_segment_mean unsorted_segment_min
    unsorted_segment_prod unsorted_segment_sqrt_n unsorted_segment_sum zero_fraction
    zeta
nn
    RNNCellDeviceWrapper RNNCellDropoutWrapper RNNCellResidualWrapper all_candidate_sampler
    approx_max_k approx_min_k atrous_conv2d atrous_conv2d_transpose
    batch_norm_with_global_normalization collapse_repeated compute_accidental_hits
    compute_average_loss conv1d_transpose conv3d_transpose conv_transpose crelu
    ctc_beam_search_decoder ctc_greedy_decoder ctc_loss ctc_unique_labels depth_to_space
    depthwise_conv2d_backprop_filter depthwise_conv2d_backprop_input dilation2d
    embedding_lookup_sparse erosion2d experimental fixed_unigram_candidate_sampler
    fractional_avg_pool fractional_max_pool in_top_k isotonic_regression
    learned_unigram_candidate_sampler local_response_normalization log_poisson_loss lrn
    max_pool_with_argmax normalize_moments pool safe_embedding_lookup_sparse
    scale_regularization_loss separable_conv2d space_to_batch space_to_depth
    sufficient_statistics weighted_cross_entropy_with_logits weighted_moments with_space_to_batch
    zero_fraction
linalg
    LinearOperator LinearOperatorAdjoint LinearOperatorBlockDiag LinearOperatorBlockLowerTriangular
    LinearOperatorCirculant LinearOperatorCirculant2D LinearOperatorCirculant3D
    LinearOperatorComposition LinearOperatorDiag LinearOperatorFullMatrix LinearOperatorHouseholder
    LinearOperatorIdentity LinearOperatorInversion LinearOperatorKronecker
    LinearOperatorLowRankUpdate LinearOperatorLowerTriangular LinearOperatorPermutation
    LinearOperatorScaledIdentity LinearOperatorToeplitz LinearOperatorTridiag LinearOperatorZeros
    banded_triangular_solve cholesky_solve cross eigh_tridiagonal eigvals eigvalsh experimental
    logdet logm lu_matrix_inverse lu_reconstruct lu_solve matrix_rank normalize sqrtm
    triangular_solve tridiagonal_matmul tridiagonal_solve
random
    Algorithm all_candidate_sampler create_rng_state experimental fixed_unigram_candidate_sampler
    fold_in learned_unigram_candidate_sampler log_uniform_candidate_sampler set_global_generator
    stateless_binomial stateless_categorical stateless_gamma
    stateless_parameterized_truncated_normal stateless_poisson stateless_truncated_normal
    uniform_candidate_sampler
config
    LogicalDevice LogicalDeviceConfiguration experimental experimental_connect_to_cluster
    experimental_connect_to_host experimental_functions_run_eagerly
    experimental_run_functions_eagerly get_logical_device_configuration get_soft_device_placement
    get_visible_devices list_logical_devices optimizer set_logical_device_configuration
    set_soft_device_placement set_visible_devices threading
debugging
    assert_integer assert_negative assert_non_positive assert_none_equal assert_proper_iterable
    assert_rank_at_least assert_rank_in assert_same_float_dtype assert_scalar assert_type
    experimental get_log_device_placement is_numeric_tensor set_log_device_placement
errors
    ABORTED ALREADY_EXISTS AbortedError AlreadyExistsError CANCELLED CancelledError DATA_LOSS
    DEADLINE_EXCEEDED DataLossError DeadlineExceededError FAILED_PRECONDITION INTERNAL
    INVALID_ARGUMENT NOT_FOUND OK OUT_OF_RANGE OpError PERMISSION_DENIED PermissionDeniedError
    RESOURCE_EXHAUSTED UNAUTHENTICATED UNAVAILABLE UNIMPLEMENTED UNKNOWN UnauthenticatedError
    UnavailableError UnimplementedError UnknownError
compat.v1
    AttrValue COMPILER_VERSION CXX11_ABI_FLAG CXX_VERSION ConditionalAccumulator
    ConditionalAccumulatorBase Event FIFOQueue FixedLenFeature FixedLenSequenceFeature
    FixedLengthRecordReader GIT_VERSION GRAPH_DEF_VERSION GRAPH_DEF_VERSION_MIN_CONSUMER
    GRAPH_DEF_VERSION_MIN_PRODUCER GraphDef HistogramProto IdentityReader LMDBReader LogMessage
    MONOLITHIC_BUILD MetaGraphDef NameAttrList NoGradient NodeDef NotDifferentiable OpError
    PaddingFIFOQueue PriorityQueue QUANTIZED_DTYPES QueueBase RandomShuffleQueue ReaderBase
    SessionLog SparseConditionalAccumulator SparseFeature SparseTensorValue Summary SummaryMetadata
    TFRecordReader TensorInfo TextLineReader VERSION VarLenFeature WholeFileReader
    add_check_numerics_ops add_to_collections all_variables angle assert_integer assert_negative
    assert_non_positive assert_none_equal assert_proper_iterable assert_rank_at_least assert_rank_in
    assert_same_float_dtype assert_scalar assert_type assert_variables_initialized batch_gather
    batch_scatter_update batch_to_space_nd betainc bincount cholesky_solve clip_by_average_norm
    colocate_with confusion_matrix container control_flow_v2_enabled
    convert_to_tensor_or_indexed_slices convert_to_tensor_or_sparse_tensor count_up_to
    create_partitioned_variables cross cumprod decode_base64 decode_compressed decode_csv
    decode_json_example decode_raw delete_session_tensor depth_to_space dequantize
    deserialize_many_sparse digamma dimension_at_index dimension_value distributions encode_base64
    executing_eagerly_outside_functions extract_image_patches fake_quant_with_min_max_args
    fake_quant_with_min_max_args_gradient fake_quant_with_min_max_vars
    fake_quant_with_min_max_vars_gradient fake_quant_with_min_max_vars_per_channel
    fake_quant_with_min_max_vars_per_channel_gradient fft3d fixed_size_partitioner
    get_collection_ref get_local_variable get_seed get_session_handle get_session_tensor ifft2d
    ifft3d igamma igammac initialize_all_tables initialize_local_variables invert_permutation
    is_finite is_inf is_nan is_non_decreasing is_numeric_tensor is_strictly_increasing
    is_variable_initialized lbeta lgamma load_file_system_library local_variables
    local_variables_initializer log_sigmoid manip matching_files matrix_determinant matrix_set_diag
    matrix_solve_ls matrix_transpose matrix_triangular_solve min_max_variable_partitioner
    mixed_precision model_variables moving_average_variables no_regularizer op_scope
    orthogonal_initializer parse_example parse_single_example parse_single_sequence_example
    parse_tensor polygamma python_io quantize quantize_v2 quantized_concat read_file reduce_join
    regex_replace report_uninitialized_variables resource_loader resource_variables_enabled
    reverse_v2 rint scatter_add scatter_div scatter_max scatter_min scatter_mul scatter_nd_add
    scatter_nd_sub scatter_nd_update scatter_sub scatter_update segment_max segment_mean segment_min
    segment_prod segment_sum self_adjoint_eig self_adjoint_eigvals serialize_many_sparse
    serialize_sparse serialize_tensor setdiff1d space_to_depth sparse_add sparse_concat
    sparse_fill_empty_rows sparse_mask sparse_matmul sparse_maximum sparse_merge sparse_minimum
    sparse_reduce_max sparse_reduce_max_sparse sparse_reduce_sum sparse_reduce_sum_sparse
    sparse_reorder sparse_reset_shape sparse_reshape sparse_retain sparse_segment_mean
    sparse_segment_sqrt_n sparse_segment_sum sparse_slice sparse_softmax sparse_split
    sparse_tensor_dense_matmul sparse_tensor_to_dense sparse_to_dense sparse_to_indicator
    sparse_transpose spectral string_join string_split string_strip string_to_hash_bucket
    string_to_hash_bucket_fast string_to_hash_bucket_strong string_to_number substr
    tables_initializer tensor_scatter_sub to_bfloat16 to_complex128 trace
    uniform_unit_scaling_initializer unsorted_segment_max unsorted_segment_mean unsorted_segment_min
    unsorted_segment_prod unsorted_segment_sqrt_n unsorted_segment_sum user_ops
    variable_axis_size_partitioner variable_op_scope variance_scaling_initializer
    verify_tensor_all_finite wrap_function write_file zeta
compat.v1.train
    AdadeltaOptimizer AdagradDAOptimizer BytesList CheckpointOptions CheckpointSaverHook
    CheckpointSaverListener ChiefSessionCreator ClusterDef ClusterSpec Example Feature FeatureList
    FeatureLists Features FeedFnHook FinalOpsHook FloatList FtrlOptimizer GlobalStepWaiterHook
    Int64List JobDef LoggingTensorHook LooperThread NanLossDuringTrainingError NanTensorHook
    NewCheckpointReader ProfilerHook ProximalAdagradOptimizer ProximalGradientDescentOptimizer
    SaverDef Scaffold SecondOrStepTimer SequenceExample Server ServerDef SessionCreator
    SessionManager SessionRunArgs SessionRunContext SessionRunHook SessionRunValues StepCounterHook
    StopAtStepHook SummarySaverHook Supervisor SyncReplicasOptimizer VocabInfo WorkerSessionCreator
    add_queue_runner assert_global_step basic_train_loop batch_join checkpoints_iterator
    cosine_decay_restarts do_quantize_training_on_graphdef experimental export_meta_graph
    generate_checkpoint_state_proto get_checkpoint_mtimes init_from_checkpoint input_producer
    limit_epochs linear_cosine_decay list_variables load_checkpoint load_variable
    match_filenames_once maybe_batch maybe_batch_join maybe_shuffle_batch maybe_shuffle_batch_join
    noisy_linear_cosine_decay queue_runner range_input_producer remove_checkpoint
    replica_device_setter sdca_fprint sdca_optimizer sdca_shrink_l1 shuffle_batch_join
    slice_input_producer string_input_producer summary_iterator update_checkpoint_state warm_start
    write_graph
autograph
    set_verbosity to_graph trace
"""
"""Names of TensorFlow 2.21, by namespace, that nothing in this package stands for."""


def explain(module: str, name: str, public: list[str]) -> str:
    """The message for a ``name`` that ``module``, whose names are ``public``, doesn't have.

    >>> print(explain("dualflow", "random_normal", []))
    module 'dualflow' has no attribute 'random_normal': use df.random.normal.
    >>> print(explain("dualflow.nn", "rleu", ["relu", "elu"]))
    module 'dualflow.nn' has no attribute 'rleu'. Did you mean 'relu'?
    """
    start = f"module {module!r} has no attribute {name!r}"
    place = module.removeprefix("dualflow").removeprefix(".") or "tf"
    advice = _advice(place, name)
    if advice is not None:
        return f"{start}: {advice}."
    similar = difflib.get_close_matches(name, public, 3, 0.75)
    return f"{start}. Did you mean {' or '.join(map(repr, similar))}?" if similar else f"{start}."


def _advice(place: str, name: str) -> str | None:
    instead = _table(_INSTEAD)
    for section in dict.fromkeys((place, place.removeprefix("compat.v1."), "tf")):
        if (section, name) in instead:
            return instead[section, name]
    for other in _NAMESPACES:
        if name in getattr(sys.modules.get(f"dualflow.{other}"), "__all__", ()):
            return f"use df.{other}.{name}"
    for section in dict.fromkeys((place, place.removeprefix("compat.v1."), "tf")):
        if (section, name) in _table(_ELSEWHERE):
            path = name if section == "tf" else f"{section}.{name}"
            return f"TensorFlow's tf.{path} is not in this version"
    return None


@cache
def _table(text: str) -> dict[tuple[str, str], str]:
    """By namespace and name, what to say."""
    return {(section, name): advice for section, name, advice in _entries(text)}


def _entries(text: str) -> Iterator[tuple[str, str, str]]:
    """A namespace, a name and what to say of it; lines that are indented further continue the one before."""
    section = ""
    for line in re.sub(r"\n {8,}", " ", text).splitlines():
        if not line.startswith(" "):
            section = line
            continue
        names, sign, rest = [*re.split(r" (->|=) ", line), "", ""][:3]
        for name in names.split():
            yield section, name, f"use df.{rest.replace('*', name)}" if sign == "->" else rest
