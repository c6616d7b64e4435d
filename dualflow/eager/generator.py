"""Generators of random numbers, whose state (a counter and a key) is a variable."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Any

from dualflow.core import dispatch
from dualflow.core.dtypes import as_dtype, float32, int32, int64, uint64
from dualflow.core.errors import InvalidArgumentError
from dualflow.core.shape import Shape, check_size
from dualflow.core.tracebacks import entry
from dualflow.eager.generator_state import (
    SIZE,
    advanced,
    as_state,
    check_state,
    create_rng_state,
    state_from_parts,
)
from dualflow.eager.variable import Variable
from dualflow.ops.creation import convert_to_tensor, zeros_like
from dualflow.ops.joining import stack, unstack
from dualflow.ops.random_numbers.distributions import floating, normals, placed, uniform
from dualflow.ops.random_numbers.rejection import binomials, truncated_normals
from dualflow.ops.random_numbers.states import DrawState, check_algorithm
from dualflow.ops.reduction import reduce_prod
from dualflow.ops.static import partial_shape

if TYPE_CHECKING:
    from dualflow.core.argument_types import DTypeLike, IntLike, ShapeLike, TensorLike
    from dualflow.ops.random_numbers.states import AlgorithmLike
    from dualflow.ops.tensor import Tensor


@entry
class Generator:
    """A stream of random numbers whose state is a variable; compiled functions draw in machine code.

    Equal states give equal numbers, as from TensorFlow's generators: bitwise for uniform numbers and
    integers, up to rounding of ``log``, ``sin`` and ``cos`` for normal ones. Binomial numbers differ from
    TensorFlow's.

    Args:
        copy_from: a generator whose state is copied; None by default.
        state: the initial state, instead: three integers, a counter of two and a key; a variable is used
            itself.
        alg: "philox", the only algorithm, by default.

    >>> import dualflow as df
    >>> g, h = df.random.Generator.from_seed(3), df.random.Generator.from_seed(3)
    >>> bool(df.reduce_all(g.normal([5]) == h.normal([5])))
    True
    """

    @entry
    def __init__(
        self,
        copy_from: Generator | None = None,
        state: TensorLike | None = None,
        alg: AlgorithmLike | None = None,
    ) -> None:
        if (copy_from is None) == (state is None):
            raise InvalidArgumentError(
                "A generator needs exactly one of copy_from and state; or use Generator.from_seed."
            )
        self._algorithm = check_algorithm("philox" if alg is None else alg)
        if isinstance(state, Variable):
            check_state(state)
            self._state = state
        else:
            start = copy_from.state if copy_from is not None else state
            self._state = Variable(as_state(start), trainable=False, name="StateVar")

    @classmethod
    @entry
    def from_state(cls, state: TensorLike, alg: AlgorithmLike = "philox") -> Generator:
        """A generator with the initial state ``state``.

        Args:
            state: three integers, a counter of two and a key, as of :attr:`state`; a variable is used itself.
            alg: "philox", the only algorithm, by default.

        Returns:
            A generator.

        Raises:
            InvalidArgumentError: ``state`` has another shape, or the algorithm is not supported.

        >>> import dualflow as df
        >>> df.random.Generator.from_state([0, 0, 3]).state.numpy()
        array([0, 0, 3])
        """
        return cls(state=state, alg=alg)

    @classmethod
    @entry
    def from_seed(cls, seed: TensorLike, alg: AlgorithmLike | None = None) -> Generator:
        """A generator seeded with one or more integers; see :func:`create_rng_state`.

        Args:
            seed: an integer or a vector of integers.
            alg: "philox", the only algorithm, by default.

        Returns:
            A generator.

        Raises:
            DTypeError: ``seed`` is not of integers.
            InvalidArgumentError: the algorithm is not supported.

        >>> import dualflow as df
        >>> df.random.Generator.from_seed(3).state.numpy()
        array([3, 0, 0])
        """
        return cls(state=create_rng_state(seed), alg=alg)

    @classmethod
    @entry
    def from_non_deterministic_state(cls, alg: AlgorithmLike | None = None) -> Generator:
        """A generator seeded by the operating system.

        Args:
            alg: "philox", the only algorithm, by default.

        Returns:
            A generator.

        Raises:
            InvalidArgumentError: the algorithm is not supported.

        >>> import dualflow as df
        >>> df.random.Generator.from_non_deterministic_state().normal([2]).shape
        (2,)
        """
        return cls(state=create_rng_state(secrets.randbits(64 * SIZE)), alg=alg)

    @classmethod
    @entry
    def from_key_counter(
        cls, key: TensorLike, counter: TensorLike, alg: AlgorithmLike = "philox"
    ) -> Generator:
        """A generator with a key and a counter of two integers.

        Args:
            key: an integer.
            counter: a vector of two integers.
            alg: "philox", the only algorithm, by default.

        Returns:
            A generator.

        Raises:
            InvalidArgumentError: ``counter`` has another shape, or the algorithm is not supported.

        >>> import dualflow as df
        >>> df.random.Generator.from_key_counter(5, [1, 0]).state.numpy()
        array([1, 0, 5])
        """
        return cls(state=state_from_parts(key, counter), alg=alg)

    @property
    def state(self) -> Variable:
        """The counter's two numbers and the key, a variable of shape [3] and dtype int64."""
        return self._state

    def _trackable_children(self) -> dict[str, Variable]:
        """The state, for checkpoints."""
        return {"_state_var": self._state}

    @property
    def key(self) -> Tensor:
        """The key, the state's last number: streams of different keys are independent."""
        return self._state[-1]

    @property
    def algorithm(self) -> int:
        """The number of the algorithm: that of :attr:`dualflow.random.Algorithm.PHILOX`."""
        return self._algorithm

    def reset(self, state: TensorLike) -> None:
        """Set the state.

        Args:
            state: three integers, a counter of two and a key.

        Returns:
            None.

        Raises:
            InvalidArgumentError: ``state`` has another shape.

        >>> import dualflow as df
        >>> g = df.random.Generator.from_seed(3)
        >>> g.reset([0, 0, 5])
        >>> g.state.numpy()
        array([0, 0, 5])
        """
        self._state.assign(as_state(state))

    def reset_from_seed(self, seed: TensorLike) -> None:
        """Set the state to that of a seed; see :func:`create_rng_state`.

        Args:
            seed: an integer or a vector of integers.

        Returns:
            None.

        Raises:
            DTypeError: ``seed`` is not of integers.

        >>> import dualflow as df
        >>> g = df.random.Generator.from_seed(3)
        >>> g.reset_from_seed(5)
        >>> g.state.numpy()
        array([5, 0, 0])
        """
        self._state.assign(create_rng_state(seed))

    def reset_from_key_counter(self, key: TensorLike, counter: TensorLike) -> None:
        """Set the key and the counter.

        Args:
            key: an integer.
            counter: a vector of two integers.

        Returns:
            None.

        Raises:
            InvalidArgumentError: ``counter`` has another shape.

        >>> import dualflow as df
        >>> g = df.random.Generator.from_seed(3)
        >>> g.reset_from_key_counter(5, [1, 0])
        >>> g.state.numpy()
        array([1, 0, 5])
        """
        self._state.assign(state_from_parts(key, counter))

    def skip(self, delta: IntLike) -> Tensor:
        """Advance the state as if ``delta`` numbers were drawn.

        Raises nothing.

        Args:
            delta: an integer, 0 or more.

        Returns:
            The previous state, an int64 tensor of shape [3].

        >>> import dualflow as df
        >>> df.random.Generator.from_seed(3).skip(10).numpy()
        array([3, 0, 0])
        """
        before: Any = None

        def change(state: Any) -> Any:
            nonlocal before
            before = state
            return advanced(state, delta, back=False)

        with dispatch.using(dispatch.current().unrecorded) as engine:
            done = engine.change(self._state, change)
        if done is not None:  # in an explicit graph, the fetched tensor must depend on the change
            before = advanced(done, delta, back=True)
        return before  # type: ignore[no-any-return]  # the rule has run

    def _next(self, shape: Any) -> DrawState:
        """The state to draw numbers of ``shape`` from."""
        static_shape = Shape(partial_shape(shape))
        check_size(static_shape)
        size = static_shape.num_elements()
        count = reduce_prod(convert_to_tensor(shape)) if size is None else size
        low, high, key = unstack(self.skip(count))
        return DrawState(low, high, key)

    def normal(
        self,
        shape: ShapeLike,
        mean: TensorLike = 0.0,
        stddev: TensorLike = 1.0,
        dtype: DTypeLike = float32,
        name: str | None = None,
    ) -> Tensor:
        """Normal numbers; see :func:`dualflow.random.normal`.

        Args:
            shape: the shape, a list of integers or an integer tensor.
            mean: the mean, numbers that broadcast to ``shape``; 0 by default.
            stddev: the standard deviation, as ``mean``; 1 by default.
            dtype: a floating dtype; float32 by default.

        Returns:
            A tensor of the shape and dtype.

        Raises:
            DTypeError: ``dtype`` is not floating.

        >>> import dualflow as df
        >>> df.random.Generator.from_seed(3).normal([2, 3]).shape
        (2, 3)
        """
        kind = floating(dtype)
        return placed(normals(self._next(shape), shape, kind), mean, stddev)

    def truncated_normal(
        self,
        shape: ShapeLike,
        mean: TensorLike = 0.0,
        stddev: TensorLike = 1.0,
        dtype: DTypeLike = float32,
        name: str | None = None,
    ) -> Tensor:
        """Normal numbers within two standard deviations; see :func:`dualflow.random.truncated_normal`.

        Args:
            shape: the shape, a list of integers or an integer tensor.
            mean: the mean, numbers that broadcast to ``shape``; 0 by default.
            stddev: the standard deviation, as ``mean``; 1 by default.
            dtype: a floating dtype; float32 by default.

        Returns:
            A tensor of the shape and dtype.

        Raises:
            DTypeError: ``dtype`` is not floating.

        >>> import dualflow as df
        >>> df.random.Generator.from_seed(3).truncated_normal([2, 3]).shape
        (2, 3)
        """
        kind = floating(dtype)
        return placed(truncated_normals(self._next(shape), shape, kind), mean, stddev)

    def uniform(
        self,
        shape: ShapeLike,
        minval: TensorLike | None = 0,
        maxval: TensorLike | None = None,
        dtype: DTypeLike = float32,
        name: str | None = None,
    ) -> Tensor:
        """Uniform numbers in ``[minval, maxval)``; see :func:`dualflow.random.stateless_uniform`.

        Args:
            shape: the shape, a list of integers or an integer tensor.
            minval: the lower bound, which is included; 0 by default. None, with ``maxval`` None, for all
                integers.
            maxval: the upper bound, which is excluded; 1 by default for floats.
            dtype: a floating or integer dtype; float32 by default.

        Returns:
            A tensor of the shape and dtype.

        Raises:
            DTypeError: ``dtype`` is neither floating nor of integers.
            InvalidArgumentError: ``minval`` is not below ``maxval``, or integers have no ``maxval``.

        >>> import dualflow as df
        >>> df.random.Generator.from_seed(3).uniform([2, 3], maxval=10, dtype=df.int32).dtype
        tf.int32
        """
        return uniform(lambda: self._next(shape), shape, minval, maxval, dtype)

    def uniform_full_int(
        self, shape: ShapeLike, dtype: DTypeLike = uint64, name: str | None = None
    ) -> Tensor:
        """Uniform integers from the whole range of ``dtype``.

        Args:
            shape: the shape, a list of integers or an integer tensor.
            dtype: an integer dtype; uint64 by default.

        Returns:
            A tensor of the shape and dtype.

        Raises:
            DTypeError: ``dtype`` is not of integers.

        >>> import dualflow as df
        >>> df.random.Generator.from_seed(3).uniform_full_int([2]).dtype
        tf.uint64
        """
        return self.uniform(shape, None, None, dtype)

    def binomial(
        self,
        shape: ShapeLike,
        counts: TensorLike,
        probs: TensorLike,
        dtype: DTypeLike = int32,
        name: str | None = None,
    ) -> Tensor:
        """Binomial numbers: successes among ``counts`` trials of probability ``probs``.

        Args:
            shape: the shape, a list of integers or an integer tensor.
            counts: the numbers of trials, which broadcast to ``shape``.
            probs: the probabilities of success, which broadcast to ``shape``.
            dtype: the dtype; int32 by default.

        Returns:
            A tensor of the shape and dtype.

        Raises:
            InvalidArgumentError: ``counts`` or ``probs`` doesn't broadcast to ``shape``.

        >>> import dualflow as df
        >>> df.random.Generator.from_seed(3).binomial([2, 3], 10.0, 0.5).shape
        (2, 3)
        """
        return binomials(self._next(shape), shape, counts, probs, as_dtype(dtype))

    def make_seeds(self, count: IntLike = 1) -> Tensor:
        """Seeds for the stateless functions, one per column.

        Args:
            count: how many; 1 by default.

        Returns:
            An int64 tensor of shape [2, count].

        Raises:
            InvalidArgumentError: ``count`` is negative.

        >>> import dualflow as df
        >>> df.random.Generator.from_seed(3).make_seeds(2).shape
        (2, 2)
        """
        keys = self.uniform_full_int([count], int64)
        return stack([keys, zeros_like(keys)])

    def split(self, count: int = 1) -> list[Generator]:
        """New generators, with streams independent of each other and of this one.

        Args:
            count: how many; 1 by default.

        Returns:
            A list of ``count`` generators.

        Raises:
            InvalidArgumentError: ``count`` is negative.

        >>> import dualflow as df
        >>> len(df.random.Generator.from_seed(3).split(2))
        2
        """
        keys = unstack(self.uniform_full_int([count], int64))
        return [Generator(state=stack([0 * key, 0 * key, key]), alg="philox") for key in keys]
