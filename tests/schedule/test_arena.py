"""The arena: buffers that are live at the same time never overlap, and dead ones are reused."""

from hypothesis import given
from hypothesis import strategies as st

from dualflow.schedule.arena import ALIGNMENT, Lifetime, assign
from dualflow.sizes.symbolic_sizes import evaluate_size, size_variable, size_variables

lifetimes = st.lists(
    st.builds(
        lambda birth, length, nbytes: Lifetime(birth, birth + length, nbytes),
        st.integers(0, 40),
        st.integers(0, 10),
        st.integers(0, 5000),
    ),
    max_size=40,
)


def _overlap(a: tuple[int, int], b: tuple[int, int]) -> bool:
    """Whether two ranges share a byte; an empty one has none."""
    return max(a[0], b[0]) < min(a[1], b[1])


@given(lifetimes)
def test_blocks_needed_at_one_step_never_overlap(blocks: list[Lifetime]) -> None:
    offsets, _ = assign(blocks)
    ranges = [(o, o + b.nbytes) for o, b in zip(offsets, blocks, strict=True)]
    for i, a in enumerate(blocks):
        for j, b in enumerate(blocks[:i]):
            if a.birth <= b.death and b.birth <= a.death:
                assert not _overlap(ranges[i], ranges[j])


@given(lifetimes)
def test_blocks_are_inside_the_arena_and_aligned_to_cache_lines(blocks: list[Lifetime]) -> None:
    offsets, size = assign(blocks)
    assert all(o % ALIGNMENT == 0 and o + b.nbytes <= size for o, b in zip(offsets, blocks, strict=True))


@given(lifetimes, st.data())
def test_blocks_of_symbolic_sizes_never_overlap_whatever_the_sizes_are(
    blocks: list[Lifetime], data: st.DataObject
) -> None:
    variables = [size_variable(least=0) for _ in range(2)]
    expressions = [1, *variables, variables[0] * variables[1], variables[0] * 2 + variables[1]]
    factors = st.sampled_from(expressions)
    blocks = [block._replace(nbytes=block.nbytes // 100 * data.draw(factors)) for block in blocks]
    offsets, size = assign(blocks)
    for _ in range(3):
        bound = {factor: data.draw(st.integers(0, 200)) for v in variables for factor in size_variables(v)}
        starts = [evaluate_size(offset, bound) for offset in offsets]
        ends = [start + evaluate_size(b.nbytes, bound) for start, b in zip(starts, blocks, strict=True)]
        assert all(start % ALIGNMENT == 0 for start in starts)
        assert max(ends, default=0) <= evaluate_size(size, bound)
        for i, a in enumerate(blocks):
            for j, b in enumerate(blocks[:i]):
                if a.birth <= b.death and b.birth <= a.death:
                    assert not _overlap((starts[i], ends[i]), (starts[j], ends[j]))


def test_a_chain_of_equal_blocks_needs_two() -> None:
    _, size = assign([Lifetime(i, i + 1, 1024) for i in range(100)])
    assert size == 2 * 1024


def test_a_chain_of_equal_symbolic_blocks_needs_two() -> None:
    n = size_variable(least=0)
    _, size = assign([Lifetime(i, i + 1, 64 * n) for i in range(100)])
    assert size == 128 * n


def test_neighbouring_gaps_are_joined_for_a_larger_block() -> None:
    _, size = assign([Lifetime(0, 1, 512), Lifetime(0, 1, 512), Lifetime(2, 3, 1024)])
    assert size == 1024
