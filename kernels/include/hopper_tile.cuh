// Tiles of x * W^T on Hopper: who brings them, in which order, and where they wait. From exercises
// 11.2 to 11.4, for floats as they lie and for halves, high and low.
#pragma once

#include "aligned_rows.cuh"
#include "hopper.cuh"
#include "split.cuh"
#include "warpgroup.cuh"

constexpr int BM = 128;       // rows of a tile
constexpr int CONSUMERS = 2;  // warpgroups that multiply, 64 rows of BM each
constexpr int BAND = 8;       // rows of tiles that run along the columns together

// How x * W^T is made: of floats, which copies round to 10 bits of fraction; or of halves,
// high and low, as exact as fp32, split before or, most of W, by a warpgroup beside the products.
struct Tf32 {
    using Element = float;
    static constexpr bool BESIDE = false, KEEPS = false;
    static constexpr int PLANES = 1, BN = 256, BK = 32, STAGES = 4, SETS = 2;
    static constexpr int THREADS = 128 * (CONSUMERS + 1), REGISTERS = 232;
};
struct Exact {
    using Element = __half;
    static constexpr bool BESIDE = false, KEEPS = false;
    static constexpr int PLANES = 2, BN = 128, BK = 64, STAGES = 3, SETS = 1;
    static constexpr int THREADS = 128 * (CONSUMERS + 1), REGISTERS = 232;
};
struct Beside : Exact {
    static constexpr bool BESIDE = true;
    static constexpr int THREADS = 128 * (CONSUMERS + 2), REGISTERS = 208;
};
struct Training : Beside {  // and keeps x * W^T + b, which a backward needs
    static constexpr bool KEEPS = true;
};

// W: (N, K) floats, and its planes, (N, padded), of which rows from `first` on are split in the
// same launch that needs them. ready: for each BN rows of W, how many threads are done with one.
struct Splitting {
    const float* W;
    __half *high, *low;
    float* scale;
    int* ready;
    int first, N, K, padded;
};

// x: (M, K), W: (N, K), by the maps of their planes. K is that of the planes, padded.
struct Operands {
    CUtensorMap x[2], W[2];  // high and low; of floats the first alone
    int M, N, K;
    const float* x_scale;       // what rows of halves were divided by: (M)
    Floats x_floats, W_floats;  // before they were split; their K is `floats`
    int floats;
    Splitting split;  // where W is split beside
    float* linear;    // (M, N): where x * W^T + b is kept, in training
    // Of each column of out, each (N) or null: b, weight, bias, one more, and W_scale; as far as
    // `wide`, a multiple of 4.
    const float* of_columns[5];
    int wide;
};

// The tiles of a matrix (M, N) that this block owns: every nth, in bands of BAND rows of
// tiles, along the columns of each. Blocks that work at one time share tiles of x, and of W.
template <int BN>
struct Tiles {
    int rows, cols, number = blockIdx.x;

    __device__ Tiles(int M, int N) : rows((M + BM - 1) / BM), cols((N + BN - 1) / BN) {}
    __device__ bool more() const { return number < rows * cols; }
    __device__ void next() { number += gridDim.x; }
    __device__ int band() const { return number / (BAND * cols); }
    __device__ int within() const { return number % (BAND * cols); }
    __device__ int height() const { return min(BAND, rows - band() * BAND); }  // of the last less
    __device__ int row() const { return (band() * BAND + within() % height()) * BM; }
    __device__ int col() const { return within() / height() * BN; }
};

// Tiles of one round: rows of 128 bytes along K.
template <class TileConfig>
struct Stage {
    typename TileConfig::Element x[TileConfig::PLANES][BM][TileConfig::BK],
        W[TileConfig::PLANES][TileConfig::BN][TileConfig::BK];
};

// What an epilogue needs of the columns of a tile: brought with it, since two warps a scheduler are
// too few to hide the way to global memory.
template <int BN>
struct Columns {
    float b[BN], weight[BN], bias[BN], extra[BN], W_scale[BN];
};

// What the four warps that split a row of W have found in it, each in its part.
struct RowOfW {
    float most[4];     // the largest magnitude
    int imprecise[4];  // for how many elements halves have too few bits
};

// Stages that go round from the producer to the consumers and back.
template <class TileConfig>
struct Ring {
    struct alignas(16) Shared {
        Stage<TileConfig> stages[TileConfig::STAGES];
        Columns<TileConfig::BN> columns[TileConfig::SETS];
        RowOfW rows[2];  // that are being split
        Barrier full[TileConfig::STAGES], empty[TileConfig::STAGES];
        Barrier there[TileConfig::SETS], used[TileConfig::SETS];  // of columns
    };
    static constexpr int BYTES = sizeof(Shared);

    Shared& shared;
    int stage = 0, parity = 0;
    int before = -1;  // the stage of the round before, where this consumer still has it
    int tiles = 0;    // so far

    // All threads of the block must call it. memory: BYTES, from a multiple of 1,024 on
    __device__ explicit Ring(void* memory) : shared(*static_cast<Shared*>(memory)) {
        if (threadIdx.x == 0) {
            for (int s = 0; s < TileConfig::STAGES; s++) {
                barrier_init(&shared.full[s], 1);
                barrier_init(&shared.empty[s], CONSUMERS);
            }
            for (int s = 0; s < TileConfig::SETS; s++) {
                barrier_init(&shared.there[s], 1);
                barrier_init(&shared.used[s], 128 * CONSUMERS);
            }
            fence_barriers();
        }
        __syncthreads();  // the barriers are there before anyone waits at them
    }
    __device__ void next() {
        if (++stage == TileConfig::STAGES) stage = 0, parity ^= 1;
    }

    // The producer's thread: brings the tiles of one round, once its readers let go of the stage.
    __device__ void bring(const Operands& in, int row0, int col0, int k) {
        Stage<TileConfig>& to = shared.stages[stage];
        Barrier* full = &shared.full[stage];
        barrier_wait(&shared.empty[stage], parity ^ 1);
        barrier_arrive_expect(full, sizeof(Stage<TileConfig>));
#pragma unroll
        for (int p = 0; p < TileConfig::PLANES; p++) {
            load_tile(to.x[p], &in.x[p], k, row0, full);
            load_tile(to.W[p], &in.W[p], k, col0, full);
        }
        next();
    }

    // The same for what the epilogue needs of the tile's columns.
    __device__ void bring_columns(const Operands& in, int col0) {
        int set = tiles % TileConfig::SETS, bytes = min(TileConfig::BN, in.wide - col0) * 4,
            all = 0;
        auto& of = shared.columns[set];
        float* to[] = {of.b, of.weight, of.bias, of.extra, of.W_scale};  // as in of_columns
        barrier_wait(&shared.used[set], tiles++ / TileConfig::SETS % 2 ^ 1);
#pragma unroll
        for (int p = 0; p < 5; p++) all += in.of_columns[p] ? bytes : 0;
        barrier_arrive_expect(&shared.there[set], all);
#pragma unroll
        for (int p = 0; p < 5; p++) {
            const float* from = in.of_columns[p];
            if (from) load_bytes(to[p], from + col0, bytes, &shared.there[set]);
        }
    }

    // Consumers: waits until the tiles of a round are there.
    __device__ Stage<TileConfig>& filled() {
        barrier_wait(&shared.full[stage], parity);
        return shared.stages[stage];
    }
    // The products of the round before are done: its stage goes back.
    __device__ void release() {
        if (before >= 0 && threadIdx.x % 128 == 0) barrier_arrive(&shared.empty[before]);
        before = -1;
    }
    // The products of this round are under way, and those before are done.
    __device__ void release_before() {
        release();
        before = stage;
        next();
    }
    // Waits until what the epilogue needs of the tile's columns is there; and gives it back, after
    // the last result was stored: an arrival does not wait for loads that are under way, and the
    // next tile's columns would overtake them.
    __device__ const Columns<TileConfig::BN>& columns() {
        int set = tiles % TileConfig::SETS;
        barrier_wait(&shared.there[set], tiles / TileConfig::SETS % 2);
        return shared.columns[set];
    }
    __device__ void release_columns() { barrier_arrive(&shared.used[tiles++ % TileConfig::SETS]); }
};

// Waits until the rows of W from `row` on that a tile needs are split.
__device__ inline void wait_for_rows(const Splitting& split, int row) {
    if (row < split.first) return;
    int all = 128 * min(Beside::BN, split.N - row);  // each row is told of by the 128 that split it
    while (atomicAdd(&split.ready[row / Beside::BN], 0) < all) __nanosleep(64);
    __threadfence();       // what they wrote is seen by this thread,
    fence_async_global();  // and by the copies that it begins
}

// The producer: brings all tiles that the block needs. One of its threads does.
template <class TileConfig>
__device__ inline void bring_all(Ring<TileConfig>& ring, const Operands& in) {
    fewer_registers<40>();
    if (threadIdx.x % 128 > 0) return;
    for (Tiles<TileConfig::BN> tile(in.M, in.N); tile.more(); tile.next()) {
        if (TileConfig::BESIDE) wait_for_rows(in.split, tile.col());
        int behind = min(TileConfig::STAGES * TileConfig::BK, in.K) -
                     1;  // the first tiles, which are urgent
        for (int k = 0; k < in.K; k += TileConfig::BK) {
            ring.bring(in, tile.row(), tile.col(), k);
            if (k <= behind && behind < k + TileConfig::BK) ring.bring_columns(in, tile.col());
        }
    }
}

// What this thread's two rows of halves were divided by.
__device__ inline float2 scales_of_rows(const Operands& in, const Patch& patch) {
    int above = patch.row(0), below = patch.row(2);
    return {above < in.M ? in.x_scale[above] : 1.0f, below < in.M ? in.x_scale[below] : 1.0f};
}

// Of y, what is not finite is added up again in floats: two elements of a lane at once, which lie
// side by side, in a tile of 8 x 8. All 32 lanes of the warp must call it.
template <int SUMS>
__device__ inline void add_again(float (&y)[SUMS], const Operands& in, Patch patch) {
    Floats x = in.x_floats, W = in.W_floats;
    int M = in.M, N = in.N, K = in.floats, lane = threadIdx.x % 32;
    for (int i = 0; i < SUMS; i += 2) {
        int row0 = patch.row(i) - lane / 4, col0 = patch.col(i) - lane % 4 * 2;
        float2 sum = add_in_floats({y[i], y[i + 1]}, x, row0, M, W, col0, N, K);
        y[i] = sum.x, y[i + 1] = sum.y;
    }
}

// y *= the scales of its row and column. Not finite are then what has an infinity among its halves,
// which leaves inf - inf, and all of a row whose range is too wide for halves: it has a scale of
// NaN. All 32 lanes of the warp must call it.
template <int SUMS>
__device__ inline void scale(float (&y)[SUMS], float2 x_scale, const float* W_scale,
                             const Operands& in, const Patch& patch) {
    bool finite = true;
#pragma unroll
    for (int i = 0; i < SUMS; i++) {
        float of_col = patch.col(i) < in.N ? W_scale[patch.at(i)] : 0.0f;
        y[i] = y[i] * (i / 2 % 2 ? x_scale.y : x_scale.x) * of_col;
        finite &= isfinite(y[i]);
    }
    if (__all_sync(0xffffffffu, finite)) return;
    float again[SUMS];  // in memory, where it has an index
#pragma unroll
    for (int i = 0; i < SUMS; i++) again[i] = y[i];
    add_again(again, in, patch);
#pragma unroll
    for (int i = 0; i < SUMS; i++) y[i] = again[i];
}

// --- Host

// x and W as the copy engine wants them, in memory of their own where they do not lie so.
template <class TileConfig>
struct Prepared;
template <>
struct Prepared<Tf32> {
    AlignedRows<float> x, W;

    Prepared(const float* x, const float* W, int M, int N, int K) : x(x, M, K), W(W, N, K) {}
    Operands operands() const {
        Operands in = {};
        in.x[0] = make_map(x.data, x.rows, x.cols, BM);
        in.W[0] = make_map(W.data, W.rows, W.cols, Tf32::BN);
        in.M = x.rows, in.N = W.rows, in.K = x.cols;
        return in;
    }
    bool waits() const { return false; }             // whether blocks wait for each other
    int bytes() const { return Ring<Tf32>::BYTES; }  // of shared memory that a block needs
};
template <>
struct Prepared<Exact> {
    Planes x, W;
    Floats x_floats, W_floats;
    int floats;
    float* linear = nullptr;  // see Operands

    Prepared(const float* x, const float* W, int M, int N, int K) : Prepared(x, W, M, N, K, N) {}
    // The caller splits both.
    Prepared(Floats x, Floats W, int M, int N, int K)
        : x(M, K), W(N, K), x_floats(x), W_floats(W), floats(K) {
        if (N % 4) cudaMemsetAsync(this->W.scale(), 0, (N + 3) / 4 * 4 * sizeof(float));
    }
    Operands operands() const {
        Operands in = {};
        in.M = x.rows, in.N = W.rows, in.K = x.padded;
        in.x[0] = make_map(x.high(), in.M, in.K, BM);
        in.x[1] = make_map(x.low(), in.M, in.K, BM);
        in.W[0] = make_map(W.high(), in.N, in.K, Exact::BN);
        in.W[1] = make_map(W.low(), in.N, in.K, Exact::BN);
        in.x_scale = x.scale(), in.of_columns[4] = W.scale();
        in.x_floats = x_floats, in.W_floats = W_floats, in.floats = floats;
        in.linear = linear;
        return in;
    }
    bool waits() const { return false; }
    int bytes() const { return Ring<Exact>::BYTES; }

   protected:
    Prepared(const float* x, const float* W, int M, int N, int K, int first)  // rows of W
        : Prepared(Floats{x, size_t(K), 1}, Floats{W, size_t(K), 1}, M, N, K) {
        this->x.split(x, K);
        this->W.split(W, K, first);
    }
};

// Blocks of a launch: at most one for each multiprocessor, and no more than have it done as soon.
// An H200 is faster with 128 blocks of two tiles than with 132, of which eight own one.
template <class TileConfig>
int blocks_for(int M, int N) {
    int device, most, tiles = ((M + BM - 1) / BM) * ((N + TileConfig::BN - 1) / TileConfig::BN);
    cudaGetDevice(&device);
    cudaDeviceGetAttribute(&most, cudaDevAttrMultiProcessorCount, device);
    int each = max(1, (tiles + most - 1) / most);  // tiles of a block
    return (tiles + each - 1) / each;
}

// Of W only those rows are split before that the first tile of each block needs; all of them where
// the others cannot be copied in quads, or one of them has no room in shared memory.
template <>
struct Prepared<Beside> : Prepared<Exact> {
    static constexpr int MOST = 227 * 1024;  // bytes of shared memory that a block may have
    Scratch<int> ready;
    int first;

    Prepared(const float* x, const float* W, int M, int N, int K)
        : Prepared<Exact>(x, W, M, N, K, first_rows(W, M, N, K)), ready(N), first(0) {
        first = first_rows(W, M, N, K);
        cudaMemsetAsync(ready.data, 0, N * sizeof(int));
    }
    Operands operands() const {
        Operands in = Prepared<Exact>::operands();
        in.split = {W_floats.data, W.high(), W.low(), W.scale(), ready.data,
                    first,         in.N,     floats,  in.K};
        return in;
    }
    bool waits() const { return first < W.rows; }
    int bytes() const { return Ring<Beside>::BYTES + (waits() ? W.padded * 4 : 0); }

   private:
    static int first_rows(const float* W, int M, int N, int K) {
        bool quads = K % 4 == 0 && reinterpret_cast<size_t>(W) % 16 == 0;
        if (!quads || Ring<Beside>::BYTES + (K + 63) / 64 * 64 * 4 > MOST) return N;
        int together = min((M + BM - 1) / BM, BAND);  // tiles of the same rows of W, at first
        return min(N, (blocks_for<Beside>(M, N) + together - 1) / together * Beside::BN);
    }
};

template <>
struct Prepared<Training> : Prepared<Beside> {
    Prepared(const float* x, const float* W, int M, int N, int K, float* kept)
        : Prepared<Beside>(x, W, M, N, K) {
        linear = kept;
    }
};

// What there is of each column of out, (N) each, or null.
struct Channels {
    const float *b = nullptr, *weight = nullptr, *bias = nullptr, *extra = nullptr;
};

// Starts kernel(operands, more ...). Blocks that wait for rows which others split run all at once,
// or not at all: the launch is cooperative.
template <class TileConfig, class... More, class... Rest>
void start(void (*kernel)(Operands, More...), const Prepared<TileConfig>& prepared,
           const Channels& channels, Rest... more) {
    Operands in = prepared.operands();
    AlignedRows b(channels.b, 1, in.N), weight(channels.weight, 1, in.N);
    AlignedRows bias(channels.bias, 1, in.N), extra(channels.extra, 1, in.N);
    in.of_columns[0] = b.data, in.of_columns[1] = weight.data;
    in.of_columns[2] = bias.data, in.of_columns[3] = extra.data;
    in.wide = b.cols;
    cudaLaunchAttribute together = {};
    together.id = cudaLaunchAttributeCooperative;
    together.val.cooperative = prepared.waits();
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(blocks_for<TileConfig>(in.M, in.N));
    config.blockDim = dim3(TileConfig::THREADS);
    config.dynamicSmemBytes = prepared.bytes();
    config.attrs = &together;
    config.numAttrs = 1;
    cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                         int(config.dynamicSmemBytes));
    cudaLaunchKernelEx(&config, kernel, in, more...);
}
