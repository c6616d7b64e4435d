"""Functions take TensorFlow's arguments, in its order and by its names; the table is that of version 2.21.

Left out are the arguments for what does not exist here:
``layout``, ``bad_indices_policy``, ``grad_a`` and ``grad_b``.
"""

from __future__ import annotations

import inspect
from functools import reduce
from typing import Any

from op_cases import named

import dualflow as df

ARGUMENTS = {
    "device_name": "device",
    "f": "custom_gradient",
    "name": "TensorArray.stack",
    "seed": "random.set_seed",
    "spec_or_tensor": "TensorSpec.is_compatible_with",
    "tensor": "GradientTape.watch",
    "type_value": "as_dtype",
    "equation *inputs": "einsum",
    "features beta": "nn.silu nn.swish",
    "features name": ("math.softplus math.softsign nn.elu nn.relu nn.relu6 nn.selu nn.softplus nn.softsign"),
    "index name": "TensorArray.read",
    "indices name": "TensorArray.gather",
    "input name": (
        "identity rank stop_gradient math.imag math.real math.angle identity_n signal.fft signal.fft2d "
        "signal.fft3d signal.ifft signal.ifft2d signal.ifft3d linalg.cholesky linalg.det linalg.expm "
        "linalg.logm linalg.slogdet linalg.sqrtm linalg.tensor_diag_part matrix_square_root"
    ),
    "inputs name": "add_n math.add_n",
    "t name": "nn.l2_loss",
    "t_list name": "linalg.global_norm",
    "value name": "TensorArray.unstack math.zero_fraction nn.zero_fraction",
    "x name": (
        "abs acos acosh asin asinh atan atanh cos cosh exp floor logical_not negative round "
        "sigmoid sign sin sinh sqrt square tan tanh math.abs math.acos math.acosh math.asin "
        "math.asinh math.atan math.atanh math.ceil math.conj math.cos math.cosh math.erf "
        "math.erfc math.exp math.expm1 math.floor math.is_finite math.is_inf math.is_nan "
        "math.log math.log1p math.log_sigmoid math.logical_not math.negative math.reciprocal "
        "math.rint math.round math.rsqrt math.sigmoid math.sign math.sin math.sinh math.sqrt "
        "math.square math.tan math.tanh nn.sigmoid nn.tanh linalg.trace bitwise.invert "
        "math.reciprocal_no_nan math.invert_permutation math.is_non_decreasing "
        "math.is_strictly_increasing math.digamma math.lbeta math.lgamma math.erfcinv "
        "math.erfinv math.ndtri math.bessel_i0 math.bessel_i0e math.bessel_i1 math.bessel_i1e "
        "math.special.bessel_i0 math.special.bessel_i0e math.special.bessel_i1 "
        "math.special.bessel_i1e math.special.bessel_j0 math.special.bessel_j1 "
        "math.special.bessel_k0 math.special.bessel_k0e math.special.bessel_k1 "
        "math.special.bessel_k1e math.special.bessel_y0 math.special.bessel_y1 "
        "math.special.dawsn math.special.expint math.special.fresnel_cos "
        "math.special.fresnel_sin math.special.spence"
    ),
    "a name conjugate": "linalg.matrix_transpose",
    "dims value name": "fill",
    "features alpha name": "nn.leaky_relu",
    "features approximate name": "nn.gelu",
    "index value name": "TensorArray.write",
    "indices updates name": "Variable.scatter_nd_add Variable.scatter_nd_sub Variable.scatter_nd_update",
    "indices value name": "TensorArray.scatter",
    "input axis name": "expand_dims squeeze",
    "input dtype name": "ones_like zeros_like",
    "input multiples name": "tile",
    "input out_type name": "shape size shape_n",
    "input shape name": "broadcast_to",
    "labels logits name": (
        "nn.sigmoid_cross_entropy_with_logits nn.sparse_softmax_cross_entropy_with_logits"
    ),
    "logits axis name": "math.log_softmax math.softmax nn.log_softmax nn.softmax",
    "real imag name": "complex",
    "shape dtype name": "ones zeros",
    "tensor axis name": "reverse",
    "tensor shape name": "reshape",
    "value seed name": "random.shuffle",
    "values axis name": "concat stack",
    "x dtype name": "cast",
    "x shape name": "ensure_shape",
    "x y name": (
        "add divide equal greater greater_equal less less_equal logical_and logical_or maximum "
        "minimum multiply not_equal pow subtract truncatemod math.add math.divide "
        "math.divide_no_nan math.equal math.floordiv math.floormod math.greater "
        "math.greater_equal math.less math.less_equal math.logical_and math.logical_or "
        "math.logical_xor math.maximum math.minimum math.mod math.multiply math.multiply_no_nan "
        "math.not_equal math.pow math.squared_difference math.subtract math.truediv math.xlogy "
        "bitwise.bitwise_and bitwise.bitwise_or bitwise.bitwise_xor bitwise.left_shift "
        "bitwise.right_shift realdiv truncatediv"
    ),
    "y x name": "atan2 math.atan2",
    "a b axes name": "tensordot linalg.tensordot",
    "a perm conjugate name": "transpose",
    "branch_index branch_fns default name": "switch_case",
    "condition x y name": "where",
    "delta use_locking name read_value": "Variable.assign_add Variable.assign_sub",
    "fn elems fallback_to_while_loop warn": "vectorized_map",
    "func inp Tout name": "py_function",
    "indices updates shape name": "scatter_nd",
    "input axis output_type name": "argmax argmin math.argmax math.argmin",
    "input num_lower num_upper name": "linalg.band_part",
    "input repeats axis name": "repeat",
    "input shift axis name": "roll",
    "input_ begin size name": "slice",
    "input_tensor axis keepdims name": (
        "reduce_all reduce_any reduce_logsumexp reduce_max reduce_mean reduce_min reduce_prod "
        "reduce_sum math.reduce_all math.reduce_any math.reduce_euclidean_norm math.reduce_logsumexp "
        "math.reduce_max math.reduce_mean math.reduce_min math.reduce_prod math.reduce_std "
        "math.reduce_sum math.reduce_variance"
    ),
    "labels logits axis name": "nn.softmax_cross_entropy_with_logits",
    "lengths maxlen dtype name": "sequence_mask",
    "params ids max_norm name": "nn.embedding_lookup",
    "params indices batch_dims name": "gather_nd",
    "pred true_fn false_fn name": "cond",
    "t clip_norm axes name": "clip_by_norm",
    "t clip_value_min clip_value_max name": "clip_by_value",
    "t_list clip_norm use_norm name": "clip_by_global_norm",
    "target sources output_gradients unconnected_gradients": "GradientTape.gradient",
    "tensor indices updates name": (
        "tensor_scatter_nd_add tensor_scatter_nd_update tensor_scatter_nd_max "
        "tensor_scatter_nd_min tensor_scatter_nd_sub"
    ),
    "tensor mask axis name": "boolean_mask",
    "value bias data_format name": "nn.bias_add",
    "value dtype dtype_hint name": "convert_to_tensor",
    "value dtype shape name": "constant",
    "value num axis name": "unstack",
    "value use_locking name read_value": "Variable.assign",
    "values axis direction name": "sort",
    "func inp Tout stateful name": "numpy_function",
    "input axis keepdims dtype name": "math.count_nonzero",
    "input k sorted index_type name": "math.top_k nn.top_k",
    "input name k padding_value align": "linalg.diag_part",
    "logits num_samples dtype seed name": "random.categorical",
    "num_rows num_columns batch_shape dtype name": "eye linalg.eye",
    "pred_fn_pairs default exclusive strict name": "case",
    "shape lam dtype seed name": "random.poisson",
    "start limit delta dtype name": "range",
    "start stop num name axis": "linspace",
    "target source unconnected_gradients parallel_iterations experimental_use_pfor": (
        "GradientTape.batch_jacobian"
    ),
    "target sources unconnected_gradients parallel_iterations experimental_use_pfor": (
        "GradientTape.jacobian"
    ),
    "tensor ord axis keepdims name": "norm linalg.norm",
    "tensor paddings mode constant_values name": "pad",
    "value num_or_size_splits axis num name": "split",
    "values axis direction stable name": "argsort",
    "x axes shift keepdims name": "nn.moments",
    "x axis epsilon name dim": "math.l2_normalize nn.l2_normalize linalg.l2_normalize",
    "x axis exclusive reverse name": "cumsum math.cumsum math.cumprod math.cumulative_logsumexp",
    "x rate noise_shape seed name": "nn.dropout",
    "input ksize strides padding data_format name": (
        "nn.avg_pool nn.avg_pool1d nn.avg_pool2d nn.avg_pool3d nn.max_pool nn.max_pool1d nn.max_pool2d "
        "nn.max_pool3d"
    ),
    "params indices validate_indices axis batch_dims name": "gather",
    "shape alpha beta dtype seed name": "random.gamma",
    "shape mean stddev dtype seed name": "random.normal random.truncated_normal",
    "shape minval maxval dtype seed name": "random.uniform",
    "a b transpose_a adjoint_a a_is_sparse b_is_sparse name": "linalg.matvec",
    "diagonal name k num_rows num_cols padding_value align": "linalg.diag",
    "fn elems initializer parallel_iterations back_prop swap_memory name": "foldl foldr",
    "indices depth on_value off_value axis dtype name": "one_hot",
    "input filter strides padding data_format dilations name": "nn.depthwise_conv2d",
    "input filters stride padding data_format dilations name": "nn.conv1d",
    "input filters strides padding data_format dilations name": "nn.conv2d nn.conv3d nn.convolution",
    "frame_step forward_window_fn name": "signal.inverse_stft_window_fn",
    "a b max_val name": "image.psnr",
    "boxes scores max_output_size iou_threshold score_threshold name": "image.non_max_suppression",
    "boxes scores max_output_size iou_threshold score_threshold pad_to_max_output_size name sorted_input "
    "canonicalized_coordinates tile_size": "image.non_max_suppression_padded",
    "boxes scores max_output_size iou_threshold score_threshold soft_nms_sigma name": (
        "image.non_max_suppression_with_scores"
    ),
    "generator": "random.set_global_generator",
    "image": (
        "image.flip_left_right image.flip_up_down image.image_gradients image.per_image_standardization "
        "image.sobel_edges"
    ),
    "image boxes box_indices crop_size method extrapolation_value name": "image.crop_and_resize",
    "image central_fraction": "image.central_crop",
    "image delta": "image.adjust_brightness",
    "image delta name": "image.adjust_hue",
    "image dtype saturate name": "image.convert_image_dtype",
    "image gamma gain": "image.adjust_gamma",
    "image k name": "image.rot90",
    "image lower upper seed": (
        "image.random_contrast image.random_saturation image.stateless_random_contrast "
        "image.stateless_random_saturation"
    ),
    "image max_delta seed": (
        "image.random_brightness image.random_hue image.stateless_random_brightness "
        "image.stateless_random_hue"
    ),
    "image name": "image.transpose",
    "image offset_height offset_width target_height target_width": (
        "image.crop_to_bounding_box image.pad_to_bounding_box"
    ),
    "image saturation_factor name": "image.adjust_saturation",
    "image seed": (
        "image.random_flip_left_right image.random_flip_up_down image.stateless_random_flip_left_right "
        "image.stateless_random_flip_up_down"
    ),
    "image target_height target_width": "image.resize_with_crop_or_pad",
    "image target_height target_width method antialias": "image.resize_with_pad",
    "images": "image.rgb_to_yiq image.rgb_to_yuv image.yiq_to_rgb image.yuv_to_rgb",
    "images boxes colors name": "image.draw_bounding_boxes",
    "images contrast_factor": "image.adjust_contrast",
    "images name": (
        "image.grayscale_to_rgb image.hsv_to_rgb image.rgb_to_grayscale image.rgb_to_hsv "
        "image.total_variation"
    ),
    "images size method preserve_aspect_ratio antialias name": "image.resize",
    "images sizes strides rates padding name": "image.extract_patches",
    "img1 img2 max_val filter_size filter_sigma k1 k2 return_index_map": "image.ssim",
    "img1 img2 max_val power_factors filter_size filter_sigma k1 k2": "image.ssim_multiscale",
    "overlaps scores max_output_size overlap_threshold score_threshold name": (
        "image.non_max_suppression_overlaps"
    ),
    "value size seed name": "image.random_crop image.stateless_random_crop",
    "input type n axis norm name": "signal.dct signal.idct",
    "input_tensor fft_length axes norm name": (
        "fftnd ifftnd irfftnd rfftnd signal.fftnd signal.ifftnd signal.irfftnd signal.rfftnd"
    ),
    "input_tensor fft_length name": (
        "signal.irfft signal.irfft2d signal.irfft3d signal.rfft signal.rfft2d signal.rfft3d"
    ),
    "log_mel_spectrograms name": "signal.mfccs_from_log_mel_spectrograms",
    "mdcts window_fn norm name": "signal.inverse_mdct",
    "num_mel_bins num_spectrogram_bins sample_rate lower_edge_hertz upper_edge_hertz dtype name": (
        "signal.linear_to_mel_weight_matrix"
    ),
    "signal frame_length frame_step pad_end pad_value axis name": "signal.frame",
    "signal frame_step name": "signal.overlap_and_add",
    "signals frame_length frame_step fft_length window_fn pad_end name": "signal.stft",
    "signals frame_length window_fn pad_end norm name": "signal.mdct",
    "stfts frame_length frame_step fft_length window_fn name": "signal.inverse_stft",
    "window_length beta dtype name": "signal.kaiser_bessel_derived_window signal.kaiser_window",
    "window_length dtype name": "signal.vorbis_window",
    "window_length periodic dtype name": "signal.hamming_window signal.hann_window",
    "x axes name": "signal.fftshift signal.ifftshift",
    "logits num_samples seed dtype name": "random.stateless_categorical",
    "seed alg": "random.create_rng_state random.experimental.create_rng_state",
    "seed data alg": "random.fold_in random.experimental.stateless_fold_in",
    "seed num alg": "random.split random.experimental.stateless_split",
    "shape seed alpha beta dtype name": "random.stateless_gamma",
    "shape seed counts probs output_dtype name": "random.stateless_binomial",
    "shape seed lam dtype name": "random.stateless_poisson",
    "shape seed means stddevs minvals maxvals name": "random.stateless_parameterized_truncated_normal",
    "value seed alg name": "random.experimental.stateless_shuffle",
    "shape seed mean stddev dtype name alg": "random.stateless_normal random.stateless_truncated_normal",
    "shape seed minval maxval dtype name alg": "random.stateless_uniform",
    "x mean variance offset scale variance_epsilon name": "nn.batch_normalization",
    "input filters output_shape strides padding data_format dilations name": "nn.conv2d_transpose",
    "cond body loop_vars shape_invariants parallel_iterations back_prop swap_memory "
    "maximum_iterations name": ("while_loop"),
    "fn elems dtype parallel_iterations back_prop swap_memory infer_shape name fn_output_signature": (
        "map_fn"
    ),
    "fn elems initializer parallel_iterations back_prop swap_memory infer_shape reverse name": "scan",
    "a b transpose_a transpose_b adjoint_a adjoint_b a_is_sparse b_is_sparse output_type name": (
        "matmul linalg.matmul"
    ),
    "initial_value trainable validate_shape caching_device name variable_def dtype import_scope "
    "constraint synchronization aggregation shape experimental_enable_variable_lifting": ("Variable"),
    "tensor name": "eig eigvals linalg.eig linalg.eigh linalg.eigvals linalg.eigvalsh",
    "matrix name": "linalg.adjoint linalg.logdet",
    "a b name": "linalg.cross",
    "diagonal name": "linalg.tensor_diag",
    "input adjoint name": "linalg.inv",
    "matrix rhs adjoint name": "linalg.solve",
    "matrix rhs lower adjoint name": "linalg.triangular_solve",
    "bands rhs lower adjoint name": "linalg.banded_triangular_solve",
    "chol rhs name": "linalg.cholesky_solve",
    "matrix rhs l2_regularizer fast name": "linalg.lstsq",
    "input full_matrices name": "linalg.qr",
    "tensor full_matrices compute_uv name": "linalg.svd",
    "a rcond validate_args name": "linalg.pinv",
    "a tol validate_args name": "linalg.matrix_rank",
    "input output_idx_type name": "linalg.lu",
    "lower_upper perm rhs validate_args name": "linalg.lu_solve",
    "lower_upper perm validate_args name": "linalg.lu_matrix_inverse linalg.lu_reconstruct",
    "input diagonal name k align": "linalg.set_diag",
    "tensor ord axis name": "linalg.normalize",
    "diagonals rhs diagonals_format name": "linalg.tridiagonal_matmul",
    "diagonals rhs diagonals_format transpose_rhs conjugate_rhs name partial_pivoting "
    "perturb_singular": "linalg.tridiagonal_solve",
    "alpha beta eigvals_only select select_range tol name": "linalg.eigh_tridiagonal",
    "arr weights minlength maxlength dtype name axis binary_output": "math.bincount",
    "labels predictions num_classes weights dtype name": "math.confusion_matrix",
    "scalar x name": "math.scalar_mul scalar_mul",
    "inputs shape tensor_dtype name": "math.accumulate_n",
    "x1 x2 name": "math.nextafter",
    "coeffs x name": "math.polyval",
    "operand k reduction_dimension recall_target reduction_input_size_override aggregate_to_topk name": (
        "math.approx_max_k math.approx_min_k nn.approx_max_k nn.approx_min_k"
    ),
    "targets predictions k name": "math.in_top_k nn.in_top_k",
    "data segment_ids name": (
        "math.segment_max math.segment_mean math.segment_min math.segment_prod math.segment_sum"
    ),
    "data segment_ids num_segments name": (
        "math.unsorted_segment_max math.unsorted_segment_mean math.unsorted_segment_min "
        "math.unsorted_segment_prod math.unsorted_segment_sqrt_n math.unsorted_segment_sum"
    ),
    "values value_range nbins dtype name": "histogram_fixed_width histogram_fixed_width_bins",
    "input type name": "bitcast",
    "value dtype name": "saturate_cast",
    "x out_idx name": "unique unique_with_counts",
    "sorted_sequence values side out_type name": "searchsorted",
    "input block_shape crops name": "batch_to_space",
    "input_shape block_shape base_paddings name": "required_space_to_batch_paddings",
    "input block_shape paddings name": "space_to_batch nn.space_to_batch space_to_batch_nd",
    "input seq_lengths seq_axis batch_axis name": "reverse_sequence",
    "shape_x shape_y": "broadcast_dynamic_shape broadcast_static_shape",
    "indices dims name": "unravel_index",
    "data partitions num_partitions name": "dynamic_partition",
    "indices data name": "dynamic_stitch",
    "values name": "parallel_stack",
    "a b x name": "math.betainc",
    "a x name": "math.igamma math.igammac math.polygamma",
    "x q name": "math.zeta",
    "dim num_results skip dtype name": "math.sobol_sample",
    "inputs min max num_bits narrow_range name": (
        "quantization.fake_quant_with_min_max_args quantization.fake_quant_with_min_max_vars "
        "quantization.fake_quant_with_min_max_vars_per_channel"
    ),
    "gradients inputs min max num_bits narrow_range name": (
        "quantization.fake_quant_with_min_max_args_gradient "
        "quantization.fake_quant_with_min_max_vars_gradient "
        "quantization.fake_quant_with_min_max_vars_per_channel_gradient"
    ),
    "input min_range max_range mode name axis narrow_range dtype": "quantization.dequantize",
    "input min_range max_range T mode round_mode name narrow_range axis ensure_minimum_range": (
        "quantization.quantize"
    ),
    "concat_dim values input_mins input_maxes name": "quantization.quantized_concat",
    "input input_min input_max signed_input num_bits range_given round_mode name narrow_range axis": (
        "quantization.quantize_and_dequantize quantization.quantize_and_dequantize_v2"
    ),
    "a b aminusb validate_indices": "sets.difference",
    "a b validate_indices": "sets.intersection sets.union",
    "a validate_indices": "sets.size",
}
CASES = {path: arguments for arguments, paths in ARGUMENTS.items() for path in paths.split()}


def parameters(path: str) -> list[inspect.Parameter]:
    function: Any = reduce(getattr, path.split("."), df)
    return [p for p in inspect.signature(function).parameters.values() if p.name != "self"]


def test_no_function_is_twice_in_the_table() -> None:
    assert len(CASES) == sum(len(paths.split()) for paths in ARGUMENTS.values())


def test_arguments_have_tensorflows_names_and_order() -> None:
    stars = {inspect.Parameter.VAR_POSITIONAL: "*"}
    for path, arguments in CASES.items():
        by_place = [stars.get(p.kind, "") + p.name for p in parameters(path) if p.kind is not p.KEYWORD_ONLY]
        theirs = arguments.split()
        with named(path):
            assert by_place[: len(theirs)] == theirs
            assert by_place[len(theirs) :] in ([], ["name"])


def test_no_name_need_be_given() -> None:
    for path in [path for path, arguments in CASES.items() if "name" in arguments.split()]:
        with named(path):
            (name,) = [p for p in parameters(path) if p.name == "name"]
            assert name.default is None
