"""Gates that many exercises share."""

from collections.abc import Callable
from dataclasses import replace

from utils.course.exercise import Gate

ALL_LANES = Gate(
    "store requests for 32 elements",
    1.125,
    "one thread does the work of many: give each thread an element of its own",
)
COALESCED_LOADS = Gate(
    "sectors per load request",
    1.125,
    "let threads that differ by one in threadIdx.x read neighbours in memory",
)
COALESCED_STORES = Gate(
    "sectors per store request",
    1.125,
    "let threads that differ by one in threadIdx.x write neighbours in memory",
)
LANES_LOAD = Gate(
    "lanes per load request",
    0.5,
    "let each thread load what it computes with: a lane that waits for another one's loads is idle",
    ideal=lambda **sizes: 32,
    at_least=True,
)
OWN_ELEMENTS = Gate(
    "bytes loaded from global memory",
    3.5,  # a thread may well read its element twice; of four blocks each would read all
    "several blocks read what one of them needs: give each of them elements of its own",
)
NO_CONFLICTS = Gate(
    "wavefronts per shared request",
    1.125,
    "several lanes want different words of one bank, which has every 32nd word: let the lanes of a "
    "warp want words of different banks, as neighbours are, or one and the same",
)


def few_shared_loads(values: Callable[..., int], sums: Callable[..., int]) -> Gate:
    """For `sums` of blocks, over so many values in all, which may lie in shared memory and be read
    three times there: a thread that adds all of them up reads each a block's width of times."""
    return Gate(
        "load requests to shared memory",
        1.25,
        "let the lanes of a warp add by shuffles: one value of each warp passes through shared "
        "memory",
        ideal=lambda **sizes: 3 * values(**sizes) / 32 + 64 * sums(**sizes),
    )


def tensor_cores(products: int) -> Gate:
    """All of x * W^T by tensor cores, so many products of halves for each of floats."""
    return Gate(
        "operations of tensor cores",
        1.0,
        "let mma_f16() multiply, for the whole of x and W"
        + f": {products} products of halves" * (products > 1),
        ideal=lambda M, N, K, **more: products * 2 * M * N * K,
        at_least=True,
    )


# What is not finite, the headers add up in floats, element by element: 2 K loads for each. Values
# that were never written are NaN on the emulator, and would come out right that way.
NOT_IN_FLOATS = Gate(
    "bytes loaded from global memory",
    8.0,
    "nearly every element was added up in floats, since its products are not finite: are the high "
    "and low halves of x and of W all there before they are multiplied?",
    # Once to find a row's largest element, once to split the row, once as halves.
    ideal=lambda M, N, K, **more: 3 * 4 * (M + N) * K,
)


def without_conflicts(way: str) -> Gate:
    """NO_CONFLICTS, with the way out of them that an exercise has."""
    return replace(NO_CONFLICTS, advice=f"several lanes want different words of one bank: {way}")
