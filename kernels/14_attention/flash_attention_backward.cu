#include "attention_tiles.cuh"

using namespace attention;

// Exponents become factors of the last product: s weights, for dv, of grad_out; u gradients of
// scores, for dq and dk, of k and of q. Each takes the scale of its row there with it.
// u: grad_out * v^T, or turned. scales, queries: of both own rows
template <int D, Result OF>
__device__ inline void differentiate(float (&s)[BN / 2], float (&u)[BN / 2], const Shared<D>& tiles,
                                     const float2 (&scales)[2], const float4 (&queries)[2],
                                     const Patch& mine) {
#pragma unroll
    for (int i = 0; i < BN / 2; i++) {
        int h = i / 2 % 2, at = mine.at(i);
        float4 query = OF == DQ ? queries[h] : tiles.queries[at];
        float2 other = tiles.scales[at];
        float weight = exp2_or_0(s[i] - query.x) * query.y;
        float of_score = weight * (u[i] * (scales[h].y * other.y) - query.z);
        bool hidden = s[i] == -INFINITY;
        s[i] = hidden ? 0.0f : weight * other.y;
        u[i] = hidden ? 0.0f : of_score * other.x;
    }
}

// What a warpgroup that multiplies does with all tiles: rows of the results.
// start, row0: the head's first row, and the block's in it. to, to_dv: (S, D), of this head
template <int D, Result OF>
__device__ void add_up(Shared<D>& tiles, Rows rows, Walk walk, int start, int row0, float* to,
                       float* to_dv, int S, int causal) {
    int top = threadIdx.x / 128 * 64;
    Patch mine(row0 + top, 0);
    int mine_from = start + mine.row(0), mine_to = start + mine.row(2);
    float2 scales[2] = {rows.own[mine_from], rows.own[mine_to]};
    float4 queries[2] = {};
    if (OF == DQ) queries[0] = rows.queries[mine_from], queries[1] = rows.queries[mine_to];
    Range range, range_v;
    float sum[D / 2] = {}, sum_v[D / 2] = {};
    barrier_wait(&tiles.own_full, 0);
    for (int j = walk.first; j < walk.end; j++) {
        int parity = (j - walk.first) % 2;
        float s[BN / 2], u[BN / 2];
        Factors factors;
        barrier_wait(&tiles.full[0], parity);
        multiply<D>(s, tiles.own[0], tiles.others[0], top);
        scale_scores<D, OF>(s, tiles, {scales[0].x, scales[1].x}, mine, j * BN, S, causal);
        barrier_wait(&tiles.full[1], parity);
        multiply<D>(u, tiles.own[1], tiles.others[1], top);
        if (OF == DQ) let_go(&tiles.empty[1]);
        differentiate<D, OF>(s, u, tiles, scales, queries, mine);
        if (OF == DK_AND_DV) {
            float2 shrink = range_v.take(factors, s);
            add_rows<D, 32>(sum_v, shrink, factors, tiles.others[1]);
            let_go(&tiles.empty[1]);
        }
        float2 shrink = range.take(factors, u);
        add_rows<D>(sum, shrink, factors, tiles.others[0]);
        let_go(&tiles.empty[0]);
    }
    float by = rsqrtf(D);
    store_rows<D>(to, sum, range.scale({by, by}), nullptr, mine, S);
    if (OF == DQ) return;
    store_rows<D>(to_dv, sum_v, range_v.scale({1.0f, 1.0f}), nullptr, mine, S);
}

// to, to_dv: (heads, S, D), at a multiple of 8 bytes: the gradient of q, and null; or of k and v.
// Where halves cannot hold the range of a row of q, k, v or grad_out, results that need it are
// NaN.
// One thread owns two rows' every fourth pair of columns, if its warpgroup multiplies: that owns 64
// rows. One block owns BM rows of a head.
template <int D, Result OF>
__global__ void __launch_bounds__(THREADS, 1)
    attention_backward_kernel(const __grid_constant__ Maps maps, Rows rows, float* to, float* to_dv,
                              int S, int padded, int causal) {
    extern __shared__ __align__(1024) unsigned char memory[];
    Shared<D>& tiles = *reinterpret_cast<Shared<D>*>(memory);
    prepare(tiles);
    int start = blockIdx.y * padded;
    int row0 = (OF == DQ ? gridDim.x - 1 - blockIdx.x : blockIdx.x) * BM;  // longest walks first
    Walk walk(OF, row0, S, causal);
    if (threadIdx.x / 128 == CONSUMERS) {
        fewer_registers<24>();
        if (threadIdx.x % 128 == 0) bring<D, OF>(tiles, maps, rows, row0, start, walk);
        return;
    }
    more_registers<240>();
    size_t first = size_t(blockIdx.y) * S * D;
    float* of_v = OF == DQ ? nullptr : to_dv + first;
    add_up<D, OF>(tiles, rows, walk, start, row0, to + first, of_v, S, causal);
}

// queries: (heads * padded): see Rows; from S on, weight 0. grad_out, out: (heads, S, D), at
// multiples of 16 bytes, row_max, row_sum: (heads, S). One thread owns a quad. D / 4 lanes own a
// row.
template <int D>
__global__ void __launch_bounds__(SPLITTERS)
    queries_kernel(const float* grad_out, const float* out, const float* row_max,
                   const float* row_sum, Rows rows, float4* queries, int S, int padded) {
    constexpr int QUADS = D / 4;
    int row = blockIdx.x * (SPLITTERS / QUADS) + threadIdx.x / QUADS, lane = threadIdx.x % QUADS;
    size_t from = size_t(blockIdx.y) * S + row, to = size_t(blockIdx.y) * padded + row;
    float4 a = {}, b = {};
    if (row < S) a = quad(grad_out + from * D + 4 * lane), b = quad(out + from * D + 4 * lane);
    float4 c = quad(rows.centre + blockIdx.y * D + 4 * lane);
    float sum = row_total<D>(dot(a, {b.x - c.x, b.y - c.y, b.z - c.z, b.w - c.w}));
    if (lane > 0) return;
    if (row < S) queries[to] = {row_max[from] - rows.shifts[to], 1.0f / row_sum[from], sum, 0.0f};
    else queries[to] = {};
}

template <int D, Result OF>
void launch(const Inputs<D>& inputs, const float4* of_queries, float* to, float* to_dv,
            int causal) {
    auto kernel = attention_backward_kernel<D, OF>;
    kernel<<<inputs.blocks(BM), THREADS, shared_memory<D>(kernel)>>>(
        inputs.maps(OF), inputs.rows(OF, of_queries), to, to_dv, inputs.S, inputs.padded, causal);
}

struct Tensors {
    const float *q, *k, *v, *out, *row_max, *row_sum, *grad_out;
    float *dq, *dk, *dv;

    // Those of the heads from one on.
    Tensors from(int head, int S, int D) const {
        size_t row = size_t(head) * S, at = row * D;
        return {q + at,        k + at,        v + at,  out + at, row_max + row,
                row_sum + row, grad_out + at, dq + at, dk + at,  dv + at};
    }
};
template <int D>
void give_gradients(Tensors all, int heads, int S, int causal) {
    Inputs<D> inputs(heads, S);
    Scratch<float4> of_queries(inputs.queries.rows);
    for (int head = 0; head < heads; head += inputs.at_once) {
        Tensors of = all.from(head, S, D);
        inputs.heads = min(inputs.at_once, heads - head);
        inputs.split(of.q, of.k, of.v, of.grad_out);
        queries_kernel<D><<<inputs.blocks(SPLITTERS / (D / 4)), SPLITTERS>>>(
            of.grad_out, of.out, of.row_max, of.row_sum, inputs.rows(DQ, nullptr), of_queries.data,
            S, inputs.padded);
        launch<D, DQ>(inputs, of_queries.data, of.dq, nullptr, causal);
        launch<D, DK_AND_DV>(inputs, of_queries.data, of.dk, of.dv, causal);
    }
}

void flash_attention_backward(const float* q, const float* k, const float* v, const float* out,
                              const float* row_max, const float* row_sum, const float* grad_out,
                              float* dq, float* dk, float* dv, int heads, int S, int D,
                              int causal) {
    auto of_width = D == 64 ? give_gradients<64> : give_gradients<128>;
    of_width({q, k, v, out, row_max, row_sum, grad_out, dq, dk, dv}, heads, S, causal);
}
