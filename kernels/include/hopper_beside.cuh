// A warpgroup that splits rows of W while others multiply. From exercise 11.6.
#pragma once

#include "hopper_tile.cuh"
#include "tensor_cores.cuh"

// The warpgroup that splits: every nth row of W from in.first on. One thread owns every
// 128th quad of each: it copies them to shared memory, and nobody else reads them there.
// quads: (padded / 4) of shared memory, rows: what its warps find in a row; the next row has
// another place. All 128 threads must call it.
__device__ inline void split_rows(const Splitting& in, float4* quads, RowOfW (&rows)[2]) {
    int me = threadIdx.x % 128, turn = 0;
    auto copy = [&](int r) {
        for (int i = me; r < in.N && i < in.padded / 4; i += 128) {
            const float* from = in.W + size_t(r) * in.K;
            copy_async(&quads[i], 4 * i < in.K ? from + 4 * i : from, 4 * i < in.K ? 16 : 0);
        }
        commit_copies();
    };
    copy(in.first + blockIdx.x);
    for (int r = in.first + blockIdx.x; r < in.N; r += gridDim.x, turn ^= 1) {
        RowOfW& row = rows[turn];
        wait_for_copies<0>();
        float most = 0.0f;
        for (int i = me; i < in.padded / 4; i += 128) most = fmaxf(most, largest(quads[i]));
        most = warp_max(most);
        if (me % 32 == 0) row.most[me / 32] = most;
        sync_some(1, 128);  // the largest of every warp is there
        for (int i = 0; i < 4; i++) most = fmaxf(most, row.most[i]);
        int exponent = exponent_of(most), few = 0;
        float up = ldexpf(1.0f, -exponent);
        for (int i = me; i < in.padded / 4; i += 128) {
            float4 v = quads[i];
            v = {v.x * up, v.y * up, v.z * up, v.w * up};
            few += imprecise(v);
            Halves h = halves(v);
            reinterpret_cast<uint2*>(in.high + size_t(r) * in.padded)[i] = h.high;
            reinterpret_cast<uint2*>(in.low + size_t(r) * in.padded)[i] = h.low;
        }
        copy(r + gridDim.x);  // its quads are read, and on their way while the rest is done
        few = __reduce_add_sync(0xffffffffu, few);
        if (me % 32 == 0) row.imprecise[me / 32] = few;
        sync_some(1, 128);  // the count of every warp is there
        few = row.imprecise[0] + row.imprecise[1] + row.imprecise[2] + row.imprecise[3];
        if (me == 0) in.scale[r] = scale_of(exponent, few, in.K);
        fence_async_global();  // what this thread wrote is seen by copies,
        __threadfence();       // and by those whom the next line tells
        atomicAdd(&in.ready[r / Beside::BN], 1);
    }
}

// What the warpgroups do that multiply nothing: bring tiles, or split W. ring is at `memory`.
template <class TileConfig>
__device__ inline void serve(Ring<TileConfig>& ring, char* memory, const Operands& in) {
    if (TileConfig::BESIDE && threadIdx.x / 128 > CONSUMERS) {
        fewer_registers<56>();
        float4* quads = reinterpret_cast<float4*>(memory + Ring<TileConfig>::BYTES);
        return split_rows(in.split, quads, ring.shared.rows);
    }
    bring_all(ring, in);
}
