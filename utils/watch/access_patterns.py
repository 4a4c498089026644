"""What accesses cost: sectors, bank conflicts, reads of each element, owners of each element.

Everything is counted as Nsight Compute counts it. A request is one execution of one load or store
by the active lanes of one warp. Global memory moves in sectors of 32 bytes; a tensor is taken to
begin on a multiple of 256 bytes, as cudaMalloc's memory does. Shared memory has 32 banks of 4-byte
words; a bank serves one word in a wavefront, to all lanes that want it. Accesses of 8 and 16 bytes
run half a warp and a quarter of a warp at a time; see `service_phases`.

`accesses` are records of the type utils.watch.trace.ACCESSES, all of one launch.
"""

import math
from dataclasses import dataclass

import numpy as np

from utils.watch.grouping import groups, rank_of_value
from utils.watch.trace import LOAD, Array, Records

WARP = 32  # lanes
SECTOR = 32  # bytes
BANKS, WORD = 32, 4  # a word's bytes
CELL = 4  # bytes; what a sector is divided into in pictures


def lanes(accesses: Records) -> np.ndarray:
    """Each access's place in its warp, from 0."""
    return accesses["thread"].astype(np.int64) % WARP


def requests(accesses: Records) -> np.ndarray:
    """The number of the request that each access is part of: 0, 1, ... in order of appearance."""
    fields = (accesses["block"], accesses["thread"] // WARP, accesses["pc"], accesses["nth"])
    first, label = groups(*fields)
    rank = np.empty(len(first), "i8")
    rank[np.argsort(first)] = np.arange(len(first))
    return np.take(rank, label)


def sectors_per_request(accesses: Records) -> np.ndarray:
    """Distinct 32-byte sectors that each request of global memory touches."""
    return _distinct(accesses, SECTOR)


def ideal_sectors(accesses: Records) -> np.ndarray:
    """Sectors that each request would touch if the bytes it wants were neighbours."""
    return -(-_distinct(accesses, 1) // SECTOR)


def _distinct(accesses: Records, unit: int) -> np.ndarray:
    """Distinct units of `unit` bytes, by request."""
    request = requests(accesses)
    owner, piece = pieces(accesses["byte"], accesses["size"], unit)
    first, _ = groups(request[owner], accesses["array"][owner], piece)
    return np.bincount(request[owner][first], minlength=_count(request))


def pieces(byte: np.ndarray, size: np.ndarray, unit: int) -> tuple[np.ndarray, np.ndarray]:
    """Every unit that an access covers, even in part: (which access, number of the unit)."""
    first = byte // unit
    count = (byte + size.astype("i8") - 1) // unit - first + 1
    owner = np.repeat(np.arange(len(byte)), count)
    start = np.cumsum(count) - count
    return owner, first[owner] + np.arange(len(owner)) - start[owner]


def _count(request: np.ndarray) -> int:
    return int(request.max()) + 1 if len(request) else 0


@dataclass(frozen=True)
class Banks:
    """Bank conflicts of each request of shared memory."""

    degree: np.ndarray  # most different words that one bank serves in one phase; 1: no conflict
    wavefronts: np.ndarray  # what the request takes in all
    ideal: np.ndarray  # what it would take without conflicts


def service_phases(accesses: Records, request: np.ndarray | None = None) -> np.ndarray:
    """Which part of its request an access runs in: 0, but 0-1 if 8 bytes wide, 0-3 if 16.

    Half as many parts, where all lanes want the same as their neighbour, or as their neighbour but
    one. `request` is what requests() says of them, where it is known.
    """
    request, lane = requests(accesses) if request is None else request, lanes(accesses)
    parts = np.clip(accesses["size"].astype("i8") // (2 * WORD) * 2, 1, 4)
    wanted = np.full((_count(request), WARP), -1, "i8")
    wanted[request, lane] = accesses["byte"]
    agree = np.zeros(len(wanted), bool)
    for bit in (1, 2):
        partner = wanted[:, np.arange(WARP) ^ bit]
        agree |= ((wanted == partner) | (wanted < 0) | (partner < 0)).all(axis=1)
    parts = np.where(agree[request] & (parts > 1), parts // 2, parts)
    return np.asarray(lane * parts // WARP)


def bank_conflicts(accesses: Records) -> Banks:
    """Of each request of shared memory. The same word for several lanes is no conflict."""
    request = requests(accesses)
    phase = service_phases(accesses, request)
    owner, word = pieces(accesses["byte"], accesses["size"], WORD)
    words, _ = groups(request[owner], phase[owner], word)
    request, phase, bank = request[owner][words], phase[owner][words], word[words] % BANKS
    banks, label = groups(request, phase, bank)
    worst = np.zeros((_count(request), 4), "i8")
    np.maximum.at(worst, (request[banks], phase[banks]), np.bincount(label))
    return Banks(worst.max(axis=1), worst.sum(axis=1), (worst > 0).sum(axis=1))


def touches(accesses: Records, array: Array) -> np.ndarray:
    """How many times the accesses, which must all be of `array`, touch each of its elements."""
    _, element = elements(accesses, array)
    return np.bincount(element, minlength=math.prod(array.shape)).reshape(array.shape)


def reads_per_element(accesses: Records, number: int, array: Array) -> np.ndarray:
    """How many loads touch each element of the array with that number in the trace."""
    mine = (accesses["array"] == number) & (accesses["kind"] == LOAD)
    return touches(accesses[mine], array)


def elements(accesses: Records, array: Array) -> tuple[np.ndarray, np.ndarray]:
    """(which access, element) for each element that an access covers; float4 covers four."""
    owner, element = pieces(accesses["byte"] - array.offset, accesses["size"], array.element)
    inside = element < math.prod(array.shape)  # an access at the end may reach beyond
    return owner[inside], element[inside]


@dataclass(frozen=True)
class Owners:
    """Who touches each element of an array; arrays are flat, one entry for each element."""

    thread: np.ndarray  # the first to touch it, counted through the whole grid; -1: nobody
    threads: np.ndarray  # how many threads do
    times: np.ndarray  # how many accesses do
    turn: np.ndarray  # how many other elements its thread had touched before, access by access


def owners(accesses: Records, array: Array, threads_per_block: int) -> Owners:
    """Owners by accesses that are all of `array`, in the order in which they ran."""
    n = math.prod(array.shape)
    thread = np.full(n, -1, "i8")
    turn = np.zeros(n, "i8")
    who = accesses["block"].astype("i8") * threads_per_block + accesses["thread"]
    access, element = elements(accesses, array)
    # Each thread's first touch of each element, in order.
    first = np.sort(groups(who[access], element)[0])
    access, element, who = access[first], element[first], who[access[first]]
    thread[element[::-1]] = who[::-1]
    own = thread[element] == who
    turn[element[own]] = rank_of_value(who, access)[own]
    return Owners(
        thread,
        np.bincount(element, minlength=n),
        touches(accesses, array).reshape(-1),
        turn,
    )
