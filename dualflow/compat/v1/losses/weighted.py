"""Reductions of weighted losses, and the collection of a graph's losses: ``v1.losses``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from dualflow.compat.v1.collection import GraphKeys, get_collection
from dualflow.compat.v1.weighting import as_numbers, broadcast_weights, fit_weights, required_tensor
from dualflow.core.dtypes import float32
from dualflow.core.errors import InvalidArgumentError
from dualflow.core.tracebacks import entry
from dualflow.graph_mode import name_scope, recording_graph
from dualflow.ops.arithmetic import add_n, divide_no_nan
from dualflow.ops.broadcasting import reduce_sum
from dualflow.ops.conversion import cast
from dualflow.ops.creation import constant, convert_to_tensor, ones_like
from dualflow.ops.shapes import size

if TYPE_CHECKING:
    from dualflow.core.argument_types import TensorLike
    from dualflow.ops.tensor import Tensor


class Reduction:
    """Reductions of the losses of elements to one loss.

    ``SUM`` is their weighted sum. ``MEAN`` divides it by the sum of the weights, ``SUM_OVER_BATCH_SIZE`` by
    the number of elements, ``SUM_BY_NONZERO_WEIGHTS`` by the number of elements whose weight is not 0.
    ``NONE`` doesn't reduce.

    >>> from dualflow.compat import v1
    >>> v1.losses.Reduction.SUM
    'weighted_sum'
    """

    NONE: Final = "none"
    SUM: Final = "weighted_sum"
    SUM_OVER_BATCH_SIZE: Final = "weighted_sum_over_batch_size"
    MEAN: Final = "weighted_mean"
    SUM_BY_NONZERO_WEIGHTS: Final = "weighted_sum_by_nonzero_weights"
    SUM_OVER_NONZERO_WEIGHTS: Final = SUM_BY_NONZERO_WEIGHTS

    @classmethod
    def all(cls) -> tuple[str, ...]:
        """All reductions."""
        return cls.NONE, cls.SUM, cls.MEAN, cls.SUM_OVER_BATCH_SIZE, cls.SUM_BY_NONZERO_WEIGHTS

    @classmethod
    def validate(cls, key: str) -> None:
        """Raise unless ``key`` is a reduction.

        Raises:
            InvalidArgumentError: ``key`` is not a reduction.
        """
        if key not in cls.all():
            raise InvalidArgumentError(f"Invalid Reduction Key {key}; it is one of {', '.join(cls.all())}.")


@entry
def compute_weighted_loss(
    losses: object,
    weights: TensorLike = 1.0,
    scope: str | None = None,
    loss_collection: str | None = GraphKeys.LOSSES,
    reduction: str = Reduction.SUM_BY_NONZERO_WEIGHTS,
) -> Tensor:
    """The losses of elements times their weights, reduced to one loss.

    Args:
        losses: numbers of any shape.
        weights: a scalar, or a tensor with the size of each axis of the losses or 1.
        scope: the name scope of the added ops.
        loss_collection: the graph's collection to which the loss is added; None for none.
        reduction: see :class:`Reduction`.

    Returns:
        A scalar of the dtype of ``losses``; with ``Reduction.NONE`` a tensor of their shape.

    Raises:
        InvalidArgumentError: weights don't broadcast to the losses, or an unknown reduction.

    >>> from dualflow.compat import v1
    >>> float(v1.losses.compute_weighted_loss([1.0, 2.0, 6.0], [1.0, 1.0, 0.0]))
    1.5
    """
    Reduction.validate(reduction)
    with name_scope(scope, "weighted_loss"):
        values = required_tensor(losses, "losses")
        w = fit_weights(required_tensor(weights, "weights"), values)
        # float64 is kept; losses of any other dtype are computed in float32
        computed = values if values.dtype.size == 8 and values.dtype.is_floating else as_numbers(values)
        w = cast(w, computed.dtype)
        loss = computed * w
        if reduction != Reduction.NONE:
            loss = _reduce(reduce_sum(loss), computed, w, reduction)
        loss = cast(loss, values.dtype)
        add_loss(loss, loss_collection)
        return loss


def _reduce(total: Any, losses: Any, weights: Any, reduction: str) -> Any:
    if reduction == Reduction.SUM:
        return total
    if reduction == Reduction.SUM_OVER_BATCH_SIZE:
        count = cast(size(losses), losses.dtype)
    elif reduction == Reduction.MEAN:
        count = reduce_sum(ones_like(losses) * weights)
    else:
        count = cast(reduce_sum(nonzero_weights(losses, weights)), losses.dtype)
    return divide_no_nan(total, count)


def nonzero_weights(losses: Any, weights: Any) -> Any:
    """1 for each element whose weight is not 0, else 0."""
    return broadcast_weights(cast(convert_to_tensor(weights) != 0, float32), losses)


def add_loss(loss: object, loss_collection: str | None = GraphKeys.LOSSES) -> None:
    """Add a loss to a graph's collection; does nothing eagerly.

    >>> from dualflow.compat import v1
    >>> with v1.Graph().as_default():
    ...     v1.losses.add_loss(v1.constant(1.0))
    ...     len(v1.losses.get_losses())
    1
    """
    graph = recording_graph()
    if graph is not None and loss_collection:
        graph.add_to_collection(loss_collection, loss)


def get_losses(scope: str | None = None, loss_collection: str = GraphKeys.LOSSES) -> list[Any]:
    """The losses in a collection of the default graph whose names begin with ``scope``."""
    return get_collection(loss_collection, scope)


def get_regularization_losses(scope: str | None = None) -> list[Any]:
    """The losses that regularizers have added to the default graph."""
    return get_collection(GraphKeys.REGULARIZATION_LOSSES, scope)


@entry
def get_regularization_loss(scope: str | None = None, name: str = "total_regularization_loss") -> Tensor:
    """The sum of the losses that regularizers have added to the default graph; 0 if there are none.

    >>> from dualflow.compat import v1
    >>> float(v1.losses.get_regularization_loss())
    0.0
    """
    losses = get_regularization_losses(scope)
    with name_scope(name):
        return add_n(losses) if losses else constant(0.0)


@entry
def get_total_loss(
    add_regularization_losses: bool = True, name: str = "total_loss", scope: str | None = None
) -> Tensor:
    """The sum of the default graph's losses.

    Args:
        add_regularization_losses: whether losses of regularizers are included.
        name: of the sum.
        scope: selects the losses whose names begin with it.

    Raises:
        InvalidArgumentError: there are no losses.

    >>> from dualflow.compat import v1
    >>> with v1.Graph().as_default(), v1.Session() as session:
    ...     _ = v1.losses.mean_squared_error([1.0], [3.0]), v1.losses.absolute_difference([1.0], [3.0])
    ...     print(session.run(v1.losses.get_total_loss()))
    6.0
    """
    losses = get_losses(scope)
    if add_regularization_losses:
        losses += get_regularization_losses(scope)
    if not losses:
        raise InvalidArgumentError(
            "There are no losses in the default graph; in eager execution, add up the losses that the "
            "functions return."
        )
    with name_scope(name):
        return add_n(losses)
