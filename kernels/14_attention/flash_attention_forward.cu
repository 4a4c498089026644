#include "attention_tiles.cuh"

using namespace attention;

// row_max, row_sum: (S), of this head. shifts: see Rows. What row_max loses of its last bits,
// row_sum makes up for: whoever takes the shift off again has the same weights.
__device__ inline void store_statistics(float* row_max, float* row_sum, const float (&most)[2],
                                        const float (&sums)[2], const float* shifts,
                                        const Patch& mine, int S) {
    for (int h = 0; h < 2; h++) {
        int row = mine.row(2 * h);
        if (mine.left > 0 || row >= S) continue;
        float top = most[h] + shifts[row], lost = most[h] - (top - shifts[row]);
        row_max[row] = isnan(sums[h]) ? NAN : top;  // fmaxf has lost it
        row_sum[row] = sums[h] * exp2f(lost);
    }
}

// out: (heads, S, D), at a multiple of 8 bytes; row_max, row_sum: (heads, S): of each query the
// largest score, as an exponent of 2, and the sum of 2^(score - that). Where halves cannot hold the
// range of a row of q, k or v, results that need it are NaN.
// One thread owns two queries' every fourth pair of columns, if its warpgroup multiplies: that owns
// 64 queries. One block owns BM queries of a head.
template <int D>
__global__ void __launch_bounds__(THREADS, 1)
    attention_forward_kernel(const __grid_constant__ Maps maps, Rows rows, float* out,
                             float* row_max, float* row_sum, int S, int padded, int causal) {
    extern __shared__ __align__(1024) unsigned char memory[];
    Shared<D>& tiles = *reinterpret_cast<Shared<D>*>(memory);
    prepare(tiles);
    int head = blockIdx.y, row0 = (gridDim.x - 1 - blockIdx.x) * BM;  // the longest walks first
    Walk walk(OUT, row0, S, causal);
    if (threadIdx.x / 128 == CONSUMERS) {
        fewer_registers<24>();
        if (threadIdx.x % 128 == 0) bring<D, OUT>(tiles, maps, rows, row0, head * padded, walk);
        return;
    }
    more_registers<240>();
    int top = threadIdx.x / 128 * 64;
    Patch mine(row0 + top, 0);
    const float2* own = rows.own + head * padded;
    float2 scale = {own[mine.row(0)].x, own[mine.row(2)].x};
    Softmax running;
    Range range;
    float sum[D / 2] = {};
    barrier_wait(&tiles.own_full, 0);
    for (int j = walk.first; j < walk.end; j++) {
        float s[BN / 2];
        barrier_wait(&tiles.full[0], j % 2);
        multiply<D>(s, tiles.own[0], tiles.others[0], top);
        scale_scores<D, OUT>(s, tiles, scale, mine, j * BN, S, causal);
        float2 shrink = running.weigh(s);
#pragma unroll
        for (int i = 0; i < BN / 2; i++) s[i] *= tiles.scales[mine.at(i)].y;  // of a row of v
        let_go(&tiles.empty[0]);
        Factors factors;
        float2 more = range.take(factors, s);
        barrier_wait(&tiles.full[1], j % 2);
        add_rows<D>(sum, {shrink.x * more.x, shrink.y * more.y}, factors, tiles.others[1]);
        let_go(&tiles.empty[1]);
    }
    float sums[2] = {quad_sum(running.sum[0]), quad_sum(running.sum[1])};
    float2 scale_out = range.scale({1.0f / sums[0], 1.0f / sums[1]});
    size_t first = size_t(head) * S;
    store_rows<D>(out + first * D, sum, scale_out, rows.centre + head * D, mine, S);
    store_statistics(row_max + first, row_sum + first, running.most, sums,
                     rows.shifts + head * padded, mine, S);
}

template <int D>
void attend(const float* q, const float* k, const float* v, float* out, float* row_max,
            float* row_sum, int heads, int S, int causal) {
    Inputs<D> inputs(heads, S);
    auto kernel = attention_forward_kernel<D>;
    for (int head = 0; head < heads; head += inputs.at_once) {
        size_t row = size_t(head) * S, at = row * D;
        inputs.heads = min(inputs.at_once, heads - head);
        inputs.split(q + at, k + at, v + at, nullptr);
        kernel<<<inputs.blocks(BM), THREADS, shared_memory<D>(kernel)>>>(
            inputs.maps(OUT), inputs.rows(OUT, nullptr), out + at, row_max + row, row_sum + row, S,
            inputs.padded, causal);
    }
}

void flash_attention_forward(const float* q, const float* k, const float* v, float* out,
                             float* row_max, float* row_sum, int heads, int S, int D, int causal) {
    auto of_width = D == 64 ? attend<64> : attend<128>;
    of_width(q, k, v, out, row_max, row_sum, heads, S, causal);
}
