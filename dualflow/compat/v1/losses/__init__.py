"""Losses as scalars, with weights, and a collection in the graph: ``v1.losses``."""

from typing import TYPE_CHECKING

from dualflow.core.namespace import publish as _publish

if TYPE_CHECKING:
    from dualflow.compat.v1.losses.cross_entropies import sigmoid_cross_entropy as sigmoid_cross_entropy
    from dualflow.compat.v1.losses.cross_entropies import softmax_cross_entropy as softmax_cross_entropy
    from dualflow.compat.v1.losses.cross_entropies import (
        sparse_softmax_cross_entropy as sparse_softmax_cross_entropy,
    )
    from dualflow.compat.v1.losses.differences import absolute_difference as absolute_difference
    from dualflow.compat.v1.losses.differences import cosine_distance as cosine_distance
    from dualflow.compat.v1.losses.differences import hinge_loss as hinge_loss
    from dualflow.compat.v1.losses.differences import huber_loss as huber_loss
    from dualflow.compat.v1.losses.differences import log_loss as log_loss
    from dualflow.compat.v1.losses.differences import (
        mean_pairwise_squared_error as mean_pairwise_squared_error,
    )
    from dualflow.compat.v1.losses.differences import mean_squared_error as mean_squared_error
    from dualflow.compat.v1.losses.weighted import Reduction as Reduction
    from dualflow.compat.v1.losses.weighted import add_loss as add_loss
    from dualflow.compat.v1.losses.weighted import compute_weighted_loss as compute_weighted_loss
    from dualflow.compat.v1.losses.weighted import get_losses as get_losses
    from dualflow.compat.v1.losses.weighted import get_regularization_loss as get_regularization_loss
    from dualflow.compat.v1.losses.weighted import get_regularization_losses as get_regularization_losses
    from dualflow.compat.v1.losses.weighted import get_total_loss as get_total_loss

_publish(
    globals(),
    lazy={
        "dualflow.compat.v1.losses.cross_entropies": (
            "sigmoid_cross_entropy softmax_cross_entropy sparse_softmax_cross_entropy"
        ),
        "dualflow.compat.v1.losses.differences": (
            "absolute_difference cosine_distance hinge_loss huber_loss log_loss mean_pairwise_squared_error "
            "mean_squared_error"
        ),
        "dualflow.compat.v1.losses.weighted": (
            "Reduction add_loss compute_weighted_loss get_losses get_regularization_loss "
            "get_regularization_losses get_total_loss"
        ),
    },
)
