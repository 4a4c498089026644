"""Every expected number here was counted by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import traces
from support.traces import simulate

from utils.watch import access_patterns as ap
from utils.watch.trace import ACCESSES


def of(trace, name=None, line=None):
    """The accesses of a trace's one launch, to one array, from one line."""
    accesses = trace.launches[0].accesses
    if name is not None:
        accesses = accesses[accesses["array"] == trace.array(name)]
    return accesses if line is None else accesses[accesses["line"] == line]


def one_warp(index_of_lane, elements=4096, width=1, element=4, shared=False, lanes=32):
    """The accesses of one warp whose lane l loads `width` elements from index_of_lane(l)."""

    def kernel(t):
        t.load(1, "a", index_of_lane(t.thread[0]), width)

    trace = simulate(kernel, (1,), (lanes,), {"a": (elements,)})
    accesses = trace.launches[0].accesses.copy()
    accesses["space"] = shared
    accesses["byte"] = accesses["byte"] // 4 * element
    accesses["size"] = accesses["size"] // 4 * element
    return accesses


@pytest.mark.parametrize(
    "index, options, sectors, ideal",
    [
        (lambda lane: lane, {}, 4, 4),  # 128 bytes in a row
        (lambda lane: 31 - lane, {}, 4, 4),  # order does not matter
        (lambda lane: lane + 1, {}, 5, 4),  # off by one float: a fifth sector
        (lambda lane: 2 * lane, {}, 8, 4),  # every other float
        (lambda lane: 8 * lane, {}, 32, 4),  # a sector for each lane
        (lambda lane: 100 * lane, {}, 32, 4),
        (lambda lane: 7, {}, 1, 1),  # all lanes want the same float
        (lambda lane: lane % 8, {}, 1, 1),
        (lambda lane: lane, {"lanes": 5}, 1, 1),  # a ragged warp
        (lambda lane: 4 * lane, {"width": 4}, 16, 16),  # float4: 512 bytes in a row
        (lambda lane: 2 * lane, {"width": 2}, 8, 8),
        (lambda lane: lane, {"element": 2}, 2, 2),  # half
        (lambda lane: lane, {"element": 1}, 1, 1),
        (lambda lane: lane, {"element": 8}, 8, 8),  # double
        (lambda lane: 8 * lane + 7, {"width": 2}, 33, 8),  # each straddles two sectors
    ],
)
def test_sectors_of_one_request(index, options, sectors, ideal):
    accesses = one_warp(index, **options)
    assert ap.sectors_per_request(accesses).tolist() == [sectors]
    assert ap.ideal_sectors(accesses).tolist() == [ideal]


def test_two_arrays_in_one_request_share_no_sector():
    accesses = one_warp(lambda lane: 0)
    accesses["array"][:16] = 1
    assert ap.sectors_per_request(accesses).tolist() == [2]


@pytest.mark.parametrize(
    "index, options, degree, wavefronts, ideal",
    [
        (lambda lane: lane, {}, 1, 1, 1),
        (lambda lane: 5, {}, 1, 1, 1),  # broadcast
        (lambda lane: 32 * lane, {}, 32, 32, 1),  # a column of a tile 32 wide
        (lambda lane: 33 * lane, {}, 1, 1, 1),  # the same, padded
        (lambda lane: 2 * lane, {}, 2, 2, 1),
        (lambda lane: 4 * lane, {}, 4, 4, 1),
        (lambda lane: 3 * lane, {}, 1, 1, 1),  # odd strides never collide
        (lambda lane: 32 * (lane % 2), {}, 2, 2, 1),  # two words of bank 0, 16 lanes each
        (lambda lane: 16 * lane, {"lanes": 3}, 2, 2, 1),  # words 0, 16, 32
        (lambda lane: lane, {"element": 2}, 1, 1, 1),  # two lanes in each word
        (lambda lane: 2 * lane, {"width": 2}, 1, 2, 2),  # 8 bytes: two halves, each free
        (lambda lane: 4 * lane, {"width": 4}, 1, 4, 4),  # 16 bytes: four quarters, each free
        (lambda lane: 32 * lane, {"width": 4}, 8, 32, 4),  # quarters of 8 lanes in 4 banks
        (lambda lane: 32 * lane, {"width": 2}, 16, 32, 2),
        (lambda lane: 4 * lane, {"width": 4, "lanes": 8}, 1, 1, 1),  # one quarter is active
        (lambda lane: 4 * (lane // 2), {"width": 4}, 1, 2, 2),  # neighbours agree: two halves
        (lambda lane: 4 * (lane // 4 * 2 + lane % 2), {"width": 4}, 1, 2, 2),  # but one
        (lambda lane: 4 * (lane // 4), {"width": 4}, 1, 2, 2),  # both: halved only once
        (lambda lane: 2 * (lane // 2), {"width": 2}, 1, 1, 1),
        (lambda lane: 32 * (lane // 2), {"width": 2}, 16, 16, 1),
    ],
)
def test_bank_conflicts_of_one_request(index, options, degree, wavefronts, ideal):
    banks = ap.bank_conflicts(one_warp(index, shared=True, **options))
    assert (banks.degree.tolist(), banks.wavefronts.tolist(), banks.ideal.tolist()) == (
        [degree],
        [wavefronts],
        [ideal],
    )


def test_requests_are_told_apart_by_warp_instruction_and_execution():
    trace = traces.axpy(64)  # two warps, three instructions
    assert np.bincount(ap.requests(of(trace))).tolist() == [32] * 6
    trace = traces.grid_stride(96, 1, threads=32)  # one warp, two instructions, three times each
    assert np.bincount(ap.requests(of(trace))).tolist() == [32] * 6


def test_naive_and_coalesced_products():
    naive, coalesced = traces.gemm(32, 32, 8, "row"), traces.gemm(32, 32, 8, "col")
    assert set(ap.sectors_per_request(of(naive, "A"))) == {32}
    assert set(ap.sectors_per_request(of(naive, "B"))) == {1}
    assert set(ap.sectors_per_request(of(naive, "C"))) == {32}
    assert set(ap.sectors_per_request(of(coalesced, "A"))) == {1}
    assert set(ap.sectors_per_request(of(coalesced, "B"))) == {4}
    assert set(ap.sectors_per_request(of(coalesced, "C"))) == {4}


def test_tiled_linear_with_and_without_padding():
    plain, padded = (traces.linear_tiled(32, 32, 32, pad) for pad in (0, 1))
    assert set(ap.bank_conflicts(of(plain, "Ws", 20)).degree) == {32}
    assert set(ap.bank_conflicts(of(padded, "Ws", 20)).degree) == {1}
    assert set(ap.bank_conflicts(of(padded, "Ws", 17)).degree) == {1}
    assert set(ap.bank_conflicts(of(plain, "xs", 20)).degree) == {1}


def test_reads_per_element():
    trace = traces.gemm(5, 6, 4)
    a, b, c = (
        ap.reads_per_element(of(trace), trace.array(n), trace.arrays[trace.array(n)])
        for n in ("A", "B", "C")
    )
    assert a.shape == (5, 4) and set(a.flat) == {6}  # once for each column of C
    assert b.shape == (4, 6) and set(b.flat) == {5}
    assert c.shape == (5, 6) and set(c.flat) == {0}  # written, never read
    tiled = traces.gemm_tiled(5, 6, 4, T=2)
    assert set(ap.reads_per_element(of(tiled), 0, tiled.arrays[0]).flat) == {3}  # 6 columns / 2
    assert set(ap.reads_per_element(of(tiled), 1, tiled.arrays[1]).flat) == {3}  # 5 rows / 2


def test_a_wide_access_touches_all_its_elements():
    trace = simulate(lambda t: t.load(1, "a", 4 * t.thread[0], 4), (1,), (2,), {"a": (9,)})
    assert ap.touches(of(trace), trace.arrays[0]).tolist() == [1] * 8 + [0]


def test_owners_of_a_grid_stride_loop():
    trace = traces.grid_stride(10, 2, threads=2)
    owners = ap.owners(of(trace, "out"), trace.arrays[1], 2)
    assert owners.thread.tolist() == [0, 1, 2, 3, 0, 1, 2, 3, 0, 1]
    assert owners.turn.tolist() == [0, 0, 0, 0, 1, 1, 1, 1, 2, 2]
    assert set(owners.threads) == set(owners.times) == {1}


def test_owners_of_what_is_written_twice_or_never():
    def kernel(t):  # element 0 by both threads, element 2 by the second, twice
        t.store(1, "a", 0)
        if t.thread[0]:
            t.store(2, "a", 2)
            t.store(3, "a", 2)

    trace = simulate(kernel, (1,), (2,), {"a": (4,)})
    owners = ap.owners(of(trace), trace.arrays[0], 2)
    assert owners.thread.tolist() == [0, -1, 1, -1]
    assert owners.threads.tolist() == [2, 0, 1, 0]
    assert owners.times.tolist() == [2, 0, 2, 0]
    assert owners.turn.tolist() == [0, 0, 1, 0]


def test_a_vector_store_is_one_turn():
    def kernel(t):
        for i in range(2):
            t.store(1, "a", 8 * i + 4 * t.thread[0], 4)

    trace = simulate(kernel, (1,), (2,), {"a": (16,)})
    owners = ap.owners(of(trace), trace.arrays[0], 2)
    assert owners.thread.tolist() == ([0] * 4 + [1] * 4) * 2
    assert owners.turn.tolist() == [0] * 8 + [1] * 8


def test_nothing_costs_nothing():
    nothing = one_warp(lambda lane: lane)[:0]
    assert len(ap.sectors_per_request(nothing)) == len(ap.ideal_sectors(nothing)) == 0
    assert len(ap.bank_conflicts(nothing).degree) == 0
    array = traces.axpy(4, 4).arrays[0]
    assert ap.touches(nothing, array).tolist() == [0] * 4
    assert ap.owners(nothing, array, 4).thread.tolist() == [-1] * 4


@st.composite
def any_requests(draw):
    """Accesses of up to three warps that run an instruction twice, lanes missing here and there."""
    size = draw(st.sampled_from([1, 2, 4, 8, 16]))
    lane = st.tuples(st.integers(0, 95), st.integers(0, 1))
    ran = draw(st.lists(lane, unique=True, max_size=60))
    accesses = np.zeros(len(ran), ACCESSES)
    for one, (thread, nth) in zip(accesses, ran, strict=True):
        one["thread"], one["nth"], one["size"] = thread, nth, size
        one["byte"] = size * draw(st.integers(0, 300))
    return accesses


def by_request(accesses):
    """The requests one by one, in order of appearance."""
    requests = {}
    for one in accesses:
        requests.setdefault((int(one["thread"]) // 32, int(one["nth"])), []).append(one)
    return list(requests.values())


@given(any_requests())
def test_sectors_are_the_distinct_ones(accesses):
    want = [len({int(one["byte"]) // 32 for one in request}) for request in by_request(accesses)]
    assert ap.sectors_per_request(accesses).tolist() == want
    assert np.all(ap.ideal_sectors(accesses) <= ap.sectors_per_request(accesses))


@given(any_requests())
def test_wavefronts_are_those_of_the_fullest_bank_in_each_phase(accesses):
    wavefronts = []
    for request in by_request(accesses):
        phases = {}
        byte = {int(one["thread"]) % 32: int(one["byte"]) for one in request}
        agree = [all(byte.get(x ^ bit, byte[x]) == byte[x] for x in byte) for bit in (1, 2)]
        served = {8: 16, 16: 8}.get(int(request[0]["size"]), 32)
        for one in request:
            group = int(one["thread"]) % 32 // (served * (1 + any(agree)))
            first = int(one["byte"]) // 4
            words = range(first, first + max(1, int(one["size"]) // 4))
            phases.setdefault(group, set()).update(words)
        fullest = [max(np.bincount([w % 32 for w in words])) for words in phases.values()]
        wavefronts.append(sum(fullest))
    assert ap.bank_conflicts(accesses).wavefronts.tolist() == wavefronts
