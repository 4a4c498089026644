// Votes, matches, __syncwarp and __activemask.
#include "expect.cuh"

__global__ void votes() {
    const int lane = threadIdx.x % 32;
    EXPECT(__ballot_sync(~0u, lane % 4 == 1), 0x22222222u);
    EXPECT(__ballot_sync(~0u, 0), 0u);
    EXPECT(__ballot_sync(~0u, lane + 1), ~0u);  // any value but 0 is a yes
    EXPECT(__any_sync(~0u, lane == 31) != 0, true);
    EXPECT(__any_sync(~0u, lane == 32) != 0, false);
    EXPECT(__all_sync(~0u, lane < 32) != 0, true);
    EXPECT(__all_sync(~0u, lane != 13) != 0, false);
    if (lane < 10) {
        EXPECT(__ballot_sync(0x3ffu, lane & 1), 0x2aau);
        EXPECT(__all_sync(0x3ffu, lane < 10) != 0, true);
    } else {
        EXPECT(__any_sync(~0x3ffu, lane < 10) != 0, false);
    }
    // The number of set lanes before one's own: where a kept value goes.
    const unsigned keep = __ballot_sync(~0u, lane % 3 == 0);
    if (lane % 3 == 0) EXPECT(__popc(keep & ((1u << lane) - 1)), lane / 3);
}

__global__ void matches() {
    const int lane = threadIdx.x;
    EXPECT(__match_any_sync(~0u, lane / 8), 0xffu << lane / 8 * 8);
    EXPECT(__match_any_sync(~0u, 0.5f * (lane % 2)), lane % 2 ? 0xaaaaaaaau : 0x55555555u);
    EXPECT(__match_any_sync(~0u, (1ull << 40) * (lane / 16)), lane < 16 ? 0xffffu : 0xffff0000u);
    EXPECT(__match_any_sync(~0u, double(lane)), 1u << lane);
    int agree = -1;
    EXPECT(__match_all_sync(~0u, 7, &agree), ~0u);
    EXPECT(agree != 0, true);
    EXPECT(__match_all_sync(~0u, lane == 3, &agree), 0u);
    EXPECT(agree, 0);
    if (lane >= 24) {
        EXPECT(__match_all_sync(0xff000000u, 2.5, &agree), 0xff000000u);
        EXPECT(agree != 0, true);
        EXPECT(__match_any_sync(0xff000000u, lane % 2u),
               0xff000000u & (lane % 2 ? 0xaaaaaaaa : 0x55555555));
    }
}

// Lanes of a warp pass values through shared memory with __syncwarp alone.
__global__ void warp_barriers() {
    __shared__ int box[64];
    const int lane = threadIdx.x % 32, base = threadIdx.x - lane;
    for (int round = 0; round < 3; ++round) {
        box[threadIdx.x] = 100 * round + lane;
        __syncwarp();  // the warp's 32 values are there
        EXPECT(box[base + 31 - lane], 100 * round + 31 - lane);
        __syncwarp();  // and have been read
    }
    if (lane < 8) {
        box[threadIdx.x] = -lane;
        __syncwarp(0xff);  // the eight values are there
        EXPECT(box[base + 7 - lane], lane - 7);
    } else {
        box[threadIdx.x] = lane * lane;
        __syncwarp(0xffffff00);  // the others are there
        EXPECT(box[base + 39 - lane], (39 - lane) * (39 - lane));
    }
    __syncwarp();
}

__global__ void active_lanes(int* counter) {
    const int lane = threadIdx.x;
    EXPECT(__activemask(), ~0u);
    if (lane % 2) {
        // Which lanes are together is the hardware's choice; the caller is always among them, and
        // nobody who took the other way is.
        const unsigned active = __activemask();
        EXPECT(active >> lane & 1, 1);
        EXPECT(active & 0x55555555u, 0);
        // One atomic for all of them.
        const int leader = __ffs(active) - 1;
        int before = 0;
        if (lane == leader) before = atomicAdd(counter, __popc(active));
        before = __shfl_sync(active, before, leader);
        EXPECT(before >= 0 && before < 16, true);
    }
}

// Lanes that have left the kernel have no vote.
__global__ void after_return() {
    if (threadIdx.x >= 20) return;
    EXPECT(__ballot_sync((1u << 20) - 1, 1), (1u << 20) - 1);
    __syncwarp((1u << 20) - 1);
    EXPECT(__activemask(), (1u << 20) - 1);
}

int main() {
    votes<<<2, 64>>>();
    matches<<<1, 32>>>();
    warp_barriers<<<2, 64>>>();
    Buffer<int> counter(1);
    active_lanes<<<1, 32>>>(counter.device);
    counter.download();
    EXPECT(counter[0], 16);
    after_return<<<1, 32>>>();
    return finish();
}
