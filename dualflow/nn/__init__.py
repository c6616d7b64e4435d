"""Neural-network functions: ``df.nn``."""

from typing import TYPE_CHECKING

from dualflow.core.namespace import publish as _publish

if TYPE_CHECKING:
    from dualflow.nn import experimental as experimental
    from dualflow.ops.clipping import l2_loss as l2_loss
    from dualflow.ops.counting.confusion import zero_fraction as zero_fraction
    from dualflow.ops.exponential import log_sigmoid as log_sigmoid
    from dualflow.ops.exponential import sigmoid as sigmoid
    from dualflow.ops.exponential import softplus as softplus
    from dualflow.ops.neural.activations import crelu as crelu
    from dualflow.ops.neural.activations import elu as elu
    from dualflow.ops.neural.activations import gelu as gelu
    from dualflow.ops.neural.activations import leaky_relu as leaky_relu
    from dualflow.ops.neural.activations import log_softmax as log_softmax
    from dualflow.ops.neural.activations import relu as relu
    from dualflow.ops.neural.activations import relu6 as relu6
    from dualflow.ops.neural.activations import selu as selu
    from dualflow.ops.neural.activations import silu as silu
    from dualflow.ops.neural.activations import softmax as softmax
    from dualflow.ops.neural.activations import softsign as softsign
    from dualflow.ops.neural.blocks import depth_to_space as depth_to_space
    from dualflow.ops.neural.blocks import space_to_depth as space_to_depth
    from dualflow.ops.neural.blocks import with_space_to_batch as with_space_to_batch
    from dualflow.ops.neural.candidates import all_candidate_sampler as all_candidate_sampler
    from dualflow.ops.neural.candidates import compute_accidental_hits as compute_accidental_hits
    from dualflow.ops.neural.candidates import (
        fixed_unigram_candidate_sampler as fixed_unigram_candidate_sampler,
    )
    from dualflow.ops.neural.candidates import (
        learned_unigram_candidate_sampler as learned_unigram_candidate_sampler,
    )
    from dualflow.ops.neural.convolution import atrous_conv2d as atrous_conv2d
    from dualflow.ops.neural.convolution import conv1d as conv1d
    from dualflow.ops.neural.convolution import conv2d as conv2d
    from dualflow.ops.neural.convolution import conv3d as conv3d
    from dualflow.ops.neural.convolution import convolution as convolution
    from dualflow.ops.neural.ctc_decoding import collapse_repeated as collapse_repeated
    from dualflow.ops.neural.ctc_decoding import ctc_beam_search_decoder as ctc_beam_search_decoder
    from dualflow.ops.neural.ctc_decoding import ctc_greedy_decoder as ctc_greedy_decoder
    from dualflow.ops.neural.ctc_decoding import ctc_unique_labels as ctc_unique_labels
    from dualflow.ops.neural.depthwise import depthwise_conv2d as depthwise_conv2d
    from dualflow.ops.neural.depthwise import (
        depthwise_conv2d_backprop_filter as depthwise_conv2d_backprop_filter,
    )
    from dualflow.ops.neural.depthwise import (
        depthwise_conv2d_backprop_input as depthwise_conv2d_backprop_input,
    )
    from dualflow.ops.neural.depthwise import separable_conv2d as separable_conv2d
    from dualflow.ops.neural.dropout import dropout as dropout
    from dualflow.ops.neural.embedding import embedding_lookup as embedding_lookup
    from dualflow.ops.neural.fractional_pooling import fractional_avg_pool as fractional_avg_pool
    from dualflow.ops.neural.fractional_pooling import fractional_max_pool as fractional_max_pool
    from dualflow.ops.neural.losses import compute_average_loss as compute_average_loss
    from dualflow.ops.neural.losses import log_poisson_loss as log_poisson_loss
    from dualflow.ops.neural.losses import scale_regularization_loss as scale_regularization_loss
    from dualflow.ops.neural.losses import (
        sigmoid_cross_entropy_with_logits as sigmoid_cross_entropy_with_logits,
    )
    from dualflow.ops.neural.losses import (
        softmax_cross_entropy_with_logits as softmax_cross_entropy_with_logits,
    )
    from dualflow.ops.neural.losses import (
        sparse_softmax_cross_entropy_with_logits as sparse_softmax_cross_entropy_with_logits,
    )
    from dualflow.ops.neural.losses import (
        weighted_cross_entropy_with_logits as weighted_cross_entropy_with_logits,
    )
    from dualflow.ops.neural.moments import moments as moments
    from dualflow.ops.neural.moments import normalize_moments as normalize_moments
    from dualflow.ops.neural.moments import sufficient_statistics as sufficient_statistics
    from dualflow.ops.neural.moments import weighted_moments as weighted_moments
    from dualflow.ops.neural.morphology import dilation2d as dilation2d
    from dualflow.ops.neural.morphology import erosion2d as erosion2d
    from dualflow.ops.neural.normalization import (
        batch_norm_with_global_normalization as batch_norm_with_global_normalization,
    )
    from dualflow.ops.neural.normalization import batch_normalization as batch_normalization
    from dualflow.ops.neural.normalization import bias_add as bias_add
    from dualflow.ops.neural.normalization import l2_normalize as l2_normalize
    from dualflow.ops.neural.normalization import local_response_normalization as local_response_normalization
    from dualflow.ops.neural.pooling import avg_pool as avg_pool
    from dualflow.ops.neural.pooling import avg_pool1d as avg_pool1d
    from dualflow.ops.neural.pooling import avg_pool2d as avg_pool2d
    from dualflow.ops.neural.pooling import avg_pool3d as avg_pool3d
    from dualflow.ops.neural.pooling import max_pool as max_pool
    from dualflow.ops.neural.pooling import max_pool1d as max_pool1d
    from dualflow.ops.neural.pooling import max_pool2d as max_pool2d
    from dualflow.ops.neural.pooling import max_pool3d as max_pool3d
    from dualflow.ops.neural.pooling import max_pool_with_argmax as max_pool_with_argmax
    from dualflow.ops.neural.pooling import pool as pool
    from dualflow.ops.neural.sampling import nce_loss as nce_loss
    from dualflow.ops.neural.sampling import sampled_softmax_loss as sampled_softmax_loss
    from dualflow.ops.neural.sparse_embedding import embedding_lookup_sparse as embedding_lookup_sparse
    from dualflow.ops.neural.sparse_embedding import (
        safe_embedding_lookup_sparse as safe_embedding_lookup_sparse,
    )
    from dualflow.ops.neural.transposed_convolution import atrous_conv2d_transpose as atrous_conv2d_transpose
    from dualflow.ops.neural.transposed_convolution import conv1d_transpose as conv1d_transpose
    from dualflow.ops.neural.transposed_convolution import conv2d_transpose as conv2d_transpose
    from dualflow.ops.neural.transposed_convolution import conv3d_transpose as conv3d_transpose
    from dualflow.ops.neural.transposed_convolution import conv_transpose as conv_transpose
    from dualflow.ops.ordering.extremes import top_k as top_k
    from dualflow.ops.ordering.tops import approx_max_k as approx_max_k
    from dualflow.ops.ordering.tops import approx_min_k as approx_min_k
    from dualflow.ops.ordering.tops import in_top_k as in_top_k
    from dualflow.ops.rearranging.blocks import space_to_batch as space_to_batch
    from dualflow.ops.trigonometric import tanh as tanh
    from dualflow.sequences.ctc import ctc_loss as ctc_loss

    lrn = local_response_normalization
    swish = silu

_publish(
    globals(),
    lazy={
        "dualflow.nn": "experimental",
        "dualflow.ops.clipping": "l2_loss",
        "dualflow.ops.counting.confusion": "zero_fraction",
        "dualflow.ops.exponential": "log_sigmoid sigmoid softplus",
        "dualflow.ops.neural.activations": (
            "crelu elu gelu leaky_relu log_softmax relu relu6 selu silu softmax softsign swish=silu"
        ),
        "dualflow.ops.neural.blocks": "depth_to_space space_to_depth with_space_to_batch",
        "dualflow.ops.neural.candidates": (
            "all_candidate_sampler compute_accidental_hits fixed_unigram_candidate_sampler "
            "learned_unigram_candidate_sampler"
        ),
        "dualflow.ops.neural.convolution": "atrous_conv2d conv1d conv2d conv3d convolution",
        "dualflow.ops.neural.ctc_decoding": (
            "collapse_repeated ctc_beam_search_decoder ctc_greedy_decoder ctc_unique_labels"
        ),
        "dualflow.ops.neural.depthwise": (
            "depthwise_conv2d depthwise_conv2d_backprop_filter depthwise_conv2d_backprop_input "
            "separable_conv2d"
        ),
        "dualflow.ops.neural.dropout": "dropout",
        "dualflow.ops.neural.embedding": "embedding_lookup",
        "dualflow.ops.neural.fractional_pooling": "fractional_avg_pool fractional_max_pool",
        "dualflow.ops.neural.losses": (
            "compute_average_loss log_poisson_loss scale_regularization_loss "
            "sigmoid_cross_entropy_with_logits softmax_cross_entropy_with_logits "
            "sparse_softmax_cross_entropy_with_logits weighted_cross_entropy_with_logits"
        ),
        "dualflow.ops.neural.moments": "moments normalize_moments sufficient_statistics weighted_moments",
        "dualflow.ops.neural.morphology": "dilation2d erosion2d",
        "dualflow.ops.neural.normalization": (
            "batch_norm_with_global_normalization batch_normalization bias_add l2_normalize "
            "local_response_normalization lrn=local_response_normalization"
        ),
        "dualflow.ops.neural.pooling": (
            "avg_pool avg_pool1d avg_pool2d avg_pool3d max_pool max_pool1d max_pool2d max_pool3d "
            "max_pool_with_argmax pool"
        ),
        "dualflow.ops.neural.sampling": "nce_loss sampled_softmax_loss",
        "dualflow.ops.neural.sparse_embedding": "embedding_lookup_sparse safe_embedding_lookup_sparse",
        "dualflow.ops.neural.transposed_convolution": (
            "atrous_conv2d_transpose conv1d_transpose conv2d_transpose conv3d_transpose conv_transpose"
        ),
        "dualflow.ops.ordering.extremes": "top_k",
        "dualflow.ops.ordering.tops": "approx_max_k approx_min_k in_top_k",
        "dualflow.ops.rearranging.blocks": "space_to_batch",
        "dualflow.ops.trigonometric": "tanh",
        "dualflow.sequences.ctc": "ctc_loss",
    },
)
