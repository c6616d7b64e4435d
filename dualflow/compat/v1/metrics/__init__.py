"""Metrics of graphs, each a value and an operation that updates it: ``v1.metrics``."""

from typing import TYPE_CHECKING

from dualflow.core.namespace import publish as _publish

if TYPE_CHECKING:
    from dualflow.compat.v1.metrics.classes import mean_iou as mean_iou
    from dualflow.compat.v1.metrics.classes import mean_per_class_accuracy as mean_per_class_accuracy
    from dualflow.compat.v1.metrics.counts import false_negatives as false_negatives
    from dualflow.compat.v1.metrics.counts import false_positives as false_positives
    from dualflow.compat.v1.metrics.counts import precision as precision
    from dualflow.compat.v1.metrics.counts import recall as recall
    from dualflow.compat.v1.metrics.counts import true_negatives as true_negatives
    from dualflow.compat.v1.metrics.counts import true_positives as true_positives
    from dualflow.compat.v1.metrics.means import accuracy as accuracy
    from dualflow.compat.v1.metrics.means import mean as mean
    from dualflow.compat.v1.metrics.means import mean_absolute_error as mean_absolute_error
    from dualflow.compat.v1.metrics.means import mean_cosine_distance as mean_cosine_distance
    from dualflow.compat.v1.metrics.means import mean_relative_error as mean_relative_error
    from dualflow.compat.v1.metrics.means import mean_squared_error as mean_squared_error
    from dualflow.compat.v1.metrics.means import mean_tensor as mean_tensor
    from dualflow.compat.v1.metrics.means import percentage_below as percentage_below
    from dualflow.compat.v1.metrics.means import root_mean_squared_error as root_mean_squared_error
    from dualflow.compat.v1.metrics.thresholds import auc as auc
    from dualflow.compat.v1.metrics.thresholds import (
        false_negatives_at_thresholds as false_negatives_at_thresholds,
    )
    from dualflow.compat.v1.metrics.thresholds import (
        false_positives_at_thresholds as false_positives_at_thresholds,
    )
    from dualflow.compat.v1.metrics.thresholds import precision_at_thresholds as precision_at_thresholds
    from dualflow.compat.v1.metrics.thresholds import recall_at_thresholds as recall_at_thresholds
    from dualflow.compat.v1.metrics.thresholds import sensitivity_at_specificity as sensitivity_at_specificity
    from dualflow.compat.v1.metrics.thresholds import specificity_at_sensitivity as specificity_at_sensitivity
    from dualflow.compat.v1.metrics.thresholds import (
        true_negatives_at_thresholds as true_negatives_at_thresholds,
    )
    from dualflow.compat.v1.metrics.thresholds import (
        true_positives_at_thresholds as true_positives_at_thresholds,
    )

_publish(
    globals(),
    lazy={
        "dualflow.compat.v1.metrics.classes": "mean_iou mean_per_class_accuracy",
        "dualflow.compat.v1.metrics.counts": (
            "false_negatives false_positives precision recall true_negatives true_positives"
        ),
        "dualflow.compat.v1.metrics.means": (
            "accuracy mean mean_absolute_error mean_cosine_distance mean_relative_error mean_squared_error "
            "mean_tensor percentage_below root_mean_squared_error"
        ),
        "dualflow.compat.v1.metrics.thresholds": (
            "auc false_negatives_at_thresholds false_positives_at_thresholds precision_at_thresholds "
            "recall_at_thresholds sensitivity_at_specificity specificity_at_sensitivity "
            "true_negatives_at_thresholds true_positives_at_thresholds"
        ),
    },
)
